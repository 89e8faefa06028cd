//! Host objects without the device code that only clang's linker reads.

use super::bytes::{number, text};
use super::container::BUNDLE_MAGIC;

/// Fields of ELF's 64-bit headers (gABI, "ELF Header", "Section Header").
const HEADER: usize = 64;
const SECTION: usize = 64;
const SECTIONS_OFFSET: usize = 40;
const DATA_OFFSET: usize = 24;
const SHT_SYMTAB: usize = 2;
const SHT_NOBITS: usize = 8;
const SHT_GROUP: usize = 17;
const SHT_SYMTAB_SHNDX: usize = 18;
const SHF_ALLOC: usize = 2;
/// Size of a symbol.
const SYMBOL: usize = 24;

/// A host object (ELF, 64-bit, little-endian) without the sections that clang adds for its own linker, and that host
/// linkers drop (`SHF_EXCLUDE`). `None` if it has none, or is not of this form.
///
/// Sections of device code that the host's own code refers to, such as `.hip_fatbin`, remain. The numbers of sections
/// do too: the header of a removed one is inactive (`SHT_NULL`).
pub fn without_device_code(file: &[u8]) -> Option<Vec<u8>> {
    let object = Object::read(file)?;
    let mut removed: Vec<usize> = (1..object.count)
        .filter(|index| object.is_for_clang(*index))
        .collect();
    object.keep_referenced(&mut removed)?;
    if removed.is_empty() {
        return None;
    }
    object.without(&removed)
}

/// An object file whose section headers are within it.
struct Object<'d> {
    file: &'d [u8],
    /// Offset of the section headers.
    table: usize,
    count: usize,
    /// Names of sections.
    names: &'d [u8],
}

/// Section header.
#[derive(Clone, Copy)]
struct Section {
    kind: usize,
    flags: usize,
    offset: usize,
    size: usize,
    alignment: usize,
}

impl Section {
    fn end(self) -> Option<usize> {
        self.offset.checked_add(self.stored_size())
    }

    fn stored_size(self) -> usize {
        if self.kind == SHT_NOBITS {
            0
        } else {
            self.size
        }
    }
}

impl<'d> Object<'d> {
    fn read(file: &'d [u8]) -> Option<Self> {
        let [0x7F, b'E', b'L', b'F', 2, 1, ..] = file else {
            return None;
        };
        // ET_REL without segments. Objects with more sections than the field holds are not edited.
        let (kind, segments) = (number(file, 16, 2)?, number(file, 56, 2)?);
        let (section, count) = (number(file, 58, 2)?, number(file, 60, 2)?);
        if (kind, segments, section) != (1, 0, SECTION) || count == 0 {
            return None;
        }
        let mut object = Self {
            file,
            table: number(file, SECTIONS_OFFSET, 8)?,
            count,
            names: &[],
        };
        file.get(object.table..)?.get(..count * SECTION)?;
        object.names = object.contents(number(file, 62, 2)?)?;
        Some(object)
    }

    fn header(&self, index: usize) -> &'d [u8] {
        &self.file[self.table + index * SECTION..][..SECTION]
    }

    fn section(&self, index: usize) -> Option<Section> {
        let header = self.header(index);
        Some(Section {
            kind: number(header, 4, 4)?,
            flags: number(header, 8, 8)?,
            offset: number(header, DATA_OFFSET, 8)?,
            size: number(header, 32, 8)?,
            alignment: number(header, 48, 8)?,
        })
    }

    fn contents(&self, index: usize) -> Option<&'d [u8]> {
        if index >= self.count {
            return None;
        }
        let section = self.section(index)?;
        self.file
            .get(section.offset..)?
            .get(..section.stored_size())
    }

    fn is_for_clang(&self, index: usize) -> bool {
        let name = number(self.header(index), 0, 4).and_then(|offset| text(self.names, offset));
        let is_named =
            name.is_some_and(|name| name == b".llvm.offloading" || name.starts_with(BUNDLE_MAGIC));
        is_named
            && self
                .section(index)
                .is_some_and(|section| section.flags & SHF_ALLOC == 0)
    }

    /// Leaves out sections that symbols, groups or other sections refer to. `None` if that is unknown.
    fn keep_referenced(&self, removed: &mut Vec<usize>) -> Option<()> {
        let mut is_referenced = vec![false; self.count];
        let mut refer = |index: Option<usize>| {
            if let Some(flag) = index.and_then(|index| is_referenced.get_mut(index)) {
                *flag = true;
            }
        };
        for index in 1..self.count {
            // sh_link and sh_info, which counts symbols in a symbol table.
            let header = self.header(index);
            refer(number(header, 40, 4));
            match self.section(index)?.kind {
                SHT_SYMTAB => {
                    let symbols = self.contents(index)?.chunks_exact(SYMBOL);
                    symbols.for_each(|symbol| refer(number(symbol, 6, 2)));
                }
                SHT_GROUP => {
                    let words = self.contents(index)?.chunks_exact(4).skip(1);
                    words.for_each(|word| refer(number(word, 0, 4)));
                }
                SHT_SYMTAB_SHNDX => return None,
                _ => refer(number(header, 44, 4)),
            }
        }
        removed.retain(|index| !is_referenced[*index]);
        Some(())
    }

    /// The file without the contents of these sections.
    fn without(&self, removed: &[usize]) -> Option<Vec<u8>> {
        let mut alignment = 8;
        // Ranges of the file, with the index of a section that is removed.
        let mut ranges = vec![
            (0, HEADER, None),
            (self.table, self.table + self.count * SECTION, None),
        ];
        let mut next_removed = removed.iter().copied().peekable();
        for index in 1..self.count {
            let section = self.section(index)?;
            let cut = next_removed.next_if_eq(&index);
            if cut.is_none() {
                alignment = alignment.max(section.alignment);
            }
            if section.stored_size() > 0 {
                ranges.push((section.offset, section.end()?, cut));
            }
        }
        ranges.sort_unstable();
        let is_disjoint = ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        if !is_disjoint || !alignment.is_power_of_two() || alignment > 4096 {
            return None;
        }
        // What follows moves by a multiple of all alignments; zeros fill the rest.
        let mut file = Vec::with_capacity(self.file.len());
        let (mut copied, mut cuts) = (0, Vec::new());
        for (start, end, cut) in ranges {
            if cut.is_some() {
                file.extend(self.file.get(copied..start)?);
                let rest = (end - start) % alignment;
                file.resize(file.len() + rest, 0);
                cuts.push((end, end - start - rest));
                copied = end;
            }
        }
        file.extend(self.file.get(copied..)?);
        // The cuts are in the order of their offsets, and so are the sums of their sizes.
        let mut sum = 0;
        for (_, size) in &mut cuts {
            sum += *size;
            *size = sum;
        }
        let moved = |offset: usize| {
            let count = cuts.partition_point(|(end, _)| *end <= offset);
            offset - count.checked_sub(1).map_or(0, |last| cuts[last].1)
        };
        let table = moved(self.table);
        put(&mut file, SECTIONS_OFFSET, table);
        for index in 1..self.count {
            let offset = moved(self.section(index)?.offset);
            put(&mut file, table + index * SECTION + DATA_OFFSET, offset);
        }
        for index in removed {
            file[table + index * SECTION..][..SECTION].fill(0);
        }
        Some(file)
    }
}

/// Overwrites a field of 64 bits.
fn put(file: &mut [u8], offset: usize, value: usize) {
    file[offset..offset + 8].copy_from_slice(&(value as u64).to_le_bytes());
}
