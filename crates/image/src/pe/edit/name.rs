//! Places for the name of the stub library.

use object::pe;

use super::headers::{Headers, SECTION_HEADER, Section, field};
use super::tables::Descriptor;
use crate::edit::{EditProblem, Piece};

/// Name of the section that an edit adds.
const SECTION_NAME: &[u8; 8] = b".gpudlls";

/// Largest number of sections that the loader accepts (PE Format, "COFF File Header").
const MAX_SECTIONS: usize = 96;

/// A place for a name, and what makes room there.
pub(super) struct Place {
    /// Address of the name.
    pub(super) address: u32,
    /// New bytes in the file, by offset.
    pub(super) changes: Vec<(u64, Vec<u8>)>,
    /// New bytes at the end of the file.
    pub(super) added: Option<Piece>,
}

/// Writes the name over one that it replaces, into the padding of a section, or into a new section. The file ends at
/// `length`.
pub(super) fn place(
    stub: &str,
    replaced: &[Descriptor],
    bytes: &[u8],
    length: u64,
    headers: &Headers,
) -> Result<Place, EditProblem> {
    over_replaced(stub, replaced)
        .or_else(|| in_padding(stub, bytes, headers))
        .map_or_else(|| in_new_section(stub, bytes, length, headers), Ok)
}

fn over_replaced(stub: &str, replaced: &[Descriptor]) -> Option<Place> {
    let descriptor = replaced
        .iter()
        .find(|descriptor| stub.len() <= descriptor.length)?;
    let mut text = stub.as_bytes().to_vec();
    text.resize(descriptor.length, 0);
    Some(Place {
        address: descriptor.address,
        changes: vec![(descriptor.name, text)],
        added: None,
    })
}

/// Padding of a section up to the file's alignment. It is loaded, too, since it is part of the last page.
fn in_padding(stub: &str, bytes: &[u8], headers: &Headers) -> Option<Place> {
    let mut sections: Vec<&Section> = headers.sections.iter().collect();
    let imports = headers
        .section(headers.imports)
        .map(|section| section.address);
    // That of the imports first, then those that are not written to.
    sections.sort_by_key(|section| {
        let is_writable = section.flags.contains(pe::IMAGE_SCN_MEM_WRITE);
        (Some(section.address) != imports, is_writable)
    });
    sections.into_iter().find_map(|section| {
        let is_data = [pe::IMAGE_SCN_CNT_INITIALIZED_DATA, pe::IMAGE_SCN_MEM_READ]
            .iter()
            .all(|flag| section.flags.contains(*flag));
        let is_special = [
            pe::IMAGE_SCN_MEM_EXECUTE,
            pe::IMAGE_SCN_MEM_DISCARDABLE,
            pe::IMAGE_SCN_MEM_SHARED,
        ]
        .iter()
        .any(|flag| section.flags.contains(*flag));
        let size = u32::try_from(stub.len() + 1).ok()?;
        let new_size = section.size.checked_add(size)?;
        let page_end = section
            .size
            .checked_next_multiple_of(headers.section_alignment)?;
        if !is_data || is_special || section.size == 0 || new_size > page_end {
            return None;
        }
        let start = section.file.start + u64::from(section.size);
        let end = start + u64::from(size);
        let padding = bytes.get(start as usize..end as usize)?;
        if end > section.file.end || padding.iter().any(|byte| *byte != 0) {
            return None;
        }
        Some(Place {
            address: section.address.checked_add(section.size)?,
            changes: vec![
                (start, stub.as_bytes().to_vec()),
                // VirtualSize.
                (section.header + 8, new_size.to_le_bytes().to_vec()),
            ],
            added: None,
        })
    })
}

fn in_new_section(
    stub: &str,
    bytes: &[u8],
    length: u64,
    headers: &Headers,
) -> Result<Place, EditProblem> {
    // Programs find what follows the sections by their end, or by that of the file.
    if length > headers.sections_end_in_file() && length != headers.symbols_end {
        return Err(EditProblem::Layout("other data follows its sections"));
    }
    let header_end = headers.sections_end + SECTION_HEADER;
    let free = bytes.get(headers.sections_end as usize..header_end as usize);
    let starts = (headers.sections.iter()).filter(|section| !section.file.is_empty());
    let first = starts.map(|section| section.file.start).min();
    if headers.sections.len() >= MAX_SECTIONS
        || header_end > headers.size_of_headers.min(first.unwrap_or(u64::MAX))
        || free.is_none_or(|free| free.iter().any(|byte| *byte != 0))
    {
        return Err(EditProblem::Layout("no room for a section header"));
    }
    let too_large = EditProblem::Layout("it would be too large");
    let alignment = headers.file_alignment;
    let offset = length.checked_next_multiple_of(alignment.into());
    let offset = offset.and_then(|offset| u32::try_from(offset).ok());
    let size = u32::try_from(stub.len() + 1).ok();
    let file_size = size.and_then(|size| size.checked_next_multiple_of(alignment));
    let address = headers
        .size_of_image
        .checked_next_multiple_of(headers.section_alignment);
    let (Some(offset), Some(size), Some(file_size), Some(address)) =
        (offset, size, file_size, address)
    else {
        return Err(too_large);
    };
    // Sections are adjacent (PE Format, "Section Table"): Windows, unlike wine, rejects an image with a gap.
    let memory_end = (headers.sections.last())
        .map(|section| match section.size {
            0 => u64::from(section.address) + section.file.end - section.file.start,
            size => u64::from(section.address) + u64::from(size),
        })
        .and_then(|end| end.checked_next_multiple_of(headers.section_alignment.into()));
    if memory_end != Some(address.into()) {
        return Err(EditProblem::Layout(
            "the image does not end with its last section",
        ));
    }
    let image_end = address.checked_add(size);
    let image_size =
        image_end.and_then(|end| end.checked_next_multiple_of(headers.section_alignment));
    let image_size = image_size.ok_or(too_large)?;
    let data_size = headers.size_of_initialized_data.wrapping_add(file_size);
    let count = headers.sections.len() as u16 + 1;
    let mut content = vec![0; (u64::from(offset) - length) as usize];
    content.extend(stub.as_bytes());
    content.resize(content.len() + file_size as usize - stub.len(), 0);
    let optional = headers.optional;
    Ok(Place {
        address,
        changes: vec![
            (
                optional - field::NUMBER_OF_SECTIONS_BEFORE,
                count.to_le_bytes().to_vec(),
            ),
            (
                optional + field::SIZE_OF_INITIALIZED_DATA,
                data_size.to_le_bytes().to_vec(),
            ),
            (
                optional + field::SIZE_OF_IMAGE,
                image_size.to_le_bytes().to_vec(),
            ),
            (
                headers.sections_end,
                section_header(address, size, offset, file_size),
            ),
        ],
        added: Some(Piece::New(content)),
    })
}

/// Header of the added section, which is read only.
fn section_header(address: u32, size: u32, offset: u32, file_size: u32) -> Vec<u8> {
    let mut header = SECTION_NAME.to_vec();
    for value in [size, address, file_size, offset, 0, 0, 0] {
        header.extend(value.to_le_bytes());
    }
    let flags = pe::IMAGE_SCN_CNT_INITIALIZED_DATA.0 | pe::IMAGE_SCN_MEM_READ.0;
    header.extend(flags.to_le_bytes());
    header
}
