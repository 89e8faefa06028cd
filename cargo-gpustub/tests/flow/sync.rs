//! `init`, `add` and `sync`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{ACME, acme, ends, gpustub, package, repository, write};

fn manifest(directory: &Path) -> String {
    fs::read_to_string(directory.join("GpuStub.toml")).unwrap()
}

#[test]
fn user_defined_library_is_added_and_synced() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    acme(directory);
    write(directory, "GpuStub.toml", ACME);

    let (_, err) = ends(1, directory, &["sync"]);
    assert!(err.contains("error[missing-symbol-list]"), "{err}");
    assert!(err.contains("cargo gpustub add acme --from"), "{err}");
    let (_, err) = ends(2, directory, &["sync", "--from", "acme=libacme.so.3"]);
    assert!(
        err.contains("cargo gpustub add LIBRARY --from FILE"),
        "{err}"
    );
    let add = ["add", "acme", "--from", "libacme.so.3"];
    ends(0, directory, &[&add[..], &["--no-sync"]].concat());
    assert!(!directory.join("GpuStub.lock").exists());
    ends(0, directory, &["sync"]);
    let lock = fs::read_to_string(directory.join("GpuStub.lock")).unwrap();
    assert!(
        lock.contains("name = \"acme\"\nchecksum = \"sha256:"),
        "{lock}"
    );
    for arguments in [&add[..], &["sync"], &["sync", "--check"]] {
        let (out, err) = ends(0, directory, arguments);
        assert!(out.is_empty() && err.contains("Fresh"), "{out}{err}");
    }

    // An edit of the list is detected and shown.
    let path = directory.join("symbols/acme.symbols");
    let list = fs::read_to_string(&path).unwrap();
    fs::write(&path, list.replace("acmeWeak weak\n", "")).unwrap();
    let (diff, _) = ends(1, directory, &["sync", "--check"]);
    assert!(
        diff.contains("--- a/GpuStub.lock") && diff.contains("\n-checksum = "),
        "{diff}"
    );
}

/// The steps of a new user, up to a program that runs on a machine without the library.
#[test]
fn a_fresh_project_builds_and_runs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let queries = repository().join("crates/gpustub");
    let dependency = format!(
        "[dependencies]\ngpustub = {{ path = '{}' }}\n",
        queries.display()
    );
    package(directory, "fresh", &dependency);
    // The crates come from this tree, and their dependencies from the source of this build.
    let helper = repository().join("gpustub-build");
    let patch = format!(
        "[patch.crates-io]\ngpustub-build = {{ path = '{}' }}\n",
        helper.display()
    );
    write(directory, ".cargo/config.toml", &patch);
    fs::copy(
        repository().join("Cargo.lock"),
        directory.join("Cargo.lock"),
    )
    .unwrap();
    write(
        directory,
        "src/main.rs",
        "unsafe extern \"C\" { fn cudaGetDeviceCount(n: *mut i32) -> i32; }\n\
         fn main() { let mut n = -7; let r = unsafe { cudaGetDeviceCount(&mut n) }; println!(\"{r} {n}\");\n\
         for id in [\"cudart\", \"opencl\", \"nvrtc\"] { println!(\"{}\", gpustub::load(id) == Err(gpustub::Unavailable::UnknownLibrary)); } }\n",
    );
    // No function of OpenCL is called, but the image knows it.
    let add = ["add", "cudart", "opencl", "--header-version", "12"];
    ends(0, directory, &add);
    let output = Command::new(env!("CARGO"))
        .current_dir(directory)
        .args(["run", "--offline", "--quiet"])
        .env(
            "CARGO_TARGET_DIR",
            Path::new(env!("CARGO_TARGET_TMPDIR")).join("fresh"),
        )
        .env("GPUSTUB_CUDART_PATH", "off")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "35 0\nfalse\nfalse\ntrue\n", "{err}");
    ends(0, directory, &["sync", "--check"]);
    let (plan, _) = ends(0, directory, &["plan"]);
    assert!(
        plan.starts_with("fresh 0.1.0 (GpuStub.toml)\n  cudart: "),
        "{plan}"
    );
}

