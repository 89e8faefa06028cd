//! Super-archives of random requests have the results of a search of the layers in order.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::requests::{NAMES, clashes, members, parts, search};
use gpustub_archive::{SuperArchive, View as ArchiveView};
use gpustub_superarchive::{Plan, Request, View, ViewId, WriteError};
use object::read::archive::ArchiveFile;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const CASES: u32 = if cfg!(miri) { 8 } else { 2048 };

pub fn written(request: &Request<'_>) -> Vec<u8> {
    let plan = Plan::new(request).unwrap();
    let mut bytes = Vec::new();
    plan.write(&mut bytes).unwrap();
    assert_eq!(bytes.len() as u64, plan.size());
    bytes
}

/// Checks each view and all contents against a search of the layers.
fn check_archive(request: &Request<'_>, bytes: &[u8]) {
    let archive = SuperArchive::parse(bytes).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.view_count(), request.views.len());
    let mut in_default_view = BTreeSet::new();
    for (index, requested) in request.views.iter().enumerate() {
        let view = archive.view(&requested.name).unwrap().unwrap();
        assert_eq!(
            archive.view_at(index).unwrap().unwrap().name(),
            requested.name.as_bytes()
        );
        check_symbols(request, requested, &view);
        check_members(request, requested, &view);
        if request.default == Some(ViewId(index)) {
            in_default_view.extend(view.members().map(|m| m.unwrap().contents().index()));
        }
        let layers = view.layers().map(|layer| layer.unwrap().name.to_vec());
        let expected = requested
            .layers
            .iter()
            .map(|layer| request.layers[layer.0].name.clone().into_bytes());
        assert!(layers.eq(expected));
    }
    let mut distinct = BTreeSet::new();
    for (index, contents) in archive.contents().enumerate() {
        let contents = contents.unwrap();
        assert_eq!(contents.index(), index);
        assert_eq!(contents.in_default_view(), in_default_view.contains(&index));
        assert!(
            distinct.insert(contents.data().unwrap()),
            "each contents once"
        );
    }

    // Other tools see the default view, after an object that contains the rest.
    let ordinary: Vec<_> = ArchiveFile::parse(bytes)
        .unwrap()
        .members()
        .map(|member| member.unwrap().data(bytes).unwrap())
        .collect();
    let default: Vec<_> = request
        .default
        .map(|view| members(request, &request.views[view.0]))
        .into_iter()
        .flatten()
        .map(|(_, member)| member.data)
        .collect();
    let containers = ordinary.len() - default.len();
    assert!(
        containers <= 1 && ordinary[containers..] == default,
        "{ordinary:?}"
    );
}

fn check_symbols(request: &Request<'_>, requested: &View, view: &ArchiveView<'_>) {
    let mut expected = BTreeMap::new();
    for name in NAMES {
        let data = search(request, requested, name).map(|(_, member)| member.data);
        let member = view.find_symbol(name).unwrap();
        assert_eq!(
            member.map(|member| member.data().unwrap()),
            data,
            "{requested:?} {name:?}"
        );
        expected.extend(data.map(|data| (name, data)));
    }
    assert!(view.find_symbol("absent").unwrap().is_none());
    let mut symbols = BTreeMap::new();
    for symbol in view.symbols() {
        let symbol = symbol.unwrap();
        symbols.insert(symbol.name, symbol.member.data().unwrap());
    }
    assert_eq!(symbols, expected);
    assert_eq!(view.symbol_count(), expected.len());
}

fn check_members(request: &Request<'_>, requested: &View, view: &ArchiveView<'_>) {
    let expected = members(request, requested);
    let mut count = 0;
    for (position, member) in view.members().enumerate() {
        let member = member.unwrap();
        assert_eq!(member.position(), position);
        let (layer, input) = expected[position];
        assert_eq!(
            (member.layer(), member.name(), member.data().unwrap()),
            (layer, &*input.name, input.data),
            "{requested:?}"
        );
        count += 1;
    }
    assert_eq!(count, expected.len(), "{requested:?}");
}

#[test]
fn every_view_finds_what_a_search_of_its_layers_finds() {
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (written_count, refused_count) = (Cell::new(0), Cell::new(0));
    let result = TestRunner::new(config).run(&parts(), |parts| {
        let request = parts.request();
        let clash = request
            .views
            .iter()
            .position(|view| clashes(&request, view));
        match (Plan::new(&request), clash) {
            (Ok(_), None) => {
                let bytes = written(&request);
                // Another plan has differently seeded hash maps.
                prop_assert!(bytes == written(&request), "two runs differ");
                check_archive(&request, &bytes);
                written_count.set(written_count.get() + 1);
            }
            (Err(WriteError::Conflicts(view, _)), Some(expected)) => {
                prop_assert_eq!(view.0, expected);
                refused_count.set(refused_count.get() + 1);
            }
            (plan, clash) => prop_assert!(false, "{:?}, but {:?}", plan.err(), clash),
        }
        Ok(())
    });
    result.unwrap();
    if !cfg!(miri) {
        assert!(
            written_count.get() > 200 && refused_count.get() > 20,
            "{written_count:?} {refused_count:?}"
        );
    }
}
