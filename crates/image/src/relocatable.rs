//! Object files: the input of a linker.

use gpustub_core::offload::OffloadCode;

use crate::consumed::Reads;
use crate::device::{DeviceCode, device_code};
use crate::elf::ElfImage;
use crate::error::Error;
use crate::image_facts::{Import, Keep, is_function};
use crate::offload::offload_code;

/// An object file, as far as policy is concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectFacts {
    /// The machine, as in `SymbolList::machine`.
    pub machine: String,
    /// Undefined functions and data, in the file's order; without versions, which the linker
    /// determines.
    pub imports: Vec<Import>,
    /// Names of the functions that it provides, sorted.
    pub defines: Vec<String>,
    /// Relocatable CUDA device code.
    pub device: DeviceCode,
    /// Device code for clang's linker.
    pub offload: Option<OffloadCode>,
}

/// Reads a parsed object file, with the names that `keep` accepts; `None` for an ELF file of
/// another kind.
pub fn read_object(image: &ElfImage<'_>, keep: Keep<'_>) -> Result<Option<ObjectFacts>, Error> {
    if !image.is_object() {
        return Ok(None);
    }
    let mut facts = ObjectFacts {
        machine: image.machine(),
        device: device_code(image, &Reads::unreported(image.data())),
        offload: offload_code(image.data()),
        ..ObjectFacts::default()
    };
    let Some((table, strings)) = image.full_symbols() else {
        return Ok(Some(facts));
    };
    for (_, symbol) in table.iter().skip(1) {
        if symbol.is_local() {
            continue;
        }
        let name = strings.get(symbol.name.into())?;
        if !keep(name, None) {
            continue;
        }
        if symbol.is_undefined() {
            facts.imports.push(Import {
                name: name.to_owned(),
                weak: symbol.is_weak(),
                version: None,
            });
        } else if symbol.is_visible() && is_function(symbol.kind) {
            facts.defines.push(name.to_owned());
        }
    }
    facts.defines.sort();
    facts.defines.dedup();
    Ok(Some(facts))
}
