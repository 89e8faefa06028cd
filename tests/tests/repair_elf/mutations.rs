//! Damaged images: the editor returns an error, or an image that loads and binds as the damaged one does. An
//! image that did not load before is an error, too, unless only its own code or other libraries show why.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use gpustub_image::edit::{Patch, inspect, plan};
use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run};
use gpustub_tests::loader::{is_started, needs_more};

use crate::images::{Images, USER, request};

/// Output of an image with the stub, and with the real libraries.
const WITH_STUB: &str = "35036037\n";
const WITH_REAL: &str = "12112001\n";

/// Exports of the stub.
const STUB_FUNCTIONS: [(&str, &str); 3] = [
    ("cudaMalloc", "GPUSTUB_p_cudart"),
    ("cudaFree", "GPUSTUB_p_cudart"),
    ("cuInit", "GPUSTUB_p_cuda"),
];

/// Pseudo-random numbers of a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn next_below(&mut self, limit: usize) -> usize {
        (self.next_number() % limit.max(1) as u64) as usize
    }
}

/// An undamaged image.
struct Seed {
    name: &'static str,
    bytes: Vec<u8>,
    is_program: bool,
    /// Parts that the editor or the loader reads.
    parts: Vec<Part>,
    /// Instructions.
    code: Vec<Part>,
}

/// Start and size of a part of an image.
type Part = (usize, usize);

/// A little-endian number.
fn number(bytes: &[u8], offset: usize, size: usize) -> usize {
    let mut number = [0; 8];
    number[..size].copy_from_slice(&bytes[offset..offset + size]);
    u64::from_le_bytes(number) as usize
}

/// Headers and tables of an image (ELF header, program headers, and all loaded sections but code), and its code.
fn parts(bytes: &[u8]) -> (Vec<Part>, Vec<Part>) {
    let program_headers = (number(bytes, 32, 8), 56 * number(bytes, 56, 2));
    let mut parts = vec![(0, 64), program_headers];
    let (sections, count) = (number(bytes, 40, 8), number(bytes, 60, 2));
    parts.extend((count != 0).then_some((sections, 64 * count)));
    let mut code = Vec::new();
    for header in (0..count).map(|index| sections + 64 * index) {
        let (kind, flags) = (number(bytes, header + 4, 4), number(bytes, header + 8, 8));
        let is_table = flags & 6 == 2 || matches!(kind, 6 | 14 | 15);
        let has_bytes = kind != 0 && kind != 8;
        let part = (number(bytes, header + 24, 8), number(bytes, header + 32, 8));
        if is_table && has_bytes {
            parts.push(part);
        }
        if flags & 4 != 0 {
            code.push(part);
        }
    }
    parts.retain(|part| part.1 != 0);
    (parts, code)
}

fn seeds(images: &Images) -> Result<Vec<Seed>> {
    let library: &[&str] = &["-shared", "-fPIC", "-Wl,--hash-style=gnu"];
    let program: &[&str] = &["-DPROGRAM", "-fPIE", "-pie"];
    let mut seeds = Vec::new();
    for (name, flag, flags) in [
        ("bfd library", "-fuse-ld=bfd", library),
        ("lld library", "-fuse-ld=lld", library),
        ("mold library", "-fuse-ld=mold", library),
        ("library with large .bss", "-DLARGE", library),
        ("bfd program", "-fuse-ld=bfd", program),
        ("gold program", "-fuse-ld=gold", program),
    ] {
        let link = [flag, "@real/libcudart.so.12", "@real/libcuda.so.1"];
        let image = images.compile("seed", USER, &[flags, &link].concat())?;
        let bytes = fs::read(image)?;
        let (parts, code) = parts(&bytes);
        let is_program = flags == program;
        seeds.push(Seed {
            name,
            bytes,
            is_program,
            parts,
            code,
        });
    }
    // Without section headers everything is found through the dynamic section.
    let mut stripped = seeds[0].bytes.clone();
    for field in [40..48, 58..64] {
        stripped[field].fill(0);
    }
    let (parts, code) = (seeds[0].parts.clone(), seeds[0].code.clone());
    seeds.push(Seed {
        name: "without sections",
        bytes: stripped,
        is_program: false,
        parts,
        code,
    });
    Ok(seeds)
}

