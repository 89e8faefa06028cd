//! `cargo gpustub repair` of programs and DLLs: the error before, and what works after, without the CUDA runtime and with
//! other majors of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::components::{component, only_entry};
use gpustub_tests::wine::{run, windows_path, wine};

use crate::trial::Trial;

/// Output without the library, and with one of a major.
const MISSING: &str = "status 35, 0 devices; status 35, version 0\n";
const MAJOR_12: &str = "status 0, 12 devices; status 0, version 12000\n";
const MAJOR_13: &str = "status 0, 13 devices; status 0, version 13000\n";

/// A file of `tests/programs/windows/repair`.
fn source(name: &str) -> String {
    format!("programs/windows/repair/{name}")
}

/// Compiles a CUDA runtime of a major.
fn cudart(trial: &Trial, file: &str, major: u32) -> Result<PathBuf> {
    trial.library(file, &source("cudart.c"), &[&format!("-DVERSION={major}")])
}

/// Compiles a program that calls the CUDA runtime of 12.
fn program(trial: &Trial, library: &str) -> Result<()> {
    let flags = ["-DPROGRAM", library];
    succeed(&mut trial.compile("program.exe", &[&source("calls.c")], &flags))?;
    Ok(())
}

/// Repairs files of a directory to its directory `out`.
fn repair(directory: &Path, files: &[&str]) -> Result<String> {
    let mut command = gpustub(&["repair", "-v", "--out-dir", "out"])?;
    Ok(succeed(command.current_dir(directory).args(files))?.stderr)
}

/// Runs the repaired program.
fn run_repaired(trial: &Trial) -> Result<Ran> {
    run(&mut wine(&trial.dir().join("out/program.exe"))?)
}

/// STATUS_DLL_NOT_FOUND is 0xc0000135, of which Unix has the last byte.
const NOT_FOUND: i32 = 0x35;

#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn repaired_programs_start_without_the_library() -> Result<()> {
    let trial = Trial::new()?;
    let library = cudart(&trial, "cudart64_12.dll", 12)?;
    program(&trial, "cudart64_12.dll")?;
    assert_eq!(trial.run(&[])?.stdout, MAJOR_12);
    fs::remove_file(library)?;
    assert_eq!(run(&mut trial.command()?)?.status.code(), Some(NOT_FOUND));
    let printed = repair(trial.dir(), &["program.exe"])?;
    assert!(
        printed.contains("program.exe: without cudart64_12.dll"),
        "{printed}"
    );
    assert_eq!(run_repaired(&trial)?.success()?.stdout, MISSING);
    // Libraries of another major, then of the same, beside the program.
    cudart(&trial, "out/cudart64_13.dll", 13)?;
    assert_eq!(run_repaired(&trial)?.stdout, MAJOR_13);
    cudart(&trial, "out/cudart64_12.dll", 12)?;
    assert_eq!(run_repaired(&trial)?.stdout, MAJOR_12);
    Ok(())
}

/// A program that needs a DLL which gpustub does not know.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn user_defined_dlls_are_loaded_lazily() -> Result<()> {
    let trial = Trial::new()?;
    let library = cudart(&trial, "acme64_3.dll", 12)?;
    program(&trial, "acme64_3.dll")?;
    let options = ["--library", "acme=acme64_3.dll", "--returns=value:9"];
    let printed = repair(trial.dir(), &[&["program.exe"][..], &options].concat())?;
    assert!(printed.contains("without acme64_3.dll"), "{printed}");
    assert_eq!(
        run_repaired(&trial)?.success()?.stdout,
        "status 9, -1 devices; status 9, version -1\n"
    );
    fs::copy(library, trial.dir().join("out/acme64_3.dll"))?;
    assert_eq!(run_repaired(&trial)?.stdout, MAJOR_12);
    Ok(())
}

