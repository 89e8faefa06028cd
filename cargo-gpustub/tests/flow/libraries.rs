//! `symbols`, `export stubs` and `doctor`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ACME, acme, cc, ends, gpustub, package, write};

#[test]
fn doctor_runs_the_real_run_time() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    acme(directory);
    write(directory, "GpuStub.toml", ACME);
    ends(0, directory, &["add", "acme", "--from", "libacme.so.3"]);
    ends(0, directory, &["sync"]);

    let (out, _) = ends(0, directory, &["doctor"]);
    assert!(out.starts_with("gpustub     "), "{out}");
    assert!(
        out.contains("\nGpuStub.toml\n  acme: unavailable: "),
        "{out}"
    );

    let library = directory.join("libacme.so.3");
    let json = gpustub(directory, &["doctor", "--message-format", "json"])
        .env("GPUSTUB_ACME_PATH", &library)
        .output()
        .unwrap();
    let text = String::from_utf8(json.stdout).unwrap();
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(lines[0]["reason"], "machine");
    assert_eq!(lines[0]["gpustub_version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(lines[1]["library"], "acme");
    assert_eq!(lines[1]["available"], true);
    assert_eq!(lines[1]["path"], library.to_str().unwrap());
    assert!(
        lines[1]["report"]
            .as_str()
            .unwrap()
            .contains("3 functions bound"),
        "{text}"
    );
}

#[test]
fn the_doctor_without_a_compiler_names_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let output = gpustub(directory.path(), &["doctor"])
        .env("CC", "/nonexistent/cc")
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(101), "{err}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("\nC compiler  none\n")
    );
    assert!(
        err.contains("no C compiler") && err.contains("apt install gcc"),
        "{err}"
    );
}

#[test]
fn symbols_of_a_library() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    acme(directory);
    let library = "libacme.so.3";
    let (list, err) = ends(0, directory, &["symbols", library]);
    assert!(
        list.starts_with("@gpustub-symbols 1\n@soname libacme.so.3\n"),
        "{list}"
    );
    assert_eq!(err, "");
    let (ifs, _) = ends(0, directory, &["symbols", library, "--format", "ifs"]);
    assert!(
        ifs.starts_with("--- !ifs-v1\n") && ifs.contains("acmeWeak"),
        "{ifs}"
    );
    let (json, _) = ends(0, directory, &["symbols", library, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["soname"], "libacme.so.3");
    let find = |name| {
        json["symbols"]
            .as_array()
            .unwrap()
            .iter()
            .find(|s| s["name"] == name)
    };
    assert_eq!(find("acmeOpen").unwrap()["kind"], "function");
    assert_eq!(find("acmeWeak").unwrap()["weak"], true);

    write(
        directory,
        "acme.map",
        "ACME_3 { global: acmeOpen; local: *; };\n",
    );
    let script = "-Wl,--version-script=acme.map";
    let words = [
        "-shared",
        "-fPIC",
        script,
        "-o",
        "libversioned.so",
        "acme.c",
    ];
    cc(directory, &words);
    let (json, _) = ends(
        0,
        directory,
        &["symbols", "libversioned.so", "--format", "json"],
    );
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let versioned = json["symbols"].as_array().unwrap();
    let open = versioned.iter().find(|s| s["name"] == "acmeOpen").unwrap();
    assert_eq!(
        (&open["version"], &open["default"]),
        (&"ACME_3".into(), &true.into())
    );

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
    let other = if cfg!(target_arch = "aarch64") {
        "x86_64"
    } else {
        "aarch64"
    };
    let (_, err) = ends(1, directory, &["symbols", library, "--machine", other]);
    assert!(err.contains(&format!("not for {other}")), "{err}");
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
    let mut tried = 0;
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
        let asks = |library| dynamic.contains(&format!("[lib{library}.so"));
        assert!(
            !["cuda", "cudart", "nvrtc"].iter().any(asks),
            "{linker}: {dynamic}"
        );
        let status = Command::new(directory.join("prog"))
            .envs(["CUDART", "NVRTC", "CUDA"].map(|id| (format!("GPUSTUB_{id}_PATH"), "off")))
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{linker}");
        tried += 1;
    }
    assert!(tried > 0, "no linker could be tried");
}

