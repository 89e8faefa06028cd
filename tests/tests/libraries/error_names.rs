//! Functions that describe status codes: names and texts without the library, and the real names.

use std::fs;
use std::process::Command;

use gpustub_core::library::{Fallback, Library, OutKind, Returns};
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use super::build;

/// No header has this code.
const UNKNOWN: i32 = 12345;

/// Name and number of each status code in the library's headers.
fn errors(id: &str) -> Result<Vec<(i32, &'static str)>> {
    let library = Library::builtin(id).ok_or("a shipped library")?;
    let lines = library.errors.lines().filter(|line| !line.starts_with('#'));
    let errors = lines.map(|line| {
        let (code, name) = line.split_once(' ').ok_or("a code and a name")?;
        Ok((code.parse()?, name))
    });
    errors.collect()
}

/// Lines of `calls.inc` of `error-names.c`.
fn calls(calls: &[(&str, i32, bool)]) -> String {
    let line = |(name, code, by_pointer): &(&str, i32, bool)| {
        format!("CALL({name}, {code}, {})\n", u8::from(*by_pointer))
    };
    calls.iter().map(line).collect()
}

/// Functions of a library that describe status codes; whether they return by pointer.
fn describing(
    library: &'static Library,
) -> impl Iterator<Item = (&'static str, &'static Fallback)> {
    (library.fallbacks.iter())
        .filter(|(_, fallback)| fallback.names_error())
        .map(|(name, fallback)| (&name[..], fallback))
}

/// Without any library, every code of the headers has its name, and its text number and name; the code that
/// says that the library is missing has a text that says so. Other codes are unknown.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_status_codes_of_missing_libraries_have_names() -> Result<()> {
    for id in Library::builtin_ids() {
        let library = Library::builtin(id).ok_or("a shipped library")?;
        let (mut calls, mut expected) = (Vec::new(), String::new());
        for (name, fallback) in describing(library) {
            let by_pointer = !fallback.outs.is_empty();
            let as_text = fallback.returns == Returns::ErrorString
                || fallback
                    .outs
                    .iter()
                    .any(|out| out.kind == OutKind::ErrorString);
            for (code, error) in errors(id)? {
                let description = match as_text {
                    true if code == library.status.library_missing => library.status_string.clone(),
                    true => format!("{code}: {error}"),
                    false => error.to_owned(),
                };
                calls.push((name, code, by_pointer));
                expected += &format!("{name} {code} 0 {description}\n");
            }
            let (status, description) = match fallback.returns {
                Returns::UnknownError(status) => (status, "NULL"),
                _ => (0, "unknown error code"),
            };
            calls.push((name, UNKNOWN, by_pointer));
            expected += &format!("{name} {UNKNOWN} {status} {description}\n");
        }
        if calls.is_empty() {
            continue;
        }
        let functions: String = (describing(library))
            .map(|(name, _)| format!("FUNCTION({name})\n"))
            .collect();
        let dir = scratch()?;
        fs::write(dir.path().join("calls.inc"), self::calls(&calls))?;
        fs::write(dir.path().join("functions.inc"), functions)?;
        let include = format!("-I{}", dir.path().display());
        let program = build(dir.path(), &[id], "none", "error-names.c", &[include])?;
        let machine = Isolated::new()?;
        machine.install(&program, "/program")?;
        let ran = machine.run("/program", &[])?.success()?;
        assert_eq!(ran.stdout, expected, "{id}");
    }
    Ok(())
}

