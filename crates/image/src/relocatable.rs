//! Object files: the input of a linker.

use object::read::elf::{FileHeader, Sym};
use object::{Endianness, elf};

use crate::consumed::Reads;
use crate::device::{DeviceCode, device_code};
use crate::elf::{Image, for_class};
use crate::error::{Error, Problem};
use crate::image_facts::{Import, Keep, is_function};

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
}

/// Reads the object file in `bytes`, with the names that `keep` accepts; `None` for an ELF file of
/// another kind.
pub fn read_object(bytes: &[u8], keep: Keep<'_>) -> Result<Option<ObjectFacts>, Error> {
    Ok(read(bytes, keep)?)
}

fn read(bytes: &[u8], keep: Keep<'_>) -> Result<Option<ObjectFacts>, Problem> {
    for_class!(bytes, facts, keep)
}

fn facts<Elf: FileHeader<Endian = Endianness>>(
    bytes: &[u8],
    keep: Keep<'_>,
) -> Result<Option<ObjectFacts>, Problem> {
    let image = Image::<Elf>::parse(bytes)?;
    if !image.is_object() {
        return Ok(None);
    }
    let mut facts = ObjectFacts {
        machine: image.machine.clone(),
        device: device_code(&image, &Reads::unreported(bytes)),
        ..ObjectFacts::default()
    };
    let Some((table, strings)) = image.full_symbols() else {
        return Ok(Some(facts));
    };
    for symbol in table.iter().skip(1).filter(|symbol| !symbol.is_local()) {
        let name = strings.get(symbol.st_name(image.endian).into())?;
        if !keep(name, None) {
            continue;
        }
        let visible = matches!(
            symbol.st_visibility(),
            elf::STV_DEFAULT | elf::STV_PROTECTED
        );
        if symbol.is_undefined(image.endian) {
            facts.imports.push(Import {
                name: name.to_owned(),
                weak: symbol.is_weak(),
                version: None,
            });
        } else if visible && is_function(symbol.st_type()) {
            facts.defines.push(name.to_owned());
        }
    }
    facts.defines.sort();
    facts.defines.dedup();
    Ok(Some(facts))
}
