//! Kinds of images.

use crate::error::{Code, Error, Result};

/// Driver that runs an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// CUDA's driver.
    Cuda,
    /// ROCm's HIP runtime.
    Hip,
}

/// `e_machine` of ELF files (the ELF registry; LLVM's `BinaryFormat/ELF.h`).
pub const EM_CUDA: u16 = 190;
pub const EM_AMDGPU: u16 = 224;

/// Position of `e_machine` in a header.
const MACHINE: std::ops::Range<usize> = 18..20;

/// Magic numbers.
const ELF: &[u8] = b"\x7fELF";
const FATBIN: &[u8] = &0xba55_ed50_u32.to_le_bytes();
pub const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED_BUNDLE: &[u8] = b"CCOB";
/// LLVM's `Object/OffloadBinary.h`.
const OFFLOAD: &[u8] = b"\x10\xff\x10\xad";
const BITCODE: [&[u8]; 2] = [b"BC\xc0\xde", b"\xde\xc0\x17\x0b"];

impl Kind {
    /// Detects the driver for this image.
    ///
    /// # Errors
    ///
    /// If no driver can run the image; the message contains `path`.
    pub fn detect(image: &[u8], path: &str) -> Result<Self> {
        if image.starts_with(ELF) {
            return match machine(image) {
                Some(EM_CUDA) => Ok(Self::Cuda),
                Some(EM_AMDGPU) => Ok(Self::Hip),
                Some(machine) => Err(not_a_program(
                    path,
                    &format!("ELF file for machine {machine}"),
                )
                .help(
                    "NVIDIA's GPUs are machine 190, AMD's 224; link the program for one of them",
                )),
                None => Err(not_a_program(path, "truncated ELF header")),
            };
        }
        if image.starts_with(FATBIN) || is_ptx(image) {
            return Ok(Self::Cuda);
        }
        if image.starts_with(BUNDLE) || image.starts_with(COMPRESSED_BUNDLE) {
            return Ok(Self::Hip);
        }
        if image.starts_with(OFFLOAD) {
            return Err(not_a_program(path, "LLVM offload binary")
                .help("extract the image of one GPU: llvm-offload-binary (before LLVM 22: clang-offload-packager)"));
        }
        if BITCODE.iter().any(|magic| image.starts_with(magic)) {
            return Err(not_a_program(path, "LLVM bitcode")
                .help("link it to an image first: clang --target=… -flto"));
        }
        if image.is_empty() {
            return Err(not_a_program(path, "empty file")
                .help("the build that should have written it may have failed"));
        }
        Err(not_a_program(path, "unknown format")
            .help("supported are cubin, PTX, fatbin, AMDGPU code object and HIP bundle; --runtime skips this check"))
    }
}

/// Machine of an ELF file; nothing if this is none.
pub fn machine(image: &[u8]) -> Option<u16> {
    let bytes = image.get(MACHINE).filter(|_| image.starts_with(ELF))?;
    Some(u16::from_le_bytes(*bytes.first_chunk()?))
}

fn not_a_program(path: &str, description: &str) -> Error {
    Error::new(
        Code::NotRunnable,
        format!("`{path}` is not a GPU program: {description}"),
    )
}

/// Whether this is PTX: text whose first directive is `.version` (PTX ISA, "PTX Module Directives").
pub fn is_ptx(image: &[u8]) -> bool {
    let mut rest = image;
    loop {
        rest = rest.trim_ascii_start();
        let Some(comment) = rest.strip_prefix(b"//") else {
            return rest.starts_with(b".version");
        };
        let Some(end) = comment.iter().position(|byte| *byte == b'\n') else {
            return false;
        };
        rest = &comment[end..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elf(machine: u16) -> Vec<u8> {
        let mut image = b"\x7fELF\x02\x01\x01".to_vec();
        image.resize(18, 0);
        image.extend(machine.to_le_bytes());
        image
    }

    #[test]
    fn images_are_identified_by_their_first_bytes() {
        let bundle = b"__CLANG_OFFLOAD_BUNDLE__\x01\0\0\0\0\0\0\0";
        for (image, kind) in [
            (&elf(190)[..], Kind::Cuda),
            (&elf(224), Kind::Hip),
            (
                b"// Generated\n//\n\n.version 7.0\n.target sm_70\n",
                Kind::Cuda,
            ),
            (b".version 7.0", Kind::Cuda),
            (b"\x50\xed\x55\xba\x01\0\x10\0", Kind::Cuda),
            (bundle, Kind::Hip),
            (b"CCOB\x02\0", Kind::Hip),
        ] {
            let text = String::from_utf8_lossy(image);
            assert_eq!(Kind::detect(image, "image").ok(), Some(kind), "{text:?}");
        }
    }

    #[test]
    fn unsupported_images_are_identified() {
        for (image, description) in [
            (&elf(62)[..], "ELF file for machine 62"),
            (b"\x7fELF\x02", "truncated ELF header"),
            (b"BC\xc0\xde\x35", "LLVM bitcode"),
            (b"\x10\xff\x10\xad\x01", "LLVM offload binary"),
            (b"// only a comment", "unknown format"),
            (b"#!/bin/sh\n", "unknown format"),
            (b"", "empty file"),
        ] {
            let error = Kind::detect(image, "image").expect_err("no GPU program");
            assert_eq!(
                error.message,
                format!("`image` is not a GPU program: {description}")
            );
            assert_eq!(error.code, Code::NotRunnable);
        }
    }
}
