//! Tables of kpack, ROCm's split of libraries: code objects in `.kpack` archives beside the libraries, and their names in
//! a section of each library (`shared/kpack` of ROCm/rocm-systems: `elf/kpack_transform.py`, `runtime/src/toc_parser.cpp`).
//! No package of the tests has one.
//!
//! Both are MessagePack; of an archive, it begins at the offset in bytes 8..16.

/// Code objects of a library in kpack archives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KpackReference {
    /// Paths relative to the library's directory. `@GFXARCH@` stands for an architecture.
    pub paths: Vec<String>,
    /// Name of the library in the archives.
    pub name: String,
}

/// Limit above the paths and architectures of any real table.
const MAX_TEXTS: usize = 1024;

/// The contents of a section `.rocm_kpack_ref`.
pub fn kpack_reference(section: &[u8]) -> Option<KpackReference> {
    let mut reference = KpackReference::default();
    let mut reader = Reader(section);
    for _ in 0..reader.map()? {
        match reader.text()? {
            b"kpack_search_paths" => reference.paths = reader.texts()?,
            b"kernel_name" => reference.name = name(reader.text()?),
            _ => reader.skip()?,
        }
    }
    Some(reference)
}

/// Architectures of a kpack archive; `None` if its table is damaged.
pub fn kpack_archs(archive: &[u8]) -> Option<Vec<String>> {
    let offset = u64::from_le_bytes(*archive.get(8..)?.first_chunk()?);
    let mut reader = Reader(archive.get(usize::try_from(offset).ok()?..)?);
    for _ in 0..reader.map()? {
        match reader.text()? {
            b"gfx_arches" => return reader.texts(),
            _ => reader.skip()?,
        }
    }
    None
}

fn name(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// Reader of MessagePack (msgpack/spec.md).
struct Reader<'d>(&'d [u8]);

impl<'d> Reader<'d> {
    fn bytes(&mut self, size: usize) -> Option<&'d [u8]> {
        let (bytes, rest) = self.0.split_at_checked(size)?;
        self.0 = rest;
        Some(bytes)
    }

    /// A big-endian number of this size.
    fn number(&mut self, size: usize) -> Option<usize> {
        let bytes = self.bytes(size)?;
        let value = bytes
            .iter()
            .fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()
    }

    /// Number of pairs of a map.
    fn map(&mut self) -> Option<usize> {
        match self.number(1)? {
            form @ 0x80..=0x8F => Some(form & 0xF),
            0xDE => self.number(2),
            0xDF => self.number(4),
            _ => None,
        }
    }

    fn text(&mut self) -> Option<&'d [u8]> {
        let size = match self.number(1)? {
            form @ 0xA0..=0xBF => form & 0x1F,
            0xD9 => self.number(1)?,
            0xDA => self.number(2)?,
            0xDB => self.number(4)?,
            _ => return None,
        };
        self.bytes(size)
    }

    /// An array of texts.
    fn texts(&mut self) -> Option<Vec<String>> {
        let count = match self.number(1)? {
            form @ 0x90..=0x9F => form & 0xF,
            0xDC => self.number(2)?,
            0xDD => self.number(4)?,
            _ => return None,
        };
        if count > MAX_TEXTS {
            return None;
        }
        (0..count).map(|_| self.text().map(name)).collect()
    }

    /// Skips a value with all that it contains.
    fn skip(&mut self) -> Option<()> {
        let mut values = 1_usize;
        while values > 0 {
            values -= 1;
            let form = self.number(1)?;
            let (size, contents) = match form {
                // Numbers of 7 bits, nil, false and true.
                0x00..=0x7F | 0xC0..=0xC3 | 0xE0..=0xFF => (0, 0),
                0x80..=0x8F => (0, 2 * (form & 0xF)),
                0x90..=0x9F => (0, form & 0xF),
                0xA0..=0xBF => (form & 0x1F, 0),
                // Binary, then extensions, which have a byte for their type.
                0xC4..=0xC6 => (self.number(1 << (form - 0xC4))?, 0),
                0xC7..=0xC9 => (self.number(1 << (form - 0xC7))?.checked_add(1)?, 0),
                0xCA => (4, 0),
                0xCB => (8, 0),
                // Numbers of 1 to 8 bytes, without and with a sign.
                0xCC..=0xCF => (1 << (form - 0xCC), 0),
                0xD0..=0xD3 => (1 << (form - 0xD0), 0),
                0xD4..=0xD8 => (1 + (1 << (form - 0xD4)), 0),
                0xD9..=0xDB => (self.number(1 << (form - 0xD9))?, 0),
                0xDC | 0xDD => (0, self.number(2 << (form - 0xDC))?),
                _ => (0, self.number(2 << (form - 0xDE))?.checked_mul(2)?),
            };
            values = values.checked_add(contents)?;
            self.bytes(size)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// MessagePack of `{"x": [{"y": 300}, true, 1.5], "kpack_search_paths": […], "kernel_name": "lib/liba.so"}`.
    fn reference() -> Vec<u8> {
        [
            &b"\x83\xa1x\x93\x81\xa1y\xcd\x01\x2c\xc3\xcb\x3f\xf8\0\0\0\0\0\0"[..],
            b"\xb2kpack_search_paths\x91\xd9\x22../.kpack/blas_lib_@GFXARCH@.kpack",
            b"\xabkernel_name\xablib/liba.so",
        ]
        .concat()
    }

    /// An archive of `{"toc": {}, "gfx_arches": ["gfx942", "gfx1100"]}`.
    fn archive() -> Vec<u8> {
        let table = b"\x82\xa3toc\x80\xaagfx_arches\x92\xa6gfx942\xa7gfx1100";
        [b"KPAK\x01\0\0\0\x10\0\0\0\0\0\0\0", &table[..]].concat()
    }

    #[test]
    fn tables_of_kpack_are_read() {
        let expected = KpackReference {
            paths: vec!["../.kpack/blas_lib_@GFXARCH@.kpack".to_owned()],
            name: "lib/liba.so".to_owned(),
        };
        assert_eq!(kpack_reference(&reference()), Some(expected));
        assert_eq!(kpack_archs(&archive()).unwrap(), ["gfx942", "gfx1100"]);
        for size in 0..reference().len() {
            assert_eq!(kpack_reference(&reference()[..size]), None, "{size}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = kpack_reference(&bytes);
            let _ = kpack_archs(&bytes);
        }
    }
}
