//! Symbols of LLVM bitcode.

mod bits;
mod canonical;
pub mod codes;
mod edit;
mod ident;
mod module;
mod operand;
mod producer;
mod stream;
mod string_table;
mod table;
mod target;
mod undefine;
pub mod wrapper;
mod writer;

pub use canonical::canonical;

use codes::block;
use module::Module;
pub use producer::producer;
use stream::{Entry, Stream};
use string_table::read_blob;
use table::IrSymbolTable;
pub use target::ModuleTarget;
pub use undefine::{has_odr_constant, undefine};
use wrapper::unwrapped;
pub use writer::Writer;

use super::collector::{Collector, Definition};
use crate::error::Problem;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    let file = BitcodeFile::read(unwrapped(data)?)?;
    let mut collector = Collector::new();
    match &file.table {
        Some((table, strings)) if table.module_count == file.modules.len() as u64 => {
            table.definitions(strings, &mut collector)?;
        }
        _ => file.definitions(&mut collector)?,
    }
    Ok(collector.definitions)
}

/// The parts of a file that contain symbols.
#[derive(Default)]
struct BitcodeFile<'d> {
    /// Each module with its string table, which follows it.
    modules: Vec<(Module, &'d [u8])>,
    /// LLVM's own table of all symbols, with its string table.
    table: Option<(IrSymbolTable<'d>, &'d [u8])>,
}

impl<'d> BitcodeFile<'d> {
    fn read(bytes: &'d [u8]) -> Result<Self, Problem> {
        let (mut stream, mut outside) = Stream::new(bytes)?;
        let mut file = Self::default();
        // Modules and the table that precede their string table.
        let (mut pending_modules, mut pending_table) = (Vec::new(), None);
        while !stream.is_at_end() {
            let Entry::Block(inner) = stream.next(&mut outside)? else {
                return Err(Problem::Malformed("bitcode is not in blocks"));
            };
            match inner.id {
                block::MODULE => pending_modules.push(Module::read(&mut stream, inner)?),
                block::STRTAB => {
                    let strings = read_blob(&mut stream, inner)?;
                    file.modules
                        .extend(pending_modules.drain(..).map(|module| (module, strings)));
                    if let (None, Some(table)) = (&file.table, pending_table.take()) {
                        file.table = Some((table, strings));
                    }
                }
                block::SYMTAB => {
                    pending_table = IrSymbolTable::read(read_blob(&mut stream, inner)?);
                }
                _ => stream.skip(&inner)?,
            }
        }
        file.modules
            .extend(pending_modules.drain(..).map(|module| (module, &[][..])));
        if file.modules.is_empty() {
            return Err(Problem::Truncated("first module"));
        }
        Ok(file)
    }

    /// Adds the definitions in the modules themselves.
    fn definitions(&self, collector: &mut Collector<'d>) -> Result<(), Problem> {
        for (module, strings) in &self.modules {
            module.definitions(strings, collector)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod canonical_tests;
