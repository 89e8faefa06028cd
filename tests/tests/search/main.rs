//! Choice of a library's file, on machines described file by file.

mod broken;
mod built;
mod cases;
mod choose;
mod environment;
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
    Ok(ran
        .stdout
        .lines()
        .filter(|line| line.starts_with("path.system_dirs["))
        .filter_map(|line| Some(line.split_once("=\"")?.1.trim_end_matches("/\"").to_owned()))
        .collect())
}

/// Reports of a run, by library.
fn reports(ran: &Ran) -> Result<BTreeMap<String, serde_json::Value>> {
    let mut reports = BTreeMap::new();
    for line in ran.stderr.lines().filter(|line| line.starts_with('{')) {
        let report: serde_json::Value = serde_json::from_str(line)?;
        let library = report["library"].as_str().unwrap_or_default().to_owned();
        reports.insert(library, report);
    }
    Ok(reports)
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
        for (key, text) in [("path", &expected.path), ("found_by", &expected.found_by)] {
            if report[key].as_str() != text.as_deref() {
                mistakes.push(format!("{id}: {key} is {}, not {text:?}", report[key]));
            }
        }
        if report["major"] != expected.major {
            mistakes.push(format!(
                "{id}: major is {}, not {}",
                report["major"], expected.major
            ));
        }
        let candidates = report["candidates"].as_array().cloned().unwrap_or_default();
        for path in &expected.explained {
            let reasons: Vec<_> = candidates
                .iter()
                .filter(|candidate| candidate["name"] == path[..])
                .map(|candidate| &candidate["reason"])
                .collect();
            if reasons.is_empty() || reasons.iter().any(|reason| *reason == "no such file") {
                mistakes.push(format!("{id}: {path} is not explained: {reasons:?}"));
            }
        }
        for candidate in &candidates {
            let (name, reason) = (&candidate["name"], &candidate["reason"]);
            let path = name.as_str().unwrap_or_default();
            if *reason != "no such file"
                && path.starts_with('/')
                && world.file(path).is_none()
                && !world.is_dangling(path)
            {
                mistakes.push(format!("{id}: {path} does not exist, but {reason}"));
            }
        }
    }
    let mut wrong_reports = Vec::new();
    for (id, report) in &reports {
        if mistakes.iter().any(|m| m.split(':').next() == Some(id)) {
            wrong_reports.push(report.to_string());
        }
    }
    mistakes.extend(wrong_reports);
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
