//! `repair` of packages that bring GPU libraries: the loaders and copies that images keep, since a stub would find those
//! of the system only. Wheels that are not written.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::repair::{COUNT, cudart, image};
use super::repair_wheels::{NAME, contents, needed, wheel, wheel_of};
use super::{cc, ends, write};

/// A wheel whose image calls `function` of a library that the wheel brings.
struct Case {
    /// Path of the library; its soname is the file name, as tools that rename libraries leave it.
    library: &'static str,
    function: &'static str,
    /// Soname of a library that this one needs, and that the wheel lacks.
    lacks: Option<&'static str>,
    options: &'static [&'static str],
    /// Whether the image keeps the library.
    is_kept: bool,
}

const OPENCL: &str = "acme.libs/libOpenCL-5519dec5.so.1.0.0";
const CUDART: &str = "acme.libs/libcudart-5a077122.so.12.0.107";
const REMOVE: &[&str] = &["--remove-copies"];

#[rustfmt::skip]
const CASES: [Case; 8] = [
    Case { library: OPENCL, function: "clGetPlatformIDs", lacks: None, options: &[], is_kept: true },
    Case { library: OPENCL, function: "clGetPlatformIDs", lacks: None, options: REMOVE, is_kept: true },
    Case { library: "acme.libs/libvulkan-d2ad6f56.so.1.1.97", function: "vkCreateInstance", lacks: None, options: REMOVE, is_kept: true },
    Case { library: CUDART, function: "cudaGetDeviceCount", lacks: None, options: &[], is_kept: true },
    Case { library: CUDART, function: "cudaGetDeviceCount", lacks: None, options: REMOVE, is_kept: false },
    Case { library: "acme/libcudart.so.12", function: "cudaGetDeviceCount", lacks: None, options: REMOVE, is_kept: true },
    // The driver's library works with its own kernel module only.
    Case { library: "acme.libs/libcuda-1234abcd.so.1", function: "cuInit", lacks: None, options: &[], is_kept: false },
    Case { library: "acme.libs/libcublas-1234abcd.so.12.9", function: "cublasCreate_v2", lacks: Some("libcublasLt.so.12"), options: &[], is_kept: false },
];

/// Compiles a library with these functions, which return 7.
fn library(directory: &Path, path: &str, function: &str, more: &[&str]) {
    fs::create_dir_all(directory.join(path).parent().unwrap()).unwrap();
    let source = format!("{function}.c");
    write(
        directory,
        &source,
        &format!("int {function}(void *p) {{ return 7; }}\n"),
    );
    let soname = format!("-Wl,-soname,{}", path.rsplit('/').next().unwrap());
    let options = [
        "-shared",
        "-fPIC",
        &soname,
        "-o",
        path,
        &source,
        "-Wl,--no-as-needed",
    ];
    cc(directory, &[&options[..], more].concat());
}

impl Case {
    fn check(&self) {
        let context = format!("{} {:?}", self.library, self.options);
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let lacked = self.lacks.map(|soname| format!("link/{soname}"));
        if let Some(lacked) = &lacked {
            library(directory, lacked, "cublasLtCreate", &[]);
        }
        let path = format!("content/{}", self.library);
        let needs: Vec<&str> = lacked.iter().map(String::as_str).collect();
        library(directory, &path, self.function, &needs);
        fs::create_dir_all(directory.join("content/acme")).unwrap();
        // The image uses libc, and so has symbol versions.
        let code = format!(
            "int getpid(void), {0}(void *); int f(void) {{ return getpid() ? {0}(0) : 0; }}\n",
            self.function
        );
        write(directory, "core.c", &code);
        let runpath = "-Wl,-rpath,$ORIGIN:$ORIGIN/../acme.libs,--allow-shlib-undefined";
        let core = "content/acme/_core.so";
        let options = ["-shared", "-fPIC", "-o", core, "core.c", &path, runpath];
        cc(directory, &options);
        wheel(directory, &[]);

        let repair = ["repair", NAME, "--out-dir", "out"];
        let (_, err) = ends(0, directory, &[&repair[..], self.options].concat());
        // Again: the output is known as that of gpustub.
        ends(
            0,
            directory,
            &[&repair[..], self.options, &["--dry-run"]].concat(),
        );
        let [original, output] = [directory.join(NAME), directory.join("out").join(NAME)];
        if self.is_kept {
            assert!(
                err.contains("it brings its GPU libraries"),
                "{context}: {err}"
            );
            assert!(
                fs::read(original).unwrap() == fs::read(output).unwrap(),
                "{context}"
            );
            let (_, err) = ends(0, directory, &["check", NAME]);
            assert!(err.contains("nothing found"), "{context}: {err}");
        } else {
            let after = contents(&output);
            let stub = &needed(&after, "acme/_core.so")[0];
            assert_eq!(stub, "libgpustub_acme_1_0.so", "{context}");
            let is_removed = self.options == REMOVE;
            assert_eq!(after.contains_key(self.library), !is_removed, "{context}");
        }
    }
}

