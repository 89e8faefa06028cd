//! The symbol table that LLVM writes beside modules (`llvm/Object/IRSymtab.h`, `storage`): mangled
//! names, and symbols that inline assembly defines.

use super::string_table::string_at;
use crate::definitions::collector::{Binding, Collector};
use crate::error::Problem;

/// The table.
pub struct Table<'d> {
    /// Number of modules that the table describes.
    pub modules: u64,
    symbols: &'d [u8],
}

/// Latest version of the table's format in LLVM 5 to 19. The fields read here are the same in all.
const LATEST: u32 = 3;

const SYMBOL_SIZE: usize = 24;

// `storage::Symbol::FlagBits`.
const UNDEFINED: u32 = 1 << 3;
const WEAK: u32 = 1 << 4;
const COMMON: u32 = 1 << 5;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

impl<'d> Table<'d> {
    /// Reads the table; `None` if it is damaged or of an unknown format: it only repeats contents of
    /// the modules.
    pub fn read(bytes: &'d [u8]) -> Option<Self> {
        // The version, the producer, then tables as their offset and the number of their entries:
        // modules, groups, symbols.
        if word(bytes, 0)? > LATEST {
            return None;
        }
        let at = word(bytes, 28)? as usize;
        let size = (word(bytes, 32)? as usize).checked_mul(SYMBOL_SIZE)?;
        Some(Self {
            modules: word(bytes, 16)?.into(),
            symbols: bytes.get(at..at.checked_add(size)?)?,
        })
    }

    pub fn definitions(&self, texts: &'d [u8], found: &mut Collector<'d>) -> Result<(), Problem> {
        for symbol in self.symbols.chunks_exact(SYMBOL_SIZE) {
            // The name, the name within the module, the group, flags.
            let word = |at: usize| word(symbol, at).unwrap_or(0);
            let flags = word(20);
            if flags & GLOBAL != 0 && flags & (UNDEFINED | FORMAT_SPECIFIC) == 0 {
                let name = string_at(texts, (word(0).into(), word(4).into()))?;
                let binding = Binding::weak_if(flags & (WEAK | COMMON) != 0);
                found.add(name, binding)?;
            }
        }
        Ok(())
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(bytes))
}
