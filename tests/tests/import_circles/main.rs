//! No files of a crate, or of the run time in C, use each other in a circle.

mod c;
mod modules;
mod scan;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, repository};
use modules::{Modules, circles};
use serde_json::Value;

/// Root files of all libraries and programs of the workspace. Integration tests and benches are left
/// out: their parts use helpers of the root file.
fn roots() -> Result<Vec<PathBuf>> {
    let mut command = cargo(&repository());
    command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&succeed(&mut command)?.stdout)?;
    let packages = metadata["packages"].as_array().ok_or("no packages")?;
    let targets = packages
        .iter()
        .filter_map(|package| package["targets"].as_array())
        .flatten();
    let kinds = ["lib", "rlib", "staticlib", "cdylib", "bin"];
    let shipped = targets.filter(|target| {
        let kind = target["kind"].as_array().into_iter().flatten();
        kind.filter_map(Value::as_str)
            .any(|kind| kinds.contains(&kind))
    });
    let files = shipped.filter_map(|target| target["src_path"].as_str());
    Ok(files.map(PathBuf::from).collect())
}

#[test]
fn no_crate_has_an_import_circle() -> Result<()> {
    let mut found = BTreeSet::new();
    for root in roots()? {
        found.extend(circles(&Modules::read(&root)?.imports()));
    }
    assert!(found.is_empty(), "{} circles: {found:#?}", found.len());
    Ok(())
}

/// The one circle is recursion: a toolkit library is searched for with the driver's version, for which the
/// driver is loaded first (`search.c`).
#[test]
fn the_run_time_has_one_circle() -> Result<()> {
    let directory = repository().join("templates/runtime");
    let circle = ["load.c", "search.c"].map(|file| directory.join(file));
    assert_eq!(
        circles(&c::calls(&directory, "unix")?),
        [BTreeSet::from(circle)]
    );
    Ok(())
}

/// The circles of a crate with these files, by file names.
fn circles_of(files: &[(&str, &str)]) -> Result<Vec<String>> {
    let directory = tempfile::tempdir()?;
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().ok_or("no directory")?)?;
        fs::write(path, text)?;
    }
    let modules = Modules::read(&directory.path().join(files[0].0))?;
    let name = |file: &PathBuf| -> Result<String> {
        let name: &Path = file.strip_prefix(directory.path())?;
        Ok(name.display().to_string())
    };
    let circles = circles(&modules.imports());
    let names = circles.iter().map(|circle| {
        let names: Result<Vec<String>> = circle.iter().map(name).collect();
        Ok(names?.join(" "))
    });
    names.collect()
}

#[test]
fn circles_are_found_through_imports_paths_and_reexports() -> Result<()> {
    let root = ("lib.rs", "mod a;\nmod b;\nmod c;\n");
    for (a, b) in [
        ("use crate::b::B; struct A;", "use crate::a::A; struct B;"),
        (
            "fn a() { crate::b::f() }",
            "use super::a; fn f() { a::a() }",
        ),
        ("use super::c::B;", "use super::a::*; struct B(A);"),
        ("use crate::c::b::B;", "struct B(super::a::A);"),
        ("macro_rules! m { () => {} } use crate::b::B;", "m!();"),
        (
            "use crate::b::{self, X as _}; type T = b::B;",
            "type B = Vec<crate::a::T>;",
        ),
    ] {
        let a = format!("{a} pub struct A;");
        let files = [
            root,
            ("a.rs", &a),
            ("b.rs", b),
            ("c.rs", "pub use super::b::{self, B};"),
        ];
        assert_eq!(circles_of(&files)?, ["a.rs b.rs"], "{a} {b}");
    }
    Ok(())
}

#[test]
fn calls_and_reexports_of_a_child_are_imports() -> Result<()> {
    let root = ("lib.rs", "mod a;");
    let child = ("a/b.rs", "use super::Shared; pub struct B(Shared);");
    let none: [&str; 0] = [];
    for parent in [
        "mod b; pub struct Shared;",
        "mod b; pub struct Shared; #[cfg(test)] mod tests { fn t() { super::b::f() } }",
        "mod b; pub struct Shared; // super::b::f()\nconst X: &str = \"crate::a::b::f()\";",
    ] {
        assert_eq!(circles_of(&[root, ("a.rs", parent), child])?, none);
    }
    for parent in [
        "mod b; pub use b::B; pub struct Shared;",
        "mod b; pub struct Shared; fn f() { b::f() }",
        "mod b; use b::B; pub struct Shared; fn f(_: B) {}",
    ] {
        assert_eq!(
            circles_of(&[root, ("a.rs", parent), child])?,
            ["a/b.rs a.rs"]
        );
    }
    Ok(())
}
