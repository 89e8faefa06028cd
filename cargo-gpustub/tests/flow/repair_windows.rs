//! `repair` of wheels, programs and DLLs for Windows: contents of wheels, libraries that stay, and what is refused. Repaired
//! images are executed by `tests/tests/windows/repair.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_image::PeImage;

use super::repair_wheels::{compare_with_page, contents, hash_and_size, wheel_of};
use super::{ended, ends, gpustub, run, write};

const NAME: &str = "acme-1.0-cp312-cp312-win_amd64.whl";
const STUB: &str = "gpustub_acme_1_0.dll";
const CUDART: &str = "cudart64_12.dll";
const COPY: &str = "cudart64_12-c8a0a2ff1ac1f9ef9ec7ae4fb74ba7c5.dll";
const COUNT: &str = "cudaGetDeviceCount";

fn mingw(directory: &Path, program: &str, arguments: &[&str]) {
    let mut command = Command::new(format!("x86_64-w64-mingw32-{program}"));
    let output = command.current_dir(directory).args(arguments).output();
    let output = output.unwrap_or_else(|e| panic!("{program}: {e}; ./tests/run installs it"));
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {output:?}"
    );
}

/// Compiles a DLL that calls a function of another one, which is a line of a module definition file.
fn image(directory: &Path, path: &str, dll: &str, line: &str) {
    let path = directory.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let name = line.split(' ').next().unwrap();
    let reference = if line.ends_with(" DATA") {
        format!("__declspec(dllimport) extern int {name}; int f(void) {{ return {name}; }}")
    } else {
        format!("int {name}(void *); int f(void) {{ return {name}(0); }}")
    };
    write(directory, "image.c", &reference);
    write(
        directory,
        "image.def",
        &format!("LIBRARY {dll}\nEXPORTS\n{line}\n"),
    );
    mingw(
        directory,
        "dlltool",
        &["-d", "image.def", "-l", "libimage.a"],
    );
    let output = path.to_str().unwrap();
    mingw(
        directory,
        "gcc",
        &["-shared", "-o", output, "image.c", "libimage.a"],
    );
}

/// DLLs that an image needs, apart from those of Windows.
fn needed(bytes: &[u8]) -> Vec<String> {
    let image = PeImage::parse(bytes).unwrap();
    let dlls = image.imports.iter().map(|import| import.dll.to_owned());
    dlls.filter(|dll| !["KERNEL32.dll", "msvcrt.dll"].contains(&dll.as_str()))
        .collect()
}

fn repair(code: i32, directory: &Path, file: &str, options: &[&str]) -> String {
    let arguments = [&["repair", file, "-v", "--out-dir", "out"][..], options].concat();
    ends(code, directory, &arguments).1
}

fn repaired(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    contents(&directory.join("out").join(NAME))
}

#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn repaired_wheel_has_a_stub_library_beside_each_image() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let images = ["acme/_core.pyd", "acme/sub/_more.pyd"];
    for path in images {
        image(directory, &format!("content/{path}"), CUDART, COUNT);
    }
    image(directory, "content/acme/other.dll", "other.dll", "other");
    let loader = "import os\nos.add_dll_directory(os.environ['CUDA_PATH'])\nctypes.WinDLL('cudart64_12.dll')\n";
    wheel_of(directory, "acme", &[("acme/__init__.py", loader)], NAME);
    let before = contents(&directory.join(NAME));
    let (_, err) = ends(1, directory, &["check", NAME]);
    assert!(err.contains("error[needed-toolkit]"), "{err}");

    let dry_run = repair(0, directory, NAME, &["--dry-run"]);
    let err = repair(0, directory, NAME, &[]);
    for line in [
        "Adding acme/gpustub_acme_1_0.dll: 1 function cudart (headers 12)\n",
        "Adding acme/sub/gpustub_acme_1_0.dll: 1 function cudart (headers 12)\n",
        "!acme/_core.pyd: without cudart64_12.dll\n",
        "!acme/__init__.py:3",
    ] {
        assert!(
            dry_run.contains(line) && err.contains(line),
            "{line}: {dry_run}{err}"
        );
    }
    let after = repaired(directory);
    for path in images {
        assert_eq!(needed(&before[path]), [CUDART]);
        assert_eq!(needed(&after[path]), [STUB]);
    }
    let stub = &after["acme/gpustub_acme_1_0.dll"];
    assert_eq!(*stub, after["acme/sub/gpustub_acme_1_0.dll"]);
    assert_eq!(needed(stub), [""; 0], "Windows has all that it needs");
    let exports = PeImage::parse(stub).unwrap().exports;
    let names: Vec<_> = exports.iter().filter_map(|export| export.name).collect();
    assert_eq!(names, [COUNT]);
    for path in [
        "acme/other.dll",
        "acme/__init__.py",
        "acme-1.0.dist-info/WHEEL",
    ] {
        assert_eq!(before[path], after[path]);
    }
    let (out, err) = ends(0, directory, &["check", &format!("out/{NAME}")]);
    assert!(err.contains("nothing found"), "{out}{err}");

    // The same bytes elsewhere, and in the directory of an unpacked wheel; nothing is left to repair.
    ends(0, directory, &["repair", NAME, "--out-dir", "again"]);
    let [once, again] =
        ["out", "again"].map(|name| fs::read(directory.join(name).join(NAME)).unwrap());
    assert_eq!(once, again);
    let (_, err) = ends(
        0,
        directory,
        &["repair", &format!("out/{NAME}"), "--out-dir", "twice"],
    );
    assert!(err.contains("repaired before, with gpustub_"), "{err}");
    let err = repair(0, directory, "content", &[]);
    assert!(err.contains("Repaired out/content: 2 images"), "{err}");
    let record =
        fs::read_to_string(directory.join("out/content/acme-1.0.dist-info/RECORD")).unwrap();
    assert_eq!(record.matches("/gpustub_").count(), 2, "{record}");
}

