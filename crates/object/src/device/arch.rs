//! What device code runs on.

use std::fmt;

/// What device code was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Arch {
    /// Ten times the major of the compute capability and its minor: 90 for 9.0, 121 for 12.1.
    pub number: u32,
    /// Whether the code is for less than it would be by the number.
    pub only: Option<Only>,
    /// What it is.
    pub kind: CodeKind,
}

/// What device code is for that uses what later machines do not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Only {
    /// Just this architecture: the `a` of `sm_90a`.
    Arch,
    /// Its family, of one major: the `f` of `sm_100f`.
    Family,
}

/// What device code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CodeKind {
    /// Text that the driver or the device linker compiles.
    Ptx,
    /// Machine code.
    Elf,
    /// What the device linker compiles with all else (`-dlto`).
    Lto,
    /// Something that is not known here.
    Other(u16),
}

impl Arch {
    /// Whether a device link for `wanted` finds code in an object that has this: machine code of the
    /// same major, or what can be compiled, of no later architecture. Where none of an object's is, nvlink
    /// warns and leaves its code out.
    pub fn gives(&self, wanted: &Self) -> bool {
        let same_major = self.number / 10 == wanted.number / 10;
        match (self.only, self.kind) {
            (Some(Only::Arch), _) => {
                self.number == wanted.number && wanted.only == Some(Only::Arch)
            }
            (Some(Only::Family), _) | (None, CodeKind::Elf) => {
                same_major && self.number <= wanted.number
            }
            (None, CodeKind::Ptx | CodeKind::Lto) => self.number <= wanted.number,
            // It may be anything.
            (None, CodeKind::Other(_)) => true,
        }
    }
}

/// As nvcc's options have it: `sm_90a`, `compute_80`, `lto_75`.
impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            CodeKind::Ptx => write!(f, "compute_{}", self.number)?,
            CodeKind::Elf => write!(f, "sm_{}", self.number)?,
            CodeKind::Lto => write!(f, "lto_{}", self.number)?,
            CodeKind::Other(kind) => write!(f, "kind{kind}_{}", self.number)?,
        }
        f.write_str(match self.only {
            None => "",
            Some(Only::Arch) => "a",
            Some(Only::Family) => "f",
        })
    }
}
