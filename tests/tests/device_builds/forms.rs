//! Every kind of target that cargo links, over one closure: `a` requires `b`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::{TOOLKIT_13, recorder};
use gpustub_tests::rdc::{Call, Library, Project};

use crate::Record;

/// Tests of `a`, and an example; a library, a program, an example, a benchmark, tests in and beside both and in the
/// documentation; a library for C; and one that has CUDA code only in its tests.
fn project() -> Result<Project> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library::new("b", &[]))?;
    project.library(Library::new("a", &["b"]))?;
    let run = "assert_eq!(a::run(), 0);";
    for (path, text) in [
        ("examples/own.rs", format!("fn main() {{\n    {run}\n}}\n")),
        (
            "tests/own.rs",
            format!("#[test]\nfn own() {{\n    {run}\n}}\n"),
        ),
    ] {
        project.write(&format!("a/{path}"), &text)?;
    }
    let unit = "#[test]\nfn unit() {\n    assert_eq!(run(), 0);\n}\n\npub fn run()";
    project.edit("a/src/lib.rs", "pub fn run()", unit)?;
    let needs = "[dependencies]\na = { path = \"../a\" }\n";
    let main = "fn main() {\n    assert_eq!(shapes::go(), 0);\n}\n";
    let test = "#[test]\nfn it() {\n    assert_eq!(shapes::go(), 0);\n}\n";
    project.package(
        "shapes",
        &format!("[[bench]]\nname = \"bench\"\nharness = false\n\n{needs}"),
        &[
            (
                "src/lib.rs",
                "/// Launches.\n///\n/// ```\n/// # use gpustub_final_shapes as _;\n\
                 /// assert_eq!(shapes::go(), 0);\n/// ```\npub fn go() -> i32 {\n    a::run()\n}\n\n\
                 #[test]\nfn unit() {\n    assert_eq!(go(), 0);\n}\n",
            ),
            ("src/main.rs", &format!("{main}\n{test}")),
            ("examples/example.rs", main),
            ("benches/bench.rs", main),
            ("tests/it.rs", test),
        ],
    )?;
    project.package(
        "forc",
        &format!("[lib]\ncrate-type = [\"staticlib\"]\n\n{needs}"),
        &[(
            "src/lib.rs",
            "#[no_mangle]\npub extern \"C\" fn go() {\n    assert_eq!(a::run(), 0);\n}\n",
        )],
    )?;
    project.package(
        "quiet",
        &format!("[dev-{}", &needs[1..]),
        &[
            ("src/lib.rs", "//! No CUDA code.\n"),
            ("tests/it.rs", &test.replace("shapes::go", "a::run")),
        ],
    )?;
    Ok(project)
}

/// Programs that a cargo command has built.
fn executables(stdout: &str) -> Result<Vec<PathBuf>> {
    let mut executables = Vec::new();
    for line in stdout.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        if let Some(path) = message["executable"].as_str() {
            executables.push(PathBuf::from(path));
        }
    }
    Ok(executables)
}

fn name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

const KERNELS: &[&str] = &["a_kernel", "b_kernel"];

/// Builds all targets with these settings of cargo, and runs them with a recording runtime.
fn everything_registers_once(project: &Project, settings: &[&str]) -> Result<()> {
    succeed(&mut project.gpustub(&["sync"])?)?;
    let library = recorder(&project.path("recorder"), 13)?;
    let words = [
        "build",
        "--all-targets",
        "--message-format=json-render-diagnostics",
        "--config",
    ];
    let built = succeed(&mut project.cargo(&[&words, settings].concat()))?;
    let programs = executables(&built.stdout)?;
    let count = |start: &str| {
        programs
            .iter()
            .filter(|path| name(path).starts_with(start))
            .count()
    };
    // Three of `shapes`: the program, its tests, and those of the library.
    assert_eq!(
        [
            count("shapes"),
            count("example"),
            count("bench"),
            count("it-"),
            count("a-"),
            count("own"),
        ],
        [3, 1, 1, 2, 1, 2],
        "{programs:#?}"
    );
    for program in &programs {
        let of_cuda = ["shapes", "example", "bench", "it-", "a-", "own"];
        if !of_cuda.iter().any(|start| name(program).starts_with(start)) {
            continue;
        }
        let mut command = Command::new(program);
        command.arg("--nocapture");
        let record = Record::run(&mut command, &library)?;
        if !record.ran.stdout.contains("running 0 tests") {
            record.expect(&[(&name(program), KERNELS)], 2)?;
        }
    }
    from_c(project, &library)
}

/// A C program links the library for C, and no other Rust code.
fn from_c(project: &Project, library: &Path) -> Result<()> {
    let (source, program) = (project.path("main.c"), project.path("main"));
    fs::write(
        &source,
        "void go(void);\nint main(void) { go(); return 0; }\n",
    )?;
    let mut link = Command::new("cc");
    link.arg(&source).arg(project.built("libforc.a"));
    link.args(["-lstdc++", "-lpthread", "-ldl", "-lm", "-o"]);
    succeed(link.arg(&program))?;
    Record::run(&mut Command::new(&program), library)?.expect(&[("main", KERNELS)], 2)
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn every_kind_of_program_registers_each_kernel_once() -> Result<()> {
    let project = project()?;
    everything_registers_once(&project, &["build.jobs=2"])?;
    let links = project.calls()?;
    let links = links
        .iter()
        .filter(|call| matches!(call, Call::Link(_)))
        .count();
    assert_eq!(links, 2, "one for each set of libraries");

    // Documentation tests are programs that rustdoc links; it captures their output.
    let library = recorder(&project.path("recorder"), 13)?;
    let mut doc = project.cargo(&["test", "--doc", "-p", "shapes"]);
    let ran = succeed(doc.env("GPUSTUB_CUDART_PATH", library))?;
    ran.expect_in_order(&["src/lib.rs - go (line ", "... ok"])?;
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler, and minutes: ./tests/run --all"]
fn heavy_every_kind_of_program_without_unwinding() -> Result<()> {
    everything_registers_once(&project()?, &["profile.dev.panic=\"abort\""])
}

#[test]
#[ignore = "needs CUDA's compiler and mold, and minutes: ./tests/run --all"]
fn heavy_every_kind_of_program_with_other_linkers() -> Result<()> {
    for linker in ["bfd", "mold"] {
        let flags = format!("build.rustflags=[\"-Clink-arg=-fuse-ld={linker}\"]");
        everything_registers_once(&project()?, &[&flags])
            .map_err(|why| format!("{linker}: {}", why.0))?;
    }
    Ok(())
}
