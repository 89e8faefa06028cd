//! `cargo gpustub diff`: differences between two versions of a library.

mod headers;
mod show;

use std::collections::BTreeMap;
use std::path::Path;

use gpustub_cdecl::Difference;
use gpustub_core::abi_table::{AbiEntry, AbiTable};
use gpustub_core::diag::{Diagnostic, IO_ERROR, has_errors};
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_image::{Options, read_symbols_file};
use gpustub_report::error::{Error, Result};
use gpustub_report::report::Sources;
use gpustub_report::shell::Shell;

use crate::cli::{self, TextOrJson};
use crate::shipped::look_up;
use headers::Differences;

/// One of the two versions.
struct Side {
    /// Name on the command line.
    name: String,
    /// Functions, sorted by name.
    functions: Vec<Symbol>,
    /// Soname of a file.
    soname: Option<String>,
    /// Id, version and ABI table of a shipped library.
    shipped: Option<(&'static str, Version, &'static AbiTable)>,
}

/// A difference.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Change {
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
    fn name(&self) -> &str {
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

/// Runs the command. Returns whether the versions are equal.
pub fn run(options: &cli::Diff, shell: &mut Shell) -> Result<bool> {
    let mut found = Vec::new();
    let mut sources = Sources::new();
    let sides = [&options.old, &options.new].map(|given| side(given, &mut found, &mut sources));
    shell.diagnostics(&found, &sources)?;
    let [Some(old), Some(new)] = sides else {
        return Ok(false);
    };
    let compared = headers::compare(&options.headers, &old, &new)?;
    let differences = compared.as_ref().map(|compared| &compared.differences);
    let mut changes = changes(&old, &new, differences.unwrap_or(&BTreeMap::new()));
    if let Some(compared) = &compared {
        changes.extend(compared.changes.iter().cloned());
        changes.sort_by(|a, b| a.name().cmp(b.name()));
    }
    shell.data(match options.format {
        TextOrJson::Text => show::text(&old, &new, &changes, compared.as_ref()),
        TextOrJson::Json => show::json(&old, &new, &changes, compared.as_ref()),
    })?;
    Ok(changes.is_empty())
}

/// Reads `cudart@12.9` or a file. `None`: `found` has the error.
fn side(given: &str, found: &mut Vec<Diagnostic>, sources: &mut Sources) -> Option<Side> {
    let name = given.to_owned();
    match given.split_once('@') {
        Some((id, version)) if !Path::new(given).exists() => {
            let (libraries, unknown) = look_up(&[id.to_owned()]);
            found.extend(unknown);
            let library = *libraries.first()?;
            let versions = &library.symbols.releases;
            let Some(version) = Version::parse(version).filter(|v| versions.contains(v)) else {
                let known: Vec<String> = versions.iter().map(ToString::to_string).collect();
                let message = format!("unknown release {version} of {id}");
                let help = format!("known releases are {}", known.join(", "));
                found.push(Diagnostic::error(&IO_ERROR, message).help(help));
                return None;
            };
            let has = |symbol: &&Symbol| {
                let present = &symbol.releases;
                present.is_empty() || present.iter().any(|(a, b)| (*a..=*b).contains(&version))
            };
            Some(Side {
                name,
                functions: library.symbols.functions().filter(has).cloned().collect(),
                soname: None,
                shipped: Some((library.id.as_str(), version, &library.abi)),
            })
        }
        _ => {
            let list = read(Path::new(given), found, sources)?;
            Some(Side {
                name,
                functions: list.functions().cloned().collect(),
                soname: list.soname,
                shipped: None,
            })
        }
    }
}

/// A symbol list as text, or a shared library.
fn read(path: &Path, found: &mut Vec<Diagnostic>, sources: &mut Sources) -> Option<SymbolList> {
    if path.extension().is_some_and(|e| e == "symbols") {
        let shown = path.display().to_string();
        return match std::fs::read_to_string(path) {
            Ok(text) => {
                let (list, wrong) = SymbolList::parse(&shown, &text);
                let broken = has_errors(&wrong);
                sources.insert(shown, text);
                found.extend(wrong);
                (!broken).then_some(list)
            }
            Err(error) => {
                let message = Error::io("read", path, &error).to_string();
                found.push(Diagnostic::error(&IO_ERROR, message));
                None
            }
        };
    }
    match read_symbols_file(path, Options::default()) {
        Ok(list) => Some(list),
        Err(error) => {
            found.push(error.diagnostic());
            None
        }
    }
}

/// Differences by name; both sides are sorted. `differences` are those of the headers.
fn changes(old: &Side, new: &Side, differences: &Differences) -> Vec<Change> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn side(list: &str) -> Side {
        let text = format!("@gpustub-symbols 1\n{list}");
        let (list, wrong) = SymbolList::parse("x.symbols", &text);
        assert_eq!(wrong, []);
        Side {
            name: "x".into(),
            functions: list.functions().cloned().collect(),
            soname: None,
            shipped: None,
        }
    }

    #[test]
    fn lists_are_compared_by_name() {
        let old = side("a\nc\nd version=V1\ne version=V1\ntable kind=object\n");
        let new = side("b\nc\nd version=V2\ne version=V1\nf\n");
        assert_eq!(
            changes(&old, &new, &BTreeMap::new()),
            [
                Change::Removed("a".into(), None),
                Change::Added("b".into()),
                Change::SymbolVersion("d".into(), "V1".into(), "V2".into()),
                Change::Added("f".into()),
            ]
        );
        assert_eq!(changes(&new, &new, &BTreeMap::new()), []);
    }

    #[test]
    fn changes_of_the_abi_name_the_replacement() {
        let side = |given| side_of(given).expect("a shipped list");
        let (old, new) = (side("cudart@12.9"), side("cudart@13.5"));
        let none = BTreeMap::new();
        let shown = show::text(&old, &new, &changes(&old, &new, &none), None);
        for line in [
            "!cudaChooseDevice: ABI changed; calls of the old ABI are adapted to cudaChooseDevice\n",
            "!cudaSignalExternalSemaphoresAsync: ABI changed; calls of the old ABI are refused: only \
             headers of 11.1 have these structs\n",
            "!cudaGraphAddDependencies: ABI changed; the old ABI is \
             cudaGraphAddDependencies with NULL as argument 3\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        let shown = show::json(&old, &new, &changes(&old, &new, &none), None);
        let row = r#"{"adapted":true,"change":"abi","differences":[],"name":"cudaGraphGetEdges","null_argument":3,"refused":null,"replacement":"cudaGraphGetEdges"}"#;
        assert!(shown.contains(row), "{shown}");
        let back = show::text(&new, &old, &changes(&new, &old, &none), None);
        let line = "!cudaGraphAddDependencies: ABI changed; the old ABI is \
                    cudaGraphAddDependencies_v2\n";
        assert!(back.contains(line), "{back}");
    }

    #[test]
    fn removed_functions_have_a_replacement_or_the_reason_why_not() {
        let side = |given| side_of(given).expect("a shipped list");
        let (old, new) = (side("cuda@13.5"), side("cuda@12.2"));
        let changes = changes(&old, &new, &BTreeMap::new());
        let shown = show::text(&old, &new, &changes, None);
        for line in [
            "-cuCtxCreate_v4; calls of the old ABI are adapted to cuCtxCreate_v3\n",
            "-cuEventElapsedTime_v2; the old ABI is cuEventElapsedTime\n",
            "-cuMemcpyBatchAsync_v2; calls of the old ABI are refused: the library has no batches of \
             copies\n",
            "-cuCtxWaitEvent\n",
        ] {
            assert!(shown.contains(line), "{shown}");
        }
        let shown = show::json(&old, &new, &changes, None);
        let row = r#"{"adapted":false,"change":"removed","name":"cuMemcpyBatchAsync_v2","null_argument":null,"refused":"the library has no batches of copies","replacement":null}"#;
        assert!(shown.contains(row), "{shown}");
    }

    fn side_of(given: &str) -> Option<Side> {
        super::side(given, &mut Vec::new(), &mut Sources::new())
    }

    #[test]
    fn shared_symbol_version_is_no_difference() {
        let old = side("a version=libx.so.1\nb version=libx.so.1\n");
        let new = side("a version=libx.so.2\nb version=libx.so.2\n");
        assert_eq!(changes(&old, &new, &BTreeMap::new()), []);
    }
}
