//! Functions of a library that can be stubbed, read from the library.

use gpustub_workspace::display_path::slashes;
use std::path::Path;

use gpustub_core::diag::{
    DATA_SYMBOL, DECORATED_SYMBOL, Diagnostic, RESERVED_SYMBOL, WEAK_SYMBOL, listing,
};
use gpustub_core::reserved::{is_of_every_image, owner};
use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList};
use gpustub_image::{Error, LibraryExports, read_exports_file};

/// Exports of a library.
pub struct StubbableExports {
    /// Functions that get a stub.
    pub exports: LibraryExports,
    /// Data and weak C++ symbols, which get none.
    pub left_out: Vec<Symbol>,
}

/// Exports of a library for `symbols` of a stub table, and diagnostics about the symbols that the list leaves
/// out. `is_allowed`: whether a reserved name is a function of the library all the same. Data with a copy in the list
/// `before` is not left out.
pub fn read(
    file: &Path,
    is_allowed: &dyn Fn(&str) -> bool,
    before: &SymbolList,
) -> Result<(StubbableExports, Vec<Diagnostic>), Error> {
    let mut exports = read_exports_file(file, Default::default())?;
    let mut left_out = Vec::new();
    let (mut weak, mut reserved, mut data) = (Vec::new(), Vec::new(), Vec::new());
    exports.list.symbols.retain_mut(|symbol| {
        let mut lines = before.lookup(&symbol.name).iter();
        if symbol.kind == SymbolKind::Object
            && let Some(line) = lines.find(|line| line.is_copied())
        {
            symbol.copied = true;
            if symbol.size == 0 {
                symbol.size = line.size;
            }
            return true;
        }
        let names = if is_of_every_image(&symbol.name) {
            return false;
        } else if owner(&symbol.name).is_some() && !is_allowed(&symbol.name) {
            &mut reserved
        } else if symbol.is_weak_cxx() {
            &mut weak
        } else if symbol.kind.is_data() {
            &mut data
        } else {
            return true;
        };
        names.push(symbol.name.clone());
        if owner(&symbol.name).is_none() {
            left_out.push(symbol.clone());
        }
        false
    });
    let file = slashes(file);
    let mut diagnostics = Vec::new();
    if !weak.is_empty() {
        let message = format!(
            "{} weak C++ symbols of `{file}` get no stub: {}",
            weak.len(),
            listing(&weak)
        );
        diagnostics.push(Diagnostic::note(&WEAK_SYMBOL, message));
    }
    if !exports.decorated.is_empty() {
        let message = format!(
            "{} decorated names of `{file}`, such as those of C++, get no stub: {}",
            exports.decorated.len(),
            listing(&exports.decorated)
        );
        diagnostics.push(Diagnostic::note(&DECORATED_SYMBOL, message));
    }
    if exports.unnamed > 0 {
        let message = format!(
            "exports of `{file}` by number only (NONAME) get no stub: {}",
            exports.unnamed
        );
        diagnostics.push(Diagnostic::note(&DECORATED_SYMBOL, message));
    }
    if !reserved.is_empty() {
        let message = format!(
            "{} names of the C and C++ run time in `{file}` get no stub: {}",
            reserved.len(),
            listing(&reserved)
        );
        let help = "the program has its own definitions; `allowed-symbols` names those that are \
                    functions of the library";
        diagnostics.push(Diagnostic::note(&RESERVED_SYMBOL, message).help(help));
    }
    diagnostics.extend(data_warning(&file.to_string(), &data).map(|warning| {
        let is_data = |symbol: &&Symbol| data.contains(&symbol.name);
        let lines: Vec<String> = left_out
            .iter()
            .filter(is_data)
            .filter_map(copied_line)
            .collect();
        if lines.is_empty() {
            return warning;
        }
        let help = format!(
            "{NOT_LINKED}; for data that it only reads, add to the symbol list: {}",
            listing(&lines)
        );
        warning.help(help)
    }));
    Ok((StubbableExports { exports, left_out }, diagnostics))
}

/// Line of a list for a copy of data; `None`: stubs have no copy of it.
fn copied_line(symbol: &Symbol) -> Option<String> {
    let mut list = SymbolList::default();
    list.symbols.push(Symbol {
        copied: true,
        version: None,
        ..symbol.clone()
    });
    let text = list.to_text();
    let (_, problems) = SymbolList::parse("", &text);
    let line = text.lines().last().filter(|_| problems.is_empty())?;
    Some(format!("`{line}`"))
}

const NOT_LINKED: &str = "a program that uses the data does not link without the library itself";

/// Warning about all data of a library that programs may use.
fn data_warning(file: &str, data: &[String]) -> Option<Diagnostic> {
    if data.is_empty() {
        return None;
    }
    let message = format!("data of `{file}` gets no stub: {}", data.join(", "));
    Some(Diagnostic::warning(&DATA_SYMBOL, message).help(NOT_LINKED))
}

/// Warning about the exported data in a complete list of a library's symbols.
pub fn exported_data(file: &Path, list: &SymbolList) -> Option<Diagnostic> {
    let data: Vec<String> = list
        .symbols
        .iter()
        .filter(|symbol| {
            symbol.kind.is_data() && !symbol.is_weak_cxx() && owner(&symbol.name).is_none()
        })
        .map(|symbol| symbol.name.clone())
        .collect();
    data_warning(&slashes(file), &data)
}