#[test]
fn libraries_that_a_wheel_brings_are_kept() {
    for case in CASES {
        case.check();
    }
}

/// An image that is edited for another library calls the loader of its package as before.
#[test]
fn edited_images_call_the_loader_of_their_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let loader = "tree/libOpenCL-5519dec5.so.1.0.0";
    library(directory, loader, "clGetPlatformIDs", &[]);
    let main = format!(
        "#include <stdio.h>\nint clGetPlatformIDs(void *);\n{COUNT}\n\
         int main(void) {{ printf(\"%d %d\\n\", clGetPlatformIDs(0), count()); }}\n"
    );
    image(
        directory,
        "tree/app",
        &main,
        &[loader, "-Wl,-rpath,$ORIGIN"],
    );
    let repair = ["repair", "tree", "--out-dir", "out", "-v"];
    let (_, err) = ends(0, directory, &repair);
    for line in [
        "Editing tree/app: without libcudart.so.12",
        "Keeping tree/app: with libOpenCL-5519dec5.so.1.0.0 of the package",
    ] {
        assert!(err.contains(line), "{err}");
    }
    let mut app = Command::new(directory.join("out/tree/app"));
    let output = app.env("GPUSTUB_OPENCL_PATH", "off").output().unwrap();
    // cudaErrorInsufficientDriver.
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "7 3500\n",
        "{output:?}"
    );
}

/// A copy that stays has the major of the headers that the image was compiled against.
#[test]
fn copies_that_stay_name_the_headers() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let copy = "tree/libcudart-5a077122.so.12.0.107";
    library(directory, copy, "cudaGetDeviceCount", &[]);
    library(directory, "link/libcuda.so.1", "cuCtxCreate_v2", &[]);
    let code = "int getpid(void), cuCtxCreate_v2(void *), cudaGetDeviceCount(void *);\n\
        int f(void) { return getpid() ? cuCtxCreate_v2(0) + cudaGetDeviceCount(0) : 0; }\n";
    write(directory, "user.c", code);
    let options = ["-shared", "-fPIC", "-o", "tree/libuser.so", "user.c", copy];
    let driver = ["link/libcuda.so.1", "-Wl,-rpath,$ORIGIN"];
    cc(directory, &[&options[..], &driver].concat());
    let repair = ["repair", "tree", "--out-dir", "out", "--dry-run"];
    let (_, err) = ends(0, directory, &repair);
    assert!(err.contains("1 function cuda (headers 12)"), "{err}");
}

/// A wheel whose `_deps.so` needs libcudart and calls no function, as PyTorch's `libtorch_global_deps.so`.
struct LoadedForOthers {
    /// Further libraries that `_deps.so` needs, below `link`.
    needs: &'static [&'static str],
    /// Whether `_deps.so` also needs `_core.so`, whose functions explain the need of libcudart.
    needs_core: bool,
    /// Libraries that `_core.so` needs beside libcudart, whose functions it calls.
    core_needs: &'static [&'static str],
    /// The reason in the message about `_deps.so`; `None`: it is edited.
    reason: Option<&'static str>,
}

