//! Symbols of COFF objects, and of the short import objects of DLLs.

use object::pe::{self, AnonObjectHeaderBigobj, ImageFileHeader};
use object::read::coff::{CoffHeader, ImportFile, ImportType, Symbol};

use super::collector::{Binding, Collector, Definition};
use crate::error::Problem;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    read_definitions::<ImageFileHeader>(data)
}

pub fn big_definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    read_definitions::<AnonObjectHeaderBigobj>(data)
}

fn read_definitions<Coff: CoffHeader>(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    const OUTSIDE: Problem = Problem::Malformed("section headers or symbols lie outside the file");
    let mut end = 0;
    let header = Coff::parse(data, &mut end).map_err(|_| Problem::Truncated("COFF header"))?;
    let sections = header.sections(data, end).map_err(|_| OUTSIDE)?;
    let table = header.symbols(data).map_err(|_| OUTSIDE)?;
    let mut collector = Collector::new();
    for (index, symbol) in table.iter() {
        let section = symbol.section_number();
        let is_weak = match symbol.storage_class() {
            pe::IMAGE_SYM_CLASS_EXTERNAL if section == pe::IMAGE_SYM_UNDEFINED => {
                // The value of a common symbol is its size.
                if symbol.value() == 0 {
                    continue;
                }
                true
            }
            // The section of C++/CLI's variables of an application domain.
            pe::IMAGE_SYM_CLASS_EXTERNAL
                if section == pe::IMAGE_SYM_ABSOLUTE && symbol.number_of_aux_symbols() > 0 =>
            {
                continue;
            }
            // An alias of a symbol in this file; the other kinds are undefined.
            pe::IMAGE_SYM_CLASS_WEAK_EXTERNAL if symbol.number_of_aux_symbols() > 0 => {
                let alias = table.aux_weak_external(index).map_err(|_| OUTSIDE)?;
                if alias.weak_search_type.get(object::LittleEndian)
                    != pe::IMAGE_WEAK_EXTERN_SEARCH_ALIAS
                {
                    continue;
                }
                true
            }
            pe::IMAGE_SYM_CLASS_EXTERNAL | pe::IMAGE_SYM_CLASS_WEAK_EXTERNAL => false,
            _ => continue,
        };
        let is_external = symbol.storage_class() == pe::IMAGE_SYM_CLASS_EXTERNAL;
        let is_comdat = match symbol.section() {
            Some(section) if is_external => {
                let section = sections.section(section).map_err(|_| OUTSIDE)?;
                let flags = section.characteristics.get(object::LittleEndian);
                flags.contains(pe::IMAGE_SCN_LNK_COMDAT)
            }
            _ => false,
        };
        let name = symbol.name(table.strings()).map_err(|_| OUTSIDE)?;
        let binding = if is_comdat {
            Binding::Comdat
        } else {
            Binding::weak_if(is_weak)
        };
        collector.add(name, binding)?;
    }
    Ok(collector.definitions)
}

pub fn import_definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    let import = ImportFile::parse(data)
        .map_err(|_| Problem::Malformed("import header or names are damaged"))?;
    let mut collector = Collector::new();
    collector.add([b"__imp_", import.symbol()].concat(), Binding::Strong)?;
    if import.import_type() != ImportType::Data {
        collector.add(import.symbol(), Binding::Strong)?;
    }
    Ok(collector.definitions)
}
