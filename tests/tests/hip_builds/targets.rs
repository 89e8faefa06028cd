//! Architectures that clang cannot compile for: as `plan` and builds report them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use gpustub_core::gpu_arch::{Arch, conflicting_targets};
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::rdc::Project;

use crate::project;

/// Target IDs of one processor, and another one.
const IDS: [&str; 9] = [
    "gfx90a",
    "gfx90a:xnack+",
    "gfx90a:xnack-",
    "gfx90a:sramecc+",
    "gfx90a:sramecc-",
    "gfx90a:sramecc+:xnack+",
    "gfx90a:sramecc-:xnack+",
    "gfx90a:sramecc+:xnack-",
    "gfx1030",
];

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn target_ids_conflict_as_in_clang() -> Result<()> {
    let (mut conflicts, mut accepted) = (0, 0);
    for first in IDS {
        for second in IDS {
            for third in ["gfx1030", "gfx90a:xnack+"] {
                let names = [first, second, third];
                let mut clang = Command::new("/usr/lib/llvm-19/bin/clang++");
                clang.args([
                    "-###",
                    "-x",
                    "hip",
                    "-nogpulib",
                    "-nogpuinc",
                    "-c",
                    "/dev/null",
                ]);
                clang.args(names.map(|name| format!("--offload-arch={name}")));
                let ran = run(&mut clang)?;
                let conflicts_in_clang = ran.stderr.contains("invalid offload arch combinations");
                assert_eq!(
                    ran.status.success(),
                    !conflicts_in_clang,
                    "{names:?}: {}",
                    ran.stderr
                );
                let archs = names.map(|name| Arch::parse(name).expect(name));
                let conflict = conflicting_targets(archs);
                assert_eq!(conflict.is_some(), conflicts_in_clang, "{names:?}");
                if let Some((a, b)) = conflict {
                    assert!(
                        ran.stderr.contains(&format!("'{a}' and '{b}'")),
                        "{}",
                        ran.stderr
                    );
                    conflicts += 1;
                } else {
                    accepted += 1;
                }
            }
        }
    }
    assert!(conflicts > 50 && accepted > 20, "{conflicts} {accepted}");
    Ok(())
}

const TABLE: &str = "schema = 1\n[device-link.base]\nsources = [\"base.hip\"]\narchs = [\"gfx90a\", \"gfx90a:xnack+\"]\n";

/// Neither a plan nor a build begins with such a pair.
#[test]
fn conflicting_target_ids_are_an_error_of_the_plan() -> Result<()> {
    let project = Project::without_toolkit()?;
    let files = [
        ("GpuStub.toml", TABLE),
        ("base.hip", ""),
        ("src/lib.rs", ""),
    ];
    project.package("base", "", &files)?;
    let message = "has \"gfx90a\" and \"gfx90a:xnack+\", which clang does not compile together";
    for (manifest, key) in [
        (TABLE, "device-link.base.archs"),
        (
            "schema = 1\nlink-archs = [\"gfx90a\", \"gfx90a:xnack+\"]\n",
            "link-archs",
        ),
    ] {
        project.write("base/GpuStub.toml", manifest)?;
        let ran = run(&mut project.gpustub(&["plan", "-p", "base"])?)?;
        assert!(!ran.status.success());
        let error = format!("error[invalid-value]: `{key}` {message}");
        for text in [
            error.as_str(),
            "help: a feature (`xnack`, `sramecc`) is in all target IDs",
        ] {
            assert!(ran.stderr.contains(text), "{text}: {}", ran.stderr);
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn missing_device_libraries_are_named() -> Result<()> {
    let project = project()?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    let libraries = project.rocm().join("amdgcn/bitcode");
    fs::remove_file(&libraries)?;
    let refused = project.refused(&["build", "-p", "base"])?;
    for part in [
        "clang cannot compile hip/base.hip for AMD",
        "help: install the bitcode that clang links into all code for AMD (Debian, Ubuntu: apt install rocm-device-libs)",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    symlink(component("device-libs-5.2")?, &libraries)?;
    project.edit("base/GpuStub.toml", "gfx1030", "gfx1100")?;
    let refused = project.refused(&["build", "-p", "base"])?;
    let part = "help: the ROCm that was found has no oclc_isa_version_*.bc for gfx1100: set ROCM_PATH to a later one";
    assert!(refused.contains(part), "{refused}");
    project.edit("base/GpuStub.toml", "gfx1100", "gfx1030")?;
    let mut cargo = project.cargo(&["build", "-p", "base"]);
    let ran = run(cargo.env("GPUSTUB_DEVICE_ARCHS", "gfx90a,gfx90a:xnack+"))?;
    let part = "GPUSTUB_DEVICE_ARCHS names `gfx90a` and `gfx90a:xnack+`, which clang does not compile together";
    assert!(ran.stderr.contains(part), "{}", ran.stderr);
    Ok(())
}

/// A truncated object or archive in OUT_DIR is made again, from the store.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_truncated_outputs_are_made_again() -> Result<()> {
    let project = project()?;
    succeed(&mut project.gpustub(&["sync"])?)?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "base"]))?;
    // The stubs, the object and its archive.
    let mut find = Command::new("find");
    find.arg(project.built("build"))
        .args(["-path", "*/out/gpustub/*"]);
    find.args([
        "(",
        "-name",
        "libgpustub_*.a",
        "-o",
        "-name",
        "*-hip.o",
        ")",
    ]);
    let mut outputs = Vec::new();
    for line in succeed(&mut find)?.stdout.lines() {
        let file = PathBuf::from(line);
        outputs.push((fs::read(&file)?, file));
    }
    let files: Vec<_> = outputs.iter().map(|(_, file)| file).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    for (bytes, file) in &outputs {
        // A new file: that of the store stays as it is.
        fs::remove_file(file)?;
        fs::write(file, &bytes[..bytes.len() / 2])?;
    }
    // A change that reruns the build script, and changes none of its outputs.
    project.edit(
        "base/GpuStub.toml",
        "schema = 1\n",
        "# A comment.\nschema = 1\n",
    )?;
    succeed(&mut project.cargo(&["build", "-j2", "-p", "base"]))?;
    for (bytes, file) in outputs {
        assert_eq!(fs::read(&file)?.len(), bytes.len(), "{}", file.display());
    }
    Ok(())
}
