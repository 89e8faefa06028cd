//! Finalizers of packages that no longer need one.

use std::fs;
use std::path::Path;

use super::cuda::{dependencies_on, diamond, plain, program, synced};
use super::finalizers::{cargo, read};
use super::{ends, write};

/// Creates a workspace whose program has lost its CUDA code after `sync` wrote its finalizer.
fn left_over(directory: &Path) {
    synced(directory, &dependencies_on(&["base"]));
    for name in ["app", "unit"] {
        let path = format!("{name}/Cargo.toml");
        let text = read(directory, &path);
        let text = text
            .replace("left = ", "# left = ")
            .replace("right = ", "# right = ")
            .replace("\nbase = ", "\n# base = ");
        write(directory, &path, &text);
    }
}

#[test]
fn sync_removes_stale_finalizers() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    left_over(directory);
    // As checked out by Git with `core.autocrlf`.
    for file in ["Cargo.toml", "build.rs", "src/lib.rs"] {
        let path = directory.join("app/gpustub-final").join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace('\n', "\r\n")).unwrap();
    }
    let (out, _) = ends(1, directory, &["sync", "--workspace", "--check"]);
    let removal = "--- a/app/gpustub-final/Cargo.toml\n+++ /dev/null\n";
    assert!(out.contains(removal), "{out}");
    let (_, err) = ends(0, directory, &["sync", "--workspace"]);
    assert!(
        err.contains("Removed app/gpustub-final/Cargo.toml"),
        "{err}"
    );
    assert!(!err.contains("Fresh"), "{err}");
    for name in ["app", "unit"] {
        assert!(!directory.join(name).join("gpustub-final").exists());
        let text = read(directory, &format!("{name}/Cargo.toml"));
        assert!(!text.contains("gpustub-final"), "{text}");
    }
    assert_eq!(read(directory, "app/src/main.rs"), "fn main() {}\n");
    assert_eq!(read(directory, "unit/tests/it.rs"), "#[test]\nfn it() {}\n");
    assert_eq!(read(directory, "unit/src/lib.rs"), "");
    cargo(directory, &["check", "--workspace", "--all-targets"]);
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");

    // The same if the package now has CUDA code of its own.
    program(directory, "app", &dependencies_on(&["left", "right"]));
    ends(0, directory, &["sync", "--workspace"]);
    assert!(directory.join("app/gpustub-final").exists());
    let table = "schema = 1\n[device-link.app]\nsources = [\"*.cu\"]\narchs = [\"sm_80\"]\n";
    write(directory, "app/GpuStub.toml", table);
    write(directory, "app/app.cu", "");
    ends(0, directory, &["sync", "--workspace"]);
    assert!(!directory.join("app/gpustub-final").exists());
    let script = read(directory, "app/build.rs");
    assert!(
        script.starts_with("//! Builds what GpuStub.toml"),
        "{script}"
    );
    let (_, err) = ends(0, directory, &["sync", "--workspace"]);
    assert!(err.contains("Fresh"), "{err}");
    cargo(directory, &["check", "--workspace", "--all-targets"]);
}

