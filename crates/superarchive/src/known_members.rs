//! Contents that several members of the inputs have.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use gpustub_archive::hash::hash_bytes;

use crate::definitions::definitions;
use crate::error::Error;
use crate::names::FastHash;
use crate::request::Input;

/// Members that were read before: equal contents are parsed once, and are the same slice then.
#[derive(Debug, Default)]
pub struct KnownMembers<'d> {
    /// By size and [`sample`]. Of different contents of one key, the first are known.
    members: HashMap<(usize, u64), Input<'d>, FastHash>,
}

impl<'d> KnownMembers<'d> {
    /// A member with its definitions.
    pub(crate) fn input(&mut self, name: &'d [u8], data: &'d [u8]) -> Result<Input<'d>, Error> {
        let name = name.into();
        let entry = self.members.entry((data.len(), sample(data)));
        if let Entry::Occupied(entry) = &entry {
            if entry.get().data == data {
                let known = entry.get().clone();
                return Ok(Input { name, ..known });
            }
        }
        let symbols = definitions(data)?;
        let input = Input {
            name,
            data,
            symbols,
        };
        if let Entry::Vacant(entry) = entry {
            entry.insert(input.clone());
        }
        Ok(input)
    }
}

/// A hash of some of the bytes, so that the others are only read to compare contents that may be equal.
fn sample(data: &[u8]) -> u64 {
    let mut hash: u64 = 0;
    for part in data.chunks(data.len().div_ceil(8).max(1)) {
        hash = hash.rotate_left(5) ^ hash_bytes(&part[..part.len().min(16)]);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_equal_contents_become_the_same_slice() {
        let first = vec![7; 1000];
        let equal = first.clone();
        // In the middle of a part: the samples are equal.
        let mut different = first.clone();
        different[990] = 8;
        assert_eq!(sample(&first), sample(&different));
        let mut known = KnownMembers::default();
        for (contents, slice) in [(&first, &first), (&equal, &first), (&different, &different)] {
            let input = known.input(b"cos.o", contents).unwrap();
            assert!(std::ptr::eq(input.data, &**slice));
        }
    }

    #[test]
    fn samples_of_every_size_contain_the_first_byte() {
        for size in 1..200 {
            let mut contents = vec![0; size];
            let zeros = sample(&contents);
            contents[0] = 1;
            assert_ne!(sample(&contents), zeros, "{size}");
        }
        assert_eq!(sample(&[]), 0);
    }
}
