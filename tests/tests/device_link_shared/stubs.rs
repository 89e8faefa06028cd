//! Shared libraries and stubs of the CUDA runtime.

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::elf::needed;
use gpustub_tests::scratch::scratch;

use crate::consumers::calls_stubs;
use crate::{Project, alone, programs};

const PROVIDED: &str = "\n[stub.cudart]\nheader-version = \"13\"\ntype = \"shared\"\n";
const ELSEWHERE: &str = "\n[stub.cudart]\nheader-version = \"13\"\nprovide = false\n";
/// `cudaErrorInsufficientDriver`.
const NO_DRIVER: u32 = 35;

/// No image links the runtime: the stubs find it.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_libraries_call_the_shared_stubs_of_one_of_them() -> Result<()> {
    let _alone = alone();
    let mut project = Project::new("workspace", "stubbed")?;
    project.preloads = false;
    project.append("base/GpuStub.toml", PROVIDED)?;
    project.append("area/GpuStub.toml", ELSEWHERE)?;
    project.append("volume/GpuStub.toml", ELSEWHERE)?;
    project.sync()?;
    programs(&project, &[])
}

/// Libraries without a table of stubs call those of the library that they require.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_libraries_call_the_shared_stubs_of_a_dependency() -> Result<()> {
    let _alone = alone();
    let mut project = Project::new("workspace", "inherited")?;
    project.preloads = false;
    project.append("base/GpuStub.toml", PROVIDED)?;
    project.sync()?;
    let plan = succeed(&mut project.gpustub(&["plan", "--offline", "--workspace"])?)?;
    assert!(!plan.stderr.contains("error"), "{}", plan.stderr);
    programs(&project, &[])?;

    let dir = scratch()?;
    project.install("area", dir.path())?;
    for file in ["libarea.so", "libarea_final.so", "libbase.so"] {
        let needed = needed(&dir.path().join("lib").join(file))?;
        assert!(
            !needed.iter().any(|name| name.contains("cudart")),
            "{file}: {needed:?}"
        );
    }
    // Without CUDA: its status is the stub's.
    project.runtime = dir.path().to_owned();
    let ran = succeed(&mut project.cargo(&["run", "--quiet", "-p", "one"]))?;
    if ran.stdout != format!("status {NO_DRIVER}\n") {
        return Err(ran.error("the program does not report the status of the stub"));
    }
    Ok(())
}

/// As [`libraries_call_the_shared_stubs_of_a_dependency`], in targets of CMake.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_device_links_of_cmake_call_the_shared_stubs() -> Result<()> {
    let _alone = alone();
    let project = Project::new("workspace", "inherited")?;
    project.append("base/GpuStub.toml", PROVIDED)?;
    let dir = scratch()?;
    calls_stubs(&project, dir.path())
}

#[test]
#[ignore = "needs nvcc: ./tests/run"]
fn invalid_runtime_combinations_are_refused() -> Result<()> {
    let _alone = alone();
    let static_stubs = PROVIDED.replace("shared", "static");
    for (name, file, text, reported) in [
        (
            "hidden",
            "base/GpuStub.toml",
            &*static_stubs,
            "the stubs of the CUDA runtime are static",
        ),
        (
            "elsewhere",
            "base/GpuStub.toml",
            ELSEWHERE,
            "the stubs of the CUDA runtime are static",
        ),
        (
            "static",
            "base/GpuStub.toml",
            "cudart = \"static\"\n",
            "has type = \"shared\" and cudart = \"static\"",
        ),
        (
            "name",
            "base/GpuStub.toml",
            "[device-link.nvrtc]\ntype = \"shared\"\nsources = [\"cuda/*.cu\"]\narchs = [\"sm_80\"]\n",
            "libnvrtc.so is the name of another library",
        ),
    ] {
        let project = Project::new("workspace", &format!("refused-{name}"))?;
        project.append(file, text)?;
        let ran = run(&mut project.cargo(&["check", "-p", "base"]))?;
        if ran.status.success() || !ran.stderr.contains(reported) {
            return Err(ran.error(&format!("{name}: {reported:?} is not reported")));
        }
    }
    Ok(())
}
