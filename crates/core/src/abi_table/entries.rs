//! Decides which function a call is bound to, in each version of a library.
//!
//! An example are calls of `cudaGraphAddDependencies`. `manifests/cudart.abi` was made from headers of 11.7 to 13.5,
//! and says:
//!
//! ```text
//! @null-argument 1 2 3
//! @adapter 2 1 dependencies_without_data
//! cudaGraphAddDependencies 11.7=1 13.0=2
//! cudaGraphAddDependencies_v2 12.3=2 13.0=-
//! ```
//!
//! Headers of 12.x declare variant 1, with four arguments; headers of 13.x declare variant 2, with five.
//!
//! 1. [`Call::boundaries`]: the table covers the majors 11 to 13, in which the group changes in 12.3 and in 13.0.
//!    So the libraries from 11.0, from 12.3 and from 13.0 on are three ranges.
//! 2. [`Call::choice`] decides in each of them. "Itself" is the function that the program calls:
//!
//!    ```text
//!    library         headers of 12.x               headers of 13.x
//!    11.0 to 12.2    itself                        itself, by dependencies_without_data
//!    12.3 to 12.9    itself                        cudaGraphAddDependencies_v2
//!    13.x            itself, argument 3 is null    itself
//!    all others      refused                       refused
//!    ```
//!
//! 3. [`merge`] makes one entry of neighbouring ranges with equal ones, such as refusals. The function itself needs
//!    no entry: headers of 12.x have three, headers of 13.x have four.

use super::{
    AbiEntry, AbiTable, AbiVariant, Adapter, Relation, RelationKind, Renamed, VersionedName, code,
    insert_sorted, library_variant, only_variant, variants_within,
};
use crate::version::{HeaderVersion, Version};

/// A call of a function by programs whose headers declare one variant of it.
struct Call<'t> {
    function: &'t VersionedName,
    /// Variant that the headers declare.
    declared: u32,
    /// Whether the function has this variant wherever it is exported.
    is_only_variant: bool,
    /// Names of the function's group.
    group: Vec<&'t VersionedName>,
    /// Relations of the declared variant to others, in the order of preference.
    relations: Vec<&'t Relation>,
    /// Oldest version whose headers were read.
    oldest: Version,
}

/// Function that a call is bound to in a range of versions.
enum Choice<'t> {
    /// This name, which may be that of the called function, with the adapter of the calls.
    Bound(&'t VersionedName, Option<&'t Adapter>),
    /// No function, for the reason that a reviewer gave.
    Refused(Option<&'t str>),
}

impl AbiTable {
    /// Names bound for `name` in a program that was compiled against `header-version`, ascending and without
    /// overlap; between the entries the name itself. Empty: always the name itself.
    pub fn entries(&self, name: &str, header: Option<HeaderVersion>) -> Vec<AbiEntry> {
        if let Some((renamed, plain)) = self.plain(name) {
            return self.without_mark(renamed, &plain);
        }
        let (Some(function), Some(&oldest), Some(&newest)) =
            (self.find(name), self.headers.first(), self.headers.last())
        else {
            return Vec::new();
        };
        let Some(call) = self.call(function, header, oldest) else {
            return vec![AbiEntry {
                from: 0,
                below: i32::MAX,
                name: None,
                adapter: None,
                reason: None,
            }];
        };
        // A version before the first header is treated as that one, within its major only; one after
        // the last, as the last, within its major only.
        let start = Version::new(oldest.major, 0);
        let end = Version::new(newest.major + 1, 0);
        let mut entries = Vec::new();
        entries.extend(call.entry(0, code(start), Choice::Refused(None)));
        for range in call.boundaries(start, end).windows(2) {
            let (from, below) = (range[0], range[1]);
            entries.extend(call.entry(code(from), code(below), call.choice(from)));
        }
        entries.extend(call.entry(code(end), i32::MAX, Choice::Refused(None)));
        merge(&mut entries);
        entries
    }

    /// Entries of a name with a mark, in the versions that have the plain name only.
    fn without_mark(&self, renamed: &Renamed, plain: &str) -> Vec<AbiEntry> {
        let (start, end) = self.bounds();
        let versions = [(start, code(renamed.from)), (code(renamed.below), end)];
        let mut entries = Vec::new();
        for (from, below) in versions {
            if from < below {
                entries.push(AbiEntry {
                    from,
                    below,
                    name: Some(plain.to_owned()),
                    adapter: None,
                    reason: None,
                });
            }
        }
        entries
    }

