//! Symbols of LLVM bitcode.

mod bits;
mod canonical;
pub mod codes;
mod edit;
mod ident;
mod module;
mod stream;
mod table;
mod target;
mod writer;

pub use canonical::canonical;

use codes::{BLOB, MAGIC, block};
use module::Module;
use stream::{Entry, Stream};
use table::Table;
pub use target::Target;
pub use writer::Writer;

use super::found::Found;
use crate::error::Problem;
use crate::superarchive::Definition;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    let file = File::read(unwrapped(data)?)?;
    let mut found = Found::new();
    match &file.table {
        Some((table, texts)) if table.modules == file.modules.len() as u64 => {
            table.definitions(texts, &mut found)?;
        }
        _ => file.definitions(&mut found)?,
    }
    Ok(found.list)
}

/// Bitcode without its wrapper (LLVM's `BitCodeFormat.rst`, "Bitcode Wrapper Format").
pub fn unwrapped(data: &[u8]) -> Result<&[u8], Problem> {
    if data.starts_with(b"BC") {
        return Ok(data);
    }
    let word = |at: usize| {
        let bytes = data.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes) as usize)
    };
    let inner = word(8)
        .zip(word(12))
        .and_then(|(at, size)| data.get(at..at.checked_add(size)?));
    let inner = inner.ok_or(Problem::Truncated("wrapped bitcode"))?;
    match inner.starts_with(MAGIC) {
        true => Ok(inner),
        false => Err(Problem::Malformed("what its wrapper holds is no bitcode")),
    }
}

/// The parts of a file that tell of symbols.
#[derive(Default)]
struct File<'d> {
    /// Each with its texts, which come behind it.
    modules: Vec<(Module, &'d [u8])>,
    /// LLVM's own table of all symbols, with its texts.
    table: Option<(Table<'d>, &'d [u8])>,
}

impl<'d> File<'d> {
    fn read(bytes: &'d [u8]) -> Result<Self, Problem> {
        let (mut stream, mut outside) = Stream::new(bytes)?;
        let mut file = Self::default();
        // Modules, and the table, before the texts that they want.
        let (mut waiting, mut table) = (Vec::new(), None);
        while !stream.is_over() {
            let Entry::Block(inner) = stream.next(&mut outside)? else {
                return Err(Problem::Malformed("its bitcode is not in blocks"));
            };
            match inner.id {
                block::MODULE => waiting.push(Module::read(&mut stream, inner)?),
                block::STRTAB => {
                    let texts = blob(&mut stream, inner)?;
                    file.modules
                        .extend(waiting.drain(..).map(|module| (module, texts)));
                    if let (None, Some(table)) = (&file.table, table.take()) {
                        file.table = Some((table, texts));
                    }
                }
                block::SYMTAB => table = Table::read(blob(&mut stream, inner)?),
                _ => stream.skip(&inner)?,
            }
        }
        file.modules
            .extend(waiting.drain(..).map(|module| (module, &[][..])));
        if file.modules.is_empty() {
            return Err(Problem::Truncated("first module"));
        }
        Ok(file)
    }

    /// What the modules themselves say.
    fn definitions(&self, found: &mut Found<'d>) -> Result<(), Problem> {
        for (module, texts) in &self.modules {
            module.definitions(texts, found)?;
        }
        Ok(())
    }
}

fn blob<'d>(stream: &mut Stream<'d>, mut outer: stream::Block) -> Result<&'d [u8], Problem> {
    let mut found = &[][..];
    loop {
        match stream.next(&mut outer)? {
            Entry::End => return Ok(found),
            Entry::Block(inner) => stream.skip(&inner)?,
            Entry::Record if stream.record.code == BLOB => {
                found = stream.record.blob.unwrap_or_default();
            }
            Entry::Record => {}
        }
    }
}

/// A text at this offset, of this size.
fn text(texts: &[u8], (at, size): (u64, u64)) -> Result<&[u8], Problem> {
    let found = (|| {
        let (at, end) = (usize::try_from(at).ok()?, at.checked_add(size)?);
        texts.get(at..usize::try_from(end).ok()?)
    })();
    found.ok_or(Problem::Malformed(
        "the name of a symbol lies outside of it",
    ))
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod canonical_tests;
