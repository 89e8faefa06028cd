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
struct Data {
    manylinux: Promises,
    musllinux: Promises,
}

#[derive(Deserialize)]
struct Promises {
    major: u32,
    minors: Vec<u32>,
    aliases: BTreeMap<String, u32>,
    libraries: Since,
    hidden: Vec<Hidden>,
    versions: BTreeMap<String, BTreeMap<String, Since>>,
}

/// Names by the N that introduced them.
type Since = BTreeMap<String, Vec<String>>;

#[derive(Deserialize)]
struct Hidden {
    library: String,
    below: Option<u32>,
    symbols: Vec<String>,
}

static DATA: LazyLock<Option<Data>> =
    // A test keeps the file readable.
    LazyLock::new(|| toml::from_str(include_str!("../data/tags.toml")).ok());

impl Tag {
    /// Parses `manylinux_2_28_x86_64`, `manylinux2014_x86_64`, `musllinux_1_2`. Returns `None` for a tag
    /// without guarantees, or for other text.
    pub fn parse(text: &str) -> Option<Self> {
        let data = DATA.as_ref()?;
        let families = [
            (Family::Many, "manylinux_", &data.manylinux),
            (Family::Musl, "musllinux_", &data.musllinux),
        ];
        let machine = |rest: &str| match rest {
            "" => Some(None),
            rest => rest
                .strip_prefix('_')
                .map(|machine| Some(machine.to_owned())),
        };
        for (family, prefix, promises) in families {
            if let Some(rest) = text.strip_prefix(prefix) {
                let rest = rest.strip_prefix(&format!("{}_", promises.major))?;
                let end = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                return Some(Self {
                    family,
                    minor: rest[..end].parse().ok()?,
                    machine: machine(&rest[end..])?,
                });
            }
            for (alias, &minor) in &promises.aliases {
                if let Some(machine) = text.strip_prefix(alias.as_str()).and_then(machine) {
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

    fn promises(&self) -> Option<&'static Promises> {
        let data = DATA.as_ref()?;
        Some(match self.family {
            Family::Many => &data.manylinux,
            Family::Musl => &data.musllinux,
        })
    }

    /// Names of every N that is not newer than `minor`.
    fn up_to(since: &Since, minor: u32) -> impl Iterator<Item = &String> {
        since
            .iter()
            .filter(move |(from, _)| from.parse().is_ok_and(|from: u32| from <= minor))
            .flat_map(|(_, names)| names)
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
        let Some(promises) = self.promises() else {
            return true;
        };
        Self::up_to(&promises.libraries, self.minor).any(|known| match &libc {
            Some(libc) if known == "libc.so" => name == libc,
            _ => name == known,
        })
    }

    /// Whether some system that this tag covers lacks a version node.
    pub fn lacks_node(&self, node: &str, machine: &str) -> bool {
        let Some(promises) = self.promises() else {
            return false;
        };
        let Some((prefix, version)) = node.split_once('_') else {
            return false;
        };
        // Between two policies of auditwheel, and after its last, only the tag's own number is
        // certain: the version of glibc.
        let policy = promises.minors.iter().find(|&&n| n >= self.minor);
        let listed = promises.versions.get(machine).and_then(|v| v.get(prefix));
        if policy != Some(&self.minor)
            && prefix == "GLIBC"
            && !listed.is_some_and(is_special(version))
        {
            return number(version).is_some_and(|version| {
                version.cmp(&vec![promises.major, self.minor]) == Ordering::Greater
            });
        }
        match (listed, policy) {
            (Some(since), Some(&minor)) => !Self::up_to(since, minor).any(|known| known == version),
            _ => false,
        }
    }

    /// The symbols of a library that no wheel may need.
    pub fn hidden(&self, library: &str) -> impl Iterator<Item = &'static str> {
        let (library, minor) = (library.to_owned(), self.minor);
        self.promises()
            .into_iter()
            .flat_map(|promises| &promises.hidden)
            .filter(move |h| h.library == library && h.below.is_none_or(|below| minor < below))
            .flat_map(|hidden| hidden.symbols.iter().map(String::as_str))
    }

    /// The first tag of the family that has all of these version nodes.
    pub fn first_with(&self, nodes: &[&str], machine: &str) -> Option<Self> {
        let minors = self.promises()?.minors.iter();
        let tags = minors.map(|&minor| Self {
            minor,
            ..self.clone()
        });
        tags.filter(|tag| tag.minor > self.minor)
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
    let families = DATA
        .iter()
        .flat_map(|data| [&data.manylinux, &data.musllinux]);
    families
        .flat_map(|promises| &promises.hidden)
        .flat_map(|hidden| hidden.symbols.iter().map(String::as_str))
}

/// Whether a node is listed and has no number: `GLIBC_ABI_DT_RELR`.
fn is_special(version: &str) -> impl Fn(&Since) -> bool {
    move |since| number(version).is_none() && since.values().flatten().any(|v| v == version)
}

fn number(version: &str) -> Option<Vec<u32>> {
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
        let data: Data = toml::from_str(include_str!("../data/tags.toml")).unwrap();
        for promises in [data.manylinux, data.musllinux] {
            assert!(promises.minors.is_sorted());
            let since = promises.versions.values().flat_map(BTreeMap::values);
            for from in since.chain([&promises.libraries]).flat_map(BTreeMap::keys) {
                assert!(promises.minors.contains(&from.parse().unwrap()), "{from}");
            }
        }
    }

    #[test]
    fn tags_are_read_and_written() {
        for (text, shown) in [
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
            assert_eq!(tag.as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn lacks_node_uses_the_policy_or_the_number_of_the_tag() {
        let lacks = |tag: &str, node: &str| {
            let tag = Tag::parse(tag).unwrap();
            tag.lacks_node(node, "x86_64")
        };
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
            assert_eq!(lacks(tag, node), expected, "{tag} {node}");
        }
    }

    #[test]
    fn libraries_and_hidden_symbols_are_those_of_the_tag() {
        let tag = |text| Tag::parse(text).unwrap();
        assert!(tag("manylinux1").has_library("libc.so.6", "x86_64"));
        assert!(!tag("manylinux1").has_library("libexpat.so.1", "x86_64"));
        assert!(tag("manylinux_2_29").has_library("libmvec.so.1", "x86_64"));
        assert!(tag("manylinux1").has_library("ld-linux-aarch64.so.1", "aarch64"));
        assert!(!tag("musllinux_1_1").has_library("libc.so.6", "x86_64"));
        assert!(tag("musllinux_1_1").has_library("libc.musl-x86.so.1", "i686"));
        let is_hidden = |symbol| hidden_symbols().any(|name| name == symbol);
        assert!(is_hidden("uncompress2") && !is_hidden("crc32"));
        let hidden = |text, symbol| tag(text).hidden("libz.so.1").any(|s| s == symbol);
        assert!(hidden("manylinux_2_28", "uncompress2"));
        assert!(!hidden("manylinux_2_34", "uncompress2"));
        assert!(hidden("manylinux_2_99", "zcalloc"));
        let first = tag("manylinux2014_x86_64").first_with(&["GLIBC_2.34"], "x86_64");
        assert_eq!(first.unwrap().to_string(), "manylinux_2_34_x86_64");
    }
}
