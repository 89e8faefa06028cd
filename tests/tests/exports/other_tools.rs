//! Meson, pkg-config, nvcc and Bazel.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::elf::needed;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use super::{FORMS, drops_unused_stubs, export, forced_header, generate, works};

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_meson_builds_the_subproject() -> Result<()> {
    for form in FORMS {
        let dir = scratch()?;
        let stubs = generate(dir.path(), form)?;
        let project = dir.path().join("project");
        fs::create_dir_all(project.join("subprojects"))?;
        let exports = repository().join("tests/exports");
        fs::copy(
            exports.join("meson/meson.build"),
            project.join("meson.build"),
        )?;
        fs::copy(exports.join("program.c"), project.join("program.c"))?;
        fs::rename(stubs, project.join("subprojects/gpustub"))?;
        let mut setup = Command::new("meson");
        setup
            .current_dir(&project)
            .args(["setup", "build", "--unity=on"])
            .arg(format!("-Dc_args={}", forced_header(dir.path())?))
            .env_remove("PKG_CONFIG_PATH");
        let reported = succeed(&mut setup)?;
        assert!(!reported.stdout.contains("WARNING"), "{}", reported.stdout);
        reported.expect_in_order(&["gpustub-cuda found: YES 0.1.0 (overridden)"])?;
        succeed(Command::new("ninja").arg("-C").arg(project.join("build")))?;
        works(&project.join("build/program"), "0").map_err(|e| format!("{form:?}: {e:?}"))?;
        drops_unused_stubs(&project.join("build/build.ninja"), form)?;
    }
    Ok(())
}

/// Flags for the three libraries, from pkg-config files in these directories.
fn flags(directories: &[PathBuf]) -> Result<String> {
    let packages = ["gpustub-cuda", "gpustub-cudart", "gpustub-nvrtc"];
    let mut asked = Command::new("pkg-config");
    asked.args(["--cflags", "--libs"]).args(packages);
    asked.env("PKG_CONFIG_PATH", std::env::join_paths(directories)?);
    Ok(succeed(&mut asked)?.stdout)
}

#[test]
#[ignore = "needs pkg-config and NVRTC: ./tests/run"]
fn pkg_config_names_what_to_link() -> Result<()> {
    for form in &FORMS[..2] {
        let dir = scratch()?;
        let stubs = generate(dir.path(), form)?;
        let flags = flags(&[stubs.join("pkgconfig")])?;
        let program = dir.path().join("program");
        let mut cc = Command::new("cc");
        cc.args(["-include", "gpustub.h"])
            .arg(repository().join("tests/exports/program.c"));
        cc.args(flags.split_whitespace()).arg("-o").arg(&program);
        cc.arg(format!("-Wl,-rpath,{}", stubs.join("lib").display()));
        succeed(&mut cc)?;
        works(&program, "0").map_err(|e| format!("{form:?}: {e:?}"))?;
    }
    Ok(())
}

/// pkg-config files of two directories: each names its own archives.
#[test]
#[ignore = "needs pkg-config and NVRTC: ./tests/run"]
fn pkg_config_names_two_directories() -> Result<()> {
    let dir = scratch()?;
    let first = export(dir.path(), "first", &["cuda", "--header-version=13"])?;
    let second = export(
        dir.path(),
        "second",
        &["cudart", "nvrtc", "--header-version=13"],
    )?;
    let path = [first, second].map(|stubs| stubs.join("pkgconfig"));
    let flags = flags(&path)?;
    assert!(flags.contains("-Wl,--gc-sections"), "{flags}");
    let program = dir.path().join("program");
    let mut cc = Command::new("cc");
    cc.arg(repository().join("tests/exports/program.c"));
    succeed(cc.args(flags.split_whitespace()).arg("-o").arg(&program))?;
    works(&program, "0")
}

/// nvcc's default link: nvlink reads each archive, and `libcudart_static.a` follows. By name, by path, and
/// with relocatable device code, as Makefiles of NVIDIA's samples do.
#[test]
#[ignore = "needs nvcc: ./tests/run"]
fn nvcc_links_by_default() -> Result<()> {
    let dir = scratch()?;
    let version = format!("--header-version={}", TOOLKIT_13.version);
    let stubs = export(dir.path(), "stubs", &["cuda", "cudart", "nccl", &version])?;
    let source = dir.path().join("kernel.cu");
    fs::write(
        &source,
        "#include <cstdio>\n__global__ void kernel(int *p) { *p = 1; }\n\
         extern \"C\" int ncclGetVersion(int *);\n\
         int main() { int n = 7, v = 7; int e = cudaGetDeviceCount(&n); kernel<<<1, 1>>>(nullptr);\n\
         printf(\"%d %d %d %d\\n\", e, n, cudaGetLastError(), ncclGetVersion(&v)); }\n",
    )?;
    let link = stubs.join("link");
    let file = |name: &str| link.join(name).into_os_string();
    let search = || vec!["-L".into(), link.clone().into_os_string()];
    let names = || [search(), vec!["-lcudart".into(), "-lnccl".into()]].concat();
    let ways = [
        names(),
        [names(), vec!["-rdc=true".into()]].concat(),
        vec![file("libcudart.a"), file("libnccl.a")],
    ];
    for (index, way) in ways.iter().enumerate() {
        let program = dir.path().join(format!("program{index}"));
        let mut nvcc = TOOLKIT_13.nvcc()?;
        nvcc.arg("-arch=sm_80")
            .arg(&source)
            .args(way)
            .arg("-o")
            .arg(&program);
        succeed(&mut nvcc)?;
        let needs = needed(&program)?;
        let gpu = |name: &String| name.starts_with("libcu") || name.starts_with("libnccl");
        assert!(!needs.iter().any(gpu), "{way:?}: {needs:?}");
        let mut command = Command::new(&program);
        command
            .env("GPUSTUB_CUDART_PATH", "off")
            .env("GPUSTUB_NCCL_PATH", "off");
        assert_eq!(succeed(&mut command)?.stdout, "35 0 35 2\n", "{way:?}");
    }
    Ok(())
}

/// Without Bazel: Python runs the rules, because Starlark is a subset of it, and builds with only
/// the files that they name.
#[test]
#[ignore = "needs Python and NVRTC: ./tests/run"]
fn bazel_rules_name_all_that_they_need() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &[])?;
    let out = dir.path().join("out");
    fs::create_dir(&out)?;
    let rules = repository().join("tests/exports/bazel.py");
    let reported = succeed(Command::new("python3").arg(rules).arg(&stubs).arg(&out))?.stdout;
    assert_eq!(reported, "cuda cudart nvrtc -ldl include\n");
    let program = dir.path().join("program");
    let mut cc = Command::new("cc");
    cc.arg(repository().join("tests/exports/program.c"))
        .arg(out.join("libstubs.a"));
    succeed(cc.args(["-ldl", "-o"]).arg(&program))?;
    works(&program, "0")
}
