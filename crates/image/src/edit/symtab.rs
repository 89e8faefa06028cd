//! Symbols of moved sections in the full symbol table: those of the sections themselves, which mold writes,
//! `_DYNAMIC`, and `__abi_tag` of crt1.o. No loader reads them; eu-elflint compares them with the sections.

use object::elf::SHT_SYMTAB;

use super::words::SYMBOL;
use super::words::{u16_at, u64_at};
use crate::elf::{ElfImage, Section};

/// Number of symbols read at a time.
const CHUNK: u64 = 4096;

/// Edits of the symbols: offset in the file, and bytes. `sections` are those of the edited image.
pub(super) fn moved_symbols(image: &ElfImage<'_>, sections: &[Section]) -> Vec<(u64, Vec<u8>)> {
    let mut edits = Vec::new();
    // Without a table, or with a damaged one, there is nothing to keep right.
    let _ = scan(image, sections, &mut edits);
    edits
}

fn scan(image: &ElfImage<'_>, sections: &[Section], edits: &mut Vec<(u64, Vec<u8>)>) -> Option<()> {
    let table = image
        .counted_sections()
        .iter()
        .find(|s| s.kind == SHT_SYMTAB)?;
    // A table that the loader maps is none of a linker.
    let end = table.offset.checked_add(table.size)?;
    if image
        .loads()
        .any(|s| table.offset < s.offset + s.filesz && s.offset < end)
    {
        return None;
    }
    let pairs: Vec<_> = image.counted_sections().iter().zip(sections).collect();
    for start in (0..table.size).step_by((CHUNK * SYMBOL) as usize) {
        let size = (table.size - start).min(CHUNK * SYMBOL);
        let offset = table.offset.checked_add(start)?;
        let chunk = image.source.bytes(offset, size)?;
        for (i, symbol) in chunk.chunks_exact(SYMBOL as usize).enumerate() {
            let Some((old, new)) = pairs.get(usize::from(u16_at(symbol, 6))) else {
                continue;
            };
            let distance = u64_at(symbol, 8).checked_sub(old.addr);
            let is_moved = |distance: &u64| *distance < old.size && old.addr != new.addr;
            if let Some(distance) = distance.filter(is_moved) {
                let value_offset = offset + i as u64 * SYMBOL + 8;
                let value = new.addr.wrapping_add(distance);
                edits.push((value_offset, value.to_le_bytes().to_vec()));
            }
        }
        (image.consumed)(chunk);
    }
    Some(())
}
