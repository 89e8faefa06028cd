//! Merges the symbols of all versions of a library into one list.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::Version;

/// Symbols of one version.
pub enum VersionSymbols {
    /// The library itself.
    Exports(SymbolList),
    /// Names that a header declares; the library also has the names of the previous version.
    Declared(Vec<String>),
}

/// Fails if copied data has several sizes: a stub has one.
pub fn check_sizes(versions: &[(Version, VersionSymbols)]) -> Result<(), String> {
    let mut sizes = BTreeMap::new();
    for (version, evidence) in versions {
        let VersionSymbols::Exports(exports) = evidence else {
            continue;
        };
        for symbol in exports.symbols.iter().filter(|symbol| symbol.is_copied()) {
            let (first, size) = *sizes.entry(&symbol.name).or_insert((version, symbol.size));
            if size != symbol.size {
                return Err(format!(
                    "`{}` has {size} bytes in {first} and {} in {version}: a stub cannot be a copy",
                    symbol.name, symbol.size
                ));
            }
        }
    }
    Ok(())
}

/// Merges ascending versions. Keeps functions with C names, and data that stubs copy: mangled names and the
/// compiler's helpers are no part of an API.
pub fn merge(versions: Vec<(Version, VersionSymbols)>) -> SymbolList {
    let mut list = SymbolList {
        releases: versions.iter().map(|(version, _)| *version).collect(),
        ..SymbolList::default()
    };
    // For each symbol whether the versions have it.
    let mut merged: BTreeMap<(String, Option<String>), (Symbol, Vec<bool>)> = BTreeMap::new();
    for (index, (_, evidence)) in versions.into_iter().enumerate() {
        let mut symbols = Vec::new();
        match evidence {
            VersionSymbols::Exports(exports) => {
                list.soname = exports.soname.or(list.soname);
                for symbol in exports.symbols.into_iter().filter(is_api) {
                    symbols.push(without_soname_version(symbol, list.soname.as_deref()));
                }
            }
            VersionSymbols::Declared(names) => {
                for (symbol, presence) in merged.values() {
                    if presence.last() == Some(&true) {
                        symbols.push(symbol.clone());
                    }
                }
                symbols.extend(names.into_iter().map(|name| Symbol {
                    name,
                    ..Symbol::default()
                }));
            }
        }
        for symbol in symbols {
            let key = (symbol.name.clone(), symbol.version.clone());
            let (_, presence) = merged.entry(key).or_insert((symbol, Vec::new()));
            presence.resize(index, false);
            presence.push(true);
        }
        for (_, presence) in merged.values_mut() {
            presence.resize(index + 1, false);
        }
    }
    for (mut symbol, presence) in merged.into_values() {
        symbol.releases = ranges(&list.releases, &presence);
        list.symbols.push(symbol);
    }
    list.normalise();
    list
}

/// Adds the functions that only Windows has, by ascending versions. A version without a row has those of the one before.
pub fn add_windows(list: &mut SymbolList, rows: &[(Version, BTreeSet<String>)]) {
    let names: BTreeSet<&String> = rows.iter().flat_map(|(_, names)| names).collect();
    for name in names {
        if !list.lookup(name).is_empty() {
            continue;
        }
        let mut presence = Vec::new();
        for release in &list.releases {
            let row = rows.iter().rfind(|(version, _)| version <= release);
            presence.push(row.is_some_and(|(_, names)| names.contains(name)));
        }
        list.symbols.push(Symbol {
            name: name.clone(),
            system: Some("windows"),
            releases: ranges(&list.releases, &presence),
            ..Symbol::default()
        });
        list.normalise();
    }
}

/// Symbols that linkers add to the exports of a library without a version script (libcufile, libnccl).
const ADDED: [&str; 5] = ["__bss_start", "_edata", "_end", "_fini", "_init"];

fn is_api(symbol: &Symbol) -> bool {
    let name = &symbol.name[..];
    let is_helper = name.starts_with("_Z") || name.starts_with("__gnu_") || ADDED.contains(&name);
    (!symbol.kind.is_data() || symbol.is_copied()) && !is_helper
}

/// Removes a symbol version that is named like the soname. NVIDIA's libraries have one such version, which
/// changes with the major; a program may be bound to any of them.
fn without_soname_version(mut symbol: Symbol, soname: Option<&str>) -> Symbol {
    if symbol.version.as_deref() == soname {
        symbol.version = None;
    }
    symbol
}

