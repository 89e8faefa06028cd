//! Symbols of WebAssembly objects: the section `linking` (WebAssembly's tool conventions, "Object File
//! Linking").

use super::collector::{Binding, Collector, Definition};
use crate::error::Problem;

pub const MAGIC: &[u8] = b"\0asm";

const TRUNCATED: Problem = Problem::Truncated("section of WebAssembly");

/// `WASM_SYMBOL_TABLE`.
const SYMBOL_TABLE: u8 = 8;

/// `syminfo` kinds.
const DATA: u8 = 1;
const SECTION: u8 = 3;

/// `WASM_SYM_*` flags.
const WEAK: u32 = 1;
const LOCAL: u32 = 2;
const UNDEFINED: u32 = 0x10;
const EXPLICIT_NAME: u32 = 0x40;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    let mut collector = Collector::new();
    // The magic and the version.
    let mut file = Reader(data.get(8..).ok_or(TRUNCATED)?);
    while !file.0.is_empty() {
        let id = file.byte()?;
        let mut section = file.sized()?;
        if id != 0 || section.sized()?.0 != b"linking" {
            continue;
        }
        // The version of the section.
        section.number()?;
        while !section.0.is_empty() {
            let kind = section.byte()?;
            let table = section.sized()?;
            if kind == SYMBOL_TABLE {
                read_symbols(table, &mut collector)?;
            }
        }
    }
    Ok(collector.definitions)
}

fn read_symbols<'d>(mut table: Reader<'d>, collector: &mut Collector<'d>) -> Result<(), Problem> {
    for _ in 0..table.number()? {
        let kind = table.byte()?;
        let flags = table.number()?;
        let is_defined = flags & UNDEFINED == 0;
        let name = match kind {
            DATA => {
                let name = table.sized()?.0;
                if is_defined {
                    // The segment, the offset in it, and the size.
                    for _ in 0..3 {
                        table.number()?;
                    }
                }
                name
            }
            kind => {
                table.number()?;
                if kind == SECTION || !is_defined && flags & EXPLICIT_NAME == 0 {
                    continue;
                }
                table.sized()?.0
            }
        };
        if is_defined && flags & LOCAL == 0 {
            collector.add(name, Binding::weak_if(flags & WEAK != 0))?;
        }
    }
    Ok(())
}

/// The rest of a section.
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn byte(&mut self) -> Result<u8, Problem> {
        let (byte, rest) = self.0.split_first().ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(*byte)
    }

    /// A number in LEB128; of larger ones the lower 32 bits.
    fn number(&mut self) -> Result<u32, Problem> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number as u32);
            }
        }
        Err(Problem::Malformed("a number of WebAssembly is too large"))
    }

    /// A size, and so many bytes.
    fn sized(&mut self) -> Result<Self, Problem> {
        let size = self.number()? as usize;
        let (bytes, rest) = self.0.split_at_checked(size).ok_or(TRUNCATED)?;
        self.0 = rest;
        Ok(Self(bytes))
    }
}
