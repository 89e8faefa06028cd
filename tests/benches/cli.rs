//! Time budgets of the tools on a developer's machine, compared with tools that run there anyway:
//! `cargo bench -p gpustub-tests --bench cli`. Prints figures of one run; asserts no time.
//! `BENCHMARKS.md` has the last results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use gpustub_tests::cargo::cargo;
use gpustub_tests::rustup::rustc;
use gpustub_tests::{Result, components, msvc, repository, wine};

const RUNS: usize = 15;

fn main() -> Result<()> {
    let work = components::target_dir().join("bench-cli");
    let program = release()?;
    sync(&program, &work.join("workspace"))?;
    symbols(&program)?;
    check(&program, &work.join("wheels"))?;
    check_packed(&program)?;
    repair(&program)?;
    dependency(&work.join("package"))
}

/// Path of `cargo-gpustub`, built as for installation.
fn release() -> Result<PathBuf> {
    let target = components::target_dir();
    run(cargo(&repository())
        .args([
            "build",
            "--release",
            "--package",
            "cargo-gpustub",
            "--target-dir",
        ])
        .arg(&target))?;
    Ok(target.join("release/cargo-gpustub"))
}

/// Elapsed time, and processor time of the process and its waited-for children, in milliseconds.
#[derive(Clone, Copy)]
struct Cost {
    wall: f64,
    cpu: f64,
}

/// Runs a program that must succeed.
fn run(command: &mut Command) -> Result<Cost> {
    let (before, start) = (children_cpu()?, Instant::now());
    let output = command.stdin(Stdio::null()).output()?;
    let wall = start.elapsed().as_secs_f64() * 1000.0;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}\n{text}", output.status).into());
    }
    let cpu = children_cpu()? - before;
    Ok(Cost { wall, cpu })
}

/// Processor time of exited children, in milliseconds: fields 16 and 17 of proc_pid_stat(5), in
/// ticks of which Linux reports 100 a second to programs.
fn children_cpu() -> Result<f64> {
    let text = fs::read_to_string("/proc/self/stat")?;
    let after_name = text.rsplit(')').next().unwrap_or_default();
    let fields = after_name.split_whitespace().skip(13).take(2);
    let ticks: Vec<f64> = fields.filter_map(|field| field.parse().ok()).collect();
    Ok(ticks.iter().sum::<f64>() * 10.0)
}

/// Runs commands alternately and prints a row for each.
fn rows(commands: &mut [(&str, Command)]) -> Result<Vec<f64>> {
    let mut costs = vec![Vec::new(); commands.len()];
    for _ in 0..RUNS {
        for ((_, command), costs) in commands.iter_mut().zip(&mut costs) {
            costs.push(run(command)?);
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
    run(&mut sync())?;
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
    Ok(())
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
    rows(&mut [
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
    Ok(())
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
    rows(&mut [
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
    print_memory(program, &[directory.to_owned()]);
    Ok(())
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
    print_memory(program, &wheels);
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
    let scratch = tempfile::tempdir()?;
    let shell = |script: &str| {
        let mut command = Command::new("sh");
        command
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

/// Prints the peak memory of a check. The kernel also counts mapped pages of files, so that this is
/// more than the process allocated.
fn print_memory(program: &Path, paths: &[PathBuf]) {
    let peak = "import resource,subprocess,sys; \
        subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL); \
        print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)";
    let output = Command::new("python3")
        .args(["-c", peak])
        .arg(program)
        .args(["gpustub", "check"])
        .args(paths)
        .output();
    match output {
        Ok(output) if output.status.success() => println!(
            "\nmemory at its peak: {} MB",
            String::from_utf8_lossy(&output.stdout).trim()
        ),
        _ => println!("\nmemory not measured: it takes python3"),
    }
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
    let package = |name: &str, dependencies: &str| -> Result<PathBuf> {
        let package = directory.join(name);
        fs::create_dir_all(package.join("src"))?;
        let head = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
             [build-dependencies]\n{dependencies}"
        );
        fs::write(package.join("Cargo.toml"), head)?;
        fs::write(package.join("src/main.rs"), "fn main() {}\n")?;
        // The versions that this repository is tested with; cargo drops the unneeded ones.
        fs::copy(repository().join("Cargo.lock"), package.join("Cargo.lock"))?;
        Ok(package)
    };
    let _ = fs::remove_dir_all(directory);
    let with_helper = package(
        "stubbed",
        &format!("gpustub-build = {{ path = {helper:?} }}\n"),
    )?;
    fs::write(
        with_helper.join("build.rs"),
        "fn main() { gpustub_build::build(); }\n",
    )?;
    let manifest = with_helper.join("GpuStub.toml");
    // No code to compile yet: the first measurement is of the helper itself.
    fs::write(&manifest, "schema = 1\n")?;
    // The compiled helper; `--bench helper` measures its compilation.
    run(cargo(&with_helper).args(["fetch", "--quiet"]))?;
    run(cargo(&with_helper).args(["build", "--offline"]))?;

    fs::write(
        &manifest,
        "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n[stub.cudart]\nheader-version = \"none\"\n[stub.nvrtc]\n[stub.opencl]\n",
    )?;
    build_script(&with_helper)
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
            ("CARGO_PKG_NAME", "stubbed"),
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
    run(&mut whole)?;
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
