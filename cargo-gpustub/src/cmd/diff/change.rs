//! Differences between two lists of functions.

use std::collections::BTreeMap;

use gpustub_cdecl::Difference;
use gpustub_core::abi_table::AbiEntry;
use gpustub_core::symbols::Symbol;
use gpustub_core::version::HeaderVersion;

use super::side::Side;

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

/// Differences by name; both sides are sorted. `differences` are those of the headers.
pub fn changes(old: &Side, new: &Side, differences: &Differences) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut rest = new.functions.as_slice();
    for symbol in &old.functions {
        while let [first, more @ ..] = rest {
            if first.name >= symbol.name {
                break;
            }
            changes.push(Change::Added(first.name.clone()));
            rest = more;
        }
        match rest {
            [same, more @ ..] if same.name == symbol.name => {
                rest = more;
                let differences = differences.get(&symbol.name).cloned();
                changes.extend(difference(symbol, same, old, new, differences));
            }
            _ => {
                let entry = entry(&symbol.name, old, new);
                changes.push(Change::Removed(symbol.name.clone(), entry));
            }
        }
    }
    changes.extend(rest.iter().map(|s| Change::Added(s.name.clone())));
    changes
}

/// ABI entry of a function of the old version in the new one, if both are releases of one library.
fn entry(name: &str, old: &Side, new: &Side) -> Option<AbiEntry> {
    let ((id, from, table), (other, to, _)) = (old.shipped?, new.shipped?);
    let code = i32::try_from(to.code()).unwrap_or(i32::MAX);
    let entries = if id == other {
        table.entries(name, HeaderVersion::parse(&from.to_string()))
    } else {
        Vec::new()
    };
    let mut entries = entries.into_iter();
    let mut entry = entries.find(|e| e.from <= code && code < e.below)?;
    // The function itself, which the new version lacks, is no replacement.
    entry.name = entry.name.filter(|_| entry.reason.is_none());
    Some(entry)
}

/// Difference of a function that both sides have.
fn difference(
    symbol: &Symbol,
    same: &Symbol,
    old: &Side,
    new: &Side,
    differences: Option<Vec<Difference>>,
) -> Option<Change> {
    let name = symbol.name.clone();
    let entry = entry(&name, old, new);
    if entry.is_some() || differences.is_some() {
        return Some(Change::Abi(name, entry, differences.unwrap_or_default()));
    }
    let shown = |symbol: &Symbol| match (&symbol.version, symbol.compat) {
        (None, _) => "no version".to_owned(),
        (Some(version), false) => version.clone(),
        (Some(version), true) => format!("{version}, for old programs only"),
    };
    // A symbol version that all functions share is named like the soname: its change is no difference.
    let has_several_versions = |side: &Side| {
        let version = |s: &Symbol| s.version.clone();
        side.functions
            .windows(2)
            .any(|w| version(&w[0]) != version(&w[1]))
    };
    let moved =
        shown(symbol) != shown(same) && (has_several_versions(old) || has_several_versions(new));
    moved.then(|| Change::SymbolVersion(name, shown(symbol), shown(same)))
}