/// The text of each file below a directory, except cargo's lock file.
fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            texts.extend(files(&path));
        } else if !path.ends_with("Cargo.lock") {
            let bytes = fs::read(&path).unwrap();
            texts.insert(path, String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    texts
}

/// `add` and `remove` change all files or none.
#[test]
fn add_and_remove_write_nothing_if_sync_fails() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    acme(directory);
    let uneditable = "`build.rs` cannot be edited";
    for (script, code, command, cause) in [
        ("fn build() {}\n", 1, &["add", "opencl"][..], uneditable),
        (
            "fn build() {}\n",
            1,
            &["add", "acme", "--from", "libacme.so.3"],
            uneditable,
        ),
        (
            "fn main() {}\n",
            101,
            &["add", "opencl", "--locked"],
            "`--locked` was passed",
        ),
    ] {
        write(directory, "build.rs", script);
        let before = files(directory);
        let (_, err) = ends(code, directory, command);
        assert!(err.contains(cause), "{err}");
        let note = "nothing was written; `--no-sync` changes GpuStub.toml only";
        assert!(err.contains(note), "{err}");
        assert!(files(directory) == before, "{command:?}");
    }
    let before = files(directory);
    let (_, err) = ends(0, directory, &["add", "opencl", "--no-sync"]);
    assert!(err.contains("next: `cargo gpustub sync`"), "{err}");
    assert_eq!(files(directory).len(), before.len() + 1);
}

/// A dry run prints what the command then writes.
#[test]
fn add_and_remove_print_what_they_would_write() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    acme(directory);
    for command in [
        &["add", "opencl"][..],
        &[
            "add",
            "acme",
            "--from",
            "libacme.so.3",
            "--returns",
            "status",
        ],
        &["remove", "opencl"],
    ] {
        let before = files(directory);
        let (diff, err) = ends(0, directory, &[command, &["--dry-run"]].concat());
        assert!(err.contains("nothing was written (--dry-run)"), "{err}");
        assert!(files(directory) == before, "{command:?}");
        ends(0, directory, command);
        for (path, text) in files(directory) {
            let is_changed = before.get(&path) != Some(&text);
            let name = path.strip_prefix(directory).unwrap().display();
            let is_printed = diff.contains(&format!("+++ b/{name}\n"));
            assert_eq!(is_changed, is_printed, "{command:?} {name}");
        }
        let (_, err) = ends(0, directory, &["sync", "--check"]);
        assert!(err.contains("Fresh"), "{err}");
    }
}

/// From the last library to a package without a trace of gpustub.
#[test]
fn a_project_leaves_gpustub() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    write(directory, "src/main.rs", "fn main() {}\n");
    let before = files(directory);
    ends(0, directory, &["add", "opencl"]);
    let (_, err) = ends(0, directory, &["remove", "opencl"]);
    let parts = "the line `use user as _;` in `src/main.rs`, the build script `build.rs` and the \
                 build-dependency `gpustub-build` in `Cargo.toml`";
    let listed = err.contains(&format!("remove `GpuStub.toml`, {parts}"));
    assert!(listed && err.contains("GpuStub.lock"), "{err}");

    fs::remove_file(directory.join("GpuStub.toml")).unwrap();
    let (_, err) = ends(1, directory, &["sync", "--check"]);
    assert!(err.contains("`GpuStub.lock` does not agree"), "{err}");
    let (_, err) = ends(1, directory, &["sync"]);
    let reported =
        format!("error[out-of-sync]: package `user` has no GpuStub.toml, but still has {parts}\n");
    assert!(
        err.contains("Removed GpuStub.lock") && err.contains(&reported),
        "{err}"
    );
    // cargo resolves the graph for `check`.
    let patch = format!(
        "[patch.crates-io]\ngpustub-build = {{ path = '{}' }}\n",
        repository().join("gpustub-build").display()
    );
    write(directory, ".cargo/config.toml", &patch);
    fs::copy(
        repository().join("Cargo.lock"),
        directory.join("Cargo.lock"),
    )
    .unwrap();
    let (_, err) = ends(1, directory, &["check"]);
    assert!(err.contains(&reported), "{err}");
    fs::remove_dir_all(directory.join(".cargo")).unwrap();

    fs::remove_file(directory.join("build.rs")).unwrap();
    for (file, text) in &before {
        fs::write(file, text).unwrap();
    }
    assert_eq!(files(directory), before);
    let (_, err) = ends(101, directory, &["sync"]);
    assert!(err.contains("package `user` has no GpuStub.toml"), "{err}");
}