/// The name of the stub library has 27 bytes: a longer name in the image has place for it.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn names_over_longer_ones() -> Result<()> {
    let trial = Trial::new()?;
    let copy = "cudart64_12-c8a0a2ff1ac1f9ef9ec7ae4fb74ba7c5.dll";
    let library = cudart(&trial, copy, 12)?;
    program(&trial, copy)?;
    fs::remove_file(library)?;
    assert_eq!(run(&mut trial.command()?)?.status.code(), Some(NOT_FOUND));
    repair(trial.dir(), &["program.exe"])?;
    let [before, after] =
        ["program.exe", "out/program.exe"].map(|file| fs::read(trial.dir().join(file)));
    let (before, after) = (before?, after?);
    assert_eq!(before.len(), after.len());
    let start = before
        .windows(copy.len())
        .position(|name| name == copy.as_bytes());
    let name = &after[start.ok_or("no name of the library")?..];
    assert!(
        name.starts_with(b"gpustub_program_"),
        "{:?}",
        &name[..copy.len()]
    );
    assert_eq!(run_repaired(&trial)?.success()?.stdout, MISSING);
    Ok(())
}

/// The helper of delayed imports ends the program, if the DLL is missing.
#[test]
#[ignore = "needs mingw-w64, clang, lld and llvm 19, and wine: ./tests/run"]
fn delayed_imports_of_programs() -> Result<()> {
    let trial = Trial::new()?;
    let library = cudart(&trial, "cudart64_12.dll", 12)?;
    let definitions =
        "LIBRARY cudart64_12.dll\nEXPORTS\ncudaGetDeviceCount\ncudaRuntimeGetVersion\n";
    fs::write(trial.dir().join("cudart.def"), definitions)?;
    let mut dlltool = Command::new("llvm-dlltool-19");
    dlltool.args(["-m", "i386:x86-64", "-d", "cudart.def", "-l", "cudart.lib"]);
    succeed(dlltool.current_dir(trial.dir()))?;
    let object = ["-c", "-DPROGRAM"];
    succeed(&mut trial.compile("program.o", &[&source("calls.c")], &object))?;
    // GNU ld does not write the table.
    let mut clang = Command::new("clang-19");
    clang.args(["--target=x86_64-w64-mingw32", "-fuse-ld=lld", "-o"]);
    clang.args(["program.exe", "program.o", "cudart.lib"]);
    clang.arg("-Wl,-delayload,cudart64_12.dll");
    succeed(clang.current_dir(trial.dir()))?;
    assert_eq!(trial.run(&[])?.stdout, MAJOR_12);
    fs::remove_file(library)?;
    let before = run(&mut trial.command()?)?;
    assert!(!before.stdout.contains("status"), "{}", before.stdout);
    let printed = repair(trial.dir(), &["program.exe"])?;
    assert!(
        printed.contains("program.exe: without cudart64_12.dll"),
        "{printed}"
    );
    assert_eq!(run_repaired(&trial)?.success()?.stdout, MISSING);
    Ok(())
}

/// Two modules in two directories of a package, loaded by their paths, also from another current directory.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn modules_find_the_stub_library_beside_them() -> Result<()> {
    let trial = Trial::new()?;
    let library = cudart(&trial, "cudart64_12.dll", 12)?;
    succeed(&mut trial.compile("open.exe", &[&source("open.c")], &[]))?;
    let modules = ["package/a/_core.pyd", "package/b/_more.pyd"];
    for module in modules {
        let directory = trial.dir().join(module);
        fs::create_dir_all(directory.parent().ok_or("no directory")?)?;
        trial.library(module, &source("calls.c"), &["cudart64_12.dll"])?;
    }
    fs::remove_file(library)?;
    let open = |directory: &Path| -> Result<Ran> {
        let mut command = wine(&trial.dir().join("open.exe"))?;
        command.arg("call");
        command.args(modules.map(|module| windows_path(&directory.join(module))));
        run(&mut command)
    };
    assert_eq!(open(trial.dir())?.stdout, "error 126\n");
    let printed = repair(trial.dir(), &["package"])?;
    assert_eq!(
        printed.matches("Adding gpustub_package_").count(),
        2,
        "{printed}"
    );
    let after = format!("loaded\n{MISSING}");
    assert_eq!(
        open(&trial.dir().join("out"))?.success()?.stdout,
        after.repeat(2)
    );
    Ok(())
}

