//! Whole builds, in an isolated environment, with the machine's C compiler.
#![cfg(unix)]

#[path = "tools/package.rs"]
mod package;
#[path = "../../crates/engine/tests/tools/mod.rs"]
mod tools;

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

use gpustub_build::{Build, Env, Output};
use gpustub_core::library::Library;
use package::Package;
use tools::tool_output;

impl Package {
    fn link(&self, file: &str) -> PathBuf {
        self.dir.join("out/gpustub/link").join(file)
    }

    fn link_files(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.link(""))
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn lines(output: &Output) -> Vec<String> {
    output.directives.iter().map(ToString::to_string).collect()
}

/// Last fields of nm's lines.
fn names(nm: &str) -> Vec<&str> {
    nm.lines()
        .filter_map(|l| l.split_whitespace().last())
        .collect()
}

#[test]
fn optimised_profiles_have_a_smaller_run_time() {
    let sizes = ["0", "3"].map(|level| {
        let manifest = "schema = 1\n[stub.opencl]\n";
        let mut package = Package::new(&format!("level-{level}"), manifest);
        package.set("OPT_LEVEL", level);
        package.output();
        let object = package.dir.join("out/gpustub/gpustub_runtime.o");
        fs::metadata(object).unwrap().len()
    });
    assert!(sizes[1] < sizes[0] * 3 / 4, "{sizes:?}");
}

#[test]
fn static_stubs_are_an_archive_with_empty_stand_ins() {
    // A directory of its own for the run of stubs_compile_behind_a_forced_header.
    #[allow(
        clippy::disallowed_methods,
        reason = "the variable of the test's own process"
    )]
    let is_forced = std::env::var_os("CFLAGS").is_some();
    let package = Package::new(
        if is_forced { "static-forced" } else { "static" },
        "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n[stub.nvrtc]\n[stub.opencl]\n",
    );
    let output = package.output();
    assert_eq!(output.stubs, ["cuda", "nvrtc", "opencl"]);

    let lines = lines(&output);
    let link = package.link("");
    let link = link.to_str().unwrap().trim_end_matches('/');
    assert_eq!(
        lines[lines.len() - 2..],
        [
            format!("cargo::rustc-link-search=native={link}"),
            "cargo::rustc-link-lib=static:+whole-archive=gpustub_my_package".to_owned(),
        ]
    );
    for expected in [
        "cargo::rerun-if-changed=GpuStub.toml",
        "cargo::rerun-if-env-changed=CC",
        "cargo::rerun-if-env-changed=CFLAGS",
        "cargo::rerun-if-env-changed=HOST_AR",
        "cargo::rerun-if-env-changed=DOCS_RS",
    ] {
        assert!(
            lines.iter().any(|l| l == expected),
            "{expected} in {lines:#?}"
        );
    }
    // Variables that cargo sets differ from the user's variables of the same name.
    assert!(
        !lines.iter().any(|l| l.ends_with("env-changed=TARGET")),
        "{lines:#?}"
    );

    let expected = [
        "libOpenCL.a",
        "libcuda.a",
        "libgpustub_my_package.a",
        "libnvrtc.a",
    ];
    assert_eq!(package.link_files(), expected);
    assert_eq!(fs::read(package.link("libcuda.a")).unwrap(), b"!<arch>\n");
    assert!(output.include_dir.unwrap().join("gpustub.h").is_file());

    let archive = output.stub_library.unwrap();
    assert_eq!(
        tool_output("ar", &["t"], &archive),
        "gpustub_stubs.o\ngpustub_runtime.o\ngpustub_libraries.o\ngpustub_adapters.o\n"
    );
    let nm = tool_output("nm", &["--defined-only"], &archive);
    let defined = names(&nm);
    for name in ["cuInit", "nvrtcVersion", "clGetPlatformIDs", "gpustub_load"] {
        assert!(defined.contains(&name), "{name}");
    }
    assert!(!defined.contains(&"cudaFree"));
    // Global definitions are hidden in the image that contains them.
    let symbols = tool_output("readelf", &["-sW"], &archive);
    let global = symbols
        .lines()
        .filter(|l| l.contains(" GLOBAL ") && !l.contains(" UND "));
    let visible: Vec<_> = global.filter(|l| !l.contains(" HIDDEN ")).collect();
    assert!(visible.is_empty(), "{visible:#?}");
}