#[test]
fn export_stubs_keeps_foreign_files() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let generate = [
        "export",
        "stubs",
        "cuda",
        "--header-version=13",
        "--sources-only",
        "--out-dir",
        ".",
    ];
    write(directory, "meson.build", "project('ours')\n");
    let (_, err) = ends(101, directory, &generate);
    assert!(
        err.contains("meson.build` already exists and was not generated by gpustub"),
        "{err}"
    );
    assert!(!directory.join("src").exists());
    fs::remove_file(directory.join("meson.build")).unwrap();
    ends(0, directory, &generate);
    write(directory, "meson.build", "changed\n");
    ends(0, directory, &generate);
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
    let command = [
        "export",
        "stubs",
        "nvrtc",
        "cudart",
        "cuda",
        "--header-version=13",
        "--out-dir",
        "stubs",
    ];
    let (out, err) = ends(0, directory, &command);
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
    let (_, err) = ends(0, directory, &command);
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
    let sets: [&[&str]; 3] = [
        &["stubs", "cuda", "cudart", "nvrtc"],
        &["first", "cuda"],
        &["second", "cudart", "nvrtc"],
    ];
    for set in sets {
        ends(0, directory, &[&export, set].concat());
    }
    let paths = |names: &[&str]| -> Vec<String> {
        let path = |name: &&str| format!("stubs/link/lib{name}.a");
        names.iter().map(path).collect()
    };
    let all = paths(&["cuda", "cudart", "nvrtc"]);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    link_and_run(directory, &all);
    let whole = ["-Wl,--whole-archive"];
    link_and_run(
        directory,
        &[&whole, &all[..], &["-Wl,--no-whole-archive"]].concat(),
    );
    let directories = ["-L", "first/link", "-L", "second/link"];
    let names = ["-lcuda", "-lcudart", "-lnvrtc"];
    link_and_run(directory, &[&directories[..], &names].concat());
    link_and_run(directory, &[&all[..2], &directories, &["-lnvrtc"]].concat());
}

/// A program links the functions of the libraries that it names, and `gpustub.h` knows all of the directory.
#[test]
fn a_generated_archive_has_the_functions_of_its_library() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let asks = "#include <gpustub.h>\n#include <stddef.h>\nint cudaGetDeviceCount(int *);\n\
                int main(void) { int n; return cudaGetDeviceCount(&n) != 35 || gpustub_load(\"nvrtc\") != GPUSTUB_UNAVAILABLE; }\n";
    write(directory, "asks.c", asks);
    let stubs = [
        "cudart",
        "nvrtc",
        "--header-version=13",
        "--out-dir",
        "stubs",
    ];
    ends(0, directory, &[&["export", "stubs"], &stubs[..]].concat());
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
    let export = |more: &[&str]| {
        let command = [
            "export",
            "stubs",
            "cuda",
            "--header-version=13",
            "--out-dir=stubs",
        ];
        ends(0, directory, &[&command, more].concat()).1
    };
    export(&["nvrtc", "--type=shared"]);
    write(directory, "stubs/link/notes.txt", "ours\n");
    let err = export(&["cudart"]);
    assert!(err.contains("Removed stubs/link/libnvrtc.so"), "{err}");
    assert!(export(&["cudart"]).contains("Fresh stubs"));
    let files = |name: &str| {
        let entries = fs::read_dir(directory.join("stubs").join(name)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    };
    assert_eq!(files("link"), ["libcuda.a", "libcudart.a", "notes.txt"]);
    let expected = ["gpustub-cuda.pc", "gpustub-cudart.pc", "gpustub.pc"];
    assert_eq!(files("pkgconfig"), expected);
    assert!(!directory.join("stubs/lib").exists());
}

/// Exports cuda, cudart and nvrtc to `stubs`.
fn export_three(directory: &Path, more: &[&str]) {
    let command = ["export", "stubs", "nvrtc", "cudart", "cuda"];
    let options = ["--header-version=13", "--out-dir=stubs"];
    ends(0, directory, &[&command[..], &options, more].concat());
}

#[test]
fn generated_shared_libraries_link() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "prog.c", PROGRAM);
    export_three(directory, &["--type=shared"]);
    let file = "libgpustub_cuda_cudart_nvrtc.so";
    let lib = directory.join("stubs/lib");
    let shipped: Vec<_> = fs::read_dir(&lib)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(shipped, [file]);
    let rpath = format!("-Wl,-rpath,{}", lib.display());
    link_and_run(
        directory,
        &["-L", "stubs/link", "-lnvrtc", "-lcudart", "-lcuda", &rpath],
    );
    let (list, _) = ends(0, directory, &["symbols", &format!("stubs/lib/{file}")]);
    assert!(list.contains(&format!("@soname {file}\n")), "{list}");
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
    export_three(directory, &["--sources-only"]);
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
