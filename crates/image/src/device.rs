//! Relocatable device code in objects, images and archives: of CUDA, and of HIP in images.
//!
//! `nvcc -dc` gives each object an id and a wrapper of its code, not yet registered; a device link
//! (`nvcc -dlink`) combines such objects, and defines a function for each, which the object calls at
//! start-up. Once all have called, the linked code is registered. Only loaded sections are read, so
//! stripped files give the same result:
//!
//! | section | contents |
//! |---|---|
//! | `__nv_module_id` | strings: the id of an object; `def ` and the id of each object of a device link; `__NV_MODULE_ID` for code that needs no device link |
//! | `__nv_relfatbin` | the code of objects, one container each |
//! | `.nv_fatbin` | the code of device links, and code that needs none |
//! | `.nvFatBinSegment` | the kind of each container: a record with its address (`fatbinary_section.h`) |
//! | `.nvHRKI` and five more | names of kernels and variables that the host code of an object uses, and at least one zero |
//!
//! The names are those of `crt/link.stub` of the toolkit. In a file without section headers no
//! device code of CUDA is found.
//!
//! Objects of HIP have no ids in loaded sections. Dynamic symbols show those whose device link is in another image.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use object::elf;
use object::read::elf::Rela;
use object::{Endianness, ReadRef};

use gpustub_core::gpu_arch::Arch;
use gpustub_core::offload::{Container, ContainerFormat, containers_of};

use crate::archive::archive_members;
use crate::consumed::{FAULT_AROUND, Reads};
use crate::elf::ElfImage;
use crate::error::{Error, Problem};
use crate::file::with_file;

/// Relocatable device code, as far as device links are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceCode {
    /// Objects of relocatable device code, by their ids, in the file's order.
    pub modules: Vec<Module>,
    /// Ids of the objects in the file's device links.
    pub links: BTreeSet<String>,
    /// Architectures of the code of these device links.
    pub linked: BTreeSet<Arch>,
    /// Subset of `links` whose registering function (`__cudaRegisterLinkedBinary…`) other images can
    /// bind to.
    pub exported: BTreeSet<String>,
    /// Subset of `exported` for which the image's own calls may bind to another image.
    pub interposable: BTreeSet<String>,
    /// Whether host code of the file uses kernels or variables; `None` if unknown, as for archives.
    pub used_by_host: Option<bool>,
}

/// An object of relocatable device code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Module {
    /// Id, which nvcc derives from the path of the source and from its first symbol.
    pub id: String,
    /// Architectures of its code; empty if unknown.
    pub archs: BTreeSet<Arch>,
}

/// Prefix of the name of an object's registering function, before the object's id.
pub const REGISTER: &str = "__cudaRegisterLinkedBinary";

/// Prefixes of the symbols that objects of HIP leave undefined in an image without their device link: functions of gpustub's
/// device links, for each object or library, and the code object, which is hidden in an image that has it. Ids of objects of HIP
/// are names of such symbols.
pub const HIP_SYMBOLS: [&str; 2] = ["gpustub_hip_code", "__hip_fatbin"];

/// Id of the object whose registering function has this name.
pub fn registered_object(name: &str) -> Option<&str> {
    let is_hip = HIP_SYMBOLS.iter().any(|prefix| name.starts_with(prefix));
    name.strip_prefix(REGISTER).or(is_hip.then_some(name))
}

/// Prefix of the id in a device link.
const DEFINES: &str = "def ";

/// The id of objects whose code needs no device link.
const WHOLE_PROGRAM: &str = "__NV_MODULE_ID";

impl DeviceCode {
    /// Returns whether both objects and a device link are present. nvlink silently skips such an
    /// archive as a whole.
    pub fn is_device_linked(&self) -> bool {
        !self.modules.is_empty() && !self.links.is_empty()
    }

    /// Architectures that all objects have code for; empty if those of one object are unknown.
    pub fn archs(&self) -> BTreeSet<Arch> {
        let mut modules = self.modules.iter().map(|module| &module.archs);
        let first = modules.next().cloned().unwrap_or_default();
        modules.fold(first, |common, archs| &common & archs)
    }

