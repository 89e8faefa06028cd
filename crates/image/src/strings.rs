//! The dynamic string table, read with care.

use std::cell::Cell;

use crate::error::Problem;

/// Maximum length of a name: the longest mangled C++ names have some ten thousand bytes.
const MAX_NAME: usize = 64 * 1024;

/// Maximum size of all names of a file. Names share suffixes, so a small hostile table could
/// otherwise expand to terabytes of text.
pub(crate) const MAX_NAMES: usize = 256 * 1024 * 1024;

/// A string table that counts the bytes it has returned.
pub(crate) struct Strings<'d> {
    bytes: &'d [u8],
    bytes_left: Cell<usize>,
}

impl<'d> Strings<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self {
            bytes,
            bytes_left: Cell::new(MAX_NAMES),
        }
    }

    /// The string at `offset`.
    pub(crate) fn get(&self, offset: u64) -> Result<&'d str, Problem> {
        std::str::from_utf8(self.bytes(offset)?)
            .map_err(|_| Problem::Malformed("name is not UTF-8 text"))
    }

    /// The bytes of the string at `offset`, in any encoding.
    pub(crate) fn bytes(&self, offset: u64) -> Result<&'d [u8], Problem> {
        let tail = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..))
            .ok_or(Problem::Malformed("name is outside the string table"))?;
        let string = string_in(tail)?;
        let bytes_left = self
            .bytes_left
            .get()
            .checked_sub(string.len())
            .ok_or(Problem::Malformed("names add up to too much text"))?;
        self.bytes_left.set(bytes_left);
        Ok(string)
    }
}

/// The bytes up to the first null byte.
pub(crate) fn string_in(bytes: &[u8]) -> Result<&[u8], Problem> {
    let head = &bytes[..bytes.len().min(MAX_NAME)];
    let length =
        memchr::memchr(0, head).ok_or(Problem::Malformed("name in the string table has no end"))?;
    Ok(&head[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_whole_names_only() {
        let strings = Strings::new(b"\0abc\0\xff\0open");
        assert_eq!(strings.get(0), Ok(""));
        assert_eq!(strings.get(1), Ok("abc"));
        assert_eq!(strings.get(2), Ok("bc"));
        for (offset, why) in [
            (5, "name is not UTF-8 text"),
            (7, "name in the string table has no end"),
            (12, "name is outside the string table"),
            (u64::MAX, "name is outside the string table"),
        ] {
            assert_eq!(
                strings.get(offset),
                Err(Problem::Malformed(why)),
                "{offset}"
            );
        }
        let long = vec![b'a'; MAX_NAME];
        assert!(Strings::new(&long).get(0).is_err());
    }

    #[test]
    fn stops_before_there_is_too_much() {
        let mut bytes = vec![b'a'; MAX_NAME - 1];
        bytes.push(0);
        let strings = Strings::new(&bytes);
        let name_count = (0..MAX_NAMES)
            .take_while(|_| strings.get(0).is_ok())
            .count();
        assert_eq!(name_count, MAX_NAMES / (MAX_NAME - 1));
    }
}
