//! Costs of programs, and figures for the table of `BENCHMARKS.md`.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::command::succeed;
use crate::components::target_dir;
use crate::{Result, repository};

/// Variable that names the directory to which figures are written; `tests/bench` sets it.
const VARIABLE: &str = "GPUSTUB_BENCH_FIGURES";

/// The commit whose figures some budgets refer to.
pub const BASE: &str = "ff0ba171";

/// Elapsed time, and processor time of the process and its waited-for children, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub struct Cost {
    /// Elapsed time.
    pub wall: f64,
    /// Processor time.
    pub cpu: f64,
}

/// Runs a program, whose exit code must be one of `codes`.
///
/// # Errors
///
/// If it cannot be started, or has another exit code.
pub fn cost(command: &mut Command, codes: &[i32]) -> Result<Cost> {
    let (before, start) = (children_cpu()?, Instant::now());
    let output = command.stdin(Stdio::null()).output()?;
    let wall = start.elapsed().as_secs_f64() * 1000.0;
    if !output
        .status
        .code()
        .is_some_and(|code| codes.contains(&code))
    {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{text}", output.status).into());
    }
    let cpu = children_cpu()? - before;
    Ok(Cost { wall, cpu })
}

/// Processor time of exited children in milliseconds: fields 16 and 17 of proc_pid_stat(5), in
/// ticks of which Linux reports 100 a second to programs.
///
/// # Errors
///
/// If `/proc` cannot be read.
pub fn children_cpu() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(13).take(2);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() * 10.0)
}

/// Peak memory of a program in MB, with mapped pages of files.
///
/// # Errors
///
/// Without python3.
pub fn peak_memory(command: &Command) -> Result<f64> {
    let script = "import resource,subprocess,sys; \
        subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL); \
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6)";
    let mut python = Command::new("python3");
    python.args(["-c", script]).arg(command.get_program());
    let peak = succeed(python.args(command.get_args()))?;
    Ok(peak.stdout.trim().parse()?)
}

/// The middle one.
///
/// # Panics
///
/// Without values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The least one.
pub fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MAX, f64::min)
}

/// Records the figures of a row of `benches/budgets.toml`. Without a directory for them, they are only printed.
///
/// # Errors
///
/// If the file cannot be written, or a figure is not a number, because a tool is missing.
pub fn record(row: &str, figures: &[(&str, f64)]) -> Result<()> {
    let Some(directory) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return Ok(());
    };
    let mut text = String::new();
    for (name, figure) in figures {
        if !figure.is_finite() {
            return Err(format!("{row}: `{name}` was not measured").into());
        }
        writeln!(text, "{name} = {figure:?}")?;
    }
    fs::create_dir_all(&directory)?;
    Ok(fs::write(directory.join(format!("{row}.toml")), text)?)
}

/// The tree of [`BASE`], below the target directory.
///
/// # Errors
///
/// If the repository does not have the commit, as a shallow clone.
pub fn base_tree() -> Result<PathBuf> {
    let tree = target_dir().join("bench-base").join(BASE);
    if !tree.exists() {
        let mut archive = Command::new("git");
        let archive = archive
            .current_dir(repository())
            .args(["archive", BASE])
            .output()?;
        if !archive.status.success() {
            return Err(format!("git archive {BASE}: it takes the whole history").into());
        }
        fs::create_dir_all(&tree)?;
        let mut tar = Command::new("tar");
        let mut tar = tar.arg("-xC").arg(&tree).stdin(Stdio::piped()).spawn()?;
        if let Some(input) = &mut tar.stdin {
            input.write_all(&archive.stdout)?;
        }
        if !tar.wait()?.success() {
            return Err("tar failed".into());
        }
    }
    Ok(tree)
}

/// `cargo-gpustub` of a tree, built as for installation, in the target directory of that name.
///
/// # Errors
///
/// If it cannot be built.
pub fn release(tree: &Path, target: &Path) -> Result<PathBuf> {
    let mut build = crate::cargo::cargo(tree);
    build.args(["build", "--release", "--quiet", "--package"]);
    build.args(["cargo-gpustub", "--target-dir"]).arg(target);
    succeed(&mut build)?;
    Ok(target.join("release/cargo-gpustub"))
}

/// A package named `user` in a new directory, with these build dependencies and this build script, and no stubs.
///
/// # Errors
///
/// If it cannot be written.
pub fn package(directory: &Path, tree: &Path, dependencies: &str, script: &str) -> Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    fs::create_dir_all(directory.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [build-dependencies]\n{dependencies}"
    );
    fs::write(directory.join("Cargo.toml"), manifest)?;
    fs::write(directory.join("src/main.rs"), "fn main() {}\n")?;
    fs::write(directory.join("build.rs"), script)?;
    fs::write(directory.join("GpuStub.toml"), "schema = 1\n")?;
    // The versions that the tree is tested with; cargo drops the others.
    fs::copy(tree.join("Cargo.lock"), directory.join("Cargo.lock"))?;
    let mut fetch = crate::cargo::cargo(directory);
    succeed(fetch.args(["fetch", "--quiet"]))?;
    Ok(())
}
