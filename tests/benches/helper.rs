//! Cost of `gpustub-build` as a build dependency, compared with `cc` alone. `BENCHMARKS.md` has the
//! last results of `cargo bench -p gpustub-tests --bench helper`, which prints figures and asserts
//! no time.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, components, repository};

const RUNS: usize = 5;

fn main() -> Result<()> {
    let directory = components::target_dir().join("bench-helper");
    let _ = fs::remove_dir_all(&directory);
    let helper = repository().join("gpustub-build");
    let with = |features: &str| format!("gpustub-build = {{ path = {helper:?}{features} }}\n");
    let calls = "fn main() { gpustub_build::build(); }\n";
    let packages = [
        ("nothing", String::new(), "fn main() {}\n"),
        (
            "cc",
            "cc = { version = \"1.2.2\", default-features = false }\n".to_owned(),
            "fn main() { cc::Build::new(); }\n",
        ),
        ("gpustub-build", with(""), calls),
        (
            "gpustub-build, device-link",
            with(", features = [\"device-link\"]"),
            calls,
        ),
        (
            "gpustub-build, archive and device-link",
            with(", features = [\"archive\", \"device-link\"]"),
            calls,
        ),
        (
            "gpustub-build, all features but split and zstd",
            with(", features = [\"coff\", \"device-link\", \"macho\"]"),
            calls,
        ),
        (
            // Not `zstd`, which compiles a library in C.
            "gpustub-build, all features but zstd",
            with(", features = [\"coff\", \"device-link\", \"macho\", \"split\"]"),
            calls,
        ),
    ];
    let mut rows = Vec::new();
    for (index, (what, dependencies, script)) in packages.into_iter().enumerate() {
        let package = package(&directory, index, &dependencies, script)?;
        succeed(cargo(&package).args(["fetch", "--quiet"]))?;
        rows.push((what, package, Vec::new()));
    }
    // Alternately, so that other load on the machine affects all of them.
    for _ in 0..RUNS {
        for (_, package, costs) in &mut rows {
            costs.push(cold_build(package)?);
        }
    }

    println!("| build dependency | processor s, each run | median | against cc | foreign crates |");
    println!("|---|---|---|---|---|");
    let nothing = rows[0].2.clone();
    let cc: Vec<f64> = rows[1].2.iter().zip(&nothing).map(|(c, n)| c - n).collect();
    for (what, package, costs) in &rows[1..] {
        let own = costs
            .iter()
            .zip(&nothing)
            .map(|(cost, nothing)| cost - nothing);
        let own: Vec<f64> = own.collect();
        let ratios = own.iter().zip(&cc).map(|(own, cc)| own / cc).collect();
        let each: Vec<_> = own.iter().map(|cost| format!("{cost:.2}")).collect();
        println!(
            "| {what} | {} | {:.2} | {:.2} | {} |",
            each.join(" "),
            median(own),
            median(ratios),
            foreign_crates(package)?
        );
    }
    println!(
        "\nLess what a build script without dependencies takes: {:.2}.",
        median(nothing)
    );
    Ok(())
}

/// A package with one build dependency.
fn package(directory: &Path, index: usize, dependencies: &str, script: &str) -> Result<PathBuf> {
    let package = directory.join(index.to_string());
    fs::create_dir_all(package.join("src"))?;
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [build-dependencies]\n{dependencies}"
    );
    fs::write(package.join("Cargo.toml"), manifest)?;
    fs::write(package.join("src/main.rs"), "fn main() {}\n")?;
    fs::write(package.join("build.rs"), script)?;
    // Without anything to compile, the figure is that of the helper itself.
    fs::write(package.join("GpuStub.toml"), "schema = 1\n")?;
    // The versions that this repository is tested with; cargo drops the others.
    fs::copy(repository().join("Cargo.lock"), package.join("Cargo.lock"))?;
    Ok(package)
}

/// Processor seconds, user and system, of a build into an empty target directory.
fn cold_build(package: &Path) -> Result<f64> {
    let _ = fs::remove_dir_all(package.join("target"));
    let mut build = cargo(package);
    // As for a package from a registry, which is never built incrementally.
    build
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTC_WRAPPER");
    build
        .args(["build", "--offline", "--quiet"])
        .stdin(Stdio::null());
    let before = children_cpu()?;
    succeed(&mut build)?;
    Ok(children_cpu()? - before)
}

/// Processor seconds of exited children: fields 16 and 17 of proc_pid_stat(5), in ticks of 1/100 s.
fn children_cpu() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(13).take(2);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() / 100.0)
}

/// Number of third-party crates that the package compiles.
fn foreign_crates(package: &Path) -> Result<usize> {
    let mut tree = cargo(package);
    tree.args(["tree", "--offline", "--edges", "normal,build"]);
    tree.args(["--prefix", "none", "--format", "{p}"]);
    let tree = succeed(&mut tree)?.stdout;
    // Crates of this repository, and the package itself, are printed with their directory.
    let lines = tree.lines().map(|line| line.trim_end_matches(" (*)"));
    let foreign: BTreeSet<&str> = lines
        .filter(|line| !line.contains('(') && !line.is_empty())
        .collect();
    Ok(foreign.len())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
