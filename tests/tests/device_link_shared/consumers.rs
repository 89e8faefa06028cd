//! CMake targets over installed packages, with `gpustub_target_device_link` and with the properties that
//! CudaRdcUtils reads: each kernel is registered once.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::elf::needed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use crate::{Project, Record, alone, expect, opens, workspace};

const FINAL: &str = "libarea_final.so";
const AREA: &str = "libarea.so";
const BASE: &str = "libbase.so";
const VOLUME: &str = "libvolume.so";
const CHAIN: [&str; 2] = [AREA, BASE];

/// A target: images of its device link, of all kernels, and of the kernels that it launches.
type Expected<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

/// A build directory for targets of `consumers/<with>.cmake`.
pub struct Build<'a> {
    pub project: &'a Project,
    pub directory: &'a Path,
    pub options: Vec<String>,
}

impl<'a> Build<'a> {
    /// Installs the packages into `directory`. Links of CMake's language CUDA need a `libcudart.so`, which
    /// wheels do not have.
    pub fn new(project: &'a Project, directory: &'a Path, with: &str) -> Result<Self> {
        let prefix = directory.join("installed");
        for package in ["area", "volume", "tally"] {
            project.install(package, &prefix)?;
        }
        let runtime = directory.join("runtime");
        fs::create_dir_all(&runtime)?;
        let library = project.toolkit.join("lib/libcudart.so.13");
        symlink(library, runtime.join("libcudart.so"))?;
        let options = vec![
            format!("-DWITH={with}"),
            format!("-DCMAKE_PREFIX_PATH={}", prefix.display()),
        ];
        Ok(Self {
            project,
            directory,
            options,
        })
    }

    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// With CMake's language CUDA.
    pub fn cuda(self) -> Self {
        let nvcc = self.project.toolkit.join("bin/nvcc");
        self.option("-DCUDA=ON")
            .option(format!("-DCMAKE_CUDA_COMPILER={}", nvcc.display()))
    }

    /// With a toolkit that CMake finds, and its libraries.
    pub fn toolkit(self) -> Self {
        let runtime = self.directory.join("runtime");
        let root = self.project.toolkit.display().to_string();
        self.option(format!("-DCUDAToolkit_ROOT={root}"))
            .option(format!("-DCMAKE_LIBRARY_PATH={}", runtime.display()))
    }

    pub fn configure(&self, generator: &str) -> Result<Ran> {
        let mut cmake = Command::new("cmake");
        for name in ["CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT", "CXX", "CC"] {
            cmake.env_remove(name);
        }
        cmake
            .arg("-S")
            .arg(source())
            .arg("-B")
            .arg(self.build_directory());
        cmake.args(["-G", generator]);
        cmake.env("LIBRARY_PATH", self.directory.join("runtime"));
        run(cmake.args(&self.options))
    }

    /// Configures and builds all targets, from scratch.
    fn build(&self, generator: &str) -> Result<()> {
        if self.build_directory().exists() {
            fs::remove_dir_all(self.build_directory())?;
        }
        self.configure(generator)?.success()?;
        succeed(&mut self.target("all"))?;
        Ok(())
    }

    /// Command that builds a target.
    pub fn target(&self, name: &str) -> Command {
        let mut cmake = Command::new("cmake");
        cmake.arg("--build").arg(self.build_directory());
        cmake.args(["--target", name]);
        cmake.env("LIBRARY_PATH", self.directory.join("runtime"));
        cmake
    }

    fn build_directory(&self) -> PathBuf {
        self.directory.join("build")
    }

    /// Command of a program, or of one that opens a module.
    fn command(&self, target: &str) -> Result<Command> {
        let build = self.build_directory();
        for folder in ["", "plain/"] {
            let module = build.join(format!("{folder}lib{target}.so"));
            if module.exists() {
                return opens(self.directory, &module, "module_run");
            }
        }
        Ok(Command::new(build.join(target)))
    }

    fn expect(&self, targets: &[Expected]) -> Result<()> {
        for (target, opened, kernels, launched) in targets {
            let mut command = self.command(target)?;
            self.project.environment(&mut command);
            let expected = Record {
                opened: sorted(opened),
                kernels: sorted(kernels),
                launched: sorted(launched),
            };
            expect(run(&mut command)?, &expected)?;
        }
        Ok(())
    }

