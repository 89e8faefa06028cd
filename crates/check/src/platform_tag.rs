//! Guarantees of the platform tags of wheels (`data/tags.toml`).

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

/// Family of platform tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// `manylinux_2_<N>`: systems with glibc 2.N or newer (PEP 600).
    Many,
    /// `musllinux_1_<N>`: systems with musl 1.N or newer (PEP 656).
    Musl,
}

/// A platform tag with guarantees: not `linux_x86_64` or `any`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tag {
    /// Family of the tag.
    pub family: Family,
    /// The N of `manylinux_2_<N>`.
    pub minor: u32,
    /// Machine, as named in tags; a policy's tag has none.
    pub machine: Option<String>,
}

#[derive(Deserialize)]
struct Families {
    manylinux: Guarantees,
    musllinux: Guarantees,
}

/// Guarantees of the tags of a family.
#[derive(Deserialize)]
struct Guarantees {
    major: u32,
    minors: Vec<u32>,
    aliases: BTreeMap<String, u32>,
    libraries: NamesByMinor,
    hidden: Vec<HiddenSymbols>,
    versions: BTreeMap<String, BTreeMap<String, NamesByMinor>>,
}

/// Names by the N that introduced them.
type NamesByMinor = BTreeMap<String, Vec<String>>;

/// Symbols of a library that no wheel may need, with tags below a minor.
#[derive(Deserialize)]
struct HiddenSymbols {
    library: String,
    below: Option<u32>,
    symbols: Vec<String>,
}

static FAMILIES: LazyLock<Option<Families>> =
    // A test keeps the file readable.
    LazyLock::new(|| toml::from_str(include_str!("../data/tags.toml")).ok());

impl Tag {
    /// Parses `manylinux_2_28_x86_64`, `manylinux2014_x86_64`, `musllinux_1_2`. Returns `None` for a tag
    /// without guarantees, or for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let families = FAMILIES.as_ref()?;
        for (family, prefix, guarantees) in [
            (Family::Many, "manylinux_", &families.manylinux),
            (Family::Musl, "musllinux_", &families.musllinux),
        ] {
            if let Some(rest) = text.strip_prefix(prefix) {
                let rest = rest.strip_prefix(&format!("{}_", guarantees.major))?;
                let end = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                return Some(Self {
                    family,
                    minor: rest[..end].parse().ok()?,
                    machine: parse_machine(&rest[end..])?,
                });
            }
            for (alias, &minor) in &guarantees.aliases {
                if let Some(machine) = text.strip_prefix(alias.as_str()).and_then(parse_machine) {
                    return Some(Self {
                        family,
                        minor,
                        machine,
                    });
                }
            }
        }
        None
    }

    fn guarantees(&self) -> Option<&'static Guarantees> {
        let families = FAMILIES.as_ref()?;
        Some(match self.family {
            Family::Many => &families.manylinux,
            Family::Musl => &families.musllinux,
        })
    }

    /// Whether a wheel may need this library without bundling it. `machine` is the image's, as named in
    /// tags.
    pub fn has_library(&self, name: &str, machine: &str) -> bool {
        // The loader itself: `ld-linux-x86-64.so.2`, `ld64.so.2` of s390x and POWER.
        if name.contains("ld-linux") || matches!(name, "ld64.so.1" | "ld64.so.2") {
            return true;
        }
        let libc = match self.family {
            Family::Many => None,
            // Alpine's name of musl; no system has musl's own name, `libc.so`.
            Family::Musl => Some(format!("libc.musl-{}.so.1", musl_machine(machine))),
        };
        let Some(guarantees) = self.guarantees() else {
            return true;
        };
        names_up_to(&guarantees.libraries, self.minor).any(|library| match &libc {
            Some(libc) if library == "libc.so" => name == libc,
            _ => name == library,
        })
    }

    /// Whether some system that this tag covers lacks a version node.
    pub fn lacks_node(&self, node: &str, machine: &str) -> bool {
        let Some(guarantees) = self.guarantees() else {
            return false;
        };
        let Some((prefix, version)) = node.split_once('_') else {
            return false;
        };
        // Between two policies of auditwheel, and after its last, only the tag's own number is
        // certain: the version of glibc.
        let policy = guarantees
            .minors
            .iter()
            .copied()
            .find(|&minor| minor >= self.minor);
        let versions = guarantees
            .versions
            .get(machine)
            .and_then(|versions| versions.get(prefix));
        if policy != Some(self.minor)
            && prefix == "GLIBC"
            && !versions.is_some_and(|versions| is_special(versions, version))
        {
            return parse_number(version).is_some_and(|number| {
                number.cmp(&vec![guarantees.major, self.minor]) == Ordering::Greater
            });
        }
        match (versions, policy) {
            (Some(versions), Some(minor)) => {
                !names_up_to(versions, minor).any(|listed| listed == version)
            }
            _ => false,
        }
    }

    /// The symbols of a library that no wheel may need.
    pub fn hidden(&self, library: &str) -> impl Iterator<Item = &'static str> {
        let (library, minor) = (library.to_owned(), self.minor);
        self.guarantees()
            .into_iter()
            .flat_map(|guarantees| &guarantees.hidden)
            .filter(move |hidden| {
                hidden.library == library && hidden.below.is_none_or(|below| minor < below)
            })
            .flat_map(|hidden| hidden.symbols.iter().map(String::as_str))
    }

    /// The first tag of the family that has all of these version nodes.
    pub fn first_with(&self, nodes: &[&str], machine: &str) -> Option<Self> {
        self.guarantees()?
            .minors
            .iter()
            .filter(|minor| **minor > self.minor)
            .map(|&minor| Self {
                minor,
                ..self.clone()
            })
            .find(|tag| nodes.iter().all(|node| !tag.lacks_node(node, machine)))
    }

    /// The tag without its machine.
    pub fn base(&self) -> Self {
        Self {
            machine: None,
            ..self.clone()
        }
    }
}

