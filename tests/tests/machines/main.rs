//! One binary on many machines: the same file of `hello-gpu`, with different real libraries.

mod nvrtc;
mod screens;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{Library, Returns};
use gpustub_tests::cargo::hello_gpu;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, repository};

const LIBRARIES: [&str; 5] = ["cuda", "cudart", "hip", "nvrtc", "opencl"];

/// Reports of a run under `GPUSTUB_LOG=json`, one per library.
fn reports(ran: &Ran) -> Result<Vec<serde_json::Value>> {
    ran.stderr
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| Ok(serde_json::from_str(line).map_err(|e| format!("{e}: {line}"))?))
        .collect()
}

/// The only report about `library`.
fn report(ran: &Ran, library: &str) -> Result<serde_json::Value> {
    let found: Vec<_> = reports(ran)?
        .into_iter()
        .filter(|report| report["library"] == library)
        .collect();
    match &found[..] {
        [report] => Ok(report.clone()),
        _ => Err(ran.error(&format!("{} reports about {library}, not 1", found.len()))),
    }
}

const JSON: (&str, &str) = ("GPUSTUB_LOG", "json");

// ---- no GPU library at all ------------------------------------------------------------------------

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn machine_without_any_gpu_library() -> Result<()> {
    let machine = Isolated::new()?;
    machine.install(&hello_gpu()?, "/hello-gpu")?;

    let quiet = machine.run("/hello-gpu", &[])?.success()?;
    assert_eq!(quiet.stderr, "", "unexpected output");
    for library in LIBRARIES {
        let row = quiet
            .stdout
            .lines()
            .find(|line| line.split_whitespace().next() == Some(library));
        let row = row.ok_or_else(|| quiet.error(&format!("no row for {library}")))?;
        let load_names = &Library::builtin(library)
            .ok_or("a shipped library")?
            .load_names["linux"];
        for load_name in load_names {
            assert!(
                row.contains(&load_name.name),
                "{} is not named: {row}",
                load_name.name
            );
        }
    }

    let reported = machine
        .run("/hello-gpu", &[("GPUSTUB_LOG", "1")])?
        .success()?;
    for library in LIBRARIES {
        let head = format!("gpustub: {library}: unavailable: ");
        assert_eq!(
            reported.stderr.matches(&head).count(),
            1,
            "{}",
            reported.stderr
        );
    }
    let json = machine.run("/hello-gpu", &[JSON])?.success()?;
    let named: Vec<_> = reports(&json)?
        .iter()
        .map(|report| report["library"].clone())
        .collect();
    assert_eq!(
        named.len(),
        LIBRARIES.len(),
        "one report per library, not one per call"
    );
    Ok(())
}

