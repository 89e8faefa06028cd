//! Architectures that NVCC_APPEND_FLAGS and NVCC_PREPEND_FLAGS add to those of a table.

use std::os::unix::fs::symlink;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::rdc::{Library, Project};

/// `top` calls `base`, a prebuilt archive with code for `sm_80` and `sm_90`; `solo` uses `base` alone.
fn project() -> Result<Project> {
    let project = Project::new(TOOLKIT_13)?;
    for (name, requires) in [("base", &[][..]), ("top", &["base"])] {
        project.library(Library {
            archs: "\"sm_80\", \"sm_90\"",
            ..Library::new(name, requires)
        })?;
    }
    let lister = TOOLKIT_13.tool("cuobjdump")?;
    symlink(
        lister.get_program(),
        project.toolkit().join("bin/cuobjdump"),
    )?;
    let base = project.root().join("base");
    let mut nvcc = TOOLKIT_13.nvcc()?;
    nvcc.args(["-rdc=true", "-c", "-Xcompiler", "-fPIC", "-o", "base.o"]);
    for arch in ["80", "90"] {
        nvcc.arg(format!("-gencode=arch=compute_{arch},code=sm_{arch}"));
    }
    succeed(nvcc.arg("cuda/base.cu").current_dir(&base))?;
    let mut ar = Command::new("ar");
    succeed(ar.args(["crs", "base.a", "base.o"]).current_dir(&base))?;
    project.edit(
        "base/GpuStub.toml",
        "sources = [\"cuda/*.cu\"]",
        "prebuilt = \"base.a\"",
    )?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    let needs = "[dependencies]\nbase = { path = \"../base\" }\n";
    let main = "fn main() {\n    assert_eq!(base::run(), 0);\n}\n";
    project.package("solo", needs, &[("src/main.rs", main)])?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    Ok(project)
}

/// Variable, value, and the architecture of the failed step.
const ADDED: [(&str, &str, &str); 4] = [
    (
        "NVCC_APPEND_FLAGS",
        "-gencode arch=compute_75,code=sm_75",
        "sm_75",
    ),
    ("NVCC_PREPEND_FLAGS", "-arch=sm_75", "sm_75"),
    // Without a visible GPU: the oldest architecture of the toolkit.
    ("NVCC_APPEND_FLAGS", "-arch=native", "sm_75"),
    // Not supported by this toolkit.
    (
        "NVCC_APPEND_FLAGS",
        "-gencode arch=compute_60,code=sm_60",
        "compute_60",
    ),
];

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn a_variable_that_adds_an_architecture_is_named() -> Result<()> {
    let project = project()?;
    for (name, value, arch) in ADDED {
        let mut build = project.cargo(&["build", "-j2", "-p", "tip"]);
        let ran = run(build.env(name, value).env("CUDA_VISIBLE_DEVICES", ""))?;
        let help = format!(
            "help: the variable {name} is `{value}`, and nvcc also makes code for {arch}, which is not in \
             `archs` (sm_80 sm_90): remove it from {name}"
        );
        if ran.status.success() || !ran.stderr.contains(&help) {
            return Err(ran.error(&help));
        }
    }
    // nvlink reports nothing if no device code calls the archive's.
    for (name, value, arch) in [&ADDED[0], &ADDED[2]] {
        let mut build = project.cargo(&["build", "-j2", "-p", "solo"]);
        let ran = run(build.env(name, value).env("CUDA_VISIBLE_DEVICES", ""))?;
        let message = format!("error[missing-arch]: the device link is for {arch}, and base.o of ");
        let help = format!("help: the variable {name} is `{value}`, and nvcc also makes code for");
        let is_reported = [&message, &help]
            .iter()
            .all(|text| ran.stderr.contains(*text));
        if ran.status.success() || !is_reported {
            return Err(ran.error(&message));
        }
    }
    let (name, value, _) = ADDED[0];
    for (value, is_noted) in [(value, true), ("-DX=1", false)] {
        let mut plan = project.gpustub(&["plan", "-p", "tip"])?;
        let ran = succeed(plan.env(name, value))?;
        let note =
            format!("  note: {name} is `{value}`: nvcc also makes code for its architectures\n");
        assert_eq!(ran.stdout.contains(&note), is_noted, "{}", ran.stdout);
    }
    Ok(())
}
