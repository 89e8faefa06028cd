//! Incremental builds: which outputs are rebuilt.

use std::fs;
use std::path::Path;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::rdc::{Call, Library, Project};

fn compile(name: &str) -> Call {
    Call::Compile(name.to_owned())
}

fn link(name: &str) -> Call {
    Call::Link(name.to_owned())
}

/// Builds. Returns the runs of nvcc, and whether cargo has linked the program again.
fn built(project: &Project) -> Result<(Vec<Call>, bool)> {
    let ran = succeed(&mut project.cargo(&["build", "-j2", "-v"]))?;

    let linked = ran.stderr.contains("--crate-name tip ");
    Ok((project.calls()?, linked))
}

/// `a` requires `b`, `c` requires nothing; the program has all, and another one has `c` only.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_only_changed_outputs_are_rebuilt() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    project.library(Library {
        table: "include-dirs = [\"include\"]",
        ..Library::new("b", &[])
    })?;
    project.write("b/include/b.cuh", "#pragma once\n#define TWO 2\n")?;
    project.write(
        "b/cuda/more.cu",
        "#include \"b.cuh\"\n__device__ int more() { return TWO; }\n",
    )?;
    project.library(Library::new("a", &["b"]))?;
    project.edit(
        "a/cuda/a.cu",
        "__device__ int b_value",
        "#include <b.cuh>\n__device__ int b_value",
    )?;
    project.library(Library::new("c", &[]))?;
    project.edit("c/GpuStub.toml", "provide = true", "provide = false")?;
    for (name, packages) in [("tip", &["a", "c"][..]), ("other", &["c"])] {
        let mut manifest = "[dependencies]\n".to_owned();
        let mut main = "fn main() {\n".to_owned();
        for package in packages {
            manifest += &format!("{package} = {{ path = \"../{package}\" }}\n");
            main += &format!("    {package}::run();\n");
        }
        main += "}\n";
        project.package(name, &manifest, &[("src/main.rs", &main)])?;
    }
    // `c` provides no stubs, so the second program uses those of `b`.
    project.edit(
        "other/Cargo.toml",
        "[dependencies]\n",
        "[dependencies]\nb = { path = \"../b\" }\n",
    )?;
    project.edit("other/src/main.rs", "{\n", "{\n    b::run();\n")?;
    succeed(&mut project.gpustub(&["sync"])?)?;

    let (tip_link, other_link) = (link("gpustub-final-tip"), link("gpustub-final-other"));
    let first = [
        compile("a.cu"),
        compile("b.cu"),
        compile("c.cu"),
        compile("more.cu"),
        other_link.clone(),
        tip_link.clone(),
    ];
    assert_eq!(built(&project)?, (first.into(), true));
    assert_eq!(built(&project)?, (vec![], false), "nothing has changed");

    // A source: its library, and every device link that contains it.
    project.extend("a/cuda/a.cu")?;
    let expected = vec![compile("a.cu"), tip_link.clone()];
    assert_eq!(built(&project)?, (expected, true), "a.cu");
    project.extend("c/cuda/c.cu")?;
    let expected = vec![compile("c.cu"), other_link.clone(), tip_link.clone()];
    assert_eq!(built(&project)?, (expected, true), "c.cu");

    // A source that is the same.
    touch(&project.root().join("c/cuda/c.cu"))?;
    assert_eq!(built(&project)?, (vec![], true), "c.cu is the same");

    // A header: the sources that include it, also in other packages.
    project.write("b/include/b.cuh", "#pragma once\n#define TWO (1 + 1)\n")?;
    let expected = vec![
        compile("a.cu"),
        compile("more.cu"),
        other_link.clone(),
        tip_link.clone(),
    ];
    assert_eq!(built(&project)?, (expected, true), "b.cuh");

    // A new file that the pattern matches, and a removed one.
    project.write("c/cuda/new.cu", "__device__ int fresh() { return 1; }\n")?;
    let expected = vec![compile("new.cu"), other_link.clone(), tip_link.clone()];
    assert_eq!(built(&project)?, (expected, true), "a new file");
    fs::remove_file(project.root().join("c/cuda/new.cu"))?;
    // The store has the device links of before.
    assert_eq!(built(&project)?, (vec![], true), "a file less");

    // A flag: the whole library, and those that it is published to.
    project.edit(
        "b/GpuStub.toml",
        "include-dirs =",
        "compile-options = [\"-DSPEED=1\"]\ninclude-dirs =",
    )?;
    let expected = vec![
        compile("a.cu"),
        compile("b.cu"),
        compile("more.cu"),
        other_link,
        tip_link,
    ];
    assert_eq!(built(&project)?, (expected, true), "a flag");
    assert_eq!(built(&project)?, (vec![], false), "nothing has changed");

    // A program's own source, which only cargo tracks.
    touch(&project.root().join("tip/src/main.rs"))?;
    assert_eq!(built(&project)?, (vec![], true), "main.rs");
    Ok(())
}

/// Rewrites a file, as an editor does.
pub(super) fn touch(path: &Path) -> Result<()> {
    let text = fs::read(path)?;
    Ok(fs::write(path, text)?)
}

/// Ten sources in two packages, which are built in parallel.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_no_more_compilers_run_than_cargo_has_tokens() -> Result<()> {
    let project = Project::new(TOOLKIT_13)?;
    for (name, provide) in [("b", "true"), ("d", "false")] {
        project.library(Library::new(name, &[]))?;
        project.edit(
            &format!("{name}/GpuStub.toml"),
            "provide = true",
            &format!("provide = {provide}"),
        )?;
        for number in 1..5 {
            project.write(
                &format!("{name}/cuda/{number}.cu"),
                &format!("__device__ int {name}{number}() {{ return {number}; }}\n"),
            )?;
        }
    }
    let tokens = 2;
    succeed(&mut project.cargo(&["build", &format!("-j{tokens}")]))?;
    let (count, most_at_once) = project.most_at_once()?;
    // Two packages, each with five sources and a device link for its own tests.
    assert_eq!(count, 12);
    assert_eq!(most_at_once, tokens, "not one too many, and none idle");

    // The same from make, which then provides cargo's tokens.
    for name in ["b", "d"] {
        project.edit(
            &format!("{name}/GpuStub.toml"),
            "requires = []",
            "compile-options = [\"-DX\"]",
        )?;
    }
    let rule = "all:\n\t+cargo build\n";
    fs::write(project.path("Makefile"), rule)?;
    let makefile = project.path("Makefile");
    let mut make = project.shell(&format!("make -j3 -f '{}'", makefile.display()));
    succeed(&mut make)?;
    let (count, most_at_once) = project.most_at_once()?;
    assert_eq!(count, 12);
    assert!(most_at_once <= 3, "{most_at_once} at once");
    Ok(())
}
