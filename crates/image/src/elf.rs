//! An ELF image, read as the dynamic loader does: program headers and the dynamic section.
//!
//! Section headers have the same information for every library that loads, may be stripped, and are
//! at the end of the file. They are used only if there are no program headers, as in the stub
//! libraries that `llvm-ifs` writes for linking.

mod dynamic_symbols;
mod headers;
mod sections;
mod source;
mod symbols;

use object::elf::{self, DynamicTag};
use object::read::elf::{Dyn, NoteIterator};
use object::{Endianness, ReadRef};

use crate::consumed::ConsumedFn;
use crate::error::{Error, Problem};
use crate::format::{HEAD, identify};
use crate::machine;
use crate::strings::Strings;
use headers::Headers;
pub(crate) use headers::{Header, Section, Segment};
pub(crate) use source::{Pieces, Source};
pub(crate) use symbols::{Symbol, SymbolTable};

/// An ELF file with its headers and its dynamic section, parsed once for all readers and for the
/// [editor](crate::edit).
pub struct ElfImage<'d> {
    pub(crate) source: Source<'d>,
    pub(crate) is_64: bool,
    pub(crate) endian: Endianness,
    pub(crate) header: Header,
    pub(crate) segments: Vec<Segment>,
    /// `None` if they cannot be read: a file with truncated section headers still loads.
    sections: Option<Vec<Section>>,
    /// Index of the section with the names of sections.
    names: Option<usize>,
    /// Bytes of the dynamic section.
    dynamic: &'d [u8],
    /// Reason why the file is damaged.
    damage: Option<Problem>,
    /// Receives parts of large tables that were read.
    pub(crate) consumed: ConsumedFn<'d>,
}

/// Notes of a section or segment. Their format is the same in both classes.
pub(crate) type Notes<'d> = NoteIterator<'d, elf::FileHeader64<Endianness>>;

/// Whether an ELF file is of the 64-bit class.
fn is_64(source: Source<'_>) -> Result<bool, Problem> {
    let head = source.bytes(0, source.len().min(HEAD as u64));
    let head = head.unwrap_or_default();
    if !head.starts_with(&elf::ELFMAG) {
        return Err(identify(head));
    }
    match head.get(4) {
        Some(1) => Ok(false),
        Some(2) => Ok(true),
        Some(_) => Err(Problem::Malformed("ELF class is neither 32 nor 64 bits")),
        None => Err(Problem::Truncated("ELF header")),
    }
}

impl<'d> ElfImage<'d> {
    /// Parses the headers of a program, a shared library or an object file.
    ///
    /// # Errors
    ///
    /// If the bytes are no ELF file, or a truncated or damaged one.
    pub fn parse(bytes: &'d [u8]) -> Result<Self, Error> {
        Ok(Self::undamaged(bytes)?)
    }

    pub(crate) fn undamaged(bytes: &'d [u8]) -> Result<Self, Problem> {
        let mut image = Self::read(Source::File(bytes))?;
        match image.damage.take() {
            Some(problem) => Err(problem),
            None => Ok(image),
        }
    }

    /// Reads as much as there is. The editor has rules of its own for damage.
    pub(crate) fn read(source: Source<'d>) -> Result<Self, Problem> {
        let is_64 = is_64(source)?;
        let headers = if is_64 {
            Headers::read::<elf::FileHeader64<Endianness>>(source)?
        } else {
            Headers::read::<elf::FileHeader32<Endianness>>(source)?
        };
        let mut image = Self {
            source,
            is_64,
            endian: headers.endian,
            header: headers.header,
            damage: headers
                .segments
                .is_none()
                .then_some(Problem::Truncated("program headers")),
            segments: headers.segments.unwrap_or_default(),
            sections: headers.sections,
            names: headers.names,
            dynamic: &[],
            consumed: &|_| (),
        };
        let dynamic = image.read_dynamic();
        let damage = image.check_length().and(dynamic);
        image.damage = image.damage.or(damage.err());
        Ok(image)
    }

    /// Rejects a truncated file: its headers give the original length.
    fn check_length(&self) -> Result<(), Problem> {
        let length = self.source.len();
        for segment in &self.segments {
            let end = segment.offset.checked_add(segment.filesz);
            if segment.filesz != 0 && end.is_none_or(|end| end > length) {
                return Err(Problem::Truncated("last segment"));
            }
        }
        let size = u64::from(self.header.shnum) * u64::from(self.header.shentsize);
        let end = self.header.shoff.checked_add(size);
        if end.is_none_or(|end| end > length) {
            return Err(Problem::Truncated("section headers"));
        }
        Ok(())
    }

    fn read_dynamic(&mut self) -> Result<(), Problem> {
        let cut = Problem::Malformed("dynamic section is cut off");
        let data = match self.dynamic_segment() {
            Some(segment) => segment.data(self.source),
            None => {
                let Some(sections) = &self.sections else {
                    return Err(Problem::Malformed("unexpected size of section headers"));
                };
                match sections.iter().find(|s| s.kind == elf::SHT_DYNAMIC) {
                    Some(section) => section.data(self.source),
                    None => Some(&[][..]),
                }
            }
        };
        self.dynamic = data.ok_or(cut.clone())?;
        if self.dynamic.len() % self.dynamic_entry_size() == 0 {
            Ok(())
        } else {
            Err(cut)
        }
    }

