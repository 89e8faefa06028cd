//! Strings in read-only data: names of files that an image opens at run time appear nowhere else.

use std::collections::BTreeSet;

use memchr::{memchr, memmem, memrchr};
use object::elf;

use crate::consumed::ConsumedFn;
use crate::elf::ElfImage;

/// Maximum length of a string on each side of a needle: longer strings are cut.
const MAX_REACH: usize = 512;

/// Limit of the bytes of one file that are scanned: more than any library has except for data.
const MAX_SCANNED: usize = 256 * 1024 * 1024;

/// Limit of the strings of one section that are kept for each needle.
const MAX_STRINGS: usize = 256;

/// Number of bytes that are scanned between two calls of [`ConsumedFn`].
const STEP: usize = 1 << 20;

/// Strings in the read-only data of an image that contain one of `needles` and that `keep` accepts,
/// deduplicated and sorted. NUL bytes delimit strings; bytes that are not UTF-8 are replaced. Device
/// code is in separate sections, which are not scanned.
pub fn read_strings(
    image: &ElfImage<'_>,
    needles: &[&str],
    keep: &dyn Fn(&str) -> bool,
    consumed: ConsumedFn<'_>,
) -> BTreeSet<String> {
    let mut strings = BTreeSet::new();
    let mut bytes_left = MAX_SCANNED;
    for data in sections(image, ScannedPart::ReadOnlyData)
        .into_iter()
        .flatten()
    {
        let data = &data[..data.len().min(bytes_left)];
        bytes_left -= data.len();
        find_strings(data, needles, keep, consumed, &mut strings);
    }
    strings
}

/// Returns the `strings` that machine code may build from constants, or that may begin a longer string
/// built so. Compilers build short strings from constants in instructions; only the eight-byte constants
/// of x86-64 can be recognised.
pub fn code_may_contain<'t>(
    image: &ElfImage<'_>,
    strings: &[&'t str],
    consumed: ConsumedFn<'_>,
) -> Vec<&'t str> {
    // Strings without a whole word may be anywhere.
    let (mut open, mut contained): (Vec<&str>, Vec<&str>) = strings
        .iter()
        .partition(|string| first_word(string).is_some());
    let mut bytes_left = MAX_SCANNED;
    for data in sections(image, ScannedPart::Code) {
        let Some(data) = data.filter(|data| data.len() <= bytes_left) else {
            return strings.to_vec();
        };
        bytes_left -= data.len();
        find_words(data, &mut open, &mut contained, consumed);
    }
    contained
}

fn first_word(string: &str) -> Option<[u8; 8]> {
    string.as_bytes().first_chunk().copied()
}

/// Moves the strings of `open` whose first word occurs in `data` to `contained`.
fn find_words<'t>(
    data: &[u8],
    open: &mut Vec<&'t str>,
    contained: &mut Vec<&'t str>,
    consumed: ConsumedFn<'_>,
) {
    for start in (0..data.len()).step_by(STEP) {
        let end = data.len().min(start + STEP);
        // A word may cross the end.
        let window = &data[start..data.len().min(end + 7)];
        open.retain(|string| {
            let is_contained =
                first_word(string).is_some_and(|word| memmem::find(window, &word).is_some());
            if is_contained {
                contained.push(*string);
            }
            !is_contained
        });
        consumed(&data[start..end]);
    }
}

/// ScannedPart of an image that is scanned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScannedPart {
    ReadOnlyData,
    Code,
}

/// Bytes of the sections; `None` for one that cannot be read.
fn sections<'d>(image: &ElfImage<'d>, part: ScannedPart) -> Vec<Option<&'d [u8]>> {
    // A file with truncated section headers still loads, but has no sections to scan.
    let is_foreign = part == ScannedPart::Code && image.header.machine != elf::EM_X86_64;
    let Some(sections) = image.named_sections().filter(|_| !is_foreign) else {
        return vec![None];
    };
    sections
        .filter(|(name, section)| {
            let is_part = match part {
                // `.lrodata` is `.rodata` of the large code model (x86-64 psABI, "Special Sections").
                ScannedPart::ReadOnlyData => {
                    name.starts_with(b".rodata") || name.starts_with(b".lrodata")
                }
                ScannedPart::Code => section.flags & elf::SHF_EXECINSTR.0 != 0,
            };
            is_part && section.kind == elf::SHT_PROGBITS
        })
        .map(|(_, section)| section.data(image.source))
        .collect()
}

