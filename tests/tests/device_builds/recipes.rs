//! The sections of `docs/device-link-recipes.md`: each is a workspace that builds and registers its kernels.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::nvcc::{TOOLKIT_13, TOOLKIT_13_4, Toolkit, recorder};
use gpustub_tests::rdc::Project;
use gpustub_tests::{Result, repository};

use crate::Record;

/// Writes the files of a section. Packages have a name and `[dependencies]`. The program calls the function
/// `<top>_run`; without stubs, it is linked with the toolkit's runtime.
fn workspace(
    toolkit: Toolkit,
    section: &str,
    packages: &[(&str, &str)],
    top: &str,
) -> Result<Project> {
    let page = fs::read_to_string(repository().join("docs/device-link-recipes.md"))?;
    let sections = page.split("\n## ").find(|text| text.starts_with(section));
    let section = sections.ok_or("no such section")?;
    let project = Project::new(toolkit)?;
    for (name, dependencies) in packages {
        project.package(
            name,
            &format!("links = \"gpustub-{name}\"\n\n[dependencies]\n{dependencies}\n"),
            &[("src/lib.rs", "//! Device code.\n")],
        )?;
        let helper = repository().join("gpustub-build");
        let manifest = format!("{name}/Cargo.toml");
        let text = fs::read_to_string(project.root().join(&manifest))?;
        let tables = format!(
            "\n[build-dependencies]\ncc = \"1\"\n\
             gpustub-build = {{ path = {helper:?}, features = [\"device-link\"] }}\n"
        );
        project.write(&manifest, &(text + &tables))?;
        project.write(
            &format!("{name}/build.rs"),
            "fn main() {\n    gpustub_build::finalize();\n}\n",
        )?;
    }
    let mut files = 0;
    let blocks: Vec<&str> = section.split("```").collect();
    for pair in blocks.chunks_exact(2) {
        let (_, text) = pair[1].split_once('\n').unwrap_or_default();
        // The path is the last code span of the paragraph before the block.
        let paragraph = pair[0].trim_end().rsplit("\n\n").next().unwrap_or_default();
        let path = paragraph.split('`').skip(1).step_by(2).find(|span| {
            let first = span.split('/').next();
            span.contains('/') && packages.iter().any(|(name, _)| Some(*name) == first)
        });
        if let Some(path) = path {
            project.write(path, text)?;
            files += 1;
        }
    }
    assert!(files >= 3, "{files} files");
    let run = format!(
        "//! Launches.\n\nunsafe extern \"C\" {{\n    fn {top}_run() -> i32;\n}}\n\n\
         /// Status of the launch.\npub fn run() -> i32 {{\n    unsafe {{ {top}_run() }}\n}}\n"
    );
    let path = format!("{top}/src/lib.rs");
    project.write(&path, &run)?;
    project.package(
        "app",
        &format!("[dependencies]\n{top} = {{ path = \"../{top}\" }}\n"),
        &[(
            "src/main.rs",
            &format!("fn main() {{\n    assert_eq!({top}::run(), 0);\n}}\n"),
        )],
    )?;
    Ok(project)
}

/// Runs the program with a recording runtime.
fn registers(project: &Project, kernels: &[&str]) -> Result<()> {
    let runtime = recorder(&project.path("runtime"), 13)?;
    let mut command = Command::new(project.built("app"));
    Record::run(&mut command, &runtime)?.expect(&[("app", kernels)], 1)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_headers_of_another_crate_are_found() -> Result<()> {
    let field = "field = { path = \"../field\" }";
    let project = workspace(
        TOOLKIT_13,
        "Headers of another crate",
        &[("field", ""), ("hash", field)],
        "hash",
    )?;
    project.build()?;
    registers(&project, &["hash_kernel"])
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_objects_of_the_cc_crate_are_linked() -> Result<()> {
    let project = workspace(TOOLKIT_13, "From the cc crate", &[("vec", "")], "vec")?;
    // cc's compiler.
    let nvcc = project.toolkit().join("bin/nvcc");
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(project.cargo(&["build"]).env("NVCC", &nvcc))?;
    registers(&project, &["vec_kernel"])?;
    project.calls()?;
    succeed(project.cargo(&["build"]).env("NVCC", &nvcc))?;
    assert!(project.calls()?.is_empty(), "nothing changed, and nvcc ran");
    Ok(())
}

/// The device library of NVIDIA's wheel, for three architectures.
#[test]
#[ignore = "needs nvcc and NVSHMEM: ./tests/run --all"]
fn heavy_nvshmem_is_a_prebuilt_library() -> Result<()> {
    let nvshmem = "nvshmem = { path = \"../nvshmem\" }";
    let packages = [("nvshmem", ""), ("ring", nvshmem)];
    let project = workspace(
        TOOLKIT_13_4,
        "A device library of a wheel",
        &packages,
        "ring",
    )?;
    let wheel = component("wheels/nvshmem-cuda-13")?;
    symlink(&wheel, project.root().join("nvshmem/wheel"))?;
    project.build()?;
    let runtime = recorder(&project.path("runtime"), 13)?;
    let host = wheel.join("nvidia/nvshmem/lib/libnvshmem_host.so.3");
    let mut command = Command::new(project.built("app"));
    let record = Record::run(command.env("LD_PRELOAD", host), &runtime)?;
    record.expect(&[("app", &["ring_kernel"])], 1)?;
    // The library's state is in the same device link.
    let states = (record.words("variable").iter())
        .filter(|words| words[2] == "nvshmemi_device_state_d")
        .count();
    assert_eq!(states, 1, "{:?}", record.lines);
    let words = ["check", "--allow", "needed-toolkit"];
    succeed(project.gpustub(&words)?.arg(project.built("app")))?;
    Ok(())
}