#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn repair_page_shows_the_real_output() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    image(directory, "content/demo/_core.pyd", CUDART, COUNT);
    wheel_of(directory, "demo", &[], "demo-1.0-cp312-cp312-win_amd64.whl");
    compare_with_page(directory, 1);
}

/// A wheel whose image calls a function of a library, and may bring it.
struct Case {
    /// The library.
    dll: &'static str,
    function: &'static str,
    /// Directory of the library in the wheel.
    directory: Option<&'static str>,
    options: &'static [&'static str],
    /// The library that the image needs afterwards, or the reason why it stays as it is.
    needs: Result<&'static str, &'static str>,
}

const REMOVE: &[&str] = &["--remove-copies"];
const OPENCL: &str = "OpenCL-c8a0a2ff1ac1f9ef9ec7ae4fb74ba7c5.dll";

#[rustfmt::skip]
const CASES: [Case; 11] = [
    Case { dll: COPY, function: COUNT, directory: Some("acme.libs"), options: &[], needs: Ok(COPY) },
    Case { dll: COPY, function: COUNT, directory: Some("acme.libs"), options: REMOVE, needs: Ok(STUB) },
    Case { dll: CUDART, function: COUNT, directory: Some("acme"), options: REMOVE, needs: Ok(CUDART) },
    Case { dll: OPENCL, function: "clGetPlatformIDs", directory: Some("acme.libs"), options: REMOVE, needs: Ok(OPENCL) },
    Case { dll: "OpenCL.dll", function: "clGetPlatformIDs", directory: None, options: &[], needs: Ok(STUB) },
    Case { dll: "nvcuda.dll", function: "cuInit", directory: Some("acme"), options: &[], needs: Ok(STUB) },
    Case { dll: "vulkan-1.dll", function: "vkCreateInstance", directory: None, options: &[], needs: Err("needs vulkan-1.dll, for which there are no stubs") },
    Case { dll: CUDART, function: "cudaGetDeviceCount @7 NONAME", directory: None, options: &[], needs: Err("imports function 7 of cudart64_12.dll by its number") },
    Case { dll: CUDART, function: "NvOptimusEnablementCuda DATA", directory: None, options: &[], needs: Err("NvOptimusEnablementCuda") },
    Case { dll: CUDART, function: "cudaTomorrow", directory: None, options: &[], needs: Err("imports functions for which there are no stubs: cudaTomorrow") },
    Case { dll: "amdhip64.dll", function: "hipPointerGetAttributes", directory: None, options: &[], needs: Err("set `--header-version rocm=MAJOR`") },
];

impl Case {
    fn check(&self) {
        let context = format!("{} {:?}", self.dll, self.options);
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        image(directory, "content/acme/_core.pyd", self.dll, self.function);
        let library = self
            .directory
            .map(|parent| format!("{parent}/{}", self.dll));
        if let Some(library) = &library {
            image(
                directory,
                &format!("content/{library}"),
                "other.dll",
                "other",
            );
        }
        wheel_of(directory, "acme", &[], NAME);
        let code = i32::from(self.needs.is_err());
        let err = repair(code, directory, NAME, self.options);
        match self.needs {
            Err(reason) => {
                let is_reported = err.contains("error[unsupported-image]: `_core.pyd` ");
                assert!(is_reported && err.contains(reason), "{context}: {err}");
                assert!(!directory.join("out").join(NAME).exists(), "{context}");
            }
            Ok(dll) => {
                let files = repaired(directory);
                assert_eq!(needed(&files["acme/_core.pyd"]), [dll], "{context}: {err}");
                let is_removed = self.dll == COPY && self.options == REMOVE;
                let has_library = library.is_some_and(|path| files.contains_key(&path));
                assert_eq!(
                    has_library,
                    self.directory.is_some() && !is_removed,
                    "{context}"
                );
            }
        }
    }
}