/// Files changed by others stay and are reported.
#[test]
fn sync_keeps_and_reports_changed_stale_finalizers() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    left_over(directory);
    let manifest = read(directory, "app/gpustub-final/Cargo.toml");
    let code = read(directory, "app/gpustub-final/src/lib.rs");
    let main = read(directory, "app/src/main.rs");
    let root = read(directory, "Cargo.toml");
    let windows_table = "[target.'cfg(windows)'.dependencies]\n[build-dependencies]";
    for (file, old, new) in [
        (
            "app/gpustub-final/more.txt",
            String::new(),
            "mine".to_owned(),
        ),
        (
            "app/gpustub-final/Cargo.toml",
            manifest.clone(),
            manifest.replacen('#', "# Mine. #", 1),
        ),
        (
            // Windows dependencies are unknown on this host.
            "app/gpustub-final/Cargo.toml",
            manifest.clone(),
            manifest.replace("[build-dependencies]", windows_table),
        ),
        (
            "app/gpustub-final/src/lib.rs",
            code.clone(),
            code + "fn mine() {}\n",
        ),
        (
            "app/src/main.rs",
            main,
            "use gpustub_final_app as last;\nfn main() {}\n".to_owned(),
        ),
        (
            "Cargo.toml",
            root.clone(),
            root.replace("[\"*\"]", "[\"*\", \"app/gpustub-final\"]"),
        ),
    ] {
        write(directory, file, &new);
        for (code, command) in [
            (0, &["sync", "-p", "app"][..]),
            (1, &["sync", "-p", "app", "--check"]),
        ] {
            let (_, err) = ends(code, directory, command);
            let reported = "warning[out-of-sync]: no program of `app` has CUDA";
            assert!(err.contains(reported), "{file}: {err}");
            assert!(
                err.contains("remove the directory `app/gpustub-final`"),
                "{err}"
            );
            assert!(!err.contains("Fresh"), "{file}: {err}");
        }
        assert!(directory.join("app/gpustub-final/src/lib.rs").exists());
        match old.as_str() {
            "" => fs::remove_file(directory.join(file)).unwrap(),
            _ => write(directory, file, &old),
        }
    }
    ends(0, directory, &["sync", "-p", "app"]);
    assert!(!directory.join("app/gpustub-final").exists());
}

/// A finalizer that another package names stays, as does its directory.
#[test]
fn sync_keeps_a_finalizer_that_another_package_names() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    left_over(directory);
    let dependency = "[dependencies]\ngpustub-final-app = { path = \"../app/gpustub-final\" }\n";
    program(directory, "tool", dependency);
    let line = "use gpustub_final_app as _; // the device link of its CUDA code\n\nfn main() {}\n";
    write(directory, "tool/src/main.rs", line);
    let (_, err) = ends(0, directory, &["sync", "-p", "app", "-p", "tool"]);
    let reported = "warning[out-of-sync]: no program of `app` has CUDA";
    assert!(err.contains(reported) && !err.contains("Fresh"), "{err}");
    assert!(directory.join("app/gpustub-final/src/lib.rs").exists());
    assert!(read(directory, "app/Cargo.toml").contains("gpustub-final-app"));
    cargo(directory, &["metadata", "--format-version", "1"]);
    // No package names it any more.
    program(directory, "tool", "");
    let (_, err) = ends(0, directory, &["sync", "-p", "app"]);
    assert!(
        err.contains("Removed app/gpustub-final/Cargo.toml"),
        "{err}"
    );
}

/// A finalizer leaves the stub of the runtime to its program as long as that has one.
#[test]
fn sync_follows_the_stub_of_the_runtime() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    write(directory, "app/src/lib.rs", "");
    let table = "[stub.cudart]\nheader-version = \"12\"\n";
    write(
        directory,
        "app/GpuStub.toml",
        &format!("schema = 1\n{table}"),
    );
    ends(0, directory, &["sync", "--workspace"]);
    let file = directory.join("app/gpustub-final/GpuStub.toml");
    assert!(file.exists());
    let (out, _) = ends(0, directory, &["plan", "--workspace"]);
    assert!(out.contains("from another package: cudart"), "{out}");
    assert!(!out.contains("`provide = false` is unneeded"), "{out}");

    // As checked out by Git with `core.autocrlf`.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace('\n', "\r\n")).unwrap();
    write(directory, "app/GpuStub.toml", "schema = 1\n");
    let (out, _) = ends(1, directory, &["sync", "--workspace", "--check"]);
    let removal = "--- a/app/gpustub-final/GpuStub.toml\n+++ /dev/null\n";
    assert!(out.contains(removal), "{out}");
    ends(0, directory, &["sync", "--workspace"]);
    assert!(!file.exists());
    let (_, err) = ends(0, directory, &["sync", "--workspace"]);
    assert!(
        err.contains("Fresh") && !err.contains("missing-provider"),
        "{err}"
    );
    // A file of the user's own stays.
    write(
        directory,
        "app/gpustub-final/GpuStub.toml",
        "# Mine.\nschema = 1\n",
    );
    ends(0, directory, &["sync", "--workspace", "--check"]);
}

