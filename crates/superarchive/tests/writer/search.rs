//! Super-archives of random requests have the results of a search of the layers in order.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use crate::requests::{NAMES, clashes, members, parts, search};
use gpustub_archive::SuperArchive;
use gpustub_superarchive::{Plan, Request, ViewId, WriteError};
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

fn holds(request: &Request<'_>, bytes: &[u8]) {
    let archive = SuperArchive::parse(bytes).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.view_count(), request.views.len());
    let mut ordinary = BTreeSet::new();
    for (at, view) in request.views.iter().enumerate() {
        let found = archive.view(&view.name).unwrap().unwrap();
        assert_eq!(
            archive.view_at(at).unwrap().unwrap().name(),
            view.name.as_bytes()
        );
        let mut expected = BTreeMap::new();
        for name in NAMES {
            let member = search(request, view, name).map(|(_, member)| member.data);
            let got = found
                .find_symbol(name)
                .unwrap()
                .map(|member| member.data().unwrap());
            assert_eq!(got, member, "{view:?} {name:?}");
            expected.extend(member.map(|data| (name, data)));
        }
        assert!(found.find_symbol("absent").unwrap().is_none());
        let symbols = found.symbols().map(|symbol| {
            let symbol = symbol.unwrap();
            (symbol.name, symbol.member.data().unwrap())
        });
        assert_eq!(symbols.collect::<BTreeMap<_, _>>(), expected);
        assert_eq!(found.symbol_count(), expected.len());

        let got: Vec<_> = found.members().map(|member| member.unwrap()).collect();
        let names = got
            .iter()
            .map(|one| (one.layer(), one.name(), one.data().unwrap()));
        let expected = members(request, view);
        let expected = (expected.iter()).map(|&(at, member)| (at, &*member.name, member.data));
        assert!(names.eq(expected), "{view:?}");
        for (position, member) in got.iter().enumerate() {
            assert_eq!(member.position(), position);
        }
        if request.default == Some(ViewId(at)) {
            ordinary.extend(got.iter().map(|member| member.contents().index()));
        }

        let layers = found.layers().map(|layer| layer.unwrap().name.to_vec());
        let names = view
            .layers
            .iter()
            .map(|of| request.layers[of.0].name.clone().into_bytes());
        assert!(layers.eq(names));
    }
    let mut all = BTreeSet::new();
    for (at, contents) in archive.contents().enumerate() {
        let contents = contents.unwrap();
        assert_eq!(contents.index(), at);
        assert_eq!(contents.in_default_view(), ordinary.contains(&at));
        assert!(all.insert(contents.data().unwrap()), "each contents once");
    }

    // Other tools see the default view, after an object that contains the rest.
    let seen = ArchiveFile::parse(bytes).unwrap();
    let seen: Vec<_> = seen
        .members()
        .map(|member| member.unwrap().data(bytes).unwrap())
        .collect();
    let default = request
        .default
        .map(|at| members(request, &request.views[at.0]));
    let default: Vec<_> = default
        .iter()
        .flatten()
        .map(|(_, member)| member.data)
        .collect();
    let carried = seen.len() - default.len();
    assert!(carried <= 1 && seen[carried..] == default, "{seen:?}");
}

#[test]
fn every_view_finds_what_a_search_of_its_layers_finds() {
    let config = ProptestConfig {
        cases: CASES,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let (taken, refused) = (Cell::new(0), Cell::new(0));
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
                holds(&request, &bytes);
                taken.set(taken.get() + 1);
            }
            (Err(WriteError::Conflicts(view, _)), Some(expected)) => {
                prop_assert_eq!(view.0, expected);
                refused.set(refused.get() + 1);
            }
            (other, clash) => prop_assert!(false, "{:?}, but {:?}", other.err(), clash),
        }
        Ok(())
    });
    result.unwrap();
    if !cfg!(miri) {
        assert!(
            taken.get() > 200 && refused.get() > 20,
            "{taken:?} {refused:?}"
        );
    }
}
