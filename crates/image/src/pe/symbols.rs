//! Exported symbols of a DLL, as a symbol list.

use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList, is_name};

use super::image::PeImage;
use crate::error::{Error, Problem};
use crate::symbols::{SymbolRequirements, check_machine, required};

/// Exports of a DLL.
#[derive(Default)]
pub(crate) struct DllExports {
    /// Names and kinds.
    pub list: SymbolList,
    /// Names that no C declaration has: C++ functions, and functions whose calling convention is a part of their name.
    pub decorated: Vec<String>,
    /// Number of exports that have a number only.
    pub unnamed: usize,
}

impl DllExports {
    pub(super) fn add(&mut self, name: &str, is_data: bool) {
        if name.contains(['?', '@']) {
            self.decorated.push(name.to_owned());
            return;
        }
        if !is_name(name) {
            return;
        }
        self.list.symbols.push(Symbol {
            name: name.to_owned(),
            kind: if is_data {
                SymbolKind::Object
            } else {
                SymbolKind::Function
            },
            ..Symbol::default()
        });
    }
}

/// Reads the exports of the DLL in `bytes`: names and kinds.
///
/// Omits exports without a name, and names with `?` or `@`: C++ functions, and functions whose calling
/// convention is a part of their name, which no C declaration has.
pub fn read_dll_symbols(
    bytes: &[u8],
    options: SymbolRequirements<'_>,
) -> Result<SymbolList, Error> {
    read_dll_exports(bytes, options).map(|exports| exports.list)
}

/// [`read_dll_symbols`], with the names that it omits.
pub(crate) fn read_dll_exports(
    bytes: &[u8],
    options: SymbolRequirements<'_>,
) -> Result<DllExports, Error> {
    let image = PeImage::undamaged(bytes)?;
    check_machine(&image.machine, options)?;
    if image.exports.is_empty() {
        return Err(Problem::NoDynamicSymbols("a PE image").into());
    }
    let mut exports = DllExports::default();
    for export in &image.exports {
        match export.name {
            Some(name) => exports.add(name, export.is_data),
            None => exports.unnamed += 1,
        }
    }
    let mut list = exports.list;
    list.soname = image.name.filter(|name| is_name(name)).map(str::to_owned);
    list.machine = Some(image.machine);
    list.normalise();
    exports.list = required(list, options)?;
    Ok(exports)
}
