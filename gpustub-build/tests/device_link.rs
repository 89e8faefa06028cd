//! RDC libraries whose input is wrong or unusual, with a compiler that only records its command line.
#![cfg(all(unix, feature = "device-link"))]

#[path = "tools/package.rs"]
mod package;
#[path = "tools/toolkit.rs"]
mod toolkit;
#[path = "../../crates/engine/tests/tools/mod.rs"]
mod tools;

use std::fs;
use std::path::Path;

use package::Package;
use toolkit::{MANIFEST, directives, executable, expect, log, package};
use tools::{output, tool_output};

const CHECK_CFG: &str = "cargo::rustc-check-cfg=cfg(gpustub_device_link, values(\"waves\"))";

/// Whether a toolkit is installed in a default directory, so that no environment hides it.
fn is_installed() -> bool {
    ["/usr/local/cuda", "/opt/cuda"]
        .iter()
        .any(|root| Path::new(root).join("bin/nvcc").exists())
}

#[track_caller]
fn assert_line(directives: &[String], start: &str) {
    let is_there = directives.iter().any(|line| line.starts_with(start));
    assert!(is_there, "no {start}: {directives:#?}");
}

#[track_caller]
fn assert_no_line(directives: &[String], start: &str) {
    let line = directives.iter().find(|line| line.starts_with(start));
    assert_eq!(line, None, "{directives:#?}");
}

/// Creates the same package without a compiler.
fn without_nvcc(name: &str, manifest: &str) -> Package {
    let mut package = package(name, manifest);
    package.set("CUDA_HOME", "");
    package.set("PATH", package.dir.join("nothing"));
    package
}

#[test]
fn a_missing_nvcc_error_lists_candidates_and_packages() {
    let package = without_nvcc("no-nvcc", MANIFEST);
    if is_installed() {
        let result = format!("{:?}", package.build().try_build());
        assert!(!result.contains("no CUDA compiler"), "{result}");
        return;
    }
    let error = package.error();
    expect(
        &error,
        &[
            "error[missing-nvcc]: no CUDA compiler (nvcc) is found",
            "tried: NVCC, CUDA_HOME, CUDA_PATH, PATH, /usr/local/cuda, /opt/cuda",
            "apt install nvidia-cuda-toolkit",
            "pip install nvidia-cuda-nvcc",
            "`optional = true` builds without the library",
        ],
    );
}

#[test]
fn an_optional_library_is_left_out_without_nvcc() {
    let manifest = format!("{MANIFEST}optional = true\n");
    if is_installed() {
        return a_missing_nvcc_error_lists_candidates_and_packages();
    }
    let directives = directives(&without_nvcc("optional", &manifest));
    let warning = directives
        .iter()
        .find(|line| line.starts_with("cargo::warning="))
        .unwrap();
    expect(
        warning,
        &[
            "device-link.waves is left out: ",
            "no CUDA compiler (nvcc) is found",
        ],
    );
    assert_line(&directives, CHECK_CFG);
    assert_no_line(&directives, "cargo::rustc-cfg=gpustub_device_link");
    assert_no_line(&directives, "cargo::rustc-link-lib");
    // A compiler installed later is detected.
    assert_line(&directives, "cargo::rerun-if-env-changed=PATH");
}

#[test]
fn rustc_knows_the_cfg_of_a_disabled_library() {
    let manifest = format!("{MANIFEST}required-features = [\"gpu\"]\n");
    let directives = directives(&package("off", &manifest));
    assert_line(&directives, CHECK_CFG);
    assert_no_line(&directives, "cargo::rustc-cfg");
}

