//! The writer with damaged inputs.

use std::path::Path;
use std::process::Command;

use gpustub_superarchive::fuzz::super_archive as read;
use gpustub_superarchive::{LayerId, Plan, Request, Source, View, ViewId, refresh};

/// Inputs of the writer with changed bytes, and the tables made right again: an error, or a super-archive that
/// verifies. Overrides make variants of damaged members.
#[test]
#[ignore = "heavy, needs clang: ./tests/run"]
fn heavy_changed_inputs_are_written_or_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let code = "__attribute__((weak)) int cos1(void) { return 1; } int cos2(void) { return cos1(); } int sin1;";
    std::fs::write(path("common.c"), code).unwrap();
    std::fs::write(path("family.c"), "int cos1(void) { return 9; }").unwrap();
    let mut inputs = Vec::new();
    let targets: [&[&str]; 5] = [
        &["--target=x86_64-linux-gnu"],
        &["--target=aarch64-linux-gnu", "-g"],
        &["--target=x86_64-linux-gnu", "-emit-llvm"],
        &["--target=armv7-linux-gnueabi", "-O1"],
        &["--target=wasm32"],
    ];
    for target in targets {
        let [family, common] = ["family", "common"].map(|name| {
            let output = Command::new("clang")
                .current_dir(dir.path())
                .args(target)
                .args(["-w", "-c", &format!("{name}.c")])
                .output()
                .unwrap();
            assert!(output.status.success(), "{target:?} {name}: {output:?}");
            let is_bitcode = target.contains(&"-emit-llvm");
            let extension = if is_bitcode { "bc" } else { "o" };
            std::fs::read(path(&format!("{name}.{extension}"))).unwrap()
        });
        let mut archive = ar(&common);
        archive.extend(&ar(&family)[8..]);
        inputs.push((family.clone(), common));
        inputs.push((family, archive));
    }
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let (mut written, mut refused) = (0, 0);
    for round in 0..30_000 {
        let (family, common) = &inputs[round % inputs.len()];
        let mut changed = common.clone();
        for _ in 0..=random(3) {
            let offset = random(changed.len());
            match random(4) {
                0 => changed[offset] ^= 1 << random(8),
                1 => changed[offset] = [0, 1, 0x7F, 0x80, 0xFF][random(5)],
                2 if offset + 4 <= changed.len() => {
                    let number = [0, 1, u32::MAX, 1 << 31, changed.len() as u32][random(5)];
                    changed[offset..offset + 4].copy_from_slice(&number.to_le_bytes());
                }
                _ if random(8) == 0 => changed.truncate(offset.max(1)),
                _ => changed[offset] = random(256) as u8,
            }
        }
        std::fs::write(path("first"), family).unwrap();
        std::fs::write(path("second"), &changed).unwrap();
        match write_overriding(&path("first"), &path("second")) {
            Some(mut bytes) => {
                read(&bytes).unwrap_or_else(|error| panic!("{round}: {error}"));
                let _ = refresh(&mut bytes);
                written += 1;
            }
            None => refused += 1,
        }
    }
    assert!(written > 1000 && refused > 1000, "{written} {refused}");
}

/// An archive of one member, without an index.
fn ar(member: &[u8]) -> Vec<u8> {
    let mut bytes = format!("!<arch>\n{:<48}{:<10}`\n", "member.o/", member.len()).into_bytes();
    bytes.extend(member);
    bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    bytes
}

/// The super-archive of a view in which the first file overrides the second, if there is one.
fn write_overriding(first: &Path, second: &Path) -> Option<Vec<u8>> {
    let (first, second) = (Source::open(first).ok()?, Source::open(second).ok()?);
    let view = |name: &str, layers: &[usize]| View {
        name: name.to_owned(),
        layers: layers.iter().copied().map(LayerId).collect(),
    };
    let mut layers = vec![first.layer().ok()?, second.layer().ok()?];
    layers[1].interposable = true;
    let request = Request {
        layers,
        views: vec![view("both", &[0, 1]), view("one", &[1])],
        default: Some(ViewId(0)),
    };
    let mut bytes = Vec::new();
    Plan::new(&request).ok()?.write(&mut bytes).unwrap();
    Some(bytes)
}
