//! The versions that are compared.

use std::path::Path;

use gpustub_core::diag::{Diagnostic, IO_ERROR, UNKNOWN_VERSION, has_errors};
use gpustub_core::library::Library;
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::Version;
use gpustub_image::{SymbolRequirements, read_library_symbols_file};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::Error;
use gpustub_workspace::report::Sources;

use crate::shipped::look_up;

/// One of the two versions.
pub struct LibraryVersion {
    /// Name on the command line.
    pub name: String,
    /// Functions, sorted by name.
    pub functions: Vec<Symbol>,
    /// Soname of a file.
    pub soname: Option<String>,
    /// Machine of a library for Windows.
    pub windows_machine: Option<String>,
    /// The shipped library and its release.
    pub shipped: Option<(&'static Library, Version)>,
}

/// Reads `cudart@12.9`, as it is on a system, or a file. `None`: `diagnostics` has the error.
pub fn read(
    argument: &str,
    system: &str,
    diagnostics: &mut Vec<Diagnostic>,
    sources: &mut Sources,
) -> Option<LibraryVersion> {
    match argument.split_once('@') {
        Some((id, release)) if !Path::new(argument).exists() => {
            read_shipped(argument, id, release, system, diagnostics)
        }
        _ => {
            let list = read_file(Path::new(argument), diagnostics, sources)?;
            Some(LibraryVersion {
                name: slashes(Path::new(argument)),
                functions: list.functions().cloned().collect(),
                windows_machine: list.machine.clone().filter(|_| is_of_dll(&list)),
                soname: list.soname,
                shipped: None,
            })
        }
    }
}

fn is_of_dll(list: &SymbolList) -> bool {
    let extension = list
        .soname
        .as_deref()
        .map(Path::new)
        .and_then(Path::extension);
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("dll"))
}

/// A release of a shipped library, named by `argument`.
fn read_shipped(
    argument: &str,
    id: &str,
    release: &str,
    system: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<LibraryVersion> {
    let (libraries, unknown) = look_up(&[id.to_owned()]);
    diagnostics.extend(unknown);
    let library = *libraries.first()?;
    let releases = &library.symbols.releases;
    let Some(version) = Version::parse(release).filter(|version| releases.contains(version)) else {
        let known: Vec<String> = releases.iter().map(ToString::to_string).collect();
        let message = format!("unknown release {release} of {id}");
        let help = format!("known releases are {}", known.join(", "));
        diagnostics.push(Diagnostic::error(&UNKNOWN_VERSION, message).help(help));
        return None;
    };
    let is_accepted = |symbol: &Symbol| symbol.is_on(system) && symbol.is_in(version);
    let functions = library.symbols.functions_among(is_accepted);
    Some(LibraryVersion {
        name: argument.to_owned(),
        functions: functions.cloned().collect(),
        soname: None,
        windows_machine: (system == "windows").then(|| "x86_64".to_owned()),
        shipped: Some((library, version)),
    })
}

/// A symbol list as text, or a shared library.
fn read_file(
    path: &Path,
    diagnostics: &mut Vec<Diagnostic>,
    sources: &mut Sources,
) -> Option<SymbolList> {
    if path
        .extension()
        .is_some_and(|extension| extension == "symbols")
    {
        let name = slashes(path);
        return match std::fs::read_to_string(path) {
            Ok(text) => {
                let (list, list_diagnostics) = SymbolList::parse(&name, &text);
                let is_valid = !has_errors(&list_diagnostics);
                sources.insert(name, text);
                diagnostics.extend(list_diagnostics);
                is_valid.then_some(list)
            }
            Err(error) => {
                let message = Error::io("read", path, &error).to_string();
                diagnostics.push(Diagnostic::error(&IO_ERROR, message));
                None
            }
        };
    }
    match read_library_symbols_file(path, SymbolRequirements::default()) {
        Ok(list) => Some(list),
        Err(error) => {
            diagnostics.push(error.diagnostic());
            None
        }
    }
}