/// The real libraries call the codes that they know by the same names.
#[test]
#[ignore = "needs the real libraries: ./tests/run"]
fn status_codes_have_the_names_of_the_real_libraries() -> Result<()> {
    // Functions that return names, and libraries that run without a GPU.
    let cases: &[(&str, &str, bool, &str, &[&str])] = &[
        (
            "cuda",
            "cuGetErrorName",
            true,
            "libcuda.so.1",
            &["driver-550"],
        ),
        (
            "cudart",
            "cudaGetErrorName",
            false,
            "libcudart.so.11.0",
            &["wheels/cudart-11.8"],
        ),
        (
            "cudart",
            "cudaGetErrorName",
            false,
            "libcudart.so.12",
            &["wheels/cudart-12.9"],
        ),
        (
            "cudart",
            "cudaGetErrorName",
            false,
            "libcudart.so.13",
            &["wheels/cudart-13.5"],
        ),
        (
            "cublas",
            "cublasGetStatusName",
            false,
            "libcublas.so.12",
            &["wheels/cublas"],
        ),
        (
            "cublaslt",
            "cublasLtGetStatusName",
            false,
            "libcublasLt.so.12",
            &["wheels/cublas"],
        ),
        (
            "cusparse",
            "cusparseGetErrorName",
            false,
            "libcusparse.so.12",
            &["wheels/cusparse-12.9", "wheels/nvjitlink-12.9"],
        ),
        (
            "cudnn",
            "cudnnGetErrorString",
            false,
            "libcudnn.so.9",
            &["wheels/cudnn"],
        ),
        (
            "cupti",
            "cuptiGetResultString",
            true,
            "libcupti.so.12",
            &["wheels/cupti-12.9"],
        ),
        (
            "nvrtc",
            "nvrtcGetErrorString",
            false,
            "libnvrtc.so.12",
            &["wheels/nvrtc-12.9"],
        ),
        (
            "nvrtc",
            "nvrtcGetErrorString",
            false,
            "libnvrtc.so.13",
            &["wheels/nvrtc-13.5"],
        ),
        ("hip", "hipGetErrorName", false, "libamdhip64.so.5", &[]),
        (
            "hiprtc",
            "hiprtcGetErrorString",
            false,
            "libamdhip64.so.5",
            &[],
        ),
    ];
    for (id, function, by_pointer, file, components) in cases {
        let codes = errors(id)?;
        let unknown = (UNKNOWN, "");
        let calls: Vec<_> = (std::iter::once(&unknown).chain(&codes))
            .map(|(code, _)| (*function, *code, *by_pointer))
            .collect();
        let dir = scratch()?;
        fs::write(dir.path().join("calls.inc"), self::calls(&calls))?;
        let program = dir.path().join("names");
        let mut command = Command::new("cc");
        command
            .arg(format!("-I{}", dir.path().display()))
            .arg(format!("-DLIBRARY=\"{file}\""))
            .arg(repository().join("tests/programs/error-names.c"));
        succeed(command.arg("-o").arg(&program))?;
        let mut directories = Vec::new();
        for name in *components {
            directories.push(match name.strip_prefix("wheels/") {
                Some(wheel) => wheel_libraries(wheel)?,
                None => component(name)?,
            });
        }
        let path = std::env::join_paths(directories)?;
        let ran = succeed(Command::new(&program).env("LD_LIBRARY_PATH", path))?;
        let said: Vec<&str> = (ran.stdout.lines())
            .map(|line| line.splitn(4, ' ').nth(3).unwrap_or_default())
            .collect();
        let mut known = 0;
        for (said_of_code, (code, name)) in said.iter().skip(1).zip(&codes) {
            known += usize::from(said_of_code == name);
            let is_unknown = *said_of_code == said[0];
            assert!(
                said_of_code == name || is_unknown,
                "{id} {code}: {said_of_code}, not {name}"
            );
        }
        println!("{id} {file}: {known} of {} codes", codes.len());
        assert!(known * 2 > codes.len(), "{id} {file}: {}", ran.stdout);
    }
    Ok(())
}

/// A library that lacks the functions is not said to be missing.
#[test]
fn status_codes_have_names_in_a_library_without_the_functions() -> Result<()> {
    let dir = scratch()?;
    let library = dir.path().join("libcudart.so.12");
    let source = dir.path().join("fake.c");
    fs::write(
        &source,
        "int cudaRuntimeGetVersion(int *v) { *v = 12090; return 0; }\n",
    )?;
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-Wl,-soname,libcudart.so.12"]);
    succeed(command.arg(&source).arg("-o").arg(&library))?;
    let functions = ["cudaGetErrorString", "cudaGetErrorName"];
    fs::write(
        dir.path().join("calls.inc"),
        calls(&functions.map(|name| (name, 35, false))),
    )?;
    let functions = functions.map(|name| format!("FUNCTION({name})\n")).concat();
    fs::write(dir.path().join("functions.inc"), functions)?;
    let include = format!("-I{}", dir.path().display());
    let program = build(dir.path(), &["cudart"], "none", "error-names.c", &[include])?;
    let ran = |path: &str| succeed(Command::new(&program).env("GPUSTUB_CUDART_PATH", path));
    let name = "cudaGetErrorName 35 0 cudaErrorInsufficientDriver\n";
    assert_eq!(
        ran(&library.to_string_lossy())?.stdout,
        format!("cudaGetErrorString 35 0 35: cudaErrorInsufficientDriver\n{name}")
    );
    let missing = "the CUDA runtime (libcudart) is not available; GPUSTUB_LOG=1 shows why";
    assert_eq!(
        ran("off")?.stdout,
        format!("cudaGetErrorString 35 0 {missing}\n{name}")
    );
    Ok(())
}
