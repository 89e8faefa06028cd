//! Packages and dependencies that were renamed after `sync` wrote about them.

use std::fs;
use std::path::Path;

use super::cuda::{dependencies_on, diamond, plain, program, rdc, synced, workspace};
use super::finalizers::{cargo, read};
use super::{ends, write};

/// The finalizer has the name of its package, everywhere.
#[test]
fn a_finalizer_follows_the_name_of_its_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let features = "\n[features]\nmore = [\"dep:extra\"]\n";
    rdc(directory, "extra", "", "");
    let extra = "extra = { path = \"../extra\", optional = true }\n";
    synced(
        directory,
        &format!("{}{extra}{features}", dependencies_on(&["base"])),
    );
    for name in ["app", "unit"] {
        let path = format!("{name}/Cargo.toml");
        let text = read(directory, &path);
        let text = text
            .replace(
                &format!("name = \"{name}\""),
                &format!("name = \"{name}-new\""),
            )
            .replace("gpustub-final-", "# Ours.\ngpustub-final-");
        // Without the list of a feature.
        let text = text
            .replace("\"# Ours.\n", "\"")
            .replace("{ # Ours.\n", "{ ");
        write(directory, &path, &text);
    }
    write(
        directory,
        "unit/tests/it.rs",
        "use gpustub_final_unit as _; // the device link of its CUDA code\n\n\
         /* use gpustub_final_unit as _; // the device link of its CUDA code\n*/\n\
         #[test]\nfn it() {}\n",
    );
    ends(0, directory, &["sync", "--workspace"]);
    cargo(directory, &["check", "--workspace", "--all-targets"]);
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
    for name in ["app", "unit"] {
        let text = read(directory, &format!("{name}/Cargo.toml"));
        let line = format!("# Ours.\ngpustub-final-{name}-new = {{ path = \"gpustub-final\"");
        assert!(text.contains(&line), "{text}");
        assert!(!text.contains(&format!("gpustub-final-{name} ")), "{text}");
    }
    let text = read(directory, "unit/Cargo.toml");
    assert!(
        text.contains("[\"dep:extra\", \"gpustub-final-unit-new/more\"]"),
        "{text}"
    );
    assert_eq!(
        read(directory, "app/src/main.rs"),
        "use gpustub_final_app_new as _; // the device link of its CUDA code\n\nfn main() {}\n"
    );
    assert_eq!(
        read(directory, "unit/src/lib.rs"),
        "#[cfg(test)]\nuse gpustub_final_unit_new as _; // the device link of its CUDA code\n"
    );
    // Text in comments is unchanged.
    let test = read(directory, "unit/tests/it.rs");
    assert!(test.contains("/* use gpustub_final_unit as _;"), "{test}");
}

/// Renamed, and no longer with CUDA code: no file remains.
#[test]
fn a_finalizer_of_a_former_name_is_removed() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let text = read(directory, "app/Cargo.toml")
        .replace("name = \"app\"", "name = \"new\"")
        .replace("left = ", "# left = ")
        .replace("right = ", "# right = ");
    write(directory, "app/Cargo.toml", &text);
    ends(0, directory, &["sync", "--workspace"]);
    assert!(!directory.join("app/gpustub-final").exists());
    assert_eq!(read(directory, "app/src/main.rs"), "fn main() {}\n");
    assert!(!read(directory, "app/Cargo.toml").contains("gpustub-final"));
    cargo(directory, &["check", "--workspace"]);
}

