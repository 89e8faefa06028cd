//! Code for one GPU, by its first bytes.

use std::fmt;

use super::bytes::number;

/// Form of code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(any(test, feature = "tools"), derive(Debug))]
pub enum CodeKind {
    /// ELF file of CUDA.
    Cubin,
    /// ELF file of ROCm.
    CodeObject,
    /// ELF file for another machine, such as the host.
    Object,
    /// LLVM bitcode.
    Bitcode,
    /// Text of NVIDIA's virtual machine.
    Ptx,
    /// NVIDIA's code for link-time optimization (`lto_80`).
    Lto,
    /// SPIR-V module.
    SpirV,
    /// Nothing, as the host's entry of bundles.
    Empty,
    /// Another form, or compressed code.
    Unknown,
}

impl CodeKind {
    /// Form of these bytes.
    pub fn of(code: &[u8]) -> Self {
        match code {
            [] => Self::Empty,
            // EM_CUDA and EM_AMDGPU of llvm/BinaryFormat/ELF.h.
            [0x7F, b'E', b'L', b'F', ..] => match number(code, 18, 2) {
                Some(190) => Self::Cubin,
                Some(224) => Self::CodeObject,
                _ => Self::Object,
            },
            [b'B', b'C', 0xC0, 0xDE, ..] | [0xDE, 0xC0, 0x17, 0x0B, ..] => Self::Bitcode,
            [0x03, 0x02, 0x23, 0x07, ..] => Self::SpirV,
            _ if is_ptx(code) => Self::Ptx,
            _ => Self::Unknown,
        }
    }

    /// Whether this is code for one GPU, which the host neither links nor loads.
    pub fn is_for_device(self) -> bool {
        matches!(
            self,
            Self::Cubin | Self::CodeObject | Self::Ptx | Self::SpirV
        )
    }
}

impl fmt::Display for CodeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cubin => "a cubin of CUDA",
            Self::CodeObject => "a code object of ROCm",
            Self::Object => "an object file",
            Self::Bitcode => "LLVM bitcode",
            Self::Ptx => "PTX of CUDA",
            Self::Lto => "CUDA's code for link-time optimization",
            Self::SpirV => "a SPIR-V module",
            Self::Empty => "empty",
            Self::Unknown => "of an unknown form",
        })
    }
}

/// Whether this is a module of PTX: `.version` is its first directive ("PTX ISA", PTX Module Directives), after comments.
fn is_ptx(code: &[u8]) -> bool {
    /// Comments of nvcc and of clang have about 300 bytes.
    const MAX_COMMENTS: usize = 4096;
    code[..code.len().min(MAX_COMMENTS)]
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .find(|line| !line.is_empty() && !line.starts_with(b"//"))
        .is_some_and(|line| line.starts_with(b".version"))
}
