//! Cases as data: each directory below `cases/manifest` has a `GpuStub.toml`, its symbol lists, and
//! `expected.txt` with every diagnostic of reading and planning it, at its location. A file
//! `target` names another target than x86_64 Linux, a file `features` the enabled ones.
//! `BLESS=1 cargo test` rewrites `expected.txt`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{Diagnostic, LineColumn, line_column};
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::Inputs;
use gpustub_core::planner::plan;
use gpustub_core::target::Target;

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `file:line:column: level[code]: message`, then the help.
fn show(diagnostics: &[Diagnostic], texts: &BTreeMap<String, String>) -> String {
    let mut rendered = String::new();
    for diagnostic in diagnostics {
        if let Some(origin) = &diagnostic.origin {
            let text = texts.get(&origin.file).expect("a file of the case");
            assert!(origin.span.start <= origin.span.end && origin.span.end <= text.len());
            let LineColumn { line, column } = line_column(text, origin.span.start);
            let end = line_column(text, origin.span.end);
            write!(rendered, "{}:{line}:{column}-", origin.file).unwrap();
            if end.line == line {
                write!(rendered, "{}", end.column).unwrap();
            }
            rendered.push_str(": ");
        }
        writeln!(rendered, "{diagnostic}").unwrap();
    }
    if rendered.is_empty() {
        return "no diagnostics\n".to_owned();
    }
    // A new library changes no expectation.
    let known: Vec<&str> = Library::builtin_ids().collect();
    rendered.replace(&known.join(", "), "<known libraries>")
}

fn run(case: &Path) -> String {
    let text = read(&case.join("GpuStub.toml"));
    let (manifest, mut diagnostics) = Manifest::parse("GpuStub.toml", &text);
    let mut texts = BTreeMap::from([("GpuStub.toml".to_owned(), text)]);
    let mut inputs = Inputs::default();
    for entry in fs::read_dir(case).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "symbols")
        {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            inputs.symbol_files.insert(&name, read(&path));
            texts.insert(name, read(&path));
        }
    }
    let features = case.join("features");
    if features.exists() {
        let names = read(&features);
        inputs.features = Some(names.split_whitespace().map(str::to_owned).collect());
    }
    let triple = match case.join("target") {
        path if path.exists() => read(&path).trim().to_owned(),
        _ => "x86_64-unknown-linux-gnu".to_owned(),
    };
    let target = Target::from_triple(&triple).expect("a target");
    diagnostics.extend(plan(&manifest, &target, &inputs).1);
    show(&diagnostics, &texts)
}

#[test]
fn manifests_give_the_expected_diagnostics() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/manifest");
    let mut cases: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    assert!(
        cases.len() >= 20,
        "only {} cases below {}",
        cases.len(),
        root.display()
    );
    #[expect(
        clippy::disallowed_methods,
        reason = "a switch of this test, no input of a build"
    )]
    let bless = std::env::var_os("BLESS").is_some();
    let mut differences = String::new();
    for case in &cases {
        let diagnostics = run(case);
        let path = case.join("expected.txt");
        if bless {
            fs::write(&path, &diagnostics).unwrap();
        } else if read(&path) != diagnostics {
            let name = case.file_name().unwrap().to_string_lossy();
            write!(
                differences,
                "---- {name}: expected\n{}---- found\n{diagnostics}",
                read(&path)
            )
            .unwrap();
        }
    }
    assert!(
        differences.is_empty(),
        "{differences}(BLESS=1 takes what was found)"
    );
}
