//! What a module is for.

use super::stream::{Entry, Stream};
use super::{MODULE_BLOCK, unwrapped};
use crate::error::Problem;

/// The target of a module, as it names it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Target {
    pub triple: Vec<u8>,
    pub data_layout: Vec<u8>,
}

// In the block of a module.
pub const TRIPLE: u64 = 2;
pub const DATA_LAYOUT: u64 = 3;

impl Target {
    /// That of the first module of a file of bitcode. LLVM writes the data layout behind the triple.
    pub fn of(data: &[u8]) -> Result<Self, Problem> {
        let (mut stream, mut outside) = Stream::new(unwrapped(data)?)?;
        let mut target = Self::default();
        let mut module = loop {
            match stream.next(&mut outside)? {
                Entry::Block(block) if block.id == MODULE_BLOCK => break block,
                Entry::Block(block) => stream.skip(&block)?,
                _ => return Err(Problem::Malformed("its bitcode is not in blocks")),
            }
        };
        loop {
            match stream.next(&mut module)? {
                Entry::Block(inner) => stream.skip(&inner)?,
                Entry::End => return Err(Problem::Malformed("its module has no data layout")),
                Entry::Record => match stream.record.code {
                    TRIPLE => target.triple = stream.record.text(0)?,
                    DATA_LAYOUT => {
                        target.data_layout = stream.record.text(0)?;
                        return Ok(target);
                    }
                    _ => {}
                },
            }
        }
    }
}
