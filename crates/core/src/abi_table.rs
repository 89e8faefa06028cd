//! ABI variants of exported functions, by version: `manifests/<id>.abi`.
//!
//! ```text
//! @gpustub-abi 1
//! @undeclared __cudaRegisterVar
//! @headers 11.8 12.0 12.9 13.0
//! @own-versions 10.9.0 11.0.1 11.4.1 12.0.0
//!
//! cudaGetDeviceProperties 11.8=1 13.0=3
//! cudaGetDeviceProperties_v2 12.0=2 13.0=-
//!
//! @null-argument 1 2 3
//! cudaGraphAddDependencies 11.8=1 13.0=2
//! ```
//!
//! A library that is numbered otherwise than the toolkit has its own number of each release's last update. Instead, a
//! library of the driver has `@drivers 12.1=530 12.2=535 -=595`: the first branch of each release, and the first of
//! unknown ones.
//!
//! From 13.0 on, the library's `cudaGetDeviceProperties` has another ABI variant than before (its
//! pointer refers to another struct); 12.0 added `_v2` and 13.0 removed it. Names of one group (no
//! empty line between them) with the same variant can be bound in place of each other.
//! `@null-argument` declares for its group that a call of variant 1 is a call of variant 2 with a null
//! pointer as argument 3, counted from 0, and the caller's remaining arguments after it. In the same way
//! `@passes 2 1` declares that a call of variant 2 is one of variant 1 as it is (so that headers of which it is
//! unknown which of the two they have declare variant 1), and `@adapter 1 2 CODE` that
//! the C function `CODE` of `templates/adapters/` makes calls of variant 1 with functions of a library
//! that has variant 2; with a version behind it, from that version on. `@adapter 1 1 CODE` is for a function that has
//! one ABI and answers otherwise in other releases. Of several such lines the first that fits applies. `@refused 2 1
//! REASON` says why there is none, `@refused 2 - REASON` in all other libraries.
//!
//! `@renamed _v2 6.0 7.0` declares that the library exports names with this mark from 6.0 on and below 7.0, at the end or
//! before `_64`, and that those that are not in the file have the ABI of the name without it, which other
//! versions have instead.
//!
//! `12.2=!` declares that libraries of this version up to the next one of the line have the name with another ABI than
//! headers declare: another name of the variant is bound.
//!
//! A function that is not in the file has one ABI in all versions. The versions that export an
//! undeclared function do not say which headers have it: no header declares the function, or one
//! whose library lacks it.

mod entries;
pub mod headers;
mod read;

use std::ops::Range;

use crate::by_name::ByName;
use crate::version::Version;

/// ABI variant of a name from a version on; `None`: the name is not exported.
type AbiVariant = Option<u32>;

/// A name, with its variants from the lowest version to the highest.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
struct VersionedName {
    name: String,
    group: usize,
    variants: Vec<(Version, AbiVariant)>,
    /// Versions whose libraries have it with another ABI than their headers declare.
    avoided: Vec<Range<Version>>,
}

/// Maximum number of arguments of an adapted call: those that every machine passes in registers
/// (x86-64 psABI 3.2.3: six integers; AArch64 has eight), so that none moves to the stack.
pub const MAX_ARGUMENTS: u8 = 6;

/// Calls of one variant as calls of another.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
struct Relation {
    group: usize,
    old: u32,
    /// `None`: any, of a refusal.
    new: Option<u32>,
    kind: RelationKind,
}

#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
enum RelationKind {
    /// The call is passed as it is.
    Passes,
    /// The call is adapted, in libraries from this version on.
    Adapted(Adapter, Version),
    /// The call is refused, for this reason.
    Refused(String),
}

/// Difference between the call of a program and that of a function of the library.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Adapter {
    /// The library's function has one more argument, which is null: its index, below
    /// [`MAX_ARGUMENTS`].
    NullArgument(u8),
    /// C function of `templates/adapters/`.
    Code(String),
}

