//! LLVM's own start-up tests for GPUs (`libc/test/integration/startup/gpu`) with LLVM's client, run by the loader on the
//! fake GPU. The test files are those of LLVM's source package; headers and start-up code for a host are in
//! `tests/programs/llvm-startup`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::components::component;
use gpurpc_tests::{Result, workspace};

use crate::lanes::compile_for_gfx1100;
use crate::{Bench, CUDA, HIP};

/// A test, with the options and arguments of LLVM's `CMakeLists.txt`.
struct StartupTest {
    name: &'static str,
    options: &'static str,
    arguments: &'static str,
    variables: &'static [(&'static str, &'static str)],
    /// Lanes of a warp.
    lanes: &'static [&'static str],
}

const TESTS: [StartupTest; 6] = [
    StartupTest {
        name: "args_test",
        options: "",
        arguments: "1 2 3",
        variables: &[("FRANCE", "Paris"), ("GERMANY", "Berlin")],
        lanes: &["1", "32", "64"],
    },
    StartupTest {
        name: "rpc_test",
        options: "--blocks-x 2 --blocks-y 2 --blocks-z 2 --threads-x 4 --threads-y 4 --threads-z 4",
        arguments: "",
        variables: &[],
        // Its lanes diverge, which those of the fake GPU cannot.
        lanes: &["1"],
    },
    StartupTest {
        name: "init_fini_array_test",
        options: "",
        arguments: "",
        variables: &[],
        lanes: &["1", "32", "64"],
    },
    StartupTest {
        name: "rpc_interface_test",
        options: "",
        arguments: "",
        variables: &[],
        lanes: &["1", "32", "64"],
    },
    StartupTest {
        name: "rpc_stream_test",
        options: "--threads 32 --blocks 8",
        arguments: "",
        variables: &[],
        lanes: &["1", "32", "64"],
    },
    // startup_rpc_lane_test_w32 and _w64: LANES threads.
    StartupTest {
        name: "rpc_lane_test",
        options: "--threads LANES",
        arguments: "",
        variables: &[],
        lanes: &["32", "64"],
    },
];

/// Builds the tests as programs for the fake GPU.
struct Builder<'a> {
    bench: &'a Bench,
    programs: PathBuf,
    libc: PathBuf,
}

impl<'a> Builder<'a> {
    fn new(bench: &'a Bench) -> Result<Self> {
        let builder = Self {
            bench,
            programs: workspace().join("tests/programs"),
            libc: component("llvm-libc-22/libc")?,
        };
        for source in ["llvm-startup/start.cpp", "llvm-rpc/device/run.cpp"] {
            let source = builder.programs.join(source);
            let object = builder.object(&source)?;
            succeed(
                builder
                    .compiler("c++")
                    .arg("-c")
                    .arg(&source)
                    .arg("-o")
                    .arg(object),
            )?;
        }
        Ok(builder)
    }

    fn object(&self, source: &Path) -> Result<PathBuf> {
        let name = source.file_name().ok_or("a source without a name")?;
        Ok(self.bench.path("").join(name).with_extension("o"))
    }

    fn compiler(&self, name: &str) -> Command {
        let mut compiler = Command::new(name);
        // Without warnings in LLVM's files.
        compiler.args(["-std=c++17", "-w", "-fPIC", "-pthread"]);
        compiler.args(["-DLIBC_NAMESPACE=startup", "-DLLVM_MAJOR=22"]);
        for directory in ["llvm-startup", "llvm-rpc/device"] {
            compiler.arg("-I").arg(self.programs.join(directory));
        }
        compiler.arg("-I").arg(&self.libc);
        if name == "c++" {
            compiler.args(["-O1", "-include", "startup.h"]);
        }
        compiler
    }

