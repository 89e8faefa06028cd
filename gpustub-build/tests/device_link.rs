//! RDC libraries whose input is wrong or unusual, with a compiler that only says how it was called.
#![cfg(all(unix, feature = "device-link"))]

#[path = "tools/package.rs"]
mod package;
#[path = "tools/toolkit.rs"]
mod toolkit;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};

use package::Package;
use toolkit::{MANIFEST, executable, expect, log, package, told};
use tools::{of_file, output};

/// Whether a toolkit stands where it is found whatever the environment says. Then none is missing.
fn is_installed() -> bool {
    ["/usr/local/cuda", "/opt/cuda"]
        .iter()
        .any(|root| Path::new(root).join("bin/nvcc").exists())
}

/// The same package where there is no compiler.
fn without_nvcc(name: &str, manifest: &str) -> Package {
    let mut package = package(name, manifest);
    package.set("CUDA_HOME", "");
    package.set("PATH", package.dir.join("nothing"));
    package
}

#[test]
fn without_nvcc_the_error_says_what_was_tried_and_what_to_install() {
    let package = without_nvcc("no-nvcc", MANIFEST);
    if is_installed() {
        let found = format!("{:?}", package.build().try_build());
        assert!(!found.contains("no CUDA compiler"), "{found}");
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
fn a_library_may_be_left_out() {
    let manifest = format!("{MANIFEST}optional = true\n");
    if is_installed() {
        return without_nvcc_the_error_says_what_was_tried_and_what_to_install();
    }
    let told = told(&without_nvcc("optional", &manifest));
    let warned = told
        .iter()
        .find(|line| line.starts_with("cargo::warning="))
        .unwrap();
    expect(
        warned,
        &[
            "device-link.waves is left out: ",
            "no CUDA compiler (nvcc) is found",
        ],
    );
    let has = |start: &str| told.iter().any(|line| line.starts_with(start));
    assert!(
        has("cargo::rustc-check-cfg=cfg(gpustub_device_link, values(\"waves\"))"),
        "{told:#?}"
    );
    assert!(!has("cargo::rustc-cfg=gpustub_device_link"), "{told:#?}");
    assert!(!has("cargo::rustc-link-lib"), "{told:#?}");
    // One that is installed later is seen.
    assert!(has("cargo::rerun-if-env-changed=PATH"), "{told:#?}");
}

#[test]
fn a_library_of_a_feature_that_is_off_is_known_to_rustc() {
    let manifest = format!("{MANIFEST}required-features = [\"gpu\"]\n");
    let told = told(&package("off", &manifest));
    let has = |start: &str| told.iter().any(|line| line.starts_with(start));
    assert!(
        has("cargo::rustc-check-cfg=cfg(gpustub_device_link, values(\"waves\"))"),
        "{told:#?}"
    );
    assert!(!has("cargo::rustc-cfg"), "{told:#?}");
}

/// A script in nvcc's place: what it prints is what is asked, and no source makes all versions of nvcc
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
    assert!(told(&package).contains(&line));
}

#[test]
fn a_compiler_that_is_named_has_to_be_there() {
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
fn a_variable_that_names_no_toolkit_is_told() {
    let mut package = without_nvcc("in-vain", MANIFEST);
    package.set("CUDA_HOME", "/nowhere");
    let why = "/nowhere/bin has no nvcc";
    if !is_installed() {
        let tried = format!("tried: NVCC, CUDA_HOME ({why}), CUDA_PATH, PATH");
        expect(&package.error(), &[&tried]);
    }

    let mut package = toolkit::package("stands-in", MANIFEST);
    package.set("CUDA_HOME", "/nowhere");
    let toolkit = package.dir.join("toolkit");
    package.set("CUDA_PATH", &toolkit);
    let told = told(&package);
    let warning = format!(
        "cargo::warning=CUDA_HOME is set, and {why}: {}/bin/nvcc is used",
        toolkit.display()
    );
    assert_eq!(
        told.iter().filter(|line| **line == warning).count(),
        1,
        "{told:#?}"
    );

    // What is not needed may be wrong.
    package.set("CUDA_HOME", &toolkit);
    package.set("CUDA_PATH", "/nowhere");
    let told = toolkit::told(&package);
    let warned = |line: &String| line.starts_with("cargo::warning");
    assert!(!told.iter().any(warned), "{told:#?}");
}

#[test]
fn folders_of_headers_have_to_be_there() {
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

/// They are no reason to run the script again: it writes them after its start.
#[test]
fn what_the_build_script_writes_is_compiled() {
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
    let told = told(&package);
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
    let rerun: Vec<_> = told
        .iter()
        .filter_map(|line| line.strip_prefix("cargo::rerun-if-changed="))
        .filter(|path| path.contains("cuda") || path.contains("OUT_DIR"))
        .collect();
    assert_eq!(rerun, ["cuda", "cuda/waves.cu"]);
}

#[test]
fn of_what_is_required_and_off_the_feature_is_named() {
    let off = "[device-link.geometry]\ninclude-dirs = [\"cuda\"]\nrequired-features = [\"gpu\"]\n";
    let says = "help: the library requires the cargo feature `gpu` of its package, which is off";
    let manifest = format!("{MANIFEST}requires = [\"geometry\"]\n");
    expect(
        &package("off-here", &format!("{manifest}{off}")).error(),
        &["error[unknown-device-library]", says],
    );

    let mut other = package("off-there", &format!("schema = 1\n{off}"));
    other.set("CARGO_MANIFEST_LINKS", "shapes");
    let told = told(&other);
    let start = "cargo::metadata=GPUSTUB_DISABLED_DEVICE_LINK=";
    let value = told.iter().find_map(|line| line.strip_prefix(start));
    assert_eq!(value, Some("geometry=gpu"), "{told:#?}");
    let mut package = package("off-user", &manifest);
    package.set("DEP_SHAPES_GPUSTUB_DISABLED_DEVICE_LINK", value.unwrap());
    expect(&package.error(), &[says]);

    let typo = format!("{MANIFEST}requires = [\"wavs\"]\n");
    expect(
        &toolkit::package("typo", &typo).error(),
        &["help: did you mean `waves`?"],
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
    let header = package.dir.join("toolkit/include/crt/host_config.h");
    fs::write(&header, limit).unwrap();
    let major = output("gcc", ["-dumpversion"]);
    expect(
        &package.error(),
        &[
            &format!("takes GCC up to 6, and `gcc` is {}", major.trim()),
            "apt install g++-6",
            "NVCC_CCBIN",
            "NVCC_APPEND_FLAGS=-allow-unsupported-compiler",
        ],
    );
    assert_eq!(log(&package), "");

    // Who says so tries it all the same.
    package.set("NVCC_APPEND_FLAGS", "-allow-unsupported-compiler");
    package.output();
    assert!(!log(&package).contains("-ccbin"), "{}", log(&package));
}

#[test]
fn an_older_host_compiler_beside_it_is_taken() {
    let mut package = package("older", MANIFEST);
    let major: u32 = output("gcc", ["-dumpversion"]).trim().parse().unwrap();
    let limit = format!("#if __GNUC__ > {}\n#endif\n", major);
    fs::write(package.dir.join("toolkit/include/crt/host_config.h"), limit).unwrap();
    // The default is one too new: a script that says so.
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
fn archives_of_others_are_looked_at() {
    let manifest = "schema = 1\n[device-link.waves]\nprebuilt = \"libwaves.a\"\narchs = [\"sm_80\"]\ncudart = \"none\"\n";
    let package = package("archive", manifest);
    let dir = &package.dir;
    let finalized = || {
        package
            .build()
            .finalize()
            .try_build()
            .unwrap_err()
            .to_string()
    };
    expect(
        &finalized(),
        &[
            "device-link.waves: there is no ",
            "libwaves.a",
            "build it first",
        ],
    );

    let path = |name: &str| dir.join(name).to_str().unwrap().to_owned();
    fs::write(
        path("a.s"),
        ".data; .globl __fatbinwrap_1; __fatbinwrap_1: .byte 0\n",
    )
    .unwrap();
    output("cc", ["-c", &path("a.s"), "-o", &path("a.o")]);
    for (options, message) in [
        ("qcS", "libwaves.a has no symbol index"),
        ("rcsT", "libwaves.a is a thin archive"),
    ] {
        let _ = fs::remove_file(path("libwaves.a"));
        output("ar", [options, &path("libwaves.a"), &path("a.o")]);
        expect(&finalized(), &[message]);
    }
    fs::write(path("libwaves.a"), "not an archive\n").unwrap();
    expect(&finalized(), &["libwaves.a is not an archive"]);
}

/// sccache knows nvcc's compile steps. What counts is how it is called: before the compiler, and for
/// compile steps alone. So a script that writes down its name will do.
#[test]
fn compiles_go_through_the_cache_that_cargo_uses() {
    let mut package = package("cache", MANIFEST);
    let log_file = package.dir.join("log");
    let script = format!(
        "#!/bin/sh\necho \"wrapped $1\" >>'{}'\nexec \"$@\"\n",
        log_file.display()
    );
    let wrapper = |name: &str| -> PathBuf {
        let path = package.dir.join("tools").join(name);
        executable(&path, &script);
        path
    };
    let (sccache, other) = (wrapper("sccache"), wrapper("other"));
    let nvcc = package.dir.join("toolkit/bin/nvcc");
    package.set("RUSTC_WRAPPER", &sccache);
    package.output();
    expect(
        &log(&package),
        &[&format!("wrapped {}\nnvcc -rdc=true", nvcc.display())],
    );

    let out = package.dir.join("out/gpustub/device-link/lib");
    let members = of_file("ar", &["t"], &out.join("libgpustub_rdc_my_package_waves.a"));
    assert_eq!(members, "cuda-waves.cu.o\n", "objects and nothing else");

    // Another wrapper of rustc knows no nvcc.
    fs::remove_file(&log_file).unwrap();
    fs::remove_dir_all(package.dir.join("out")).unwrap();
    package.set("RUSTC_WRAPPER", &other);
    package.output();
    assert!(!log(&package).contains("wrapped"), "{}", log(&package));

    // As with CC, one may stand before the compiler.
    fs::remove_dir_all(package.dir.join("out")).unwrap();
    package.set("NVCC", format!("{} {}", other.display(), nvcc.display()));
    package.output();
    expect(
        &log(&package),
        &[&format!("wrapped {}\nnvcc -rdc=true", nvcc.display())],
    );
}
