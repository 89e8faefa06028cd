//! Damaged wheels: `repair` reports an error or writes a complete wheel, and leaves nothing else. Images of the
//! written wheel load, and bind as those of the undamaged one, or as they did before.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpustub_check::read::Zip;
use gpustub_repair::record::Hasher;
use gpustub_tests::Result;
use gpustub_tests::cargo::program;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::only_entry;
use gpustub_tests::loader::{is_started, needs_more};

const NAME: &str = "acme-1.0-py3-none-manylinux_2_28_x86_64.whl";

/// A wheel with an image that needs an imitation of libcudart.
const MAKE: &str = r#"set -eu
mkdir -p acme acme-1.0.dist-info
printf 'int cudaGetDeviceCount(int *n) { return 7; }' >cudart.c
printf 'libcudart.so.12 { global: *; };' >map
cc -shared -fPIC -Wl,-soname,libcudart.so.12 -Wl,--version-script=map -o libcudart.so cudart.c
printf 'int cudaGetDeviceCount(int *); int count(void) { int n; return cudaGetDeviceCount(&n); }' >core.c
cc -shared -fPIC -o acme/_core.so core.c -L. -Wl,--no-as-needed -lcudart
mkdir -p real && cp libcudart.so real/libcudart.so.12
cat >load.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    int (*count)(void) = library ? (int (*)(void))dlsym(library, "count") : 0;
    if (!count) return fprintf(stderr, "%s\n", dlerror()), 3;
    return printf("%d\n", count()), 0;
}
C
cc -o load load.c -ldl
printf 'Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n' >acme-1.0.dist-info/METADATA
python3 - "$1" <<'PYTHON'
import base64, hashlib, sys, zipfile
names, record = ["acme/_core.so", "acme-1.0.dist-info/METADATA"], "acme-1.0.dist-info/RECORD"
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED if PACKED else zipfile.ZIP_STORED) as wheel:
    lines = ""
    for name in names:
        data = open(name, "rb").read()
        hash = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        lines += f"{name},sha256={hash},{len(data)}\n"
        wheel.writestr(name, data)
    wheel.writestr(record, lines + record + ",,\n")
PYTHON
"#;

/// Numbers of a fixed sequence (xorshift, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn next_below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or(0)
    }
}

/// Changes a few bytes, cuts, or repeats a part.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match numbers.next_below(8) {
        0 => bytes.truncate(numbers.next_below(bytes.len())),
        1 => {
            let start = numbers.next_below(bytes.len());
            bytes.extend_from_within(start..);
        }
        _ => {
            for _ in 0..=numbers.next_below(4) {
                let offset = numbers.next_below(bytes.len());
                bytes[offset] = match numbers.next_below(3) {
                    0 => 0xff,
                    1 => 0,
                    _ => bytes[offset] ^ (1 << numbers.next_below(8)),
                };
            }
        }
    }
    bytes
}

/// The unmodified wheel: its files stored, so that damage reaches the image instead of its checksum and hash only, which
/// are computed again for half of the damaged wheels.
fn original(directory: &Path, stored: bool) -> Result<Vec<u8>> {
    fs::create_dir_all(directory)?;
    let script = MAKE.replace("PACKED", if stored { "False" } else { "True" });
    let wheel = directory.join(NAME);
    succeed(
        Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(&wheel)
            .current_dir(directory),
    )?;
    Ok(fs::read(wheel)?)
}

fn repair(program: &Path, wheel: &Path, out: &Path, more: &[&str]) -> Result<Output> {
    let mut command = Command::new(program);
    command
        .args(["gpustub", "repair", "--out-dir"])
        .arg(out)
        .args(more)
        .arg(wheel);
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let is_regular = [Some(0), Some(1), Some(101)].contains(&output.status.code());
    assert!(
        is_regular && !text.contains("panicked"),
        "{}\n{text}",
        wheel.display()
    );
    Ok(output)
}