/// A hand-written name stays valid.
#[test]
fn a_finalizer_that_is_named_by_hand_keeps_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let app = read(directory, "app/Cargo.toml").replace("name = \"app\"", "name = \"new\"");
    let line = "gpustub-final-app = { path = \"gpustub-final\", ";
    assert!(app.contains(line));
    let renamed_line = "last = { path = \"gpustub-final\", package = \"gpustub-final-app\", ";
    let dependency = "[dependencies]\ngpustub-final-app = { path = \"../app/gpustub-final\" }\n";
    for (dependent, app, tool) in [
        ("new", app.replace(line, renamed_line), ""),
        ("tool", app.clone(), dependency),
    ] {
        write(directory, "app/Cargo.toml", &app);
        plain(directory, "tool", tool);
        let (_, err) = ends(1, directory, &["sync", "--workspace"]);
        let reported = format!("becomes `gpustub-final-new`, and `{dependent}` names it by hand");
        assert!(err.contains(&reported) && !err.contains("Fresh"), "{err}");
        assert_eq!(read(directory, "app/Cargo.toml"), app);
        cargo(directory, &["metadata", "--format-version", "1"]);
    }
    plain(directory, "tool", "");
    ends(0, directory, &["sync", "--workspace"]);
    cargo(directory, &["check", "--workspace"]);
}

/// Lines about crates that a package no longer has are removed, and no others.
#[test]
fn lines_about_crates_follow_their_names() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "solve", "", "");
    rdc(directory, "vec", "", "");
    rdc(
        directory,
        "other",
        &dependencies_on(&["solve", "vec"]),
        "requires = [\"solve\"]\n",
    );
    ends(0, directory, &["sync", "--workspace"]);
    let line =
        |name: &str| format!("use {name} as _; // its CUDA code, and what that is linked with\n");
    let lib = || read(directory, "other/src/lib.rs");
    assert!(lib().contains(&line("solve")) && lib().contains(&line("vec")));
    let mine = "use vec as mine;\n";
    write(directory, "other/src/lib.rs", &format!("{}{mine}", lib()));
    let manifest = read(directory, "other/Cargo.toml");
    let renamed = "slv = { path = \"../solve\", package = \"solve\" }";
    let renamed = manifest.replace("solve = { path = \"../solve\" }", renamed);
    assert_ne!(renamed, manifest);
    write(directory, "other/Cargo.toml", &renamed);
    let (out, _) = ends(1, directory, &["sync", "--workspace", "--check"]);
    assert!(out.contains("-use solve as _;"), "{out}");
    ends(0, directory, &["sync", "--workspace"]);
    assert!(!lib().contains(&line("solve")), "{}", lib());
    assert!(lib().contains(&line("slv")) && lib().contains(&line("vec")));
    assert!(lib().contains(mine));
    cargo(directory, &["check", "--workspace"]);

    // Without the dependency, and then without any code in the package.
    let slv = renamed
        .lines()
        .find(|line| line.starts_with("slv"))
        .unwrap();
    write(directory, "other/Cargo.toml", &renamed.replace(slv, ""));
    let table = read(directory, "other/GpuStub.toml").replace("requires = [\"solve\"]\n", "");
    write(directory, "other/GpuStub.toml", &table);
    ends(0, directory, &["sync", "--workspace"]);
    let tests = "#[cfg(test)]\nuse gpustub_final_other as _; // the device link of its CUDA code\n";
    assert_eq!(lib(), format!("{tests}{}{mine}", line("vec")));
    cargo(directory, &["check", "--workspace"]);
    fs::remove_file(directory.join("other/GpuStub.toml")).unwrap();
    // The build script still calls the helper.
    ends(1, directory, &["sync", "--workspace"]);
    assert_eq!(lib(), mine);
}

/// A program names the library of its package, under any name.
#[test]
fn lines_about_the_package_library_follow_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    plain(directory, "one", "");
    write(directory, "one/src/main.rs", "fn main() {}\n");
    write(
        directory,
        "one/GpuStub.toml",
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n",
    );
    ends(0, directory, &["sync", "--workspace"]);
    assert!(read(directory, "one/src/main.rs").starts_with("use one as _;"));
    let text = read(directory, "one/Cargo.toml").replace("\"one\"", "\"two\"");
    write(directory, "one/Cargo.toml", &text);
    ends(0, directory, &["sync", "--workspace"]);
    assert_eq!(
        read(directory, "one/src/main.rs"),
        "use two as _; // its build script has the GPU stubs\n\nfn main() {}\n"
    );
    cargo(directory, &["check", "--workspace"]);
}

