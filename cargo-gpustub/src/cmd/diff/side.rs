//! The versions that are compared.

use std::path::Path;

use gpustub_core::abi_table::AbiTable;
use gpustub_core::diag::{Diagnostic, IO_ERROR, has_errors};
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::Version;
use gpustub_image::{Options, read_symbols_file};
use gpustub_workspace::error::Error;
use gpustub_workspace::report::Sources;

use crate::shipped::look_up;

/// One of the two versions.
pub struct Side {
    /// Name on the command line.
    pub name: String,
    /// Functions, sorted by name.
    pub functions: Vec<Symbol>,
    /// Soname of a file.
    pub soname: Option<String>,
    /// Id, version and ABI table of a shipped library.
    pub shipped: Option<(&'static str, Version, &'static AbiTable)>,
}

/// Reads `cudart@12.9` or a file. `None`: `found` has the error.
pub fn side(given: &str, found: &mut Vec<Diagnostic>, sources: &mut Sources) -> Option<Side> {
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
