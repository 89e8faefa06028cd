//! ABI variants of exported functions, by version: `manifests/<id>.abi`.
//!
//! ```text
//! @gpustub-abi 1
//! @undeclared __cudaRegisterVar
//! @headers 11.8 12.0 12.9 13.0
//!
//! cudaGetDeviceProperties 11.8=1 13.0=3
//! cudaGetDeviceProperties_v2 12.0=2 13.0=-
//!
//! @null-argument 1 2 3
//! cudaGraphAddDependencies 11.8=1 13.0=2
//! ```
//!
//! From 13.0 on, the library's `cudaGetDeviceProperties` has another ABI variant than before (its
//! pointer refers to another struct); 12.0 added `_v2` and 13.0 removed it. Names of one group (no
//! empty line between them) with the same variant can be bound in place of each other.
//! `@null-argument` declares for its group that a call of variant 1 is a call of variant 2 with a null
//! pointer as argument 3, counted from 0, and the caller's remaining arguments after it. A
//! function that is not in the file has one ABI in all versions. The versions that export an
//! undeclared function do not say which headers have it: no header declares the function, or one
//! whose library lacks it.

mod headers;
mod read;

pub use headers::HeadersMark;

use crate::by_name::ByName;
use crate::version::{HeaderVersion, Version};

/// ABI variant of a name from a version on; `None`: the name is not exported.
type AbiVariant = Option<u32>;

/// A name, with its variants from the lowest version to the highest.
#[derive(Clone)]
#[cfg_attr(feature = "tools", derive(Debug, PartialEq, Eq))]
struct Name {
    name: String,
    group: usize,
    variants: Vec<(Version, AbiVariant)>,
}

/// Maximum number of arguments of an adapted call: those that every machine passes in registers
/// (x86-64 psABI 3.2.3: six integers; AArch64 has eight), so that none moves to the stack.
pub const MAX_ARGUMENTS: u8 = 6;

/// Null-argument adapter: one variant as another that has one more argument, which is null.
#[derive(Clone, Copy)]
#[cfg_attr(feature = "tools", derive(Debug, PartialEq, Eq))]
struct Adapter {
    group: usize,
    old: u32,
    new: u32,
    /// Index of the null argument, from 0.
    argument: u8,
}

/// ABI table of a library.
#[derive(Clone, Default)]
#[cfg_attr(feature = "tools", derive(Debug, PartialEq, Eq))]
pub struct AbiTable {
    /// Versions whose headers were read, ascending.
    headers: Vec<Version>,
    undeclared: ByName<()>,
    /// Names in the order of the file, which keeps groups together.
    names: Vec<Name>,
    /// Indexes into `names`.
    by_name: ByName<usize>,
    /// Adapters, at most one for a variant of a group.
    adapters: Vec<Adapter>,
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
    /// Index (from 0, below [`MAX_ARGUMENTS`]) of the argument that is null there and that the headers
    /// do not have; the same in all entries of a function.
    pub null_argument: Option<u8>,
}