/// Under `--locked`, `sync` writes no file if Cargo.lock would change.
#[test]
fn a_locked_sync_writes_all_or_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    cargo(directory, &["generate-lockfile"]);
    let lock = read(directory, "Cargo.lock");
    ends(
        1,
        directory,
        &["sync", "--workspace", "--locked", "--check"],
    );
    let (_, err) = ends(101, directory, &["sync", "--workspace", "--locked"]);
    assert!(err.contains("`--locked` was passed"), "{err}");
    assert!(!directory.join("app/gpustub-final").exists());
    assert!(!directory.join("GpuStub.lock").exists());
    assert_eq!(read(directory, "Cargo.lock"), lock);
    ends(0, directory, &["sync", "--workspace"]);
    // Files that cargo does not resolve are written.
    write(directory, "app/src/main.rs", "fn main() {}\n");
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--locked"]);
    assert!(err.contains("Updated app/src/main.rs"), "{err}");
}

/// Changes a file.
fn replace(directory: &Path, path: &str, from: &str, to: &str) {
    let text = read(directory, path);
    assert!(text.contains(from), "{text}");
    write(directory, path, &text.replace(from, to));
}

/// A workspace after `sync` in which `app` also has CUDA code behind the feature `extra`.
fn synced_with_feature(directory: &Path) {
    diamond(directory);
    rdc(directory, "extra", "", "");
    let more = "extra = { path = \"../extra\", optional = true }\n\
                [features]\nmore = [\"dep:extra\"]\n";
    let text = dependencies_on(&["left", "right"]) + more;
    program(directory, "app", &text);
    ends(0, directory, &["sync", "--workspace"]);
}

/// Another name for the package in the directory `right`.
fn rename(directory: &Path) {
    replace(
        directory,
        "right/Cargo.toml",
        "name = \"right\"",
        "name = \"aright\"",
    );
    replace(directory, "app/Cargo.toml", "right = {", "aright = {");
}

/// Another directory for `right`.
fn move_directory(directory: &Path) {
    fs::rename(directory.join("right"), directory.join("moved")).unwrap();
    replace(directory, "app/Cargo.toml", "../right", "../moved");
}

/// Without `extra` and its feature.
fn delete(directory: &Path) {
    fs::remove_dir_all(directory.join("extra")).unwrap();
    let text = read(directory, "app/Cargo.toml");
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("extra"))
        .collect();
    let text = lines.join("\n").replace("\"dep:extra\", ", "") + "\n";
    write(directory, "app/Cargo.toml", &text);
}

/// A version that the dependents accept and the finalizer does not.
fn release(directory: &Path) {
    replace(directory, "right/Cargo.toml", "\"0.1.0\"", "\"0.2.0\"");
}

/// The finalizers name the packages with CUDA code, so cargo rejects the workspace.
#[test]
fn sync_follows_packages_that_cargo_does_not_find() {
    for (edit, fault, line) in [
        (
            rename as fn(&Path),
            "depends on `right` in `../../right`, where `aright` is",
            Some("aright = { path = \"../../right\", version = \"0.1.0\""),
        ),
        (
            move_directory,
            "depends on `right` in `../../right`, where no package is",
            Some("right = { path = \"../../moved\", version = \"0.1.0\""),
        ),
        (
            delete,
            "depends on `extra` in `../../extra`, where no package is",
            None,
        ),
        (
            release,
            "requires `right` ^0.1.0, which has the version 0.2.0",
            Some("right = { path = \"../../right\", version = \"0.2.0\""),
        ),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        synced_with_feature(directory);
        edit(directory);
        let file = "app/gpustub-final/Cargo.toml";
        let before = read(directory, file);
        let reported = format!("`{file}` {fault}");
        for command in ["plan", "check"] {
            let (_, err) = ends(101, directory, &[command]);
            assert!(err.contains(&format!("error: {reported}")), "{err}");
            assert!(err.contains("help: run `cargo gpustub sync`"), "{err}");
        }
        for option in ["--check", "--dry-run"] {
            let (_, err) = ends(1, directory, &["sync", "--workspace", option]);
            assert!(
                err.contains(&format!("error[out-of-sync]: {reported}")),
                "{err}"
            );
            assert!(err.contains(&format!("--> {file}")), "{err}");
        }
        assert_eq!(read(directory, file), before);
        let (_, err) = ends(0, directory, &["sync", "--workspace"]);
        assert!(err.contains(&format!("Updated {file}")), "{err}");
        let after = read(directory, file);
        match line {
            Some(line) => assert!(after.contains(&format!("\n{line}")), "{after}"),
            None => assert!(!after.contains("extra"), "{after}"),
        }
        let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
        assert!(err.contains("Fresh"), "{err}");
        cargo(directory, &["check", "--workspace", "--all-targets"]);
        ends(0, directory, &["plan"]);
    }
}

