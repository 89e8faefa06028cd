//! Headers of an image that an edit changes, and what the loader demands of them.

use std::ops::Range;

use object::pe::{self, ImageDosHeader, ImageLoadConfigDirectory64, ImageNtHeaders64};
use object::read::pe::{DataDirectories, ImageNtHeaders, ImageOptionalHeader};
use object::{LittleEndian as LE, ReadRef};

use crate::edit::EditProblem;

/// Offsets in the optional header, or in the file header (PE Format, "Optional Header Windows-Specific Fields").
pub(super) mod field {
    pub const SIZE_OF_INITIALIZED_DATA: u64 = 8;
    pub const SIZE_OF_IMAGE: u64 = 56;
    pub const CHECKSUM: u64 = 64;
    pub const DIRECTORIES: u64 = 112;
    /// Before the optional header, in the file header of 20 bytes.
    pub const NUMBER_OF_SECTIONS_BEFORE: u64 = 18;
}

/// Size of a section header.
pub(super) const SECTION_HEADER: u64 = pe::IMAGE_SIZEOF_SECTION_HEADER as u64;

/// Size of an entry of the data directories.
const DIRECTORY: u64 = 8;

/// Smallest alignment of sections in the file: the loader rounds offsets down to sectors.
const SECTOR: u32 = 512;

/// Largest alignment of sections in the file (PE Format, "FileAlignment").
const MAX_FILE_ALIGNMENT: u32 = 64 << 10;

/// Size of a page: the loader maps sections of a smaller alignment in another way.
const PAGE: u32 = 4096;

/// LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR, a flag of LoadLibraryEx.
const SEARCH_DLL_LOAD_DIR: u16 = 0x100;

/// A section of the image.
#[derive(Debug, Clone)]
pub(super) struct Section {
    /// Offset of its header in the file.
    pub(super) header: u64,
    pub(super) address: u32,
    /// Size in memory.
    pub(super) size: u32,
    /// Bytes in the file.
    pub(super) file: Range<u64>,
    pub(super) flags: pe::SectionFlags,
}

/// Places and values in the headers.
pub(super) struct Headers {
    /// Offset of the optional header.
    pub(super) optional: u64,
    /// In the order of their addresses.
    pub(super) sections: Vec<Section>,
    /// Offset behind the section headers.
    pub(super) sections_end: u64,
    pub(super) size_of_headers: u64,
    pub(super) size_of_image: u32,
    pub(super) size_of_initialized_data: u32,
    pub(super) section_alignment: u32,
    pub(super) file_alignment: u32,
    pub(super) checksum: u32,
    /// Addresses of the tables of imports and delayed imports; 0: none.
    pub(super) imports: u32,
    pub(super) delay_imports: u32,
    /// Offset of the directory of the signature.
    pub(super) signature_directory: u64,
    /// The signature, at the end of the file.
    pub(super) signature: Option<Range<u64>>,
    /// Whether the system loads the image with a valid signature only.
    pub(super) must_be_signed: bool,
    /// Offset behind COFF symbols and their strings; 0: none.
    pub(super) symbols_end: u64,
}

