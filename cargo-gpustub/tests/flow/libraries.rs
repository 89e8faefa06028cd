//! `symbols` and `export stubs`.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{acme, cc, ends, write};

#[test]
fn symbols_are_listed_in_each_format() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    acme(directory);
    let (list, err) = ends(0, directory, &["symbols", "libacme.so.3"]);
    assert!(
        list.starts_with("@gpustub-symbols 1\n@soname libacme.so.3\n"),
        "{list}"
    );
    assert_eq!(err, "");
    let arguments = ["symbols", "libacme.so.3", "--format", "ifs"];
    let (ifs, _) = ends(0, directory, &arguments);
    assert!(
        ifs.starts_with("--- !ifs-v1\n") && ifs.contains("acmeWeak"),
        "{ifs}"
    );
    let list = json_symbols(directory, "libacme.so.3");
    assert_eq!(list["soname"], "libacme.so.3");
    assert_eq!(json_symbol(&list, "acmeOpen")["kind"], "function");
    assert_eq!(json_symbol(&list, "acmeWeak")["weak"], true);
}

fn json_symbols(directory: &Path, library: &str) -> Value {
    let arguments = ["symbols", library, "--format", "json"];
    let (json, _) = ends(0, directory, &arguments);
    serde_json::from_str(&json).unwrap()
}

/// First symbol of this name.
fn json_symbol<'a>(list: &'a Value, name: &str) -> &'a Value {
    let symbols = list["symbols"].as_array().unwrap();
    let symbol = symbols.iter().find(|symbol| symbol["name"] == name);
    symbol.unwrap()
}

#[test]
fn symbols_have_versions() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    acme(directory);
    write(
        directory,
        "acme.map",
        "ACME_3 { global: acmeOpen; local: *; };\n",
    );
    cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            "-Wl,--version-script=acme.map",
            "-o",
            "libversioned.so",
            "acme.c",
        ],
    );
    let list = json_symbols(directory, "libversioned.so");
    let symbol = json_symbol(&list, "acmeOpen");
    assert_eq!(symbol["version"], "ACME_3");
    assert_eq!(symbol["default"], true);
}

#[test]
fn missing_symbols_and_libraries_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    acme(directory);
    let library = "libacme.so.3";
    ends(
        0,
        directory,
        &[
            "symbols",
            library,
            "--require",
            "acmeOpen",
            "--require",
            "acmeWeak",
        ],
    );
    let (out, err) = ends(1, directory, &["symbols", library, "--require", "acmeOpne"]);
    assert!(
        out.is_empty() && err.contains("did you mean `acmeOpen`?"),
        "{err}"
    );
    let foreign_machine = if cfg!(target_arch = "aarch64") {
        "x86_64"
    } else {
        "aarch64"
    };
    let arguments = ["symbols", library, "--machine", foreign_machine];
    let (_, err) = ends(1, directory, &arguments);
    assert!(err.contains(&format!("not for {foreign_machine}")), "{err}");
    let (_, err) = ends(1, directory, &["symbols", "nothing.so"]);
    assert!(err.contains("`nothing.so` cannot be read"), "{err}");
}

const PROGRAM: &str = "int cuInit(unsigned); int cudaGetDeviceCount(int *);\n\
    int nvrtcVersion(int *, int *);\n\
    int main(void) { int n = -7, a, b;\n\
    return !(cuInit(0) == 100 && cudaGetDeviceCount(&n) == 35 && n == 0\n\
    && nvrtcVersion(&a, &b) == 11); }\n";

/// Fakes a toolkit in the directory `toolkit`, which the compiler finds by default.
fn install_toolkit(directory: &Path) {
    let source = "int cuInit(void) { return 0; } int cudaGetDeviceCount(void) { return 0; }\n\
                  int nvrtcVersion(void) { return 0; }\n";
    write(directory, "toolkit/all.c", source);
    for name in ["cuda", "cudart", "nvrtc"] {
        let file = format!("toolkit/lib{name}.so");
        let soname = format!("-Wl,-soname,lib{name}.so.1");
        let arguments = ["-shared", "-fPIC", &soname, "toolkit/all.c", "-o", &file];
        cc(directory, &arguments);
    }
}