    /// Builds a test.
    fn build(&self, name: &str) -> Result<PathBuf> {
        let source = self
            .libc
            .join("test/integration/startup/gpu")
            .join(name)
            .with_extension("cpp");
        let object = self.object(&source)?;
        if name == "init_fini_array_test" {
            self.lower_constructors(&source, &object)?;
        } else {
            succeed(
                self.compiler("c++")
                    .arg("-c")
                    .arg(&source)
                    .arg("-o")
                    .arg(&object),
            )?;
        }
        let image = self.bench.path(&format!("{name}.so"));
        let mut link = Command::new("c++");
        link.args(["-shared", "-nostartfiles", "-pthread", "-o"])
            .arg(&image)
            .arg(object);
        for part in ["start.o", "run.o"] {
            link.arg(self.bench.path(part));
        }
        succeed(&mut link)?;
        Ok(image)
    }

    /// Compiles a test whose constructors and destructors are those of an image for NVIDIA's GPUs: LLVM's pass for that
    /// target writes their variables and kernels, and the machine code is the host's.
    fn lower_constructors(&self, source: &Path, object: &Path) -> Result<()> {
        let code = object.with_extension("ll");
        let mut clang = self.compiler("clang++-19");
        succeed(
            clang
                .args(["-S", "-emit-llvm"])
                .arg(source)
                .arg("-o")
                .arg(&code),
        )?;
        let mut opt = Command::new("opt-19");
        opt.args([
            "-mtriple=nvptx64-nvidia-cuda",
            "-nvptx-lower-ctor-dtor",
            "-S",
        ]);
        let lowered = succeed(opt.arg(&code).arg("-o").arg("-"))?.stdout;
        assert_eq!(
            lowered.matches("section \".init_array.").count(),
            4,
            "{lowered}"
        );
        // In sections of these names `dlopen` would run them.
        let lowered = lowered
            .replace("section \".init_array.", "section \"device_init_array.")
            .replace("section \".fini_array.", "section \"device_fini_array.")
            .replace("target triple = \"nvptx64-nvidia-cuda\"\n", "");
        fs::write(&code, lowered)?;
        succeed(
            self.compiler("clang++-19")
                .arg("-c")
                .arg(&code)
                .arg("-o")
                .arg(object),
        )
        .map(drop)
    }
}

#[test]
#[ignore = "needs the sources of LLVM 22, clang 19 and llvm 19: ./tests/run --all"]
fn heavy_llvms_startup_tests_pass() -> Result<()> {
    let bench = Bench::new()?;
    let builder = Builder::new(&bench)?;
    for test in &TESTS {
        let image = builder.build(test.name)?;
        for lanes in test.lanes {
            let mut command = bench.loader(&CUDA)?;
            command.envs(test.variables.iter().copied());
            command.env("FAKE_LANES", lanes).env("WARP_LANES", lanes);
            command.args(["--runtime", "cuda", "--timeout", "120"]);
            let options = test.options.replace("LANES", lanes);
            command.args(options.split_whitespace()).arg(&image);
            command.args(test.arguments.split_whitespace());
            let ran = run(&mut command)?;
            if !ran.status.success() || !ran.stderr.is_empty() {
                return Err(ran.error(&format!("{} with {lanes} lanes", test.name)));
            }
        }
        if test.name == "init_fini_array_test" {
            let calls = bench.calls()?;
            let launches = calls
                .iter()
                .filter_map(|call| call.strip_prefix("cuLaunchKernel "));
            let kernels: Vec<_> = launches.filter_map(|call| call.split(' ').next()).collect();
            let expected = [
                "nvptx$device$init",
                "_begin",
                "_start",
                "_end",
                "nvptx$device$fini",
            ];
            assert_eq!(kernels, expected);
        }
    }

    // startup_rpc_lane_test_w64: the image has wavefronts of 64 lanes on a device of 32.
    let image = bench.path("wave64");
    compile_for_gfx1100(&["-mwavefrontsize64"], &image)?;
    let mut command = bench.loader(&HIP)?;
    command.env("FAKE_HIP_IMAGE", bench.path("rpc_lane_test.so"));
    command.env("FAKE_LANES", "32").env("WARP_LANES", "64");
    command.args(["--timeout", "120", "--threads", "64"]);
    // The kernels of constructors, of which the fake GPU has CUDA's, are none of this image.
    succeed(command.arg(image)).map(drop)
}
