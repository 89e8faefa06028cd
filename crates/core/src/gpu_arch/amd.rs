//! AMD's architectures (LLVM, "User Guide for AMDGPU Backend", Processors and Target IDs).

use std::fmt;

/// Processor of an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Processor {
    /// `gfx90a`: minor 0, stepping 10.
    Exact { minor: u8, stepping: u8 },
    /// `gfx11-generic`, `gfx9-4-generic`: code for all of a series.
    Generic { minor: Option<u8> },
}

/// One architecture of HIP: a processor, and the settings of its optional features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AmdArch {
    major: u8,
    processor: Processor,
    /// `sramecc+` or `sramecc-`; `None`: code for both settings.
    sramecc: Option<bool>,
    xnack: Option<bool>,
}

impl AmdArch {
    /// Architecture by clang's name, a target ID.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let name = parts.next()?.strip_prefix("gfx")?;
        let (major, processor) = match name.strip_suffix("-generic") {
            Some(series) => {
                let (major, minor) = match series.split_once('-') {
                    Some((major, minor)) => (major, Some(number(minor)?)),
                    None => (series, None),
                };
                (number(major)?, Processor::Generic { minor })
            }
            None => {
                // Two digits, which may be hexadecimal, follow the major: gfx90a, gfx1103.
                let split = name.len().checked_sub(2)?;
                let digits = name.get(split..)?;
                let mut digits = digits.chars().map(hexadecimal);
                let (minor, stepping) = (digits.next()??, digits.next()??);
                (
                    number(&name[..split])?,
                    Processor::Exact { minor, stepping },
                )
            }
        };
        let mut arch = Self {
            major,
            processor,
            sramecc: None,
            xnack: None,
        };
        for feature in parts {
            let (setting, is_on) = match feature.strip_suffix('+') {
                Some(name) => (name, true),
                None => (feature.strip_suffix('-')?, false),
            };
            let setting = match setting {
                "sramecc" => &mut arch.sramecc,
                "xnack" => &mut arch.xnack,
                _ => return None,
            };
            if setting.replace(is_on).is_some() {
                return None;
            }
        }
        Some(arch)
    }

    /// Whether a device link for `requested` can use this code: that of the same processor, with the same settings or
    /// with any.
    pub(super) fn serves(self, requested: Self) -> bool {
        let has = |code: Option<bool>, requested| code.is_none() || code == requested;
        (self.major, self.processor) == (requested.major, requested.processor)
            && has(self.sramecc, requested.sramecc)
            && has(self.xnack, requested.xnack)
    }
}

/// Two target IDs of one processor that clang does not compile together: it accepts those in which all features of the first one
/// in the order of their names are set, or fewer (`getConflictTargetIDCombination` in clang/lib/Basic/TargetID.cpp, LLVM 19).
pub(super) fn conflict(archs: impl Iterator<Item = AmdArch>) -> Option<(AmdArch, AmdArch)> {
    let mut archs = Vec::from_iter(archs);
    archs.sort_by_key(AmdArch::to_string);
    let adds = |arch: Option<bool>, first: Option<bool>| arch.is_some() && first.is_none();
    for arch in &archs {
        let of_processor =
            |first: &&AmdArch| (first.major, first.processor) == (arch.major, arch.processor);
        if let Some(first) = archs.iter().find(of_processor) {
            if adds(arch.sramecc, first.sramecc) || adds(arch.xnack, first.xnack) {
                return Some((*first, *arch));
            }
        }
    }
    None
}

/// A decimal number without leading zeros, below 100.
fn number(text: &str) -> Option<u8> {
    let is_number = matches!(text.len(), 1..=2)
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && !text.starts_with('0');
    text.parse().ok().filter(|_| is_number)
}

fn hexadecimal(digit: char) -> Option<u8> {
    let value = digit.to_digit(16).filter(|_| !digit.is_ascii_uppercase())?;
    u8::try_from(value).ok()
}

/// Formats clang's name, with features in its order.
impl fmt::Display for AmdArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gfx{}", self.major)?;
        match self.processor {
            Processor::Exact { minor, stepping } => write!(f, "{minor:x}{stepping:x}")?,
            Processor::Generic { minor: Some(minor) } => write!(f, "-{minor}-generic")?,
            Processor::Generic { minor: None } => f.write_str("-generic")?,
        }
        for (name, setting) in [("sramecc", self.sramecc), ("xnack", self.xnack)] {
            match setting {
                Some(true) => write!(f, ":{name}+")?,
                Some(false) => write!(f, ":{name}-")?,
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for name in [
            "gfx90a",
            "gfx942",
            "gfx803",
            "gfx1030",
            "gfx1100",
            "gfx90a:xnack+",
            "gfx942:sramecc+:xnack-",
            "gfx9-generic",
            "gfx9-4-generic",
            "gfx11-generic",
        ] {
            assert_eq!(AmdArch::parse(name).unwrap().to_string(), name);
        }
        let arch = AmdArch::parse("gfx906:xnack-:sramecc+").unwrap();
        assert_eq!(arch.to_string(), "gfx906:sramecc+:xnack-");
        for name in [
            "",
            "gfx",
            "gfx9",
            "gfx90",
            "gfx90A",
            "gfx00a",
            "gfx12345",
            "gfx90a:",
            "gfx90a:xnack",
            "gfx90a:tgsplit+",
            "gfx90a:xnack+:xnack-",
            "gfx90é",
            "gfx-generic",
            "gfx9--generic",
            "native",
        ] {
            assert_eq!(AmdArch::parse(name), None, "{name}");
        }
    }

    #[test]
    fn code_serves_its_processor() {
        for (code, requested, expected) in [
            ("gfx90a", "gfx90a", true),
            ("gfx90a", "gfx90a:xnack+", true),
            ("gfx90a:xnack+", "gfx90a", false),
            ("gfx90a:xnack+", "gfx90a:xnack-", false),
            ("gfx90a", "gfx942", false),
            ("gfx11-generic", "gfx1100", false),
        ] {
            let [arch, target] = [code, requested].map(|name| AmdArch::parse(name).unwrap());
            assert_eq!(arch.serves(target), expected, "{code} {requested}");
        }
    }
}
