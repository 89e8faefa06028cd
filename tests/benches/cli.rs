//! Time budgets of the tools on a developer's machine, compared with tools that run there anyway:
//! `cargo bench -p gpustub-tests --bench cli`. Prints figures of one run; asserts no time.
//! `BENCHMARKS.md` has the last results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::cargo;
use gpustub_tests::measure::{cost, package, peak_memory, record, release};
use gpustub_tests::rustup::rustc;
use gpustub_tests::{Result, components, msvc, repository, wine};

const RUNS: usize = 15;

fn main() -> Result<()> {
    let work = components::target_dir().join("bench-cli");
    let program = release(&repository(), &components::target_dir())?;
    sync(&program, &work.join("workspace"))?;
    symbols(&program)?;
    check(&program, &work.join("wheels"))?;
    check_packed(&program)?;
    repair(&program)?;
    dependency(&work.join("package"))
}

/// Runs commands alternately and prints a row for each.
fn rows(commands: &mut [(&str, Command)]) -> Result<Vec<f64>> {
    let mut costs = vec![Vec::new(); commands.len()];
    for _ in 0..RUNS {
        for ((_, command), costs) in commands.iter_mut().zip(&mut costs) {
            costs.push(cost(command, &[0])?);
        }
    }
    println!("| what | ms, median | ms, least | processor ms, mean |\n|---|---|---|---|");
    let mut least = Vec::new();
    for ((what, _), costs) in commands.iter().zip(&costs) {
        let mut walls: Vec<f64> = costs.iter().map(|cost| cost.wall).collect();
        walls.sort_by(f64::total_cmp);
        let cpu = costs.iter().map(|cost| cost.cpu).sum::<f64>() / RUNS as f64;
        println!(
            "| {what} | {:.1} | {:.1} | {cpu:.0} |",
            walls[RUNS / 2],
            walls[0]
        );
        least.push(walls[0]);
    }
    Ok(least)
}

/// `sync` with nothing to do.
fn sync(program: &Path, directory: &Path) -> Result<()> {
    const PACKAGES: usize = 200;
    let _ = fs::remove_dir_all(directory);
    for i in 0..PACKAGES {
        let package = directory.join(format!("p{i}"));
        fs::create_dir_all(package.join("src"))?;
        let head = format!("[package]\nname = \"p{i}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        fs::write(package.join("Cargo.toml"), head)?;
        fs::write(package.join("src/lib.rs"), "")?;
        fs::write(package.join("src/main.rs"), "fn main() {}\n")?;
        let stubs = "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n[stub.cudart]\nheader-version = \"none\"\n";
        fs::write(package.join("GpuStub.toml"), stubs)?;
    }
    fs::write(
        directory.join("Cargo.toml"),
        "[workspace]\nresolver = \"3\"\nmembers = [\"p*\"]\n",
    )?;
    let sync = || {
        let mut command = Command::new(program);
        command
            .current_dir(directory)
            .args(["gpustub", "sync", "--workspace"]);
        command
    };
    cost(&mut sync(), &[0])?;
    let mut metadata = cargo(directory);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    println!(
        "## `cargo gpustub sync`, nothing to do, {PACKAGES} packages with stubs for cuda and cudart\n"
    );
    let least = rows(&mut [
        ("cargo gpustub sync --workspace", sync()),
        (
            "cargo metadata --no-deps, which it calls once on the way",
            metadata,
        ),
    ])?;
    println!(
        "| sync beside cargo metadata | | {:.1} | |",
        least[0] - least[1]
    );
    record("sync", &[("ms", least[0] - least[1])])
}

/// The symbol list of a library of 750 MB.
fn symbols(program: &Path) -> Result<()> {
    println!("\n## The exported symbols of libcublasLt\n");
    let library = match components::wheel_libraries("cublas") {
        Ok(directory) => directory.join("libcublasLt.so.12"),
        Err(error) => {
            println!("not measured: {error:?}");
            return Ok(());
        }
    };
    println!("{} MB\n", fs::metadata(&library)?.len() / 1_000_000);
    let with = |program: &Path, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).arg(&library);
        command
    };
    let least = rows(&mut [
        (
            "cargo gpustub symbols",
            with(program, &["gpustub", "symbols"]),
        ),
        ("nm -D", with(Path::new("nm"), &["-D"])),
        (
            "readelf --dyn-syms -W",
            with(Path::new("readelf"), &["--dyn-syms", "-W"]),
        ),
    ])?;
    record("symbols", &[("ms", least[0])])
}

