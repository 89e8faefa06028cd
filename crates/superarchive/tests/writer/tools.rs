//! `nm` and `ar` read the default view of a super-archive, and each extracted view.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_superarchive::{Plan, Request, View, WriteError, write_archive};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::requests::{Contents, Parts, members, search};
use crate::search::written;

const SYMBOLS: [&str; 5] = ["cos", "sin", "_Z3cosDv16_f", "tan", "exp"];

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    // Messages about the object that contains the tables, and about an empty one.
    let only_expected = errors
        .lines()
        .all(|line| line.is_empty() || line.ends_with(": no symbols"));
    assert!(
        output.status.success() && only_expected,
        "{command:?}: {errors}"
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Compiled objects, by their definitions.
fn objects(dir: &Path) -> Vec<Contents> {
    let strong = Some(false);
    let weak = Some(true);
    // Whether each symbol is weak; `None` for one that the object does not define.
    let bindings: [[Option<bool>; 5]; 7] = [
        [strong, None, None, None, None],
        [weak, strong, None, None, None],
        [None, weak, strong, None, None],
        [None, None, None, weak, strong],
        [weak; 5],
        [None, None, None, strong, None],
        [None; 5],
    ];
    let mut objects = Vec::new();
    for (number, bindings) in bindings.iter().enumerate() {
        let mut symbols = Vec::new();
        let mut code = format!("static int number{number};\n");
        for (name, weak) in SYMBOLS.iter().zip(bindings) {
            if let Some(weak) = *weak {
                let mark = if weak { "__attribute__((weak)) " } else { "" };
                code += &format!("{mark}int {name}(void) {{ return {number}; }}\n");
                symbols.push((name.as_bytes(), weak));
            }
        }
        std::fs::write(dir.join("x.c"), code).unwrap();
        run(Command::new("cc")
            .current_dir(dir)
            .args(["-w", "-c", "-o", "x.o", "x.c"]));
        let data = std::fs::read(dir.join("x.o")).unwrap();
        objects.push(Contents { data, symbols });
    }
    objects
}

const NAMES: [&[u8]; 7] = [
    b"a.o",
    b"b.o",
    b"a-name-of-more-than-15-characters.o",
    b"another-name-of-more-than-15-characters.o",
    b"with space.o",
    // A long name in BSD's form would follow.
    b"#1",
    b"none.o",
];

/// First member in the index for each symbol, as linkers select it.
fn index(archive: &Path) -> BTreeMap<String, String> {
    let text = run(Command::new("nm").arg("-s").arg(archive));
    let mut index = BTreeMap::new();
    let lines = text
        .lines()
        .skip_while(|line| *line != "Archive index:")
        .skip(1);
    for line in lines.take_while(|line| !line.is_empty()) {
        let (symbol, member) = line.split_once(" in ").unwrap();
        index
            .entry(symbol.to_owned())
            .or_insert_with(|| member.to_owned());
    }
    index
}

#[test]
fn views_are_archives_to_nm_and_ar() {
    let dir = tempfile::tempdir().unwrap();
    let contents = objects(dir.path());
    let layer = prop::collection::vec(0..contents.len(), 0..4);
    let view = prop::collection::vec(0..4_usize, 1..4);
    let layers_and_views = (
        prop::collection::vec(layer, 4),
        prop::collection::vec(view, 1..4),
    );
    let config = ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let written_count = Cell::new(0);
    let result = TestRunner::new(config).run(&layers_and_views, |(layers, views)| {
        let parts = Parts {
            contents: contents.clone(),
            layers: layers
                .iter()
                .map(|members| members.iter().map(|&index| (NAMES[index], index)).collect())
                .collect(),
            views: views
                .into_iter()
                .enumerate()
                .map(|(index, layers)| (format!("gpu{index}"), layers))
                .collect(),
            default: Some(0),
        };
        let request = parts.request();
        let plan = match Plan::new(&request) {
            Ok(plan) => plan,
            Err(WriteError::Conflicts(..)) => return Ok(()),
            Err(error) => panic!("{error:?}"),
        };
        written_count.set(written_count.get() + 1);
        let archive = dir.path().join("x.a");
        for (view, resolved) in plan.views() {
            let inputs: Vec<_> = members(&request, view)
                .into_iter()
                .map(|(_, member)| member.clone())
                .collect();
            assert_eq!(resolved.members.len(), inputs.len());
            let mut bytes = Vec::new();
            write_archive(&inputs, &mut bytes).unwrap();
            std::fs::write(&archive, bytes).unwrap();
            check_view(&archive, &request, view, None);
        }
        std::fs::write(&archive, written(&request)).unwrap();
        let default = &request.views[0];
        let has_members = !members(&request, default).is_empty();
        let container = has_members.then_some("gpustub-views.o");
        check_view(&archive, &request, default, container);
        Ok(())
    });
    result.unwrap();
    assert!(written_count.get() >= 10, "{written_count:?}");
}

/// Checks that `ar` lists the container and the members of a view, and `nm` its symbols.
fn check_view(archive: &Path, request: &Request<'_>, view: &View, container: Option<&str>) {
    let members = members(request, view);
    let names = members
        .iter()
        .map(|(_, member)| std::str::from_utf8(&member.name).unwrap());
    let listing = run(Command::new("ar").arg("t").arg(archive));
    assert!(
        listing.lines().eq(container.into_iter().chain(names)),
        "{listing}"
    );
    let mut symbols = BTreeMap::new();
    for symbol in SYMBOLS {
        if let Some((_, member)) = search(request, view, symbol.as_bytes()) {
            let name = String::from_utf8(member.name.to_vec()).unwrap();
            symbols.insert(symbol.to_owned(), name);
        }
    }
    // GNU nm prints no index of an archive without members.
    assert_eq!(index(archive), symbols);
}
