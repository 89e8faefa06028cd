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
    /// C code of `_deps.so`.
    code: &'static str,
    /// Further libraries that `_deps.so` needs: below `link`, or `_core.so`.
    needs: &'static [&'static str],
    /// C code and libraries of `_core.so`, which needs libcudart.
    core: &'static str,
    core_needs: &'static [&'static str],
    /// The reason in the message about `_deps.so`; `None`: it is edited.
    reason: Option<&'static str>,
    /// Whether some image is edited.
    is_written: bool,
}

const EDITED: LoadedForOthers = LoadedForOthers {
    code: "",
    needs: &[],
    core: COUNT,
    core_needs: &[],
    reason: None,
    is_written: true,
};
const NO_STUBS: &[&str] = &["libcudensitymat.so.0"];
const FOR_CORE: Option<&str> = Some("may load it for `_core.so`, which stays as it is");

#[rustfmt::skip]
const LOADED_FOR_OTHERS: [LoadedForOthers; 8] = [
    EDITED,
    LoadedForOthers { core_needs: NO_STUBS, reason: FOR_CORE, is_written: false, ..EDITED },
    // A program is read before the libraries that it opens.
    LoadedForOthers { core: "int main(void) { return 0; }\n", core_needs: NO_STUBS, reason: None, ..EDITED },
    LoadedForOthers { needs: &["libother.so"], reason: Some("may load it for libother.so of another package"), ..EDITED },
    // A library of the system.
    LoadedForOthers { needs: &["libssl.so.3"], ..EDITED },
    // A plugin of OpenMM is linked with what its base library calls.
    LoadedForOthers { needs: &["libother.so", "_core.so"], ..EDITED },
    LoadedForOthers {
        code: "void *dlsym(void *, const char *);\nvoid *f(void) { return dlsym(0, \"cudaGetDeviceCount\"); }\n",
        reason: Some("may load it for functions that it looks up with dlsym"), ..EDITED
    },
    // Nothing of the package explains that `_core.so` needs libcudart, and so both stay.
    LoadedForOthers { core: "", core_needs: &["libother.so"], reason: FOR_CORE, is_written: false, ..EDITED },
];

impl LoadedForOthers {
    fn check(&self) {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        cudart(directory, "12");
        self.image(directory, "_core", self.core, self.core_needs);
        self.image(directory, "_deps", self.code, self.needs);
        wheel(directory, &[]);
        let before = contents(&directory.join(NAME));
        let is_refused = self.reason.is_some() || self.core_needs == NO_STUBS;
        let repair = ["repair", NAME, "--out-dir", "out"];
        let (_, err) = ends(i32::from(is_refused), directory, &repair);
        if let Some(reason) = self.reason {
            let line = format!("`_deps.so` calls no function of libcudart.so.12, and {reason}");
            assert!(err.contains(&line), "{err}");
        }
        let output = directory.join("out").join(NAME);
        assert_eq!(output.exists(), self.is_written, "{err}");
        if self.is_written {
            let after = contents(&output);
            let is_kept = before["acme/_deps.so"] == after["acme/_deps.so"];
            assert_eq!(is_kept, self.reason.is_some(), "{err}");
        }
    }

    fn image(&self, directory: &Path, name: &str, code: &str, needs: &[&str]) {
        let soname = format!("-Wl,--no-as-needed,-rpath,$ORIGIN,-soname,{name}.so");
        let mut options = vec![soname];
        if !code.contains("int main") {
            options.push("-shared".to_owned());
        }
        for need in needs {
            let is_core = *need == "_core.so";
            let path = format!("{}/{need}", if is_core { "content/acme" } else { "link" });
            if !is_core {
                library(directory, &path, "other", &[]);
            }
            options.push(path);
        }
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        image(
            directory,
            &format!("content/acme/{name}.so"),
            code,
            &options,
        );
    }
}

#[test]
fn images_that_load_libraries_for_others_keep_them() {
    for case in LOADED_FOR_OTHERS {
        case.check();
    }
}

/// A program whose plugin finds a GPU function in the library that the program needs.
#[test]
fn programs_load_libraries_for_their_plugins() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let main = "int main(void) { return 0; }\n";
    image(directory, "tree/app", main, &["-Wl,--no-as-needed"]);
    write(directory, "plugin.c", COUNT);
    let plugin = ["-shared", "-fPIC", "-o", "tree/plugin.so", "plugin.c"];
    cc(directory, &plugin);
    let (_, err) = ends(1, directory, &["repair", "tree", "--out-dir", "out"]);
    let line = "`app` calls no function of libcudart.so.12, and may load it for `plugin.so`, which stays as it is";
    assert!(err.contains(line), "{err}");
}

/// Copies that are removed are no code that stays.
#[test]
fn removed_copies_are_no_users() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    library(
        directory,
        "content/acme.libs/libcudart-5a077122.so.12.0.107",
        "cudaGetDeviceCount",
        &[],
    );
    let copy = "content/acme.libs/libcudart-5a077122.so.12.0.107";
    let blas = "content/acme.libs/libcublas-1234abcd.so.12.9";
    library(directory, blas, "cublasCreate_v2", &[copy]);
    fs::create_dir_all(directory.join("content/acme")).unwrap();
    write(
        directory,
        "core.c",
        "int getpid(void), cublasCreate_v2(void *);\nint f(void) { return getpid() ? cublasCreate_v2(0) : 0; }\n",
    );
    write(
        directory,
        "empty.c",
        "int getpid(void);\nint f(void) { return getpid(); }\n",
    );
    let run_path = "-Wl,--no-as-needed,-rpath,$ORIGIN/../acme.libs";
    for (source, output, library) in [
        ("core.c", "content/acme/_core.so", blas),
        ("empty.c", "content/acme/_empty.so", copy),
    ] {
        cc(
            directory,
            &["-shared", "-fPIC", "-o", output, source, run_path, library],
        );
    }
    wheel(directory, &[]);
    let (_, err) = ends(
        0,
        directory,
        &["repair", NAME, "--out-dir", "out", "--remove-copies"],
    );
    assert!(err.contains("2 copies removed"), "{err}");
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
