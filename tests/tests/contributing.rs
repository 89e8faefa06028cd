//! The recipes of CONTRIBUTING.md work, in a copy of the tree.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::recipes::{Recipe, recipes};
use gpustub_tests::scratch::scratch;
use gpustub_tests::tree::Tree;

const TITLES: [&str; 6] = [
    "Add a library",
    "Add a check rule",
    "Add a version to a symbol list",
    "Add a GPU architecture",
    "Add an architecture",
    "Run one test",
];

fn all() -> Result<Vec<Recipe>> {
    recipes("CONTRIBUTING.md", "### ")
}

#[test]
fn recipes_are_short() -> Result<()> {
    let all = all()?;
    let titles: Vec<&str> = all.iter().map(|recipe| &recipe.title[..]).collect();
    assert_eq!(titles, TITLES);
    for recipe in all {
        assert!(
            recipe.lines <= 15,
            "{}: {} lines",
            recipe.title,
            recipe.lines
        );
        assert!(!recipe.steps.is_empty(), "{}", recipe.title);
    }
    Ok(())
}

/// Puts a library with these functions in the place of the package that a recipe names, which only
/// the network has.
fn library(tree: &Tree, component: &str, functions: &[&str]) -> Result<()> {
    let directory = tree.root().join("target/components").join(component);
    fs::create_dir_all(&directory)?;
    let code: String = functions
        .iter()
        .map(|name| format!("int {name}(void) {{ return 0; }}\n"))
        .collect();
    let source = directory.join("library.c");
    fs::write(&source, code)?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,-soname,libhsakmt.so.1"])
        .arg(&source);
    succeed(cc.arg("-o").arg(directory.join("libhsakmt.so.1")))?;
    Ok(())
}

/// `cargo gpustub` of the copy.
fn gpustub(tree: &Tree, directory: &Path, words: &[&str]) -> Result<Ran> {
    let mut command = Command::new(tree.target_dir().join("debug/cargo-gpustub"));
    run(command.current_dir(directory).arg("gpustub").args(words))
}

#[test]
#[ignore = "compiles a copy of the workspace: minutes (tests/run --all)"]
fn heavy_recipes_work() -> Result<()> {
    let all = all()?;
    let tree = Tree::copy("contributing")?;
    library(&tree, "hsakmt-5.2", &["hsaKmtCloseKFD", "hsaKmtOpenKFD"])?;
    let new = "hsaKmtAvailableMemory";
    library(
        &tree,
        "hsakmt-6.2",
        &["hsaKmtCloseKFD", "hsaKmtOpenKFD", new],
    )?;
    let read = |file: &str| fs::read_to_string(tree.root().join(file));
    let target = tree.target_dir();
    let git = Command::new("git")
        .arg("init")
        .arg("--quiet")
        .current_dir(tree.root())
        .status()?;
    assert!(git.success());
    for recipe in &all {
        let variables = [
            ("CARGO_TARGET_DIR", &*target),
            ("CARGO_NET_OFFLINE", Path::new("true")),
        ];
        let ran = recipe.carry_out(tree.root(), &variables)?;
        match &recipe.title[..] {
            "Add a library" => {
                let list = read("manifests/hsakmt.symbols")?;
                assert!(
                    list.ends_with(
                        "@soname libhsakmt.so.1\n@releases 5.2\nhsaKmtCloseKFD\nhsaKmtOpenKFD\n"
                    ),
                    "{list}"
                );
                assert!(read("manifests/src/lib.rs")?.contains("\n    \"hsakmt\",\n"));
                assert!(
                    read("docs/reference/GpuStub.toml.md")?
                        .contains("- `[stub.hsakmt]`: HSA kernel interface\n")
                );
            }
            "Add a check rule" => {
                assert!(read("docs/reference/rules.md")?.contains("bundled-source"));
                let case = read("cargo-gpustub/tests/check/bundled-source/bad.toml")?;
                let line =
                    "\"demo/kernels.cu: warning[bundled-source]: CUDA source in the package\"";
                assert!(case.contains(line), "{case}");
                let page =
                    gpustub(&tree, tree.root(), &["explain", "bundled-source"])?.success()?;
                page.expect_in_order(&["CUDA source in a package", "never read CUDA source"])?;
                // Built with the library of the first recipe.
                let package = scratch()?;
                let table = "schema = 1\n[stub.hsakmt]\nheader-version = \"5\"\n";
                fs::write(package.path().join("GpuStub.toml"), table)?;
                fs::create_dir(package.path().join("src"))?;
                fs::write(package.path().join("src/lib.rs"), "")?;
                let manifest = "[package]\nname = \"demo\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
                fs::write(package.path().join("Cargo.toml"), manifest)?;
                let plan = gpustub(&tree, package.path(), &["plan", "--offline"])?.success()?;
                plan.expect_in_order(&["hsakmt", "libhsakmt.so.1"])?;
            }
            "Add a version to a symbol list" => {
                let list = read("manifests/hsakmt.symbols")?;
                let lines = format!("@releases 5.2 6.2\n{new} releases=6.2-\nhsaKmtCloseKFD\n");
                assert!(list.contains(&lines), "{list}");
            }
            "Add a GPU architecture" => {
                let plan = read("crates/core/tests/device_link/archs-sm_121.txt")?;
                assert!(
                    plan.contains("links A.a; for sm_121\n") && !plan.contains("error["),
                    "{plan}"
                );
            }
            "Add an architecture" => {
                assert!(read("templates/src/lib.rs")?.contains("\"asm/sparc64.S\""));
                assert!(tree.root().join("templates/asm/sparc64.S").exists());
            }
            _ => {
                let tests = ran.iter().flat_map(|ran| ran.stdout.lines());
                let passed: Vec<&str> = tests
                    .filter(|line| line.contains("test result: ok. "))
                    .collect();
                assert!(
                    passed.len() == 3 && passed.iter().all(|line| !line.contains(" 0 passed")),
                    "{passed:?}"
                );
            }
        }
    }
    Ok(())
}
