//! Finalizers of packages that no longer need one.

use std::fs;
use std::path::Path;

use super::cuda::{dependencies_on, diamond, plain, program, synced};
use super::finalizers::{cargo, read};
use super::{ends, write};

/// Creates a workspace whose program has lost its CUDA code after `sync` wrote its finalizer.
fn left_over(folder: &Path) {
    synced(folder, &dependencies_on(&["base"]));
    for name in ["app", "unit"] {
        let path = format!("{name}/Cargo.toml");
        let text = read(folder, &path);
        let text = text
            .replace("left = ", "# left = ")
            .replace("right = ", "# right = ")
            .replace("\nbase = ", "\n# base = ");
        write(folder, &path, &text);
    }
}

#[test]
fn sync_removes_stale_finalizers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    left_over(folder);
    let (out, _) = ends(1, folder, &["sync", "--workspace", "--check"]);
    let gone = "--- a/app/gpustub-final/Cargo.toml\n+++ /dev/null\n";
    assert!(out.contains(gone), "{out}");
    let (_, err) = ends(0, folder, &["sync", "--workspace"]);
    assert!(
        err.contains("Removed app/gpustub-final/Cargo.toml"),
        "{err}"
    );
    assert!(!err.contains("Fresh"), "{err}");
    for name in ["app", "unit"] {
        assert!(!folder.join(name).join("gpustub-final").exists());
        let text = read(folder, &format!("{name}/Cargo.toml"));
        assert!(!text.contains("gpustub-final"), "{text}");
    }
    assert_eq!(read(folder, "app/src/main.rs"), "fn main() {}\n");
    assert_eq!(read(folder, "unit/tests/it.rs"), "#[test]\nfn it() {}\n");
    assert_eq!(read(folder, "unit/src/lib.rs"), "");
    cargo(folder, &["check", "--workspace", "--all-targets"]);
    let (_, err) = ends(0, folder, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");

    // The same if the package now has CUDA code of its own.
    program(folder, "app", &dependencies_on(&["left", "right"]));
    ends(0, folder, &["sync", "--workspace"]);
    assert!(folder.join("app/gpustub-final").exists());
    let table = "schema = 1\n[device-link.app]\nsources = [\"*.cu\"]\narchs = [\"sm_80\"]\n";
    write(folder, "app/GpuStub.toml", table);
    write(folder, "app/app.cu", "");
    ends(0, folder, &["sync", "--workspace"]);
    assert!(!folder.join("app/gpustub-final").exists());
    let script = read(folder, "app/build.rs");
    assert!(
        script.starts_with("//! Builds what GpuStub.toml"),
        "{script}"
    );
    let (_, err) = ends(0, folder, &["sync", "--workspace"]);
    assert!(err.contains("Fresh"), "{err}");
    cargo(folder, &["check", "--workspace", "--all-targets"]);
}

/// Files changed by others stay and are reported.
#[test]
fn sync_keeps_and_reports_changed_stale_finalizers() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    left_over(folder);
    let manifest = read(folder, "app/gpustub-final/Cargo.toml");
    let code = read(folder, "app/gpustub-final/src/lib.rs");
    let main = read(folder, "app/src/main.rs");
    let root = read(folder, "Cargo.toml");
    let other = "[target.'cfg(windows)'.dependencies]\n[build-dependencies]";
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
            manifest.replace("[build-dependencies]", other),
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
        write(folder, file, &new);
        for (code, command) in [
            (0, &["sync", "-p", "app"][..]),
            (1, &["sync", "-p", "app", "--check"]),
        ] {
            let (_, err) = ends(code, folder, command);
            let told = "warning[out-of-sync]: no program of `app` has CUDA";
            assert!(err.contains(told), "{file}: {err}");
            assert!(
                err.contains("remove the directory `app/gpustub-final`"),
                "{err}"
            );
            assert!(!err.contains("Fresh"), "{file}: {err}");
        }
        assert!(folder.join("app/gpustub-final/src/lib.rs").exists());
        match old.as_str() {
            "" => fs::remove_file(folder.join(file)).unwrap(),
            _ => write(folder, file, &old),
        }
    }
    ends(0, folder, &["sync", "-p", "app"]);
    assert!(!folder.join("app/gpustub-final").exists());
}

/// A finalizer that another package names stays, as does its directory.
#[test]
fn sync_keeps_a_finalizer_that_another_package_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    left_over(folder);
    let other = "[dependencies]\ngpustub-final-app = { path = \"../app/gpustub-final\" }\n";
    program(folder, "tool", other);
    let line = "use gpustub_final_app as _; // the device link of its CUDA code\n\nfn main() {}\n";
    write(folder, "tool/src/main.rs", line);
    let (_, err) = ends(0, folder, &["sync", "-p", "app", "-p", "tool"]);
    let told = "warning[out-of-sync]: no program of `app` has CUDA";
    assert!(err.contains(told) && !err.contains("Fresh"), "{err}");
    assert!(folder.join("app/gpustub-final/src/lib.rs").exists());
    assert!(read(folder, "app/Cargo.toml").contains("gpustub-final-app"));
    cargo(folder, &["metadata", "--format-version", "1"]);
    // No package names it any more.
    program(folder, "tool", "");
    let (_, err) = ends(0, folder, &["sync", "-p", "app"]);
    assert!(
        err.contains("Removed app/gpustub-final/Cargo.toml"),
        "{err}"
    );
}

/// Output of `sync` for a removed GpuStub.toml is reported.
#[test]
fn sync_reports_remains_of_a_removed_gpustub_toml() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    diamond(folder);
    // The build script of `light` links the direct dependencies and remains valid.
    let light = "[build-dependencies]\n\
                 gpustub-build = { workspace = true, features = [\"device-link\"] }\n";
    program(folder, "light", &(dependencies_on(&["base"]) + light));
    let script = "fn main() {\n    gpustub_build::finalize();\n}\n";
    write(folder, "light/build.rs", script);
    plain(folder, "stubs", "");
    write(
        folder,
        "stubs/GpuStub.toml",
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\nprovide = true\n",
    );
    ends(0, folder, &["sync", "--workspace"]);
    for name in ["base", "left", "right", "stubs"] {
        fs::remove_file(folder.join(name).join("GpuStub.toml")).unwrap();
    }
    let named = |err: &str| {
        for (name, links) in [
            ("base", "`links = \"gpustub-base\"`, "),
            ("left", "`links = \"gpustub-left\"`, "),
            ("stubs", ""),
        ] {
            let told = format!(
                "warning[out-of-sync]: package `{name}` has no GpuStub.toml, but still has {links}\
                 the build-dependency `gpustub-build`, the call in its build script"
            );
            assert!(err.contains(&told), "{err}");
        }
        assert!(!err.contains("package `light`"), "{err}");
        assert!(!err.contains("Fresh"), "{err}");
    };
    named(&ends(1, folder, &["sync", "--workspace", "--check"]).1);
    named(&ends(0, folder, &["sync", "--workspace"]).1);
    assert!(!folder.join("app/gpustub-final").exists());
    let (_, err) = ends(101, folder, &["sync", "--workspace", "--check"]);
    named(&err);
    assert!(err.contains("packages has a GpuStub.toml"), "{err}");
}
