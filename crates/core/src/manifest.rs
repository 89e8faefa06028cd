//! `GpuStub.toml`, decoded: what a package declares.

#[cfg(feature = "archive")]
pub(crate) mod archive;
#[cfg(feature = "device-link")]
mod device_link;
mod parse;

use std::ops::Range;

use crate::by_name::ByName;
use crate::date::Date;
use crate::diag::Diagnostic;
use crate::library::{LoadName, Out, StatusCodes};
use crate::version::{HeaderVersion, Version};

#[cfg(feature = "archive")]
pub use archive::{Archive, ArchiveLayer, ArchiveView, is_part_name};
#[cfg(feature = "device-link")]
pub use device_link::{Cudart, DeviceCode, DeviceLink, SharedFiles};

/// A value and where it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its byte range.
    pub span: Range<usize>,
}

/// The values without their places.
pub(crate) fn values<T: Clone>(spanned: &[Spanned<T>]) -> Vec<T> {
    spanned
        .iter()
        .map(|spanned| spanned.value.clone())
        .collect()
}

/// Of the path of something that the build script itself makes, what follows `$OUT_DIR/`: it lies in the
/// folder that cargo gives the script. Empty: that folder.
#[cfg(any(feature = "archive", feature = "device-link"))]
pub fn in_out_dir(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("$OUT_DIR")?;
    (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/'))
}

/// Library type, as in CMake: `static` (hidden symbols in an archive) or `shared` (exported symbols in a library).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LibraryType {
    /// An archive; the default.
    #[default]
    Static,
    /// A shared library.
    Shared,
}

impl LibraryType {
    /// The value of `type`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Shared => "shared",
        }
    }
}

/// Whether two names are one cargo feature for a build script, which sees features with `_` for `-` and
/// in upper case.
pub fn is_same_feature(a: &str, b: &str) -> bool {
    let plain = |byte: u8| match byte.to_ascii_lowercase() {
        b'_' => b'-',
        byte => byte,
    };
    a.bytes().map(plain).eq(b.bytes().map(plain))
}

/// Cargo features of the package that must all be enabled for a table to take effect. Empty: the
/// table is always in effect.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequiredFeatures(pub Vec<Spanned<String>>);

impl RequiredFeatures {
    /// Whether all of them are among the `enabled` features. The names are compared by [`is_same_feature`].
    pub fn are_enabled<'a>(&self, enabled: impl IntoIterator<Item = &'a str>) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let enabled: Vec<&str> = enabled.into_iter().collect();
        self.first_missing(|feature| enabled.iter().any(|other| is_same_feature(other, feature)))
            .is_none()
    }

    /// The first feature that is not enabled.
    pub fn first_missing(&self, is_enabled: impl Fn(&str) -> bool) -> Option<&str> {
        let mut features = self.0.iter().map(|feature| feature.value.as_str());
        features.find(|feature| !is_enabled(feature))
    }
}

/// One `[stub.<id>]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stub {
    /// The library's id.
    pub id: Spanned<String>,
    /// Accepted majors, in order of preference; empty: all that the library manifest knows.
    pub majors: Vec<Spanned<String>>,
    /// The version of the headers that the program was compiled against.
    pub header_version: Option<Spanned<HeaderVersion>>,
    /// Functions without which the library counts as unavailable.
    pub required_functions: Vec<Spanned<String>>,
    /// The lowest version that counts as available.
    pub min_version: Option<Spanned<Version>>,
    /// Directories to look in first: absolute, or starting with `$ORIGIN`.
    pub search_dirs: Vec<Spanned<String>>,
    /// Archive or shared library.
    pub library_type: LibraryType,
    /// `false`: another package provides the stubs.
    pub provide: bool,
    /// Cargo features that turn it on.
    pub required_features: RequiredFeatures,
    /// What is said of a library of one's own (or changes what the shipped manifest says).
    pub custom: Custom,
}

