//! The `ar` format as GNU and LLVM write it: headers, the index, long names.

use std::io::Write;

use crate::ids::MemberId;

pub const MAGIC: &[u8] = b"!<arch>\n";
pub const HEADER_SIZE: u64 = 60;

/// An ordinary member of the archive.
pub struct NamedMember<'m> {
    pub name: &'m [u8],
    pub member: MemberId,
}

/// Formats a header (`struct ar_hdr` of `<ar.h>`) without time, owner, or other fields that differ
/// between runs.
pub fn header(name: &str, size: u64) -> [u8; 60] {
    let mut header = *b"                0           0     0     644     0         `\n";
    header[..name.len()].copy_from_slice(name.as_bytes());
    // A size of more than ten digits does not fit: `Layout::new` refuses it.
    let _ = write!(&mut header[48..58], "{size}");
    header
}

/// Number of padding bytes after a member, so that the next begins at an even offset.
pub fn padding(size: u64) -> u64 {
    size % 2
}

/// Size of a member with header and padding.
pub fn footprint(size: u64) -> u64 {
    HEADER_SIZE + size + padding(size)
}

/// Names of members in their headers, and the table of names that are too long for a header.
pub struct MemberNames {
    pub fields: Vec<String>,
    /// The contents of the member `//`.
    pub long: Vec<u8>,
}

impl MemberNames {
    pub fn new<'n>(names: impl Iterator<Item = &'n [u8]>) -> Self {
        let mut all = Self {
            fields: Vec::new(),
            long: Vec::new(),
        };
        for name in names {
            let short = std::str::from_utf8(name).ok().filter(|name| {
                let plain = name.bytes().all(|byte| byte > b' ' && byte != b'/');
                // Names that begin with `#1` are long ones in BSD's form.
                plain
                    && !name.is_empty()
                    && !name.starts_with("#1")
                    && name.len() < 16
                    && name.is_ascii()
            });
            all.fields.push(match short {
                Some(name) => [name, "/"].concat(),
                None => {
                    let at = all.long.len();
                    all.long.extend(name.iter().map(|&byte| match byte {
                        // Terminators of names, in this or other tools.
                        b'\n' | b'/' | 0 => b'_',
                        byte => byte,
                    }));
                    all.long.extend(b"/\n");
                    format!("/{at}")
                }
            });
        }
        all
    }
}

/// The archive symbol table, `/` or `/SYM64/`: the member that defines each symbol.
pub struct Index<'d> {
    symbols: Vec<IndexEntry<'d>>,
    texts: u64,
    /// Whether offsets have 64 bits: for archives of 4 GiB and more.
    pub wide: bool,
}

/// A symbol, and the position of its member among those with an offset.
pub struct IndexEntry<'d> {
    pub name: &'d [u8],
    pub member: usize,
}

impl<'d> Index<'d> {
    /// The symbol table with these entries, in the order of their members.
    pub fn new(symbols: Vec<IndexEntry<'d>>) -> Self {
        let texts = symbols.iter().map(|one| one.name.len() as u64 + 1).sum();
        Self {
            symbols,
            texts,
            wide: false,
        }
    }

    pub fn name(&self) -> &'static str {
        if self.wide { "/SYM64/" } else { "/" }
    }

    pub fn size(&self) -> u64 {
        let number = if self.wide { 8 } else { 4 };
        number * (self.symbols.len() as u64 + 1) + self.texts
    }

    /// Bytes of the index for members at these offsets.
    pub fn bytes(&self, offsets: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(usize::try_from(self.size()).unwrap_or(0));
        let mut number = |number: u64| {
            if self.wide {
                bytes.extend(number.to_be_bytes());
            } else {
                bytes.extend((number as u32).to_be_bytes());
            }
        };
        number(self.symbols.len() as u64);
        for symbol in &self.symbols {
            number(offsets[symbol.member]);
        }
        for symbol in &self.symbols {
            bytes.extend(symbol.name);
            bytes.push(0);
        }
        bytes
    }
}
