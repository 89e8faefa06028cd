//! The symbol table that LLVM writes beside modules (`llvm/Object/IRSymtab.h`, `storage`): mangled
//! names, and symbols that inline assembly defines.

use super::bits::word;
use super::string_table::string_at;
use crate::definitions::collector::{Binding, Collector};
use crate::error::Problem;

/// The table (`irsymtab` in LLVM).
pub struct IrSymbolTable<'d> {
    /// Number of modules that the table describes.
    pub module_count: u64,
    symbols: &'d [u8],
}

/// Latest version of the table's format in LLVM 5 to 19. The fields read here are the same in all.
const LATEST_VERSION: u32 = 3;

const SYMBOL_SIZE: usize = 24;

// `storage::Symbol::FlagBits`.
const UNDEFINED: u32 = 1 << 3;
const WEAK: u32 = 1 << 4;
const COMMON: u32 = 1 << 5;
const GLOBAL: u32 = 1 << 10;
const FORMAT_SPECIFIC: u32 = 1 << 11;

impl<'d> IrSymbolTable<'d> {
    /// Reads the table; `None` if it is damaged or of an unknown format: it only repeats contents of
    /// the modules.
    pub fn read(bytes: &'d [u8]) -> Option<Self> {
        // The version, the producer, then tables as their offset and the number of their entries:
        // modules, groups, symbols.
        if word(bytes, 0)? > LATEST_VERSION {
            return None;
        }
        let offset = word(bytes, 28)? as usize;
        let size = (word(bytes, 32)? as usize).checked_mul(SYMBOL_SIZE)?;
        Some(Self {
            module_count: word(bytes, 16)?.into(),
            symbols: bytes.get(offset..offset.checked_add(size)?)?,
        })
    }

    /// Adds the definitions in the table, whose names are in `strings`.
    pub fn definitions(
        &self,
        strings: &'d [u8],
        collector: &mut Collector<'d>,
    ) -> Result<(), Problem> {
        for symbol in self.symbols.chunks_exact(SYMBOL_SIZE) {
            // The name, the name within the module, the group, flags.
            let flags = field(symbol, 20);
            if flags & GLOBAL != 0 && flags & (UNDEFINED | FORMAT_SPECIFIC) == 0 {
                let name = (field(symbol, 0).into(), field(symbol, 4).into());
                let binding = Binding::weak_if(flags & (WEAK | COMMON) != 0);
                collector.add(string_at(strings, name)?, binding)?;
            }
        }
        Ok(())
    }
}

/// The field of a symbol at an offset in bytes.
fn field(symbol: &[u8], offset: usize) -> u32 {
    word(symbol, offset).unwrap_or(0)
}