/// A program of one C file with stubs for all shipped libraries.
fn program_with_all_stubs(dir: &Path, source: &Path) -> Result<PathBuf> {
    let mut manifest = String::from("schema = 1\n");
    for library in LIBRARIES {
        manifest += &format!("[stub.{library}]\nheader-version = \"none\"\n");
    }
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    let stubs = Stubs::write(dir, &plan, "cc", &[])?;
    let program = dir.join("program");
    let mut command = Command::new("cc");
    command
        .arg("-I")
        .arg(&stubs.sources)
        .arg(source)
        .arg(stubs.archive()?);
    succeed(command.arg("-o").arg(&program))?;
    Ok(program)
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn callers_get_the_api_error_codes() -> Result<()> {
    let dir = scratch()?;
    let program =
        program_with_all_stubs(dir.path(), &repository().join("tests/programs/missing.c"))?;
    let machine = Isolated::new()?;
    machine.install(&program, "/program")?;
    let ran = machine.run("/program", &[])?.success()?;
    let expected = "\
cudaGetDeviceCount 35 0
cudaMalloc 35 null
cudaDriverGetVersion 0 0
cudaGetLastError 35
cudaCreateChannelDesc zero
cuInit 100
cuDeviceGetCount 100 0
cuGetErrorString text
nvrtcCreateProgram 11 null
clGetPlatformIDs -1001 0
clCreateContext null -32
hipGetDeviceCount 100 0
cuda available 0 reason given
cudart available 0 reason given
hip available 0 reason given
nvrtc available 0 reason given
opencl available 0 reason given
";
    assert_eq!(ran.stdout, expected);
    assert_eq!(ran.stderr, "");
    Ok(())
}

/// The runtime leaves out-parameters as they were if there is no driver, also behind a stub, which sets them to 0 if
/// there is no runtime.
#[test]
#[ignore = "needs cudart and user namespaces: ./tests/run"]
fn out_parameters_are_zero_without_a_runtime_and_unwritten_without_a_driver() -> Result<()> {
    let source = repository().join("tests/programs/unwritten.c");
    let expected = |value| {
        format!(
            "cudaGetDeviceCount 35 {value}\ncudaMalloc 35 {value}\ncudaDeviceGetAttribute 35 {value}\n\
             cudaDriverGetVersion 0 0\n"
        )
    };
    let dir = scratch()?;
    let with_stubs = program_with_all_stubs(dir.path(), &source)?;
    let machine = Isolated::new()?;
    machine.install(&with_stubs, "/program")?;
    let ran = machine.run("/program", &[])?.success()?;
    assert_eq!(ran.stdout, expected(0));
    for (version, file) in [("11.8", "libcudart.so.11.0"), ("13.5", "libcudart.so.13")] {
        let runtime = wheel_libraries(&format!("cudart-{version}"))?.join(file);
        let direct = dir.path().join("direct");
        let mut cc = Command::new("cc");
        cc.arg(&source).arg(&runtime).arg("-o").arg(&direct);
        succeed(&mut cc)?;
        let machine = Isolated::new()?;
        machine.install(&with_stubs, "/program")?;
        machine.install(&direct, "/direct")?;
        machine.install(&runtime, &format!("/lib/{file}"))?;
        for program in ["/direct", "/program"] {
            let variables = [("LD_LIBRARY_PATH", "/lib")];
            let ran = machine.run(program, &variables)?.success()?;
            assert_eq!(ran.stdout, expected(7), "{program}, {version}");
        }
    }
    Ok(())
}

/// Every function whose manifest says that it returns a string returns one.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn string_functions_give_text() -> Result<()> {
    let (mut declarations, mut calls, mut expected) = (String::new(), String::new(), String::new());
    for id in LIBRARIES {
        let library = Library::builtin(id).ok_or("a shipped library")?;
        for (name, fallback) in &library.fallbacks {
            if fallback.returns == Returns::String {
                declarations += &format!("const char *{name}(long, long);\n");
                calls += &format!(
                    "    text = {name}(1, 0);\n    printf(\"{name} %s\\n\", text ? text : \"NULL\");\n"
                );
                expected += &format!("{name} {}\n", library.status_string);
            }
        }
    }
    let dir = scratch()?;
    let source = dir.path().join("texts.c");
    let text = format!(
        "#include <stdio.h>\n{declarations}int main(void)\n{{\n    const char *text;\n{calls}    return 0;\n}}\n"
    );
    fs::write(&source, text)?;
    let machine = Isolated::new()?;
    machine.install(&program_with_all_stubs(dir.path(), &source)?, "/program")?;
    let ran = machine.run("/program", &[])?.success()?;
    assert!(
        expected.contains("hipApiName the HIP runtime"),
        "{expected}"
    );
    assert_eq!(ran.stdout, expected);
    Ok(())
}

// ---- CUDA's driver and runtime -----------------------------------------------------------------------

#[test]
#[ignore = "needs NVIDIA's driver libraries: ./tests/run"]
fn driver_is_named_with_its_version() -> Result<()> {
    for (name, version, text) in [("driver-535", 12020, "12.2"), ("driver-550", 12040, "12.4")] {
        let machine = Isolated::new()?;
        machine.install(&hello_gpu()?, "/hello-gpu")?;
        machine.install_all(
            &component(name)?,
            "/usr/lib/x86_64-linux-gnu/nvidia/current",
        )?;
        let ran = machine.run("/hello-gpu", &[JSON])?.success()?;
        let cuda = report(&ran, "cuda")?;
        assert_eq!(
            cuda["path"], "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.1",
            "{}",
            ran.stderr
        );
        assert_eq!(cuda["version"], version, "{}", ran.stderr);
        // Without a GPU the driver itself returns 100, CUDA_ERROR_NO_DEVICE.
        ran.expect_in_order(&["cuda ", text, "\ncuda:\n", "no device"])?;
    }
    Ok(())
}

/// cudart 13 returns 35 on a 12.2 driver, where 12.9 works: 100, no device.
#[test]
#[ignore = "needs cudart of two majors and a driver: ./tests/run"]
fn runtime_is_chosen_by_what_the_driver_supports() -> Result<()> {
    let machine = Isolated::new()?;
    machine.install(&hello_gpu()?, "/hello-gpu")?;
    machine.install_all(&wheel_libraries("cudart-12.9")?, "/opt/12")?;
    machine.install_all(&wheel_libraries("cudart-13.0")?, "/opt/13")?;
    let variables = [JSON, ("LD_LIBRARY_PATH", "/opt/13:/opt/12")];
    let alone = machine.run("/hello-gpu", &variables)?.success()?;
    assert_eq!(
        report(&alone, "cudart")?["path"],
        "/opt/13/libcudart.so.13",
        "{}",
        alone.stderr
    );

    machine.install_all(&component("driver-535")?, "/usr/lib/x86_64-linux-gnu")?;
    let ran = machine.run("/hello-gpu", &variables)?.success()?;
    let cudart = report(&ran, "cudart")?;
    assert_eq!(cudart["path"], "/opt/12/libcudart.so.12", "{}", ran.stderr);
    assert_eq!(cudart["version"], 12090, "{}", ran.stderr);
    ran.expect_in_order(&["\ncudart:\n", "no CUDA-capable device is detected"])?;
    Ok(())
}