/// ABI table of a library.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq, Default)]
pub struct AbiTable {
    /// Versions whose headers were read, ascending.
    headers: Vec<Version>,
    /// The library's own numbers in these versions, as [`own_code`] encodes them; empty: they are the same.
    own_versions: Vec<u32>,
    /// First branch of the driver and [`Version::code`] of each release; 0: unknown.
    drivers: Vec<(u32, u32)>,
    undeclared: ByName<()>,
    /// Names in the order of the file, which keeps groups together.
    names: Vec<VersionedName>,
    /// Indexes into `names`.
    by_name: ByName<usize>,
    /// In the order of preference.
    relations: Vec<Relation>,
    renamed: Option<Renamed>,
}

/// Replacement for a function's own name in the library versions `from..below` (as
/// [`Version::code`] encodes them).
#[cfg_attr(
    feature = "tools",
    derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)
)]
pub struct AbiEntry {
    /// Lowest version.
    pub from: i32,
    /// First version after the range.
    pub below: i32,
    /// Name that has there the variant of the headers; `None`: no name has it, refuse the call.
    pub name: Option<String>,
    /// Adapter of the calls; `None`: the function is called as it is.
    pub adapter: Option<Adapter>,
    /// Reason, if a reviewer gave one, of a refusal, or why the library lacks the function's own name.
    pub reason: Option<String>,
}

/// Mark of names that some versions have beside the names without it.
#[cfg_attr(feature = "tools", derive(Debug, Clone))]
#[derive(PartialEq, Eq)]
struct Renamed {
    mark: String,
    from: Version,
    below: Version,
}

impl Renamed {
    /// Name without the mark.
    fn plain(&self, name: &str) -> Option<String> {
        for suffix in ["", "_64"] {
            let marked = name.strip_suffix(suffix).unwrap_or_default();
            if let Some(stem) = marked.strip_suffix(&self.mark) {
                return Some(format!("{stem}{suffix}"));
            }
        }
        None
    }
}

impl AbiTable {
    /// Whether every function has one ABI in all versions.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn find(&self, name: &str) -> Option<&VersionedName> {
        self.by_name.get(name).map(|&index| &self.names[index])
    }

    /// Whether the function has another ABI, or only its name another one, in other versions.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some() || self.plain(name).is_some()
    }

    /// Name of the same function in other versions, without the mark that some versions add.
    fn plain(&self, name: &str) -> Option<(&Renamed, String)> {
        let renamed = self.renamed.as_ref()?;
        if self.find(name).is_some() {
            return None;
        }
        Some((renamed, renamed.plain(name)?))
    }

    /// Whether the function has several ABI variants, so that it is refused where the version of the
    /// headers is unknown.
    pub fn depends_on_headers(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|name| only_variant(name).is_none())
    }

    /// Whether the function is exported in this version.
    pub fn is_exported_in(&self, name: &str, version: Version) -> bool {
        match (self.find(name), self.plain(name)) {
            (Some(name), _) => variant_in(name, version).is_some(),
            (None, Some((renamed, _))) => (renamed.from..renamed.below).contains(&version),
            (None, None) => false,
        }
    }

    /// Whether the versions that export the function do not say which headers declare it.
    pub fn is_undeclared(&self, name: &str) -> bool {
        self.undeclared.contains_key(name)
    }

    /// ABI variants of a function by number, each from this version on; `None` as a number: it is not exported, or with
    /// another ABI than headers declare. Empty: it has one variant in all versions.
    #[cfg(feature = "tools")]
    pub fn variants(&self, name: &str) -> Vec<(Version, Option<u32>)> {
        let Some(name) = self.find(name) else {
            return Vec::new();
        };
        let avoided = name.avoided.iter().map(|versions| (versions.start, None));
        let mut variants: Vec<_> = name.variants.iter().copied().chain(avoided).collect();
        variants.sort_unstable();
        variants
    }

    /// Whether the libraries of two versions have the function with different ABI variants.
    #[cfg(feature = "tools")]
    pub fn is_changed(&self, name: &str, old: Version, new: Version) -> bool {
        self.find(name)
            .is_some_and(|name| library_variant(name, old) != library_variant(name, new))
    }

    /// Versions whose headers were read, ascending.
    pub fn headers(&self) -> &[Version] {
        &self.headers
    }

    /// Releases of a library by its own number, or the driver's: lowest number and [`Version::code`] of each, ascending. A number
    /// before the first counts as the first's, one after the last as the last's; both within its major, of others
    /// the version is 0. Empty: the library is numbered as its releases.
    pub fn releases(&self) -> Vec<(u32, u32)> {
        let mut releases = self.drivers.clone();
        let mut lowest = self
            .own_versions
            .first()
            .map_or(0, |first| first / 1000 * 1000);
        for (own_version, version) in self.own_versions.iter().zip(&self.headers) {
            releases.push((lowest, version.code()));
            lowest = own_version + 1;
        }
        if !self.own_versions.is_empty() {
            releases.push((lowest.next_multiple_of(1000), 0));
        }
        releases
    }

    /// Versions for which the table was made, as [`Version::code`] encodes them, and the first after them: from
    /// the major of the oldest headers to that of the newest. Functions that depend on the headers are
    /// refused in all others.
    pub fn bounds(&self) -> (i32, i32) {
        match (self.headers.first(), self.headers.last()) {
            (Some(oldest), Some(newest)) => (
                code(Version::new(oldest.major, 0)),
                code(Version::new(newest.major + 1, 0)),
            ),
            _ => (0, i32::MAX),
        }
    }

    /// Names in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.name.as_str())
    }
}

