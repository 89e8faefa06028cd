//! Soname stubs bind to the real library, wherever it is, and never to a library of stubs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::components::wheel_libraries;
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use serde_json::Value;
use tempfile::TempDir;

use super::{export, fake_runtime, finished, library};

const NAME: &str = "libcudart.so.12";

/// Results of the program without a library, with the fake runtime, and with the real one of 12.9.
const MISSING: &str =
    "cudaGetDeviceCount 35 cudaErrorInsufficientDriver, cudaRuntimeGetVersion 35 0\n";
const FAKE: &str = "cudaGetDeviceCount 0 cudaSuccess, cudaRuntimeGetVersion 0 12080\n";
const REAL: &str =
    "cudaGetDeviceCount 35 cudaErrorInsufficientDriver, cudaRuntimeGetVersion 0 12090\n";

const STUBS: &str = "a library of stubs, not the library";
const SAME_STUBS: &str = "the stubs themselves, not the library";

/// A finished program, its stubs, and a runtime.
struct Files {
    dir: TempDir,
    program: PathBuf,
    stubs: PathBuf,
    runtime: PathBuf,
}

impl Files {
    fn new() -> Result<Self> {
        let dir = scratch()?;
        let runtime = fake_runtime(&dir.path().join("toolkit"))?;
        let program = finished(dir.path(), &runtime)?;
        export(dir.path(), &["--quiet", "--soname", NAME])?;
        Ok(Self {
            stubs: dir.path().join("lib").join(NAME),
            dir,
            program,
            runtime,
        })
    }

    /// A machine with the program and the stubs in `/gpustub`.
    fn machine(&self) -> Result<Isolated> {
        let machine = Isolated::new()?;
        machine.install(&self.program, "/program")?;
        machine.install(&self.stubs, &format!("/gpustub/{NAME}"))?;
        Ok(machine)
    }
}

fn run(machine: &Isolated, words: &[&str], path: &str, more: &[(&str, &str)]) -> Result<Ran> {
    let variables = [("GPUSTUB_LOG", "json"), ("LD_LIBRARY_PATH", path)];
    let ran = machine.run_with("/program", words, &[&variables, more].concat())?;
    ran.success()
}

/// The report about the runtime.
fn report(ran: &Ran) -> Result<Value> {
    for line in ran.stderr.lines().filter(|line| line.starts_with('{')) {
        let report: Value = serde_json::from_str(line)?;
        if report["library"] == "cudart" {
            return Ok(report);
        }
    }
    Err(ran.error("no report about cudart"))
}

/// A file of a directory in front of the real one is rejected for this reason.
fn check_rejected(report: &Value, file: &str, reason: &str) {
    let mut candidates = report["candidates"].as_array().into_iter().flatten();
    let is_rejected =
        candidates.any(|candidate| candidate["name"] == file && candidate["reason"] == reason);
    assert!(is_rejected, "{file}: {report}");
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn stubs_bind_to_no_stubs_and_to_the_library_behind_them() -> Result<()> {
    let files = Files::new()?;
    let machine = files.machine()?;
    machine.install(&files.runtime, &format!("/real/{NAME}"))?;
    // A copy, a link, another name of the same file, and stubs of another package.
    let stubs = machine.path(&format!("/gpustub/{NAME}"));
    let [copy, link, hard_link, other_stubs] = ["copy", "link", "hard", "other"]
        .map(|directory| machine.path(&format!("/{directory}/{NAME}")));
    for file in [&copy, &link, &hard_link, &other_stubs] {
        fs::create_dir(file.parent().ok_or("a directory")?)?;
    }
    fs::copy(&stubs, copy)?;
    symlink(format!("../gpustub/{NAME}"), link)?;
    fs::hard_link(&stubs, hard_link)?;
    let exported = files.dir.path().join("other");
    let options = ["cudart", "--type=shared", "--header-version=12", "--quiet"];
    export(&exported, &options)?;
    fs::copy(exported.join("lib/libgpustub_cudart.so"), other_stubs)?;

    let before = machine.run("/program", &[])?;
    assert!(!before.status.success(), "{before:?}");
    assert!(before.stderr.contains(NAME), "{}", before.stderr);

    let fakes = "/gpustub:/copy:/link:/hard:/other";
    for (path, output, library) in [
        ("/gpustub".to_owned(), MISSING, Value::Null),
        (fakes.to_owned(), MISSING, Value::Null),
        (
            format!("{fakes}:/real"),
            FAKE,
            format!("/real/{NAME}").into(),
        ),
    ] {
        let ran = run(&machine, &[], &path, &[])?;
        assert_eq!(ran.stdout, output, "{path}: {}", ran.stderr);
        let report = report(&ran)?;
        assert_eq!(report["path"], library, "{path}");
        check_rejected(&report, &format!("/gpustub/{NAME}"), SAME_STUBS);
        for directory in path.split(':').filter(|directory| *directory != "/real") {
            check_rejected(&report, &format!("{directory}/{NAME}"), STUBS);
        }
    }
    for variable in [format!("/copy/{NAME}"), "/gpustub".to_owned()] {
        let variables = [("GPUSTUB_CUDART_PATH", &variable[..])];
        let ran = run(&machine, &[], "/gpustub:/real", &variables)?;
        assert_eq!(ran.stdout, MISSING, "{variable}: {}", ran.stderr);
    }
    let variables = [("GPUSTUB_CUDART_PATH", "/real")];
    assert_eq!(run(&machine, &[], "/gpustub", &variables)?.stdout, FAKE);
    Ok(())
}

/// The cache is not among the directories that the loader lists, and the stub holds the name.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn a_library_of_the_loaders_cache_is_found() -> Result<()> {
    let files = Files::new()?;
    let machine = files.machine()?;
    machine.install(&files.runtime, &format!("/cached/{NAME}"))?;
    fs::create_dir_all(machine.path("/etc"))?;
    fs::write(machine.path("/etc/ld.so.conf"), "/cached\n")?;
    let mut ldconfig = Command::new("/sbin/ldconfig");
    succeed(ldconfig.arg("-r").arg(machine.path("/")))?;
    let ran = run(&machine, &[], "/gpustub", &[])?;
    assert_eq!(ran.stdout, FAKE, "{}", ran.stderr);
    assert_eq!(report(&ran)?["path"], format!("/cached/{NAME}"));
    // A directory of LD_LIBRARY_PATH precedes the cache.
    machine.install(&files.runtime, &format!("/real/{NAME}"))?;
    let ran = run(&machine, &[], "/gpustub:/real", &[])?;
    assert_eq!(report(&ran)?["path"], format!("/real/{NAME}"));
    Ok(())
}

