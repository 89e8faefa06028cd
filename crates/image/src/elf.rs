//! An ELF image, read as the dynamic loader does: program headers and the dynamic section.
//!
//! Section headers have the same information for every library that loads, may be stripped, and are
//! at the end of the file. They are used only if there are no program headers, as in the stub
//! libraries that `llvm-ifs` writes for linking.

use object::elf::{self, DynamicTag};
use object::read::elf::{Dyn, FileHeader, GnuHashTable, ProgramHeader, SectionHeader};
use object::{Endianness, ReadRef};

use crate::error::Problem;
use crate::format::identify;
use crate::machine;
use crate::strings::Strings;

/// A parsed image. All slices are parts of the file's bytes.
pub(crate) struct Image<'d, Elf: FileHeader<Endian = Endianness>> {
    pub(crate) endian: Endianness,
    pub(crate) machine: String,
    data: &'d [u8],
    header: &'d Elf,
    segments: &'d [Elf::ProgramHeader],
    /// Empty if there is a dynamic segment.
    sections: &'d [Elf::SectionHeader],
    dynamic: &'d [Elf::Dyn],
}

/// Runs a generic reader for 32-bit or for 64-bit files.
macro_rules! for_class {
    ($bytes:expr, $read:ident $(, $argument:expr)*) => {
        if $crate::elf::is_64($bytes)? {
            $read::<object::elf::FileHeader64<object::Endianness>>($bytes $(, $argument)*)
        } else {
            $read::<object::elf::FileHeader32<object::Endianness>>($bytes $(, $argument)*)
        }
    };
}
pub(crate) use for_class;

/// Returns whether an ELF file is of the 64-bit class.
pub(crate) fn is_64(bytes: &[u8]) -> Result<bool, Problem> {
    if !bytes.starts_with(&elf::ELFMAG) {
        return Err(identify(bytes));
    }
    match bytes.get(4) {
        Some(1) => Ok(false),
        Some(2) => Ok(true),
        Some(_) => Err(Problem::Malformed("ELF class is neither 32 nor 64 bits")),
        None => Err(Problem::Truncated("ELF header")),
    }
}

impl<'d, Elf: FileHeader<Endian = Endianness>> Image<'d, Elf> {
    pub(crate) fn parse(data: &'d [u8]) -> Result<Self, Problem> {
        let header: &Elf = data
            .read_at(0)
            .map_err(|()| Problem::Truncated("ELF header"))?;
        if !header.is_supported() {
            return Err(Problem::Malformed("invalid ELF identification"));
        }
        let endian = header
            .endian()
            .map_err(|_| Problem::Malformed("byte order is neither little nor big"))?;
        let segments = header
            .program_headers(endian, data)
            .map_err(|_| Problem::Truncated("program headers"))?;
        let machine = header.e_machine(endian);
        let machine =
            machine::machine_name(machine, header.is_class_64(), header.is_little_endian());
        let mut image = Self {
            endian,
            machine,
            data,
            header,
            segments,
            sections: &[],
            dynamic: &[],
        };
        image.check_length()?;
        let segment = segments
            .iter()
            .find(|s| s.p_type(endian) == elf::PT_DYNAMIC);
        let dynamic = match segment {
            Some(segment) => segment.data_as_array(endian, data),
            None => {
                image.sections = header
                    .section_headers(endian, data)
                    .map_err(|_| Problem::Malformed("unexpected size of section headers"))?;
                let mut sections = image.sections.iter();
                match sections.find(|s| s.sh_type(endian) == elf::SHT_DYNAMIC) {
                    Some(section) => section.data_as_array(endian, data).map_err(drop),
                    None => Ok(&[][..]),
                }
            }
        };
        image.dynamic = dynamic.map_err(|()| Problem::Malformed("dynamic section is cut off"))?;
        Ok(image)
    }

