//! Linked files that the loader would reject: each build reads its own again, and reports them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run};
use gpustub_tests::scratch::scratch;

use crate::consumers::Build;
use crate::{Project, alone, workspace};

fn expect_error(ran: &Ran, reported: &str) -> Result<()> {
    let text = ran.stderr.clone() + &ran.stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if ran.status.success() || !text.contains(reported) {
        return Err(ran.error(&format!("{reported:?} is not reported")));
    }
    Ok(())
}

/// A C++ compiler that links shared libraries without some of its arguments.
fn compiler_without(directory: &Path, pattern: &str) -> Result<PathBuf> {
    let path = directory.join("c++");
    let script = format!(
        "#!/bin/bash\nwords=()\nfor word; do\ncase \" $* \" in *' -shared '*) case $word in {pattern}) continue;; esac;; esac\n\
         words+=(\"$word\")\ndone\nexec c++ \"${{words[@]}}\"\n"
    );
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// As wrappers of compilers remove run paths, and a link that loses the device link.
#[test]
#[ignore = "needs nvcc: ./tests/run"]
fn shared_libraries_of_a_build_can_be_loaded() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    for (pattern, reported) in [
        (
            "-Wl,-rpath*",
            "libbase_final.so` cannot be loaded: no run path leads to libbase.so",
        ),
        (
            "*/device_link.o|-Wl,-z,defs",
            "libbase.so` cannot be loaded: no device link defines `__cudaRegisterLinkedBinary_",
        ),
    ] {
        let dir = scratch()?;
        let mut cargo = project.cargo(&["check", "-p", "base"]);
        cargo.env("CXX", compiler_without(dir.path(), pattern)?);
        let ran = run(&mut cargo)?;
        expect_error(&ran, "error[unloadable-image]")?;
        expect_error(&ran, reported)?;
    }
    Ok(())
}

/// Files that another build made, and that lost their run path.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_exported_libraries_can_be_loaded() -> Result<()> {
    let _alone = alone();
    let project = Project::new("external", "external")?;
    workspace()?.install("area", &project.directory.join("installed"))?;
    let prefix = project.directory.join("exported");
    project.install("acme", &prefix)?;
    let path = project.directory.join("installed/lib/libarea_final.so");
    let mut bytes = fs::read(&path)?;
    let run_path = b"\0$ORIGIN\0";
    let offset = bytes
        .windows(run_path.len())
        .position(|part| part == run_path);
    bytes[offset.ok_or("a final has a run path")? + 1] = b'X';
    fs::write(&path, bytes)?;
    let Err(why) = project.install("acme", &prefix) else {
        return Err("a final without a run path is exported".into());
    };
    let reported =
        "exported/lib/libarea_final.so` cannot be loaded: no run path leads to libarea.so\n";
    assert!(why.0.contains(reported), "{}", why.0);
    Ok(())
}

/// Targets of `products.cmake`, and a part of the error.
const REFUSED: [(&str, &str); 5] = [
    (
        "unregistered",
        "libunregistered.so cannot be loaded: no device link defines __cudaRegisterLinkedBinary_",
    ),
    (
        "no_run_path",
        "no_run_path cannot be loaded: no run path leads to libarea.so libbase.so libarea_final.so",
    ),
    (
        "no_interpreter",
        "no_interpreter crashes before main: it has no interpreter, which would load ",
    ),
    (
        "no_interpreter_static",
        "no_interpreter_static crashes before main: it has no interpreter, which would load ",
    ),
    (
        "installed_elsewhere_gpustub_check",
        "installed_elsewhere cannot be loaded: no run path leads to libarea.so libbase.so libarea_final.so",
    ),
];

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_targets_of_cmake_can_be_loaded() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let build = Build::new(workspace()?, dir.path(), "products")?.cuda();
    build.configure("Unix Makefiles")?.success()?;
    for (target, reported) in REFUSED {
        // The second time as well: the file is no longer there.
        for _ in 0..2 {
            expect_error(&run(&mut build.target(target))?, reported)?;
        }
    }
    for target in ["skipped", "installed"] {
        run(&mut build.target(target))?.success()?;
    }
    Ok(())
}
