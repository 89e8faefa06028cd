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
            let start = range.start.checked_add(section.name.into());
            let name = start.and_then(|start| {
                let name = self.source.read_bytes_at_until(start..range.end, 0);
                name.ok()
            });
            (name.unwrap_or_default(), section)
        }))
    }

    /// Names of the sections that have a valid one.
    pub(crate) fn section_names(&self) -> Vec<String> {
        let names = || {
            let sections = self.sections.as_deref()?;
            let strings = Strings::new(sections.get(self.names?)?.data(self.source)?);
            let names = sections.iter().skip(1);
            let names = names.filter_map(|section| strings.get(section.name.into()).ok());
            Some(names.map(str::to_owned).collect())
        };
        names().unwrap_or_default()
    }

    /// The full symbol table, which only linkers read; `None` in a stripped file.
    pub(crate) fn full_symbols(&self) -> Option<(SymbolTable<'d>, Strings<'d>)> {
        let sections = self.named_sections()?;
        let mut sections = sections.map(|(_, section)| section);
        let table = sections.find(|s| s.kind == elf::SHT_SYMTAB)?;
        let bytes = table.data(self.source)?;
        if bytes.len() % SymbolTable::entry_size(self.is_64) != 0 {
            return None;
        }
        let strings = self.sections().get(table.link as usize);
        let strings = strings.filter(|s| table.link != 0 && s.kind == elf::SHT_STRTAB)?;
        Some((
            SymbolTable::new(bytes, self.is_64, self.endian),
            Strings::new(strings.data(self.source)?),
        ))
    }
}
