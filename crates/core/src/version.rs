//! Library versions: `major.minor`, ordered, and ranges of them.

use std::fmt;

/// A version of a GPU library or toolkit, for example 12.9.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Hash, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The major number.
    pub major: u32,
    /// The minor number.
    pub minor: u32,
}

/// Highest minor number that [`Version::code`] can encode.
const LAST_MINOR: u32 = 99;

impl Version {
    /// `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        Self { major, minor }
    }

    /// Reads `12` (as 12.0) or `12.9`; anything else is `None`, also numbers of more than four
    /// digits and leading zeros (is `12.01` 12.1 or 12.10?).
    pub fn parse(text: &str) -> Option<Self> {
        fn number(digits: &str) -> Option<u32> {
            let is_number = (1..=4).contains(&digits.len())
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits == "0" || !digits.starts_with('0'));
            is_number.then(|| digits.parse().ok())?
        }
        match text.split_once('.') {
            None => Some(Self::new(number(text)?, 0)),
            Some((major, minor)) => Some(Self::new(number(major)?, number(minor)?)),
        }
    }

    /// Decodes a [`Version::code`], for example `CUDA_VERSION`. Numbers below 1000 are invalid.
    pub fn from_code(code: u32) -> Option<Self> {
        (code >= 1000).then(|| Self::new(code / 1000, code % 1000 / 10))
    }

    /// One number that orders as versions do: `1000 * major + 10 * minor`, CUDA's own form. The
    /// C run time uses it for every library. Minor numbers from 99 on are taken as 99.
    pub const fn code(self) -> u32 {
        let minor = if self.minor < LAST_MINOR {
            self.minor
        } else {
            LAST_MINOR
        };
        self.major.saturating_mul(1000).saturating_add(10 * minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// Range of versions that a header may have: `"12"` means 12.0 up to but not including 13.0,
/// `"11.8"` means 11.8 only.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HeaderVersion {
    /// Lowest version in the range.
    pub from: Version,
    /// First version above the range.
    pub below: Version,
}

impl HeaderVersion {
    /// Reads `12` or `11.8`.
    pub fn parse(text: &str) -> Option<Self> {
        let from = Version::parse(text)?;
        let below = if text.contains('.') && from.minor < LAST_MINOR {
            Version::new(from.major, from.minor + 1)
        } else {
            Version::new(from.major + 1, 0)
        };
        Some(Self { from, below })
    }
}

/// `header-version` of a stub table.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone, Copy)]
pub enum HeaderChoice {
    /// Version of the headers that the program is compiled against.
    Version(HeaderVersion),
    /// `"none"`: functions whose ABI depends on the headers are refused.
    None,
}

impl HeaderChoice {
    /// Reads `12`, `11.8` or `none`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "none" => Some(Self::None),
            _ => HeaderVersion::parse(text).map(Self::Version),
        }
    }

    /// Version of the headers, if one is declared.
    pub fn version(self) -> Option<HeaderVersion> {
        match self {
            Self::Version(version) => Some(version),
            Self::None => None,
        }
    }
}

/// Formats as it is parsed: `12`, `11.8`.
impl fmt::Display for HeaderVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if Self::parse(&self.from.major.to_string()).as_ref() == Some(self) {
            write!(f, "{}", self.from.major)
        } else {
            self.from.fmt(f)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        for (text, expected) in [
            ("12", Some((12, 0))),
            ("12.9", Some((12, 9))),
            ("0.0", Some((0, 0))),
            ("9999.9999", Some((9999, 9999))),
            ("", None),
            (".", None),
            ("12.", None),
            (".1", None),
            ("12.9.1", None),
            ("+12", None),
            ("-1", None),
            ("1e3", None),
            ("12.01", None),
            ("99999999999999999999", None),
            ("１２", None),
        ] {
            assert_eq!(
                Version::parse(text).map(|version| (version.major, version.minor)),
                expected,
                "{text:?}"
            );
        }
    }

    #[test]
    fn codes_order_as_versions() {
        let versions: Vec<_> = ["11", "11.8", "11.99", "12.0", "12.10", "13"]
            .iter()
            .map(|text| Version::parse(text).unwrap())
            .collect();
        assert!(versions.is_sorted());
        assert!(versions.is_sorted_by_key(|version| version.code()));
        assert_eq!(Version::new(12, 9).code(), 12_090);
        assert!(Version::new(11, 9999).code() < Version::new(12, 0).code());
        assert_eq!(Version::new(u32::MAX, u32::MAX).code(), u32::MAX);
    }

    #[test]
    fn header_versions_cover_their_range() {
        fn range(text: &str) -> (u32, u32) {
            let header = HeaderVersion::parse(text).unwrap();
            (header.from.code(), header.below.code())
        }
        assert_eq!(range("12"), (12_000, 13_000));
        assert_eq!(range("11.8"), (11_080, 11_090));
        assert_eq!(range("11.99"), (11_990, 12_000));
        assert_eq!(range("9999"), (9_999_000, 10_000_000));
        assert_eq!(HeaderVersion::parse("twelve"), None);
        assert_eq!(
            HeaderChoice::parse("12").and_then(HeaderChoice::version),
            HeaderVersion::parse("12")
        );
        assert_eq!(HeaderChoice::parse("none"), Some(HeaderChoice::None));
        assert_eq!(HeaderChoice::None.version(), None);
        assert_eq!(HeaderChoice::parse("None"), None);
        for text in ["12", "12.0", "11.8", "11.99", "9999"] {
            assert_eq!(HeaderVersion::parse(text).unwrap().to_string(), text);
        }
    }
}
