//! GPU architectures by the names of their compilers: nvcc's `sm_80`, `sm_90a`, `compute_90`, `lto_80`, and clang's
//! `gfx90a`, `gfx90a:xnack+`, `gfx11-generic` for AMD.

use std::fmt;

mod amd;

pub use amd::AmdArch;

/// Maker of a GPU, which decides the compiler of its code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Vendor {
    /// CUDA: nvcc, nvlink.
    Nvidia,
    /// HIP: clang, lld.
    Amd,
}

impl Vendor {
    /// Architectures of its GPUs.
    pub fn select(self, archs: impl IntoIterator<Item = Arch>) -> Vec<Arch> {
        let archs = archs.into_iter();
        archs.filter(|arch| arch.vendor() == self).collect()
    }

    /// Whether one of the architectures is of its GPUs.
    pub fn is_in(self, archs: impl IntoIterator<Item = Arch>) -> bool {
        archs.into_iter().any(|arch| arch.vendor() == self)
    }
}

/// One architecture. Sorted by vendor, then by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Arch {
    /// Architecture of CUDA.
    Nvidia(NvidiaArch),
    /// Architecture of HIP.
    Amd(AmdArch),
}

/// Kind of an architecture's code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchKind {
    /// Machine code: `sm_80`. Runs on GPUs of the same major and a minor not lower.
    Real,
    /// Code that is finished at the device link: `lto_80`.
    Lto,
    /// PTX: `compute_80`. Compiled for any GPU not older.
    Virtual,
}

/// Letter after the number: code that other GPUs do not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ArchSuffix {
    /// `a`: just this GPU.
    Accelerated,
    /// `f`: this GPU and later ones of its family.
    Family,
}

/// One architecture of CUDA. Sorted by number, then suffix, then kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct NvidiaArch {
    /// The compute capability without its dot: 80, 103.
    pub number: u16,
    /// `a` or `f`.
    pub suffix: Option<ArchSuffix>,
    /// Machine code, PTX or code for the device link.
    pub kind: ArchKind,
}

const KINDS: [(&str, ArchKind); 3] = [
    ("sm_", ArchKind::Real),
    ("lto_", ArchKind::Lto),
    ("compute_", ArchKind::Virtual),
];

/// Letters behind the number.
const SUFFIXES: [(&str, ArchSuffix); 2] =
    [("a", ArchSuffix::Accelerated), ("f", ArchSuffix::Family)];

impl Arch {
    /// Description of the input of [`Arch::parse`], for messages.
    pub const TAKES: &'static str = "architectures such as \"sm_80\", \"sm_90a\", \"compute_90\" or \"lto_80\", \
                                     and for AMD \"gfx90a\" or \"gfx942:xnack+\"";

    /// Parses the name of an architecture. Only the compiler knows whether it supports the number.
    pub fn parse(text: &str) -> Option<Self> {
        match NvidiaArch::parse(text) {
            Some(arch) => Some(Self::Nvidia(arch)),
            None => AmdArch::parse(text).map(Self::Amd),
        }
    }

    /// Maker of the GPU.
    pub fn vendor(self) -> Vendor {
        match self {
            Self::Nvidia(_) => Vendor::Nvidia,
            Self::Amd(_) => Vendor::Amd,
        }
    }

    /// Kind of its code. Code for AMD is machine code after the device link.
    pub fn kind(self) -> ArchKind {
        match self {
            Self::Nvidia(arch) => arch.kind,
            Self::Amd(_) => ArchKind::Real,
        }
    }

    /// Same architecture as another kind: the `sm_80` of `lto_80`. AMD's have one kind.
    pub fn as_kind(self, kind: ArchKind) -> Self {
        match self {
            Self::Nvidia(arch) => Self::Nvidia(NvidiaArch { kind, ..arch }),
            Self::Amd(_) => self,
        }
    }

    /// Whether the code is PTX that a driver compiles for every later GPU.
    pub fn is_portable(self) -> bool {
        matches!(self, Self::Nvidia(arch) if arch.kind == ArchKind::Virtual && arch.suffix.is_none())
    }

    /// Whether a device link for the real architecture `requested` can use this code.
    pub fn serves(self, requested: Self) -> bool {
        match (self, requested) {
            (Self::Nvidia(code), Self::Nvidia(requested)) => code.serves(requested),
            (Self::Amd(code), Self::Amd(requested)) => code.serves(requested),
            _ => false,
        }
    }
}

/// Two architectures that clang does not compile together, nor links: `gfx90a` and `gfx90a:xnack+`.
pub fn conflicting_targets(archs: impl IntoIterator<Item = Arch>) -> Option<(Arch, Arch)> {
    let archs = archs.into_iter().filter_map(|arch| match arch {
        Arch::Amd(arch) => Some(arch),
        Arch::Nvidia(_) => None,
    });
    let (first, second) = amd::conflict(archs)?;
    Some((Arch::Amd(first), Arch::Amd(second)))
}

/// Help for [`conflicting_targets`].
pub const TARGETS_HELP: &str = "a feature (`xnack`, `sramecc`) is in all target IDs of a processor or in none: the ID without it is \
                                for both settings";

/// Formats the compiler's name.
impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nvidia(arch) => arch.fmt(f),
            Self::Amd(arch) => arch.fmt(f),
        }
    }
}