/// The parts of a stub table that describe a library.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Custom {
    /// Load names by OS.
    pub load_names: ByName<Vec<Spanned<LoadName>>>,
    /// Path of a symbol list, relative to `GpuStub.toml`.
    pub symbols: Option<Spanned<String>>,
    /// `fallback.status` (all reasons).
    pub codes: Option<StatusCodes>,
    /// `fallback.string`.
    pub text: Option<String>,
    /// `zero-out`, by function; the places are those of the names.
    pub zero_out: ByName<Spanned<Vec<Out>>>,
    /// Names after `-l`; default: the id.
    pub link_names: Vec<Spanned<String>>,
}

/// A `[policy]`, of a workspace or of a package, for `cargo gpustub check`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    /// The platform tag that wheels must keep.
    pub platform_tag: Option<Spanned<String>>,
    /// Levels by rule; the places are those of the names.
    pub rules: ByName<Spanned<RuleLevel>>,
    /// Accepted findings.
    pub allow: Vec<Allow>,
}

/// How seriously `check` takes a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleLevel {
    /// Not looked at.
    Allow,
    /// Told.
    Warn,
    /// Fails the check.
    Deny,
}

/// A finding that is accepted: one `[[policy.allow]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allow {
    /// The rule.
    pub rule: Spanned<String>,
    /// The file; none: everywhere.
    pub path: Option<Spanned<String>>,
    /// Why.
    pub reason: String,
    /// The last day on which it is accepted; none: for ever.
    pub until: Option<Spanned<Date>>,
}

/// The `[toolkit]` of a workspace: what build scripts take for an installed toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// Its folder, relative to `GpuStub.toml`.
    pub path: String,
    /// The CUDA release that it says it is.
    pub cuda: Option<Spanned<Version>>,
    /// The HIP release that it says it is.
    pub hip: Option<Spanned<Version>>,
    /// Whether it goes before what the environment names.
    pub force: bool,
    /// Crates whose build scripts are not run.
    pub override_build_scripts: Vec<Spanned<String>>,
}

/// A decoded `GpuStub.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Manifest {
    /// The file's path as diagnostics name it.
    pub file: String,
    /// The stubs, sorted by id.
    pub stubs: Vec<Stub>,
    /// The libraries of relocatable CUDA code, sorted by name; without those that have an error.
    #[cfg(feature = "device-link")]
    pub device_links: Vec<DeviceLink>,
    /// The names of all of them.
    pub device_link_names: Vec<String>,
    /// The super-archives, sorted by name; without those that have an error.
    #[cfg(feature = "archive")]
    pub archives: Vec<Archive>,
    /// The names of all of them.
    pub archive_names: Vec<String>,
    /// What `check` asks; the place is that of the key.
    pub policy: Option<Spanned<Policy>>,
    /// What build scripts are shown; the place is that of the key. `None` after an error in it.
    pub toolkit: Option<Spanned<Toolkit>>,
}

impl Manifest {
    /// Decodes `text`. The value holds whatever could be read; with an error among the
    /// diagnostics it must not be built from.
    pub fn parse(file: &str, text: &str) -> (Self, Vec<Diagnostic>) {
        parse::manifest(file, text)
    }
}

#[cfg(all(test, any(feature = "archive", feature = "device-link")))]
mod tests {
    use super::in_out_dir;

    #[test]
    fn what_lies_in_the_folder_of_the_build_script() {
        for (path, rest) in [
            ("$OUT_DIR", Some("")),
            ("$OUT_DIR/", Some("")),
            ("$OUT_DIR/cuda/*.cu", Some("cuda/*.cu")),
            // Nothing of it is absolute.
            ("$OUT_DIR//etc", Some("etc")),
            ("$OUT_DIRS/a.o", None),
            ("a/$OUT_DIR/b.o", None),
        ] {
            assert_eq!(in_out_dir(path), rest, "{path}");
        }
    }
}