/// Links with every installed linker where a toolkit is, and runs without one: the results are
/// those of the stubs.
fn link_and_run(directory: &Path, arguments: &[&str]) {
    let mut linker_count = 0;
    install_toolkit(directory);
    for linker in ["bfd", "lld", "mold", "gold"] {
        let option = format!("-fuse-ld={linker}");
        let probe = Command::new("cc")
            .args([&option, "-Wl,--version"])
            .output()
            .unwrap();
        if !probe.status.success() {
            continue;
        }
        cc(
            directory,
            &[
                &["prog.c", "-o", "prog", &option],
                arguments,
                &["-L", "toolkit"],
            ]
            .concat(),
        );
        let readelf = Command::new("readelf")
            .args(["-dW".as_ref(), directory.join("prog").as_os_str()])
            .output()
            .unwrap();
        let dynamic = String::from_utf8(readelf.stdout).unwrap();
        assert!(dynamic.contains("[libc.so.6]"), "{linker}: {dynamic}");
        for soname_start in ["[libcuda.so", "[libcudart.so", "[libnvrtc.so"] {
            assert!(!dynamic.contains(soname_start), "{linker}: {dynamic}");
        }
        let status = Command::new(directory.join("prog"))
            .envs(["CUDART", "NVRTC", "CUDA"].map(|id| (format!("GPUSTUB_{id}_PATH"), "off")))
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{linker}");
        linker_count += 1;
    }
    assert!(linker_count > 0, "no linker could be tried");
}

#[test]
fn export_stubs_keeps_foreign_files() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let export = [
        "export",
        "stubs",
        "cuda",
        "--header-version=13",
        "--sources-only",
        "--out-dir",
        ".",
    ];
    write(directory, "meson.build", "project('ours')\n");
    let (_, err) = ends(101, directory, &export);
    assert!(
        err.contains("meson.build` already exists and was not generated by gpustub"),
        "{err}"
    );
    assert!(!directory.join("src").exists());
    fs::remove_file(directory.join("meson.build")).unwrap();
    ends(0, directory, &export);
    write(directory, "meson.build", "changed\n");
    ends(0, directory, &export);
    assert_ne!(
        fs::read_to_string(directory.join("meson.build")).unwrap(),
        "changed\n"
    );
}

#[test]
fn generated_archives_link() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "prog.c", PROGRAM);
    let export = [
        "export",
        "stubs",
        "nvrtc",
        "cudart",
        "cuda",
        "--header-version=13",
        "--out-dir",
        "stubs",
    ];
    let (out, err) = ends(0, directory, &export);
    assert_eq!(out, "");
    assert!(
        err.contains("cc prog.c -L stubs/link -lcuda -lcudart -lnvrtc -ldl -Wl,--gc-sections`"),
        "{err}"
    );
    link_and_run(
        directory,
        &["-L", "stubs/link", "-lcuda", "-lcudart", "-lnvrtc"],
    );
    link_and_run(
        directory,
        &[
            "-L",
            "stubs/link",
            "-lnvrtc",
            "-lcudart",
            "-lcuda",
            "-Wl,--gc-sections",
        ],
    );
    write(
        directory,
        "asks.c",
        "#include <gpustub.h>\nint main(void) { return gpustub_has_function(\"cudart\", \"x\"); }",
    );
    cc(
        directory,
        &[
            "asks.c",
            "-I",
            "stubs/include",
            "-L",
            "stubs/link",
            "-lcudart",
            "-o",
            "asks",
        ],
    );
    let (_, err) = ends(0, directory, &export);
    assert!(err.contains("Fresh stubs"), "{err}");
}

/// Each name after `-l` is an archive with the stubs of that library, so that full paths work, in any
/// number, and archives of several directories.
#[test]
fn generated_archives_link_by_path_and_from_several_directories() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "prog.c", PROGRAM);
    let export = ["export", "stubs", "--header-version=13", "--out-dir"];
    for out_dir_and_libraries in [
        &["stubs", "cuda", "cudart", "nvrtc"][..],
        &["first", "cuda"],
        &["second", "cudart", "nvrtc"],
    ] {
        ends(0, directory, &[&export, out_dir_and_libraries].concat());
    }
    let paths = [
        "stubs/link/libcuda.a",
        "stubs/link/libcudart.a",
        "stubs/link/libnvrtc.a",
    ];
    link_and_run(directory, &paths);
    let start = ["-Wl,--whole-archive"];
    let end = ["-Wl,--no-whole-archive"];
    link_and_run(directory, &[&start[..], &paths, &end].concat());
    let directories = ["-L", "first/link", "-L", "second/link"];
    let names = ["-lcuda", "-lcudart", "-lnvrtc"];
    link_and_run(directory, &[&directories[..], &names].concat());
    link_and_run(
        directory,
        &[&paths[..2], &directories, &["-lnvrtc"]].concat(),
    );
}

