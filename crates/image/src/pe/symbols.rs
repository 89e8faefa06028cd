//! Exported symbols of a DLL, as a symbol list.

use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList, is_name};

use super::image::{PeExport, PeImage};
use crate::error::{Error, Problem};
use crate::symbols::{SymbolRequirements, check_machine, required};

/// Reads the exports of the DLL in `bytes`: names and kinds.
///
/// Omits exports without a name, and names with `?` or `@`: C++ functions, and functions whose calling
/// convention is a part of their name, which no C declaration has.
pub fn read_dll_symbols(
    bytes: &[u8],
    options: SymbolRequirements<'_>,
) -> Result<SymbolList, Error> {
    let image = PeImage::undamaged(bytes)?;
    check_machine(&image.machine, options)?;
    if image.exports.is_empty() {
        return Err(Problem::NoDynamicSymbols("a PE image").into());
    }
    let mut list = SymbolList {
        soname: image.name.filter(|name| is_name(name)).map(str::to_owned),
        machine: Some(image.machine),
        ..SymbolList::default()
    };
    list.symbols = image.exports.iter().filter_map(symbol).collect();
    list.normalise();
    Ok(required(list, options)?)
}

fn symbol(export: &PeExport<'_>) -> Option<Symbol> {
    let name = export.name?;
    if name.contains(['?', '@']) || !is_name(name) {
        return None;
    }
    Some(Symbol {
        name: name.to_owned(),
        kind: if export.is_data {
            SymbolKind::Object
        } else {
            SymbolKind::Function
        },
        weak: false,
        version: None,
        compat: false,
        size: 0,
        system: None,
        returns: None,
        releases: Vec::new(),
    })
}
