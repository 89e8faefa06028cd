//! Number of lanes: that of the image, whatever the device reports. Images are compiled for GPUs, and a program of the host
//! with the same number of lanes runs in their place.

use std::path::Path;
use std::process::Command;

use gpurpc::Layout;
use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::{Result, workspace};

use crate::{Bench, CUDA, Driver, HIP, field, function};

/// Compiles the README's program for a GPU that runs wavefronts of 32 and of 64 lanes.
pub fn compile_for_gfx1100(words: &[&str], image: &Path) -> Result<()> {
    let mut clang = Command::new("clang-19");
    clang.args([
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx1100",
        "-nogpulib",
        "-O2",
    ]);
    clang
        .args(["-ffreestanding", "-fconvergent-functions"])
        .args(words);
    clang.arg("-I").arg(workspace().join("capi/include"));
    clang.arg(workspace().join("loader/programs/hello.c"));
    succeed(clang.arg("-o").arg(image)).map(drop)
}

/// Runs programs of the host in place of an image: calls on two ports at once, and on as many as threads need.
fn run_with_lanes(bench: &Bench, driver: &Driver, image: &Path, lanes: u32) -> Result<()> {
    let program = bench.image(&format!("CLIENT=1 GPURPC_DETAIL_LANES={lanes}"))?;
    let layout = Layout::new(64, lanes)?;
    let variable = format!("FAKE_{}_IMAGE", driver.runtime.to_uppercase());
    for device_lanes in ["32", "64"] {
        let loader = || -> Result<Command> {
            let mut command = bench.loader(driver)?;
            command
                .env(&variable, &program)
                .env("FAKE_LANES", device_lanes);
            command.args(["--timeout", "60", "--ports", "64"]);
            Ok(command)
        };
        let ran = succeed(loader()?.arg(image).arg("places"))?;
        assert_eq!(ran.stdout, format!("{} bytes\n", lanes * 64));
        let calls = bench.calls()?;
        let allocations = calls.iter().filter(|call| {
            function(call).contains("HostAlloc") || function(call) == "hipHostMalloc"
        });
        let sizes: Vec<_> = allocations.filter_map(|call| field(call, "size")).collect();
        let expected = layout.size().to_string();
        assert_eq!(sizes.last(), Some(&&expected[..]), "{sizes:?}");
        succeed(
            loader()?
                .args(["--blocks", "4", "--threads", "16"])
                .arg(image)
                .arg("work"),
        )?;
    }
    Ok(())
}

#[test]
fn images_of_nvidia_have_32_lanes() -> Result<()> {
    let bench = Bench::new()?;
    let image = bench.path("start.ptx");
    std::fs::write(&image, ".version 7.0\n.visible .entry _start()\n")?;
    run_with_lanes(&bench, &CUDA, &image, 32)
}

#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn wavefronts_of_the_image_place_its_packets() -> Result<()> {
    let bench = Bench::new()?;
    for (word, lanes) in [("-mno-wavefrontsize64", 32), ("-mwavefrontsize64", 64)] {
        let image = bench.path(word);
        compile_for_gfx1100(&[word], &image)?;
        run_with_lanes(&bench, &HIP, &image, lanes)?;
    }
    Ok(())
}

/// A program whose files were compiled with different options.
#[test]
#[ignore = "needs clang 19: ./tests/run"]
fn mixed_wavefronts_are_refused() -> Result<()> {
    let bench = Bench::new()?;
    let source = bench.path("end.c");
    std::fs::write(
        &source,
        "__attribute__((amdgpu_kernel, visibility(\"protected\"))) void _end(int result) {}\n",
    )?;
    let objects = ["start.o", "end.o"].map(|name| bench.path(name));
    compile_for_gfx1100(&["-c"], &objects[0])?;
    let clang = || {
        let mut clang = Command::new("clang-19");
        clang.args([
            "--target=amdgcn-amd-amdhsa",
            "-mcpu=gfx1100",
            "-mwavefrontsize64",
        ]);
        clang
    };
    succeed(
        clang()
            .args(["-nogpulib", "-c"])
            .arg(&source)
            .arg("-o")
            .arg(&objects[1]),
    )?;
    let image = bench.path("mixed");
    succeed(
        clang()
            .arg("-nogpulib")
            .args(&objects)
            .arg("-o")
            .arg(&image),
    )?;
    let mut command = bench.loader(&HIP)?;
    command.env("FAKE_HIP_IMAGE", bench.image("CLIENT=1")?);
    let ran = run(command.arg(&image))?;
    assert_eq!(ran.status.code(), Some(126), "{}", ran.stderr);
    let expected = "error: kernels of the image have wavefronts of different sizes: `_start` 32 lanes, `_end` 64 lanes\nhelp: ";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    // A program that never calls the host runs.
    let mut command = bench.loader(&HIP)?;
    command.env("FAKE_HIP_IMAGE", bench.image("CLIENT=0")?);
    succeed(command.arg(&image)).map(drop)
}
