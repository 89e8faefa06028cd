//! Unchanged third-party code that builds against the stubs and starts.
//!
//! Each project below `fixtures/third-party` is built with each linker, with and without a toolkit
//! in the linker's search path. Every image that cargo builds of it (program, cdylib, unit,
//! integration and documentation tests) must need no GPU library, run, and get the API's error
//! values. The toolkit is a directory of fake libraries: linkers accept them as real ones, and they
//! print a message when they are loaded.

mod existing;
mod programs;
mod registry_crates;
mod shared_form;
mod windows;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::target_dir;
use gpustub_tests::elf::{needed, readelf, symbols};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};
use serde_json::Value;

/// Variables through which a real toolkit of this machine could get into a build.
const TOOLKIT_VARIABLES: [&str; 9] = [
    "CUDA_HOME",
    "CUDA_LIBRARY_PATH",
    "CUDA_PATH",
    "CUDA_ROOT",
    "CUDA_TOOLKIT_ROOT_DIR",
    "HIP_PATH",
    "ROCM_PATH",
    "LIBRARY_PATH",
    "LD_LIBRARY_PATH",
];

/// All libraries that an image may need.
const SYSTEM: [&str; 7] = [
    "ld-linux-x86-64.so.2",
    "libc.so.6",
    "libdl.so.2",
    "libgcc_s.so.1",
    "libm.so.6",
    "libpthread.so.0",
    "librt.so.1",
];

/// Linker, the flag that selects it, and the name that it leaves in `.comment`.
#[derive(Clone, Copy)]
struct Linker {
    name: &'static str,
    flag: &'static str,
    comment: Option<&'static str>,
}

/// rustc's default: rust-lld since 1.90, before that the C compiler's.
const DEFAULT: Linker = Linker {
    name: "default",
    flag: "",
    comment: Some(""),
};
const BFD: Linker = Linker {
    name: "bfd",
    flag: "-Clink-arg=-fuse-ld=bfd",
    comment: None,
};
const MOLD: Linker = Linker {
    name: "mold",
    flag: "-Clink-arg=-fuse-ld=mold",
    comment: Some("mold"),
};

/// Project below `fixtures/third-party`, copied to where cargo can build it.
struct Project {
    /// Directory of all these projects, below the target directory, so that build outputs are kept.
    work: PathBuf,
    name: &'static str,
    /// Whether the project needs only crates that this build has used.
    offline: bool,
    /// Serializes the tests, because projects share files and a cargo directory.
    _turn: MutexGuard<'static, ()>,
}

