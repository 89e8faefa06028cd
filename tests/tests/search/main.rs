//! Choice of a library's file, on machines described file by file.

mod broken;
mod built;
mod cases;
mod choose;
mod generate;
mod impostors;
mod model;
mod newer;
mod shared;
mod siblings;
mod world;

use std::collections::BTreeMap;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, succeed};
use proptest::test_runner::{
    Config as Settings, FileFailurePersistence, RngAlgorithm, TestCaseError, TestRng, TestRunner,
};
use world::{Workshop, World};

/// Default directories of this machine's loader.
fn loader_directories() -> Result<Vec<String>> {
    let ran = succeed(Command::new("/lib64/ld-linux-x86-64.so.2").arg("--list-diagnostics"))?;
    let named = ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("path.system_dirs["));
    let named =
        named.filter_map(|line| Some(line.split_once("=\"")?.1.trim_end_matches("/\"").to_owned()));
    Ok(named.collect())
}

/// Reports of a run, by library.
fn reports(ran: &Ran) -> Result<BTreeMap<String, serde_json::Value>> {
    let lines = ran.stderr.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| {
            let report: serde_json::Value = serde_json::from_str(line)?;
            Ok((
                report["library"].as_str().unwrap_or_default().to_owned(),
                report,
            ))
        })
        .collect()
}

/// Differences between the model and the program's search on this machine.
fn mistakes(workshop: &mut Workshop, world: &World, system: &[String]) -> Result<Vec<String>> {
    let ran = workshop.run(world)?;
    let reports = reports(&ran)?;
    let mut mistakes = Vec::new();
    let expected = model::Process::new(world, system).run();
    for id in reports.keys().filter(|id| !expected.contains_key(&id[..])) {
        mistakes.push(format!("{id}: was searched for unnecessarily"));
    }
    for (id, expected) in expected {
        let Some(report) = reports.get(&id) else {
            mistakes.push(format!("{id}: no report"));
            continue;
        };
        for (key, wanted) in [("path", &expected.path), ("found_by", &expected.found)] {
            if report[key].as_str() != wanted.as_deref() {
                mistakes.push(format!("{id}: {key} is {}, not {wanted:?}", report[key]));
            }
        }
        if report["major"] != expected.major {
            mistakes.push(format!(
                "{id}: major is {}, not {}",
                report["major"], expected.major
            ));
        }
        let tried = report["candidates"].as_array().cloned().unwrap_or_default();
        for path in &expected.explained {
            let why = tried.iter().filter(|one| one["name"] == path[..]);
            let why: Vec<_> = why.map(|one| &one["reason"]).collect();
            if why.is_empty() || why.iter().any(|why| *why == "no such file") {
                mistakes.push(format!("{id}: {path} is not explained: {why:?}"));
            }
        }
        for one in &tried {
            let what = one["name"].as_str().unwrap_or_default();
            if one["reason"] != "no such file"
                && what.starts_with('/')
                && world.file(what).is_none()
                && !world.is_dangling(what)
            {
                mistakes.push(format!(
                    "{id}: {what} does not exist, but {}",
                    one["reason"]
                ));
            }
        }
    }
    let blamed: Vec<_> = mistakes
        .iter()
        .filter_map(|m| m.split(':').next())
        .collect();
    let blamed = reports.iter().filter(|(id, _)| blamed.contains(&&id[..]));
    let blamed: Vec<_> = blamed.map(|(_, report)| report.to_string()).collect();
    mistakes.extend(blamed);
    Ok(mistakes)
}

/// Compares the run time's choice with the model's order on this many machines.
fn compare(cases: u32, rng: Option<TestRng>) -> Result<()> {
    let system = loader_directories()?;
    let workshop = std::cell::RefCell::new(Workshop::new()?);
    let settings = Settings {
        cases,
        max_shrink_iters: 600,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/search/failures.txt"
        )))),
        ..Settings::default()
    };
    let mut runner = match rng {
        Some(rng) => TestRunner::new_with_rng(settings, rng),
        None => TestRunner::new(settings),
    };
    let tested = runner.run(&generate::world(), |world| {
        let mistakes = mistakes(&mut workshop.borrow_mut(), &world, &system);
        match mistakes
            .map_err(|e| e.0)
            .map(|mistakes| mistakes.join("\n"))
        {
            Ok(none) if none.is_empty() => Ok(()),
            Ok(mistakes) | Err(mistakes) => Err(TestCaseError::fail(mistakes)),
        }
    });
    Ok(tested?)
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn search_selects_the_first_acceptable_file() -> Result<()> {
    compare(400, Some(TestRng::deterministic_rng(RngAlgorithm::ChaCha)))
}

#[test]
#[ignore = "needs user namespaces and minutes: ./tests/run --all"]
fn heavy_search_selects_the_first_acceptable_file() -> Result<()> {
    compare(5000, None)
}
