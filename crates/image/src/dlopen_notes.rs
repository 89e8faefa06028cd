//! Notes by which an image names the libraries that it opens.

use object::{Endianness, elf};

use crate::elf::{ElfImage, Notes};

/// Owner and type of the notes (UAPI.12, "dlopen() Metadata for ELF Files").
const OWNER: &[u8] = b"FDO";
const TYPE: elf::NoteType = elf::NoteType(0x407c_0c0a);

/// Limit of the notes of one image that are read, of whatever type, since segments of a damaged file may overlap.
const MAX_NOTES: usize = 4096;

/// Limit of the bytes of their texts; 40 notes of libsystemd-shared have 6 KiB.
const MAX_BYTES: usize = 1 << 20;

/// JSON texts of the notes, in the file's order. The specification identifies them by their type, not by a section's
/// name. Malformed notes count as absent: no loader rejects a file for them.
///
/// Sections come first: mold puts notes of different alignments into one segment, which no reader can walk.
pub(crate) fn dlopen_notes(image: &ElfImage<'_>) -> Vec<String> {
    let mut reader = Reader::new(image.endian);
    for section in image.sections() {
        reader.read(image.section_notes(section));
    }
    if image.sections().is_empty() {
        for segment in &image.segments {
            reader.read(image.segment_notes(segment));
        }
    }
    reader.texts
}

/// Texts that were read, and limits of what is still read.
struct Reader {
    endian: Endianness,
    texts: Vec<String>,
    notes_left: usize,
    bytes_left: usize,
}

impl Reader {
    fn new(endian: Endianness) -> Self {
        Self {
            endian,
            texts: Vec::new(),
            notes_left: MAX_NOTES,
            bytes_left: MAX_BYTES,
        }
    }

    /// Adds the notes of a section or segment.
    fn read(&mut self, notes: Option<Notes<'_>>) {
        let Some(mut notes) = notes else {
            return;
        };
        while let Ok(Some(note)) = notes.next() {
            if self.notes_left == 0 {
                return;
            }
            self.notes_left -= 1;
            if note.name() != OWNER || note.n_type(self.endian) != TYPE {
                continue;
            }
            let desc = note.desc();
            let end = desc.iter().position(|byte| *byte == 0);
            let text = &desc[..end.unwrap_or(desc.len())];
            if text.len() > self.bytes_left {
                return;
            }
            self.bytes_left -= text.len();
            if let Ok(text) = std::str::from_utf8(text) {
                self.texts.push(text.to_owned());
            }
        }
    }
}