impl Headers {
    /// Reads the headers of an image of 64 bits, which was parsed before.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, EditProblem> {
        let cut = |_| EditProblem::Truncated("PE headers");
        let dos = ImageDosHeader::parse(bytes).map_err(cut)?;
        let start = u64::from(dos.nt_headers_offset());
        let mut offset = start;
        let (nt, directories) = ImageNtHeaders64::parse(bytes, &mut offset).map_err(cut)?;
        let optional = nt.optional_header();
        let mut headers = Self {
            // After the signature and the file header.
            optional: start + 24,
            sections: Vec::new(),
            sections_end: offset,
            size_of_headers: optional.size_of_headers().into(),
            size_of_image: optional.size_of_image(),
            size_of_initialized_data: optional.size_of_initialized_data(),
            section_alignment: optional.section_alignment(),
            file_alignment: optional.file_alignment(),
            checksum: optional.check_sum(),
            imports: address(&directories, pe::IMAGE_DIRECTORY_ENTRY_IMPORT),
            delay_imports: address(&directories, pe::IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT),
            signature_directory: start
                + 24
                + field::DIRECTORIES
                + pe::IMAGE_DIRECTORY_ENTRY_SECURITY as u64 * DIRECTORY,
            signature: None,
            must_be_signed: (optional.dll_characteristics())
                .contains(pe::IMAGE_DLLCHARACTERISTICS_FORCE_INTEGRITY),
            symbols_end: symbols_end(bytes, nt),
        };
        let table = nt.sections(bytes, offset).map_err(cut)?;
        for (header, section) in (offset..)
            .step_by(SECTION_HEADER as usize)
            .zip(table.iter())
        {
            let start = u64::from(section.pointer_to_raw_data.get(LE));
            headers.sections.push(Section {
                header,
                address: section.virtual_address.get(LE),
                size: section.virtual_size.get(LE),
                file: start..start + u64::from(section.size_of_raw_data.get(LE)),
                flags: section.characteristics.get(LE),
            });
            headers.sections_end = header + SECTION_HEADER;
        }
        headers.check_sections(bytes)?;
        headers.signature = headers.signature(bytes, &directories)?;
        if address(&directories, pe::IMAGE_DIRECTORY_ENTRY_BOUND_IMPORT) != 0 {
            return Err(EditProblem::Bound);
        }
        headers.check_load_config(bytes, &directories)?;
        Ok(headers)
    }

    /// Checks what the loader demands of sections, and what an edit relies on: no byte of the file is in two places.
    fn check_sections(&self, bytes: &[u8]) -> Result<(), EditProblem> {
        let is_aligned = |value: u64, alignment: u32| value % u64::from(alignment) == 0;
        let alignments = [self.section_alignment, self.file_alignment];
        if !alignments
            .iter()
            .all(|alignment| alignment.is_power_of_two())
            || self.section_alignment < PAGE
            || !(SECTOR..=MAX_FILE_ALIGNMENT).contains(&self.file_alignment)
        {
            return Err(EditProblem::Layout("its sections are not aligned to pages"));
        }
        let mut end_in_memory = 0;
        let mut files: Vec<&Range<u64>> = Vec::new();
        for section in &self.sections {
            let start = u64::from(section.address);
            if start < end_in_memory || !is_aligned(start, self.section_alignment) {
                return Err(EditProblem::Malformed("sections overlap in memory"));
            }
            end_in_memory = start + u64::from(section.size).max(1);
            if section.file.start == section.file.end {
                continue;
            }
            if section.file.end > bytes.len() as u64 {
                return Err(EditProblem::Truncated("last section"));
            }
            if !is_aligned(section.file.start, SECTOR) {
                return Err(EditProblem::Layout(
                    "its sections are not aligned in the file",
                ));
            }
            files.push(&section.file);
        }
        files.sort_by_key(|file| file.start);
        if files
            .first()
            .is_some_and(|file| file.start < self.sections_end)
            || files.windows(2).any(|pair| pair[1].start < pair[0].end)
        {
            return Err(EditProblem::Malformed("sections overlap in the file"));
        }
        Ok(())
    }

    /// The signature: certificates at the end of the file, by their offset (PE Format, "The Attribute Certificate Table").
    fn signature(
        &self,
        bytes: &[u8],
        directories: &DataDirectories<'_>,
    ) -> Result<Option<Range<u64>>, EditProblem> {
        let Some(directory) = directories.get(pe::IMAGE_DIRECTORY_ENTRY_SECURITY) else {
            return Ok(None);
        };
        let start = u64::from(directory.virtual_address.get(LE));
        let end = start + u64::from(directory.size.get(LE));
        if start == end {
            return Ok(None);
        }
        if start < self.sections_end_in_file() || end != bytes.len() as u64 {
            return Err(EditProblem::Malformed("signature is not at the end"));
        }
        Ok(Some(start..end))
    }

    /// Checks the directories in which the loader searches DLLs, and the kind of code.
    fn check_load_config(
        &self,
        bytes: &[u8],
        directories: &DataDirectories<'_>,
    ) -> Result<(), EditProblem> {
        let address = address(directories, pe::IMAGE_DIRECTORY_ENTRY_LOAD_CONFIG);
        let Some(offset) = self.offset(address).filter(|_| address != 0) else {
            return Ok(());
        };
        // Older linkers write a part of the structure, which has its size in front.
        let known = size_of::<ImageLoadConfigDirectory64>() as u64;
        let mut config = vec![0; known as usize];
        let size = bytes
            .get(offset as usize..)
            .and_then(|rest| rest.first_chunk());
        let size = size.map_or(0, |size| u64::from(u32::from_le_bytes(*size)));
        let Ok(part) = bytes.read_bytes_at(offset, size.min(known)) else {
            return Err(EditProblem::Malformed("load configuration is cut off"));
        };
        config[..part.len()].copy_from_slice(part);
        let Ok(config) = config.read_at::<ImageLoadConfigDirectory64>(0) else {
            return Ok(());
        };
        if config.chpe_metadata_pointer.get(LE) != 0 {
            return Err(EditProblem::Machine("arm64ec".to_owned()));
        }
        match config.dependent_load_flags.get(LE) {
            0 => Ok(()),
            flags if flags & SEARCH_DLL_LOAD_DIR != 0 => Ok(()),
            flags => Err(EditProblem::SearchFlags(flags)),
        }
    }

    /// End of the last section in the file.
    pub(super) fn sections_end_in_file(&self) -> u64 {
        let ends = self.sections.iter().map(|section| section.file.end);
        ends.max().unwrap_or(0).max(self.sections_end)
    }

    /// The section that contains an address.
    pub(super) fn section(&self, address: u32) -> Option<&Section> {
        self.sections
            .iter()
            .rev()
            .find(|section| section.address <= address)
    }

    /// Offset in the file of an address.
    pub(super) fn offset(&self, address: u32) -> Option<u64> {
        let section = self.section(address)?;
        let offset = section.file.start + u64::from(address - section.address);
        (offset < section.file.end).then_some(offset)
    }
}

/// Address of a directory; 0: none.
fn address(directories: &DataDirectories<'_>, index: usize) -> u32 {
    directories
        .get(index)
        .map_or(0, |directory| directory.virtual_address.get(LE))
}

/// Offset behind the table of symbols, which strings with their size in front follow.
fn symbols_end(bytes: &[u8], nt: &ImageNtHeaders64) -> u64 {
    let header = &nt.file_header;
    let start = u64::from(header.pointer_to_symbol_table.get(LE));
    if start == 0 {
        return 0;
    }
    let strings =
        start + u64::from(header.number_of_symbols.get(LE)) * pe::IMAGE_SIZEOF_SYMBOL as u64;
    let size = usize::try_from(strings)
        .ok()
        .and_then(|strings| bytes.get(strings..)?.first_chunk());
    strings + size.map_or(0, |size| u64::from(u32::from_le_bytes(*size)))
}