/// Writes the files of a directory to a wheel with their RECORD, or those of a wheel to a directory.
const PACK: &str = r#"
import base64, collections, hashlib, pathlib, sys, zipfile
root, wheel = pathlib.Path(sys.argv[2]), sys.argv[3]
if sys.argv[1] == "unpack":
    archive = zipfile.ZipFile(wheel)
    twice = [name for name, count in collections.Counter(archive.namelist()).items() if count > 1]
    assert not twice, twice
    archive.extractall(root)
    sys.exit()
with zipfile.ZipFile(wheel, "w") as archive:
    lines, record = "", "acme-1.0.dist-info/RECORD"
    for path in sorted(path for path in root.rglob("*") if path.is_file() and path.name != "RECORD"):
        name, data = path.relative_to(root).as_posix(), path.read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        lines += f"{name},sha256={digest},{len(data)}\n"
        archive.writestr(name, data)
    archive.writestr(record, lines + record + ",,\n")
"#;

/// The wheel of [`PACK`].
const WHEEL: &str = "acme-1.0-cp312-cp312-win_amd64.whl";

/// Further repairs of a wheel: of an image that needs a copy, with `--remove-copies`, and of one that was added.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn wheels_with_a_stub_library_get_another() -> Result<()> {
    const LIBRARY: &str = "cudart64_12.dll";
    const COPY: &str = "cudart64_12-c8a0a2ff1ac1f9ef9ec7ae4fb74ba7c5.dll";
    let trial = Trial::new()?;
    let file = |name: &str| trial.dir().join(name);
    let pack = |verb: &str, root: &str, wheel: &str| -> Result<()> {
        let mut python = Command::new("python3");
        python.args(["-c", PACK, verb]);
        succeed(python.arg(file(root)).arg(file(wheel)))?;
        Ok(())
    };
    let one = |image: &str, function: &str, library: &str| {
        let function = format!("-DFUNCTION={function}");
        trial.library(image, &source("one.c"), &[&function, library])
    };
    for directory in ["acme", "acme.libs", "acme-1.0.dist-info"] {
        fs::create_dir_all(file("content").join(directory))?;
    }
    let metadata = "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n";
    fs::write(file("content/acme-1.0.dist-info/METADATA"), metadata)?;
    for library in [LIBRARY, COPY] {
        cudart(&trial, library, 12)?;
    }
    fs::copy(file(COPY), file("content/acme.libs").join(COPY))?;
    trial.library("content/acme/_core.pyd", &source("calls.c"), &[LIBRARY])?;
    one("content/acme/_copy.pyd", "cudaGetDeviceCount", COPY)?;
    pack("pack", "content", WHEEL)?;
    repair(trial.dir(), &[WHEEL])?;
    fs::rename(file("out").join(WHEEL), file(WHEEL))?;
    let printed = repair(trial.dir(), &[WHEEL, "--remove-copies"])?;
    assert!(printed.contains(", 1 copy removed"), "{printed}");
    pack("unpack", "site", &format!("out/{WHEEL}"))?;
    one("site/acme/_more.pyd", "cudaRuntimeGetVersion", LIBRARY)?;
    pack("pack", "site", WHEEL)?;
    repair(trial.dir(), &[WHEEL])?;
    pack("unpack", "last", &format!("out/{WHEEL}"))?;
    for library in [LIBRARY, COPY] {
        fs::remove_file(file(library))?;
    }
    succeed(&mut trial.compile("open.exe", &[&source("open.c")], &[]))?;
    let mut open = wine(&file("open.exe"))?;
    open.arg("call");
    for image in ["_core", "_copy", "_more"] {
        open.arg(windows_path(&file(&format!("last/acme/{image}.pyd"))));
    }
    let printed = run(&mut open)?.success()?.stdout;
    assert_eq!(
        printed,
        format!("loaded\n{MISSING}loaded\nstatus 35\nloaded\nstatus 35\n")
    );
    Ok(())
}

