//! Corpus of the fuzz targets, without a fuzzer.

use std::fs;
use std::path::Path;

/// Body of a target, which gets the input.
type Body = fn(&str);

#[test]
fn every_input_of_the_corpus_is_read_without_a_panic() {
    let bodies: [(&str, Body); 5] = [
        ("device_link", gpustub_core::fuzz::device_link),
        ("library", gpustub_core::fuzz::library),
        ("manifest", gpustub_core::fuzz::manifest),
        ("super_archive_write", |text| {
            gpustub_superarchive::fuzz::super_archive_write(text);
        }),
        ("symbols", gpustub_core::fuzz::symbols),
    ];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let mut directories: Vec<_> = fs::read_dir(&corpus)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    directories.sort();
    assert_eq!(directories, bodies.map(|(name, _)| name));
    for (name, body) in bodies {
        let mut inputs = 0;
        for entry in fs::read_dir(corpus.join(name)).unwrap() {
            body(&fs::read_to_string(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs > 0, "{name}");
    }
}

/// A change of a format could silently turn the seeds into invalid inputs.
#[test]
fn seeds_get_past_the_readers() {
    let seed = |path: &str| {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
        fs::read_to_string(corpus.join(path)).unwrap()
    };
    let graph = seed("device_link/all-marks");
    let (graph, diagnostics) = gpustub_core::device_link::Graph::parse("x", &graph);
    assert_eq!((graph.nodes.len(), diagnostics), (4, Vec::new()));
    for (name, symbols) in [("carried-by-an-object", 8), ("carried-by-the-index", 5)] {
        let text = seed(&format!("super_archive_write/{name}"));
        let written = gpustub_superarchive::fuzz::super_archive_write(&text);
        assert_eq!(written, Some(symbols), "{name}");
    }
    let list = seed("symbols/all-attributes");
    assert_eq!(gpustub_core::symbols::SymbolList::parse("x", &list).1, []);
    let input = seed("manifest/own-library");
    let (text, _) = input.split_once('\0').unwrap();
    assert_eq!(gpustub_core::manifest::Manifest::parse("x", text).1, []);
    let input = seed("library/all-keys");
    let (text, rest) = input.split_once('\0').unwrap();
    let (list, abi) = rest.split_once('\0').unwrap();
    let (library, diagnostics) = gpustub_core::library::Library::parse("x.toml", text, list, abi);
    assert!(library.is_some(), "{diagnostics:?}");
}
