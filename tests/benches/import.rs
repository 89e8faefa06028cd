//! `import torch`, before and after `repair`, with and without CUDA: time and memory.
//!
//! Downloads the CUDA wheels that PyTorch requires, 3 GB, and keeps them below the target directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, only_entry, target_dir};
use gpustub_tests::measure::record;
use gpustub_tests::rdc::executable;
use gpustub_tests::{Result, files_below, repository};

/// An addition, because `import` alone might leave work for later.
const SCRIPT: &str = "import torch; torch.zeros(2) + 1";

const RUNS: &str = "9";

fn main() -> Result<()> {
    // `cargo bench NAME` selects a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let work = target_dir().join("bench-import");
    fs::create_dir_all(&work)?;
    let wheel = only_entry(&component("wheels-repair/torch")?)?;
    let repaired = work.join("repaired");
    let mut repair = gpustub(&["repair", "--quiet", "--force", "--out-dir"])?;
    repair.arg(&repaired).arg(&wheel);
    repair.args(["--header-version", "cusparselt=0.8"]);
    succeed(repair.args(["--header-version", "nvshmem=3.7"]))?;
    let before = install(&work, "before", &[wheel.to_str().ok_or("a path")?])?;
    // That of an earlier run has another repair.
    if work.join("after").exists() {
        fs::remove_dir_all(work.join("after"))?;
    }
    let after = only_entry(&repaired)?;
    let after = install(&work, "after", &[after.to_str().ok_or("a path")?])?;
    let libraries = required_libraries(&before)?;
    let libraries: Vec<&str> = libraries.iter().map(String::as_str).collect();
    let cuda = install(&work, "cuda", &libraries)?;

    let before = program(&work, "import-before", &[&before, &cuda])?;
    let spawn = work.join("spawn");
    let source = repository().join("tests/benches/c/spawn.c");
    succeed(
        Command::new("cc")
            .arg("-O2")
            .arg(source)
            .arg("-o")
            .arg(&spawn),
    )?;
    println!(
        "| after `repair` | median, of before | least, of before | memory, of before | MB before | MB after |"
    );
    println!("|---|---|---|---|---|---|");
    for (name, directories) in [("with CUDA", &[&after, &cuda][..]), ("without", &[&after])] {
        let after = program(&work, "import-after", directories)?;
        for warm in [&before, &after] {
            succeed(&mut Command::new(warm))?;
        }
        let mut spawn = Command::new(&spawn);
        let ran = succeed(spawn.arg(&before).arg(&after).arg(RUNS))?;
        let [before, after] = [figures(&ran.stdout, 0)?, figures(&ran.stdout, 1)?];
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
            after[0] / before[0],
            after[1] / before[1],
            after[2] / before[2],
            before[2] * 1024.0 / 1e6,
            after[2] * 1024.0 / 1e6
        );
        if name == "with CUDA" {
            let figures = [
                ("median", after[0] / before[0]),
                ("memory", after[2] / before[2]),
                ("after", after[2] * 1024.0 / 1e6),
                ("before", before[2] * 1024.0 / 1e6),
            ];
            record("import", &figures)?;
        }
    }
    Ok(())
}

/// Median and least time, and the memory in KiB, of a program in the output of `spawn`.
fn figures(output: &str, program: usize) -> Result<[f64; 3]> {
    let line = output.lines().nth(program).unwrap_or_default();
    let figures: Vec<f64> = line.split(' ').flat_map(str::parse).collect();
    figures
        .try_into()
        .map_err(|_| format!("spawn: {output}").into())
}

/// A directory with packages, without those that they require. One that exists is kept.
fn install(work: &Path, name: &str, packages: &[&str]) -> Result<PathBuf> {
    let directory = work.join(name);
    if !directory.exists() {
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(&directory);
        let is_wheel = packages.iter().any(|package| package.ends_with(".whl"));
        pip.args(is_wheel.then_some("--no-deps"));
        succeed(pip.args(packages))?;
    }
    Ok(directory)
}

/// NVIDIA's packages that an installed PyTorch requires.
fn required_libraries(site: &Path) -> Result<Vec<String>> {
    let is_metadata =
        |path: &PathBuf| path.ends_with("METADATA") && path.to_string_lossy().contains("/torch-");
    let metadata = files_below(site)?.into_iter().find(is_metadata);
    let text = fs::read_to_string(metadata.ok_or("no metadata")?)?;
    Ok((text.lines())
        .filter_map(|line| line.strip_prefix("Requires-Dist: "))
        .filter_map(|requirement| requirement.split(';').next())
        .filter(|requirement| {
            requirement.starts_with("nvidia-") || requirement.starts_with("cuda-toolkit")
        })
        .map(|requirement| requirement.trim().to_owned())
        .collect())
}

/// A program that runs the script.
fn program(work: &Path, name: &str, directories: &[&PathBuf]) -> Result<PathBuf> {
    let others = component("wheels-repair-with/torch")?;
    let path = std::env::join_paths(directories.iter().copied().chain([&others]))?;
    let program = work.join(name);
    let text = format!(
        "#!/bin/sh\nexport PYTHONPATH='{}'\nexec python3 -W ignore -c '{SCRIPT}'\n",
        path.display()
    );
    executable(&program, &text)?;
    Ok(program)
}
