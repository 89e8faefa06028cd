//! Headers of the libraries that gpustub knows: `libraries.toml`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use toml::de::{DeTable, DeValue};

use crate::headers::Headers;
use crate::rules::{Guard, Mechanism, Pattern, Rules, UntypedPointees};

impl Headers {
    /// Headers of a library: `cudart`.
    pub fn for_library(library: &str) -> Option<&'static Self> {
        Self::all().get(library)
    }

    /// Headers of all libraries, by library.
    pub fn all() -> &'static BTreeMap<String, Self> {
        static LIBRARIES: LazyLock<BTreeMap<String, Headers>> = LazyLock::new(|| {
            // Always valid: the tests read it.
            parse(include_str!("../libraries.toml")).unwrap_or_default()
        });
        &LIBRARIES
    }
}

/// Packages with a header that headers of other packages include: for reports.
pub fn packages_of(header: &str) -> Option<String> {
    static PACKAGES: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| parse_packages(include_str!("../packages.toml")).unwrap_or_default());
    PACKAGES
        .iter()
        .filter(|(prefix, _)| header.starts_with(*prefix))
        .max_by_key(|(prefix, _)| prefix.len())
        .map(|(_, packages)| packages.clone())
}

fn parse_packages(text: &str) -> Option<BTreeMap<String, String>> {
    let document = DeTable::parse(text).ok()?;
    let mut packages_by_prefix = BTreeMap::new();
    for (prefix, packages) in document.get_ref() {
        let packages = packages.get_ref().as_str()?.to_owned();
        packages_by_prefix.insert(prefix.get_ref().to_string(), packages);
    }
    Some(packages_by_prefix)
}

pub(crate) fn parse(text: &str) -> Option<BTreeMap<String, Headers>> {
    let document = DeTable::parse(text).ok()?;
    let mut libraries = BTreeMap::new();
    for (id, library) in document.get_ref() {
        libraries.insert(id.get_ref().to_string(), headers(library.get_ref())?);
    }
    Some(libraries)
}

fn headers(library: &DeValue<'_>) -> Option<Headers> {
    let library = Table::new(
        library,
        &["include", "needs", "defines", "behind", "guards"],
    )?;
    let mut rules = Rules {
        guards: Vec::new(),
        untyped_pointees: library.each("behind", |function, patterns| {
            let mut types = Vec::new();
            for pattern in texts(patterns)? {
                types.push(Pattern::new(&pattern)?);
            }
            Some(UntypedPointees { function, types })
        })?,
    };
    if let Some(entries) = library.0.get("guards") {
        for entry in entries.get_ref().as_array()? {
            rules.guards.extend(guards(entry.get_ref())?);
        }
    }
    let needs = library.each("needs", |header, needs| Some((header, texts(needs)?)))?;
    Some(Headers {
        include: lists(library.0.get("include")?.get_ref())?,
        needs: needs.into_iter().collect(),
        defines: match library.0.get("defines") {
            Some(defines) => lists(defines.get_ref())?,
            None => vec![Vec::new()],
        },
        rules: Arc::new(rules),
    })
}

/// Guards of an entry: several, if it names several functions.
fn guards(entry: &DeValue<'_>) -> Option<Vec<Guard>> {
    let keys = [
        "struct",
        "words",
        "version",
        "size",
        "macro",
        "arguments",
        "creator",
        "reader",
    ];
    let entry = Table::new(entry, &keys)?;
    // Outer `None`: no such key. Inner `None`: an invalid pattern.
    let macro_pattern = entry.text("macro").map(|text| Pattern::new(&text));
    let mechanisms = match (entry.text("version"), entry.text("size")) {
        (Some(field), None) => vec![Mechanism::Version(field, macro_pattern??)],
        (None, Some(field)) => match macro_pattern {
            Some(pattern) => vec![Mechanism::Size(field, Some(pattern?))],
            None => vec![Mechanism::Size(field, None)],
        },
        (None, None) => match (entry.text("creator"), entry.text("reader")) {
            (Some(function), None) => vec![Mechanism::Creator(function)],
            (None, Some(function)) => vec![Mechanism::Reader(function)],
            (None, None) => entry.each("arguments", |function, argument| {
                let argument = argument.as_integer()?.as_str().parse().ok()?;
                Some(Mechanism::Argument(function, argument))
            })?,
            _ => return None,
        },
        _ => return None,
    };
    let structs = Pattern::new(&entry.text("struct")?)?;
    let words = entry.text("words")?;
    let guards: Vec<Guard> = mechanisms
        .into_iter()
        .map(|mechanism| Guard {
            structs: structs.clone(),
            mechanism,
            words: words.clone(),
        })
        .collect();
    (!guards.is_empty()).then_some(guards)
}

