//! `fixtures/third-party/shared`: a program with the shared stubs of two packages, and the same program with
//! real libraries in their place.

use std::os::unix::fs::symlink;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::components::wheel_libraries;

use super::*;

impl Project {
    /// Builds the application, with these variables; returns its executable.
    fn shared_app(&self, linker: Linker, variables: &[(&str, &str)]) -> Result<PathBuf> {
        let mut cargo = self.cargo(&["build", "--package", "app"], linker, false)?;
        let queries = repository().join("crates/gpustub");
        cargo.arg("--config").arg(format!(
            "patch.crates-io.gpustub.path = '{}'",
            queries.display()
        ));
        succeed(cargo.envs(variables.iter().copied()))?;
        Ok(self.work.join("target-bare/debug/app"))
    }
}

/// The program starts outside of cargo, also where it is copied to with the libraries, and asks each
/// library about its own stubs.
fn starts_and_asks(linkers: &[Linker]) -> Result<()> {
    let project = Project::new("shared", true)?;
    for linker in linkers {
        let program = project.shared_app(*linker, &[])?;
        check_image_with(
            &program,
            *linker,
            &["libgpustub_app.so", "libgpustub_sys.so"],
        )?;
        let moved = scratch()?;
        for file in ["app", "libgpustub_app.so", "libgpustub_sys.so"] {
            fs::copy(program.with_file_name(file), moved.path().join(file))?;
        }
        for program in [program, moved.path().join("app")] {
            let ran = succeed(project.switch_off(clean(&mut Command::new(program))))?;
            let expected = "35 -1001\ncudart unavailable\nopencl unavailable\nnvml unknown\n";
            assert_eq!(ran.stdout, expected, "{}", linker.name);
        }
        let check = || -> Result<String> {
            let mut check = gpustub(&["check", "--message-format", "short"])?;
            Ok(run(check.arg(moved.path().join("app")))?.stderr)
        };
        let clean = check()?;
        assert!(!clean.contains("missing-stub-library"), "{clean}");
        fs::remove_file(moved.path().join("libgpustub_sys.so"))?;
        let found = check()?;
        assert!(
            found.contains("error[missing-stub-library]") && found.contains("libgpustub_sys.so"),
            "{found}"
        );
    }
    Ok(())
}

#[test]
fn programs_with_shared_stubs_start_outside_of_cargo() -> Result<()> {
    starts_and_asks(&[DEFAULT, BFD])
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_with_shared_stubs_start_outside_of_cargo_with_mold() -> Result<()> {
    starts_and_asks(&[MOLD])
}

/// A distribution's build, without a change of `GpuStub.toml`: the real libraries are linked, and programs
/// still ask about them.
#[test]
#[ignore = "needs cudart and an OpenCL loader: ./tests/run"]
fn variables_link_the_real_libraries() -> Result<()> {
    let project = Project::new("shared", true)?;
    let dir = scratch()?;
    let cudart = wheel_libraries("cudart-12.9")?;
    let opencl = wheel_libraries("cudart-11.8")?;
    for (directory, file, link) in [
        (&cudart, "libcudart.so.12", "libcudart.so"),
        (&opencl, "libOpenCL.so.1", "libOpenCL.so"),
    ] {
        for name in [file, link] {
            symlink(directory.join(file), dir.path().join(name))?;
        }
    }
    let path = dir.path().display().to_string();
    let both = [
        ("GPUSTUB_CUDART_LINK", "dylib"),
        ("GPUSTUB_OPENCL_LINK", "dylib"),
        ("LIBRARY_PATH", &path),
    ];
    for linker in [DEFAULT, BFD, MOLD] {
        let program = project.shared_app(linker, &both)?;
        check_image_with(&program, linker, &["libcudart.so.12", "libOpenCL.so.1"])?;
        let needed = needed(&program)?;
        for name in ["libcudart.so.12", "libOpenCL.so.1"] {
            assert!(needed.iter().any(|other| other == name), "{needed:?}");
        }
        let mut command = Command::new(&program);
        let ran = succeed(clean(&mut command).env("LD_LIBRARY_PATH", dir.path()))?;
        for expected in [
            "cudart /",
            "/libcudart.so.12\n",
            "opencl /",
            "nvml unknown\n",
        ] {
            assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
        }
    }
    // Back to the stubs.
    let program = project.shared_app(DEFAULT, &[])?;
    check_image_with(
        &program,
        DEFAULT,
        &["libgpustub_app.so", "libgpustub_sys.so"],
    )
}
