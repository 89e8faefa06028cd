//! Damaged wheels: `repair` reports an error or writes a complete wheel, and leaves nothing else.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Output};

use gpustub_check::read::Zip;
use gpustub_tests::Result;
use gpustub_tests::cargo::program;
use gpustub_tests::command::succeed;
use gpustub_tests::components::only_entry;

const NAME: &str = "acme-1.0-py3-none-manylinux_2_28_x86_64.whl";

/// A wheel with an image that needs an imitation of libcudart.
const MAKE: &str = r#"set -eu
mkdir -p acme acme-1.0.dist-info
printf 'int cudaGetDeviceCount(int *n) { return 7; }' >cudart.c
printf 'libcudart.so.12 { global: *; };' >map
cc -shared -fPIC -Wl,-soname,libcudart.so.12 -Wl,--version-script=map -o libcudart.so cudart.c
printf 'int cudaGetDeviceCount(int *); int count(void) { int n; return cudaGetDeviceCount(&n); }' >core.c
cc -shared -fPIC -o acme/_core.so core.c -L. -Wl,--no-as-needed -lcudart
printf 'Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n' >acme-1.0.dist-info/METADATA
printf 'acme/_core.so,sha256=x,1\nacme-1.0.dist-info/RECORD,,\n' >acme-1.0.dist-info/RECORD
python3 - "$1" <<'PYTHON'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED if PACKED else zipfile.ZIP_STORED) as wheel:
    for name in ["acme/_core.so", "acme-1.0.dist-info/METADATA", "acme-1.0.dist-info/RECORD"]:
        wheel.write(name)
PYTHON
"#;

/// Numbers of a fixed sequence (xorshift, Marsaglia 2003).
struct Numbers(u64);

impl Numbers {
    fn up_to(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap_or(0)
    }
}

/// Changes a few bytes, cuts, or repeats a part.
fn damage(bytes: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    match numbers.up_to(8) {
        0 => bytes.truncate(numbers.up_to(bytes.len())),
        1 => {
            let at = numbers.up_to(bytes.len());
            let part = bytes[at..].to_vec();
            bytes.extend(part);
        }
        _ => {
            for _ in 0..=numbers.up_to(4) {
                let at = numbers.up_to(bytes.len());
                bytes[at] = match numbers.up_to(3) {
                    0 => 0xff,
                    1 => 0,
                    _ => bytes[at] ^ (1 << numbers.up_to(8)),
                };
            }
        }
    }
    bytes
}

/// The unmodified wheel: its files stored, so that damage reaches the image instead of its checksum only, as the
/// checksum is recomputed for half of the damaged wheels.
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
    let expected = [Some(0), Some(1), Some(101)].contains(&output.status.code());
    assert!(
        expected && !text.contains("panicked"),
        "{}\n{text}",
        wheel.display()
    );
    Ok(output)
}

/// Repairs damaged wheels. The first `written` of those with a plan are written; the others are planned only,
/// since the stub library of each would be compiled.
fn repair_damaged(count: usize, written: usize) -> Result<()> {
    let program = program("cargo-gpustub")?;
    let scratch = tempfile::tempdir()?;
    let directory = scratch.path();
    let originals = [
        original(&directory.join("a"), true)?,
        original(&directory.join("b"), false)?,
    ];
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let (mut left, mut planned) = (written, 0);
    for index in 0..count {
        let wheel = directory.join(NAME);
        let mut bytes = damage(&originals[index % 2], &mut numbers);
        if index % 4 < 2 {
            renew_checksums(&mut bytes);
        }
        fs::write(&wheel, bytes)?;
        let out = directory.join("out");
        let output = repair(&program, &wheel, &out, &["--dry-run"])?;
        assert!(!out.exists());
        if !output.status.success() {
            continue;
        }
        planned += 1;
        if left > 0 {
            left -= 1;
            if repair(&program, &wheel, &out, &[])?.status.success() {
                let zip = Zip::new(File::open(only_entry(&out)?)?)?;
                for file in zip.files() {
                    io::copy(&mut file?.1, &mut io::sink())?;
                }
            }
            let _ = fs::remove_dir_all(&out);
        }
    }
    assert!(planned > 0 && planned < count, "{planned} of {count}");
    Ok(())
}

/// Writes the checksum of each stored file into its headers, where they are intact.
fn renew_checksums(bytes: &mut [u8]) {
    let number = |bytes: &[u8], at: usize| -> usize {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        word.map_or(0, u32::from_le_bytes) as usize
    };
    let mut at = 0;
    while let Some(found) = bytes[at..]
        .windows(4)
        .position(|four| four == b"PK\x01\x02")
    {
        let central = at + found;
        at = central + 4;
        let (local, size) = (number(bytes, central + 42), number(bytes, central + 24));
        let Some(header) = bytes.get(local..local + 30) else {
            continue;
        };
        let short = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        if !header.starts_with(b"PK\x03\x04") || short(8) != 0 {
            continue;
        }
        let start = local + 30 + short(26) + short(28);
        let Some(data) = bytes.get(start..start.saturating_add(size)) else {
            continue;
        };
        let mut crc = flate2::Crc::new();
        crc.update(data);
        let sum = crc.sum().to_le_bytes();
        bytes[local + 14..local + 18].copy_from_slice(&sum);
        if let Some(field) = bytes.get_mut(central + 16..central + 20) {
            field.copy_from_slice(&sum);
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
    repair_damaged(1000, 50)
}
