//! Addresses of moved sections in the full symbol table: those of the sections themselves, which mold
//! writes, and `_DYNAMIC`. No loader reads them; eu-elflint compares them.

use object::elf::{SHT_SYMTAB, STT_SECTION};

use super::headers::Section;
use super::image::Image;
use super::source::{u16_at, u32_at, u64_at};

/// Size of a symbol.
const SYMBOL: u64 = 24;

/// Number of symbols read at a time.
const CHUNK: u64 = 4096;

/// Edits of the symbols: offset in the file, and bytes. `sections` are those of the edited image.
pub(super) fn moved_symbols(image: &Image<'_>, sections: &[Section]) -> Vec<(u64, Vec<u8>)> {
    let pairs = image.sections.iter().zip(sections);
    // Old and new address.
    let addresses: Vec<_> = pairs.map(|(old, new)| (old.addr, new.addr)).collect();
    let mut edits = Vec::new();
    // Without a table, or with a damaged one, there is nothing to keep right.
    let _ = scan(image, &addresses, &mut edits);
    edits
}

fn scan(
    image: &Image<'_>,
    addresses: &[(u64, u64)],
    edits: &mut Vec<(u64, Vec<u8>)>,
) -> Option<()> {
    let table = image.sections.iter().find(|s| s.kind == SHT_SYMTAB)?;
    let strings = image.sections.get(table.link as usize)?;
    let is_dynamic = |symbol: &[u8]| {
        let name = strings.offset.checked_add(u32_at(symbol, 0).into())?;
        Some(image.source.bytes(name, 9)?[..] == *b"_DYNAMIC\0")
    };
    for start in (0..table.size).step_by((CHUNK * SYMBOL) as usize) {
        let size = (table.size - start).min(CHUNK * SYMBOL);
        let offset = table.offset.checked_add(start)?;
        let part = image.source.bytes(offset, size)?;
        for (i, symbol) in part.chunks_exact(SYMBOL as usize).enumerate() {
            let Some(&(old, new)) = addresses.get(usize::from(u16_at(symbol, 6))) else {
                continue;
            };
            let moved = old != new && u64_at(symbol, 8) == old;
            if moved && (symbol[4] & 0xf == STT_SECTION.0 || is_dynamic(symbol) == Some(true)) {
                let at = offset + i as u64 * SYMBOL + 8;
                edits.push((at, new.to_le_bytes().to_vec()));
            }
        }
    }
    Some(())
}
