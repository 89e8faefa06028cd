//! Reader of MessagePack, as far as the metadata of AMD's code objects needs it
//! (<https://github.com/msgpack/msgpack/blob/master/spec.md>). Every value has at least one byte: no loop is longer than the
//! data, whatever numbers of values they state, and no value nests calls.

/// A value, or the beginning of one that contains others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    Unsigned(u64),
    Text(&'a [u8]),
    /// Number of values that follow.
    Array(u32),
    /// Number of keys that follow, each with its value.
    Map(u32),
    Other,
}

/// Rest of the data.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    /// Returns the next value; nothing if it is malformed or the data ends.
    pub fn value(&mut self) -> Option<Value<'a>> {
        let [head] = *self.bytes(1)? else { return None };
        Some(match head {
            0x00..=0x7f => Value::Unsigned(head.into()),
            0x80..=0x8f => Value::Map((head & 0x0f).into()),
            0x90..=0x9f => Value::Array((head & 0x0f).into()),
            0xa0..=0xbf => Value::Text(self.bytes((head & 0x1f).into())?),
            // Nil, false and true.
            0xc0 | 0xc2 | 0xc3 => Value::Other,
            0xc1 => return None,
            // Bytes, and extensions, which have a type of one byte.
            0xc4..=0xc6 => self.skip_sized(1 << (head - 0xc4), 0)?,
            0xc7..=0xc9 => self.skip_sized(1 << (head - 0xc7), 1)?,
            0xca | 0xcb => self.skip_bytes(4 << (head - 0xca))?,
            0xcc..=0xcf => Value::Unsigned(self.number(1 << (head - 0xcc))?),
            // Signed numbers, and extensions of a fixed size.
            0xd0..=0xd3 => self.skip_bytes(1 << (head - 0xd0))?,
            0xd4..=0xd8 => self.skip_bytes(1 + (1 << (head - 0xd4)))?,
            0xd9..=0xdb => {
                let size = self.number(1 << (head - 0xd9))?;
                Value::Text(self.bytes(size)?)
            }
            0xdc | 0xdd => Value::Array(self.count(2 << (head - 0xdc))?),
            0xde | 0xdf => Value::Map(self.count(2 << (head - 0xde))?),
            // Negative numbers.
            0xe0..=0xff => Value::Other,
        })
    }

    /// Skips a value with all that it contains.
    pub fn skip(&mut self) -> Option<()> {
        let mut pending: u64 = 1;
        while pending > 0 {
            let inner = match self.value()? {
                Value::Array(count) => count.into(),
                Value::Map(count) => 2 * u64::from(count),
                _ => 0,
            };
            pending = (pending - 1).checked_add(inner)?;
        }
        Some(())
    }

    /// Reads a map whose keys are texts. `read` reads or skips the value of the key that it is given.
    pub fn map(&mut self, mut read: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        let Value::Map(count) = self.value()? else {
            return None;
        };
        for _ in 0..count {
            let Value::Text(key) = self.value()? else {
                return None;
            };
            read(self, key)?;
        }
        Some(())
    }

    /// Number of `size` bytes, the highest one first.
    fn number(&mut self, size: u64) -> Option<u64> {
        let bytes = self.bytes(size)?;
        Some(
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }

    fn count(&mut self, size: u64) -> Option<u32> {
        self.number(size)?.try_into().ok()
    }

    fn bytes(&mut self, size: u64) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(size).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    fn skip_bytes(&mut self, size: u64) -> Option<Value<'a>> {
        self.bytes(size).map(|_| Value::Other)
    }

    /// Skips bytes behind their number, with `more` bytes that it does not count.
    fn skip_sized(&mut self, size: u64, more: u64) -> Option<Value<'a>> {
        let count = self.number(size)?;
        self.skip_bytes(count.checked_add(more)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value of each format of the specification, with the value of 7 behind it.
    #[test]
    fn values_of_all_formats_are_read() {
        for (data, expected) in [
            (&b"\x05"[..], Value::Unsigned(5)),
            (b"\xcc\xff", Value::Unsigned(255)),
            (b"\xcd\x01\x02", Value::Unsigned(0x102)),
            (b"\xce\x01\x02\x03\x04", Value::Unsigned(0x102_0304)),
            (b"\xcf\xff\0\0\0\0\0\0\x01", Value::Unsigned(0xff << 56 | 1)),
            (b"\xa2ab", Value::Text(b"ab")),
            (b"\xd9\x01a", Value::Text(b"a")),
            (b"\xda\0\x01a", Value::Text(b"a")),
            (b"\xdb\0\0\0\x01a", Value::Text(b"a")),
            (b"\x90", Value::Array(0)),
            (b"\xdc\0\0", Value::Array(0)),
            (b"\xdd\0\0\0\0", Value::Array(0)),
            (b"\x80", Value::Map(0)),
            (b"\xde\0\0", Value::Map(0)),
            (b"\xdf\0\0\0\0", Value::Map(0)),
            (b"\xc0", Value::Other),
            (b"\xc2", Value::Other),
            (b"\xc3", Value::Other),
            (b"\xc4\x01a", Value::Other),
            (b"\xc5\0\x01a", Value::Other),
            (b"\xc6\0\0\0\x01a", Value::Other),
            (b"\xc7\x01ta", Value::Other),
            (b"\xc8\0\x01ta", Value::Other),
            (b"\xc9\0\0\0\x01ta", Value::Other),
            (b"\xca1234", Value::Other),
            (b"\xcb12345678", Value::Other),
            (b"\xd0\xff", Value::Other),
            (b"\xd1\xff\xff", Value::Other),
            (b"\xd2\xff\xff\xff\xff", Value::Other),
            (b"\xd3\xff\xff\xff\xff\xff\xff\xff\xff", Value::Other),
            (b"\xd4t1", Value::Other),
            (b"\xd5t12", Value::Other),
            (b"\xd6t1234", Value::Other),
            (b"\xd7t12345678", Value::Other),
            (b"\xd8t1234567812345678", Value::Other),
            (b"\xff", Value::Other),
        ] {
            let longer = [data, b"\x07"].concat();
            let mut reader = Reader::new(&longer);
            assert_eq!(reader.value(), Some(expected), "{data:x?}");
            assert_eq!(reader.value(), Some(Value::Unsigned(7)), "{data:x?}");
            assert_eq!(Reader::new(&longer).skip(), Some(()), "{data:x?}");
            for end in 0..data.len() {
                assert_eq!(Reader::new(&data[..end]).value(), None, "{data:x?}: {end}");
            }
        }
        assert_eq!(Reader::new(b"\xc1").value(), None);
    }

    #[test]
    fn nested_values_are_skipped() {
        let data = b"\x82\xa1a\x93\x01\x81\xa1b\x90\xa1c\xa1d\xc0\x07";
        let mut reader = Reader::new(data);
        assert_eq!(reader.skip(), Some(()));
        assert_eq!(reader.value(), Some(Value::Unsigned(7)));
    }

    /// Deep nesting, and numbers of values that no data has.
    #[test]
    fn hostile_data_ends() {
        let mut deep = vec![0x91; 1 << 20];
        assert_eq!(Reader::new(&deep).skip(), None);
        deep.push(0xc0);
        assert_eq!(Reader::new(&deep).skip(), Some(()));
        let large = b"\xdd\xff\xff\xff\xff".repeat(1 << 16);
        assert_eq!(Reader::new(&large).skip(), None);
        let map = b"\xdf\xff\xff\xff\xff\xa1a\x01";
        assert_eq!(Reader::new(map).map(|reader, _| reader.skip()), None);
        assert_eq!(Reader::new(b"\xdb\xff\xff\xff\xff").value(), None);
    }
}
