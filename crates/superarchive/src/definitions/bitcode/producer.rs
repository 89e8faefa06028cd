//! Producer of bitcode.

use super::codes::block;
use super::stream::{Entry, Stream};
use super::wrapper::unwrapped;
use crate::error::Problem;

/// `IDENTIFICATION_CODE_STRING` of `IdentificationCodes`.
const STRING: u64 = 1;

/// The producer that the first identification names, such as `LLVM15.0.6`. Bitcode of LLVM before 3.8 and canonical
/// bitcode have none.
pub fn producer(data: &[u8]) -> Result<Option<String>, Problem> {
    let (mut stream, mut outside) = Stream::new(unwrapped(data)?)?;
    while !stream.is_at_end() {
        let Entry::Block(mut inner) = stream.next(&mut outside)? else {
            return Err(Problem::Malformed("bitcode is not in blocks"));
        };
        if inner.id != block::IDENTIFICATION {
            stream.skip(&inner)?;
            continue;
        }
        loop {
            match stream.next(&mut inner)? {
                Entry::Block(block) => stream.skip(&block)?,
                Entry::End => return Ok(None),
                Entry::Record if stream.record.code == STRING => {
                    let text = stream.record.text(0)?;
                    return Ok(Some(String::from_utf8_lossy(&text).into_owned()));
                }
                Entry::Record => {}
            }
        }
    }
    Ok(None)
}