impl Project {
    fn new(name: &'static str, offline: bool) -> Result<Self> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let project = Self {
            work: target_dir().join("third-party"),
            name,
            offline,
            _turn: turn,
        };
        let fixtures = repository().join("tests/fixtures/third-party");
        copy(&fixtures.join(name), &project.directory())?;
        if offline {
            let lock = fs::read(repository().join("Cargo.lock"))?;
            write_if_changed(&project.directory().join("Cargo.lock"), &lock)?;
        }
        let mut cc = Command::new("cc");
        cc.arg(fixtures.join("host.c"))
            .args(["-ldl", "-o"])
            .arg(project.host());
        succeed(&mut cc)?;
        project.install_toolkit(&fixtures.join("toolkit.c"))?;
        Ok(project)
    }

    fn directory(&self) -> PathBuf {
        self.work.join(self.name)
    }

    /// Program that loads a shared library and calls its `check`.
    fn host(&self) -> PathBuf {
        self.work.join("host")
    }

    fn toolkit(&self) -> PathBuf {
        self.work.join("toolkit")
    }

    /// Creates a directory with the layout of a toolkit, driver included.
    fn install_toolkit(&self, source: &Path) -> Result<()> {
        let directory = self.toolkit().join("lib64");
        fs::create_dir_all(directory.join("stubs"))?;
        for (name, soname) in [
            ("libcuda.so", "libcuda.so.1"),
            ("libcudart.so", "libcudart.so.12"),
            ("libnvrtc.so", "libnvrtc.so.12"),
            ("libOpenCL.so", "libOpenCL.so.1"),
            ("libcublas.so", "libcublas.so.12"),
            ("libamdhip64.so", "libamdhip64.so.5"),
            ("libnvidia-ml.so", "libnvidia-ml.so.1"),
        ] {
            let mut cc = Command::new("cc");
            cc.args(["-shared", "-fPIC"])
                .arg(format!("-Wl,-soname,{soname}"));
            succeed(cc.arg(source).arg("-o").arg(directory.join(soname)))?;
            fs::copy(directory.join(soname), directory.join(name))?;
            fs::copy(directory.join(soname), directory.join("stubs").join(name))?;
        }
        let object = directory.join("toolkit.o");
        let mut cc = Command::new("cc");
        succeed(cc.args(["-c", "-fPIC"]).arg(source).arg("-o").arg(&object))?;
        for name in [
            "cudart_static",
            "cublas_static",
            "cublasLt_static",
            "culibos",
        ] {
            let mut ar = Command::new("ar");
            ar.arg("rcs").arg(directory.join(format!("lib{name}.a")));
            succeed(ar.arg(&object))?;
        }
        Ok(())
    }

    /// A cargo command in which gpustub-build is this tree's. `linker` serves the project's own
    /// packages only: for all of them, cargo would recompile every dependency.
    fn cargo(&self, words: &[&str], linker: Linker, toolkit: bool) -> Result<Command> {
        let kind = if toolkit { "toolkit" } else { "bare" };
        let target = self.work.join(format!("target-{kind}"));
        fs::create_dir_all(&target)?;
        let mut cargo = cargo(&self.directory());
        cargo.args(words);
        cargo.arg("--quiet").arg("--target-dir").arg(&target);
        if self.offline {
            cargo.arg("--offline");
        }
        let helper = repository().join("gpustub-build");
        cargo.arg("--config").arg(format!(
            "patch.crates-io.gpustub-build.path = '{}'",
            helper.display()
        ));
        clean(&mut cargo);
        if !linker.flag.is_empty() {
            let wrapper = target.join(format!("rustc-{}", linker.name));
            let script = format!("#!/bin/sh\nexec \"$@\" {}\n", linker.flag);
            write_if_changed(&wrapper, script.as_bytes())?;
            fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))?;
            cargo.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
            cargo.env("RUSTDOCFLAGS", linker.flag);
        }
        if toolkit {
            cargo.env("CUDA_PATH", self.toolkit());
            cargo.env("LIBRARY_PATH", self.toolkit().join("lib64"));
        }
        Ok(cargo)
    }

    /// Builds all images of `packages` and checks each. `more` is passed to both cargo commands.
    fn check(&self, packages: &[&str], linker: Linker, toolkit: bool, more: &[&str]) -> Result<()> {
        let build = ["test", "--no-run", "--message-format", "json"];
        let mut build = self.cargo(&[&build, more].concat(), linker, toolkit)?;
        build.args(packages.iter().flat_map(|package| ["--package", package]));
        let built = succeed(&mut build)?;
        for package in packages {
            let images = images(&built.stdout, package)?;
            let kinds: Vec<&str> = images.iter().map(|(kind, _)| &kind[..]).collect();
            let expected = ["bin", "cdylib", "test", "unit of bin", "unit of lib"];
            assert_eq!(kinds, expected, "{package}: {}", built.stdout);
            for (kind, image) in &images {
                let mut command = match &kind[..] {
                    "cdylib" => Command::new(self.host()),
                    _ => Command::new(image),
                };
                if kind == "cdylib" {
                    command.arg(image);
                }
                check_image(image, linker)
                    .and_then(|()| self.start(clean(&mut command)))
                    .map_err(|failure| {
                        let name = linker.name;
                        format!("{package}, {kind}, {name}, toolkit: {toolkit}: {failure:?}")
                    })?;
            }
            // These images exist only while rustdoc runs them: the test leaves a copy.
            let scratch = scratch()?;
            let kept = scratch.path().join("documentation-test");
            let words = [&["test", "--doc", "--package", package], more].concat();
            let mut doc = self.cargo(&words, linker, toolkit)?;
            self.start(doc.env("KEEP_DOC_TEST", &kept))?;
            check_image(&kept, linker)?;
        }
        Ok(())
    }

    /// Runs a program as on a machine without GPU libraries, except that the loader could find the
    /// toolkit's if the program needed one.
    fn start(&self, command: &mut Command) -> Result<()> {
        let ran = succeed(self.switch_off(command))?;
        if ran.stderr.is_empty() {
            Ok(())
        } else {
            Err(ran.error("a library was loaded, or unexpected output"))
        }
    }

    /// Checks that a program with the stubs of two crates has one run time.
    fn has_one_run_time(&self) -> Result<()> {
        let build = ["build", "--package", "app", "--message-format", "json"];
        let built = succeed(&mut self.cargo(&build, DEFAULT, false)?)?;
        let images = images(&built.stdout, "app")?;
        let (_, program) = images
            .iter()
            .find(|(kind, _)| kind == "bin")
            .ok_or("no program")?;
        let rows = symbols("--symbols", program)?;
        for name in [
            "find_library",
            "gpustub1_slow",
            "gpustub1_on_exit",
            "cuInit",
        ] {
            let count = rows.iter().filter(|row| row.name == name).count();
            assert_eq!(count, 1, "{name}");
        }
        Ok(())
    }

    /// Makes stubs find no library.
    fn switch_off<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for library in [
            "CUBLAS", "CUBLASLT", "CUDA", "CUDART", "CURAND", "HIP", "NVML", "NVRTC", "OPENCL",
        ] {
            command.env(format!("GPUSTUB_{library}_PATH"), "off");
        }
        command.env("LD_LIBRARY_PATH", self.toolkit().join("lib64"))
    }
}