/// Overwrites one to four numbers, most of them in tables.
fn damage(seed: &Seed, random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.bytes.clone();
    for _ in 0..1 + random.next_below(4) {
        let (start, size) = match random.next_below(16) {
            0 => (0, bytes.len()),
            1 => {
                bytes.truncate(bytes.len() - random.next_below(bytes.len() / 2));
                continue;
            }
            _ => seed.parts[random.next_below(seed.parts.len())],
        };
        let width = 1 << random.next_below(4);
        let offset = start + random.next_below(size) / width * width;
        let Some(field) = bytes.get_mut(offset..offset + width) else {
            continue;
        };
        let mut old = [0; 8];
        old[..width].copy_from_slice(field);
        let old = u64::from_le_bytes(old);
        let new = match random.next_below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => old.wrapping_add(1),
            3 => old.wrapping_sub(1),
            4 => old ^ 1 << random.next_below(8 * width),
            5 => old.wrapping_mul(2),
            6 => random.next_number() >> random.next_below(64),
            _ => random.next_below(seed.bytes.len()) as u64,
        };
        field.copy_from_slice(&new.to_le_bytes()[..width]);
    }
    bytes
}

/// Libraries and messages of a run.
#[derive(PartialEq)]
enum Environment {
    Stub,
    Real,
    /// The stub, and the loader's account of its work.
    Debug,
}

fn execute(images: &Images, seed: &Seed, file: &Path, environment: Environment) -> Result<Ran> {
    // A damaged program may not end. By the loader's name, since `timeout` gives what the kernel rejects
    // to a shell.
    let mut command = Command::new("timeout");
    command.args(["20", "/lib64/ld-linux-x86-64.so.2"]);
    if !seed.is_program {
        command.arg(images.path("load"));
    }
    command.arg(file).env("LD_BIND_NOW", "1");
    match environment {
        Environment::Stub => {}
        Environment::Real => {
            command.env("LD_LIBRARY_PATH", images.path("real"));
        }
        Environment::Debug => {
            command.env("LD_DEBUG", "files");
        }
    }
    run(&mut command)
}

/// Whether the stub of the undamaged image has the functions that the result imports of it, which
/// `repair` ensures, because it generates the stub from the imports.
fn has_stub_imports(bytes: &[u8], patch: &Patch) -> Result<bool> {
    let mut repaired = Vec::new();
    patch.write(bytes, &mut repaired)?;
    let mut stub_imports = BTreeSet::new();
    for import in inspect(&repaired)?.imports {
        let is_of_stub = import.file.as_deref() == Some("libgpustub_p.so")
            || STUB_FUNCTIONS.iter().any(|(name, _)| *name == import.name);
        if is_of_stub {
            stub_imports.insert((import.name, import.node.unwrap_or_default()));
        }
    }
    let expected = STUB_FUNCTIONS.map(|(name, node)| (name.to_owned(), node.to_owned()));
    Ok(stub_imports == BTreeSet::from(expected))
}

/// Whether an image starts, and then stops in its own code. No tool can know that from tables: damaged
/// instructions, or other functions and data than before.
fn starts(images: &Images, seed: &Seed, file: &Path) -> Result<bool> {
    let ran = execute(images, seed, file, Environment::Debug)?;
    Ok(is_started(&ran, (!seed.is_program).then_some(file)))
}

/// Whether instructions were damaged. What they do may depend on the addresses of the run.
fn has_damaged_code(seed: &Seed, bytes: &[u8]) -> bool {
    seed.code.iter().any(|(start, size)| {
        let range = *start..start + size;
        bytes.get(range.clone()) != Some(&seed.bytes[range])
    })
}