/// Cargo reads no workspace with a dependency on a package that is not there, or lacks its targets.
#[test]
fn sync_writes_deleted_finalizers_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    synced(directory, &dependencies_on(&["base"]));
    let app = read(directory, "app/Cargo.toml").replace("left = {", "left = { optional = true,");
    write(directory, "app/Cargo.toml", &app);
    ends(0, directory, &["sync", "--workspace"]);
    let text = || {
        ["app", "unit"].map(|package| {
            let files = ["", "gpustub-final/"].map(|path| format!("{package}/{path}Cargo.toml"));
            let sources = ["build.rs", "src/lib.rs"];
            let sources = sources.map(|file| format!("{package}/gpustub-final/{file}"));
            [files, sources]
                .as_flattened()
                .iter()
                .map(|file| read(directory, file))
                .collect::<Vec<_>>()
        })
    };
    let before = text();
    assert!(before[0][0].contains("\"gpustub-final-app/left\""));
    for [in_app, in_unit] in [["Cargo.toml", "Cargo.toml"], ["build.rs", "src/lib.rs"]] {
        fs::remove_file(directory.join("app/gpustub-final").join(in_app)).unwrap();
        fs::remove_file(directory.join("unit/gpustub-final").join(in_unit)).unwrap();
        let (_, err) = ends(1, directory, &["sync", "--workspace", "--check"]);
        for (name, file) in [("app", in_app), ("unit", in_unit)] {
            let fault = format!(
                "error[out-of-sync]: `{name}/Cargo.toml` depends on `gpustub-final-{name}`, whose \
                 `gpustub-final/{file}` is missing"
            );
            assert!(err.contains(&fault), "{err}");
        }
        let (_, err) = ends(0, directory, &["sync", "--workspace"]);
        assert!(!err.contains("Fresh"), "{err}");
        assert_eq!(text(), before);
    }
    fs::remove_dir_all(directory.join("app/gpustub-final")).unwrap();
    ends(0, directory, &["sync", "-p", "app"]);
    assert_eq!(text(), before);
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
}

/// Output of `sync` for a removed GpuStub.toml is reported.
#[test]
fn sync_reports_remains_of_a_removed_gpustub_toml() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    // The build script of `light` links the direct dependencies and remains valid.
    let helper = "[build-dependencies]\n\
                  gpustub-build = { workspace = true, features = [\"device-link\"] }\n";
    program(directory, "light", &(dependencies_on(&["base"]) + helper));
    let script = "fn main() {\n    gpustub_build::finalize();\n}\n";
    write(directory, "light/build.rs", script);
    plain(directory, "stubs", "");
    write(
        directory,
        "stubs/GpuStub.toml",
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\nprovide = true\n",
    );
    ends(0, directory, &["sync", "--workspace"]);
    for name in ["base", "left", "right", "stubs"] {
        fs::remove_file(directory.join(name).join("GpuStub.toml")).unwrap();
    }
    let (_, err) = ends(1, directory, &["sync", "--workspace", "--check"]);
    assert_remains_reported(&err);
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    assert_remains_reported(&err);
    assert!(!directory.join("app/gpustub-final").exists());
    let (_, err) = ends(1, directory, &["sync", "--workspace", "--check"]);
    assert_remains_reported(&err);
}

#[track_caller]
fn assert_remains_reported(err: &str) {
    let line = "the line `gpustub_build::build();` in ";
    for (name, call, links) in [
        (
            "base",
            line,
            ", `links = \"gpustub-base\"` in `base/Cargo.toml`",
        ),
        (
            "left",
            line,
            ", `links = \"gpustub-left\"` in `left/Cargo.toml`",
        ),
        ("stubs", "the build script ", ""),
    ] {
        let reported = format!(
            "error[out-of-sync]: package `{name}` has no GpuStub.toml, but still has {call}\
             `{name}/build.rs`{links} and the build-dependency `gpustub-build` in `{name}/Cargo.toml`"
        );
        assert!(err.contains(&reported), "{err}");
    }
    assert!(!err.contains("package `light`"), "{err}");
    assert!(!err.contains("Fresh"), "{err}");
}