/// A script replaces nvcc: the test concerns its output, and no source makes all versions of nvcc
/// print the same.
#[test]
fn warnings_of_nvcc_are_passed_on() {
    let package = package("warning", MANIFEST);
    let warning =
        "cuda/waves.cu(3): warning #177-D: variable \"x\" was declared but never referenced";
    let script = format!(
        "#!/bin/sh\nwhile [ $# -gt 0 ]; do\ncase $1 in\n-o) : >\"$2\" ;;\n\
         -MF) echo \"waves.o : cuda/waves.cu\" >\"$2\" ;;\nesac\nshift\ndone\necho '{warning}' >&2\n"
    );
    executable(&package.dir.join("toolkit/bin/nvcc"), &script);
    let line = format!("cargo::warning={warning}");
    assert!(directives(&package).contains(&line));
}

#[test]
fn a_missing_named_compiler_is_an_error() {
    let mut package = package("named", MANIFEST);
    package.set("NVCC", "/nowhere/nvcc");
    expect(
        &package.error(),
        &[
            "/nowhere/nvcc",
            "No such file",
            "help: the variable NVCC names it",
        ],
    );
}

#[test]
fn a_variable_without_a_toolkit_is_reported() {
    let mut package = without_nvcc("in-vain", MANIFEST);
    package.set("CUDA_HOME", "/nowhere");
    let reason = "/nowhere/bin has no nvcc";
    if !is_installed() {
        let candidates = format!("tried: NVCC, CUDA_HOME ({reason}), CUDA_PATH, PATH");
        expect(&package.error(), &[&candidates]);
    }

    let mut package = toolkit::package("stands-in", MANIFEST);
    package.set("CUDA_HOME", "/nowhere");
    let toolkit = package.dir.join("toolkit");
    package.set("CUDA_PATH", &toolkit);
    let directives = directives(&package);
    let warning = format!(
        "cargo::warning=CUDA_HOME is set, and {reason}: {}/bin/nvcc is used",
        toolkit.display()
    );
    assert_eq!(
        directives.iter().filter(|line| **line == warning).count(),
        1,
        "{directives:#?}"
    );

    // Unused variables may be wrong.
    package.set("CUDA_HOME", &toolkit);
    package.set("CUDA_PATH", "/nowhere");
    let directives = toolkit::directives(&package);
    assert_no_line(&directives, "cargo::warning");
}

#[test]
fn missing_header_directories_are_errors() {
    let manifest =
        format!("{MANIFEST}include-dirs = [\"include\", \"incl\", \"$OUT_DIR/later\"]\n");
    let package = package("folders", &manifest);
    fs::create_dir(package.dir.join("include")).unwrap();
    let start = format!(
        "GpuStub.toml:5:28: error[io-error]: `include-dirs` of device-link.waves: directory `incl` does not exist\n  \
         help: the path is relative to {};",
        package.dir.display()
    );
    let error = package.error();
    assert!(error.starts_with(&start), "{error}");
    fs::create_dir(package.dir.join("incl")).unwrap();
    package.output();
}

/// Generated files must not cause the script to run again: it writes them after its start.
#[test]
fn sources_of_the_build_script_are_compiled() {
    let manifest = MANIFEST.replace("\"cuda/*.cu\"", "\"cuda/*.cu\", \"$OUT_DIR/cuda/*.cu\"");
    let package = package(
        "generated",
        &format!("{manifest}include-dirs = [\"$OUT_DIR/include\", \"$OUT_DIR\"]\n"),
    );
    let out = package.dir.join("out");
    expect(
        &package.error(),
        &[
            "GpuStub.toml:3:25: error[unmatched-sources]: `sources` of device-link.waves: `$OUT_DIR/cuda/*.cu` matches no file",
            &format!("help: patterns are relative to {};", out.display()),
        ],
    );
    fs::create_dir_all(out.join("cuda")).unwrap();
    fs::write(out.join("cuda/waves.cu"), "").unwrap();
    let directives = directives(&package);
    let dir = out.display();
    expect(
        &log(&package),
        &[
            &format!(" -I {dir}/include -I {dir} "),
            &format!(
                " {dir}/cuda/waves.cu -o {dir}/gpustub/device-link/objects/waves/cuda-waves.cu.o\n"
            ),
            &format!(
                " cuda/waves.cu -o {dir}/gpustub/device-link/objects/waves/cuda-waves.cu.2.o\n"
            ),
        ],
    );
    let rerun: Vec<_> = directives
        .iter()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .filter(|path| path.contains("cuda") || path.contains("OUT_DIR"))
        .collect();
    assert_eq!(rerun, ["cuda", "cuda/waves.cu"]);
}