    /// Rejects a truncated file: its headers give the original length.
    fn check_length(&self) -> Result<(), Problem> {
        let length = self.data.len() as u64;
        let beyond = |offset: u64, size: u64| offset.checked_add(size).is_none_or(|e| e > length);
        for segment in self.segments {
            let (offset, size) = segment.file_range(self.endian);
            if size != 0 && beyond(offset, size) {
                return Err(Problem::Truncated("last segment"));
            }
        }
        let count = u64::from(self.header.e_shnum(self.endian));
        let size = count * u64::from(self.header.e_shentsize(self.endian));
        if beyond(self.header.e_shoff(self.endian).into(), size) {
            return Err(Problem::Truncated("section headers"));
        }
        Ok(())
    }

    /// Returns whether the file is an object file.
    pub(crate) fn is_object(&self) -> bool {
        self.header.e_type(self.endian) == elf::ET_REL
    }

    /// Kind of the file, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self.header.e_type(self.endian) {
            elf::ET_REL => "an object file",
            elf::ET_EXEC => "a static program",
            elf::ET_CORE => "a core dump",
            _ => "a file without a dynamic section",
        }
    }

    pub(crate) fn data(&self) -> &'d [u8] {
        self.data
    }

    pub(crate) fn header(&self) -> &'d Elf {
        self.header
    }

    pub(crate) fn segments(&self) -> &'d [Elf::ProgramHeader] {
        self.segments
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        !self.dynamic.is_empty()
    }

    /// Iterates over all values of a tag of the dynamic section.
    pub(crate) fn tags(&self, tag: DynamicTag) -> impl Iterator<Item = u64> {
        self.dynamic
            .iter()
            .take_while(|entry| entry.d_tag(self.endian) != elf::DT_NULL)
            .filter(move |entry| entry.d_tag(self.endian) == tag)
            .map(|entry| entry.val(self.endian))
    }

    pub(crate) fn tag(&self, tag: DynamicTag) -> Option<u64> {
        self.tags(tag).next()
    }

    /// Bytes of the file from a virtual address to the end of the segment (or section) that contains
    /// it.
    pub(crate) fn at_address(&self, address: u64) -> Result<&'d [u8], Problem> {
        let from = |start: u64, bytes: &'d [u8]| {
            let offset = usize::try_from(address.checked_sub(start)?).ok()?;
            bytes.get(offset..).filter(|bytes| !bytes.is_empty())
        };
        let (endian, data) = (self.endian, self.data);
        let mut segments = (self.segments.iter())
            .filter(|segment| segment.p_type(endian) == elf::PT_LOAD)
            .filter_map(|s| from(s.p_vaddr(endian).into(), s.data(endian, data).ok()?));
        let mut sections = (self.sections.iter())
            .filter(|section| section.sh_flags(endian).contains(elf::SHF_ALLOC))
            .filter_map(|s| from(s.sh_addr(endian).into(), s.data(endian, data).ok()?));
        segments
            .next()
            .or_else(|| sections.next())
            .ok_or(Problem::Malformed(
                "dynamic section points outside the file",
            ))
    }

    pub(crate) fn strings(&self) -> Result<Strings<'d>, Problem> {
        let Some(address) = self.tag(elf::DT_STRTAB) else {
            return Ok(Strings::new(&[]));
        };
        let bytes = self.at_address(address)?;
        // The gABI requires a size; `llvm-ifs` omits it.
        let size = self
            .tag(elf::DT_STRSZ)
            .and_then(|size| usize::try_from(size).ok());
        Ok(Strings::new(
            &bytes[..size.unwrap_or(usize::MAX).min(bytes.len())],
        ))
    }

    /// The full symbol table, which only linkers read; `None` in a stripped file.
    pub(crate) fn full_symbols(&self) -> Option<(&'d [Elf::Sym], Strings<'d>)> {
        let (endian, data) = (self.endian, self.data);
        let sections = self.header.sections(endian, data).ok()?;
        let table = sections.symbols(endian, data, elf::SHT_SYMTAB).ok()?;
        let strings = sections.section(table.string_section()).ok()?;
        Some((
            table.symbols(),
            Strings::new(strings.data(endian, data).ok()?),
        ))
    }

    /// Names of the sections that have a valid one.
    pub(crate) fn section_names(&self) -> Vec<String> {
        let (endian, data) = (self.endian, self.data);
        let names = || {
            let sections = self.header.section_headers(endian, data).ok()?;
            let index = self.header.shstrndx(endian, data).ok()? as usize;
            let strings = Strings::new(sections.get(index)?.data(endian, data).ok()?);
            let name = |section: &Elf::SectionHeader| strings.get(section.sh_name(endian).into());
            let names = sections.iter().skip(1).filter_map(|s| name(s).ok());
            Some(names.map(str::to_owned).collect())
        };
        names().unwrap_or_default()
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

    /// The dynamic symbols, the null symbol at index 0 included.
    pub(crate) fn symbols(&self) -> Result<&'d [Elf::Sym], Problem> {
        let Some(address) = self.tag(elf::DT_SYMTAB) else {
            return Ok(&[]);
        };
        let count = self.symbol_count()?;
        if count == 0 {
            return Ok(&[]);
        }
        self.at_address(address)?
            .read_slice_at(0, count)
            .map_err(|()| Problem::Malformed("symbol table reaches beyond its segment"))
    }

    /// The version of each of `symbols` symbols; empty for an image without versions.
    pub(crate) fn symbol_versions(
        &self,
        symbols: usize,
    ) -> Result<&'d [elf::Versym<Endianness>], Problem> {
        let Some(address) = self.tag(elf::DT_VERSYM) else {
            return Ok(&[]);
        };
        self.at_address(address)?
            .read_slice_at(0, symbols)
            .map_err(|()| Problem::Malformed("version table is shorter than the symbol table"))
    }

    /// Number of symbols. The dynamic section does not contain it, but the loader's hash tables reach
    /// every symbol that can be found.
    fn symbol_count(&self) -> Result<usize, Problem> {
        if let Some(address) = self.tag(elf::DT_HASH) {
            // gABI: nbucket, nchain, in words; nchain is the number of symbols. The word has 64
            // bits in the psABIs of s390x and alpha.
            let wide = self.header.is_class_64()
                && matches!(
                    self.header.e_machine(self.endian),
                    elf::EM_S390 | elf::EM_ALPHA
                );
            let table = self.at_address(address)?;
            let count = if wide {
                table
                    .read_at::<object::U64<Endianness>>(8)
                    .map(|n| n.get(self.endian))
            } else {
                table
                    .read_at::<object::U32<Endianness>>(4)
                    .map(|n| n.get(self.endian).into())
            };
            let count = count.map_err(|()| Problem::Malformed("hash table is too short"))?;
            return Ok(usize::try_from(count).unwrap_or(usize::MAX));
        }
        let Some(address) = self.tag(elf::DT_GNU_HASH) else {
            let table = self
                .sections
                .iter()
                .find(|s| s.sh_type(self.endian) == elf::SHT_DYNSYM);
            let size = table.map(|s| s.sh_size(self.endian).into());
            let count = size.map(|size: u64| size / size_of::<Elf::Sym>() as u64);
            let count = count.and_then(|count| usize::try_from(count).ok());
            return count.ok_or(Problem::Malformed("no hash table of symbols"));
        };
        let table = GnuHashTable::<Elf>::parse(self.endian, self.at_address(address)?)
            .map_err(|_| Problem::Malformed("GNU hash table is too short"))?;
        // An empty table: all symbols are imports, which are not in it.
        let count = table
            .symbol_table_length(self.endian)
            .unwrap_or(table.symbol_base());
        Ok(usize::try_from(count).unwrap_or(usize::MAX))
    }
}