/// As in a project whose `CFLAGS` force a header into every file. The variable is the process's.
#[test]
fn stubs_compile_behind_a_forced_header() {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([
        "--exact",
        "static_stubs_are_an_archive_with_empty_stand_ins",
    ]);
    let out = again.env("CFLAGS", "-include stdio.h").output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn shared_stubs_are_a_library_with_linker_scripts() {
    let package = Package::new("shared", "schema = 1\n[stub.nvrtc]\ntype = \"shared\"\n");
    let output = package.output();
    let lines = lines(&output);
    assert_eq!(
        lines[lines.len() - 4..],
        [
            "cargo::rustc-link-lib=dylib=gpustub_my_package.link",
            "cargo::rustc-link-lib=static:+whole-archive=gpustub_my_package.api",
            "cargo::rustc-link-arg=-lgpustub_my_package.link",
            "cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN",
        ]
    );
    assert_eq!(
        package.link_files(),
        [
            "libgpustub_my_package.api.a",
            "libgpustub_my_package.link.so",
            "libgpustub_my_package.so",
            "libnvrtc.a"
        ]
    );

    let library = output.stub_library.unwrap();
    let dynamic = tool_output("readelf", &["-dW"], &library);
    assert!(dynamic.contains("[libgpustub_my_package.so]"), "{dynamic}");
    let nm = tool_output("nm", &["-D", "--defined-only"], &library);
    let suffix = "@GPUSTUB_gpustub_my_package";
    let symbols = &Library::builtin("nvrtc").unwrap().symbols;
    let mut expected: Vec<String> = symbols
        .functions()
        .map(|symbol| format!("{}{suffix}", symbol.name))
        .collect();
    expected.push(format!("gpustub1_api_gpustub_my_package{suffix}"));
    expected.sort_unstable();
    // nm prints the node itself, too.
    let exported: Vec<&str> = names(&nm)
        .into_iter()
        .filter(|name| name.ends_with(suffix) && !name.starts_with("GPUSTUB"))
        .collect();
    assert_eq!(exported, expected);

    // A C program that names only the library's usual name links through the script.
    let program = package.dir.join("program");
    fs::write(
        package.dir.join("main.c"),
        "int nvrtcVersion(int *, int *);\nint main(void) { return nvrtcVersion(0, 0) < 0; }\n",
    )
    .unwrap();
    let status = Command::new("cc")
        .arg(package.dir.join("main.c"))
        .args([
            "-L".as_ref(),
            package.link("").as_os_str(),
            "-lnvrtc".as_ref(),
        ])
        .args(["-o".as_ref(), program.as_os_str()])
        .status()
        .unwrap();
    assert!(status.success());
    let needed = tool_output("readelf", &["-dW"], &program);
    assert!(
        needed.contains("(NEEDED)") && needed.contains("libgpustub_my_package.so"),
        "{needed}"
    );
}

#[test]
fn static_and_shared_in_one_package_are_rejected() {
    let manifest =
        "schema = 1\n[stub.cuda]\nheader-version = \"none\"\n[stub.nvrtc]\ntype = \"shared\"\n";
    let error = Package::new("mixed", manifest).error();
    assert!(error.contains("the same `type`"), "{error}");
}

/// Cargo puts programs above the directory of build scripts, tests and examples below it.
#[test]
fn shared_stubs_are_copied_beside_programs() {
    let mut package = Package::new("beside", "schema = 1\n[stub.nvrtc]\ntype = \"shared\"\n");
    let debug = package.dir.join("target/debug");
    fs::create_dir_all(debug.join("deps")).unwrap();
    let out = debug.join("build/my-package-0123/out");
    package.set("OUT_DIR", &out);
    let library = package
        .build()
        .out_dir(&out)
        .try_build()
        .unwrap()
        .stub_library
        .unwrap();
    let bytes = fs::read(library).unwrap();
    for dir in [".", "deps", "examples"] {
        let copy = debug.join(dir).join("libgpustub_my_package.so");
        assert!(fs::read(&copy).unwrap() == bytes, "{}", copy.display());
    }
}

#[test]
fn output_is_identical_in_two_directories() {
    let archives = ["same/a", "same/b/c"].map(|name| {
        let package = Package::new(name, "schema = 1\n[stub.nvrtc]\n");
        fs::read(package.output().stub_library.unwrap()).unwrap()
    });
    assert!(archives[0] == archives[1], "the archives differ");
}

#[test]
fn files_of_a_library_that_is_no_longer_declared_are_removed() {
    let package = Package::new("stale", "schema = 1\n[stub.nvrtc]\n[stub.opencl]\n");
    package.output();
    fs::write(
        package.dir.join("GpuStub.toml"),
        "schema = 1\n[stub.opencl]\n",
    )
    .unwrap();
    let output = package.output();
    assert_eq!(
        package.link_files(),
        ["libOpenCL.a", "libgpustub_my_package.a"]
    );
    let nm = tool_output("nm", &["--defined-only"], &output.stub_library.unwrap());
    assert!(!names(&nm).contains(&"nvrtcVersion"));
}

#[test]
fn sources_that_did_not_change_are_not_written() {
    let package = Package::new("unchanged", "schema = 1\n[stub.nvrtc]\n");
    let table = package.dir.join("out/gpustub/gpustub_table.inc");
    package.output();
    // A read-only file could not be written to, but could be replaced: compare the file itself.
    let before = fs::metadata(&table).unwrap().ino();
    package.output();
    assert_eq!(before, fs::metadata(&table).unwrap().ino());
    fs::write(
        package.dir.join("GpuStub.toml"),
        "schema = 1\n[stub.opencl]\n",
    )
    .unwrap();
    package.output();
    assert!(
        fs::read_to_string(&table)
            .unwrap()
            .contains("clGetPlatformIDs")
    );
}

#[test]
fn optional_stubs_follow_the_feature() {
    let manifest = "schema = 1\n[stub.nvrtc]\nrequired-features = [\"run-time\"]\n";
    let mut package = Package::new("feature", manifest);
    let off = package.output();
    assert!(
        off.directives
            .iter()
            .all(|d| d.to_string().contains("rerun-if")),
        "{off:?}"
    );
    assert_eq!((off.stubs.len(), off.stub_library), (0, None));
    package.set("CARGO_FEATURE_RUN_TIME", "1");
    assert_eq!(package.output().stubs, ["nvrtc"]);
}

#[test]
fn stubs_that_another_package_provides_are_not_built() {
    let output = Package::new("required", "schema = 1\n[stub.nvrtc]\nprovide = false\n").output();
    assert_eq!((output.stubs.len(), output.stub_library), (0, None));
}

#[test]
fn a_user_defined_library_reads_its_symbol_list() {
    let manifest = "schema = 1\n[stub.acme]\nload-names = { linux = [\"libacme.so.3\"] }\n\
                    symbols = \"symbols/acme.symbols\"\nfallback = { status = 999 }\n";
    let package = Package::new("own", manifest);
    let error = package.error();
    assert!(
        error.contains("acme.symbols") && error.contains("add acme --from"),
        "{error}"
    );

    fs::create_dir(package.dir.join("symbols")).unwrap();
    let list = package.dir.join("symbols/acme.symbols");
    fs::write(&list, "@gpustub-symbols 1\nacmeOpen\nacmeOpen\n").unwrap();
    let error = package.error();
    assert!(error.contains("symbols/acme.symbols:3:"), "{error}");

    fs::write(
        &list,
        "@gpustub-symbols 1\nacmeClose returns=void\nacmeOpen returns=status\n",
    )
    .unwrap();
    let output = package.output();
    let line = "cargo::rerun-if-changed=symbols/acme.symbols";
    assert!(lines(&output).iter().any(|l| l == line), "{output:?}");
    let nm = tool_output("nm", &["--defined-only"], &output.stub_library.unwrap());
    assert!(names(&nm).contains(&"acmeOpen"), "{nm}");
    assert_eq!(
        package.link_files(),
        ["libacme.a", "libgpustub_my_package.a"]
    );
}

#[test]
fn documentation_builds_read_and_compile_no_file() {
    let mut package = Package::new("docs", "this is not TOML");
    package.set("DOCS_RS", "1");
    let output = package.output();
    assert_eq!(lines(&output), ["cargo::rerun-if-env-changed=DOCS_RS"]);
    assert_eq!((output.stub_library, output.include_dir), (None, None));
    assert!(!package.dir.join("out").exists());
}

#[test]
fn errors_in_the_manifest_have_their_location() {
    let error = Package::new("typo", "schema = 1\n\n[stub.nvrtc]\nmajor = [\"12\"]\n").error();
    assert!(
        error.starts_with("GpuStub.toml:4:1: error[unknown-key]: "),
        "{error}"
    );
    assert!(error.contains("majors"), "{error}");

    let error = Package::new("headers", "schema = 1\n[stub.cudart]\n").error();
    assert!(
        error.contains("header version of `cudart` unknown"),
        "{error}"
    );
    let error = Package::new("unknown", "schema = 1\n[stub.cudatr]\n").error();
    assert!(
        error.contains("GpuStub.toml:2:") && error.contains("did you mean `cudart`?"),
        "{error}"
    );

    let error = Package::new("empty", "").error();
    assert!(
        error.contains("GpuStub.toml") && error.contains("schema"),
        "{error}"
    );

    let package = Package::new("none", "");
    fs::remove_file(package.dir.join("GpuStub.toml")).unwrap();
    let error = package.error();
    assert!(
        error.contains("does not exist") && error.contains("cargo gpustub add cudart"),
        "{error}"
    );

    let package = Package::new("binary", "");
    fs::write(package.dir.join("GpuStub.toml"), b"schema = \xff").unwrap();
    assert!(
        package.error().contains("GpuStub.toml"),
        "{}",
        package.error()
    );
}

#[test]
fn unusable_directories_are_named() {
    let mut package = Package::new("folder", "schema = 1\n[stub.nvrtc]\n");
    let file = package.dir.join("file");
    fs::write(&file, "").unwrap();
    package.set("OUT_DIR", &file);
    let error = package.error();
    assert!(
        error.contains("cannot create the directory") && error.contains("file/gpustub"),
        "{error}"
    );

    let name = OsString::from_vec(b"/tmp/m\xfcll".to_vec());
    package.set("OUT_DIR", name.clone());
    let error = package.error();
    assert!(
        error.contains("OUT_DIR") && error.contains("UTF-8"),
        "{error}"
    );
    let error = package
        .build()
        .out_dir(name)
        .try_build()
        .unwrap_err()
        .to_string();
    assert!(error.contains("UTF-8"), "{error}");
}

#[test]
fn a_build_outside_of_a_build_script_is_an_error() {
    let error = Build::new()
        .env(Env::from_iter([("X", "y")]))
        .try_build()
        .unwrap_err();
    assert!(
        error.to_string().contains("CARGO_MANIFEST_DIR is not set"),
        "{error}"
    );
}

#[test]
fn a_missing_compiler_is_named() {
    let package = Package::new("compiler", "schema = 1\n[stub.nvrtc]\n");
    let error = package
        .build()
        .compiler("/nonexistent/cc")
        .try_build()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("/nonexistent/cc") && error.contains("install one"),
        "{error}"
    );
}