/// A program links the functions of the libraries that it names, and `gpustub.h` knows all of the directory.
#[test]
fn a_generated_archive_has_the_functions_of_its_library() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let source = "#include <gpustub.h>\n#include <stddef.h>\nint cudaGetDeviceCount(int *);\n\
                int main(void) { int n; return cudaGetDeviceCount(&n) != 35 || gpustub_load(\"nvrtc\") != GPUSTUB_UNAVAILABLE; }\n";
    write(directory, "asks.c", source);
    let arguments = [
        "export",
        "stubs",
        "cudart",
        "nvrtc",
        "--header-version=13",
        "--out-dir",
        "stubs",
    ];
    ends(0, directory, &arguments);
    let link = [
        "asks.c",
        "-I",
        "stubs/include",
        "-L",
        "stubs/link",
        "-lcudart",
        "-o",
        "asks",
    ];
    cc(directory, &link);
    let status = Command::new(directory.join("asks"))
        .envs(["GPUSTUB_CUDART_PATH", "GPUSTUB_NVRTC_PATH"].map(|name| (name, "off")))
        .status();
    assert_eq!(status.unwrap().code(), Some(0));
    let nm = Command::new("nm")
        .arg(directory.join("asks"))
        .output()
        .unwrap();
    let symbols = String::from_utf8(nm.stdout).unwrap();
    assert!(symbols.contains(" cudaMalloc\n"), "{symbols}");
    assert!(!symbols.contains(" nvrtcVersion\n"), "{symbols}");
}

/// A directory that is written again keeps no library of before, which linkers would still find.
#[test]
fn libraries_of_an_earlier_export_are_removed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    export_stubs(directory, &["cuda", "nvrtc", "--type=shared"]);
    write(directory, "stubs/link/notes.txt", "ours\n");
    let err = export_stubs(directory, &["cuda", "cudart"]);
    assert!(err.contains("Removed stubs/link/libnvrtc.so"), "{err}");
    let err = export_stubs(directory, &["cuda", "cudart"]);
    assert!(err.contains("Fresh stubs"), "{err}");
    assert_eq!(
        file_names(&directory.join("stubs/link")),
        ["libcuda.a", "libcudart.a", "notes.txt"]
    );
    assert_eq!(
        file_names(&directory.join("stubs/pkgconfig")),
        ["gpustub-cuda.pc", "gpustub-cudart.pc", "gpustub.pc"]
    );
    assert!(!directory.join("stubs/lib").exists());
}

/// Exports libraries to `stubs`; returns standard error.
fn export_stubs(directory: &Path, arguments: &[&str]) -> String {
    let options = ["--header-version=13", "--out-dir=stubs"];
    ends(
        0,
        directory,
        &[&["export", "stubs"], arguments, &options].concat(),
    )
    .1
}

/// Sorted names of the files in a directory.
fn file_names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn generated_shared_libraries_link() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "prog.c", PROGRAM);
    export_stubs(directory, &["nvrtc", "cudart", "cuda", "--type=shared"]);
    let soname = "libgpustub_cuda_cudart_nvrtc.so";
    let lib = directory.join("stubs/lib");
    assert_eq!(file_names(&lib), [soname]);
    let rpath = format!("-Wl,-rpath,{}", lib.display());
    link_and_run(
        directory,
        &["-L", "stubs/link", "-lnvrtc", "-lcudart", "-lcuda", &rpath],
    );
    let (list, _) = ends(0, directory, &["symbols", &format!("stubs/lib/{soname}")]);
    assert!(list.contains(&format!("@soname {soname}\n")), "{list}");
    let version = "version=GPUSTUB_gpustub_cuda_cudart_nvrtc compat";
    for name in ["cudaMalloc", "nvrtcVersion"] {
        assert!(list.contains(&format!("\n{name} {version}\n")), "{list}");
    }
}

#[test]
fn sources_alone_compile() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "prog.c", PROGRAM);
    export_stubs(directory, &["nvrtc", "cudart", "cuda", "--sources-only"]);
    for (path, is_there) in [
        ("link", false),
        ("pkgconfig", false),
        ("cmake/gpustub-config.cmake", true),
        ("meson.build", true),
        ("BUILD.bazel", true),
    ] {
        assert_eq!(
            directory.join("stubs").join(path).exists(),
            is_there,
            "{path}"
        );
    }
    let flags = ["-std=gnu11", "-fPIC", "-fvisibility=hidden"];
    let sources = ["stubs/src/runtime.c", "stubs/src/stubs.S", "-ldl"];
    link_and_run(directory, &[&flags[..], &sources].concat());
}
