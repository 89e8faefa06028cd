//! Real programs of crates that require a toolkit, below `fixtures/third-party/toolkit`. Built with
//! only the directory of `cargo gpustub add --toolkit`, they start, report missing libraries as the
//! crate's own error value, and work with the real libraries.

use std::collections::BTreeMap;
use std::env::join_paths;
use std::fs;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::path_with;
use gpustub_tests::components::component;
use serde::Deserialize;

use super::*;

/// Expected output of a program, from `programs.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    absent: String,
    real: String,
    /// Directories below the components'.
    libraries: Vec<String>,
}

/// Workspace of these programs, with the toolkit directory written.
fn laid_out() -> Result<(Project, BTreeMap<String, Printed>)> {
    let project = Project::new("toolkit", false)?;
    let directory = project.directory();
    for made in ["gpustub-toolkit", ".cargo"] {
        if directory.join(made).exists() {
            fs::remove_dir_all(directory.join(made))?;
        }
    }
    succeed(gpustub(&["add", "--toolkit", "cuda=12.8"])?.current_dir(&directory))?;
    let programs = toml::from_str(&fs::read_to_string(directory.join("programs.toml"))?)?;
    Ok((project, programs))
}

/// Builds, tests and runs every program in a profile.
fn check(
    project: &Project,
    programs: &BTreeMap<String, Printed>,
    profile: &str,
    linker: Linker,
    toolkit: bool,
) -> Result<()> {
    let cargo = |words: &[&str]| -> Result<Command> {
        let words = [words, &["--profile", profile]].concat();
        let mut cargo = project.cargo(&words, linker, toolkit)?;
        // cudarc's build script queries the first nvcc in PATH for its version.
        let shims = project.directory().join("gpustub-toolkit/bin");
        cargo.env("PATH", path_with(&shims)?);
        Ok(cargo)
    };
    let build = ["build", "--workspace", "--message-format", "json"];
    let built = succeed(&mut cargo(&build)?)?.stdout;
    let test = [
        "test",
        "--workspace",
        "--no-run",
        "--message-format",
        "json",
    ];
    let tests = succeed(&mut cargo(&test)?)?.stdout;
    for (name, printed) in programs {
        let at = |what: &str, failure| {
            let linker = linker.name;
            format!("{name}, {what}, {profile}, {linker}, toolkit: {toolkit}: {failure:?}")
        };
        let program = image(&built, name, "bin")?;
        let unit = image(&tests, name, "unit of bin")?;
        check_image(&program, linker)
            .and_then(|()| {
                prints(
                    command_without_libraries(project, &program),
                    &printed.absent,
                )
            })
            .map_err(|failure| at("absent", failure))?;
        check_image(&unit, linker)
            .and_then(|()| succeed(&mut command_without_libraries(project, &unit)).map(drop))
            .map_err(|failure| at("cargo test", failure))?;
        command_with_libraries(&program, printed)
            .and_then(|command| prints(command, &printed.real))
            .map_err(|failure| at("real", failure))?;
    }
    Ok(())
}

fn image(messages: &str, package: &str, kind: &str) -> Result<PathBuf> {
    let found = images(messages, package)?;
    let image = found.into_iter().find(|(found, _)| found == kind);
    Ok(image.ok_or(format!("{package} has no {kind}"))?.1)
}

/// Command of a program as on a machine without GPU libraries, except that the loader could find
/// those of the fake toolkit.
fn command_without_libraries(project: &Project, program: &Path) -> Command {
    let mut command = Command::new(program);
    project.switch_off(clean(&mut command));
    command.env("NVML_LIBRARY", "/nonexistent");
    command
}

/// Command of a program as on a machine with these real libraries.
fn command_with_libraries(program: &Path, printed: &Printed) -> Result<Command> {
    let directories = printed.libraries.iter().map(|name| component(name));
    let directories = directories.collect::<Result<Vec<_>>>()?;
    let mut command = Command::new(program);
    clean(&mut command).env("LD_LIBRARY_PATH", join_paths(directories)?);
    command.env("NVML_LIBRARY", "libnvidia-ml.so.1");
    Ok(command)
}

fn prints(mut command: Command, expected: &str) -> Result<()> {
    let ran = succeed(&mut command)?;
    if ran.stdout.trim_end() == expected && ran.stderr.is_empty() {
        Ok(())
    } else {
        Err(ran.error(&format!("should print {expected}")))
    }
}

#[test]
#[ignore = "needs crates from the registry, and real libraries: ./tests/run"]
fn programs_of_crates_that_require_a_toolkit() -> Result<()> {
    let (project, programs) = laid_out()?;
    check(&project, &programs, "dev", DEFAULT, false)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_of_crates_that_require_a_toolkit() -> Result<()> {
    let (project, programs) = laid_out()?;
    for profile in ["dev", "release", "abort"] {
        for linker in [DEFAULT, BFD, MOLD] {
            for toolkit in [false, true] {
                check(&project, &programs, profile, linker, toolkit)?;
            }
        }
    }
    Ok(())
}

/// Shows the failure that the test above prevents: without the directory, build scripts fail.
#[test]
#[ignore = "needs crates from the registry: ./tests/run"]
fn build_scripts_fail_without_toolkit_directory() -> Result<()> {
    let (project, _) = laid_out()?;
    fs::remove_dir_all(project.directory().join(".cargo"))?;
    let packages = ["uses-cust", "uses-hip-runtime-sys", "uses-cmake"];
    for package in packages {
        let build = ["check", "--package", package];
        let ran = run(&mut project.cargo(&build, DEFAULT, false)?)?;
        if ran.status.success() || !ran.stderr.contains("custom build command") {
            return Err(ran.error("this build script should insist on a toolkit"));
        }
    }
    Ok(())
}

/// candle-core compiles its kernels with a real toolkit, so PATH has that one before the directory;
/// the program needs neither. nvcc runs for seven minutes, once per target directory.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_candle_starts_without_a_gpu() -> Result<()> {
    let project = Project::new("candle", false)?;
    let toolkit = component("wheels/toolkit-13.4/nvidia/cu13")?;
    let mut build = project.cargo(&["build", "--message-format", "json"], DEFAULT, false)?;
    build
        .env("CUDA_PATH", &toolkit)
        .env("CUDA_COMPUTE_CAP", "80");
    build.env("PATH", path_with(&toolkit.join("bin"))?);
    let program = image(&succeed(&mut build)?.stdout, "uses-candle", "bin")?;
    check_image_with(&program, DEFAULT, &["libstdc++.so.6"])?;
    let absent = "DriverError(CUDA_ERROR_NO_DEVICE, \"the CUDA driver (libcuda) is not available; GPUSTUB_LOG=1 shows why\")";
    let mut command = command_without_libraries(&project, &program);
    // With RUST_BACKTRACE, candle's errors print their origin.
    command.env_remove("RUST_BACKTRACE");
    prints(command, &format!("{absent}\n[[5.0, 14.0], [14.0, 50.0]]"))
}