fn make_executable(file: &Path) -> Result<()> {
    Ok(fs::set_permissions(file, PermissionsExt::from_mode(0o755))?)
}

/// Result of one damaged image.
fn outcome(images: &Images, seed: &Seed, number: u64) -> Result<&'static str> {
    let bytes = damage(seed, &mut Random(number));
    let Ok(patch) = plan(&bytes, &request()) else {
        return Ok("refused");
    };
    let repaired = images.path(&format!("repaired-{number}"));
    patch.write(&bytes, &mut fs::File::create(&repaired)?)?;
    make_executable(&repaired)?;
    let damaged = images.path(&format!("damaged-{number}"));
    fs::write(&damaged, &bytes)?;
    make_executable(&damaged)?;
    let after = execute(images, seed, &repaired, Environment::Stub)?;
    let kind = if after.status.success() && after.stdout == WITH_STUB {
        "repaired"
    } else {
        let before = execute(images, seed, &damaged, Environment::Real)?;
        let loads = before.status.success();
        let may_stop = !loads || has_damaged_code(seed, &bytes);
        match after.status.success() {
            _ if loads && !has_stub_imports(&bytes, &patch)? => "imports other functions",
            // The damaged image computes or prints something else, with every library.
            true if loads && before.stdout != WITH_REAL => "repaired, with damaged data",
            true if !loads => "loads with the stub only",
            false if !loads && needs_more(&after) => "needs what the system lacks",
            false if may_stop && starts(images, seed, &repaired)? => "stops in its own code",
            _ => {
                return Err(after.error(&format!(
                    "{}, {}: {number}",
                    seed.name,
                    damaged.display()
                )));
            }
        }
    };
    fs::remove_file(&repaired)?;
    fs::remove_file(&damaged)?;
    Ok(kind)
}

fn damaged_images(count: u64) -> Result<()> {
    let images = Images::new()?;
    let seeds = seeds(&images)?;
    for seed in &seeds {
        let patch = plan(&seed.bytes, &request())?;
        let path = images.path("undamaged");
        patch.write(&seed.bytes, &mut fs::File::create(&path)?)?;
        make_executable(&path)?;
        let ran = execute(&images, seed, &path, Environment::Stub)?;
        assert_eq!(ran.stdout, WITH_STUB, "{}", ran.stderr);
    }
    let next = AtomicU64::new(0);
    let work = || {
        let mut outcomes = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return outcomes;
            }
            let seed = &seeds[number as usize % seeds.len()];
            outcomes.push(outcome(&images, seed, number));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    let mut counts = BTreeMap::new();
    let mut faults = Vec::new();
    for outcome in outcomes {
        match outcome {
            Ok(kind) => *counts.entry(kind).or_insert(0) += 1,
            Err(error) => faults.push(error.0),
        }
    }
    println!("{counts:?}, {} faults", faults.len());
    assert!(
        faults.is_empty(),
        "{} faults\n{}",
        faults.len(),
        faults.join("\n")
    );
    // Neither the damage nor the editor makes all of them the same.
    assert!(
        counts["repaired"] > count / 10 && counts["refused"] > count / 10,
        "{counts:?}"
    );
    // Damage that only the system or the code shows is rare.
    for (kind, share) in [
        ("needs what the system lacks", 50),
        ("stops in its own code", 50),
    ] {
        let number = counts.get(kind).copied().unwrap_or(0);
        assert!(number <= count / share, "{kind}: {counts:?}");
    }
    Ok(())
}

#[test]
#[ignore = "needs lld and mold: ./tests/run"]
fn damaged_images_are_refused_or_load() -> Result<()> {
    damaged_images(400)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_damaged_images_are_refused_or_load() -> Result<()> {
    damaged_images(10_000)
}
