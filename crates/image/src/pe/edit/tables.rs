//! Entries of the tables of imports.

use super::super::image::PeImage;
use super::headers::Headers;
use crate::edit::EditProblem;

/// Sizes of the entries, and offsets of the name's address in them (PE Format, "Import Directory Table", "Delay-Load Directory
/// Table").
const IMPORT: (u64, u64) = (20, 12);
const DELAY_IMPORT: (u64, u64) = (32, 4);

/// The entry of a DLL, as far as its name is concerned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Descriptor {
    /// Offset in the file of the name's address.
    pub(super) name_field: u64,
    /// Offset in the file of the name.
    pub(super) name: u64,
    /// Address of the name.
    pub(super) address: u32,
    /// Length of the name.
    pub(super) length: usize,
}

/// The entries of all DLLs, in the order of the image's imports and delayed imports.
pub(super) fn descriptors(
    bytes: &[u8],
    headers: &Headers,
    image: &PeImage<'_>,
) -> Result<Vec<Descriptor>, EditProblem> {
    let mut descriptors = Vec::new();
    for (table, (size, name_offset), imports) in [
        (headers.imports, IMPORT, &image.imports),
        (headers.delay_imports, DELAY_IMPORT, &image.delay_imports),
    ] {
        for (entry, import) in (0..).step_by(size as usize).zip(imports) {
            let outside = EditProblem::Malformed("address of a table is outside the file");
            let offset = headers.offset(table).ok_or(outside.clone())? + entry;
            let name_field = offset + name_offset;
            let value = word(bytes, name_field).ok_or(outside.clone())?;
            // Fields of Visual C++ 6, of 32 bits only, are no addresses relative to the image.
            if size == DELAY_IMPORT.0 && word(bytes, offset).is_none_or(|flags| flags & 1 == 0) {
                return Err(EditProblem::Malformed(
                    "delayed imports have addresses of 32 bits",
                ));
            }
            let name = headers.offset(value).ok_or(outside.clone())?;
            let text = bytes.get(name as usize..).unwrap_or_default();
            if !text.starts_with(import.dll.as_bytes()) {
                return Err(outside);
            }
            descriptors.push(Descriptor {
                name_field,
                name,
                address: value,
                length: import.dll.len(),
            });
        }
    }
    Ok(descriptors)
}

fn word(bytes: &[u8], offset: u64) -> Option<u32> {
    let bytes = bytes.get(usize::try_from(offset).ok()?..)?;
    bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
}
