//! Targets that code serves, compared with clang's table of AMD's generic processors and with NVIDIA's tools.
//! `differential.rs` compares the C header with the Rust function.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use gpustub_archive::match_target;
use gpustub_tests::Result;
use gpustub_tests::clang::Clang;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::scratch::scratch;

/// LLVM 21 removed these processors.
const REMOVED: [&str; 2] = ["gfx940", "gfx941"];

/// clang's names of AMD's processors.
fn processors() -> Result<BTreeSet<String>> {
    let mut clang = Clang::Component(23).command()?;
    let ran = run(clang.args(["--target=amdgcn", "--print-supported-cpus"]))?;
    let names = ran.stderr.lines().map(str::trim);
    Ok(names
        .filter(|name| name.starts_with("gfx"))
        .map(str::to_owned)
        .collect())
}

/// Processors that clang accepts for the triple of a generic one, such as `amdgpu9.4` of `gfx9-4-generic`: those that
/// run its code.
fn members(generic: &str) -> Result<BTreeSet<String>> {
    let family = generic.trim_start_matches("gfx");
    let family = family.trim_end_matches("-generic").replace('-', ".");
    let mut clang = Clang::Component(23).command()?;
    clang.arg(format!("--target=amdgpu{family}-amd-amdhsa"));
    clang.args(["-mcpu=gfx600", "-nogpulib", "-fsyntax-only", "-xc"]);
    let ran = run(clang.arg("/dev/null"))?;
    let (_, names) = (ran.stderr.split_once("valid target CPU values are: "))
        .ok_or_else(|| ran.error("no list of processors"))?;
    let names = names.lines().next().unwrap_or_default().split(", ");
    Ok(names.map(str::to_owned).collect())
}

#[test]
#[ignore = "needs clang 23 of a suite that moves on: ./tests/run --all"]
fn heavy_generic_processors_are_those_of_clang() -> Result<()> {
    let processors = processors()?;
    let generic = || processors.iter().filter(|name| name.ends_with("-generic"));
    assert!(generic().count() >= 9, "{processors:?}");
    for generic in generic() {
        let mut expected = members(generic)?;
        assert!(expected.contains(generic), "{generic}: {expected:?}");
        if generic == "gfx9-4-generic" {
            expected.extend(REMOVED.map(str::to_owned));
        }
        let names = processors.iter().map(String::as_str).chain(REMOVED);
        let served =
            names.filter(|name| match_target(generic.as_bytes(), name.as_bytes()).is_some());
        let served: BTreeSet<String> = served.map(str::to_owned).collect();
        assert_eq!(served, expected, "{generic}");
    }
    Ok(())
}

/// A function in PTX for an architecture such as `sm_90a`.
fn ptx(arch: &str) -> String {
    format!(
        ".version 9.4\n.target {arch}\n.address_size 64\n.visible .func f() {{ ret; }}\n\
         .visible .entry k() {{ call f; ret; }}\n"
    )
}

/// Every pair of architectures: ptxas compiles PTX for those that it serves, and nvlink links machine code for them.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_nvidia_targets_are_those_of_ptxas_and_nvlink() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let tool = |name: &str, arch: &str, words: &[&str]| -> Result<Ran> {
        let mut tool: Command = TOOLKIT_13.tool(name)?;
        run(tool
            .current_dir(dir)
            .arg(format!("-arch={arch}"))
            .args(words))
    };
    let help = succeed(TOOLKIT_13.tool("ptxas")?.arg("--help"))?.stdout;
    let options = help.split("(-arch)").nth(1).ok_or("no option -arch")?;
    let (options, _) = options.split_once("Default value").ok_or("no default")?;
    let archs: BTreeSet<&str> = options
        .split('\'')
        .filter(|name| name.starts_with("sm_"))
        .collect();
    assert!(archs.len() > 20, "{archs:?}");
    for arch in &archs {
        fs::write(dir.join(format!("{arch}.ptx")), ptx(arch))?;
        let (source, object) = (format!("{arch}.ptx"), format!("{arch}.o"));
        tool("ptxas", arch, &["-c", &source, "-o", &object])?.success()?;
    }
    for (have, wanted) in archs.iter().flat_map(|a| archs.iter().map(move |b| (a, b))) {
        let virtual_name = have.replace("sm_", "compute_");
        let compiled = tool(
            "ptxas",
            wanted,
            &["-c", &format!("{have}.ptx"), "-o", "out"],
        )?;
        let serves = match_target(virtual_name.as_bytes(), wanted.as_bytes()).is_some();
        assert_eq!(serves, compiled.status.success(), "{virtual_name} {wanted}");

        // nvlink only warns.
        let linked = tool("nvlink", wanted, &[&format!("{have}.o"), "-o", "out"])?;
        let serves = match_target(have.as_bytes(), wanted.as_bytes()).is_some();
        let accepted = linked.status.success() && linked.stderr.is_empty();
        assert_eq!(serves, accepted, "{have} {wanted}: {}", linked.stderr);
    }
    Ok(())
}