/// A table without unknown keys.
struct Table<'a>(&'a DeTable<'a>);

impl<'a> Table<'a> {
    fn new(value: &'a DeValue<'a>, keys: &[&str]) -> Option<Self> {
        let table = value.as_table()?;
        table
            .keys()
            .all(|key| keys.contains(&key.get_ref().as_ref()))
            .then_some(Self(table))
    }

    fn text(&self, key: &str) -> Option<String> {
        Some(self.0.get(key)?.get_ref().as_str()?.to_owned())
    }

    /// Values of the keys of an inner table; none without it.
    fn each<T>(
        &self,
        key: &str,
        read: impl Fn(String, &DeValue<'_>) -> Option<T>,
    ) -> Option<Vec<T>> {
        let Some(table) = self.0.get(key) else {
            return Some(Vec::new());
        };
        table
            .get_ref()
            .as_table()?
            .iter()
            .map(|(key, value)| read(key.get_ref().to_string(), value.get_ref()))
            .collect()
    }
}

fn lists(value: &DeValue<'_>) -> Option<Vec<Vec<String>>> {
    value
        .as_array()?
        .iter()
        .map(|list| texts(list.get_ref()))
        .collect()
}

fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    value
        .as_array()?
        .iter()
        .map(|text| Some(text.get_ref().as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_data_is_read() {
        let libraries = Headers::all();
        assert!(libraries.len() > 20, "libraries.toml is broken");
        let hip = Headers::for_library("hip").unwrap();
        assert_eq!(hip.include, [["hip/hip_runtime_api.h"]]);
        assert_eq!(hip.defines[0], ["__HIP_PLATFORM_AMD__"]);
        for (id, library) in libraries {
            for header in library.include.iter().flatten().chain(library.needs.keys()) {
                assert!(header.ends_with(".h"), "{id}: {header}");
            }
        }
    }

    #[test]
    fn packages_are_those_of_the_longest_start() {
        let packages = packages_of("nv/target").unwrap();
        assert!(packages.starts_with("nvidia-cuda-cccl,"));
        assert_eq!(
            packages_of("hipblas-common/hipblas-common.h").as_deref(),
            Some("libhipblas-common-dev")
        );
        assert_eq!(packages_of("cstddef"), None);
    }

    #[test]
    fn malformed_data_is_rejected() {
        for malformed in [
            "[a]",
            "[a]\ninclude = ['x.h']",
            "[a]\ninclude = [['x.h']]\nincludes = []",
            "[a]\ninclude = [['x.h']]\nbehind = ['x']",
            "[a]\ninclude = [['x.h']]\nbehind = { f = ['a*b*'] }",
            "[a]\ninclude = [['x.h']]\nguards = [{ struct = 's', words = '' }]",
            "[a]\ninclude = [['x.h']]\nguards = [{ struct = 's', version = 'v', words = '' }]",
            "[a]\ninclude = [['x.h']]\nguards = [{ struct = 's', creator = 'f', reader = 'g', words = '' }]",
            "[a]\ninclude = [['x.h']]\nguards = [{ struct = 's', creator = 'f' }]",
            "a",
        ] {
            assert_eq!(parse(malformed), None, "{malformed}");
        }
    }
}
