//! Target of a module.

use super::codes::{block, module as code};
use super::stream::{Entry, Stream};
use super::wrapper::unwrapped;
use crate::error::Problem;

/// Triple and data layout of a module.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModuleTarget {
    pub triple: Vec<u8>,
    pub data_layout: Vec<u8>,
}

impl ModuleTarget {
    /// Target of the first module of a bitcode file. LLVM writes the data layout after the triple.
    pub fn read(data: &[u8]) -> Result<Self, Problem> {
        let (mut stream, mut outside) = Stream::new(unwrapped(data)?)?;
        let mut target = Self::default();
        let mut module = loop {
            match stream.next(&mut outside)? {
                Entry::Block(inner) if inner.id == block::MODULE => break inner,
                Entry::Block(inner) => stream.skip(&inner)?,
                _ => return Err(Problem::Malformed("bitcode is not in blocks")),
            }
        };
        loop {
            match stream.next(&mut module)? {
                Entry::Block(inner) => stream.skip(&inner)?,
                Entry::End => return Err(Problem::Malformed("module has no data layout")),
                Entry::Record => match stream.record.code {
                    code::TRIPLE => target.triple = stream.record.text(0)?,
                    code::DATALAYOUT => {
                        target.data_layout = stream.record.text(0)?;
                        return Ok(target);
                    }
                    _ => {}
                },
            }
        }
    }
}
