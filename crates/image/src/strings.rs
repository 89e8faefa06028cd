//! The dynamic string table, read with care.

use std::cell::Cell;

use crate::error::Problem;

/// A longer name is damage: the longest mangled C++ names are some ten thousand bytes long.
const LONGEST: usize = 64 * 1024;

/// All names of one file together. Tables share suffixes, so that a small hostile one could
/// otherwise stand for terabytes of text.
pub(crate) const ALL: usize = 256 * 1024 * 1024;

/// A string table that counts what it has given out.
pub(crate) struct Strings<'d> {
    bytes: &'d [u8],
    left: Cell<usize>,
}

impl<'d> Strings<'d> {
    pub(crate) fn new(bytes: &'d [u8]) -> Self {
        Self {
            bytes,
            left: Cell::new(ALL),
        }
    }

    /// The string at `offset`.
    pub(crate) fn get(&self, offset: u64) -> Result<&'d str, Problem> {
        let tail = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.bytes.get(offset..))
            .ok_or(Problem::Malformed("name lies outside the string table"))?;
        let head = &tail[..tail.len().min(LONGEST)];
        let length = head
            .iter()
            .position(|&byte| byte == 0)
            .ok_or(Problem::Malformed("name in the string table has no end"))?;
        let left = self.left.get().checked_sub(length);
        self.left
            .set(left.ok_or(Problem::Malformed("names add up to too much text"))?);
        std::str::from_utf8(&head[..length])
            .map_err(|_| Problem::Malformed("name is not UTF-8 text"))
    }
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
            (12, "name lies outside the string table"),
            (u64::MAX, "name lies outside the string table"),
        ] {
            assert_eq!(
                strings.get(offset),
                Err(Problem::Malformed(why)),
                "{offset}"
            );
        }
        let long = vec![b'a'; LONGEST];
        assert!(Strings::new(&long).get(0).is_err());
    }

    #[test]
    fn stops_before_there_is_too_much() {
        let mut bytes = vec![b'a'; LONGEST - 1];
        bytes.push(0);
        let strings = Strings::new(&bytes);
        let given = (0..ALL).take_while(|_| strings.get(0).is_ok()).count();
        assert_eq!(given, ALL / (LONGEST - 1));
    }
}
