//! Cost of `gpustub-build` as a build dependency, of this tree and of an earlier one, compared with `cc` alone.
//! `BENCHMARKS.md` has the last results of `cargo bench -p gpustub-tests --bench helper`, which prints figures and
//! asserts no time.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::succeed;
use gpustub_tests::measure::{BASE, base_tree, cost, least, median, package, record};
use gpustub_tests::{Result, components, repository};

const RUNS: usize = 5;

/// Not `zstd`, which compiles a library in C.
const ALL: &str = ", features = [\"coff\", \"device-link\", \"macho\"]";
const ALL_WITH_SPLIT: &str = ", features = [\"coff\", \"device-link\", \"macho\", \"split\"]";

/// A package, and the processor seconds of its builds from nothing.
struct Row {
    what: String,
    package: PathBuf,
    costs: Vec<f64>,
}

fn main() -> Result<()> {
    // `cargo bench NAME` selects a measurement.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let (here, base) = (repository(), base_tree()?);
    let cc = "cc = { version = \"1.2.2\", default-features = false }\n";
    let mut rows = vec![
        row("nothing", &here, "", "fn main() {}\n")?,
        row("cc", &here, cc, "fn main() { cc::Build::new(); }\n")?,
    ];
    for (tree, name) in [(&here, ""), (&base, BASE)] {
        for (features, with) in [("", ""), (ALL, "coff, device-link, macho")] {
            rows.push(helper_row(tree, &format!("{name} {with}"), features)?);
        }
    }
    for (features, with) in [
        (", features = [\"device-link\"]", "device-link"),
        (ALL_WITH_SPLIT, "all features but zstd"),
    ] {
        rows.push(helper_row(&here, with, features)?);
    }
    // Alternately, so that other load on the machine affects all of them.
    for _ in 0..RUNS {
        for row in &mut rows {
            row.costs.push(cold_build(&row.package)?);
        }
    }

    println!(
        "| build dependency | processor s, each run | least | against cc | median of ratios | foreign crates |\n\
         |---|---|---|---|---|---|"
    );
    let nothing = least(&rows[0].costs);
    let cc = least(&rows[1].costs) - nothing;
    let against_cc = |row: &Row| (least(&row.costs) - nothing) / cc;
    for row in &rows[1..] {
        let ratios = (row.costs.iter().zip(&rows[1].costs))
            .zip(&rows[0].costs)
            .map(|((cost, cc), nothing)| (cost - nothing) / (cc - nothing));
        let each: Vec<_> = row.costs.iter().map(|cost| format!("{cost:.2}")).collect();
        println!(
            "| {} | {} | {:.2} | {:.2} | {:.2} | {} |",
            row.what,
            each.join(" "),
            least(&row.costs),
            against_cc(row),
            median(ratios.collect()),
            foreign_crates(&row.package)?
        );
    }
    println!(
        "\nA build script without dependencies takes {nothing:.2} s, which the ratios leave out."
    );
    let [_, _, here, here_all, base, base_all, ..] = &rows[..] else {
        return Err("rows are missing".into());
    };
    record(
        "crates",
        &[("crates", foreign_crates(&here.package)? as f64)],
    )?;
    for (name, here, base) in [("cold", here, base), ("cold-all", here_all, base_all)] {
        record(
            name,
            &[("least", against_cc(here)), ("base", against_cc(base))],
        )?;
    }
    Ok(())
}

fn helper_row(tree: &Path, what: &str, features: &str) -> Result<Row> {
    let helper = tree.join("gpustub-build");
    let dependency = format!("gpustub-build = {{ path = {helper:?}{features} }}\n");
    let what = format!("gpustub-build {}", what.trim());
    row(
        &what,
        tree,
        &dependency,
        "fn main() { gpustub_build::build(); }\n",
    )
}

/// A package without anything to stub: the figure is that of the helper itself.
fn row(what: &str, tree: &Path, dependencies: &str, script: &str) -> Result<Row> {
    let directory = components::target_dir().join("bench-helper");
    let path = directory.join(what.replace([' ', ','], "_"));
    package(&path, tree, dependencies, script)?;
    Ok(Row {
        what: what.to_owned(),
        package: path,
        costs: Vec::new(),
    })
}

/// Processor seconds, user and system, of a build into an empty target directory.
fn cold_build(package: &Path) -> Result<f64> {
    let target = package.join("target");
    if target.exists() {
        fs::remove_dir_all(target)?;
    }
    let mut build = cargo(package);
    // As for a package from a registry, which is never built incrementally.
    build
        .env("CARGO_INCREMENTAL", "0")
        .env_remove("RUSTC_WRAPPER");
    build.args(["build", "--offline", "--quiet"]);
    Ok(cost(&mut build, &[0])?.cpu / 1000.0)
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
