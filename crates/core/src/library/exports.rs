//! Exports of the real library with a load name: what a program that needs or opens that file may refer to.

use super::{Library, LoadName};
use crate::symbols::Symbol;
use crate::version::Version;

/// A function in the library with a load name, or data of which its stubs have a copy.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub struct Export<'a> {
    /// Name of the function or the data.
    pub name: &'a str,
    /// ELF symbol version; `None`: it has none.
    pub version: Option<&'a str>,
}

impl Library {
    /// Load names on `os` that are this file name. Several toolkit majors may share a file name.
    pub fn load_names_like<'a>(&'a self, os: &str, file: &str) -> Vec<&'a LoadName> {
        let names = self.load_names.get(os).map_or(&[][..], Vec::as_slice);
        names.iter().filter(|name| name.name == file).collect()
    }

    /// Exports of the library with this load name, first the functions: those of the releases with its major, or all
    /// if the name has no major or the list has no such release.
    pub fn exports<'a>(&'a self, os: &'a str, file: &'a str) -> Vec<Export<'a>> {
        let load_names = self.load_names_like(os, file);
        let mut releases = self.symbols.releases.clone();
        releases.retain(|release| {
            load_names
                .iter()
                .any(|name| name.major == Some(release.major))
        });
        // `libcudart.so` is a link: its soname is that of its target, whose major is unknown.
        let soname = Some(file).filter(|file| self.versioned_by_soname && file.contains(".so."));
        let mut exports = Vec::new();
        let is_accepted = move |symbol: &Symbol| symbol.is_on(os) && is_in_any(symbol, &releases);
        let functions = self.symbols.functions_among(is_accepted.clone());
        let data = self.symbols.symbols.iter();
        let data = data.filter(|symbol| symbol.is_copied() && is_accepted(symbol));
        for symbol in functions.chain(data) {
            exports.push(Export {
                name: &symbol.name,
                version: symbol.version.as_deref().or(soname),
            });
        }
        exports
    }
}

/// Whether the library of one of these releases has the symbol; of no releases, whether one may have it.
fn is_in_any(symbol: &Symbol, releases: &[Version]) -> bool {
    releases.is_empty() || releases.iter().any(|release| symbol.is_in(*release))
}
