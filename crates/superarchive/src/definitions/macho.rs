//! Symbols of Mach-O objects.

use object::macho::{self, MachHeader32, MachHeader64};
use object::read::macho::{MachHeader, Nlist};
use object::{Endianness, FileKind};

use super::collector::{Binding, Collector, Definition};
use crate::error::Problem;

pub fn definitions(data: &[u8]) -> Result<Vec<Definition<'_>>, Problem> {
    match FileKind::parse(data) {
        Ok(FileKind::MachO32) => read_definitions::<MachHeader32<Endianness>>(data),
        _ => read_definitions::<MachHeader64<Endianness>>(data),
    }
}

fn read_definitions<Mach: MachHeader<Endian = Endianness>>(
    data: &[u8],
) -> Result<Vec<Definition<'_>>, Problem> {
    const OUTSIDE: Problem = Problem::Malformed("load commands or symbols lie outside the file");
    let header = Mach::parse(data, 0).map_err(|_| Problem::Truncated("Mach-O header"))?;
    let endian = header.endian().map_err(|_| OUTSIDE)?;
    let mut collector = Collector::new();
    if header.filetype(endian) != macho::MH_OBJECT {
        return Ok(collector.definitions);
    }
    let mut commands = header.load_commands(endian, data, 0).map_err(|_| OUTSIDE)?;
    while let Some(command) = commands.next().map_err(|_| OUTSIDE)? {
        let Some(symtab) = command.symtab().map_err(|_| OUTSIDE)? else {
            continue;
        };
        let table = symtab
            .symbols::<Mach, _>(endian, data)
            .map_err(|_| OUTSIDE)?;
        for symbol in table.iter() {
            let is_external = symbol.n_type().contains(macho::N_EXT);
            if symbol.is_stab() || !is_external || symbol.is_undefined() {
                continue;
            }
            let name = symbol.name(endian, table.strings()).map_err(|_| OUTSIDE)?;
            let is_weak = symbol.n_desc(endian).contains(macho::N_WEAK_DEF);
            collector.add(name, Binding::weak_if(is_weak || symbol.is_common()))?;
        }
        // Linkers use the first table.
        break;
    }
    Ok(collector.definitions)
}