/// Cargo's error about a file of the user. The finalizer stays as it was.
#[test]
fn sync_writes_nothing_if_cargo_rejects_other_files_too() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    fs::rename(directory.join("right"), directory.join("moved")).unwrap();
    let before = read(directory, "app/gpustub-final/Cargo.toml");
    let (_, err) = ends(101, directory, &["sync", "--workspace"]);
    assert!(
        err.contains("failed to load manifest for dependency `right`"),
        "{err}"
    );
    assert_eq!(read(directory, "app/gpustub-final/Cargo.toml"), before);
    replace(directory, "app/Cargo.toml", "../right", "../moved");
    let (_, err) = ends(101, directory, &["sync", "--workspace", "--locked"]);
    assert!(err.contains("`--locked` was passed"), "{err}");
    assert_eq!(read(directory, "app/gpustub-final/Cargo.toml"), before);
}

/// A package outside of the workspace inherits the version of its own one.
#[test]
fn inherited_versions_are_those_of_the_package_workspace() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    let shared = |version: &str| format!("[workspace.package]\nversion = \"{version}\"\n");
    let root = read(directory, "Cargo.toml");
    write(directory, "Cargo.toml", &(root + &shared("9.0.0")));
    let others = directory.join("others");
    let members = "[workspace]\nresolver = \"3\"\nmembers = [\"base\"]\n";
    write(
        &others,
        "Cargo.toml",
        &(members.to_owned() + &shared("0.3.0")),
    );
    rdc(&others, "base", "", "");
    replace(
        &others,
        "base/Cargo.toml",
        "version = \"0.1.0\"",
        "version.workspace = true",
    );
    replace(
        &others,
        "base/Cargo.toml",
        "gpustub-build = { workspace = true",
        "gpustub-build = { path = \"../../helper\"",
    );
    let base = "[dependencies]\nbase = { path = \"../others/base\" }\n";
    program(directory, "app", base);
    write(directory, "app/GpuStub.toml", "schema = 1\n");
    cargo(directory, &["generate-lockfile"]);
    ends(0, directory, &["sync", "--workspace"]);
    let line =
        |version: &str| format!("base = {{ path = \"../../others/base\", version = \"{version}\"");
    for version in ["0.3.0", "0.4.0"] {
        write(
            &others,
            "Cargo.toml",
            &(members.to_owned() + &shared(version)),
        );
        ends(0, directory, &["sync", "--workspace"]);
        let text = read(directory, "app/gpustub-final/Cargo.toml");
        assert!(text.contains(&line(version)), "{text}");
        let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
        assert!(err.contains("Fresh"), "{err}");
    }
    // Cargo's error.
    write(&others, "base/Cargo.toml", "[package\n");
    let (_, err) = ends(101, directory, &["plan"]);
    assert!(err.contains("base/Cargo.toml:1:9"), "{err}");
    assert!(!err.contains("no package is"), "{err}");
}
