//! Number of lanes of the client in an image: that of the kernels, which places the packets of a port. A device can run
//! kernels of another number than its own.

use std::collections::BTreeMap;

use crate::amdgpu_metadata::{WavefrontSizes, wavefront_sizes};
use crate::error::{Code, Error, Result};
use crate::image::{BUNDLE, EM_AMDGPU, Kind, machine};

/// Lanes of a warp on every GPU of NVIDIA (PTX ISA, `WARP_SZ`).
const NVIDIA_LANES: u32 = 32;
/// Code objects of a bundle that are read, one for each architecture.
const MAX_CODE_OBJECTS: usize = 256;

/// Returns the number of lanes. `device_lanes` is that of the device. It selects the code objects of a bundle that the
/// device can run, and is the result for images that only the driver can read, such as compressed bundles.
///
/// # Errors
///
/// If kernels of the image differ, or an uncompressed image does not have the number.
pub fn lanes(image: &[u8], device_lanes: u32) -> Result<u32> {
    match Kind::detect(image, "image") {
        Ok(Kind::Cuda) => Ok(NVIDIA_LANES),
        Ok(Kind::Hip) if image.starts_with(BUNDLE) => bundle_lanes(image, device_lanes),
        Ok(Kind::Hip) if machine(image).is_some() => code_object_lanes(image),
        _ => Ok(device_lanes),
    }
}

fn code_object_lanes(code_object: &[u8]) -> Result<u32> {
    let sizes = wavefront_sizes(code_object).ok_or_else(|| {
        not_runnable("malformed metadata of kernels in the image: the number of lanes is unknown")
            .help("`llvm-readelf --notes` prints the metadata; link the program again")
    })?;
    one_size(sizes)
}

/// The only wavefront size, which has to be one that clients of LLVM's libc can have.
fn one_size(sizes: WavefrontSizes<'_>) -> Result<u32> {
    let mut listed = sizes.iter().map(|(size, name)| format!("`{name}` {size}"));
    match (listed.next(), listed.next()) {
        (None, _) => Err(not_runnable(
            "the image has no metadata of its kernels: the number of lanes is unknown",
        )
        .help("link the program again, and keep its section `.note`")),
        (Some(first), Some(second)) => Err(not_runnable(format!(
            "kernels of the image have wavefronts of different sizes: {first} lanes, {second} lanes"
        ))
        .help(
            "all kernels share one client: compile all files of the program with -mwavefrontsize64, or all with \
             -mno-wavefrontsize64",
        )),
        (Some(only), None) => sizes
            .into_keys()
            .find_map(|size| u32::try_from(size).ok().filter(|size| matches!(size, 32 | 64)))
            .ok_or_else(|| {
                not_runnable(format!("unknown wavefront size in the image: {only} lanes"))
                    .help("wavefronts of AMD's GPUs have 32 or 64 lanes; `llvm-readelf --notes` prints the metadata")
            }),
    }
}

/// Reads the code objects that a device of `device_lanes` may run. Wavefronts have 64 lanes before gfx10; since then devices
/// report 32, and compilers choose.
fn bundle_lanes(bundle: &[u8], device_lanes: u32) -> Result<u32> {
    let code_objects = code_objects(bundle).ok_or_else(|| {
        not_runnable("malformed bundle: its table of code objects does not fit into the image")
            .help("`clang-offload-bundler --list` prints the table; link the program again")
    })?;
    let is_eligible = |target: &str| target.contains("-gfx1") == (device_lanes == 32);
    let any_eligible = code_objects.keys().any(|target| is_eligible(target));
    let mut sizes = WavefrontSizes::new();
    for (target, code_object) in &code_objects {
        if is_eligible(target) || !any_eligible {
            let size = code_object_lanes(code_object).map_err(|error| Error {
                message: format!("{target}: {}", error.message),
                ..error
            })?;
            sizes.entry(size.into()).or_insert(target.as_str().into());
        }
    }
    if sizes.len() > 1 {
        let listed: Vec<_> = sizes
            .iter()
            .map(|(size, target)| format!("{target} has {size}"))
            .collect();
        return Err(not_runnable(format!(
            "code objects of the bundle differ in the number of lanes: {}",
            listed.join(", ")
        ))
        .help("extract the code object of the device, which is then the image: clang-offload-bundler --unbundle"));
    }
    one_size(sizes)
}