    /// Call of a function; `None` if the variant is unknown that the headers declare.
    fn call<'t>(
        &'t self,
        function: &'t VersionedName,
        header: Option<HeaderVersion>,
        oldest: Version,
    ) -> Option<Call<'t>> {
        let only = only_variant(function);
        let declared = match only {
            Some(variant) => variant,
            None => self.declared_variant(function, header?, oldest)?,
        };
        Some(Call {
            function,
            declared,
            is_only_variant: only.is_some(),
            group: self
                .names
                .iter()
                .filter(|name| name.group == function.group)
                .collect(),
            relations: self
                .relations
                .iter()
                .filter(|relation| (relation.group, relation.old) == (function.group, declared))
                .collect(),
            oldest,
        })
    }

    /// Variant of the name in those of the headers that declare it; `None` if there are none, or if
    /// they differ. Of several, the one as which calls of all others are passed as they are.
    fn declared_variant(
        &self,
        name: &VersionedName,
        header: HeaderVersion,
        oldest: Version,
    ) -> AbiVariant {
        let start = if header.from.major == oldest.major {
            header.from.max(oldest)
        } else {
            header.from
        };
        let variants = variants_within(name, start, header.below);
        variants.iter().copied().find(|to| {
            variants
                .iter()
                .all(|from| from == to || self.is_passed(name.group, *from, *to))
        })
    }

    /// Whether calls of a variant are passed as they are to a function with another.
    pub(super) fn is_passed(&self, group: usize, from: u32, to: u32) -> bool {
        self.relations.iter().any(|relation| {
            (relation.group, relation.old, relation.new) == (group, from, Some(to))
                && matches!(relation.kind, RelationKind::Passes)
        })
    }
}

impl<'t> Call<'t> {
    /// The versions from `start` to `end` in which the choice may change, ascending, with both.
    fn boundaries(&self, start: Version, end: Version) -> Vec<Version> {
        let mut versions = Vec::new();
        for name in &self.group {
            versions.extend(name.variants.iter().map(|(from, _)| *from));
            for avoided in &name.avoided {
                versions.extend([avoided.start, avoided.end]);
            }
        }
        for relation in &self.relations {
            if let RelationKind::Adapted(_, since) = relation.kind {
                versions.push(since);
            }
        }
        let mut boundaries = vec![start, end];
        for version in versions {
            if start < version && version < end {
                insert_sorted(&mut boundaries, version);
            }
        }
        boundaries
    }

    /// The function that has the declared variant in the range of versions that begins with this one, or to which the
    /// first relation that fits leads.
    fn choice(&self, from: Version) -> Choice<'t> {
        let version = from.max(self.oldest);
        if library_variant(self.function, version) == Some(self.declared) {
            return Choice::Bound(self.function, self.same_variant_adapter(from));
        }
        if let Some(name) = self.name_with(self.declared, version) {
            return Choice::Bound(name, self.same_variant_adapter(from));
        }
        for relation in &self.relations {
            let name = relation
                .new
                .and_then(|variant| self.name_with(variant, version));
            match (&relation.kind, name) {
                (RelationKind::Passes, Some(name)) => return Choice::Bound(name, None),
                (RelationKind::Adapted(adapter, since), Some(name)) if *since <= from => {
                    return Choice::Bound(name, Some(adapter));
                }
                (RelationKind::Refused(reason), _) if name.is_some() || relation.new.is_none() => {
                    return Choice::Refused(Some(reason));
                }
                _ => {}
            }
        }
        Choice::Refused(None)
    }

    /// Adapter of calls of the declared variant to functions with the same one, in the range of versions that begins with
    /// this one.
    fn same_variant_adapter(&self, from: Version) -> Option<&'t Adapter> {
        self.relations
            .iter()
            .find_map(|relation| match &relation.kind {
                RelationKind::Adapted(adapter, since)
                    if relation.new == Some(self.declared) && *since <= from =>
                {
                    Some(adapter)
                }
                _ => None,
            })
    }

    /// First name of the group that has a variant in the libraries of a version.
    fn name_with(&self, variant: u32, version: Version) -> Option<&'t VersionedName> {
        self.group
            .iter()
            .copied()
            .find(|name| library_variant(name, version) == Some(variant))
    }

    /// Entry of a choice; `None`: the call is bound to the function itself.
    fn entry(&self, from: i32, below: i32, choice: Choice<'_>) -> Option<AbiEntry> {
        let (name, adapter, reason) = match choice {
            Choice::Bound(name, None) if name.name == self.function.name => return None,
            Choice::Bound(name, adapter) => (Some(name), adapter, None),
            // A function with one variant is searched under its name even in versions that lack it.
            Choice::Refused(None) if self.is_only_variant => return None,
            Choice::Refused(reason) if self.is_only_variant => (Some(self.function), None, reason),
            Choice::Refused(reason) => (None, None, reason),
        };
        Some(AbiEntry {
            from,
            below,
            name: name.map(|name| name.name.clone()),
            adapter: adapter.cloned(),
            reason: reason.map(str::to_owned),
        })
    }
}

/// Merges equal entries of neighbouring ranges.
fn merge(entries: &mut Vec<AbiEntry>) {
    entries.dedup_by(|next, entry| {
        let is_equal = entry.below == next.from
            && (&entry.name, &entry.adapter, &entry.reason)
                == (&next.name, &next.adapter, &next.reason);
        if is_equal {
            entry.below = next.below;
        }
        is_equal
    });
}
