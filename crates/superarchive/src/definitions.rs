//! What a member of an archive defines for others: what the index of an archive is made of.

pub mod bitcode;
#[cfg(feature = "coff")]
mod coff;
pub mod collector;
pub mod elf;
mod kind;
#[cfg(feature = "macho")]
mod macho;
pub mod not_canonical;

use crate::error::Error;
use collector::Definition;
use kind::Kind;
use not_canonical::NotCanonical;

/// The symbols of an object file that others can be linked with, in its own order: what `llvm-ar`
/// writes into an archive's index. Of anything else there are none: archives may hold any files.
///
/// Object files are relocatable ELF files, Mach-O files (not "fat" ones, which hold several), COFF
/// files with their large and import forms, and LLVM bitcode, raw or wrapped. The bitcode of clang
/// 14, 15 and 19 was tried; that of LLVM 3 and 4, which has its names elsewhere, only as its format
/// is described.
///
/// Two kinds of names stand nowhere but in the symbol table that LLVM adds to bitcode since
/// version 5, where it knows the target: those that inline assembly of the module defines, and
/// those of 32-bit Windows functions whose calling convention is part of the name. Bitcode without
/// that table has none of the first, and the plain names of the second. Names in GCC's LTO sections
/// are not seen.
///
/// # Errors
///
/// If it is an object file, and damaged, or of a format whose cargo feature is disabled.
pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Error> {
    let found = match Kind::detect(data) {
        Some(Kind::Elf) => elf::definitions(data),
        Some(Kind::Bitcode) => bitcode::definitions(data),
        #[cfg(feature = "macho")]
        Some(Kind::MachO) => macho::definitions(data),
        #[cfg(not(feature = "macho"))]
        Some(Kind::MachO) => Err(crate::error::Problem::DisabledFormat {
            format: "Mach-O",
            feature: "macho",
        }),
        #[cfg(feature = "coff")]
        Some(Kind::Coff) => coff::definitions(data),
        #[cfg(feature = "coff")]
        Some(Kind::BigCoff) => coff::big_definitions(data),
        #[cfg(feature = "coff")]
        Some(Kind::Import) => coff::import_definitions(data),
        #[cfg(not(feature = "coff"))]
        Some(Kind::Coff | Kind::BigCoff | Kind::Import) => {
            Err(crate::error::Problem::DisabledFormat {
                format: "COFF",
                feature: "coff",
            })
        }
        None => Ok(Vec::new()),
    };
    Ok(found?)
}

/// Bitcode in its canonical form; `None` for anything else.
pub fn canonical(data: &[u8]) -> Option<Result<Vec<u8>, NotCanonical>> {
    matches!(Kind::detect(data), Some(Kind::Bitcode)).then(|| bitcode::canonical(data))
}

/// Whether it is what linkers take as a member.
pub fn is_object(data: &[u8]) -> bool {
    match Kind::detect(data) {
        Some(Kind::Elf) => elf::is_relocatable(data),
        kind => kind.is_some(),
    }
}

/// Whether it is LLVM bitcode, raw or wrapped.
pub fn is_bitcode(data: &[u8]) -> bool {
    matches!(Kind::detect(data), Some(Kind::Bitcode)) && bitcode::wrapper::unwrapped(data).is_ok()
}