    fn add(&mut self, member: Self) {
        self.modules.extend(member.modules);
        self.links.extend(member.links);
        self.linked.extend(member.linked);
        self.exported.extend(member.exported);
        self.interposable.extend(member.interposable);
    }
}

/// Reads the relocatable device code of the object file, program or shared library in `bytes`.
pub fn read_device_code(bytes: &[u8]) -> Result<DeviceCode, Error> {
    Ok(read(bytes)?)
}

/// Reads the relocatable device code of all object files of the archive (`.a`, `.rlib`) in `bytes`.
/// Members that are no object files have no device code.
pub fn archive_device_code(bytes: &[u8]) -> Result<DeviceCode, Error> {
    let mut code = DeviceCode::default();
    for member in archive_members(bytes)? {
        let member = member?;
        if member.data.starts_with(&elf::ELFMAG) {
            code.add(read(member.data)?);
        }
    }
    Ok(code)
}

/// [`archive_device_code`] of a file; the error has its path.
pub fn archive_device_code_file(path: &Path) -> Result<DeviceCode, Error> {
    with_file(path, archive_device_code)
}

fn read(bytes: &[u8]) -> Result<DeviceCode, Problem> {
    let image = ElfImage::undamaged(bytes)?;
    Ok(device_code(&image, &Reads::unreported(bytes)))
}

/// Reads the device code of a parsed image. A damaged file has none.
pub(crate) fn device_code(image: &ElfImage<'_>, reads: &Reads<'_>) -> DeviceCode {
    let sections = Sections::read(image);
    let mut code = DeviceCode::default();
    let mut ids = Vec::new();
    let texts = sections
        .ids
        .iter()
        .flat_map(|(_, data)| data.split(|byte| *byte == 0));
    for text in texts.filter(|text| !text.is_empty()) {
        let text = String::from_utf8_lossy(text);
        match text.strip_prefix(DEFINES) {
            Some(id) => drop(code.links.insert(id.to_owned())),
            None if text == WHOLE_PROGRAM => {}
            None => ids.push(text.into_owned()),
        }
    }
    // A linker keeps the order of its inputs in each section; each object has one id and one container.
    let mut archs: Vec<_> = fatbins(&sections.objects, reads)
        .map(|container| container.archs)
        .collect();
    if archs.len() != ids.len() {
        archs = vec![BTreeSet::new(); ids.len()];
    }
    for (id, archs) in ids.into_iter().zip(archs) {
        code.modules.push(Module { id, archs });
    }
    code.used_by_host = used_by_host(&sections.host_names, code.modules.len());
    if !code.links.is_empty() {
        code.linked = linked_archs(image, &sections, reads);
        read_exports(image, &mut code);
    }
    read_hip(image, &mut code);
    code
}