/// Removes the machine's own toolkit from a command's environment.
fn clean(command: &mut Command) -> &mut Command {
    for variable in TOOLKIT_VARIABLES {
        command.env_remove(variable);
    }
    command
}

/// Checks the dynamic section and the linker of an image.
fn check_image(image: &Path, linker: Linker) -> Result<()> {
    check_image_with(image, linker, &[])
}

/// As [`check_image`], for an image that may also need the libraries `more`.
fn check_image_with(image: &Path, linker: Linker, more: &[&str]) -> Result<()> {
    let needed = needed(image)?;
    let known = |name: &&str| SYSTEM.contains(name) || more.contains(name);
    if let Some(name) = needed.iter().find(|name| !known(&&name[..])) {
        return Err(format!("needs {name}").into());
    }
    let comment = readelf(&["-p", ".comment"], image)?;
    let by_that_linker = match linker.comment {
        Some(name) => comment.contains(name),
        None => !comment.contains("LLD") && !comment.contains("mold"),
    };
    if by_that_linker {
        Ok(())
    } else {
        Err(format!("was linked by another linker: {comment}").into())
    }
}

/// Images of a package from cargo's messages, with their kinds, sorted.
fn images(messages: &str, package: &str) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        let is_of_package = message["package_id"].as_str().is_some_and(|id| {
            id.contains(&format!("/{package}#")) || id.contains(&format!("#{package}@"))
        });
        if message["reason"] != "compiler-artifact" || !is_of_package {
            continue;
        }
        let kinds = message["target"]["kind"].as_array();
        let kind = match kinds.and_then(|kinds| kinds.last()?.as_str()) {
            Some("custom-build") | None => continue,
            Some("test") => "test".to_owned(),
            Some("bin") if message["profile"]["test"] == true => "unit of bin".to_owned(),
            Some(_) if message["profile"]["test"] == true => "unit of lib".to_owned(),
            Some(kind) => kind.to_owned(),
        };
        let files = message["filenames"].as_array().into_iter().flatten();
        let image = match message["executable"].as_str() {
            Some(program) => Some(program),
            None => files.filter_map(Value::as_str).find(|f| f.ends_with(".so")),
        };
        found.push((kind, image.ok_or(line)?.into()));
    }
    found.sort();
    Ok(found)
}

/// Copies a directory; unchanged files keep their time, so that cargo rebuilds nothing.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (from, to) = {
            let entry = entry?;
            (entry.path(), to.join(entry.file_name()))
        };
        if from.is_dir() {
            copy(&from, &to)?;
        } else {
            write_if_changed(&to, &fs::read(&from)?)?;
        }
    }
    Ok(())
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).ok().as_deref() != Some(bytes) {
        fs::write(path, bytes)?;
    }
    Ok(())
}

