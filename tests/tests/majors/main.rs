//! Functions that published wheels and programs import, on each major of their libraries: none is refused or
//! missing because its meaning changed between CUDA 12 and 13, and the real libraries are bound as
//! `docs/majors.md` says.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment says whether data and page are rewritten"
)]

mod page;
mod programs;
mod verdicts;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_core::library::override_variable;
use gpustub_core::version::Version;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};
use page::{CHANGING, newest_of_each_major};
use programs::{Imports, Program, imports, programs};
use serde_json::Value;
use verdicts::{Verdict, limits, stubs, verdicts};

fn is_blessed() -> bool {
    std::env::var_os("BLESS").is_some()
}

/// `BLESS=1` rewrites `tests/majors/*.toml`.
#[test]
#[ignore = "needs 500 MB of wheels: ./tests/run --all"]
fn heavy_imports_are_those_of_the_wheels() -> Result<()> {
    for (path, mut program) in programs()? {
        let Some(wheel) = &program.wheel else {
            continue;
        };
        let found = imports(wheel)?;
        if is_blessed() {
            program.imports = found;
            fs::write(&path, toml::to_string_pretty(&program)?)?;
        } else {
            assert_eq!(found, program.imports, "{}", program.name);
        }
    }
    Ok(())
}

/// `BLESS=1` rewrites the tables of the page.
#[test]
fn page_is_current() -> Result<()> {
    let programs = programs()?;
    let programs: Vec<&Program> = programs.iter().map(|(_, program)| program).collect();
    let path = repository().join("docs/majors.md");
    let page = fs::read_to_string(&path)?;
    let (begin, end) = ("<!-- tables -->\n", "<!-- end of tables -->");
    let (head, rest) = page.split_once(begin).ok_or("no tables")?;
    let (_, tail) = rest.split_once(end).ok_or("no end of the tables")?;
    let tables = page::tables(&programs)?;
    let current = format!("{head}{begin}\n{tables}\n{end}{tail}");
    if is_blessed() {
        fs::write(&path, current)?;
    } else {
        assert!(
            page == current,
            "docs/majors.md is out of date: BLESS=1 cargo test -p gpustub-tests --test majors\n{tables}"
        );
    }
    Ok(())
}

/// With the version of the headers declared, a call fails only where a release has no such function.
#[test]
fn no_import_is_refused_for_a_change_of_meaning() -> Result<()> {
    let (mut functions, mut adapted) = (0, 0);
    for (_, program) in programs()? {
        for imports in &program.imports {
            let limits = limits(imports)?;
            let releases = newest_of_each_major(&imports.shipped().symbols.releases);
            for release in &releases {
                for (function, verdict) in verdicts(imports, *release, &limits) {
                    let place = format!("{}: {function} on {release}", program.name);
                    assert!(!verdict.is_change(), "{place}: {verdict:?}");
                    // CUDA 12 introduced functions that these programs call, and 13 none.
                    let is_old = Some(release) != releases.last()
                        && (imports.library != CHANGING || release.major < 12);
                    assert!(verdict != Verdict::Missing || is_old, "{place}");
                    functions += 1;
                    adapted +=
                        usize::from(matches!(verdict, Verdict::Adapted | Verdict::Limited(_)));
                }
            }
        }
    }
    assert!(functions > 1000 && adapted > 10, "{functions} {adapted}");
    Ok(())
}

/// Imports from the CUDA runtime of all programs with the same headers.
fn imports_by_header() -> Result<BTreeMap<String, Imports>> {
    let mut all: BTreeMap<String, Imports> = BTreeMap::new();
    for (_, program) in programs()? {
        for imports in program.imports {
            if let (CHANGING, Some(header)) = (&imports.library[..], &imports.header) {
                let of_header = all.entry(header.clone()).or_insert_with(|| Imports {
                    library: CHANGING.to_owned(),
                    header: Some(header.clone()),
                    functions: BTreeSet::new(),
                });
                of_header.functions.extend(imports.functions);
            }
        }
    }
    Ok(all)
}

/// The stubs' own report on the real libraries has the numbers and names of the tables.
#[test]
#[ignore = "needs the libraries of three majors: ./tests/run"]
fn real_libraries_are_bound_as_the_tables_say() -> Result<()> {
    for (header, imports) in imports_by_header()? {
        let dir = scratch()?;
        let dir = dir.path();
        let stubs = stubs(dir, &imports)?;
        let lines = imports.functions.iter();
        let lines = lines.map(|name| format!("FUNCTION({name})\n"));
        fs::write(dir.join("functions.inc"), lines.collect::<String>())?;
        let program = dir.join("program");
        let mut cc = Command::new("cc");
        cc.arg(format!("-DLIBRARY=\"{CHANGING}\""))
            .arg("-I")
            .arg(dir);
        cc.arg("-I").arg(&stubs.sources).arg("-o").arg(&program);
        cc.arg(repository().join("tests/programs/imports.c"));
        succeed(cc.arg(stubs.archive()?))?;
        let limits = limits(&imports)?;
        let releases = imports.shipped().symbols.releases.iter();
        for release in
            releases.filter(|release| component(&format!("wheels/{CHANGING}-{release}")).is_ok())
        {
            let found = bound(&program, *release)?;
            assert_eq!(
                found,
                Bound::expected(&verdicts(&imports, *release, &limits)),
                "{header} on {release}"
            );
        }
    }
    Ok(())
}

/// Numbers of a report, and the functions that do not reach the library.
#[derive(Debug, PartialEq, Eq)]
struct Bound {
    renamed: usize,
    adapted: usize,
    lacking: BTreeSet<String>,
}

impl Bound {
    fn expected(verdicts: &BTreeMap<String, Verdict>) -> Self {
        let count = |is: fn(&Verdict) -> bool| verdicts.values().filter(|v| is(v)).count();
        let lacking = verdicts.iter().filter(|(_, verdict)| verdict.is_lacking());
        Self {
            renamed: count(|v| matches!(v, Verdict::Other(_))),
            adapted: count(|v| matches!(v, Verdict::Adapted | Verdict::Limited(_))),
            lacking: lacking.map(|(name, _)| name.clone()).collect(),
        }
    }
}

/// Binds the real CUDA runtime of a release.
fn bound(program: &Path, release: Version) -> Result<Bound> {
    let libraries = fs::read_dir(wheel_libraries(&format!("{CHANGING}-{release}"))?)?;
    let library = libraries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().contains("libcudart.so."))
        .ok_or("no libcudart.so")?;
    let mut command = Command::new(program);
    command
        .env(override_variable(CHANGING), library)
        .env(override_variable("cuda"), "off")
        .env("GPUSTUB_LOG", "json");
    let ran = succeed(&mut command)?;
    let report: Value = serde_json::from_str(&ran.stderr)?;
    let number = |name: &str| -> Result<usize> {
        let number = report[name].as_u64().ok_or_else(|| ran.error(name))?;
        Ok(usize::try_from(number)?)
    };
    let lacking = ran.stdout.lines().filter_map(|l| l.strip_prefix("lacks "));
    Ok(Bound {
        renamed: number("renamed")?,
        adapted: number("adapted")?,
        lacking: lacking.map(str::to_owned).collect(),
    })
}
