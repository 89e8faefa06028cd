//! Resolves a symbol to a module, as a linker of device code does.

use std::collections::{BTreeSet, VecDeque};
use std::error::Error;
use std::fs;
use std::process::Command;

use gpustub_archive::{Member, View};
use object::elf::FileHeader64;
use object::read::elf::{FileHeader, Sym};
use object::{Endianness, elf};
use tempfile::NamedTempFile;

/// Needed member, and the first symbol that needs it.
pub struct Found<'a> {
    pub symbol: String,
    pub name: String,
    pub layer: String,
    data: &'a [u8],
}

/// All members that a symbol needs, each once. Every symbol is resolved in the view, wherever its
/// reference comes from: functions of `common` may call the family's own.
pub fn closure<'a>(view: &View<'a>, symbol: &str) -> Result<Vec<Found<'a>>, Box<dyn Error>> {
    let mut closure = Vec::new();
    let mut taken = BTreeSet::new();
    let mut wanted = VecDeque::from([symbol.to_owned()]);
    while let Some(symbol) = wanted.pop_front() {
        let Some(member) = view.find_symbol(&symbol)? else {
            return Err(format!("undefined symbol {symbol}").into());
        };
        if !taken.insert(member.position()) {
            continue;
        }
        let data = member.data()?;
        wanted.extend(undefined(data)?);
        closure.push(Found {
            symbol,
            name: String::from_utf8_lossy(member.name()).into_owned(),
            layer: layer_of(view, &member)?,
            data,
        });
    }
    Ok(closure)
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
