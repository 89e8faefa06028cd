//! Link facts: the requests of an image to the dynamic loader.

use std::collections::BTreeMap;

use object::{Bytes, Endianness, elf};

use crate::elf::ElfImage;
use crate::error::{Error, Problem};
use crate::strings::Strings;

/// A library, and its version nodes that an image was linked against.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VersionNeed {
    /// The library's soname.
    pub file: String,
    /// The nodes, in the file's order.
    pub nodes: Vec<String>,
}

/// Requests of a program or library to the loader. All empty for a static program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkFacts {
    /// The machine, as in `SymbolList::machine`.
    pub machine: String,
    /// `DT_SONAME`.
    pub soname: Option<String>,
    /// `DT_NEEDED`, in order.
    pub needed: Vec<String>,
    /// `DT_RUNPATH`, or else the older `DT_RPATH`: directories separated by colons.
    pub runpath: Option<String>,
    /// Whether `runpath` is a `DT_RPATH`, which also applies to the libraries' own dependencies.
    pub rpath: bool,
    /// Symbol versions required of each library.
    pub verneed: Vec<VersionNeed>,
}

/// Reads the link facts of the program or shared library in `bytes`.
pub fn read_link_facts(bytes: &[u8]) -> Result<LinkFacts, Error> {
    let image = ElfImage::undamaged(bytes)?;
    let strings = image.strings()?;
    let mut facts = loader_facts(&image, &strings)?;
    facts.verneed = VersionNeeds::read(&image, &strings)?.needs;
    Ok(facts)
}

/// Reads all link facts except the versions.
pub(crate) fn loader_facts<'d>(
    image: &ElfImage<'d>,
    strings: &Strings<'d>,
) -> Result<LinkFacts, Problem> {
    let own = image.string(strings, elf::DT_RUNPATH)?;
    let (runpath, rpath) = match own {
        Some(path) => (Some(path), false),
        None => (image.string(strings, elf::DT_RPATH)?, true),
    };
    let mut facts = LinkFacts {
        machine: image.machine(),
        soname: image.string(strings, elf::DT_SONAME)?,
        rpath: rpath && runpath.is_some(),
        runpath,
        ..LinkFacts::default()
    };
    for offset in image.tags(elf::DT_NEEDED) {
        facts.needed.push(strings.get(offset)?.to_owned());
    }
    Ok(facts)
}

/// Required versions of an image, by library and by version index.
#[derive(Default)]
pub(crate) struct VersionNeeds {
    pub(crate) needs: Vec<VersionNeed>,
    /// Version of each index that the version table of the symbols has.
    pub(crate) by_index: BTreeMap<u16, NeededVersion>,
}

/// Position of a version in [`VersionNeeds`].
#[derive(Clone, Copy)]
pub(crate) struct NeededVersion {
    /// Position in `needs`.
    need: usize,
    /// Position in the `nodes` of that entry.
    node: usize,
}

impl VersionNeeds {
    /// Library and node of a version.
    pub(crate) fn version(&self, version: NeededVersion) -> (&str, &str) {
        let need = &self.needs[version.need];
        (&need.file, &need.nodes[version.node])
    }

    pub(crate) fn read(image: &ElfImage<'_>, strings: &Strings<'_>) -> Result<Self, Problem> {
        let mut found = Self::default();
        let short = |()| Problem::Malformed("version needs are cut off");
        let Some(address) = image.tag(elf::DT_VERNEED) else {
            return Ok(found);
        };
        let mut rest = Bytes(image.at_address(address)?);
        // Version indices have 15 bits, which limits the total number of requirements.
        let mut left = 0x7fff_u16;
        for _ in 0..image.tag(elf::DT_VERNEEDNUM).unwrap_or(0).min(0x7fff) {
            let need = rest.read_at::<elf::Verneed<Endianness>>(0).map_err(short)?;
            let mut nodes = Vec::new();
            let mut entries = rest;
            entries
                .skip(need.vn_aux.get(image.endian) as usize)
                .map_err(short)?;
            for _ in 0..need.vn_cnt.get(image.endian) {
                let entry = entries
                    .read_at::<elf::Vernaux<Endianness>>(0)
                    .map_err(short)?;
                left = left
                    .checked_sub(1)
                    .ok_or(Problem::Malformed("more version needs than indices"))?;
                let version = NeededVersion {
                    need: found.needs.len(),
                    node: nodes.len(),
                };
                let index = entry.vna_other.get(image.endian).0;
                found.by_index.insert(index, version);
                nodes.push(
                    strings
                        .get(entry.vna_name.get(image.endian).into())?
                        .to_owned(),
                );
                match entry.vna_next.get(image.endian) as usize {
                    0 => break,
                    next => entries.skip(next).map_err(short)?,
                }
            }
            let file = strings
                .get(need.vn_file.get(image.endian).into())?
                .to_owned();
            found.needs.push(VersionNeed { file, nodes });
            match need.vn_next.get(image.endian) as usize {
                0 => break,
                next => rest.skip(next).map_err(short)?,
            }
        }
        Ok(found)
    }
}