/// `check` of the contents of unpacked wheels, more than 1 GB.
fn check(program: &Path, directory: &Path) -> Result<()> {
    println!("\n## `cargo gpustub check` of unpacked wheels\n");
    let _ = fs::remove_dir_all(directory);
    for wheel in ["cublas", "cusparse-12.9", "cusolver-12.9", "nvrtc-12.9"] {
        match components::component(&format!("wheels/{wheel}")) {
            // Hard links: the bytes are read from the original files.
            Ok(from) => link_tree(&from, &directory.join(wheel))?,
            Err(error) => {
                println!("not measured: {error:?}");
                return Ok(());
            }
        }
    }
    let (files, bytes) = size(directory)?;
    println!("{} MB in {files} files\n", bytes / 1_000_000);
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", script, "sh"])
            .arg(program)
            .arg(directory);
        command
    };
    // The findings do not matter here; a denied rule makes the exit code 1.
    let least = rows(&mut [
        (
            "cargo gpustub check",
            shell("\"$1\" gpustub check \"$2\" >&2; [ $? -le 1 ]"),
        ),
        (
            "find, and readelf -dV of each library",
            shell("find \"$2\" -name '*.so*' -type f -exec readelf -dVW {} +"),
        ),
        (
            "the same, and readelf -p .rodata",
            shell("find \"$2\" -name '*.so*' -type f -exec readelf -dVW -p .rodata {} +"),
        ),
    ])?;
    let memory = print_memory(program, &[directory.to_owned()])?;
    let figures = [
        ("ms", least[0]),
        ("gigabytes", bytes as f64 / 1e9),
        ("megabytes", memory),
    ];
    record("check", &figures)
}

/// `check` of wheels as published.
fn check_packed(program: &Path) -> Result<()> {
    println!("\n## `cargo gpustub check` of packed wheels\n");
    let mut wheels = Vec::new();
    let mut bytes = 0;
    if let Ok(directory) = components::component("wheels-check") {
        for directory in fs::read_dir(directory)? {
            let wheel = components::only_entry(&directory?.path())?;
            bytes += wheel.metadata()?.len();
            wheels.push(wheel);
        }
    }
    println!("{} MB in {} wheels\n", bytes / 1_000_000, wheels.len());
    wheels.sort();
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(program).args(&wheels);
        command
    };
    rows(&mut [
        (
            "cargo gpustub check",
            shell("\"$0\" gpustub check \"$@\" >&2; [ $? -le 1 ]"),
        ),
        (
            "the same, a wheel at a time",
            shell("for f; do \"$0\" gpustub check \"$f\" >&2; [ $? -le 1 ] || exit; done"),
        ),
        (
            "unzip -tqq, which inflates all of each",
            shell("for f; do unzip -tqq \"$f\" || exit; done"),
        ),
    ])?;
    print_memory(program, &wheels)?;
    Ok(())
}

/// `repair` of a published wheel, if it is installed.
fn repair(program: &Path) -> Result<()> {
    println!("\n## `cargo gpustub repair` of a wheel\n");
    let Ok(directory) = components::component("wheels-repair/onnxruntime") else {
        println!("no wheel: tests/run --all --components-only");
        return Ok(());
    };
    let wheel = components::only_entry(&directory)?;
    let packages = components::component("wheel")?;
    let scratch = tempfile::tempdir()?;
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command
            .env("PYTHONPATH", &packages)
            .args(["-c", script])
            .args([program, &wheel, scratch.path()]);
        command
    };
    rows(&mut [
        (
            "cargo gpustub repair",
            shell("\"$0\" gpustub repair -q \"$1\" --out-dir \"$2/repaired\" 2>&1; [ $? -le 1 ]"),
        ),
        (
            "wheel unpack, wheel pack",
            shell(
                "rm -rf \"$2/tree\"; mkdir \"$2/tree\"; python3 -m wheel unpack -d \"$2/tree\" \"$1\" && \
                 python3 -m wheel pack -d \"$2\" \"$2\"/tree/*",
            ),
        ),
    ])?;
    Ok(())
}

/// Prints the peak memory of a check, in MB. The kernel also counts mapped pages of files, so that this is more than the
/// process allocated.
fn print_memory(program: &Path, paths: &[PathBuf]) -> Result<f64> {
    let mut check = Command::new(program);
    check.args(["gpustub", "check"]).args(paths);
    let memory = peak_memory(&check)?;
    println!("\nmemory at its peak: {memory:.0} MB");
    Ok(memory)
}

fn link_tree(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type()? {
            kind if kind.is_dir() => link_tree(&source, &target)?,
            kind if kind.is_file() => fs::hard_link(source, target)?,
            _ => {}
        }
    }
    Ok(())
}

