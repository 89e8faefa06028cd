//! Differences between two lists of functions.

use std::collections::BTreeMap;

use gpustub_cdecl::Difference;
use gpustub_core::abi_table::{AbiEntry, AbiTable};
use gpustub_core::symbols::Symbol;
use gpustub_core::version::{HeaderVersion, Version};

use super::input::LibraryVersion;
use crate::shipped::abi_difference;

/// Differences of the headers, by function.
pub type Differences = BTreeMap<String, Vec<Difference>>;

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Name, and function of the new version with its ABI, or the reason why there is none.
    Removed(String, Option<AbiEntry>),
    Added(String),
    /// Name, and symbol version in the old and in the new.
    SymbolVersion(String, String, String),
    /// Name, function of the new version with the old ABI, and differences of the headers.
    Abi(String, Option<AbiEntry>, Vec<Difference>),
    /// Name in sources, its expansion by macros of the old and of the new headers, and differences of
    /// the two functions.
    Macro(String, String, String, Vec<Difference>),
    /// Name of a function that only one of the headers declares, and whether the old headers do.
    Declared(String, bool),
}

impl Change {
    /// Name of the function.
    pub fn name(&self) -> &str {
        match self {
            Self::Removed(name, _)
            | Self::Added(name)
            | Self::SymbolVersion(name, ..)
            | Self::Abi(name, ..)
            | Self::Macro(name, ..)
            | Self::Declared(name, _) => name,
        }
    }
}

/// Differences by name; the functions of both versions are sorted. `differences` are those of the headers.
pub fn changes(
    old: &LibraryVersion,
    new: &LibraryVersion,
    differences: &Differences,
) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut new_functions = new.functions.iter().peekable();
    for function in &old.functions {
        while let Some(added) = new_functions.next_if(|added| added.name < function.name) {
            changes.push(Change::Added(added.name.clone()));
        }
        match new_functions.next_if(|new_function| new_function.name == function.name) {
            Some(new_function) => {
                let differences = differences.get(&function.name).cloned();
                changes.extend(change(function, new_function, old, new, differences));
            }
            None => {
                let entry = abi_entry(&function.name, old, new);
                changes.push(Change::Removed(function.name.clone(), entry));
            }
        }
    }
    changes.extend(new_functions.map(|added| Change::Added(added.name.clone())));
    changes
}

/// Differences of a function's ABI between two releases of one library, as its ABI table has them, and the first
/// release with each.
pub fn recorded(
    name: &str,
    old: &LibraryVersion,
    new: &LibraryVersion,
) -> Vec<(Version, &'static str)> {
    let (Some((library, old_release)), Some((_, new_release))) = (old.shipped, new.shipped) else {
        return Vec::new();
    };
    let before = old_release.min(new_release);
    let last = old_release.max(new_release);
    library
        .abi
        .variants(name)
        .into_iter()
        .filter(|(since, _)| before < *since && *since <= last)
        .filter_map(|(since, _)| Some((since, abi_difference(library, name, since)?)))
        .collect()
}

/// ABI table of two releases of one library, and the releases.
fn releases(
    old: &LibraryVersion,
    new: &LibraryVersion,
) -> Option<(&'static AbiTable, Version, Version)> {
    let ((old_library, old_release), (new_library, new_release)) = (old.shipped?, new.shipped?);
    (old_library.id == new_library.id).then_some((&old_library.abi, old_release, new_release))
}

/// ABI entry of a function of the old version in the new one, if both are releases of one library.
fn abi_entry(name: &str, old: &LibraryVersion, new: &LibraryVersion) -> Option<AbiEntry> {
    let (abi, old_release, new_release) = releases(old, new)?;
    let code = i32::try_from(new_release.code()).unwrap_or(i32::MAX);
    let mut entry = abi
        .entries(name, HeaderVersion::parse(&old_release.to_string()))
        .into_iter()
        .find(|entry| entry.from <= code && code < entry.below)?;
    // The function itself, which the new version lacks, is no replacement.
    entry.name = entry.name.filter(|_| entry.reason.is_none());
    Some(entry)
}

/// Change of a function that both versions have.
fn change(
    old_function: &Symbol,
    new_function: &Symbol,
    old: &LibraryVersion,
    new: &LibraryVersion,
    differences: Option<Vec<Difference>>,
) -> Option<Change> {
    let name = old_function.name.clone();
    let is_changed = releases(old, new).is_some_and(|(abi, old_release, new_release)| {
        abi.is_changed(&name, old_release, new_release)
    });
    if is_changed || differences.is_some() {
        let entry = abi_entry(&name, old, new).filter(|_| is_changed);
        return Some(Change::Abi(name, entry, differences.unwrap_or_default()));
    }
    let old_version = symbol_version(old_function);
    let new_version = symbol_version(new_function);
    let is_moved = old_version != new_version
        && (has_several_versions(&old.functions) || has_several_versions(&new.functions));
    is_moved.then_some(Change::SymbolVersion(name, old_version, new_version))
}

/// The symbol version of a function, in words.
fn symbol_version(symbol: &Symbol) -> String {
    match (&symbol.version, symbol.compat) {
        (None, _) => "no version".to_owned(),
        (Some(version), false) => version.clone(),
        (Some(version), true) => format!("{version}, for old programs only"),
    }
}

/// Whether functions have different symbol versions. One that all functions share is named like the soname:
/// its change is no difference.
fn has_several_versions(functions: &[Symbol]) -> bool {
    functions
        .windows(2)
        .any(|pair| pair[0].version != pair[1].version)
}
