//! Reads an image by addresses, with limits: tables of a hostile file may overlap.

use std::cell::Cell;

use object::pod::Pod;
use object::read::coff::SectionTable;
use object::{LittleEndian as LE, ReadRef, pe};

use crate::elf::Source;
use crate::error::Problem;
use crate::strings::{MAX_NAMES, string_in};

/// A section of the file.
struct PeSection<'d> {
    address: u32,
    data: &'d [u8],
    is_code: bool,
}

/// Sections of an image by address, and the limits of what is read from them.
pub(super) struct Reader<'d> {
    /// Sections in the order of their addresses.
    sections: Vec<PeSection<'d>>,
    /// Preferred address of the image.
    pub(super) image_base: u64,
    /// Number of entries that may still be read: each has bytes of its own in a real file.
    entries_left: Cell<usize>,
    /// Number of bytes that names may still have.
    names_left: Cell<usize>,
}

impl<'d> Reader<'d> {
    pub(super) fn new(
        source: Source<'d>,
        table: &SectionTable<'d>,
        image_base: u64,
    ) -> Result<Self, Problem> {
        let mut sections = Vec::new();
        for header in table.iter() {
            // The file may have more, up to the file's alignment, or less than the memory.
            let size = match header.virtual_size.get(LE) {
                0 => header.size_of_raw_data.get(LE),
                size => size.min(header.size_of_raw_data.get(LE)),
            };
            let offset = header.pointer_to_raw_data.get(LE);
            let data = match size {
                0 => &[],
                _ => source
                    .bytes(offset.into(), size.into())
                    .ok_or(Problem::Truncated("last section"))?,
            };
            sections.push(PeSection {
                address: header.virtual_address.get(LE),
                data,
                is_code: (header.characteristics.get(LE)).contains(pe::IMAGE_SCN_MEM_EXECUTE),
            });
        }
        sections.sort_by_key(|section| section.address);
        Ok(Self {
            sections,
            image_base,
            entries_left: Cell::new(source.len() as usize / size_of::<u32>()),
            names_left: Cell::new(MAX_NAMES),
        })
    }

    /// The section that begins last at or before an address.
    fn section(&self, address: u32) -> Option<&PeSection<'d>> {
        let after = self
            .sections
            .partition_point(|section| section.address <= address);
        self.sections.get(after.checked_sub(1)?)
    }

    /// Bytes of the file from an address to the end of its section.
    pub(super) fn at(&self, address: u32) -> Result<&'d [u8], Problem> {
        let section = self.section(address);
        section
            .and_then(|section| {
                let offset = address.checked_sub(section.address)?;
                section.data.get(offset as usize..)
            })
            .filter(|data| !data.is_empty())
            .ok_or(Problem::Malformed("address of a table is outside the file"))
    }

    /// Whether the address is in an executable section.
    pub(super) fn is_code(&self, address: u32) -> bool {
        self.section(address).is_some_and(|section| section.is_code)
    }

    /// The entry of a table at an address, which becomes that of the next entry.
    pub(super) fn entry<T: Pod>(&self, address: &mut u32) -> Result<&'d T, Problem> {
        let entries_left = self
            .entries_left
            .get()
            .checked_sub(1)
            .ok_or(Problem::Malformed("tables have more entries than bytes"))?;
        self.entries_left.set(entries_left);
        let data = self.at(*address)?;
        let entry = data
            .read_at(0)
            .map_err(|()| Problem::Malformed("table has no end"))?;
        *address = address.wrapping_add(size_of::<T>() as u32);
        Ok(entry)
    }

    /// The text at an address, up to a null byte.
    pub(super) fn string(&self, address: u32) -> Result<&'d str, Problem> {
        let text = string_in(self.at(address)?)?;
        let names_left = self
            .names_left
            .get()
            .checked_sub(text.len())
            .ok_or(Problem::Malformed("names add up to too much text"))?;
        self.names_left.set(names_left);
        std::str::from_utf8(text).map_err(|_| Problem::Malformed("name is not UTF-8 text"))
    }
}
