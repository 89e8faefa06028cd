//! Wavefronts of 32 and 64 lanes: the image decides, not the device.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::{Result, workspace};

use crate::readme::hello;
use crate::{Bench, HIP, compile, field};

/// Compiles a source for a GPU that runs wavefronts of both sizes.
fn clang(source: &Path, flags: &[&str], output: &Path) -> Result<()> {
    let mut clang = Command::new("clang-19");
    clang.args([
        "--target=amdgcn-amd-amdhsa",
        "-mcpu=gfx1100",
        "-nogpulib",
        "-O2",
    ]);
    clang
        .args(["-ffreestanding", "-fconvergent-functions"])
        .args(flags);
    clang.arg("-I").arg(workspace().join("capi/include"));
    succeed(clang.arg("-o").arg(output).arg(source)).map(drop)
}

/// The README's program for the host, whose client has the packets of this many lanes.
pub fn host_program(bench: &Bench, lanes: u32, flags: &[&str]) -> Result<PathBuf> {
    let header = fs::read_to_string(workspace().join("capi/include/gpurpc_client.h"))?;
    let (one, many) = (
        "#define GPURPC_DETAIL_LANES 1\n",
        format!("#define GPURPC_DETAIL_LANES {lanes}\n"),
    );
    assert_eq!(header.matches(one).count(), 1);
    let include = bench.path(&format!("include-{lanes}"));
    fs::create_dir_all(&include)?;
    fs::write(include.join("gpurpc_client.h"), header.replace(one, &many))?;
    let program = bench.path(&format!("hello-{lanes}.so"));
    let include = include.display().to_string();
    compile(&hello(), &program, &[&["-I", &include], flags].concat())?;
    Ok(program)
}

/// Sizes of the wavefronts of all kernels, by LLVM's reader of the image's notes.
fn sizes_of_llvm(image: &Path) -> Result<Vec<u32>> {
    let notes = succeed(Command::new("llvm-readelf-19").arg("--notes").arg(image))?.stdout;
    let sizes = notes
        .lines()
        .filter_map(|line| line.trim().strip_prefix(".wavefront_size: "));
    sizes.map(|size| Ok(size.trim().parse()?)).collect()
}

#[test]
#[ignore = "needs clang and LLVM 19: ./tests/run"]
fn memory_has_the_lanes_of_the_image() -> Result<()> {
    let bench = Bench::new()?;
    for (flag, lanes) in [("-mno-wavefrontsize64", 32), ("-mwavefrontsize64", 64)] {
        let image = bench.path("hello");
        clang(&hello(), &[flag], &image)?;
        assert_eq!(sizes_of_llvm(&image)?, [lanes]);
        let mut command = bench.loader(&HIP)?;
        command.env("FAKE_IMAGE_OF_HIP", host_program(&bench, lanes, &[])?);
        // Ports above the first one have their packets behind those of all lanes of the ports before.
        command.args(["--threads", "8", "--timeout", "300"]);
        let ran = succeed(command.arg(&image))?;
        assert_eq!(ran.stdout, "hello from lane 00\n".repeat(8));
        let calls = bench.calls()?;
        let sizes: Vec<_> = calls
            .iter()
            .filter(|call| call.starts_with("hipHostMalloc "))
            .filter_map(|call| field(call, "size"))
            .collect();
        let size = (64 * (4 + 4 + 16 + lanes * 64)).to_string();
        assert!(sizes.contains(&&*size), "{lanes} lanes: {sizes:?}");
    }
    Ok(())
}

#[test]
#[ignore = "needs clang and lld 19: ./tests/run"]
fn wavefronts_of_both_sizes_are_refused() -> Result<()> {
    let bench = Bench::new()?;
    let source = bench.path("other.c");
    fs::write(
        &source,
        "__attribute__((amdgpu_kernel, visibility(\"protected\"))) void other(void) {}\n",
    )?;
    let [wide, narrow] = ["wide.o", "narrow.o"].map(|name| bench.path(name));
    clang(&hello(), &["-c", "-mwavefrontsize64"], &wide)?;
    clang(&source, &["-c"], &narrow)?;
    let image = bench.path("mixed");
    let mut lld = Command::new("ld.lld-19");
    succeed(
        lld.arg("-shared")
            .arg("-o")
            .arg(&image)
            .args([&wide, &narrow]),
    )?;
    assert_eq!(sizes_of_llvm(&wide)?, [64]);
    assert_eq!(sizes_of_llvm(&narrow)?, [32]);

    let mut command = bench.loader(&HIP)?;
    command.env("FAKE_IMAGE_OF_HIP", host_program(&bench, 64, &[])?);
    let ran = run(command.arg(&image))?;
    assert_eq!(ran.status.code(), Some(126), "{}", ran.stderr);
    assert_eq!(
        ran.stderr,
        "error: `other` runs in wavefronts of 32 lanes, and `_start` of 64, which cannot share the memory of calls\n\
         help: compile all sources with -mwavefrontsize64, or none\n"
    );
    let calls = bench.calls()?;
    assert!(
        !calls.iter().any(|call| call.contains("Launch")),
        "{calls:?}"
    );
    Ok(())
}
