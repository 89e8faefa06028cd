//! Mistakes in a project of CMake, which `gpustub_target_device_link` reports.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::consumers::Build;
use crate::{alone, workspace};

/// `REFUSED` of `refused.cmake`, and a part of the error.
const REFUSED: [(&str, &str); 19] = [
    (
        "final",
        "it links `area::area_final`, the device link of one library. Link `area::area` instead",
    ),
    (
        "condition",
        "it reaches `tally::tally_static` by a generator expression with a condition",
    ),
    ("forms", "the static and the shared form of one library"),
    (
        "contained",
        "would be a part of the shared library `between`, without a device link",
    ),
    (
        "contained-alone",
        "would be a part of the shared library `between`, without a device link",
    ),
    (
        "opened",
        "`between` is OPENED: it has a device link for a process that opens it",
    ),
    (
        "arch",
        "its device link is for 90, and `area::area` has code for 80-real only. Add sm_90",
    ),
    (
        "ptx",
        "has machine code (`sm_` in `archs`), which a device link requires",
    ),
    (
        "lto",
        "`volume::volume` has code for a device link with -dlto",
    ),
    (
        "runtime",
        "`area::area` has the CUDA runtime Shared, and `volume::volume` Static",
    ),
    (
        "own-runtime",
        "its CUDA_RUNTIME_LIBRARY is Static, and that of its libraries Shared",
    ),
    (
        "stubs",
        "`area::area` has the CUDA runtime of the toolkit, and `volume::volume` stubs",
    ),
    (
        "prelinked",
        "contains a device link, and nvlink would skip all of its code",
    ),
    ("builds", "two builds of the library `base`"),
    ("archive", "call it for the targets that link `archive`"),
    ("argument", "unknown arguments: AREA"),
    ("name", "no target `progam`"),
    ("twice", "is called with OPENED and without"),
    (
        "nvcc",
        "a device link over area volume base is necessary (no library's final contains all), and there is no nvcc",
    ),
];

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_mistakes_are_errors_of_the_configuration() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    let dir = scratch()?;
    let directory = dir.path();
    Build::new(project, directory, "refused")?;
    // As the cc crate archives CUDA code.
    let installed = directory.join("installed/lib");
    let (area, base) = (
        installed.join("libarea_static.a"),
        installed.join("libbase_static.a"),
    );
    let (archive, object) = (directory.join("prelinked.a"), directory.join("link.o"));
    let mut nvcc = Command::new(project.toolkit.join("bin/nvcc"));
    nvcc.args(["-dlink", "-arch=sm_80", "-Xcompiler", "-fPIC"]);
    nvcc.args([&area, &base]);
    succeed(nvcc.arg("-o").arg(&object))?;
    fs::copy(&area, &archive)?;
    succeed(Command::new("ar").arg("r").arg(&archive).arg(&object))?;

    for (refused, reported) in REFUSED {
        let dir = scratch()?;
        let build = Build {
            project,
            directory: dir.path(),
            options: vec![
                "-DWITH=refused".to_owned(),
                format!("-DREFUSED={refused}"),
                format!("-DPRELINKED={}", archive.display()),
                format!(
                    "-DCMAKE_PREFIX_PATH={}",
                    directory.join("installed").display()
                ),
            ],
        };
        let build = match refused {
            "nvcc" => build.option("-DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON"),
            _ => build.toolkit(),
        };
        let ran = build.configure("Ninja")?;
        let text = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        if ran.status.success() || !text.contains(reported) {
            return Err(ran.error(&format!("{refused}: {reported:?} is not reported")));
        }
    }
    Ok(())
}

/// CMake device-links for the target's architectures, whatever its objects and libraries have.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_narrow_device_links_are_reported() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let build = Build::new(workspace()?, dir.path(), "narrow")?.cuda();
    let ran = build.configure("Ninja")?.success()?;
    let text = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    for target in ["objects", "area::area", "area::base"] {
        let warning = format!(
            "gpustub_target_device_link(narrow): its device link is for 80 (CUDA_ARCHITECTURES), and omits the code \
             of `{target}` for 90. Add 90 to CUDA_ARCHITECTURES of `narrow`."
        );
        if !text.contains(&warning) {
            return Err(ran.error(&warning));
        }
    }
    if text.matches("and omits the code").count() != 3 {
        return Err(ran.error("another target is reported"));
    }
    Ok(())
}