/// Runs of versions that have a symbol; none if all have it.
fn ranges(versions: &[Version], presence: &[bool]) -> Vec<(Version, Version)> {
    if presence.iter().all(|is_present| *is_present) {
        return Vec::new();
    }
    let versions: Vec<_> = versions.iter().zip(presence).collect();
    versions
        .chunk_by(|(_, a), (_, b)| a == b)
        .filter(|run| *run[0].1)
        .map(|run| (*run[0].0, *run[run.len() - 1].0))
        .collect()
}

#[cfg(test)]
mod tests {
    use gpustub_core::symbols::SymbolKind;

    use super::*;

    fn exports(soname: &str, symbols: &[(&str, Option<&str>)]) -> VersionSymbols {
        let mut list = SymbolList {
            soname: Some(soname.into()),
            machine: Some("x86_64".into()),
            ..SymbolList::default()
        };
        for (name, version) in symbols {
            list.symbols.push(Symbol {
                name: (*name).into(),
                version: version.map(String::from),
                ..Symbol::default()
            });
        }
        VersionSymbols::Exports(list)
    }

    #[test]
    fn copied_data_stays_if_it_has_one_size() {
        let data = |size| {
            let VersionSymbols::Exports(mut list) =
                exports("lib.so", &[("f", None), ("x", None), ("y", None)])
            else {
                unreachable!("exports");
            };
            for (symbol, copied) in list.symbols[1..].iter_mut().zip([true, false]) {
                symbol.kind = SymbolKind::Object;
                symbol.size = size;
                symbol.copied = copied;
            }
            VersionSymbols::Exports(list)
        };
        let versions = |sizes: [u64; 2]| {
            vec![
                (Version::new(1, 0), data(sizes[0])),
                (Version::new(2, 0), data(sizes[1])),
            ]
        };
        assert_eq!(check_sizes(&versions([8, 8])), Ok(()));
        assert_eq!(
            check_sizes(&versions([8, 4])),
            Err("`x` has 8 bytes in 1.0 and 4 in 2.0: a stub cannot be a copy".to_owned())
        );
        assert_eq!(
            merge(versions([8, 8])).to_text(),
            "@gpustub-symbols 1\n@soname lib.so\n@releases 1.0 2.0\nf\nx kind=object size=8 copied\n"
        );
    }

    #[test]
    fn versions_become_ranges() {
        let list = merge(vec![
            (
                Version::new(11, 8),
                exports("lib.so.11", &[("old", None), ("all", None), ("gap", None)]),
            ),
            (
                Version::new(12, 9),
                exports("lib.so.12", &[("all", Some("lib.so.12")), ("new", None)]),
            ),
            (
                Version::new(13, 0),
                exports("lib.so.13", &[("all", None), ("gap", None), ("new", None)]),
            ),
            (
                Version::new(13, 5),
                VersionSymbols::Declared(vec!["declared".into(), "gap".into()]),
            ),
        ]);
        assert_eq!(
            list.to_text(),
            "@gpustub-symbols 1\n@soname lib.so.13\n@releases 11.8 12.9 13.0 13.5\n\
             all\ndeclared releases=13.5-\ngap releases=11.8,13.0-\nnew releases=12.9-\nold releases=11.8\n"
        );
    }

    #[test]
    fn windows_adds_the_functions_that_others_lack() {
        let releases = [(11, 8), (12, 9), (13, 0)];
        let mut list = merge(
            releases
                .map(|(major, minor)| {
                    (
                        Version::new(major, minor),
                        exports("lib.so", &[("all", None)]),
                    )
                })
                .into(),
        );
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let rows = [
            (Version::new(11, 8), names(&["all", "every", "old"])),
            (Version::new(12, 9), names(&["all", "every", "new"])),
        ];
        add_windows(&mut list, &rows);
        assert_eq!(
            list.to_text(),
            "@gpustub-symbols 1\n@soname lib.so\n@releases 11.8 12.9 13.0\nall\nevery system=windows\n\
             new system=windows releases=12.9-\nold system=windows releases=11.8\n"
        );
    }

    #[test]
    fn merge_keeps_functions_of_the_api_and_meaningful_nodes() {
        let symbols = [
            ("hipInit", Some("hip_4.2")),
            ("_Z3hipv", None),
            ("__gnu_h2f_ieee", Some("hip_4.2")),
            ("_init", None),
            ("_end", None),
        ];
        let list = merge(vec![(Version::new(5, 2), exports("lib.so.5", &symbols))]);
        assert_eq!(
            list.to_text(),
            "@gpustub-symbols 1\n@soname lib.so.5\n@releases 5.2\nhipInit version=hip_4.2\n"
        );
    }
}
