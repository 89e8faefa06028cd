//! Texts in read-only data: names of files that an image opens by itself stand nowhere else.

use std::collections::BTreeSet;

use memchr::{memchr, memmem, memrchr};
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, elf};

use crate::elf::{Image, for_class};
use crate::error::{Error, Problem};

/// How far a text reaches to each side of what was looked for: longer ones are cut there.
const REACH: usize = 512;

/// How many bytes of one file are looked at: more than any library has that is not data.
const LOOKED_AT: usize = 256 * 1024 * 1024;

/// How many texts of one file are kept.
const MOST: usize = 256;

/// The texts in the read-only data of an image that contain one of `needles` and that `keep`
/// wants, each once, sorted. A text is what lies between two NUL bytes; bytes that are not UTF-8
/// are replaced. Device code has sections of its own, which are not looked at.
pub fn read_texts(
    bytes: &[u8],
    needles: &[&str],
    keep: &dyn Fn(&str) -> bool,
) -> Result<BTreeSet<String>, Error> {
    Ok(read(bytes, needles, keep)?)
}

fn read(
    bytes: &[u8],
    needles: &[&str],
    keep: &dyn Fn(&str) -> bool,
) -> Result<BTreeSet<String>, Problem> {
    for_class!(bytes, texts, needles, keep)
}

fn texts<Elf: FileHeader<Endian = Endianness>>(
    bytes: &[u8],
    needles: &[&str],
    keep: &dyn Fn(&str) -> bool,
) -> Result<BTreeSet<String>, Problem> {
    let image = Image::<Elf>::parse(bytes)?;
    let (endian, data) = (image.endian, image.data());
    let mut found = BTreeSet::new();
    // A file that is cut off there still loads; it just tells nothing.
    let Ok(sections) = image.header().sections(endian, data) else {
        return Ok(found);
    };
    let mut left = LOOKED_AT;
    for section in sections.iter() {
        let name = sections.section_name(endian, section).unwrap_or_default();
        // `.lrodata` is the same in the large code model (x86-64 psABI, "Special Sections").
        let read_only = name.starts_with(b".rodata") || name.starts_with(b".lrodata");
        if !read_only || section.sh_type(endian) != elf::SHT_PROGBITS {
            continue;
        }
        if let Ok(data) = section.data(endian, data) {
            let data = &data[..data.len().min(left)];
            left -= data.len();
            for needle in needles {
                find(data, needle.as_bytes(), keep, &mut found);
            }
        }
    }
    Ok(found)
}

/// Whether machine code may put together a text that begins like `text`. Compilers build short
/// strings from constants in instructions; of x86-64's, which hold eight bytes, that can be told.
pub fn code_may_have(bytes: &[u8], text: &str) -> bool {
    let word = text.as_bytes().first_chunk::<8>();
    word.is_none_or(|word| code_has(bytes, word).unwrap_or(true))
}

fn code_has(bytes: &[u8], word: &[u8; 8]) -> Result<bool, Problem> {
    for_class!(bytes, is_in_code, word)
}

fn is_in_code<Elf: FileHeader<Endian = Endianness>>(
    bytes: &[u8],
    word: &[u8; 8],
) -> Result<bool, Problem> {
    let image = Image::<Elf>::parse(bytes)?;
    let (endian, data) = (image.endian, image.data());
    let Ok(sections) = image.header().sections(endian, data) else {
        return Ok(true);
    };
    let mut code = sections.iter().filter(|section| {
        let flags = section.sh_flags(endian);
        flags.contains(elf::SHF_EXECINSTR) && section.sh_type(endian) == elf::SHT_PROGBITS
    });
    let has = |section: &Elf::SectionHeader| {
        let data = section.data(endian, data);
        data.is_err() || data.is_ok_and(|data| memmem::find(data, word).is_some())
    };
    Ok(image.header().e_machine(endian) != elf::EM_X86_64 || code.any(has))
}

fn find(data: &[u8], needle: &[u8], keep: &dyn Fn(&str) -> bool, found: &mut BTreeSet<String>) {
    let finder = memmem::Finder::new(needle);
    let mut from = 0;
    while let Some(next) = finder.find(&data[from..]) {
        if found.len() >= MOST {
            return;
        }
        let at = from + next;
        let before = &data[at.saturating_sub(REACH).max(from)..at];
        let after = &data[at..data.len().min(at + REACH)];
        let before = &before[memrchr(0, before).map_or(0, |nul| nul + 1)..];
        let after = &after[..memchr(0, after).unwrap_or(after.len())];
        // On behind the text, so that the work is that of one pass whatever the bytes are.
        from = at + after.len();
        let text = String::from_utf8_lossy(&data[at - before.len()..from]);
        if keep(&text) {
            found.insert(text.into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(data: &[u8]) -> Vec<String> {
        let mut found = BTreeSet::new();
        find(data, b".so", &|text| !text.contains("libm"), &mut found);
        found.into_iter().collect()
    }

    #[test]
    fn texts_are_whole() {
        assert_eq!(
            found(b"liba.so\0x\0/b/libb.so.1\0libm.so\0nothing\0\xff.so\0liba.so"),
            ["/b/libb.so.1", "liba.so", "\u{fffd}.so"]
        );
    }

    #[test]
    fn long_texts_are_cut_and_many_are_too_many() {
        let long = [&vec![b'a'; 3 * REACH][..], b".so", &vec![b'b'; 3 * REACH]].concat();
        assert_eq!(found(&long)[0].len(), 2 * REACH);
        let many: String = (0..2 * MOST).map(|n| format!("{n}.so\0")).collect();
        assert_eq!(found(many.as_bytes()).len(), MOST);
    }
}