/// Variant of a name that has the same one wherever it is exported.
fn only_variant(name: &VersionedName) -> AbiVariant {
    match variants_within(name, Version::new(0, 0), Version::new(u32::MAX, 0))[..] {
        [only] => Some(only),
        _ => None,
    }
}

/// The library's own number in the run time's form: `1000 * major + 100 * minor + patch`, as in `CUFFT_VERSION`.
pub fn own_code(text: &str) -> Option<u32> {
    let mut code = 0;
    let mut parts = text.split('.');
    for (scale, limit) in [(1000, 1000), (100, 10), (1, 100)] {
        let part: u32 = parts.next()?.parse().ok()?;
        if part >= limit {
            return None;
        }
        code += scale * part;
    }
    parts.next().is_none().then_some(code)
}

fn code(version: Version) -> i32 {
    i32::try_from(version.code()).unwrap_or(i32::MAX)
}

/// Variant of the name in a version.
fn variant_in(name: &VersionedName, version: Version) -> AbiVariant {
    let end = name.variants.partition_point(|(from, _)| *from <= version);
    name.variants[..end]
        .last()
        .and_then(|(_, variant)| *variant)
}

/// Variant of a name in the libraries of a version, unless they have it with another ABI than their headers declare.
fn library_variant(name: &VersionedName, version: Version) -> AbiVariant {
    let is_avoided = name
        .avoided
        .iter()
        .any(|versions| versions.contains(&version));
    variant_in(name, version).filter(|_| !is_avoided)
}

/// Variants of a name in the versions of `start..below` that export it, each once.
fn variants_within(name: &VersionedName, start: Version, below: Version) -> Vec<u32> {
    let mut variants: Vec<u32> = variant_in(name, start).into_iter().collect();
    for (from, variant) in &name.variants {
        match *variant {
            Some(variant) if (start..below).contains(from) && !variants.contains(&variant) => {
                variants.push(variant);
            }
            _ => {}
        }
    }
    variants
}

/// Inserts a version into ascending ones, unless they have it.
fn insert_sorted(versions: &mut Vec<Version>, version: Version) {
    if let Err(index) = versions.binary_search(&version) {
        versions.insert(index, version);
    }
}

#[cfg(test)]
mod tests;