/// Symbols that some tag denies; readers of files keep these names.
pub fn hidden_symbols() -> impl Iterator<Item = &'static str> {
    FAMILIES
        .iter()
        .flat_map(|families| [&families.manylinux, &families.musllinux])
        .flat_map(|guarantees| &guarantees.hidden)
        .flat_map(|hidden| hidden.symbols.iter().map(String::as_str))
}

/// Machine after the number of a tag; `None` if other text follows.
fn parse_machine(suffix: &str) -> Option<Option<String>> {
    if suffix.is_empty() {
        return Some(None);
    }
    let machine = suffix.strip_prefix('_')?;
    Some(Some(machine.to_owned()))
}

/// Names of every N that is not newer than `minor`.
fn names_up_to(names: &NamesByMinor, minor: u32) -> impl Iterator<Item = &String> {
    names
        .iter()
        .filter(move |(since, _)| since.parse().is_ok_and(|since: u32| since <= minor))
        .flat_map(|(_, names)| names)
}

/// Whether a version node is listed and has no number: `GLIBC_ABI_DT_RELR`.
fn is_special(versions: &NamesByMinor, version: &str) -> bool {
    parse_number(version).is_none() && versions.values().flatten().any(|listed| listed == version)
}

fn parse_number(version: &str) -> Option<Vec<u32>> {
    version.split('.').map(|part| part.parse().ok()).collect()
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, major) = match self.family {
            Family::Many => ("manylinux", 2),
            Family::Musl => ("musllinux", 1),
        };
        write!(f, "{family}_{major}_{}", self.minor)?;
        match &self.machine {
            Some(machine) => write!(f, "_{machine}"),
            None => Ok(()),
        }
    }
}

/// Name in platform tags of a machine of an image.
pub fn machine_in_tag(machine: &str) -> &str {
    match machine {
        "x86" => "i686",
        "arm" => "armv7l",
        "powerpc64" => "ppc64",
        "powerpc64le" => "ppc64le",
        same => same,
    }
}

