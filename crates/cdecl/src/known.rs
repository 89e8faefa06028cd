//! Headers of the libraries that gpustub knows: `libraries.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use toml::de::{DeTable, DeValue};

use crate::headers::Headers;

impl Headers {
    /// Headers of a library: `cudart`.
    pub fn for_library(library: &str) -> Option<&'static Self> {
        Self::all().get(library)
    }

    /// Headers of all libraries, by library. Without hiprand, whose headers are C++.
    pub fn all() -> &'static BTreeMap<String, Self> {
        static ALL: LazyLock<BTreeMap<String, Headers>> = LazyLock::new(|| {
            // Always valid: the tests read it.
            parse(include_str!("../libraries.toml")).unwrap_or_default()
        });
        &ALL
    }
}

fn parse(text: &str) -> Option<BTreeMap<String, Headers>> {
    let document = DeTable::parse(text).ok()?;
    let libraries = document.get_ref().iter();
    let libraries = libraries.map(|(id, library)| {
        let library = library.get_ref().as_table()?;
        let keys = ["include", "needs", "defines"];
        let known = library
            .keys()
            .all(|key| keys.contains(&key.get_ref().as_ref()));
        let value = |key: &str| library.get(key).map(toml::Spanned::get_ref);
        let needs = value("needs").map_or(Some(BTreeMap::new()), |needs| {
            let needs = needs.as_table()?.iter();
            let needs = needs.map(|(k, v)| Some((k.get_ref().to_string(), texts(v.get_ref())?)));
            needs.collect()
        });
        let headers = Headers {
            include: lists(value("include")?)?,
            needs: needs?,
            defines: value("defines").map_or(Some(vec![Vec::new()]), lists)?,
        };
        known.then(|| (id.get_ref().to_string(), headers))
    });
    libraries.collect()
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
    fn malformed_data_is_rejected() {
        for wrong in [
            "[a]",
            "[a]\ninclude = ['x.h']",
            "[a]\ninclude = [['x.h']]\nincludes = []",
            "a",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
