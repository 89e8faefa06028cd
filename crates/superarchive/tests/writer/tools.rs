//! `nm` and `ar` read the default view of a super-archive, and each extracted view.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_superarchive::{Plan, WriteError, write_archive};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::requests::{Contents, Parts, members, search};
use crate::search::written;

const SYMBOLS: [&str; 5] = ["cos", "sin", "_Z3cosDv16_f", "tan", "exp"];

/// Definitions of a real object: for each symbol whether it is weak, or `None`.
type Defines = [Option<bool>; 5];

fn run(command: &mut Command) -> String {
    let ran = command.output().unwrap();
    let errors = String::from_utf8_lossy(&ran.stderr);
    // Messages about the object that contains the tables, and about an empty one.
    let fine = errors
        .lines()
        .all(|line| line.is_empty() || line.ends_with(": no symbols"));
    assert!(ran.status.success() && fine, "{command:?}: {errors}");
    String::from_utf8(ran.stdout).unwrap()
}

/// Compiled objects, by their definitions.
fn objects(dir: &Path) -> Vec<Contents> {
    let s = Some(false);
    let w = Some(true);
    let all: [Defines; 7] = [
        [s, None, None, None, None],
        [w, s, None, None, None],
        [None, w, s, None, None],
        [None, None, None, w, s],
        [w, w, w, w, w],
        [None, None, None, s, None],
        [None; 5],
    ];
    let object = |(at, defines): (usize, &Defines)| {
        let symbols: Vec<_> = (SYMBOLS.iter().zip(defines))
            .filter_map(|(name, weak)| Some((*name, (*weak)?)))
            .collect();
        let mut code = format!("static int number{at};\n");
        for (name, weak) in &symbols {
            let mark = if *weak { "__attribute__((weak)) " } else { "" };
            code += &format!("{mark}int {name}(void) {{ return {at}; }}\n");
        }
        std::fs::write(dir.join("x.c"), code).unwrap();
        run(Command::new("cc")
            .current_dir(dir)
            .args(["-w", "-c", "-o", "x.o", "x.c"]));
        Contents {
            data: std::fs::read(dir.join("x.o")).unwrap(),
            symbols: symbols
                .iter()
                .map(|(name, weak)| (name.as_bytes(), *weak))
                .collect(),
        }
    };
    all.iter().enumerate().map(object).collect()
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
    let any = (
        prop::collection::vec(layer, 4),
        prop::collection::vec(view, 1..4),
    );
    let config = ProptestConfig {
        cases: 32,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let taken = Cell::new(0);
    let result = TestRunner::new(config).run(&any, |(layers, views)| {
        let views = views.into_iter().enumerate();
        let parts = Parts {
            contents: contents.clone(),
            layers: (layers.iter())
                .map(|members| members.iter().map(|&at| (NAMES[at], at)).collect())
                .collect(),
            views: views.map(|(at, of)| (format!("gpu{at}"), of)).collect(),
            default: Some(0),
        };
        let request = parts.request();
        let plan = match Plan::new(&request) {
            Ok(plan) => plan,
            Err(WriteError::Conflicts(..)) => return Ok(()),
            Err(error) => panic!("{error:?}"),
        };
        taken.set(taken.get() + 1);
        let file = dir.path().join("x.a");
        let check = |view, container: &[&str]| {
            let expected = members(&request, view);
            let names = expected
                .iter()
                .map(|(_, member)| std::str::from_utf8(&member.name).unwrap());
            let names: Vec<_> = container.iter().copied().chain(names).collect();
            let listed = run(Command::new("ar").arg("t").arg(&file));
            assert_eq!(listed.lines().collect::<Vec<_>>(), names);
            let expected = SYMBOLS.iter().filter_map(|symbol| {
                let (_, member) = search(&request, view, symbol.as_bytes())?;
                Some((
                    symbol.to_string(),
                    String::from_utf8(member.name.to_vec()).unwrap(),
                ))
            });
            // GNU nm prints no index of an archive without members.
            assert_eq!(index(&file), expected.collect());
        };
        for (view, resolved) in plan.views() {
            let all: Vec<_> = members(&request, view)
                .into_iter()
                .map(|(_, member)| member.clone())
                .collect();
            assert_eq!(resolved.members.len(), all.len());
            let mut bytes = Vec::new();
            write_archive(&all, &mut bytes).unwrap();
            std::fs::write(&file, bytes).unwrap();
            check(view, &[]);
        }
        std::fs::write(&file, written(&request)).unwrap();
        let default = &request.views[0];
        let has_members = !members(&request, default).is_empty();
        check(
            default,
            if has_members {
                &["gpustub-views.o"]
            } else {
                &[]
            },
        );
        Ok(())
    });
    result.unwrap();
    assert!(taken.get() >= 10, "{taken:?}");
}
