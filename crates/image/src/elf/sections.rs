//! Sections by their names, which the loader does not read.

use object::ReadRef;
use object::elf;

use super::{ElfImage, Section, SymbolTable};
use crate::strings::Strings;

impl<'d> ElfImage<'d> {
    /// The sections with their names, which are empty where damaged; `None` if the headers are damaged.
    pub(crate) fn named_sections(&self) -> Option<impl Iterator<Item = (&'d [u8], &Section)>> {
        let sections = self.sections.as_deref()?;
        let names = match sections {
            [] => None,
            _ => Some(sections.get(self.names?)?),
        };
        let range = match names {
            Some(names) if names.kind != elf::SHT_NOBITS => {
                names.offset..names.offset.checked_add(names.size)?
            }
            _ => 0..0,
        };
        Some(sections.iter().map(move |section| {
            let name = range
                .start
                .checked_add(section.name.into())
                .and_then(|start| {
                    let range = start..range.end;
                    self.source.read_bytes_at_until(range, 0).ok()
                });
            (name.unwrap_or_default(), section)
        }))
    }

    /// Names of the sections that have a valid one.
    pub(crate) fn section_names(&self) -> Vec<String> {
        let Some(strings) = self.section_strings() else {
            return Vec::new();
        };
        self.sections()
            .iter()
            .skip(1)
            .filter_map(|section| strings.get(section.name.into()).ok())
            .map(str::to_owned)
            .collect()
    }

    /// The string table with the names of sections.
    fn section_strings(&self) -> Option<Strings<'d>> {
        let section = self.sections().get(self.names?)?;
        Some(Strings::new(section.data(self.source)?))
    }

    /// The full symbol table, which only linkers read; `None` in a stripped file.
    pub(crate) fn full_symbols(&self) -> Option<(SymbolTable<'d>, Strings<'d>)> {
        let (_, table) = self
            .named_sections()?
            .find(|(_, section)| section.kind == elf::SHT_SYMTAB)?;
        let bytes = table.data(self.source)?;
        if bytes.len() % SymbolTable::entry_size(self.is_64) != 0 {
            return None;
        }
        let strings = self
            .sections()
            .get(table.link as usize)
            .filter(|section| table.link != 0 && section.kind == elf::SHT_STRTAB)?;
        Some((
            SymbolTable::new(bytes, self.is_64, self.endian),
            Strings::new(strings.data(self.source)?),
        ))
    }
}