/// Code objects of a bundle for AMD's GPUs, by their targets (clang's ClangOffloadBundler, "Bundled Code Object Layout").
fn code_objects(bundle: &[u8]) -> Option<BTreeMap<String, &[u8]>> {
    let mut table = bundle.strip_prefix(BUNDLE)?;
    let count = number(&mut table)?;
    let mut code_objects = BTreeMap::new();
    for _ in 0..count {
        let (offset, size) = (number(&mut table)?, number(&mut table)?);
        let name_size = number(&mut table)?;
        let (target, rest) = table.split_at_checked(name_size)?;
        table = rest;
        let code_object = bundle.get(offset..offset.checked_add(size)?)?;
        // The host's part is empty, or a file for the host.
        if machine(code_object) == Some(EM_AMDGPU) && code_objects.len() < MAX_CODE_OBJECTS {
            code_objects.insert(String::from_utf8_lossy(target).into_owned(), code_object);
        }
    }
    Some(code_objects)
}

/// Number of eight bytes.
fn number(table: &mut &[u8]) -> Option<usize> {
    let (bytes, rest) = table.split_first_chunk()?;
    *table = rest;
    usize::try_from(u64::from_le_bytes(*bytes)).ok()
}

fn not_runnable(message: impl Into<String>) -> Error {
    Error::new(Code::NotRunnable, message)
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::Command;

    use super::*;

    const NEEDS: &str = "./tests/run installs what tests need";

    fn output(program: &str, words: &[&str], dir: &Path) -> String {
        let output = Command::new(program).args(words).current_dir(dir).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}; {NEEDS}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words:?}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A directory with one source, and code objects of it.
    struct Images(tempfile::TempDir);

    impl Images {
        fn new() -> Self {
            let dir = tempfile::tempdir().expect("a directory");
            // Kernels of C, and of OpenCL for clang 14, which does not know the attribute.
            let source = "#ifndef KERNEL\n#define KERNEL __attribute__((amdgpu_kernel, visibility(\"protected\")))\n#endif\n\
                 #ifdef MIXED\n#define OTHER __attribute__((target(\"wavefrontsize64\")))\n#else\n#define OTHER\n#endif\n\
                 #ifndef ONLY_START\nKERNEL OTHER void _end(int result) {}\n#endif\n\
                 #ifndef ONLY_END\nKERNEL void _start(int argc) {}\n#endif\n";
            std::fs::write(dir.path().join("program.c"), source).expect("a source");
            Self(dir)
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn read(&self, name: &str) -> Vec<u8> {
            std::fs::read(self.path(name)).expect("an image")
        }

        fn run(&self, program: &str, words: &str) -> String {
            output(
                program,
                &words.split(' ').collect::<Vec<_>>(),
                self.0.path(),
            )
        }

        /// Compiles the program with clang 19, to a code object or an object (`-c`).
        fn compile(&self, words: &str, name: &str) {
            let target = "--target=amdgcn-amd-amdhsa -nogpulib -O1 program.c";
            self.run("clang-19", &format!("{target} {words} -o {name}"));
        }

        /// Wavefront sizes by LLVM's reader.
        fn llvm_sizes(&self, name: &str) -> Vec<u32> {
            let notes = self.run("llvm-readelf-19", &format!("--notes {name}"));
            let sizes = notes.lines().filter_map(|line| {
                let line = line.trim().to_ascii_lowercase().replace('_', "");
                let size = line
                    .trim_start_matches('.')
                    .strip_prefix("wavefrontsize:")?;
                Some(size.trim().parse().expect("a number"))
            });
            let mut sizes: Vec<u32> = sizes.collect();
            sizes.sort_unstable();
            sizes
        }
    }

    #[test]
    #[ignore = "needs clang 19 and llvm 19: ./tests/run"]
    fn lanes_are_those_of_llvms_reader() {
        let images = Images::new();
        for (words, expected) in [
            ("-mcpu=gfx90a", 64),
            ("-mcpu=gfx1100", 32),
            ("-mcpu=gfx1100 -mwavefrontsize64", 64),
            (
                "-mcpu=gfx1100 -mwavefrontsize64 -mcode-object-version=4",
                64,
            ),
            ("-mcpu=gfx1030 -mcode-object-version=4", 32),
            ("-mcpu=gfx1201 -mno-wavefrontsize64 -g", 32),
            ("-mcpu=gfx1201 -mwavefrontsize64 -flto", 64),
        ] {
            images.compile(words, "image");
            assert_eq!(images.llvm_sizes("image"), [expected; 2], "{words}");
            for device_lanes in [32, 64] {
                assert_eq!(
                    lanes(&images.read("image"), device_lanes).expect(words),
                    expected,
                    "{words}"
                );
            }
        }
    }

    /// Clang 14 writes the notes of old code objects.
    #[test]
    #[ignore = "needs clang 14, lld 19 and llvm 19: ./tests/run"]
    fn old_code_objects_have_lanes() {
        let images = Images::new();
        for version in [2, 3] {
            let target = "-x cl -DKERNEL=kernel --target=amdgcn-amd-amdhsa -mcpu=gfx900 -nogpulib";
            let to = format!("-mcode-object-version={version} -c program.c -o old.o");
            images.run("clang-14", &format!("{target} {to}"));
            images.run("ld.lld-19", "-shared old.o -o old");
            let abi_version = images.read("old")[8];
            assert_eq!(abi_version, version - 2);
            assert_eq!(images.llvm_sizes("old"), [64; 2], "V{version}");
            assert_eq!(lanes(&images.read("old"), 32).expect("lanes"), 64);
        }
    }

    /// The kernels of one object in one note, and of two objects in two notes.
    #[test]
    #[ignore = "needs clang 19 and llvm 19: ./tests/run"]
    fn mixtures_are_refused() {
        let images = Images::new();
        images.compile("-mcpu=gfx1100 -DMIXED", "one-note");
        images.compile("-mcpu=gfx1100 -DONLY_START -c", "start.o");
        images.compile("-mcpu=gfx1100 -DONLY_END -mwavefrontsize64 -c", "end.o");
        let target = "--target=amdgcn-amd-amdhsa -mcpu=gfx1100 -nogpulib";
        images.run("clang-19", &format!("{target} start.o end.o -o two-notes"));
        for name in ["one-note", "two-notes"] {
            assert_eq!(images.llvm_sizes(name), [32, 64]);
            let error = lanes(&images.read(name), 32).expect_err(name);
            assert_eq!(
                error.message,
                "kernels of the image have wavefronts of different sizes: `_start` 32 lanes, `_end` 64 lanes"
            );
            assert_eq!(error.code, Code::NotRunnable);
        }
    }

    /// Without notes, HIP would not load the image either.
    #[test]
    #[ignore = "needs clang 19 and llvm 19: ./tests/run"]
    fn images_without_metadata_are_refused() {
        let images = Images::new();
        images.compile("-mcpu=gfx1100", "image");
        images.run("llvm-strip-19", "--strip-sections image -o sections");
        assert_eq!(lanes(&images.read("sections"), 64).expect("lanes"), 32);
        images.run("llvm-objcopy-19", "--remove-section .note image none");
        let error = lanes(&images.read("none"), 32).expect_err("no metadata");
        let expected = "the image has no metadata of its kernels: the number of lanes is unknown";
        assert_eq!(error.message, expected);
        // The text of the note is damaged, the rest of the image is not.
        let mut damaged = images.read("image");
        let offset = damaged
            .windows(14)
            .position(|bytes| bytes == b"amdhsa.kernels");
        damaged[offset.expect("a key") + 14] = 0xc1;
        let error = lanes(&damaged, 32).expect_err("malformed");
        assert!(error.message.starts_with("malformed metadata of kernels"));
    }

    /// A bundle as clang-offload-bundler writes it, which no package of the tests has.
    fn bundle_of(code_objects: &[(String, Vec<u8>)]) -> Vec<u8> {
        const PAGE: usize = 4096;
        let host = ("host-x86_64-unknown-linux-gnu-".to_owned(), Vec::new());
        let parts: Vec<_> = std::iter::once(&host).chain(code_objects).collect();
        let mut bundle = [BUNDLE, &(parts.len() as u64).to_le_bytes()].concat();
        let mut offset = PAGE;
        for (target, contents) in &parts {
            for number in [offset, contents.len(), target.len()] {
                bundle.extend((number as u64).to_le_bytes());
            }
            bundle.extend(target.as_bytes());
            offset = (offset + contents.len()).next_multiple_of(PAGE);
        }
        for (_, contents) in parts {
            bundle.resize(bundle.len().next_multiple_of(PAGE), 0);
            bundle.extend(contents);
        }
        bundle
    }

    #[test]
    #[ignore = "needs clang 19: ./tests/run"]
    fn bundles_have_lanes_of_what_the_device_can_run() {
        let images = Images::new();
        images.compile("-mcpu=gfx90a", "gfx90a");
        images.compile("-mcpu=gfx1030", "gfx1030");
        images.compile("-mcpu=gfx1100 -mwavefrontsize64", "gfx1100");
        let bundle = |names: &[&str]| {
            let code_objects: Vec<_> = names
                .iter()
                .map(|name| {
                    let target = format!("hipv4-amdgcn-amd-amdhsa--{name}");
                    (target, images.read(name))
                })
                .collect();
            bundle_of(&code_objects)
        };
        for (names, device_lanes, expected) in [
            (&["gfx1100"][..], 32, 64),
            (&["gfx90a", "gfx1030"], 32, 32),
            (&["gfx90a", "gfx1030"], 64, 64),
            (&["gfx90a", "gfx1030", "gfx1100"], 64, 64),
            (&["gfx90a"], 32, 64),
        ] {
            let bundle_lanes = lanes(&bundle(names), device_lanes).expect("lanes");
            assert_eq!(
                bundle_lanes, expected,
                "{names:?} on a device of {device_lanes}"
            );
        }
        let error = lanes(&bundle(&["gfx1030", "gfx1100"]), 32).expect_err("a mixture");
        assert_eq!(
            error.message,
            "code objects of the bundle differ in the number of lanes: hipv4-amdgcn-amd-amdhsa--gfx1030 has 32, \
             hipv4-amdgcn-amd-amdhsa--gfx1100 has 64"
        );
        let whole = bundle(&["gfx90a"]);
        for end in BUNDLE.len()..whole.len().min(4096) {
            assert!(lanes(&whole[..end], 32).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn other_images_have_known_lanes() {
        for (image, expected) in [
            (&b".version 7.0\n.entry _start()"[..], 32),
            (b"\x50\xed\x55\xba\x01\0\x10\0", 32),
            // Only the driver reads these.
            (b"CCOB\x02\0", 64),
            (b"", 64),
            (b"#!/bin/sh\n", 64),
        ] {
            assert_eq!(lanes(image, 64).expect("lanes"), expected, "{image:?}");
        }
        let hostile = [BUNDLE, &[0xff; 64]].concat();
        assert!(lanes(&hostile, 32).is_err());
    }
}
