//! Headers, imports and exports of an image.

use object::pe::{self, ImageDosHeader, ImageNtHeaders32, ImageNtHeaders64};
use object::read::pe::{ExportTable, ImageNtHeaders, ImageOptionalHeader, optional_header_magic};
use object::{LittleEndian as LE, U32, U64};

use super::reader::Reader;
use crate::elf::Source;
use crate::error::{Error, Problem};
use crate::format::identify;

/// Whether the DOS header leads to the signature of a PE image.
pub fn is_pe(bytes: &[u8]) -> bool {
    let Ok(dos) = ImageDosHeader::parse(bytes) else {
        return false;
    };
    let tail = bytes.get(dos.nt_headers_offset() as usize..);
    tail.is_some_and(|tail| tail.starts_with(b"PE\0\0"))
}

/// A PE image, parsed once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeImage<'d> {
    /// The machine, as in `SymbolList::machine`.
    pub machine: String,
    /// Whether the image is a DLL: other programs load it.
    pub is_dll: bool,
    /// Name in the export table: that of the DLL when it was linked. The loader does not read it.
    pub name: Option<&'d str>,
    /// DLLs that are loaded before the image's first instruction runs, in the file's order.
    pub imports: Vec<PeImport<'d>>,
    /// DLLs that are loaded at the first call of one of their functions.
    pub delay_imports: Vec<PeImport<'d>>,
    /// Exports in the order of their ordinals; an address with several names is several exports.
    pub exports: Vec<PeExport<'d>>,
}

/// A DLL that an image imports from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeImport<'d> {
    /// File name of the DLL, as written. The loader ignores case.
    pub dll: &'d str,
    /// Imported functions and data, in the file's order.
    pub symbols: Vec<PeSymbol<'d>>,
}

/// A function or data of a DLL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PeSymbol<'d> {
    /// The name.
    Name(&'d str),
    /// The number in the DLL's export table.
    Ordinal(u16),
}

/// An exported function or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeExport<'d> {
    /// The name; `None`: imported by ordinal only.
    pub name: Option<&'d str>,
    /// The number.
    pub ordinal: u16,
    /// DLL and function that stand for this one: `NTDLL.RtlAllocateHeap`.
    pub forwarder: Option<&'d str>,
    /// Whether the address is in a section that is not executable. A forwarder counts as a function.
    pub is_data: bool,
}

impl<'d> PeImage<'d> {
    /// Parses headers, imports and exports.
    ///
    /// # Errors
    ///
    /// If the bytes are no PE image, or a truncated or damaged one.
    pub fn parse(bytes: &'d [u8]) -> Result<Self, Error> {
        Ok(Self::undamaged(bytes)?)
    }

    pub(crate) fn undamaged(bytes: &'d [u8]) -> Result<Self, Problem> {
        let source = Source::File(bytes);
        match optional_header_magic(source) {
            Ok(pe::IMAGE_NT_OPTIONAL_HDR64_MAGIC) => Self::read::<ImageNtHeaders64>(source),
            Ok(pe::IMAGE_NT_OPTIONAL_HDR32_MAGIC) => Self::read::<ImageNtHeaders32>(source),
            Ok(_) => Err(Problem::Malformed("optional header is of no known kind")),
            Err(_) if is_pe(bytes) => Err(Problem::Truncated("PE headers")),
            Err(_) => Err(identify(bytes)),
        }
    }

    /// Parses an image with headers of this kind.
    pub(super) fn read<H: ImageNtHeaders>(source: Source<'d>) -> Result<Self, Problem> {
        let cut = |_| Problem::Truncated("PE headers");
        let dos = ImageDosHeader::parse(source).map_err(cut)?;
        let mut offset = dos.nt_headers_offset().into();
        let (headers, directories) = H::parse(source, &mut offset).map_err(cut)?;
        let sections = headers.sections(source, offset).map_err(cut)?;
        let image_base = headers.optional_header().image_base();
        let reader = Reader::new(source, &sections, image_base)?;
        let address = |index: usize| {
            let directory = directories.get(index)?;
            Some(directory.virtual_address.get(LE))
        };
        let header = headers.file_header();
        let mut image = Self {
            machine: machine_name(header.machine.get(LE)),
            is_dll: header.characteristics.get(LE).contains(pe::IMAGE_FILE_DLL),
            name: None,
            imports: Vec::new(),
            delay_imports: Vec::new(),
            exports: Vec::new(),
        };
        let is_64 = headers.is_type_64();
        if let Some(address) = address(pe::IMAGE_DIRECTORY_ENTRY_IMPORT) {
            image.imports = imports(&reader, address, is_64)?;
        }
        if let Some(address) = address(pe::IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT) {
            image.delay_imports = delay_imports(&reader, address, is_64)?;
        }
        if let Some(directory) = directories.get(pe::IMAGE_DIRECTORY_ENTRY_EXPORT) {
            let address = directory.virtual_address.get(LE);
            let size = directory.size.get(LE);
            image.read_exports(&reader, address, size)?;
        }
        Ok(image)
    }

