//! LLVM's own start-up tests, whose sources are those of its package, compiled for the host, whose threads are warps of one
//! lane. LLVM's headers of GPU intrinsics and of checks are replaced: `tests/programs/llvm-tests`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::components::component;
use gpurpc_tests::{Result, workspace};

use crate::{Bench, CUDA, Driver, HIP};

/// A test with the loader's options and the program's arguments of LLVM's `CMakeLists.txt`.
struct Test {
    name: &'static str,
    options: &'static str,
    threads: u32,
    arguments: &'static str,
    drivers: &'static [Driver],
}

const TESTS: [Test; 6] = [
    Test {
        name: "args_test",
        options: "",
        threads: 1,
        arguments: "1 2 3",
        drivers: &[CUDA, HIP],
    },
    Test {
        name: "rpc_test",
        options: "--blocks-x 2 --blocks-y 2 --blocks-z 2 --threads-x 4 --threads-y 4 --threads-z 4",
        threads: 64,
        arguments: "",
        drivers: &[CUDA, HIP],
    },
    Test {
        name: "init_fini_array_test",
        options: "",
        threads: 1,
        arguments: "",
        // Images for NVIDIA's GPUs have a variable for each constructor, which only LLVM's back end makes.
        drivers: &[HIP],
    },
    Test {
        name: "rpc_interface_test",
        options: "",
        threads: 1,
        arguments: "",
        drivers: &[CUDA, HIP],
    },
    Test {
        name: "rpc_stream_test",
        options: "--threads 32 --blocks 8",
        threads: 32,
        arguments: "",
        drivers: &[CUDA, HIP],
    },
    Test {
        name: "rpc_lane_test",
        // LLVM's is one warp of 32 or 64 lanes.
        options: "--threads 1",
        threads: 1,
        arguments: "",
        drivers: &[CUDA, HIP],
    },
];

/// Sections of constructors and destructors, and names that the host's loader does not know.
const SECTIONS: [(&str, &str); 4] = [
    (".init_array.00101", "gpu_init_101"),
    (".init_array", "gpu_init"),
    (".fini_array", "gpu_fini"),
    (".fini_array.00101", "gpu_fini_101"),
];

/// Compiles a test with its start-up code.
fn compile(bench: &Bench, libc: &Path, test: &Test) -> Result<PathBuf> {
    let programs = workspace().join("tests/programs/llvm-tests");
    let compiler = |words: &[&str]| {
        let mut compiler = Command::new("g++");
        // The headers are written for clang, and have attributes that gcc does not know.
        compiler.args([
            "-std=c++17",
            "-O1",
            "-fPIC",
            "-w",
            "-pthread",
            "-DLIBC_NAMESPACE=gpu_tests",
        ]);
        compiler
            .arg(format!("-DTHREADS={}", test.threads))
            .args(words);
        // Threads that wait sleep, as on a GPU: there are more of them than processors.
        compiler.args([
            "-include",
            "unistd.h",
            "-D__builtin_ia32_pause()=usleep(5000)",
        ]);
        compiler.arg("-I").arg(&programs).arg("-I").arg(libc);
        compiler
    };
    let source = libc
        .join("test/integration/startup/gpu")
        .join(format!("{}.cpp", test.name));
    let object = bench.path(&format!("{}.o", test.name));
    succeed(compiler(&["-c"]).arg("-o").arg(&object).arg(source))?;
    let mut objcopy = Command::new("objcopy");
    for (name, other) in SECTIONS {
        objcopy
            .arg("--rename-section")
            .arg(format!("{name}={other}"));
    }
    succeed(objcopy.arg(&object))?;
    let image = bench.path(&format!("{}.so", test.name));
    let mut link = compiler(&["-shared", "-nostartfiles", "-Wl,-Bsymbolic"]);
    link.arg("-o")
        .arg(&image)
        .arg(&object)
        .arg(programs.join("startup.cpp"));
    succeed(link.arg(libc.join("src/__support/OSUtil/gpu/exit.cpp")))?;
    Ok(image)
}

#[test]
#[ignore = "needs the sources of LLVM 22's libc: ./tests/run --all"]
fn heavy_start_up_tests_of_llvm_pass() -> Result<()> {
    let libc = component("llvm-libc-22/libc")?;
    let bench = Bench::new()?;
    for test in &TESTS {
        let image = compile(&bench, &libc, test)?;
        for driver in test.drivers {
            let mut command = bench.loader(driver)?;
            command.args(["--runtime", driver.runtime, "--timeout", "300"]);
            command.args(test.options.split_whitespace()).arg(&image);
            command.args(test.arguments.split_whitespace());
            // Those that LLVM's `args_test` looks for.
            let ran = run(command.env("FRANCE", "Paris").env("GERMANY", "Berlin"))?;
            println!("{} on {}: {}", test.name, driver.runtime, ran.status);
            ran.success()?;
        }
    }
    // All of LLVM's tests are in the table.
    let directory = fs::read_dir(libc.join("test/integration/startup/gpu"))?;
    let mut names = Vec::new();
    for entry in directory {
        names.extend(
            entry?
                .file_name()
                .to_str()
                .and_then(|name| name.strip_suffix(".cpp").map(str::to_owned)),
        );
    }
    names.sort();
    let mut known: Vec<_> = TESTS.iter().map(|test| test.name).collect();
    known.sort_unstable();
    assert_eq!(names, known);
    Ok(())
}

/// A check that fails ends the program with the code of LLVM's tests.
#[test]
#[ignore = "needs the sources of LLVM 22's libc: ./tests/run --all"]
fn heavy_start_up_test_of_llvm_fails_with_wrong_arguments() -> Result<()> {
    let bench = Bench::new()?;
    let image = compile(&bench, &component("llvm-libc-22/libc")?, &TESTS[0])?;
    let mut command = bench.loader(&HIP)?;
    command.args(["--runtime", "hip", "--timeout", "300"]);
    let ran = run(command.arg(&image).args(["1", "2", "4"]))?;
    assert_eq!(ran.status.code(), Some(127), "{}", ran.stderr);
    Ok(())
}