#[rustfmt::skip]
const LOADED_FOR_OTHERS: [LoadedForOthers; 5] = [
    LoadedForOthers { needs: &[], needs_core: false, core_needs: &[], reason: None },
    // There are no stubs of this library.
    LoadedForOthers { needs: &[], needs_core: false, core_needs: &["libcusparseLt.so.0"], reason: Some("may load it for `_core.so`, which stays as it is") },
    LoadedForOthers { needs: &["libother.so"], needs_core: false, core_needs: &[], reason: Some("may load it for libother.so of another package") },
    // A plugin of OpenMM is linked with what its base library calls.
    LoadedForOthers { needs: &["libother.so"], needs_core: true, core_needs: &[], reason: None },
    LoadedForOthers { needs: &["libz.so.1"], needs_core: false, core_needs: &[], reason: None },
];

#[test]
fn images_that_load_libraries_for_others_keep_them() {
    for LoadedForOthers {
        needs,
        needs_core,
        core_needs,
        reason,
    } in LOADED_FOR_OTHERS
    {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        cudart(directory, "12");
        let link = |soname: &&str| {
            let path = format!("link/{soname}");
            library(directory, &path, "other", &[]);
            path
        };
        let mut needs: Vec<String> = needs.iter().map(link).collect();
        if needs_core {
            needs.extend([
                "content/acme/_core.so".to_owned(),
                "-Wl,-rpath,$ORIGIN".to_owned(),
            ]);
        }
        let core_needs: Vec<String> = core_needs.iter().map(link).collect();
        for (name, code, needs) in [("_core", COUNT, &core_needs), ("_deps", "", &needs)] {
            let soname = format!("-Wl,--no-as-needed,-soname,{name}.so");
            let mut options = vec!["-shared", &soname];
            options.extend(needs.iter().map(String::as_str));
            image(
                directory,
                &format!("content/acme/{name}.so"),
                code,
                &options,
            );
        }
        wheel(directory, &[]);
        let before = contents(&directory.join(NAME));
        let code = i32::from(reason.is_some());
        let (_, err) = ends(code, directory, &["repair", NAME, "--out-dir", "out"]);
        let Some(reason) = reason else {
            let after = contents(&directory.join("out").join(NAME));
            assert!(!needed(&after, "acme/_deps.so").contains(&"libcudart.so.12".to_owned()));
            continue;
        };
        let line = format!("`_deps.so` calls no function of libcudart.so.12, and {reason}");
        assert!(err.contains(&line), "{err}");
        let output = directory.join("out").join(NAME);
        assert_eq!(output.exists(), core_needs.is_empty(), "{err}");
        if output.exists() {
            let after = contents(&output);
            assert!(before["acme/_deps.so"] == after["acme/_deps.so"]);
            assert!(before["acme/_core.so"] != after["acme/_core.so"]);
        }
    }
}

/// A wheel that is missing from the output is named, apart from those that are written.
#[test]
fn wheels_that_are_not_written_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    wheel(directory, &[]);
    fs::remove_dir_all(directory.join("content")).unwrap();
    let code = "extern int cudaData; int f(void) { return cudaData; }";
    image(directory, "content/data/_core.so", code, &["-shared"]);
    let data = NAME.replace("acme", "data");
    wheel_of(directory, "data", &[], &data);
    let repair = ["repair", NAME, &data, "--out-dir", "out"];
    for (option, lines) in [
        (&["--dry-run"][..], ["Editing acme", "Skipping out/data"]),
        (&[], ["Repaired out/acme", "Not written out/data"]),
    ] {
        let (_, err) = ends(1, directory, &[&repair, option].concat());
        assert!(lines.iter().all(|line| err.contains(line)), "{err}");
        assert!(
            err.contains(&format!("out/{data}: no image could be edited\n")),
            "{err}"
        );
    }
    assert!(!directory.join("out").join(&data).exists());
}
