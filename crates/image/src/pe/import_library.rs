//! An import library: an archive that names the functions of a DLL for linkers.
//!
//! Members are short import objects (Microsoft, "PE Format", "Import Library Format"), or objects of GNU dlltool, whose
//! sections are parts of the image's import table: a name in `.idata$6`, the DLL's name in `.idata$7` of one member.

use std::collections::BTreeSet;
use std::str::from_utf8;

use gpustub_core::symbols::is_name;
use object::pe::Machine;
use object::read::coff::{CoffFile, ImportFile, ImportName, ImportType};
use object::{Object, ObjectSection};

use super::image::machine_name;
use super::symbols::DllExports;
use crate::archive::archive_members;
use crate::error::{Error, Problem};
use crate::symbols::{SymbolRequirements, check_machine, required};

/// Reads the exports that an import library names, as [`read_dll_exports`](super::read_dll_exports) reads those of the DLL.
/// The soname is the name of the DLL.
///
/// # Errors
///
/// [`Problem::Archive`] if the archive names no function of a DLL, and [`Problem::DllName`] if a list cannot hold the name of
/// the DLL.
pub(crate) fn read_import_library(
    bytes: &[u8],
    options: SymbolRequirements<'_>,
) -> Result<DllExports, Error> {
    let mut library = ImportLibrary::default();
    for member in archive_members(bytes)? {
        library.add(member?.data);
    }
    let mut exports = library.exports;
    if exports.list.symbols.is_empty() && exports.decorated.is_empty() {
        return Err(Problem::Archive.into());
    }
    check_machine(exports.list.machine.as_deref().unwrap_or_default(), options)?;
    if let Some(name) = library.dlls.iter().find(|name| !is_name(name)) {
        return Err(Problem::DllName(name.clone()).into());
    }
    if library.dlls.len() > 1 {
        return Err(Problem::SeveralDlls(Vec::from_iter(library.dlls)).into());
    }
    exports.list.soname = library.dlls.pop_first();
    exports.list.normalise();
    exports.list = required(exports.list, options)?;
    Ok(exports)
}

#[derive(Default)]
struct ImportLibrary {
    exports: DllExports,
    dlls: BTreeSet<String>,
}

impl ImportLibrary {
    fn add(&mut self, member: &[u8]) {
        // Machine is the fourth field of a short import object, and the first one of others.
        let machine = |offset: usize| {
            let field = member.get(offset..)?.first_chunk()?;
            Some(machine_name(Machine(u16::from_le_bytes(*field))))
        };
        let machine = if let Ok(import) = ImportFile::parse(member) {
            self.add_dll(import.dll());
            match import.import() {
                ImportName::Name(name) => {
                    self.add_name(name, import.import_type() != ImportType::Code);
                }
                ImportName::Ordinal(_) => self.exports.unnamed += 1,
            }
            machine(6)
        } else if let Ok(object) = CoffFile::<_>::parse(member) {
            self.add_object(&object);
            machine(0)
        } else {
            None
        };
        let known = &mut self.exports.list.machine;
        *known = known.take().or(machine);
    }

    /// An object of GNU dlltool.
    fn add_object(&mut self, object: &CoffFile<'_>) {
        let data = |name: &str| {
            let section = object.section_by_name_bytes(name.as_bytes())?;
            section.data().ok().filter(|data| !data.is_empty())
        };
        // The descriptor of the DLL, which in Microsoft's form has its name among those of the functions.
        if data(".idata$2").is_some() {
            return;
        }
        if let Some(dll) = data(".idata$7") {
            self.add_dll(text(dll));
        }
        // After the hint.
        if let Some(name) = data(".idata$6").and_then(|data| data.get(2..)) {
            self.add_name(text(name), data(".text").is_none());
        } else if data(".idata$5").is_some_and(is_ordinal) {
            self.exports.unnamed += 1;
        }
    }

    fn add_dll(&mut self, name: &[u8]) {
        // The section has zeros in all members but one.
        if !name.is_empty() {
            self.dlls.insert(String::from_utf8_lossy(name).into_owned());
        }
    }

    fn add_name(&mut self, name: &[u8], is_data: bool) {
        if let Ok(name) = from_utf8(name) {
            self.exports.add(name, is_data);
        }
    }
}

/// Whether an entry of an import table is a number: it has the highest bit (PE format, "Import Lookup Table").
fn is_ordinal(entry: &[u8]) -> bool {
    entry.last().is_some_and(|byte| byte & 0x80 != 0)
}

/// The bytes up to the first zero.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|&byte| byte == 0).next().unwrap_or_default()
}
