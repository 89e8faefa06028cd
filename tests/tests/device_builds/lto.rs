//! LTO code, which is finished at the device link: with toolkits as wheels and as NVIDIA install them.

use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::{TOOLKIT_12, TOOLKIT_13, Toolkit, recorder};
use gpustub_tests::pair::major;
use gpustub_tests::rdc::{Library, Project};

use crate::{Record, modules};

/// Launches; with arguments, writes the modules there.
const MAIN: &str = r#"fn main() {
    let files: Vec<_> = std::env::args().skip(1).collect();
    match files.as_slice() {
        [all, text] => {
            std::fs::write(all, include_bytes!(env!("GPUSTUB_MODULE_ALL"))).unwrap();
            std::fs::write(text, include_str!(env!("GPUSTUB_MODULE_TEXT"))).unwrap();
        }
        _ => assert_eq!(top::run(), 0),
    }
}
"#;

const MODULES: &str = r#"schema = 1
[device-link.all]
type = "module"
requires = ["top"]
archs = ["lto_90"]
[device-link.text]
type = "module"
format = "ptx"
requires = ["top"]
archs = ["lto_90"]
"#;

/// `tip` calls `top`, which requires `base`: in both, code for one architecture is LTO code.
fn project(toolkit: Toolkit) -> Result<Project> {
    let project = libraries(toolkit, "")?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    project.package(
        "tip",
        needs,
        &[("src/main.rs", MAIN), ("GpuStub.toml", MODULES)],
    )?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    Ok(project)
}

/// `table` is added to the tables of both libraries.
fn libraries(toolkit: Toolkit, table: &'static str) -> Result<Project> {
    let project = Project::new(toolkit)?;
    for (name, requires) in [("base", &[][..]), ("top", &["base"])] {
        project.library(Library {
            table,
            archs: "\"sm_80\", \"lto_90\"",
            ..Library::new(name, requires)
        })?;
    }
    for package in ["base", "top"] {
        project.edit(
            &format!("{package}/GpuStub.toml"),
            "header-version = \"13\"",
            &format!("header-version = \"{}\"", major(toolkit.version)?),
        )?;
    }
    Ok(project)
}

/// `cargo build` with the toolkit in a directory.
fn build(project: &Project, toolkit: &Path) -> Command {
    let mut build = project.cargo(&["build", "-j2", "-p", "tip"]);
    build.env("CUDA_HOME", toolkit);
    build
}

fn registers_each_kernel_once(project: &Project, toolkit: Toolkit) -> Result<()> {
    let library = recorder(&project.path("recorder"), major(toolkit.version)?)?;
    let record = Record::run(&mut Command::new(project.built("tip")), &library)?;
    record.expect(&[("tip", &["base_kernel", "top_kernel"])], 2)?;

    let [module, text] = ["all.fatbin", "text.ptx"].map(|name| project.path(name));
    succeed(Command::new(project.built("tip")).args([&module, &text]))?;
    modules::expect(&module, &[("sm_90", &modules::LIBRARIES)])?;
    let text = std::fs::read_to_string(text)?;
    let mut kernels: Vec<_> = (text.lines())
        .filter_map(|line| line.split_once(".entry ")?.1.strip_suffix('('))
        .collect();
    kernels.sort();
    assert_eq!(kernels, modules::LIBRARIES, "{text}");
    assert!(text.contains(".target sm_90\n"), "{text}");
    Ok(())
}

/// Wheels have libnvvm under another name than the one that nvlink loads.
#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn lto_code_is_linked_with_a_toolkit_of_wheels() -> Result<()> {
    let toolkit = TOOLKIT_13.root()?;
    assert!(
        !toolkit.join("nvvm/lib64/libnvvm.so").exists(),
        "no test of the missing name"
    );
    let project = project(TOOLKIT_13)?;
    let built = succeed(&mut build(&project, &toolkit))?;
    assert!(!built.stderr.contains("warning"), "{}", built.stderr);
    registers_each_kernel_once(&project, TOOLKIT_13)?;
    let again = succeed(build(&project, &toolkit).arg("-v"))?;
    assert!(!again.stderr.contains("Running"), "{}", again.stderr);
    Ok(())
}

/// nvlink would make PTX without the kernels of `base`.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_ptx_is_linked_of_lto_code_alone() -> Result<()> {
    let project = project(TOOLKIT_13)?;
    project.edit("base/GpuStub.toml", "lto_90", "sm_90")?;
    let refused = run(&mut build(&project, &TOOLKIT_13.root()?))?.stderr;
    let message = "error[missing-arch]: device-link.text is for lto_90, and `base`, which it requires, has only \
                   sm_80, sm_90";
    assert!(refused.contains(message), "{refused}");
    Ok(())
}

/// A script in place of nvcc runs another toolkit than the one around it, which gpustub cannot change.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_missing_libnvvm_is_named_with_the_link_to_make() -> Result<()> {
    let project = project(TOOLKIT_13)?;
    let ran = run(&mut build(&project, &project.toolkit()))?;
    let loaded = project.toolkit().join("nvvm/lib64/libnvvm.so");
    let step = format!(
        "help: for LTO code nvlink loads {}, which does not exist: `mkdir -p ",
        loaded.display()
    );
    assert!(ran.stderr.contains(&step), "{}", ran.stderr);
    let library = project.toolkit().join("lib/libnvvm.so.4");
    let link = format!("ln -s {} {}`", library.display(), loaded.display());
    assert!(ran.stderr.contains(&link), "{}", ran.stderr);
    Ok(())
}

/// With shared stubs, which the package of `base` has.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_lto_code_of_shared_libraries_is_linked() -> Result<()> {
    let project = libraries(TOOLKIT_13, "type = \"shared\"")?;
    let stub = "provide = true";
    project.edit(
        "base/GpuStub.toml",
        stub,
        &format!("{stub}\ntype = \"shared\""),
    )?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    succeed(&mut project.gpustub(&["sync"])?)?;

    let library = recorder(&project.path("recorder"), 13)?;
    let mut program = project.cargo(&["run", "-q", "-p", "tip"]);
    program.env("CUDA_HOME", TOOLKIT_13.root()?);
    let record = Record::run(&mut program, &library)?;
    assert_eq!(images(&record, "open", 1), ["libtop_final.so"]);
    let mut kernels = images(&record, "function", 1);
    kernels.sort();
    assert_eq!(kernels, ["libbase.so", "libtop.so"]);
    assert_eq!(images(&record, "launch", 0).len(), 2);
    Ok(())
}

/// Images in the records of a kind, `IMAGE+OFFSET`, which is a word of each line.
fn images(record: &Record, kind: &str, word: usize) -> Vec<String> {
    (record.words(kind).into_iter())
        .filter_map(|words| Some(words.get(word)?.split('+').next()?.to_owned()))
        .collect()
}

#[test]
#[ignore = "needs CUDA's compiler of 12: ./tests/run --all"]
fn heavy_lto_code_is_linked_with_toolkit_12() -> Result<()> {
    let project = project(TOOLKIT_12)?;
    succeed(&mut build(&project, &TOOLKIT_12.root()?))?;
    registers_each_kernel_once(&project, TOOLKIT_12)
}