#[test]
fn the_feature_of_a_disabled_required_library_is_named() {
    let disabled =
        "[device-link.geometry]\ninclude-dirs = [\"cuda\"]\nrequired-features = [\"gpu\"]\n";
    let help = "help: the library requires the cargo feature `gpu` of its package, which is off";
    let manifest = format!("{MANIFEST}requires = [\"geometry\"]\n");
    expect(
        &package("off-here", &format!("{manifest}{disabled}")).error(),
        &["error[unknown-device-library]", help],
    );

    let mut dependency = package("off-there", &format!("schema = 1\n{disabled}"));
    dependency.set("CARGO_MANIFEST_LINKS", "shapes");
    let directives = directives(&dependency);
    let start = "cargo::metadata=GPUSTUB_DISABLED_DEVICE_LINK=";
    let value = directives.iter().find_map(|line| line.strip_prefix(start));
    assert_eq!(value, Some("geometry=gpu"), "{directives:#?}");
    let mut package = package("off-user", &manifest);
    package.set("DEP_SHAPES_GPUSTUB_DISABLED_DEVICE_LINK", value.unwrap());
    expect(&package.error(), &[help]);

    let enabled = disabled.replace("required-features = [\"gpu\"]\n", "");
    let manifest = format!("{MANIFEST}requires = [\"geometri\"]\n{enabled}");
    expect(
        &toolkit::package("typo", &manifest).error(),
        &["help: did you mean `geometry`?"],
    );
}

#[test]
fn a_pattern_that_matches_nothing_is_named() {
    let package = package("pattern", &MANIFEST.replace("cuda/*.cu", "kernels/**/*.cu"));
    expect(
        &package.error(),
        &[
            "error[unmatched-sources]: `sources` of device-link.waves: `kernels/**/*.cu` matches no file",
        ],
    );
}

#[test]
fn a_host_compiler_that_is_too_new_is_named_before_nvcc_runs() {
    let mut package = package("host", MANIFEST);
    let limit = "#if __GNUC__ > 6\n#error -- unsupported GNU version!\n#endif\n";
    fs::write(package.dir.join("toolkit/include/crt/host_config.h"), limit).unwrap();
    let major = output("gcc", ["-dumpversion"]);
    expect(
        &package.error(),
        &[
            &format!("accepts GCC up to 6, and `gcc` is {}", major.trim()),
            "apt install g++-6",
            "NVCC_CCBIN",
            "NVCC_APPEND_FLAGS=-allow-unsupported-compiler",
        ],
    );
    assert_eq!(log(&package), "");

    // The user can override the check.
    package.set("NVCC_APPEND_FLAGS", "-allow-unsupported-compiler");
    package.output();
    assert!(!log(&package).contains("-ccbin"), "{}", log(&package));
}

#[test]
fn an_older_installed_host_compiler_is_used() {
    let mut package = package("older", MANIFEST);
    let major: u32 = output("gcc", ["-dumpversion"]).trim().parse().unwrap();
    let limit = format!("#if __GNUC__ > {}\n#endif\n", major);
    fs::write(package.dir.join("toolkit/include/crt/host_config.h"), limit).unwrap();
    // The default compiler is too new: a script that reports such a version.
    let newer = package.dir.join("newer");
    executable(
        &newer,
        &format!("#!/bin/sh\necho '#define __GNUC__ {}'\n", major + 1),
    );
    package.set("CXX", &newer);
    package.output();
    expect(&log(&package), &[&format!("-ccbin g++-{major} ")]);
}