/// A note about the patch of the helper's version is for workspaces without one.
#[test]
fn a_patch_of_the_helper_is_proposed_once() {
    let helper = repository().join("gpustub-build");
    let patch = format!(
        "[patch.crates-io]\ngpustub-build = {{ path = '{}' }}\n",
        helper.display()
    );
    for (more, is_proposed) in [("", true), (patch.as_str(), false)] {
        let directory = tempfile::tempdir().unwrap();
        package(directory.path(), "user", more);
        let (_, err) = ends(0, directory.path(), &["add", "opencl"]);
        assert!(err.contains("Updated Cargo.toml"), "{err}");
        assert_eq!(err.contains("[patch.crates-io]"), is_proposed, "{err}");
    }
}

/// Output of `--check` and `--dry-run` for programs and people; neither writes a file.
#[test]
fn check_and_dry_run_write_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    write(directory, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    let (json, _) = ends(
        1,
        directory,
        &["sync", "--check", "--message-format", "json"],
    );
    let messages: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (key, texts) in [
        (
            "reason",
            ["operation", "operation", "operation", "diagnostic"],
        ),
        ("path", ["Cargo.toml", "build.rs", "GpuStub.lock", ""]),
        ("change", ["update", "create", "create", ""]),
        ("state", ["planned", "planned", "planned", ""]),
    ] {
        let column: Vec<&str> = messages
            .iter()
            .map(|message| message[key].as_str().unwrap_or(""))
            .collect();
        assert_eq!(column, texts);
    }
    let diff = messages[0]["diff"].as_str().unwrap();
    assert!(diff.ends_with("+gpustub-build = \"0.1\"\n"), "{json}");
    assert_eq!(messages[3]["code"], "out-of-sync");

    let (check_diff, _) = ends(1, directory, &["sync", "--check"]);
    let (dry_run_diff, err) = ends(0, directory, &["sync", "--dry-run"]);
    assert_eq!(check_diff, dry_run_diff);
    assert!(err.contains("nothing was written"), "{err}");
    assert!(!directory.join("build.rs").exists() && !directory.join("GpuStub.lock").exists());
}

#[test]
fn add_without_a_known_header_version_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    write(directory, "GpuStub.toml", "schema = 1\n");
    let (_, err) = ends(1, directory, &["add", "cudart", "opencl", "cudart"]);
    assert_eq!(err.matches("error[").count(), 1, "{err}");
    assert!(err.contains("header version of `cudart` unknown"), "{err}");
    let command = "`cargo gpustub add cudart opencl --header-version 13`";
    assert!(err.contains(command), "{err}");
    assert_eq!(manifest(directory), "schema = 1\n");

    let add = ["add", "cudart", "opencl", "--header-version", "none"];
    let (_, err) = ends(0, directory, &add);
    assert_eq!(err.matches("Adding").count(), 2, "{err}");
    assert_eq!(
        manifest(directory),
        "schema = 1\n\n[stub.cudart]\nheader-version = \"none\"\n\n[stub.opencl]\n"
    );

    // The file as it was committed before there was an error for it.
    write(directory, "GpuStub.toml", "schema = 1\n[stub.cudart]\n");
    for command in [&["sync"][..], &["sync", "--check"]] {
        let (_, err) = ends(1, directory, command);
        assert!(err.contains("error[missing-header-version]"), "{err}");
        assert!(err.contains("--> GpuStub.toml:2:7"), "{err}");
    }
    ends(1, directory, &["add", "cudart"]);
    let (_, err) = ends(0, directory, &["add", "cudart", "--toolkit", "cuda=12.8"]);
    assert!(
        err.contains("Found header version 12.8 (`--toolkit`)"),
        "{err}"
    );
    assert!(err.contains("Changing cudart"), "{err}");
    let table = "schema = 1\n[toolkit]\ncuda = \"12.8\"\n";
    write(directory, "GpuStub.toml", table);
    let (_, err) = ends(0, directory, &["add", "cuda"]);
    assert!(
        err.contains("Found header version 12.8 (`[toolkit]` of GpuStub.toml)"),
        "{err}"
    );
    ends(0, directory, &["sync"]);
}