/// Shows the failure that the other tests prevent: without stubs, programs need the toolkit.
#[test]
fn without_stubs_the_toolkit_is_linked() -> Result<()> {
    let project = Project::new("local", true)?;
    let build = ["build", "--package", "victim", "--message-format", "json"];
    let built = succeed(&mut project.cargo(&build, DEFAULT, true)?)?;
    let images = images(&built.stdout, "victim")?;
    assert_eq!(images.len(), 1, "{}", built.stdout);
    let needed = needed(&images[0].1)?;
    assert!(needed.contains(&"libcuda.so.1".to_owned()), "{needed:?}");
    Ok(())
}

/// A crate that links `dylib=cuda` and names the toolkit's directory, a library that leaves
/// providing its stubs to others, and the application that provides them.
#[test]
fn a_hostile_crate_and_a_library_that_requires_stubs() -> Result<()> {
    let project = Project::new("local", true)?;
    for (linker, toolkit) in [(DEFAULT, false), (DEFAULT, true), (BFD, true)] {
        project.check(&["app"], linker, toolkit, &[])?;
    }
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_hostile_crate_and_a_library_that_requires_stubs_with_mold() -> Result<()> {
    let project = Project::new("local", true)?;
    for toolkit in [false, true] {
        project.check(&["app"], MOLD, toolkit, &[])?;
    }
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_a_hostile_crate_with_link_time_optimisation() -> Result<()> {
    Project::new("local", true)?.check(&["app"], DEFAULT, true, &["--release"])
}

/// Two crates that bring stubs, one library both of them, in an application without a `GpuStub.toml`.
#[test]
fn two_crates_bring_stubs() -> Result<()> {
    let project = Project::new("merged", true)?;
    for linker in [DEFAULT, BFD] {
        project.check(&["app"], linker, false, &[])?;
    }
    project.has_one_run_time()
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_two_crates_bring_stubs_with_mold() -> Result<()> {
    Project::new("merged", true)?.check(&["app"], MOLD, true, &[])
}

/// A C program with the static library of a crate whose dependencies bring stubs.
fn staticlib_contains_both_stubs(linkers: &[&str]) -> Result<()> {
    let project = Project::new("merged", true)?;
    let words = [
        "rustc",
        "--package",
        "app",
        "--lib",
        "--crate-type",
        "staticlib",
    ];
    succeed(&mut project.cargo(&words, DEFAULT, false)?)?;
    let main = project.work.join("staticlib.c");
    write_if_changed(
        &main,
        b"int check(void);\nint main(void) { return check(); }\n",
    )?;
    let program = project.work.join("staticlib");
    for linker in linkers {
        for collect in [true, false] {
            let mut cc = Command::new("cc");
            cc.arg(&main)
                .arg(project.work.join("target-bare/debug/libapp.a"));
            cc.args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"])
                .arg(&program);
            cc.arg(format!("-fuse-ld={linker}"));
            cc.args(collect.then_some("-Wl,--gc-sections"));
            succeed(&mut cc)?;
            project.start(&mut Command::new(&program))?;
            let rows = symbols("--symbols", &program)?;
            let run_times = rows.iter().filter(|row| row.name == "find_library");
            // A member of each crate's archive, of which the linker takes the first.
            assert_eq!(run_times.count(), 1, "{linker}, {collect}");
        }
    }
    Ok(())
}

#[test]
fn staticlib_contains_the_stubs_of_two_crates() -> Result<()> {
    staticlib_contains_both_stubs(&["bfd"])
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_staticlib_contains_the_stubs_of_two_crates_with_other_linkers() -> Result<()> {
    staticlib_contains_both_stubs(&["gold", "lld", "mold"])
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_two_crates_bring_stubs_with_link_time_optimisation() -> Result<()> {
    Project::new("merged", true)?.check(&["app"], DEFAULT, true, &["--release"])
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_unchanged_crates_of_the_registry() -> Result<()> {
    let project = Project::new("registry", false)?;
    for toolkit in [false, true] {
        for linker in [DEFAULT, BFD, MOLD] {
            project.check(&["uses-cudarc", "uses-cl-sys"], linker, toolkit, &[])?;
        }
    }
    Ok(())
}