/// Functions of bitsandbytes that call the CUDA runtime, without one and with NVIDIA's, which has no GPU here.
#[test]
#[ignore = "needs large wheels: ./tests/run --all"]
fn heavy_a_published_wheel() -> Result<()> {
    let trial = Trial::new()?;
    succeed(&mut trial.compile("open.exe", &[&source("open.c")], &[]))?;
    let wheel = only_entry(&component("wheels-check/windows-bitsandbytes")?)?;
    let mut command = gpustub(&["repair", "--out-dir"])?;
    // The libraries for XPU stay: they need SYCL, for which there are no stubs.
    let ran = run(command.arg(trial.dir()).arg(&wheel))?;
    assert_eq!(ran.status.code(), Some(1), "{}", ran.stderr);
    assert_eq!(
        ran.stderr.matches("[unsupported-image]").count(),
        2,
        "{}",
        ran.stderr
    );
    let repaired = trial.dir().join(wheel.file_name().ok_or("no file name")?);
    for (wheel, site) in [(&wheel, "before"), (&repaired, "after")] {
        let mut unzip = Command::new("python3");
        unzip
            .args(["-m", "zipfile", "-e"])
            .arg(wheel)
            .arg(trial.dir().join(site));
        succeed(&mut unzip)?;
    }
    let call = |site: &str, image: &str, function: &str, runtime: Option<&str>| {
        let mut command = wine(&trial.dir().join("open.exe"))?;
        let image = format!("{site}/bitsandbytes/libbitsandbytes_{image}.dll");
        command
            .arg(function)
            .arg(windows_path(&trial.dir().join(image)));
        if let Some(runtime) = runtime {
            let library = component(&format!("wheels/{runtime}"))?;
            command.env("GPUSTUB_CUDART_PATH", windows_path(&library));
        }
        run(&mut command)
    };
    let unavailable = |library: &str| {
        format!("Error the {library} is not available; GPUSTUB_LOG=1 shows why at line")
    };
    for (image, library) in [
        ("cuda118", "CUDA runtime (libcudart)"),
        ("cuda124", "CUDA runtime (libcudart)"),
        ("rocm72", "HIP runtime (libamdhip64)"),
    ] {
        assert_eq!(
            call("before", image, "get_context", None)?.stdout,
            "error 126\n",
            "{image}"
        );
        // cuBLAS only, of which the class tests no result.
        let context = call("after", image, "get_context", None)?.success()?;
        assert_eq!(context.stdout, "loaded\n", "{image}");
        let managed = call("after", image, "cget_managed_ptr", None)?;
        assert!(
            managed.stderr.starts_with(&unavailable(library)),
            "{image}: {}",
            managed.stderr
        );
    }
    let insufficient = "CUDA driver version is insufficient for CUDA runtime version";
    for (runtime, text) in [
        (
            "cudart-11.8-windows/nvidia/cuda_runtime/bin/cudart64_110.dll",
            insufficient,
        ),
        (
            "cudart-windows/nvidia/cuda_runtime/bin/cudart64_12.dll",
            insufficient,
        ),
        // Its texts are in NVIDIA's driver.
        (
            "cudart-windows/nvidia/cu13/bin/x86_64/cudart64_13.dll",
            "(null)",
        ),
    ] {
        let managed = call("after", "cuda124", "cget_managed_ptr", Some(runtime))?;
        let error = format!("Error {text} at line");
        assert!(
            managed.stderr.starts_with(&error),
            "{runtime}: {}",
            managed.stderr
        );
    }
    Ok(())
}
