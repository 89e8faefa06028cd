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
    let damaged = |_| Problem::Malformed("load commands or symbols lie outside the file");
    let header = Mach::parse(data, 0).map_err(|_| Problem::Truncated("Mach-O header"))?;
    let endian = header.endian().map_err(damaged)?;
    let mut found = Collector::new();
    if header.filetype(endian) != macho::MH_OBJECT {
        return Ok(found.definitions);
    }
    let mut commands = header.load_commands(endian, data, 0).map_err(damaged)?;
    while let Some(command) = commands.next().map_err(damaged)? {
        let Some(table) = command.symtab().map_err(damaged)? else {
            continue;
        };
        let table = table.symbols::<Mach, _>(endian, data).map_err(damaged)?;
        for symbol in table.iter() {
            let external = symbol.n_type().contains(macho::N_EXT);
            if symbol.is_stab() || !external || symbol.is_undefined() {
                continue;
            }
            let name = symbol.name(endian, table.strings()).map_err(damaged)?;
            let weak = symbol.n_desc(endian).contains(macho::N_WEAK_DEF);
            found.add(name, Binding::weak_if(weak || symbol.is_common()))?;
        }
        // Linkers use the first table.
        break;
    }
    Ok(found.definitions)
}