/// Number of files and bytes in a directory.
fn size(directory: &Path) -> Result<(u64, u64)> {
    let mut sum = (0, 0);
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let (files, bytes) = if entry.file_type()?.is_dir() {
            size(&entry.path())?
        } else {
            (1, entry.metadata()?.len())
        };
        sum = (sum.0 + files, sum.1 + bytes);
    }
    Ok(sum)
}

/// A package with `gpustub-build` among its build dependencies.
fn dependency(directory: &Path) -> Result<()> {
    let helper = repository().join("gpustub-build");
    let dependency = format!("gpustub-build = {{ path = {helper:?} }}\n");
    let script = "fn main() { gpustub_build::build(); }\n";
    package(directory, &repository(), &dependency, script)?;
    // The compiled helper, without code of a library; `--bench helper` measures its compilation.
    cost(cargo(directory).args(["build", "--offline"]), &[0])?;
    fs::write(
        directory.join("GpuStub.toml"),
        "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n[stub.cudart]\nheader-version = \"none\"\n[stub.nvrtc]\n[stub.opencl]\n",
    )?;
    build_script(directory)
}

/// The build script of four libraries, run as cargo runs it, and the compilers alone.
fn build_script(package: &Path) -> Result<()> {
    let host = "x86_64-unknown-linux-gnu";
    let out = package.join("out");
    let script = fs::read_dir(package.join("target/debug/build"))?
        .filter_map(|entry| Some(entry.ok()?.path().join("build-script-build")))
        .find(|file| file.is_file())
        .ok_or("cargo built no build script")?;
    let clean = || {
        // By a shell, so that each run starts without the files of the last.
        let mut command = Command::new("sh");
        command.current_dir(package).env("OUT_DIR", &out);
        command.args(["-c", "rm -rf \"$OUT_DIR\"; mkdir \"$OUT_DIR\"; exec \"$0\""]);
        command
    };
    let rustc = rustc(&[wine::TRIPLE, msvc::TRIPLE], package)?;
    let script_for = |triple: &str, system: &str, env: &str| {
        let mut command = clean();
        command.arg(&script);
        for (name, value) in [
            ("TARGET", triple),
            ("HOST", host),
            ("CARGO_PKG_NAME", "user"),
            ("CARGO_CFG_TARGET_ARCH", "x86_64"),
            ("CARGO_CFG_TARGET_OS", system),
            ("CARGO_CFG_TARGET_ENV", env),
            ("CARGO_CFG_TARGET_FEATURE", "fxsr,sse,sse2"),
        ] {
            command.env(name, value);
        }
        command.env("CARGO_MANIFEST_DIR", package);
        command.env("RUSTC", &rustc);
        command
    };
    let mut for_msvc = script_for(msvc::TRIPLE, "windows", "msvc");
    for_msvc.envs(msvc::variables()?);
    let mut whole = script_for(host, "linux", "gnu");
    cost(&mut whole, &[0])?;
    let sources = package.join("sources");
    let _ = fs::remove_dir_all(&sources);
    fs::rename(out.join("gpustub"), &sources)?;
    let tool = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.current_dir(&sources).args(args);
        command
    };
    let unit = |source: &str| {
        let flags = ["-fPIC", "-ffunction-sections", "-fdata-sections"];
        let mut command = tool("cc", &flags);
        command.args(["-DGPUSTUB_LIBRARIES_APART=1", "-c", source]);
        command
    };
    let mut nothing = clean();
    nothing.arg("true");
    println!("\n## The build script of cuda, cudart, nvrtc and opencl, the helper compiled\n");
    rows(&mut [
        ("build script, from nothing to the archive", whole),
        (
            "of it: cc -c stubs.S",
            tool("cc", &["-fPIC", "-c", "stubs.S"]),
        ),
        ("of it: cc -c runtime.c", unit("runtime.c")),
        ("of it: cc -c adapters.c", unit("adapters.c")),
        ("of it: cc -c libraries.c", unit("libraries.c")),
        (
            "of it: ar",
            tool(
                "ar",
                &[
                    "rcSD",
                    "x.a",
                    "stubs.o",
                    "runtime.o",
                    "libraries.o",
                    "adapters.o",
                ],
            ),
        ),
        (
            "build script for x86_64-pc-windows-gnu",
            script_for(wine::TRIPLE, "windows", "gnu"),
        ),
        (
            "build script for x86_64-pc-windows-msvc, clang-cl",
            for_msvc,
        ),
        ("a shell that only creates the directory", nothing),
    ])?;
    Ok(())
}