/// An external archive in every state that nvlink cannot use, and in the one that it can.
#[test]
fn external_archives_are_checked() {
    let manifest = "schema = 1\n[device-link.waves]\nprebuilt = \"libwaves.a\"\narchs = [\"sm_80\"]\ncudart = \"none\"\n";
    let package = package("archive", manifest);
    let dir = &package.dir;
    expect(
        &finalize_error(&package),
        &[
            "device-link.waves: ",
            "libwaves.a does not exist",
            "run that build first",
        ],
    );

    let [source, object, archive] = ["a.s", "a.o", "libwaves.a"].map(|name| dir.join(name));
    fs::write(
        &source,
        ".data; .globl __fatbinwrap_1; __fatbinwrap_1: .byte 0\n",
    )
    .unwrap();
    let (source, object) = (source.to_str().unwrap(), object.to_str().unwrap());
    output("cc", ["-c", source, "-o", object]);
    for (options, message) in [
        ("qcS", "libwaves.a has no symbol index"),
        (
            "rcsT",
            "GpuStub.toml:3:12: error[io-error]: device-link.waves: ",
        ),
        ("rcsT", "libwaves.a is a thin archive"),
    ] {
        let _ = fs::remove_file(&archive);
        output("ar", [options, archive.to_str().unwrap(), object]);
        expect(&finalize_error(&package), &[message]);
    }
    fs::write(&archive, "not an archive\n").unwrap();
    expect(&finalize_error(&package), &["libwaves.a is not an archive"]);

    // The section of `clang -x cuda -fgpu-rdc --offload-new-driver` (19), which needs LLVM's packager.
    fs::write(
        source,
        ".section .llvm.offloading,\"e\"; .long 0xad10ff10\n",
    )
    .unwrap();
    let by_clang = dir.join("clang.o");
    let by_clang = by_clang.to_str().unwrap();
    output("cc", ["-c", source, "-o", by_clang]);
    // Alone, and behind one of nvcc.
    for objects in [&[by_clang][..], &[object, by_clang]] {
        fs::remove_file(&archive).unwrap();
        let words = [&["rcs", archive.to_str().unwrap()], objects].concat();
        output("ar", words);
        expect(
            &finalize_error(&package),
            &[
                "GpuStub.toml:3:12: error[device-link-error]: device-link.waves: clang.o in ",
                "libwaves.a has device code in an offload binary of clang, which nvlink cannot read",
            ],
        );
    }
}

fn finalize_error(package: &Package) -> String {
    let error = package.build().finalize().try_build().unwrap_err();
    error.to_string()
}

/// sccache supports nvcc's compile steps. The test concerns its command line: before the compiler,
/// and for compile steps only. A script that records its name is sufficient.
#[test]
fn compiles_use_the_cache_of_cargo() {
    let mut package = package("cache", MANIFEST);
    let log_file = package.dir.join("log");
    let script = format!(
        "#!/bin/sh\necho \"wrapped $1\" >>'{}'\nexec \"$@\"\n",
        log_file.display()
    );
    let tools = package.dir.join("tools");
    let (sccache, other_wrapper) = (tools.join("sccache"), tools.join("other"));
    executable(&sccache, &script);
    executable(&other_wrapper, &script);
    let nvcc = package.dir.join("toolkit/bin/nvcc");
    let wrapped_compile = format!("wrapped {}\nnvcc -rdc=true", nvcc.display());
    package.set("RUSTC_WRAPPER", &sccache);
    package.output();
    expect(&log(&package), &[&wrapped_compile]);

    let out = package.dir.join("out/gpustub/device-link/lib");
    let members = tool_output("ar", &["t"], &out.join("libgpustub_rdc_my_package_waves.a"));
    assert_eq!(members, "cuda-waves.cu.o\n", "objects and nothing else");

    // Other wrappers of rustc do not support nvcc.
    fs::remove_file(&log_file).unwrap();
    fs::remove_dir_all(package.dir.join("out")).unwrap();
    package.set("RUSTC_WRAPPER", &other_wrapper);
    package.output();
    assert!(!log(&package).contains("wrapped"), "{}", log(&package));

    // As with CC, a wrapper may precede the compiler.
    fs::remove_dir_all(package.dir.join("out")).unwrap();
    package.set(
        "NVCC",
        format!("{} {}", other_wrapper.display(), nvcc.display()),
    );
    package.output();
    expect(&log(&package), &[&wrapped_compile]);
}