/// Unpacks a wheel, and returns its images apart from stub libraries, by path in the wheel.
fn images(wheel: &Path, directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut images = BTreeMap::new();
    for file in Zip::new(File::open(wheel)?)?.files() {
        let (name, mut reader) = file?;
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        let path = directory.join(&name);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        File::create(&path)?.write_all(&bytes)?;
        if bytes.starts_with(b"\x7fELF") && !name.contains("libgpustub_") {
            images.insert(name, path);
        }
    }
    Ok(images)
}

/// Loads an image and calls its function.
fn load(tools: &Path, image: &Path, variables: &[(&str, &Path)]) -> Result<Ran> {
    // A damaged image may not end.
    let mut command = Command::new("timeout");
    command.arg("20").arg(tools.join("load")).arg(image);
    command.env_remove("LD_LIBRARY_PATH");
    run(command.envs(variables.iter().copied()))
}

/// Compares an image of the written wheel with the image in the damaged one, and with the expected result.
fn compare(tools: &Path, before: &Path, after: &Path, expected: &str) -> Result<&'static str> {
    if fs::read(before)? == fs::read(after)? {
        return Ok("unchanged");
    }
    let repaired = load(tools, after, &[])?;
    if repaired.status.success() && repaired.stdout == expected {
        return Ok("repaired");
    }
    let damaged = load(tools, before, &[("LD_LIBRARY_PATH", &tools.join("real"))])?;
    let loads = damaged.status.success();
    match repaired.status.success() {
        // The damaged image computes something else, with every library.
        true if loads && damaged.stdout != "7\n" => Ok("repaired, with damaged code"),
        true if !loads => Ok("loads with the stub only"),
        false if !loads && needs_more(&repaired) => Ok("needs what the system lacks"),
        false if !loads => {
            let debug = load(tools, after, &[("LD_DEBUG", Path::new("files"))])?;
            if is_started(&debug, Some(after)) {
                Ok("stops in its own code")
            } else {
                Err(repaired.error("does not load"))
            }
        }
        _ => Err(repaired.error("does not load as before")),
    }
}

/// Repairs damaged wheels. The first `max_written` of those with a plan are written, and their images are loaded.
/// The others are planned only, since the stub library of each would be compiled.
fn repair_damaged(count: usize, max_written: usize) -> Result<()> {
    let program = program("cargo-gpustub")?;
    let scratch = gpustub_tests::scratch::scratch()?;
    let directory = scratch.path();
    let tools = directory.join("a");
    let originals = [
        original(&tools, true)?,
        original(&directory.join("b"), false)?,
    ];
    let wheel = directory.join(NAME);
    let out = directory.join("out");
    let (before, after) = (directory.join("before"), directory.join("after"));

    fs::write(&wheel, &originals[0])?;
    assert!(repair(&program, &wheel, &out, &[])?.status.success());
    let image = &images(&only_entry(&out)?, &after)?["acme/_core.so"];
    let expected = load(&tools, image, &[])?.success()?.stdout;
    assert!(!["", "7\n"].contains(&expected.as_str()), "{expected:?}");
    fs::remove_dir_all(&out)?;
    fs::remove_dir_all(&after)?;

    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut planned = 0;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for index in 0..count {
        let mut bytes = damage(&originals[index % 2], &mut numbers);
        if index % 4 < 2 {
            renew_hashes(&mut bytes);
            renew_checksums(&mut bytes);
        }
        fs::write(&wheel, bytes)?;
        let output = repair(&program, &wheel, &out, &["--dry-run"])?;
        assert!(!out.exists());
        if !output.status.success() {
            continue;
        }
        planned += 1;
        if planned > max_written {
            continue;
        }
        if repair(&program, &wheel, &out, &[])?.status.success() {
            let originals = images(&wheel, &before)?;
            for (name, image) in images(&only_entry(&out)?, &after)? {
                let kind = compare(&tools, &originals[&name], &image, &expected)
                    .map_err(|error| format!("{index}: {name}: {error:?}"))?;
                *counts.entry(kind).or_default() += 1;
            }
            fs::remove_dir_all(&before)?;
            fs::remove_dir_all(&after)?;
        }
        let _ = fs::remove_dir_all(&out);
    }
    println!("{planned} of {count} planned, {max_written} written at most: {counts:?}");
    assert!(planned > 0 && planned < count, "{planned} of {count}");
    assert!(counts.contains_key("repaired"), "{counts:?}");
    // Damage that only the system or the code shows is rare.
    for kind in ["needs what the system lacks", "stops in its own code"] {
        let number = counts.get(kind).copied().unwrap_or(0);
        assert!(number <= planned / 20, "{kind}: {counts:?}");
    }
    Ok(())
}