fn find_strings(
    data: &[u8],
    needles: &[&str],
    keep: &dyn Fn(&str) -> bool,
    consumed: ConsumedFn<'_>,
    strings: &mut BTreeSet<String>,
) {
    let mut searches: Vec<Search<'_>> = needles.iter().map(|needle| Search::new(needle)).collect();
    for start in (0..data.len()).step_by(STEP) {
        let end = data.len().min(start + STEP);
        for search in &mut searches {
            search.find(data, end, keep, strings);
        }
        consumed(&data[start..end]);
    }
}

/// State of the search for one needle.
struct Search<'n> {
    finder: memmem::Finder<'n>,
    /// Position from which to search.
    position: usize,
    /// End of the last string.
    string_end: usize,
    /// Number of strings that may still be found.
    strings_left: usize,
}

impl<'n> Search<'n> {
    fn new(needle: &'n str) -> Self {
        Self {
            finder: memmem::Finder::new(needle.as_bytes()),
            position: 0,
            string_end: 0,
            strings_left: MAX_STRINGS,
        }
    }

    /// Finds the strings that begin before `end`.
    fn find(
        &mut self,
        data: &[u8],
        end: usize,
        keep: &dyn Fn(&str) -> bool,
        strings: &mut BTreeSet<String>,
    ) {
        let overhang = self.finder.needle().len().saturating_sub(1);
        let window = &data[..data.len().min(end + overhang)];
        while self.strings_left > 0 && self.position < end {
            let Some(distance) = self.finder.find(&window[self.position..]) else {
                self.position = end;
                return;
            };
            let needle = self.position + distance;
            let first = needle.saturating_sub(MAX_REACH).max(self.string_end);
            let start = memrchr(0, &data[first..needle]).map_or(first, |nul| first + nul + 1);
            let tail = &data[needle..data.len().min(needle + MAX_REACH)];
            self.string_end = needle + memchr(0, tail).unwrap_or(tail.len());
            // Continues after the string, so that any bytes are scanned in one pass.
            self.position = self.string_end;
            let string = String::from_utf8_lossy(&data[start..self.string_end]);
            if keep(&string) && strings.insert(string.into_owned()) {
                self.strings_left -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn libraries(data: &[u8]) -> Vec<String> {
        let mut strings = BTreeSet::new();
        let consumed = RefCell::new(0);
        find_strings(
            data,
            &[".so"],
            &|string| !string.contains("libm"),
            &|part| *consumed.borrow_mut() += part.len(),
            &mut strings,
        );
        assert_eq!(consumed.into_inner(), data.len());
        strings.into_iter().collect()
    }

    #[test]
    fn strings_are_whole() {
        assert_eq!(
            libraries(b"liba.so\0x\0/b/libb.so.1\0libm.so\0nothing\0\xff.so\0liba.so"),
            ["/b/libb.so.1", "liba.so", "\u{fffd}.so"]
        );
    }

    #[test]
    fn long_strings_are_cut_and_many_are_too_many() {
        let long = [
            &vec![b'a'; 3 * MAX_REACH][..],
            b".so",
            &vec![b'b'; 3 * MAX_REACH],
        ]
        .concat();
        assert_eq!(libraries(&long)[0].len(), 2 * MAX_REACH);
        let many: String = (0..2 * MAX_STRINGS).map(|n| format!("{n}.so\0")).collect();
        assert_eq!(libraries(many.as_bytes()).len(), MAX_STRINGS);
    }

    #[test]
    fn strings_lie_across_steps() {
        for shift in 0..12 {
            let mut data = vec![0; 2 * STEP];
            let string = b"/b/libb.so.1";
            data[STEP - shift..][..string.len()].copy_from_slice(string);
            assert_eq!(libraries(&data), ["/b/libb.so.1"], "{shift}");
        }
    }

    #[test]
    fn words_of_code_lie_across_steps() {
        for shift in 0..9 {
            let mut data = vec![0; 2 * STEP];
            data[STEP - shift..][..8].copy_from_slice(b"libcuda.");
            let (mut open, mut contained) = (vec!["libcuda.so", "libnvidia-ml.so"], vec![]);
            find_words(&data, &mut open, &mut contained, &|_| ());
            assert_eq!(contained, ["libcuda.so"]);
            assert_eq!(open, ["libnvidia-ml.so"]);
        }
    }
}