impl NvidiaArch {
    /// Architecture by nvcc's name. Only nvcc knows whether a toolkit supports the number.
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = KINDS
            .iter()
            .find_map(|(prefix, kind)| Some((*kind, text.strip_prefix(prefix)?)))?;
        let (digits, suffix) = SUFFIXES
            .iter()
            .find_map(|(letter, suffix)| Some((rest.strip_suffix(letter)?, Some(*suffix))))
            .unwrap_or((rest, None));
        let is_number = matches!(digits.len(), 2..=3)
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        Some(Self {
            number: digits.parse().ok().filter(|_| is_number)?,
            suffix,
            kind,
        })
    }

    /// The major of the compute capability.
    fn major(self) -> u16 {
        self.number / 10
    }

    /// Whether a device link for the real architecture `requested` can use this code: machine code of
    /// the same major that is not newer, PTX or LTO code that is not newer. Code with a letter: the
    /// same number and letter (`a`), or the same family and not newer (`f`). These are the rules of
    /// nvlink 13.4.
    fn serves(self, requested: Self) -> bool {
        let is_not_newer = self.number <= requested.number;
        let has_same_major = self.major() == requested.major();
        match self.suffix {
            // Plain code runs on every GPU of its major, including those with a letter.
            None => is_not_newer && (has_same_major || self.kind != ArchKind::Real),
            Some(ArchSuffix::Accelerated) => {
                self.number == requested.number && requested.suffix == self.suffix
            }
            // 101 has a family of its own: ptxas 12.9. CUDA 13 renamed it to 110 (PTX ISA 9.0).
            Some(ArchSuffix::Family) => {
                let is_same_family = (self.number == 101) == (requested.number == 101);
                has_same_major && is_not_newer && is_same_family
            }
        }
    }
}

/// Formats nvcc's name.
impl fmt::Display for NvidiaArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = KINDS
            .iter()
            .find(|(_, kind)| *kind == self.kind)
            .map_or("", |(prefix, _)| prefix);
        let suffix = SUFFIXES
            .iter()
            .find(|(_, suffix)| Some(*suffix) == self.suffix)
            .map_or("", |(letter, _)| letter);
        write!(f, "{prefix}{}{suffix}", self.number)
    }
}

/// Variables with options that nvcc adds to those of its command line (nvcc's manual, "NVCC Environment
/// Variables").
pub const NVCC_FLAGS: [&str; 2] = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"];

/// Whether options of nvcc choose architectures, also those that depend on the machine (`-arch=native`).
pub fn chooses_archs(options: &str) -> bool {
    const NAMES: [&str; 6] = [
        "arch",
        "code",
        "gencode",
        "generate-code",
        "gpu-architecture",
        "gpu-code",
    ];
    options
        .split_whitespace()
        .filter_map(|word| word.strip_prefix('-'))
        .any(|word| {
            let (name, _) = word.split_once('=').unwrap_or((word, ""));
            NAMES.contains(&name.trim_start_matches('-'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arch(text: &str) -> Arch {
        Arch::parse(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn names_are_read_and_written() {
        for name in [
            "sm_80",
            "sm_90a",
            "sm_103f",
            "compute_90",
            "compute_120f",
            "lto_80",
            "lto_90a",
        ] {
            assert_eq!(arch(name).to_string(), name);
        }
        for invalid in [
            "",
            "80",
            "sm80",
            "sm_",
            "sm_8",
            "sm_08",
            "sm_1000",
            "sm_80b",
            "sm_80aa",
            "sm_+8",
            "SM_80",
            "sm_80 ",
            "compute80",
            "native",
            "all",
        ] {
            assert_eq!(Arch::parse(invalid), None, "{invalid}");
        }
        assert!(arch("sm_80") < arch("compute_80") && arch("compute_80") < arch("sm_86"));
    }

    #[test]
    fn options_with_architectures_are_recognized() {
        for (options, expected) in [
            ("-gencode arch=compute_75,code=sm_75", true),
            ("-O3 -arch=native", true),
            ("--gpu-architecture compute_75", true),
            ("--generate-code=arch=compute_75,code=sm_75", true),
            ("-code=sm_75", true),
            ("", false),
            ("-allow-unsupported-compiler -DX=-arch", false),
            ("arch=compute_75", false),
        ] {
            assert_eq!(chooses_archs(options), expected, "{options}");
        }
    }

    /// As clang 19: `tests/tests/hip_builds/targets.rs`.
    #[test]
    fn target_ids_of_a_processor_have_the_same_features() {
        for (names, expected) in [
            ("gfx90a gfx1030 sm_90 compute_90", None),
            ("gfx90a:xnack+ gfx90a:xnack- gfx1030", None),
            ("gfx90a:xnack+ gfx90a", Some(("gfx90a", "gfx90a:xnack+"))),
            ("gfx90a gfx90a", None),
        ] {
            let archs = Vec::from_iter(names.split(' ').map(arch));
            let expected = expected.map(|(first, second)| (arch(first), arch(second)));
            assert_eq!(conflicting_targets(archs), expected, "{names}");
        }
    }

    #[test]
    fn code_serves_what_can_be_made_of_it() {
        for (code, requested, expected) in [
            ("sm_80", "sm_80", true),
            ("sm_80", "sm_86", true),
            ("sm_86", "sm_80", false),
            ("sm_80", "sm_90", false),
            ("sm_100", "sm_103", true),
            ("compute_80", "sm_90", true),
            ("compute_90", "sm_80", false),
            ("lto_80", "sm_90", true),
            ("sm_90", "sm_90a", true),
            ("sm_90a", "sm_90", false),
            ("sm_90a", "sm_90a", true),
            ("compute_90a", "sm_90a", true),
            ("compute_90a", "sm_100a", false),
            ("sm_100f", "sm_103f", true),
            ("sm_100f", "sm_103a", true),
            ("sm_100f", "sm_103", true),
            ("sm_100f", "sm_120f", false),
            ("compute_100f", "sm_101", false),
            ("compute_101f", "sm_101a", true),
            ("compute_101f", "sm_103", false),
        ] {
            let serves = arch(code).serves(arch(requested));
            assert_eq!(serves, expected, "{code} {requested}");
        }
    }
}
