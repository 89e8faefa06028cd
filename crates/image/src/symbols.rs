//! Exported symbols of a library.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::offload::CodeKind;
use gpustub_core::suggest::nearest;
use gpustub_core::symbols::{Symbol, SymbolKind, SymbolList, is_name};
use object::{Bytes, Endianness, elf};

use crate::elf::ElfImage;
use crate::error::{Error, Problem};
use crate::link_facts::VersionNeeds;
use crate::strings::Strings;

/// Requirements for a library, in addition to being readable.
#[derive(Debug, Clone, Copy, Default)]
pub struct SymbolRequirements<'a> {
    /// Required machine, as in [`SymbolList::machine`]: `x86_64`.
    pub expect_machine: Option<&'a str>,
    /// Names that the library must export.
    pub require: &'a [String],
}

/// Reads the exports of the shared library in `bytes`: names, kinds, weakness, version nodes.
///
/// Omits symbols that no program can bind to (local, hidden and undefined ones), the absolute
/// symbols that linkers add for the version nodes themselves, and an executable's copies of other
/// libraries' data.
pub fn read_symbols(bytes: &[u8], options: SymbolRequirements<'_>) -> Result<SymbolList, Error> {
    Ok(required(exports(bytes, options)?, options)?)
}

/// The list, if it has the required names.
pub(crate) fn required(
    list: SymbolList,
    options: SymbolRequirements<'_>,
) -> Result<SymbolList, Problem> {
    let mut missing = Vec::new();
    for name in options.require {
        if list.lookup(name).is_empty() {
            let near = nearest(name, list.symbols.iter().map(|symbol| symbol.name.as_str()));
            missing.push((name.clone(), near.map(str::to_owned)));
        }
    }
    if missing.is_empty() {
        Ok(list)
    } else {
        Err(Problem::Missing(missing))
    }
}

/// Rejects a library for another machine than the required one.
pub(crate) fn check_machine(machine: &str, options: SymbolRequirements<'_>) -> Result<(), Problem> {
    match options.expect_machine {
        Some(expected) if expected != machine => Err(Problem::Machine {
            found: machine.to_owned(),
            expected: expected.to_owned(),
        }),
        _ => Ok(()),
    }
}

fn exports(bytes: &[u8], options: SymbolRequirements<'_>) -> Result<SymbolList, Problem> {
    let code = CodeKind::of(bytes);
    if code.is_for_device() {
        return Err(Problem::DeviceCode(code.to_string()));
    }
    let image = ElfImage::undamaged(bytes)?;
    let machine = image.machine();
    check_machine(&machine, options)?;
    let table = image.symbols()?;
    if !image.is_dynamic() || table.len() == 0 {
        return Err(Problem::NoDynamicSymbols(image.kind()));
    }
    let strings = image.strings()?;
    let versions = Versions::read(&image, &strings, table.len())?;

    let soname = image.string(&strings, elf::DT_SONAME)?;
    if soname.as_deref().is_some_and(|soname| !is_name(soname)) {
        return Err(Problem::Malformed("soname is empty or has blanks in it"));
    }
    let mut list = SymbolList {
        soname,
        machine: Some(machine),
        ..SymbolList::default()
    };
    for (index, symbol) in table.iter() {
        if !symbol.is_visible() || symbol.is_local() || symbol.is_undefined() {
            continue;
        }
        let Some(kind) = symbol_kind(symbol.kind) else {
            continue;
        };
        let name = strings.get(symbol.name.into())?;
        if versions.is_copy(index) {
            continue;
        }
        let (version, compat) = versions.node_of(index)?;
        // The symbol of the version node `N` is absolute and has the name `N`.
        if symbol.is_absolute() && version == Some(name) {
            continue;
        }
        if !is_name(name) || version.is_some_and(|version| !is_name(version)) {
            return Err(Problem::Malformed(
                "symbol name is empty or has blanks in it",
            ));
        }
        list.symbols.push(Symbol {
            name: name.to_owned(),
            kind,
            weak: symbol.is_weak(),
            version: version.map(str::to_owned),
            compat,
            size: if kind.is_data() { symbol.size } else { 0 },
            ..Symbol::default()
        });
    }
    list.normalise();
    Ok(list)
}