/// A number of 4 bytes; 0 beyond the end.
fn number(bytes: &[u8], offset: usize) -> usize {
    let word = bytes
        .get(offset..offset + 4)
        .and_then(|word| word.try_into().ok());
    word.map_or(0, u32::from_le_bytes) as usize
}

fn short_number(bytes: &[u8], offset: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[offset], bytes[offset + 1]]))
}

/// A stored file of a wheel, whose headers are intact.
struct StoredFile {
    name: Vec<u8>,
    /// Offsets of the headers.
    central: usize,
    local: usize,
    contents: Range<usize>,
}

fn stored_files(bytes: &[u8]) -> Vec<StoredFile> {
    let mut files = Vec::new();
    let mut start = 0;
    while let Some(offset) = bytes[start..]
        .windows(4)
        .position(|signature| signature == b"PK\x01\x02")
    {
        let central = start + offset;
        start = central + 4;
        let (local, size) = (number(bytes, central + 42), number(bytes, central + 24));
        let Some(header) = bytes.get(local..local + 30) else {
            continue;
        };
        if !header.starts_with(b"PK\x03\x04") || short_number(header, 8) != 0 {
            continue;
        }
        let name = local + 30..local + 30 + short_number(header, 26);
        let contents = name.end + short_number(header, 28);
        let contents = contents..contents.saturating_add(size);
        let Some(name) = bytes.get(name) else {
            continue;
        };
        if bytes.get(contents.clone()).is_some() {
            files.push(StoredFile {
                name: name.to_vec(),
                central,
                local,
                contents,
            });
        }
    }
    files
}

/// Writes the checksum of each stored file into its headers.
fn renew_checksums(bytes: &mut [u8]) {
    for file in stored_files(bytes) {
        let mut crc = flate2::Crc::new();
        crc.update(&bytes[file.contents]);
        let sum = crc.sum().to_le_bytes();
        bytes[file.local + 14..file.local + 18].copy_from_slice(&sum);
        if let Some(field) = bytes.get_mut(file.central + 16..file.central + 20) {
            field.copy_from_slice(&sum);
        }
    }
}

/// Writes the hash of each stored file into `RECORD`, where its line is intact.
fn renew_hashes(bytes: &mut [u8]) {
    let files = stored_files(bytes);
    let Some(record) = files.iter().find(|file| file.name.ends_with(b"/RECORD")) else {
        return;
    };
    for file in &files {
        let mut hasher = Hasher::default();
        hasher.update(&bytes[file.contents.clone()]);
        let hash = hasher.finish().hash;
        let line = [&file.name[..], b",sha256="].concat();
        let lines = &mut bytes[record.contents.clone()];
        let Some(offset) = lines.windows(line.len()).position(|part| part == line) else {
            continue;
        };
        let start = offset + file.name.len() + 1;
        if let Some(field) = lines.get_mut(start..start + hash.len()) {
            field.copy_from_slice(hash.as_bytes());
        }
    }
}

#[test]
fn damaged_wheels_are_refused_or_repaired_whole() -> Result<()> {
    repair_damaged(12, 2)
}

#[test]
#[ignore = "takes minutes: ./tests/run --all"]
fn heavy_many_damaged_wheels_are_refused_or_repaired_whole() -> Result<()> {
    repair_damaged(1000, 1000)
}
