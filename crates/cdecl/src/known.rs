//! Headers of the libraries that gpustub knows: `libraries.toml`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use toml::de::{DeTable, DeValue};

use crate::headers::Headers;
use crate::rules::{Behind, By, Guard, Pattern, Rules};

impl Headers {
    /// Headers of a library: `cudart`.
    pub fn for_library(library: &str) -> Option<&'static Self> {
        Self::all().get(library)
    }

    /// Headers of all libraries, by library.
    pub fn all() -> &'static BTreeMap<String, Self> {
        static ALL: LazyLock<BTreeMap<String, Headers>> = LazyLock::new(|| {
            // Always valid: the tests read it.
            parse(include_str!("../libraries.toml")).unwrap_or_default()
        });
        &ALL
    }
}

/// Packages with a header that headers of other packages include: for reports.
pub fn packages_of(header: &str) -> Option<String> {
    static ALL: LazyLock<BTreeMap<String, String>> =
        LazyLock::new(|| parse_packages(include_str!("../packages.toml")).unwrap_or_default());
    let starts = ALL.iter().filter(|(start, _)| header.starts_with(*start));
    let found = starts.max_by_key(|(start, _)| start.len());
    found.map(|(_, packages)| packages.clone())
}

fn parse_packages(text: &str) -> Option<BTreeMap<String, String>> {
    let document = DeTable::parse(text).ok()?;
    let entries = document.get_ref().iter();
    let entries = entries.map(|(start, packages)| {
        let packages = packages.get_ref().as_str()?;
        Some((start.get_ref().to_string(), packages.to_owned()))
    });
    entries.collect()
}

pub(crate) fn parse(text: &str) -> Option<BTreeMap<String, Headers>> {
    let document = DeTable::parse(text).ok()?;
    let libraries = document.get_ref().iter();
    let libraries = libraries.map(|(id, library)| {
        let library = Table::new(
            library.get_ref(),
            &["include", "needs", "defines", "behind", "guards"],
        )?;
        let guards: Vec<_> = match library.0.get("guards") {
            None => Vec::new(),
            Some(entries) => {
                let entries = entries.get_ref().as_array()?.iter();
                entries
                    .map(|entry| guards_of(entry.get_ref()))
                    .collect::<Option<_>>()?
            }
        };
        let behind = library.each("behind", |function, types| {
            let types = texts(types)?;
            let types = types
                .iter()
                .map(|text| Pattern::new(text))
                .collect::<Option<_>>()?;
            Some(Behind { function, types })
        });
        let rules = Rules {
            guards: guards.into_iter().flatten().collect(),
            behind: behind?,
        };
        let needs = library.each("needs", |header, needs| Some((header, texts(needs)?)));
        let defines = library.0.get("defines");
        let headers = Headers {
            include: lists(library.0.get("include")?.get_ref())?,
            needs: needs?.into_iter().collect(),
            defines: defines.map_or(Some(vec![Vec::new()]), |found| lists(found.get_ref()))?,
            rules: Arc::new(rules),
        };
        Some((id.get_ref().to_string(), headers))
    });
    libraries.collect()
}

/// Guards of an entry: several, if it names several functions.
fn guards_of(entry: &DeValue<'_>) -> Option<Vec<Guard>> {
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
    let pattern = |key| entry.text(key).map(|text| Pattern::new(&text));
    let by_macro = pattern("macro");
    let ways = match (entry.text("version"), entry.text("size")) {
        (Some(field), None) => vec![By::Version(field, by_macro??)],
        (None, Some(field)) => match by_macro {
            Some(name) => vec![By::Size(field, Some(name?))],
            None => vec![By::Size(field, None)],
        },
        (None, None) => match (entry.text("creator"), entry.text("reader")) {
            (Some(function), None) => vec![By::Creator(function)],
            (None, Some(function)) => vec![By::Reader(function)],
            (None, None) => entry.each("arguments", |function, at| {
                let at = at.as_integer()?.as_str().parse().ok()?;
                Some(By::Argument(function, at))
            })?,
            _ => return None,
        },
        _ => return None,
    };
    let (of, words) = (pattern("struct")??, entry.text("words")?);
    let guards = ways.into_iter().map(|by| Guard {
        of: of.clone(),
        by,
        words: words.clone(),
    });
    let guards: Vec<_> = guards.collect();
    (!guards.is_empty()).then_some(guards)
}

/// A table without unknown keys.
struct Table<'a>(&'a DeTable<'a>);

impl<'a> Table<'a> {
    fn new(value: &'a DeValue<'a>, keys: &[&str]) -> Option<Self> {
        let table = value.as_table()?;
        let mut known = table
            .keys()
            .map(|key| keys.contains(&key.get_ref().as_ref()));
        known.all(|known| known).then_some(Self(table))
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
        let entries = table.get_ref().as_table()?.iter();
        entries
            .map(|(key, value)| read(key.get_ref().to_string(), value.get_ref()))
            .collect()
    }
}

fn lists(value: &DeValue<'_>) -> Option<Vec<Vec<String>>> {
    let lists = value.as_array()?.iter();
    lists.map(|list| texts(list.get_ref())).collect()
}

fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    let texts = value.as_array()?.iter();
    texts
        .map(|text| Some(text.get_ref().as_str()?.to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_data_is_read() {
        let all = Headers::all();
        assert!(all.len() > 20, "libraries.toml is broken");
        let hip = Headers::for_library("hip").unwrap();
        assert_eq!(hip.include, [["hip/hip_runtime_api.h"]]);
        assert_eq!(hip.defines[0], ["__HIP_PLATFORM_AMD__"]);
        for (id, headers) in all {
            let headers = (headers.include.iter().flatten()).chain(headers.needs.keys());
            for header in headers {
                assert!(header.ends_with(".h"), "{id}: {header}");
            }
        }
    }

    #[test]
    fn packages_are_those_of_the_longest_start() {
        let of = |header| packages_of(header).unwrap_or_default();
        assert!(of("nv/target").starts_with("nvidia-cuda-cccl,"));
        assert_eq!(
            of("hipblas-common/hipblas-common.h"),
            "libhipblas-common-dev"
        );
        assert_eq!(packages_of("cstddef"), None);
    }

    #[test]
    fn malformed_data_is_rejected() {
        for wrong in [
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
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