    fn read_exports(
        &mut self,
        reader: &Reader<'d>,
        address: u32,
        size: u32,
    ) -> Result<(), Problem> {
        let damaged = |_| Problem::Malformed("export table is damaged");
        let data = reader.at(address)?;
        let table = ExportTable::parse(data, address).map_err(damaged)?;
        // Libraries without exports, of some linkers, have a table without a name.
        self.name = match table.directory().name.get(LE) {
            0 => None,
            name => Some(reader.string(name)?),
        };
        // An address in the table itself is that of a forwarder's text.
        let export = |name, ordinal, target: u32| -> Result<_, Problem> {
            let is_forwarder = target.wrapping_sub(address) < size;
            Ok(PeExport {
                name,
                ordinal,
                forwarder: is_forwarder.then(|| reader.string(target)).transpose()?,
                is_data: !is_forwarder && !reader.is_code(target),
            })
        };
        let mut is_named = vec![false; table.addresses().len()];
        for (name, index) in table.name_iter() {
            let target = table.address_by_index(index).map_err(damaged)?;
            let ordinal = table.ordinal_from_index(index).map_err(damaged)?.0;
            is_named[usize::from(index.0)] = true;
            let name = reader.string(name)?;
            self.exports.push(export(Some(name), ordinal, target)?);
        }
        for (index, ordinal, target) in table.address_iter() {
            // Unused ordinals have no address.
            if target != 0 && !is_named[usize::from(index.0)] {
                self.exports.push(export(None, ordinal.0, target)?);
            }
        }
        self.exports
            .sort_by_key(|export| (export.ordinal, export.name));
        Ok(())
    }
}

fn imports<'d>(
    reader: &Reader<'d>,
    mut address: u32,
    is_64: bool,
) -> Result<Vec<PeImport<'d>>, Problem> {
    let mut imports = Vec::new();
    loop {
        let descriptor: &pe::ImageImportDescriptor = reader.entry(&mut address)?;
        let (name, bound) = (descriptor.name.get(LE), descriptor.first_thunk.get(LE));
        if name == 0 || bound == 0 {
            return Ok(imports);
        }
        // Without a lookup table, of old linkers, the table of addresses has the names in the file.
        let names = match descriptor.original_first_thunk.get(LE) {
            0 => bound,
            names => names,
        };
        imports.push(PeImport {
            dll: reader.string(name)?,
            symbols: symbols(reader, names, is_64, 0)?,
        });
    }
}

fn delay_imports<'d>(
    reader: &Reader<'d>,
    mut address: u32,
    is_64: bool,
) -> Result<Vec<PeImport<'d>>, Problem> {
    let mut imports = Vec::new();
    loop {
        let descriptor: &pe::ImageDelayloadDescriptor = reader.entry(&mut address)?;
        let name = descriptor.dll_name_rva.get(LE);
        if name == 0 {
            return Ok(imports);
        }
        // Visual C++ 6 wrote addresses instead of offsets from the image's base, of 32 bits.
        let base = match descriptor.attributes.get(LE) & 1 {
            0 => reader.image_base as u32,
            _ => 0,
        };
        let names = descriptor.import_name_table_rva.get(LE);
        imports.push(PeImport {
            dll: reader.string(name.wrapping_sub(base))?,
            symbols: symbols(reader, names.wrapping_sub(base), is_64, base)?,
        });
    }
}

/// Entries of a lookup table, which ends with a null entry. `base` is subtracted from their addresses.
fn symbols<'d>(
    reader: &Reader<'d>,
    mut address: u32,
    is_64: bool,
    base: u32,
) -> Result<Vec<PeSymbol<'d>>, Problem> {
    let mut symbols = Vec::new();
    loop {
        let (entry, is_ordinal) = if is_64 {
            let entry = reader.entry::<U64<LE>>(&mut address)?.get(LE);
            (entry, entry & pe::IMAGE_ORDINAL_FLAG64 != 0)
        } else {
            let entry = reader.entry::<U32<LE>>(&mut address)?.get(LE);
            (entry.into(), entry & pe::IMAGE_ORDINAL_FLAG32 != 0)
        };
        if entry == 0 {
            return Ok(symbols);
        }
        symbols.push(if is_ordinal {
            PeSymbol::Ordinal(entry as u16)
        } else {
            // The name follows a hint of two bytes.
            let hint = (entry as u32).wrapping_sub(base);
            PeSymbol::Name(reader.string(hint.wrapping_add(2))?)
        });
    }
}

/// Name of the architecture in Rust's target triples; `pe-machine-N` if unknown.
pub(super) fn machine_name(machine: pe::Machine) -> String {
    match machine {
        pe::IMAGE_FILE_MACHINE_AMD64 => "x86_64".into(),
        pe::IMAGE_FILE_MACHINE_I386 => "x86".into(),
        pe::IMAGE_FILE_MACHINE_ARM64 => "aarch64".into(),
        pe::IMAGE_FILE_MACHINE_ARMNT => "arm".into(),
        machine => format!("pe-machine-{:#x}", machine.0),
    }
}