impl AbiTable {
    /// Whether every function has one ABI in all versions.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    fn find(&self, name: &str) -> Option<&Name> {
        self.by_name.get(name).map(|&index| &self.names[index])
    }

    /// Whether the function has another ABI in other versions.
    pub fn contains(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// Whether the function has several ABI variants, so that it is refused where the version of the
    /// headers is unknown.
    pub fn depends_on_headers(&self, name: &str) -> bool {
        self.find(name)
            .is_some_and(|name| only_variant(name).is_none())
    }

    /// Whether the function is exported in this version.
    pub fn is_exported_in(&self, name: &str, version: Version) -> bool {
        self.find(name)
            .is_some_and(|name| variant_in(name, version).is_some())
    }

    /// Whether the versions that export the function do not say which headers declare it.
    pub fn is_undeclared(&self, name: &str) -> bool {
        self.undeclared.contains_key(name)
    }

    /// Versions whose headers were read, ascending.
    pub fn headers(&self) -> &[Version] {
        &self.headers
    }

    /// Names in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| name.name.as_str())
    }

    /// Names bound for `name` in a program that was compiled against `header-version`, ascending and without
    /// overlap; between the entries the name itself. Empty: always the name itself.
    pub fn entries(&self, name: &str, header: Option<HeaderVersion>) -> Vec<AbiEntry> {
        let (Some(own), Some(&oldest), Some(&newest)) =
            (self.find(name), self.headers.first(), self.headers.last())
        else {
            return Vec::new();
        };
        let always = only_variant(own);
        let declared = always.or_else(|| declared_variant(own, header?, oldest));
        let Some(wanted) = declared else {
            return vec![AbiEntry {
                from: 0,
                below: i32::MAX,
                name: None,
                null_argument: None,
            }];
        };
        let mut group = Vec::new();
        for name in &self.names {
            if name.group == own.group {
                group.push(name);
            }
        }
        let applies = |a: &&Adapter| (a.group, a.old) == (own.group, wanted);
        let adapter = self.adapters.iter().find(applies);
        // A version before the first header is treated as that one, within its major only; one after
        // the last, as the last, within its major only.
        let start = Version::new(oldest.major, 0);
        let end = Version::new(newest.major + 1, 0);
        let mut starts: Vec<Version> = vec![start];
        for name in &group {
            for (version, _) in &name.variants {
                let place = starts.partition_point(|other| other < version);
                if *version > start && starts.get(place) != Some(version) {
                    starts.insert(place, *version);
                }
            }
        }
        let mut entries = Vec::new();
        let mut add = |from: i32, below: i32, bound: Option<(&Name, Option<u8>)>| {
            // A name with a single variant is searched under itself, if no other name fits.
            if always.is_some() && bound.is_none() {
                return;
            }
            let name = bound.map(|(name, _)| name.name.clone());
            let null_argument = bound.and_then(|(_, argument)| argument);
            match entries.last_mut() {
                Some(AbiEntry {
                    below: end,
                    name: last,
                    null_argument: argument,
                    ..
                }) if *end == from && *last == name && *argument == null_argument => *end = below,
                _ => entries.push(AbiEntry {
                    from,
                    below,
                    name,
                    null_argument,
                }),
            }
        };
        add(0, code(start), None);
        for (index, &from) in starts.iter().enumerate() {
            let below = starts.get(index + 1).copied().unwrap_or(end);
            let variant = |name: &Name| variant_in(name, from.max(oldest));
            let with = |wanted: u32| {
                let mut names = group.iter().copied();
                names.find(|name| variant(name) == Some(wanted))
            };
            if variant(own) != Some(wanted) {
                let same = with(wanted).map(|name| (name, None));
                let adapted = || {
                    let Adapter { new, argument, .. } = *adapter?;
                    Some((with(new)?, Some(argument)))
                };
                add(code(from), code(below), same.or_else(adapted));
            }
        }
        add(code(end), i32::MAX, None);
        entries
    }
}

/// Variant of a name that has the same one wherever it is exported.
fn only_variant(name: &Name) -> AbiVariant {
    variant_within(name, Version::new(0, 0), Version::new(u32::MAX, 0))
}

fn code(version: Version) -> i32 {
    i32::try_from(version.code()).unwrap_or(i32::MAX)
}

/// Variant of the name in a version.
fn variant_in(name: &Name, version: Version) -> AbiVariant {
    let later = name.variants.partition_point(|(from, _)| *from <= version);
    name.variants[..later]
        .last()
        .and_then(|(_, variant)| *variant)
}

/// Variant of the name in those of the headers that declare it; `None` if there are none, or if
/// they differ.
fn declared_variant(name: &Name, header: HeaderVersion, oldest: Version) -> AbiVariant {
    let start = if header.from.major == oldest.major {
        header.from.max(oldest)
    } else {
        header.from
    };
    variant_within(name, start, header.below)
}

/// Variant of a name that has the same one in all versions of `start..below` that export it.
fn variant_within(name: &Name, start: Version, below: Version) -> AbiVariant {
    let mut found = variant_in(name, start);
    for (from, variant) in &name.variants {
        if variant.is_some() && (start..below).contains(from) {
            if found.is_some() && found != *variant {
                return None;
            }
            found = *variant;
        }
    }
    found
}

#[cfg(test)]
mod tests;
