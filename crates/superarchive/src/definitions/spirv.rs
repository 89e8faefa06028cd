//! Symbols of SPIR-V modules: names that the decoration `LinkageAttributes` exports (SPIR-V specification,
//! sections 2.3 and 3.20).

use super::collector::{Binding, Collector, Definition};
use crate::error::Problem;

pub const MAGIC: u32 = 0x0723_0203;

const DECORATE: u32 = 71;
const LINKAGE_ATTRIBUTES: u32 = 41;
/// Linkage types that define a symbol; the latter is that of the extension `SPV_KHR_linkonce_odr`.
const EXPORT: u32 = 0;
const LINK_ONCE_ODR: u32 = 2;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    let mut collector = Collector::new();
    let is_big = data.starts_with(&MAGIC.to_be_bytes());
    let words: Vec<u32> = data
        .chunks_exact(4)
        .map(|bytes| {
            let word = bytes
                .iter()
                .fold(0, |word, &byte| word << 8 | u32::from(byte));
            if is_big { word } else { word.swap_bytes() }
        })
        .collect();
    // The magic, the version, the generator, the bound of ids, and a reserved word.
    let mut rest = words.get(5..).ok_or(Problem::Truncated("SPIR-V header"))?;
    while let Some(first) = rest.first() {
        let size = (first >> 16) as usize;
        if size == 0 || size > rest.len() {
            return Err(Problem::Truncated("SPIR-V instruction"));
        }
        let (instruction, next) = rest.split_at(size);
        rest = next;
        let &[_, _, LINKAGE_ATTRIBUTES, ref name_words @ .., linkage] = instruction else {
            continue;
        };
        if first & 0xFFFF == DECORATE && [EXPORT, LINK_ONCE_ODR].contains(&linkage) {
            let name: Vec<u8> = name_words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .take_while(|&byte| byte != 0)
                .collect();
            collector.add(name, Binding::weak_if(linkage == LINK_ONCE_ODR))?;
        }
    }
    Ok(collector.definitions)
}
