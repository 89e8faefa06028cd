//! Symbols that a member of an archive defines: the contents of an archive's index.

pub mod bitcode;
#[cfg(feature = "coff")]
mod coff;
pub mod collector;
pub mod elf;
mod format;
#[cfg(feature = "macho")]
mod macho;
pub mod not_canonical;
mod spirv;
pub mod undefine;
pub mod undefined;
mod wasm;

use crate::error::Error;
use collector::Definition;
use format::Format;
use not_canonical::NotCanonical;

/// Symbols of an object file that others can be linked with, in its own order, as `llvm-ar` writes
/// them into an archive's index. Other files have none: archives may contain any files.
///
/// Object files are relocatable ELF files, Mach-O files (not "fat" ones, which hold several), COFF
/// files with their large and import forms, WebAssembly objects, SPIR-V modules, and LLVM bitcode, raw or
/// wrapped. Bitcode of clang 14, 15
/// and 19 was tested; bitcode of LLVM 3 and 4, which has its names elsewhere, is read as its format
/// is documented.
///
/// Two kinds of names are only in the symbol table that LLVM adds to bitcode since version 5, if it
/// knows the target: symbols that inline assembly of the module defines, and 32-bit Windows
/// functions whose calling convention is part of the name. Without that table, the former are
/// missing and the latter have their plain names. Names in GCC's LTO sections are not read.
///
/// # Errors
///
/// If `data` is a damaged object file, or one of a format whose cargo feature is disabled.
pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Error> {
    let definitions = match Format::detect(data) {
        Some(Format::Elf) => elf::definitions(data),
        Some(Format::Bitcode) => bitcode::definitions(data),
        #[cfg(feature = "macho")]
        Some(Format::MachO) => macho::definitions(data),
        #[cfg(not(feature = "macho"))]
        Some(Format::MachO) => Err(crate::error::Problem::DisabledFormat {
            format: "Mach-O",
            feature: "macho",
        }),
        #[cfg(feature = "coff")]
        Some(Format::Coff) => coff::definitions(data),
        #[cfg(feature = "coff")]
        Some(Format::BigCoff) => coff::big_definitions(data),
        #[cfg(feature = "coff")]
        Some(Format::Import) => coff::import_definitions(data),
        #[cfg(not(feature = "coff"))]
        Some(Format::Coff | Format::BigCoff | Format::Import) => {
            Err(crate::error::Problem::DisabledFormat {
                format: "COFF",
                feature: "coff",
            })
        }
        Some(Format::Wasm) => wasm::definitions(data),
        Some(Format::SpirV) => spirv::definitions(data),
        None => Ok(Vec::new()),
    };
    Ok(definitions?)
}

/// Canonical form of bitcode; `None` for other files.
pub fn canonical(data: &[u8]) -> Option<Result<Vec<u8>, NotCanonical>> {
    matches!(Format::detect(data), Some(Format::Bitcode)).then(|| bitcode::canonical(data))
}

/// The release of LLVM, or other producer, that wrote bitcode (`LLVM15.0.6`); `None`: other files, and bitcode that names
/// none, such as canonical bitcode.
pub fn bitcode_producer(data: &[u8]) -> Option<String> {
    match Format::detect(data) {
        Some(Format::Bitcode) => bitcode::producer(data).ok().flatten(),
        _ => None,
    }
}

/// Whether `data` is a file that linkers accept as a member.
pub fn is_object(data: &[u8]) -> bool {
    match Format::detect(data) {
        Some(Format::Elf) => elf::is_relocatable(data),
        format => format.is_some(),
    }
}

/// Whether `data` is LLVM bitcode, raw or wrapped.
pub fn is_bitcode(data: &[u8]) -> bool {
    matches!(Format::detect(data), Some(Format::Bitcode))
        && bitcode::wrapper::unwrapped(data).is_ok()
}
