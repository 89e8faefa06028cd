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
    let (runpath, rpath) = match image.string(strings, elf::DT_RUNPATH)? {
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

/// Maximum number of versions: their indices have 15 bits.
const MAX_VERSIONS: u64 = 0x7fff;

/// Required versions of an image, by library and by version index.
#[derive(Default)]
pub(crate) struct VersionNeeds {
    pub(crate) needs: Vec<VersionNeed>,
    /// Version of each index that the version table of the symbols has.
    pub(crate) by_index: BTreeMap<u16, NeededVersion>,
    /// Number of nodes in `needs`.
    node_count: u64,
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
        let mut versions = Self::default();
        let Some(address) = image.tag(elf::DT_VERNEED) else {
            return Ok(versions);
        };
        let mut rest = Bytes(image.at_address(address)?);
        for _ in 0..image.tag(elf::DT_VERNEEDNUM).unwrap_or(0).min(MAX_VERSIONS) {
            let need = rest.read_at::<elf::Verneed<Endianness>>(0).map_err(cut)?;
            let mut nodes = rest;
            nodes
                .skip(need.vn_aux.get(image.endian) as usize)
                .map_err(cut)?;
            let count = need.vn_cnt.get(image.endian);
            let nodes = versions.read_nodes(image, strings, nodes, count)?;
            let file = strings
                .get(need.vn_file.get(image.endian).into())?
                .to_owned();
            versions.needs.push(VersionNeed { file, nodes });
            match need.vn_next.get(image.endian) as usize {
                0 => break,
                distance => rest.skip(distance).map_err(cut)?,
            }
        }
        Ok(versions)
    }

    /// Reads the nodes of the next library.
    fn read_nodes(
        &mut self,
        image: &ElfImage<'_>,
        strings: &Strings<'_>,
        mut rest: Bytes<'_>,
        count: u16,
    ) -> Result<Vec<String>, Problem> {
        let mut nodes = Vec::new();
        for _ in 0..count {
            let entry = rest.read_at::<elf::Vernaux<Endianness>>(0).map_err(cut)?;
            self.node_count += 1;
            if self.node_count > MAX_VERSIONS {
                return Err(Problem::Malformed("more version needs than indices"));
            }
            let version = NeededVersion {
                need: self.needs.len(),
                node: nodes.len(),
            };
            let index = entry.vna_other.get(image.endian).0;
            self.by_index.insert(index, version);
            let name = strings.get(entry.vna_name.get(image.endian).into())?;
            nodes.push(name.to_owned());
            match entry.vna_next.get(image.endian) as usize {
                0 => break,
                distance => rest.skip(distance).map_err(cut)?,
            }
        }
        Ok(nodes)
    }
}

fn cut((): ()) -> Problem {
    Problem::Malformed("version needs are cut off")
}
