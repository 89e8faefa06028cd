//! Variants of members in which definitions are undefined symbols. Offsets and sizes stay, so all tables of
//! the member remain valid.

mod elf;

use super::bitcode;
use super::format::Format;
use super::undefined::{Refused, Undefined};

/// The value of a constant of an ELF object that nothing changes when it is linked; of bitcode nothing, if the
/// one-definition rule makes all its definitions equal.
pub fn constant<'d>(data: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    match Format::detect(data) {
        Some(Format::Elf) => elf::constant(data, name),
        Some(Format::Bitcode) => bitcode::has_odr_constant(data, name).then_some(&[]),
        _ => None,
    }
}

/// The member with these symbols undefined.
pub fn undefine(data: &[u8], names: &[&[u8]]) -> Result<Undefined, Refused> {
    match Format::detect(data) {
        Some(Format::Elf) => {
            let data = elf::undefine(data, names)?;
            Ok(Undefined {
                data,
                inlined: Vec::new(),
            })
        }
        Some(Format::Bitcode) => bitcode::undefine(data, names),
        Some(Format::MachO) => Err((0, "Mach-O objects have their symbols sorted by kind")),
        Some(Format::Coff | Format::BigCoff | Format::Import) => Err((
            0,
            "COFF objects call functions of their own without a symbol",
        )),
        Some(Format::Wasm | Format::SpirV) | None => {
            Err((0, "only ELF objects and LLVM bitcode are supported"))
        }
    }
}