    /// Targets of `cuda.cmake`.
    fn expect_cuda(&self) -> Result<()> {
        self.expect(&[
            (
                "cuda_chain",
                &["cuda_chain"],
                &[AREA, BASE, "cuda_chain"],
                &[AREA, "cuda_chain"],
            ),
            (
                "cuda_unrelated",
                &["cuda_unrelated"],
                &[AREA, BASE, VOLUME, "cuda_unrelated"],
                &[AREA, VOLUME, "cuda_unrelated"],
            ),
            (
                "cuda_mixed",
                &["cuda_mixed"],
                &[AREA, BASE, "cuda_mixed", "cuda_mixed"],
                &[AREA, "cuda_mixed", "cuda_mixed"],
            ),
            (
                "cuda_static",
                &["cuda_static"],
                &[BASE, "cuda_static", "cuda_static"],
                &["cuda_static", "cuda_static"],
            ),
            (
                "cuda_opener",
                &[FINAL, "cuda_opener"],
                &[AREA, BASE, "cuda_opener"],
                &[AREA, "cuda_opener"],
            ),
            (
                "cuda_module",
                &["libcuda_module.so"],
                &[AREA, BASE, "libcuda_module.so"],
                &[AREA, "libcuda_module.so"],
            ),
            (
                "cuda_launches",
                &["cuda_launches"],
                &[AREA, BASE],
                &[AREA, BASE],
            ),
            (
                "cuda_library",
                &["cuda_library"],
                &[AREA, BASE, "cuda_library"],
                &[AREA, "cuda_library"],
            ),
            (
                "cuda_objects",
                &["cuda_objects"],
                &[AREA, BASE, "cuda_objects"],
                &[AREA, "cuda_objects"],
            ),
            (
                "cuda_parts",
                &["cuda_parts"],
                &[AREA, BASE, "cuda_parts"],
                &[AREA, "cuda_parts"],
            ),
            (
                "cuda_parts_module",
                &["libcuda_parts_module.so"],
                &[AREA, BASE, "libcuda_parts_module.so"],
                &[AREA, "libcuda_parts_module.so"],
            ),
            (
                "cuda_whole",
                &[FINAL, "cuda_whole"],
                &[AREA, BASE, "cuda_whole"],
                &[AREA, "cuda_whole"],
            ),
        ])
    }
}

fn sorted(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.sort();
    names
}

/// CMake's project.
fn source() -> PathBuf {
    repository().join("tests/tests/device_link_shared/consumers")
}

/// Targets of `plain.cmake`.
const PLAIN: [Expected; 11] = [
    ("chain", &[FINAL], &CHAIN, &[AREA]),
    (
        "unrelated",
        &["unrelated"],
        &[AREA, BASE, VOLUME],
        &[AREA, VOLUME],
    ),
    (
        "mixed",
        &["mixed"],
        &[AREA, BASE, "mixed"],
        &[AREA, "mixed"],
    ),
    ("static", &["static"], &[BASE, "static"], &["static"]),
    ("module", &[FINAL], &CHAIN, &[AREA]),
    (
        "module_of_two",
        &["libmodule_of_two.so"],
        &[AREA, BASE, VOLUME],
        &[AREA, VOLUME],
    ),
    (
        "opened",
        &["libopened.so"],
        &[AREA, BASE, VOLUME],
        &[AREA, VOLUME],
    ),
    ("through_shared", &[FINAL], &CHAIN, &[AREA]),
    ("through_static", &[FINAL], &CHAIN, &[AREA]),
    (
        "through_interface",
        &["through_interface"],
        &[AREA, BASE, VOLUME],
        &[AREA, VOLUME],
    ),
    (
        "through_two",
        &["through_two"],
        &[AREA, BASE, VOLUME],
        &[AREA, VOLUME],
    ),
];

/// With and without a `CUDA::cudart`, by each generator and linker.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_targets_without_cuda_have_one_device_link() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    for (generator, flags, has_toolkit) in [
        ("Ninja", "-Wl,--as-needed", true),
        ("Unix Makefiles", "-fuse-ld=lld -Wl,--as-needed", false),
    ] {
        let dir = scratch()?;
        let build = Build::new(project, dir.path(), "plain")?
            .option(format!("-DCMAKE_EXE_LINKER_FLAGS={flags}"));
        let build = if has_toolkit {
            build.toolkit()
        } else {
            let nvcc = project.toolkit.join("bin/nvcc");
            build.option(format!("-DGPUSTUB_NVCC={}", nvcc.display()))
        };
        build.build(generator)?;
        build.expect(&PLAIN)?;
        // A program with a final of its own runs no compiler.
        assert!(!build.build_directory().join("gpustub/chain").exists());
    }
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_targets_with_cuda_have_one_device_link() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let build = Build::new(workspace()?, dir.path(), "cuda")?.cuda();
    build.build("Ninja")?;
    build.expect_cuda()
}

/// The lines of CMake that CudaRdcUtils executes with these properties.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_properties_are_those_of_cuda_rdc_utils() -> Result<()> {
    let _alone = alone();
    let dir = scratch()?;
    let build = Build::new(workspace()?, dir.path(), "properties")?.cuda();
    build.build("Ninja")?;
    build.expect(&[
        ("rdc_chain", &[FINAL], &CHAIN, &[AREA]),
        ("rdc_module", &[FINAL], &CHAIN, &[AREA]),
        (
            "rdc_cuda_chain",
            &["rdc_cuda_chain"],
            &[AREA, BASE, "rdc_cuda_chain"],
            &[AREA, "rdc_cuda_chain"],
        ),
        (
            "rdc_unrelated",
            &["rdc_unrelated"],
            &[AREA, BASE, VOLUME],
            &[AREA, VOLUME],
        ),
        (
            "rdc_cuda_mixed",
            &["rdc_cuda_mixed"],
            &[AREA, BASE, "rdc_cuda_mixed", "rdc_cuda_mixed"],
            &[AREA, "rdc_cuda_mixed", "rdc_cuda_mixed"],
        ),
        (
            "rdc_cuda_module",
            &["librdc_cuda_module.so"],
            &[AREA, BASE, "librdc_cuda_module.so"],
            &[AREA, "librdc_cuda_module.so"],
        ),
        (
            "hand_static",
            &["hand_static"],
            &["hand_static"; 3],
            &["hand_static"; 2],
        ),
    ])
}

