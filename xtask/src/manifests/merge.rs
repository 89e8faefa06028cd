//! Merges the symbols of all versions of a library into one list.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::Version;

/// Evidence about the symbols of one version.
#[derive(Default)]
pub struct VersionSymbols {
    /// The library itself, if a package has it.
    pub exports: Option<SymbolList>,
    /// Names that its headers declare, if they were read.
    pub declared: Option<BTreeSet<String>>,
}

/// Fails if copied data has several sizes: a stub has one.
pub fn check_sizes(versions: &BTreeMap<Version, VersionSymbols>) -> Result<(), String> {
    let mut sizes = BTreeMap::new();
    for (version, evidence) in versions {
        let symbols = evidence.exports.iter().flat_map(|exports| &exports.symbols);
        for symbol in symbols.filter(|symbol| symbol.is_copied()) {
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
///
/// A version without its library is between two libraries, or before or after all of them; see [`Evidence::fill`].
pub fn merge(versions: Vec<(Version, VersionSymbols)>) -> SymbolList {
    let mut list = SymbolList {
        releases: versions.iter().map(|(version, _)| *version).collect(),
        ..SymbolList::default()
    };
    let mut evidence = Evidence {
        releases: list.releases.clone(),
        ..Evidence::default()
    };
    // For each symbol whether the libraries have it.
    let mut merged: BTreeMap<(String, Option<String>), (Symbol, BTreeSet<usize>)> = BTreeMap::new();
    for (index, (_, version)) in versions.into_iter().enumerate() {
        if let Some(exports) = version.exports {
            evidence.libraries.insert(index);
            list.soname = exports.soname.or(list.soname);
            for symbol in exports.symbols.into_iter().filter(is_api) {
                let symbol = without_soname_version(symbol, list.soname.as_deref());
                let key = (symbol.name.clone(), symbol.version.clone());
                let (_, presence) = merged.entry(key).or_insert((symbol, BTreeSet::new()));
                presence.insert(index);
            }
        }
        evidence.declared.push(version.declared);
    }
    for name in evidence.declared_after_libraries() {
        if merged.keys().all(|(known, _)| known != name) {
            let symbol = Symbol {
                name: name.clone(),
                ..Symbol::default()
            };
            merged.insert((name.clone(), None), (symbol, BTreeSet::new()));
        }
    }
    for (mut symbol, presence) in merged.into_values() {
        let presence = evidence.fill(&symbol.name, &presence);
        symbol.releases = ranges(&list.releases, &presence);
        list.symbols.push(symbol);
    }
    list.normalise();
    list
}

/// Evidence about all versions, by index.
#[derive(Default)]
struct Evidence {
    releases: Vec<Version>,
    /// Versions whose library was read.
    libraries: BTreeSet<usize>,
    declared: Vec<Option<BTreeSet<String>>>,
}

impl Evidence {
    /// Whether each version has a function that these libraries have.
    ///
    /// Libraries export more than their headers declare, and keep within a major what headers no longer declare: what
    /// two libraries have, those between them have as well. What is new in a library is in those that declare it, and
    /// what is gone from it was in those that still declared it.
    fn fill(&self, name: &str, exported: &BTreeSet<usize>) -> Vec<bool> {
        let mut presence: Vec<bool> = Vec::new();
        for (index, release) in self.releases.iter().enumerate() {
            let before = self.libraries.range(..index).next_back();
            let after = self.libraries.range(index + 1..).next();
            let is_in =
                |library: Option<&usize>| library.is_some_and(|index| exported.contains(index));
            let had_it = presence.last() == Some(&true);
            let is_present = if self.libraries.contains(&index) {
                exported.contains(&index)
            } else {
                match (before, after) {
                    (_, None) => had_it || self.declares(index, name),
                    _ if is_in(before) && is_in(after) => true,
                    // Nothing is known about earlier versions of functions that no header declared by then.
                    (None, Some(after)) => {
                        let is_documented = (0..=*after).any(|index| self.declares(index, name));
                        is_in(Some(after))
                            && (!is_documented || had_it || self.declares(index, name))
                    }
                    (Some(before), Some(_)) if is_in(after) => {
                        had_it || (self.declares(index, name) && !self.declares(*before, name))
                    }
                    (Some(before), Some(after)) => {
                        let is_last_of_major = self.releases[*before].major == release.major
                            && self.releases[*after].major != release.major;
                        had_it && (is_last_of_major || self.declares(index, name))
                    }
                }
            };
            presence.push(is_present);
        }
        presence
    }

    /// Functions of versions after the last library, which headers alone name. What headers declared before, that
    /// library would have.
    fn declared_after_libraries(&self) -> BTreeSet<&String> {
        let index = self.libraries.last().map_or(0, |last| last + 1);
        let (before, after) = self.declared.split_at(index);
        let before: BTreeSet<&String> = before.iter().flatten().flatten().collect();
        let after: BTreeSet<&String> = after.iter().flatten().flatten().collect();
        &after - &before
    }

    fn declares(&self, index: usize, name: &str) -> bool {
        self.declared[index]
            .as_ref()
            .is_some_and(|declared| declared.contains(name))
    }
}

/// Adds the functions that only Windows has, by ascending versions. A version without a row has those of the one before,
/// or of the first.
pub fn add_windows(list: &mut SymbolList, rows: &[(Version, BTreeSet<String>)]) {
    let names: BTreeSet<&String> = rows.iter().flat_map(|(_, names)| names).collect();
    for name in names {
        if !list.lookup(name).is_empty() {
            continue;
        }
        let mut presence = Vec::new();
        for release in &list.releases {
            let row = rows.iter().rfind(|(version, _)| version <= release);
            let row = row.or(rows.first());
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
        VersionSymbols {
            exports: Some(list),
            declared: None,
        }
    }

    fn declared(names: &[&str]) -> VersionSymbols {
        VersionSymbols {
            exports: None,
            declared: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        }
    }

    #[test]
    fn copied_data_stays_if_it_has_one_size() {
        let data = |size| {
            let mut library = exports("lib.so", &[("f", None), ("x", None), ("y", None)]);
            let symbols = &mut library.exports.as_mut().expect("exports").symbols;
            for (symbol, copied) in symbols[1..].iter_mut().zip([true, false]) {
                symbol.kind = SymbolKind::Object;
                symbol.size = size;
                symbol.copied = copied;
            }
            library
        };
        let versions = |sizes: [u64; 2]| {
            BTreeMap::from([
                (Version::new(1, 0), data(sizes[0])),
                (Version::new(2, 0), data(sizes[1])),
            ])
        };
        assert_eq!(check_sizes(&versions([8, 8])), Ok(()));
        assert_eq!(
            check_sizes(&versions([8, 4])),
            Err("`x` has 8 bytes in 1.0 and 4 in 2.0: a stub cannot be a copy".to_owned())
        );
        assert_eq!(
            merge(versions([8, 8]).into_iter().collect()).to_text(),
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
            (Version::new(13, 5), declared(&["declared", "gap"])),
        ]);
        assert_eq!(
            list.to_text(),
            "@gpustub-symbols 1\n@soname lib.so.13\n@releases 11.8 12.9 13.0 13.5\n\
             all\ndeclared releases=13.5-\ngap releases=11.8,13.0-\nnew releases=12.9-\nold releases=11.8\n"
        );
    }

    /// Versions of headers between libraries, before the first and after the last.
    #[test]
    fn headers_date_what_libraries_lack() {
        let libraries = [
            ((11, 8), &["internal", "kept", "old", "quiet"][..]),
            (
                (12, 9),
                &["internal", "kept", "late", "new", "quiet", "undeclared"],
            ),
        ];
        let mut versions = vec![
            (Version::new(11, 7), declared(&["kept"])),
            (Version::new(12, 0), declared(&["kept", "late"])),
            (Version::new(12, 4), declared(&["new", "other"])),
            (Version::new(13, 0), declared(&["next", "new", "other"])),
        ];
        for ((major, minor), names) in libraries {
            let names: Vec<_> = names.iter().map(|name| (*name, None)).collect();
            versions.push((Version::new(major, minor), exports("lib.so", &names)));
        }
        versions.sort_by_key(|(version, _)| *version);
        // `late` was declared before it was exported. `quiet` was declared later, so that nothing is known about 11.7.
        versions[1].1.declared = Some(["kept", "late", "old"].map(str::to_owned).into());
        versions[4].1.declared = Some(["kept", "quiet"].map(str::to_owned).into());
        assert_eq!(
            merge(versions).to_text(),
            "@gpustub-symbols 1\n@soname lib.so\n@releases 11.7 11.8 12.0 12.4 12.9 13.0\n\
             internal\nkept\nlate releases=12.9-\nnew releases=12.4-\nnext releases=13.0-\n\
             old releases=11.8\nquiet\nundeclared releases=12.9-\n"
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