/// The libcuda in a toolkit's `stubs` directory is for linkers only: all functions return 34.
#[test]
#[ignore = "needs NVIDIA's driver libraries: ./tests/run"]
fn driver_is_never_loaded_from_a_toolkit() -> Result<()> {
    let machine = Isolated::new()?;
    machine.install(&hello_gpu()?, "/hello-gpu")?;
    machine.install_all(&component("driver-535")?, "/usr/local/cuda/lib64/stubs")?;
    let variables = [
        JSON,
        ("LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs"),
        ("CUDA_HOME", "/usr/local/cuda"),
    ];
    let ran = machine.run("/hello-gpu", &variables)?.success()?;
    let cuda = report(&ran, "cuda")?;
    assert_eq!(cuda["available"], false, "{}", ran.stderr);
    assert!(
        cuda["candidates"]
            .to_string()
            .contains("/usr/local/cuda/lib64/stubs"),
        "{}",
        ran.stderr
    );
    Ok(())
}

// ---- OpenCL and HIP, as installed ---------------------------------------------------------------------

#[test]
#[ignore = "needs PoCL: ./tests/run"]
fn opencl_adds_on_pocl() -> Result<()> {
    let ran = succeed(Command::new(hello_gpu()?).env("GPUSTUB_LOG", "json"))?;
    assert_eq!(report(&ran, "opencl")?["available"], true, "{}", ran.stderr);
    ran.expect_in_order(&[
        "\nopencl:\n",
        "added 65535 numbers, all right, sum 6442156035",
    ])?;
    Ok(())
}

#[test]
#[ignore = "needs PoCL: ./tests/run"]
fn opencl_without_vendors_has_no_platform() -> Result<()> {
    let mut command = Command::new(hello_gpu()?);
    let ran = succeed(
        command
            .env("OCL_ICD_VENDORS", "/nonexistent/")
            .env("GPUSTUB_LOG", "json"),
    )?;
    assert_eq!(report(&ran, "opencl")?["available"], true, "{}", ran.stderr);
    ran.expect_in_order(&["\nopencl:\n", "no device"])?;
    Ok(())
}

#[test]
#[ignore = "needs AMD's HIP: ./tests/run"]
fn hip_is_found_and_has_no_device() -> Result<()> {
    let ran = succeed(Command::new(hello_gpu()?).env("GPUSTUB_LOG", "json"))?;
    let hip = report(&ran, "hip")?;
    assert_eq!(
        (&hip["major"], &hip["available"]),
        (&5.into(), &true.into()),
        "{}",
        ran.stderr
    );
    ran.expect_in_order(&["\nhip:\n", "no device"])?;
    Ok(())
}

// ---- relative paths ------------------------------------------------------------------------

/// A program loads nothing by relative paths, whether from its working directory or from variables.
#[test]
#[ignore = "needs cudart and user namespaces: ./tests/run"]
fn relative_and_empty_paths_are_never_searched() -> Result<()> {
    let machine = Isolated::new()?;
    machine.install(&hello_gpu()?, "/hello-gpu")?;
    for place in [
        "/libcudart.so.12",
        "/trap/libcudart.so.12",
        "/trap/lib/libcudart.so.12",
        "/trap/lib64/libcudart.so.12",
        "/nvidia/cuda_runtime/lib/libcudart.so.12",
    ] {
        machine.install(
            &wheel_libraries("cudart-12.9")?.join("libcudart.so.12"),
            place,
        )?;
    }
    let variables = [
        JSON,
        ("GPUSTUB_CUDART_PATH", "trap/libcudart.so.12"),
        ("CUDA_HOME", "trap"),
        ("CUDA_PATH", ""),
        ("CONDA_PREFIX", "trap"),
        ("VIRTUAL_ENV", "."),
    ];
    let ran = machine.run("/hello-gpu", &variables)?.success()?;
    let cudart = report(&ran, "cudart")?;
    assert_eq!(cudart["available"], false, "{}", ran.stderr);
    Ok(())
}

/// The other tests would prove nothing if the real machine's files were visible.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn isolated_machine_does_not_see_the_real_one() -> Result<()> {
    let machine = Isolated::new()?;
    machine.install(Path::new("/bin/ls"), "/bin/ls")?;
    let ran = machine.run("/bin/ls", &[])?.success()?;
    let mut names: Vec<_> = ran.stdout.split_whitespace().collect();
    names.retain(|name| !["bin", "lib", "lib64", "proc", "tmp", "usr"].contains(name));
    assert!(names.is_empty(), "{names:?}");
    Ok(())
}