#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn libraries_that_images_keep() {
    for case in &CASES[..6] {
        case.check();
    }
}

#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn images_that_cannot_be_repaired() {
    for case in &CASES[6..] {
        case.check();
    }
}

/// delvewheel's `__init__.py` loads the DLLs of a list, and before version 1.2 fails if one is missing.
#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn lists_of_dlls_lose_removed_copies() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    image(directory, "content/acme/_core.pyd", COPY, COUNT);
    let copy = format!("content/acme.libs/{COPY}");
    image(directory, &copy, "other.dll", "other");
    let list = "acme.libs/.load-order-acme-1.0";
    let text = format!("other.dll\n{COPY}\n");
    wheel_of(directory, "acme", &[(list, &text)], NAME);
    repair(0, directory, NAME, &[]);
    assert_eq!(repaired(directory)[list], text.as_bytes());
    fs::remove_dir_all(directory.join("out")).unwrap();
    let err = repair(0, directory, NAME, REMOVE);
    let line = format!("Editing {NAME}!{list}: without removed copies\n");
    assert!(err.contains(&line), "{err}");
    assert_eq!(repaired(directory)[list], b"other.dll\n");

    repair(0, directory, "content", REMOVE);
    let output = directory.join("out/content");
    let after = fs::read_to_string(output.join(list)).unwrap();
    assert_eq!(after, "other.dll\n");
    let record = fs::read_to_string(output.join("acme-1.0.dist-info/RECORD")).unwrap();
    let line = format!("{list},{}\n", hash_and_size(after.as_bytes()));
    assert!(record.contains(&line), "{record}");

    fs::write(directory.join("content").join(list), b"\xff\n").unwrap();
    let err = repair(0, directory, "content", REMOVE);
    assert!(
        err.contains("warning[python-loader]: may list a removed DLL"),
        "{err}"
    );
}

#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn signatures_are_removed_on_request() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    image(directory, "signed.dll", CUDART, COUNT);
    let mut bytes = fs::read(directory.join("signed.dll")).unwrap();
    let header = u32::from_le_bytes(bytes[60..64].try_into().unwrap()) as usize;
    // The fifth data directory: certificates, by their offset. A file is signed at an address that 8 divides.
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    let length = bytes.len() as u32;
    bytes[header + 168..header + 172].copy_from_slice(&length.to_le_bytes());
    bytes[header + 172..header + 176].copy_from_slice(&8_u32.to_le_bytes());
    bytes.extend([8, 0, 0, 0, 0, 2, 2, 0]);
    fs::write(directory.join("signed.dll"), &bytes).unwrap();
    let err = repair(1, directory, "signed.dll", &[]);
    assert!(
        err.contains("`signed.dll` is signed: ") && err.contains("`--unsign`"),
        "{err}"
    );
    repair(0, directory, "signed.dll", &["--unsign"]);
    let repaired = fs::read(directory.join("out/signed.dll")).unwrap();
    assert_eq!(repaired.len() as u32, length);
    // The output was written by gpustub, and is replaced.
    repair(0, directory, "signed.dll", &["--unsign"]);
}

