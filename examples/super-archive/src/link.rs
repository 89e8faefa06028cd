//! Resolves a symbol to a module, as a linker of device code does.

use std::error::Error;
use std::fs;
use std::process::Command;

use gpustub_archive::{Closure, Member, View};
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, elf};
use tempfile::NamedTempFile;

/// A needed member.
pub struct Found<'a> {
    pub name: String,
    pub layer: String,
    data: &'a [u8],
}

/// All members that a symbol needs, each once. Every symbol is resolved in the view, wherever its
/// reference comes from: functions of `common` may call the family's own.
pub fn closure<'a>(view: View<'a>, symbol: &str) -> Result<Vec<Found<'a>>, Box<dyn Error>> {
    let mut memory = vec![0; view.member_count()];
    let mut closure = Closure::new(view, &mut memory).ok_or("too little memory")?;
    let mut found = Vec::new();
    let mut wanted = vec![symbol.to_owned()];
    loop {
        for symbol in wanted.drain(..) {
            if !closure.add(&symbol)? {
                return Err(format!("undefined symbol {symbol}").into());
            }
        }
        let Some(member) = closure.next_member()? else {
            return Ok(found);
        };
        let data = member.data()?;
        wanted.extend(undefined(data)?);
        found.push(Found {
            name: String::from_utf8_lossy(member.name()).into_owned(),
            layer: layer_of(&view, &member)?,
            data,
        });
    }
}

/// Name of the layer that provides a member of the view.
fn layer_of(view: &View<'_>, member: &Member<'_>) -> Result<String, gpustub_archive::Error> {
    let layer = view.layer_at(member.layer())?;
    let name = layer.map_or(&b"?"[..], |layer| layer.name);
    Ok(String::from_utf8_lossy(name).into_owned())
}

/// Undefined symbols of an object file.
fn undefined(data: &[u8]) -> Result<Vec<String>, Box<dyn Error>> {
    let header = FileHeader64::<Endianness>::parse(data)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, data)?;
    let symbols = sections.symbols(endian, data, elf::SHT_SYMTAB)?;
    let mut names = Vec::new();
    for symbol in symbols.iter() {
        let name = symbol.name(endian, symbols.strings())?;
        // The linker itself defines this one.
        if symbol.is_undefined(endian) && !name.is_empty() && name != b"_GLOBAL_OFFSET_TABLE_" {
            names.push(String::from_utf8(name.to_vec())?);
        }
    }
    Ok(names)
}

/// Links only these members into a module. `ld` is the host's linker; for AMD's GPUs it is
/// `ld.lld`.
pub fn link(closure: &[Found<'_>]) -> Result<NamedTempFile, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let module = NamedTempFile::new()?;
    let mut ld = Command::new(std::env::var_os("LD").unwrap_or("ld".into()));
    ld.args(["-shared", "-o"]).arg(module.path());
    for (number, found) in closure.iter().enumerate() {
        // Members of two layers may have the same name.
        let object = directory.path().join(format!("{number}.o"));
        fs::write(&object, found.data)?;
        ld.arg(object);
    }
    match ld.status()? {
        status if status.success() => Ok(module),
        status => Err(format!("the linker ended with {status}").into()),
    }
}
