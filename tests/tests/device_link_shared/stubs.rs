//! Shared libraries and stubs of the CUDA runtime.

use gpustub_tests::Result;
use gpustub_tests::command::run;

use crate::{Project, alone, programs};

const PROVIDED: &str = "\n[stub.cudart]\nheader-version = \"13\"\ntype = \"shared\"\n";
const ELSEWHERE: &str = "\n[stub.cudart]\nheader-version = \"13\"\nprovide = false\n";

/// No image links the runtime: the stubs find it.
#[test]
#[ignore = "needs nvcc: ./tests/run"]
fn libraries_call_the_shared_stubs_of_one_of_them() -> Result<()> {
    let _alone = alone();
    let mut project = Project::new("workspace", "stubbed")?;
    project.preloads = false;
    project.append("base/GpuStub.toml", PROVIDED)?;
    project.append("area/GpuStub.toml", ELSEWHERE)?;
    project.append("volume/GpuStub.toml", ELSEWHERE)?;
    project.sync()?;
    programs(&project, &[])
}

#[test]
#[ignore = "needs nvcc: ./tests/run"]
fn invalid_runtime_combinations_are_refused() -> Result<()> {
    let _alone = alone();
    let hidden = PROVIDED.replace("shared", "static");
    for (name, file, text, reported) in [
        (
            "hidden",
            "base/GpuStub.toml",
            &*hidden,
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