const MODULE: &str = "schema = 1\n[device-link.my-waves]\ntype = \"module\"\nseparable = false\n\
                      sources = [\"cuda/*.cu\"]\n";

/// The directives that set variables.
fn variables(directives: &[String]) -> Vec<&str> {
    directives
        .iter()
        .filter_map(|line| line.strip_prefix("cargo::rustc-env="))
        .collect()
}

#[test]
fn whole_program_modules_are_compiled_one_by_one_and_not_linked() {
    let manifest = format!("{MODULE}format = \"ptx\"\narchs = [\"compute_80\"]\n");
    let package = package("module", &manifest);
    fs::write(package.dir.join("cuda/fill-all.cu"), "").unwrap();
    let directives = directives(&package);
    let dir = package.dir.join("out/gpustub/device-link/objects/my-waves");
    let dir = dir.display();
    assert_eq!(
        variables(&directives),
        [
            format!("GPUSTUB_MODULE_MY_WAVES_FILL_ALL={dir}/cuda-fill-all.cu.ptx"),
            format!("GPUSTUB_MODULE_MY_WAVES_WAVES={dir}/cuda-waves.cu.ptx"),
        ]
    );
    let log = log(&package);
    expect(
        &log,
        &["nvcc -ptx -O0 -gencode arch=compute_80,code=compute_80 "],
    );
    assert!(!log.contains("-rdc") && !log.contains("-dlink"), "{log}");
    assert_line(
        &directives,
        "cargo::rustc-cfg=gpustub_device_link=\"my-waves\"",
    );
    assert_no_line(&directives, "cargo::rustc-link-");

    let manifest = format!("{MODULE}archs = [\"sm_80\"]\n");
    let package = toolkit::package("clash", &manifest);
    for name in ["a-b.cu", "a_b.cu"] {
        fs::write(package.dir.join("cuda").join(name), "").unwrap();
    }
    expect(
        &package.error(),
        &[
            "GpuStub.toml:2:14: error[invalid-value]: cuda/a_b.cu of device-link.my-waves: another \
             module has the variable GPUSTUB_MODULE_MY_WAVES_A_B",
        ],
    );
}

#[test]
fn an_optional_module_without_nvcc_has_no_variable() {
    if is_installed() {
        return;
    }
    let manifest = format!("{MODULE}archs = [\"sm_80\"]\noptional = true\n");
    let directives = directives(&without_nvcc("no-module", &manifest));
    assert_line(
        &directives,
        "cargo::warning=device-link.my-waves is left out: ",
    );
    assert_no_line(&directives, "cargo::rustc-cfg");
    assert!(variables(&directives).is_empty(), "{directives:#?}");
}

#[test]
fn documentation_is_built_with_empty_modules() {
    let linked = "[device-link.linked]\ntype = \"module\"\nsources = [\"$OUT_DIR/no.cu\"]\n\
                  archs = [\"sm_80\"]\n";
    let manifest = format!("{MODULE}archs = [\"sm_80\"]\n{linked}");
    let mut package = without_nvcc("docs", &manifest);
    package.set("DOCS_RS", "1");
    let directives = directives(&package);
    let mut names = Vec::new();
    for variable in variables(&directives) {
        let (name, path) = variable.split_once('=').unwrap();
        assert_eq!(fs::read(path).unwrap(), b"", "{name}");
        names.push(name);
    }
    names.sort_unstable();
    let expected = ["GPUSTUB_MODULE_LINKED", "GPUSTUB_MODULE_MY_WAVES_WAVES"];
    assert_eq!(names, expected);
}