/// A program that was cut anywhere between the signature of its headers and its end.
#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn damaged_images_are_errors() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    image(directory, "image.dll", CUDART, COUNT);
    mingw(directory, "strip", &["image.dll"]);
    let call = format!("int {COUNT}(void *);\nint main(void) {{ return {COUNT}(0); }}\n");
    write(directory, "main.c", &call);
    mingw(
        directory,
        "gcc",
        &["-s", "-o", "rt.exe", "main.c", "libimage.a"],
    );
    for file in ["image.dll", "rt.exe"] {
        repair(0, directory, file, &["--dry-run"]);
        let bytes = fs::read(directory.join(file)).unwrap();
        let header = u32::from_le_bytes(bytes[60..64].try_into().unwrap()) as usize;
        let lengths = [
            header + 30,
            header + 200,
            600,
            1025,
            bytes.len() / 4,
            bytes.len() / 2,
        ];
        for length in [&lengths[..], &[bytes.len() - 513]].concat() {
            fs::write(directory.join(file), &bytes[..length]).unwrap();
            ends(1, directory, &["check", file]);
            let err = repair(1, directory, file, &[]);
            assert!(
                err.contains(&format!(
                    "error[unsupported-image]: `{file}` is truncated: "
                )) && err.contains(&format!("Not written out/{file}: ")),
                "{length} of {}: {err}",
                bytes.len()
            );
        }
    }

    // In a wheel, beside an image that is repaired.
    fs::create_dir_all(directory.join("content/acme")).unwrap();
    fs::copy(
        directory.join("rt.exe"),
        directory.join("content/acme/rt.exe"),
    )
    .unwrap();
    image(directory, "content/acme/_core.pyd", CUDART, COUNT);
    wheel_of(directory, "acme", &[], NAME);
    let err = repair(1, directory, NAME, &[]);
    assert!(err.contains("`rt.exe` is truncated: "), "{err}");
    assert_eq!(needed(&repaired(directory)["acme/_core.pyd"]), [STUB]);
}

/// A DLL starts without a DLL of delayed imports, whose helper would not find the stub library.
#[test]
#[ignore = "needs mingw-w64, clang, lld and llvm 19: ./tests/run"]
fn delayed_imports_of_dlls_stay() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    image(directory, "image.dll", CUDART, COUNT);
    let link = |arguments: &[&str]| {
        let mut command = Command::new(arguments[0]);
        let output = command
            .current_dir(directory)
            .args(&arguments[1..])
            .output();
        assert!(output.unwrap().status.success(), "{arguments:?}");
    };
    let machine = ["-m", "i386:x86-64"];
    link(
        &[
            &["llvm-dlltool-19"],
            &machine[..],
            &["-d", "image.def", "-l", "image.lib"],
        ]
        .concat(),
    );
    mingw(directory, "gcc", &["-c", "image.c"]);
    let clang = [
        "clang-19",
        "--target=x86_64-w64-mingw32",
        "-fuse-ld=lld",
        "-shared",
    ];
    let delayed = ["-Wl,-delayload,cudart64_12.dll", "-o", "delayed.dll"];
    link(&[&clang, &delayed[..], &["image.o", "image.lib"]].concat());
    let bytes = fs::read(directory.join("delayed.dll")).unwrap();
    assert_eq!(PeImage::parse(&bytes).unwrap().delay_imports[0].dll, CUDART);
    let err = repair(0, directory, "delayed.dll", &[]);
    assert!(err.contains("no GPU library to replace"), "{err}");
}

#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn a_missing_compiler_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    image(directory, "image.dll", CUDART, COUNT);
    let arguments = ["repair", "image.dll", "--out-dir", "out"];
    let mut command = gpustub(directory, &arguments);
    let output = command.env("PATH", directory).output().unwrap();
    let (_, err) = ended(101, output, &arguments);
    assert!(
        err.contains(
            "no C compiler for x86_64-pc-windows-gnu: cannot run `x86_64-w64-mingw32-gcc`"
        ) && err.contains("apt install gcc-mingw-w64-x86-64"),
        "{err}"
    );
    assert!(
        run(
            directory,
            &["repair", "image.dll", "--out-dir", "out", "--dry-run"]
        )
        .status
        .success()
    );
}

/// A DLL that gpustub does not know, described by an import library, and copies of delvewheel.
#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn user_defined_dlls_are_replaced() {
    let library = ["--library", "acme=libimage.a", "--returns", "status"];
    let copy = "ACME64_3-c8a0a2ff1ac1f9ef9ec7ae4fb74ba7c5.dll";
    for (dll, described) in [
        ("acme64_3.dll", "acme64_3.dll"),
        (copy, "ACME64_3.dll"),
        ("acme64_3.dll", "acme64_4.dll"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        image(directory, "content/acme/_core.pyd", dll, "acmeOpen");
        wheel_of(directory, "acme", &[], NAME);
        // The import library is that of the last DLL.
        image(directory, "other.dll", described, "acmeOpen");
        if described == "acme64_4.dll" {
            let printed = repair(1, directory, NAME, &library);
            let reason = "needs acme64_3.dll, another version of `acme` than that of `--library`";
            assert!(printed.contains(reason), "{printed}");
            continue;
        }
        let printed = repair(0, directory, NAME, &library);
        assert!(
            printed.contains("Adding acme/gpustub_acme_1_0.dll: 1 function acme\n")
                && printed.contains(&format!("_core.pyd: without {dll}")),
            "{printed}"
        );
        assert_eq!(needed(&repaired(directory)["acme/_core.pyd"]), [STUB]);
    }
}