/// Device links over libraries that call stubs call them as well: no program needs CUDA to start.
pub fn calls_stubs(project: &Project, directory: &Path) -> Result<()> {
    let build = Build::new(project, directory, "plain")?.toolkit();
    build.build("Ninja")?;
    build.expect(&PLAIN)?;
    let mut programs = Vec::new();
    for program in ["chain", "unrelated", "mixed", "static"] {
        programs.push(build.build_directory().join(program));
    }
    let directory = directory.join("cuda");
    fs::create_dir_all(&directory)?;
    let build = Build::new(project, &directory, "cuda")?.cuda();
    build.build("Ninja")?;
    build.expect_cuda()?;
    for program in ["cuda_chain", "cuda_mixed", "cuda_whole"] {
        programs.push(build.build_directory().join(program));
    }
    for program in programs {
        let names = needed(&program)?;
        assert!(
            !names.iter().any(|name| name.contains("cudart")),
            "{}: {names:?}",
            program.display()
        );
        // `cudaErrorInsufficientDriver` of one call, or of two.
        let ran = succeed(Command::new(program).env_remove("CUDA_HOME"))?;
        if ran.stdout != "status 35\n" {
            return Err(ran.error("the program does not report the status of the stub"));
        }
    }
    Ok(())
}

/// Code blocks of a language in a page.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    page.split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.split_once('\n'))
        .filter(|(head, _)| *head == language)
        .map(|(_, text)| text)
        .collect()
}

/// The projects of `docs/device-link-cmake.md` and `docs/export.md`, with the names of these packages.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_pages_show_projects_that_work() -> Result<()> {
    let _alone = alone();
    let project = workspace()?;
    let dir = scratch()?;
    Build::new(project, dir.path(), "page")?;
    let nvcc = project.toolkit.join("bin/nvcc");
    let mut text = String::new();
    for page in ["device-link-cmake.md", "export.md"] {
        let page = fs::read_to_string(repository().join("docs").join(page))?;
        // The first half of `export.md` is about stubs, and has its own test.
        text += page
            .split_once("\n## Device-linked libraries\n")
            .map_or(&page, |(_, half)| half);
    }
    let prefix = dir.path().join("installed");
    for (name, actual) in [
        ("physics", "area".to_owned()),
        ("rays", "volume".to_owned()),
        ("/opt/area", prefix.display().to_string()),
        ("/usr/local/cuda/bin/nvcc", nvcc.display().to_string()),
    ] {
        text = text.replace(name, &actual);
    }
    let commands = blocks(&text, "console");
    let (Some(cxx), Some(cuda)) = (
        commands.first(),
        commands.iter().find(|c| c.contains("nvcc")),
    ) else {
        return Err("the page has no commands".into());
    };
    let projects = blocks(&text, "cmake");
    assert_eq!(projects.len(), 4);
    for lists in projects {
        let has_cuda = lists.contains("CXX CUDA");
        let script = if has_cuda { cuda } else { cxx };
        let directory = build_page_project(dir.path(), lists, script)?;
        let mut expected = vec![("program", Record::new(FINAL, &["area", "base"], &["area"]))];
        if has_cuda {
            expected = [
                ("program", [AREA, BASE, VOLUME]),
                ("simulation", [AREA, BASE, "simulation"]),
            ]
            .map(|(program, kernels)| {
                let record = Record {
                    opened: vec![program.to_owned()],
                    kernels: kernels.map(str::to_owned).into(),
                    launched: vec![AREA.to_owned()],
                };
                (program, record)
            })
            .into();
        }
        for (program, record) in expected {
            let mut command = Command::new(directory.join("build").join(program));
            project.environment(&mut command);
            expect(run(&mut command)?, &record)?;
        }
    }
    Ok(())
}

/// Builds a project of a page with the commands of the page, from scratch. Returns its directory.
fn build_page_project(parent: &Path, lists: &str, script: &str) -> Result<PathBuf> {
    let directory = parent.join("project");
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("CMakeLists.txt"), lists)?;
    fs::copy(
        source().join("../cmake/program.cpp"),
        directory.join("program.cpp"),
    )?;
    fs::copy(source().join("own.cu"), directory.join("simulation.cu"))?;
    let commands: Vec<&str> = script
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .collect();
    let mut bash = Command::new("bash");
    bash.current_dir(&directory)
        .env("LIBRARY_PATH", parent.join("runtime"))
        .args(["-euc", &commands.join("\n")]);
    for name in ["CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT", "CXX", "CC"] {
        bash.env_remove(name);
    }
    succeed(&mut bash)?;
    Ok(directory)
}
