//! This tree and an earlier one, in turn: the budgets that refer to it. `BENCHMARKS.md` has the last results of
//! `cargo bench -p gpustub-tests --bench base`, which prints figures and asserts no time. Words after `--` choose parts:
//! `script`, `repair`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::succeed;
use gpustub_tests::measure::{
    BASE, Cost, base_tree, cost, least, median, package, peak_memory, record, release,
};
use gpustub_tests::{Result, components, files_below, repository};

const FOUR_LIBRARIES: &str = "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n\
     [stub.cudart]\nheader-version = \"none\"\n[stub.nvrtc]\n[stub.opencl]\n";

const ONE_LIBRARY: &str = "schema = 1\n[stub.cudart]\nheader-version = \"none\"\n";

const ONE_CALL: &str = "int cudaGetDeviceCount(int *);\n\
     int main(void) { int count; return cudaGetDeviceCount(&count); }\n";

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench NAME` selects a measurement.
    if !words.iter().any(|word| word == "--bench") {
        return Ok(());
    }
    let is_chosen = |part: &str| {
        let others = ["script", "repair"];
        words.iter().any(|word| word == part)
            || !words.iter().any(|word| others.contains(&&word[..]))
    };
    let work = components::target_dir().join("bench-base");
    let base = base_tree()?;
    println!("In turn with the tree of {BASE}.\n");
    if is_chosen("script") {
        build_scripts(&work, &base)?;
    }
    if is_chosen("repair") {
        wheels(&work, &base)?;
    }
    Ok(())
}

/// A package with `gpustub-build` of a tree, built for release once.
struct Helper {
    package: PathBuf,
    /// The compiled build script.
    script: PathBuf,
}

impl Helper {
    fn build(package_dir: PathBuf, tree: &Path) -> Result<Self> {
        let dependency = format!(
            "gpustub-build = {{ path = {:?} }}\n",
            tree.join("gpustub-build")
        );
        let script = "fn main() { gpustub_build::build(); }\n";
        package(&package_dir, tree, &dependency, script)?;
        fs::write(package_dir.join("GpuStub.toml"), ONE_LIBRARY)?;
        succeed(cargo(&package_dir).args(["build", "--release", "--offline", "--quiet"]))?;
        let script = files_below(&package_dir.join("target/release/build"))?
            .into_iter()
            .find(|file| file.ends_with("build-script-build"))
            .ok_or("cargo built no build script")?;
        Ok(Self {
            package: package_dir,
            script,
        })
    }

    /// Bytes of a stripped C program that calls one function.
    fn program_size(&self) -> Result<f64> {
        let archive = files_below(&self.package.join("target/release/build"))?
            .into_iter()
            .find(|file| file.ends_with("libgpustub_user.a"))
            .ok_or("the build script made no archive")?;
        let (source, program) = (self.package.join("one.c"), self.package.join("one"));
        fs::write(&source, ONE_CALL)?;
        let mut cc = Command::new("cc");
        cc.args(["-O2", "-fPIE", "-pie", "-s", "-fuse-ld=lld"]);
        cc.args(["-Wl,--gc-sections", "-o"]).arg(&program);
        succeed(cc.arg(&source).arg(archive))?;
        Ok(fs::metadata(program)?.len() as f64)
    }

    /// Runs the build script of four libraries as cargo does, in an empty OUT_DIR. The objects of the run time that the
    /// target directory keeps are removed before, if it `is_first`.
    fn run(&self, is_first: bool) -> Result<Cost> {
        let target = self.package.join("target");
        let (out, kept) = (
            target.join("release/build/user-0/out"),
            target.join("gpustub-objects"),
        );
        for directory in [Some(&out), is_first.then_some(&kept)]
            .into_iter()
            .flatten()
        {
            if directory.exists() {
                fs::remove_dir_all(directory)?;
            }
        }
        fs::create_dir_all(&out)?;
        let host = "x86_64-unknown-linux-gnu";
        let mut script = Command::new(&self.script);
        script.current_dir(&self.package).env("OUT_DIR", &out);
        script.env("CARGO_MANIFEST_DIR", &self.package);
        for (name, value) in [
            ("TARGET", host),
            ("HOST", host),
            ("RUSTC", "rustc"),
            ("PROFILE", "debug"),
            ("OPT_LEVEL", "0"),
            ("CARGO_PKG_NAME", "user"),
            ("CARGO_CFG_TARGET_ARCH", "x86_64"),
            ("CARGO_CFG_TARGET_OS", "linux"),
            ("CARGO_CFG_TARGET_ENV", "gnu"),
            ("CARGO_CFG_TARGET_FEATURE", "fxsr,sse,sse2"),
        ] {
            script.env(name, value);
        }
        cost(&mut script, &[0])
    }
}

/// Build scripts of four libraries, and a program with one stub.
fn build_scripts(work: &Path, base: &Path) -> Result<()> {
    const RUNS: usize = 15;
    let here = Helper::build(work.join("script-here"), &repository())?;
    let base = Helper::build(work.join("script-base"), base)?;
    let sizes = [here.program_size()?, base.program_size()?];
    println!("## A stripped C program that calls one function of cudart (lld, --gc-sections)\n");
    println!("| here, bytes | {BASE} | ratio |\n|---|---|---|");
    println!(
        "| {} | {} | {:.3} |",
        sizes[0],
        sizes[1],
        sizes[0] / sizes[1]
    );
    record(
        "one-stub",
        &[("bytes", sizes[0]), ("ratio", sizes[0] / sizes[1])],
    )?;

    for helper in [&here, &base] {
        fs::write(helper.package.join("GpuStub.toml"), FOUR_LIBRARIES)?;
    }
    println!("\n## The build script of cuda, cudart, nvrtc and opencl, unoptimised\n");
    println!("{}", Turns::HEAD);
    for (row, what, is_first) in [
        ("build-script", "run time kept", false),
        ("first-build-script", "first in its target directory", true),
    ] {
        let turns = Turns::run(RUNS, || here.run(is_first), || base.run(is_first))?;
        turns.print(what);
        record(row, &turns.figures())?;
    }
    Ok(())
}

/// Costs of two programs that ran in turn.
struct Turns {
    first: Vec<Cost>,
    second: Vec<Cost>,
}

impl Turns {
    const HEAD: &str = "| what | least, ms | of the other | ratio | of medians | of processor time |\n\
         |---|---|---|---|---|---|";

    fn run(
        runs: usize,
        first: impl Fn() -> Result<Cost>,
        second: impl Fn() -> Result<Cost>,
    ) -> Result<Self> {
        let mut turns = Self {
            first: Vec::new(),
            second: Vec::new(),
        };
        // What only the first run writes.
        let _ = (first()?, second()?);
        for _ in 0..runs {
            turns.first.push(first()?);
            turns.second.push(second()?);
        }
        Ok(turns)
    }

    /// Times of the runs, in turn.
    fn walls(&self) -> [Vec<f64>; 2] {
        [&self.first, &self.second].map(|costs| costs.iter().map(|cost| cost.wall).collect())
    }

    /// Ratios of least times, of medians, and of least processor times.
    fn figures(&self) -> [(&'static str, f64); 3] {
        let [first, second] = self.walls();
        let cpu = |costs: &[Cost]| least(&costs.iter().map(|cost| cost.cpu).collect::<Vec<_>>());
        [
            ("least", least(&first) / least(&second)),
            ("median", median(first) / median(second)),
            ("processor", cpu(&self.first) / cpu(&self.second)),
        ]
    }

    fn print(&self, what: &str) {
        let [first, second] = self.walls();
        let [(_, ratio), (_, of_medians), (_, of_processor)] = self.figures();
        println!(
            "| {what} | {:.0} | {:.0} | {ratio:.3} | {of_medians:.3} | {of_processor:.3} |",
            least(&first),
            least(&second)
        );
    }
}

/// `repair` and `check` of PyTorch's wheel.
fn wheels(work: &Path, base: &Path) -> Result<()> {
    const RUNS: usize = 5;
    let wheel = components::only_entry(&components::component("wheels-repair/torch")?)?;
    let here = release(&repository(), &components::target_dir())?;
    let base = release(base, &work.join("target"))?;
    let repair = |program: &Path, name: &str, jobs: &[&str]| {
        let mut repair = Command::new(program);
        repair.args(["gpustub", "repair", "--quiet", "--force"]);
        repair.args(jobs).arg("--out-dir").arg(work.join(name));
        repair.arg(&wheel);
        repair
    };
    let two_jobs = &["--jobs", "2"][..];
    // 1: an image was left.
    let turns = Turns::run(
        RUNS,
        || cost(&mut repair(&here, "repaired-here", two_jobs), &[0, 1]),
        || cost(&mut repair(&base, "repaired-base", &[]), &[0, 1]),
    )?;
    println!("\n## PyTorch's wheel\n\n{}", Turns::HEAD);
    turns.print("repair");
    let size = |name: &str| -> Result<f64> {
        let wheel = components::only_entry(&work.join(name))?;
        Ok(fs::metadata(wheel)?.len() as f64)
    };
    let size = size("repaired-here")? / size("repaired-base")?;
    let memory = peak_memory(&repair(&here, "repaired-here", two_jobs))? / 2.0;
    let alone = peak_memory(&repair(&here, "repaired-here", &["--jobs", "1"]))?;
    let mut figures = turns.figures().to_vec();
    figures.extend([("size", size), ("memory", memory), ("memory-alone", alone)]);
    record("repair", &figures)?;

    let turns = Turns::run(
        RUNS,
        || {
            let mut check = Command::new(&here);
            cost(check.args(["gpustub", "check"]).arg(&wheel), &[0, 1])
        },
        || cost(Command::new("unzip").arg("-tqq").arg(&wheel), &[0]),
    )?;
    turns.print("check, in turn with unzip -t");
    println!(
        "\nBytes of the repaired wheel, of those of the other: {size:.4}. Memory for each of two jobs: {memory:.0} MB; for one: {alone:.0} MB."
    );
    let [check, unzip] = turns.walls().map(|walls| least(&walls) / 1000.0);
    let [ratio, ..] = turns.figures();
    record("check-wheel", &[ratio, ("check", check), ("unzip", unzip)])
}