    /// The file.
    pub(crate) fn data(&self) -> &'d [u8] {
        self.source.bytes(0, self.source.len()).unwrap_or_default()
    }

    /// Name of the machine.
    pub(crate) fn machine(&self) -> String {
        let is_little = self.endian == Endianness::Little;
        machine::machine_name(self.header.machine, self.is_64, is_little)
    }

    /// Whether the file is an object file.
    pub(crate) fn is_object(&self) -> bool {
        self.header.kind == elf::ET_REL
    }

    /// Kind of the file, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.header.kind {
            elf::ET_REL => "an object file",
            elf::ET_EXEC => "a static program",
            elf::ET_CORE => "a core dump",
            _ => "a file without a dynamic section",
        }
    }

    /// Whether there is a segment of a kind.
    pub(crate) fn has_segment(&self, kind: elf::ProgramType) -> bool {
        self.segments.iter().any(|segment| segment.kind == kind)
    }

    pub(crate) fn loads(&self) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(|segment| segment.is_load())
    }

    pub(crate) fn dynamic_segment(&self) -> Option<&Segment> {
        (self.segments.iter()).find(|segment| segment.kind == elf::PT_DYNAMIC)
    }

    /// The section headers.
    pub(crate) fn sections(&self) -> &[Section] {
        self.sections.as_deref().unwrap_or_default()
    }

    /// The section headers of a file without a dynamic segment.
    fn sections_to_load(&self) -> &[Section] {
        match self.dynamic_segment() {
            Some(_) => &[],
            None => self.sections(),
        }
    }

    fn dynamic_entry_size(&self) -> usize {
        if self.is_64 {
            size_of::<elf::Dyn64<Endianness>>()
        } else {
            size_of::<elf::Dyn32<Endianness>>()
        }
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.dynamic.len() >= self.dynamic_entry_size()
    }

    /// All entries of the dynamic section, also those from `DT_NULL` on.
    pub(crate) fn dynamic_entries(&self) -> impl Iterator<Item = (DynamicTag, u64)> {
        self.dynamic
            .chunks_exact(self.dynamic_entry_size())
            .map(|bytes| {
                if self.is_64 {
                    self.dynamic_entry::<elf::Dyn64<Endianness>>(bytes)
                } else {
                    self.dynamic_entry::<elf::Dyn32<Endianness>>(bytes)
                }
            })
    }

    fn dynamic_entry<D: Dyn<Endian = Endianness>>(&self, bytes: &[u8]) -> (DynamicTag, u64) {
        let entry: Option<&D> = bytes.read_at(0).ok();
        entry.map_or((elf::DT_NULL, 0), |entry| {
            (entry.d_tag(self.endian), entry.val(self.endian))
        })
    }

    /// The entries of the dynamic section before `DT_NULL`.
    pub(crate) fn dynamic(&self) -> impl Iterator<Item = (DynamicTag, u64)> {
        (self.dynamic_entries()).take_while(|(tag, _)| *tag != elf::DT_NULL)
    }

    /// All values of a tag of the dynamic section.
    pub(crate) fn tags(&self, tag: DynamicTag) -> impl Iterator<Item = u64> {
        self.dynamic()
            .filter(move |(entry_tag, _)| *entry_tag == tag)
            .map(|(_, value)| value)
    }

    /// The value of a tag of the dynamic section.
    pub(crate) fn tag(&self, tag: DynamicTag) -> Option<u64> {
        self.tags(tag).next()
    }

    /// Bytes of the file from a virtual address to the end of the segment (or section) that contains
    /// it.
    pub(crate) fn at_address(&self, address: u64) -> Result<&'d [u8], Problem> {
        for segment in self.loads() {
            if let Some(tail) = tail(segment.data(self.source), segment.vaddr, address) {
                return Ok(tail);
            }
        }
        for section in self.sections_to_load() {
            if section.flags & elf::SHF_ALLOC.0 == 0 {
                continue;
            }
            if let Some(tail) = tail(section.data(self.source), section.addr, address) {
                return Ok(tail);
            }
        }
        Err(Problem::Malformed(
            "dynamic section points outside the file",
        ))
    }

    /// The string table of the dynamic section.
    pub(crate) fn strings(&self) -> Result<Strings<'d>, Problem> {
        let Some(address) = self.tag(elf::DT_STRTAB) else {
            return Ok(Strings::new(&[]));
        };
        let bytes = self.at_address(address)?;
        // The gABI requires a size; `llvm-ifs` omits it.
        let size = self
            .tag(elf::DT_STRSZ)
            .and_then(|size| usize::try_from(size).ok())
            .unwrap_or(usize::MAX);
        Ok(Strings::new(&bytes[..size.min(bytes.len())]))
    }

    /// String at the offset that a tag contains.
    pub(crate) fn string(
        &self,
        strings: &Strings<'d>,
        tag: DynamicTag,
    ) -> Result<Option<String>, Problem> {
        self.tag(tag)
            .map(|offset| strings.get(offset).map(str::to_owned))
            .transpose()
    }

    /// The notes of a segment.
    pub(crate) fn segment_notes(&self, segment: &Segment) -> Option<Notes<'d>> {
        let data = (segment.kind == elf::PT_NOTE).then(|| segment.data(self.source));
        Notes::new(self.endian, segment.align, data??).ok()
    }

    /// The notes of a section.
    pub(crate) fn section_notes(&self, section: &Section) -> Option<Notes<'d>> {
        let data = (section.kind == elf::SHT_NOTE).then(|| section.data(self.source));
        Notes::new(self.endian, section.align, data??).ok()
    }
}

/// The bytes from `address` on, of data that begins at the address `start`.
fn tail(data: Option<&[u8]>, start: u64, address: u64) -> Option<&[u8]> {
    let offset = usize::try_from(address.checked_sub(start)?).ok()?;
    data?.get(offset..).filter(|bytes| !bytes.is_empty())
}