/// Kind of a symbol type; `None` for symbols of sections and source files.
fn symbol_kind(symbol_type: elf::SymbolType) -> Option<SymbolKind> {
    match symbol_type {
        elf::STT_FUNC => Some(SymbolKind::Function),
        elf::STT_GNU_IFUNC => Some(SymbolKind::Ifunc),
        elf::STT_OBJECT | elf::STT_COMMON => Some(SymbolKind::Object),
        elf::STT_TLS => Some(SymbolKind::Tls),
        elf::STT_SECTION | elf::STT_FILE => None,
        _ => Some(SymbolKind::NoType),
    }
}

/// Version node of each symbol (GNU symbol versioning, as in the LSB).
struct Versions<'d> {
    endian: Endianness,
    /// An index for each symbol; empty for a library without versions.
    symbols: &'d [elf::Versym<Endianness>],
    /// The nodes that the library defines, by index.
    nodes: BTreeMap<usize, &'d str>,
    /// Indices of versions of other libraries.
    needed: BTreeSet<u16>,
}

impl<'d> Versions<'d> {
    fn read(image: &ElfImage<'d>, strings: &Strings<'d>, symbols: usize) -> Result<Self, Problem> {
        let mut versions = Self {
            endian: image.endian,
            symbols: &[],
            nodes: BTreeMap::new(),
            needed: BTreeSet::new(),
        };
        versions.symbols = image.symbol_versions(symbols)?;
        // Damaged needs concern no export of a library.
        if let Ok(needs) = VersionNeeds::read(image, strings) {
            versions.needed = needs.by_index.into_keys().collect();
        }
        let mut rest = match image.tag(elf::DT_VERDEF) {
            Some(address) => Bytes(image.at_address(address)?),
            None => return Ok(versions),
        };
        // Indices have 15 bits, which limits the number of definitions.
        for _ in 0..image.tag(elf::DT_VERDEFNUM).unwrap_or(0).min(0x7fff) {
            let node = rest.read_at::<elf::Verdef<Endianness>>(0).map_err(cut)?;
            // The base definition is the library's own name, and no symbol's node.
            if !node.vd_flags.get(image.endian).contains(elf::VER_FLG_BASE) {
                let name_entry = rest
                    .read_at::<elf::Verdaux<Endianness>>(node.vd_aux.get(image.endian) as usize)
                    .map_err(cut)?;
                let name = strings.get(name_entry.vda_name.get(image.endian).into())?;
                versions
                    .nodes
                    .insert(usize::from(node.vd_ndx.get(image.endian)), name);
            }
            match node.vd_next.get(image.endian) as usize {
                0 => break,
                distance => rest.skip(distance).map_err(cut)?,
            }
        }
        Ok(versions)
    }

    /// Whether a defined symbol has a version that the image requires of another library: data of
    /// that library, which a copy relocation puts into an executable (`stdout@GLIBC_2.2.5`).
    fn is_copy(&self, symbol: usize) -> bool {
        (self.symbols.get(symbol))
            .is_some_and(|version| self.needed.contains(&version.0.get(self.endian).index().0))
    }

    /// Node of a symbol, and whether the symbol is not bound by default.
    fn node_of(&self, symbol: usize) -> Result<(Option<&'d str>, bool), Problem> {
        let Some(version) = self.symbols.get(symbol) else {
            return Ok((None, false));
        };
        let version = version.0.get(self.endian);
        if version.index().is_special() {
            return Ok((None, false));
        }
        match self.nodes.get(&usize::from(version.index())) {
            Some(node) => Ok((Some(node), version.is_hidden())),
            None => Err(Problem::Malformed("symbol version without a definition")),
        }
    }
}

fn cut((): ()) -> Problem {
    Problem::Malformed("version definitions are cut off")
}