fn musl_machine(machine: &str) -> &str {
    match machine {
        "i686" => "x86",
        "armv7l" => "armv7",
        same => same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_readable() {
        let families: Families = toml::from_str(include_str!("../data/tags.toml")).unwrap();
        for guarantees in [families.manylinux, families.musllinux] {
            assert!(guarantees.minors.is_sorted());
            for minor in guarantees
                .versions
                .values()
                .flat_map(BTreeMap::values)
                .chain([&guarantees.libraries])
                .flat_map(BTreeMap::keys)
            {
                assert!(
                    guarantees.minors.contains(&minor.parse().unwrap()),
                    "{minor}"
                );
            }
        }
    }

    #[test]
    fn tags_are_read_and_written() {
        for (text, expected) in [
            ("manylinux1_i686", Some("manylinux_2_5_i686")),
            ("manylinux2014_x86_64", Some("manylinux_2_17_x86_64")),
            ("manylinux_2_28", Some("manylinux_2_28")),
            ("musllinux_1_2_aarch64", Some("musllinux_1_2_aarch64")),
            ("manylinux_3_1_x86_64", None),
            ("manylinux20_x86_64", None),
            ("manylinux_2_28x", None),
            ("manylinux_2_99999999999_x86_64", None),
            ("linux_x86_64", None),
            ("any", None),
        ] {
            let tag = Tag::parse(text).map(|tag| tag.to_string());
            assert_eq!(tag.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn lacks_node_uses_the_policy_or_the_number_of_the_tag() {
        for (tag, node, expected) in [
            ("manylinux2014", "GLIBC_2.17", false),
            ("manylinux2014", "GLIBC_2.18", true),
            ("manylinux2014", "GLIBCXX_3.4.19", false),
            ("manylinux2014", "GLIBCXX_3.4.20", true),
            ("manylinux2014", "GLIBC_PRIVATE", true),
            ("manylinux2014", "OPENSSL_3.0.0", false),
            ("manylinux2014", "Base", false),
            // No policy for this number: glibc by the number, others by the next policy.
            ("manylinux_2_33", "GLIBC_2.33", false),
            ("manylinux_2_33", "GLIBC_2.34", true),
            ("manylinux_2_33", "GLIBCXX_3.4.29", false),
            ("manylinux_2_33", "GLIBCXX_3.4.30", true),
            ("manylinux_2_33", "GLIBC_ABI_DT_RELR", true),
            ("manylinux_2_99", "GLIBC_2.99", false),
            ("manylinux_2_99", "GLIBC_2.100", true),
            ("manylinux_2_99", "GLIBCXX_3.4.99", false),
            ("musllinux_1_1", "GLIBC_2.17", false),
        ] {
            let lacks_node = Tag::parse(tag).unwrap().lacks_node(node, "x86_64");
            assert_eq!(lacks_node, expected, "{tag} {node}");
        }
    }

    fn tag(text: &str) -> Tag {
        Tag::parse(text).unwrap()
    }

    fn hides(tag_text: &str, symbol: &str) -> bool {
        tag(tag_text)
            .hidden("libz.so.1")
            .any(|hidden| hidden == symbol)
    }

    #[test]
    fn libraries_and_hidden_symbols_are_those_of_the_tag() {
        assert!(tag("manylinux1").has_library("libc.so.6", "x86_64"));
        assert!(!tag("manylinux1").has_library("libexpat.so.1", "x86_64"));
        assert!(tag("manylinux_2_29").has_library("libmvec.so.1", "x86_64"));
        assert!(tag("manylinux1").has_library("ld-linux-aarch64.so.1", "aarch64"));
        assert!(!tag("musllinux_1_1").has_library("libc.so.6", "x86_64"));
        assert!(tag("musllinux_1_1").has_library("libc.musl-x86.so.1", "i686"));
        assert!(hidden_symbols().any(|symbol| symbol == "uncompress2"));
        assert!(!hidden_symbols().any(|symbol| symbol == "crc32"));
        assert!(hides("manylinux_2_28", "uncompress2"));
        assert!(!hides("manylinux_2_34", "uncompress2"));
        assert!(hides("manylinux_2_99", "zcalloc"));
        let first = tag("manylinux2014_x86_64").first_with(&["GLIBC_2.34"], "x86_64");
        assert_eq!(first.unwrap().to_string(), "manylinux_2_34_x86_64");
    }
}