#[test]
fn add_proposes_a_known_header_version() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(
        directory,
        "toolkit/include/cuda.h",
        "#define CUDA_VERSION 12080\n",
    );
    write(directory, "cudarc/src/lib.rs", "");
    write(
        directory,
        "cudarc/Cargo.toml",
        "[package]\nname = \"cudarc\"\nversion = \"0.17.0\"\n[features]\ncuda-12080 = []\ncuda-11080 = []\n",
    );
    let err = add_cudart(0, directory, "cuda-12080");
    let text = manifest(directory);
    assert!(
        text.ends_with("[stub.cudart]\nheader-version = \"12.8\"\n"),
        "{text}"
    );
    assert!(err.contains("include/cuda.h"), "{err}");
    assert!(
        err.contains("feature `cuda-12080` of cudarc 0.17.0"),
        "{err}"
    );
    let err = add_cudart(1, directory, "cuda-11080");
    assert_eq!(manifest(directory), "schema = 1\n");
    let help = "choose one: `cargo gpustub add -p user cudart --header-version 12.8`";
    assert!(
        err.contains("found several versions: 12.8 (") && err.contains(help),
        "{err}"
    );
}

/// Adds `cudart` to a package with this feature of `cudarc`; returns standard error.
fn add_cudart(code: i32, directory: &Path, feature: &str) -> String {
    let dependencies = format!(
        "[workspace]\n[dependencies]\ncudarc = {{ path = \"cudarc\", features = [\"{feature}\"] }}\n"
    );
    package(directory, "user", &dependencies);
    write(directory, "GpuStub.toml", "schema = 1\n");
    let output = gpustub(directory, &["add", "cudart"])
        .env("CUDA_HOME", directory.join("toolkit"))
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{err}");
    err
}

#[test]
fn the_header_of_rocm_is_found_by_its_own_variable() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    write(directory, "GpuStub.toml", "schema = 1\n");
    let version = "#define HIP_VERSION_MAJOR 6\n#define HIP_VERSION_MINOR 4\n";
    write(directory, "rocm/include/hip/hip_version.h", version);
    let output = gpustub(directory, &["add", "hip"])
        .env("ROCM_PATH", directory.join("rocm"))
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = manifest(directory);
    assert!(
        text.ends_with("[stub.hip]\nheader-version = \"6.4\"\n"),
        "{text}"
    );
}

/// Kills a `sync` of many files with SIGKILL after each number of status lines. Every file is then
/// old or new as a whole, and the next run completes the work without leaving other files behind.
#[cfg(unix)]
#[test]
fn a_killed_sync_leaves_whole_files() {
    const EXAMPLES: usize = 12;
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let old = "fn main() {}\n";
    let new = "use user as _; // its build script has the GPU stubs\n\nfn main() {}\n";
    let examples: Vec<String> = (0..EXAMPLES).map(|n| format!("examples/e{n}.rs")).collect();
    for line_count in 0..EXAMPLES {
        package(directory, "user", "");
        write(directory, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
        for example in &examples {
            write(directory, example, old);
        }
        for file in ["build.rs", "GpuStub.lock"] {
            if directory.join(file).exists() {
                fs::remove_file(directory.join(file)).unwrap();
            }
        }
        let mut child = gpustub(directory, &["sync"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut status = BufReader::new(child.stderr.take().unwrap());
        for _ in 0..line_count {
            status.read_line(&mut String::new()).unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        for example in &examples {
            let text = fs::read_to_string(directory.join(example)).unwrap();
            assert!(text == old || text == new, "{text:?}");
        }
        let manifest = fs::read_to_string(directory.join("Cargo.toml")).unwrap();
        assert!(
            line_count == 0 || manifest.ends_with("gpustub-build = \"0.1\"\n"),
            "{manifest}"
        );
        ends(0, directory, &["sync"]);
        ends(0, directory, &["sync", "--check"]);
        let temporary_files: Vec<_> = [directory, &directory.join("examples")]
            .into_iter()
            .flat_map(|directory| fs::read_dir(directory).unwrap())
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.starts_with('.'))
            .collect();
        assert_eq!(temporary_files, [""; 0]);
    }
}

/// Several runs at once, as by an editor and a commit hook: each of them succeeds.
#[test]
fn concurrent_syncs_succeed() {
    const RUNS: usize = 12;
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    package(directory, "user", "");
    write(directory, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
    for n in 0..RUNS {
        write(directory, &format!("examples/e{n}.rs"), "fn main() {}\n");
    }
    let children: Vec<_> = (0..RUNS)
        .map(|_| {
            let mut command = gpustub(directory, &["sync"]);
            command.stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{err}");
    }
    let (_, err) = ends(0, directory, &["sync", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
}