#[test]
#[ignore = "needs user namespaces and real libraries: ./tests/run"]
fn a_real_library_that_is_loaded_by_its_path_is_used() -> Result<()> {
    let files = Files::new()?;
    let machine = files.machine()?;
    machine.install_all(&wheel_libraries("cudart-12.9")?, "/toolkit")?;
    let path = format!("/toolkit/{NAME}");
    let ran = run(&machine, &[&path], "/gpustub", &[])?;
    assert_eq!(ran.stdout, REAL, "{}", ran.stderr);
    let report = report(&ran)?;
    assert_eq!(report["path"], path);
    check_rejected(&report, &format!("/gpustub/{NAME}"), STUBS);

    // A library of another major.
    machine.install_all(&wheel_libraries("cudart-13.5")?, "/newer")?;
    let ran = run(&machine, &[], "/gpustub:/newer", &[])?;
    assert!(ran.stdout.ends_with(" 0 13050\n"), "{ran:?}");
    Ok(())
}

/// File to which a file's reference to `cudaGetDeviceCount` was bound, by `LD_DEBUG=bindings`.
fn binding<'a>(log: &'a str, file: &str) -> Option<&'a str> {
    let from = format!("binding file {file} [0] to ");
    let (_, target) = log
        .lines()
        .filter(|line| line.contains("`cudaGetDeviceCount'"))
        .find_map(|line| line.split_once(&from[..]))?;
    target.split_once(" [0]").map(|(file, _)| file)
}

/// The loader takes a loaded soname for the request: `docs/finished-programs.md`, "Other libraries of the process".
#[test]
fn other_libraries_of_the_process_get_what_was_loaded_first() -> Result<()> {
    let files = Files::new()?;
    let innocent = innocent(files.dir.path(), &files.runtime)?;
    let host = files.dir.path().join("host.c");
    fs::write(
        &host,
        "#include <dlfcn.h>\nint main(int argc, char **argv) { for (int i = 1; i < argc; i++) \
         if (!dlopen(argv[i], RTLD_NOW | (i + 1 < argc ? RTLD_GLOBAL : 0))) return 1; return 0; }\n",
    )?;
    let program = files.dir.path().join("host");
    let mut cc = Command::new("cc");
    succeed(cc.arg(&host).args(["-ldl", "-o"]).arg(&program))?;
    for (loaded, named) in [
        (&files.runtime, &files.stubs),
        (&files.stubs, &files.runtime),
    ] {
        let mut command = Command::new(&program);
        command.arg(loaded).arg(&innocent);
        // The name leads to the second library, but is that of a loaded one.
        command.env("LD_LIBRARY_PATH", named.parent().ok_or("a directory")?);
        let ran = succeed(command.env("LD_DEBUG", "bindings"))?;
        let bound = binding(&ran.stderr, &innocent.display().to_string());
        assert_eq!(bound, loaded.to_str());
    }
    Ok(())
}

/// Library that needs the real runtime.
fn innocent(dir: &Path, runtime: &Path) -> Result<PathBuf> {
    let source = "int cudaGetDeviceCount(int *);\nint count(void) { int n; return cudaGetDeviceCount(&n); }\n";
    let innocent = library(&dir.join("innocent"), "libinnocent.so", source, "")?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"])
        .arg(&innocent);
    cc.arg(dir.join("innocent/library.c")).arg(runtime);
    succeed(&mut cc)?;
    Ok(innocent)
}