/// Data of the sections that contain device code, and the addresses at which it begins.
#[derive(Default)]
struct Sections<'d> {
    ids: Vec<(u64, &'d [u8])>,
    objects: Vec<(u64, &'d [u8])>,
    linked: Vec<(u64, &'d [u8])>,
    wrappers: Vec<(u64, &'d [u8])>,
    host_names: Vec<(u64, &'d [u8])>,
}

/// Sections of the arrays `hostRef…` that nvcc writes since 11.8: kernels, variables and constants, with internal
/// and external linkage.
const HOST_NAMES: [&[u8]; 6] = [
    b".nvHRKI", b".nvHRKE", b".nvHRDI", b".nvHRDE", b".nvHRCI", b".nvHRCE",
];

/// Whether the arrays have a name. `--gc-sections` drops the arrays of some objects, whose names are unknown.
fn used_by_host(arrays: &[(u64, &[u8])], module_count: usize) -> Option<bool> {
    if arrays
        .iter()
        .any(|(_, array)| array.iter().any(|byte| *byte != 0))
    {
        return Some(true);
    }
    let is_complete = arrays.len() == HOST_NAMES.len()
        && arrays.iter().all(|(_, array)| array.len() >= module_count);
    is_complete.then_some(false)
}

impl<'d> Sections<'d> {
    fn read(image: &ElfImage<'d>) -> Self {
        let mut sections = Self::default();
        // Each section of a hostile file may be the whole file.
        let mut bytes_left = image.data().len();
        for (name, section) in image.named_sections().into_iter().flatten() {
            let list = match name {
                b"__nv_module_id" => &mut sections.ids,
                b"__nv_relfatbin" => &mut sections.objects,
                FATBINS => &mut sections.linked,
                b".nvFatBinSegment" => &mut sections.wrappers,
                name if HOST_NAMES.contains(&name) => &mut sections.host_names,
                _ => continue,
            };
            let data = section.data(image.source);
            if let Some(data) = data.filter(|data| data.len() <= bytes_left) {
                bytes_left -= data.len();
                list.push((section.addr, data));
            }
        }
        sections
    }
}

/// Size of `__fatBinC_Wrapper_t` of `fatbinary_section.h` on 64-bit machines: magic, version, address
/// of the container, and an unused address.
const WRAPPER: usize = 24;
const WRAPPER_MAGIC: u32 = 0x466243b1;
/// FATBINC_LINK_VERSION: version of the wrappers of device links.
const LINK_VERSION: u32 = 2;

/// Architectures of device links: of the containers that wrappers of [`LINK_VERSION`] point to.
fn linked_archs(
    image: &ElfImage<'_>,
    sections: &Sections<'_>,
    reads: &Reads<'_>,
) -> BTreeSet<Arch> {
    // Addresses of the fields that point to containers, and their values in the file.
    let mut fields: BTreeMap<u64, u64> = BTreeMap::new();
    let mut wrapper_count = 0;
    for (address, data) in &sections.wrappers {
        let mut offset = 0;
        while let Some(wrapper) = data.get(offset..offset + WRAPPER) {
            if word(wrapper, 0) != Some(WRAPPER_MAGIC) {
                // Compilers may align wrappers to more than their size.
                offset += 8;
                continue;
            }
            if word(wrapper, 4) == Some(LINK_VERSION) {
                let container = wrapper[8..].first_chunk().map(|b| u64::from_le_bytes(*b));
                let field = address.wrapping_add(offset as u64 + 8);
                fields.insert(field, container.unwrap_or(0));
                wrapper_count += 1;
            }
            offset += WRAPPER;
        }
    }
    let mut containers: Vec<Fatbin> = fatbins(&sections.linked, reads).collect();
    // If there are no more containers, all belong to device links, as in object files, whose addresses are not final.
    if containers.len() > wrapper_count {
        relocate(image, &mut fields);
        let targets: BTreeSet<u64> = fields.into_values().collect();
        containers.retain(|container| targets.contains(&container.address));
    }
    containers
        .into_iter()
        .flat_map(|container| container.archs)
        .collect()
}

/// Applies the loader's relocations to these fields. Only for relocations with addends, which all
/// machines with CUDA use: other addends are already in the file. The relocation type is irrelevant,
/// since a container has no symbol that another image could bind to.
fn relocate(image: &ElfImage<'_>, fields: &mut BTreeMap<u64, u64>) {
    if image.is_64 {
        relocate_by::<elf::Rela64<Endianness>>(image, fields);
    } else {
        relocate_by::<elf::Rela32<Endianness>>(image, fields);
    }
}

fn relocate_by<R: Rela<Endian = Endianness>>(
    image: &ElfImage<'_>,
    fields: &mut BTreeMap<u64, u64>,
) {
    for relocation in relocations::<R>(image).unwrap_or_default() {
        let offset: u64 = relocation.r_offset(image.endian).into();
        if let Some(value) = fields.get_mut(&offset) {
            let addend: i64 = relocation.r_addend(image.endian).into();
            *value = addend as u64;
        }
    }
}

/// The loader's relocations with addends.
fn relocations<'d, R: Rela<Endian = Endianness>>(image: &ElfImage<'d>) -> Option<&'d [R]> {
    let bytes = image.at_address(image.tag(elf::DT_RELA)?).ok()?;
    let size = usize::try_from(image.tag(elf::DT_RELASZ)?).ok()?;
    let count = size.min(bytes.len()) / size_of::<R>();
    bytes.read_slice_at(0, count).ok()
}

/// Records the registering functions that other images can bind to, and those that the image may
/// bind to in other images.
fn read_exports(image: &ElfImage<'_>, code: &mut DeviceCode) {
    let (Ok(table), Ok(strings)) = (image.symbols(), image.strings()) else {
        return;
    };
    // A program's definitions precede all others, and with `-Bsymbolic` a library binds to its own.
    let flags = image.tag(elf::DT_FLAGS).unwrap_or(0);
    let is_symbolic = image.tag(elf::DT_SYMBOLIC).is_some() || flags & elf::DF_SYMBOLIC.0 != 0;
    let is_program = image.has_segment(elf::PT_INTERP);
    for (_, symbol) in table.iter().skip(1) {
        if symbol.is_local() || symbol.is_undefined() {
            continue;
        }
        let Ok(name) = strings.get(symbol.name.into()) else {
            continue;
        };
        let Some(id) = name.strip_prefix(REGISTER) else {
            continue;
        };
        if !code.links.contains(id) {
            continue;
        }
        code.exported.insert(id.to_owned());
        if !is_symbolic && !is_program && symbol.visibility == elf::STV_DEFAULT {
            code.interposable.insert(id.to_owned());
        }
    }
}

/// Records the objects of HIP that call other images, and those that other images call this one for.
fn read_hip(image: &ElfImage<'_>, code: &mut DeviceCode) {
    let (Ok(table), Ok(strings)) = (image.symbols(), image.strings()) else {
        return;
    };
    // Symbols of a hostile file may share one long name.
    let mut bytes_left = image.data().len();
    for (_, symbol) in table.iter().skip(1) {
        let Ok(name) = strings.get(symbol.name.into()) else {
            continue;
        };
        let is_hip = HIP_SYMBOLS.iter().any(|prefix| name.starts_with(prefix));
        if symbol.is_local() || !is_hip || name.len() >= bytes_left {
            continue;
        }
        bytes_left -= name.len() + 1;
        if !symbol.is_undefined() {
            code.links.insert(name.to_owned());
            code.exported.insert(name.to_owned());
        } else if !symbol.is_weak() {
            code.modules.push(Module {
                id: name.to_owned(),
                archs: BTreeSet::new(),
            });
        }
    }
}

/// A fatbin and its address.
struct Fatbin {
    address: u64,
    /// Architectures of the code; empty if there is code of an unknown kind, which may be for any architecture.
    archs: BTreeSet<Arch>,
}

/// The fatbins of sections that begin at these addresses.
fn fatbins<'d>(
    sections: &'d [(u64, &'d [u8])],
    reads: &'d Reads<'_>,
) -> impl Iterator<Item = Fatbin> + 'd {
    sections.iter().flat_map(move |&(start, data)| {
        containers_of(FATBINS, data)
            .take_while(|container| container.format == ContainerFormat::Fatbin)
            .map(move |container| {
                reads.count(FAULT_AROUND * (container.entries.len() + 1));
                Fatbin {
                    address: start.wrapping_add(container.offset as u64),
                    archs: archs(&container).unwrap_or_default(),
                }
            })
    })
}

/// Name of the section whose containers are loaded.
const FATBINS: &[u8] = b".nv_fatbin";

fn archs(container: &Container<'_>) -> Option<BTreeSet<Arch>> {
    let entries = container.entries.iter();
    entries.map(|entry| Arch::parse(&entry.arch)).collect()
}

fn word(data: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*data.get(offset..)?.first_chunk()?))
}
