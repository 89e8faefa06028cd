//! Crates that `sync` writes for device links, and cargo's interpretation of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::cuda::{dependencies_on, diamond, plain, program, rdc, workspace};
use super::{ends, package, write};

pub fn read(directory: &Path, path: &str) -> String {
    fs::read_to_string(directory.join(path)).unwrap()
}

/// Runs cargo, which must accept the workspace; returns standard output.
pub fn cargo(directory: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(directory)
        .args(arguments)
        .arg("--offline");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("finalizers");
    let output = command.env("CARGO_TARGET_DIR", target).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}\n{err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Crates that a package's finalizer has under some features.
pub fn linked(directory: &Path, arguments: &[&str]) -> Vec<String> {
    let tree = [
        "tree", "-e", "normal", "--prefix", "depth", "--format", " {p}",
    ];
    let out = cargo(directory, &[&tree[..], arguments].concat());
    let mut packages = out.lines().filter_map(|line| {
        let (depth, package) = line.split_once(' ')?;
        Some((depth.parse::<u32>().ok()?, package.split(' ').next()?))
    });
    let (finalizer_depth, _) = packages
        .find(|(_, name)| name.starts_with("gpustub-final"))
        .expect("a finalizer");
    packages
        .take_while(|(depth, _)| *depth > finalizer_depth)
        .filter(|(depth, _)| *depth == finalizer_depth + 1)
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// Crates that the finalizer of `app` has under some features.
fn linked_in_app(directory: &Path, features: &[&str]) -> Vec<String> {
    linked(directory, &[&["-p", "app"], features].concat())
}

#[test]
fn a_finalizer_depends_on_the_whole_closure() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    let (out, _) = ends(1, directory, &["sync", "--workspace", "--check"]);
    assert!(out.contains("+++ b/app/gpustub-final/Cargo.toml"), "{out}");
    assert!(!directory.join("app/gpustub-final").exists());
    // The package alone, without a GpuStub.toml.
    ends(0, &directory.join("app"), &["sync"]);
    assert!(directory.join("app/gpustub-final").exists());
    ends(0, directory, &["sync", "--workspace"]);
    for arguments in [
        &["sync", "--workspace"][..],
        &["sync", "--workspace", "--check"],
    ] {
        let (out, err) = ends(0, directory, arguments);
        assert!(out.is_empty() && err.contains("Fresh"), "{out}{err}");
    }
    assert_eq!(linked(directory, &["-p", "app"]), ["base", "left", "right"]);
    let text = read(directory, "app/gpustub-final/Cargo.toml");
    for line in [
        "links = \"gpustub-final-app\"\n",
        "base = { path = \"../../base\", version = \"0.1.0\", default-features = false }\n",
        "gpustub-build = { workspace = true, features = [\"device-link\"] }\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let main = read(directory, "app/src/main.rs");
    let line = "use gpustub_final_app as _; // the device link of its CUDA code\n";
    assert!(main.starts_with(line), "{main}");
    // A library receives those that it requires, and publishes them.
    let text = read(directory, "left/gpustub-final/Cargo.toml");
    for line in [
        "publish = false\n",
        "gpustub-rdc-left = { path = \"..\", version = \"*\", default-features = false, \
         optional = true, package = \"left\" }\n\n[build-dependencies]\n",
        "gpustub-link = [\"dep:gpustub-build\", \"dep:gpustub-rdc-left\"]\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!(
        read(directory, "left/src/lib.rs"),
        "#[cfg(test)]\nuse gpustub_final_left as _; // the device link of its CUDA code\n\
         use base as _; // its CUDA code, and what that is linked with\n"
    );
    cargo(directory, &["check", "--workspace", "--all-targets"]);
}

/// A new version of the package is written into its finalizer and into the dependency on it.
#[test]
fn finalizers_follow_the_version_of_their_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let text = read(directory, "app/Cargo.toml");
    let line = "gpustub-final-app = { path = \"gpustub-final\", version = \"=0.1.0\" }\n";
    assert!(text.contains(line), "{text}");
    write(
        directory,
        "app/Cargo.toml",
        &text.replacen("\"0.1.0\"", "\"0.2.0\"", 1),
    );
    ends(0, directory, &["sync", "--workspace"]);
    assert!(read(directory, "app/Cargo.toml").contains("\"=0.2.0\""));
    assert!(read(directory, "app/gpustub-final/Cargo.toml").contains("version = \"0.2.0\""));
    // An unpublished package needs no version.
    let text = read(directory, "app/Cargo.toml").replacen("edition", "publish = false\nedition", 1);
    write(directory, "app/Cargo.toml", &text);
    ends(0, directory, &["sync", "--workspace"]);
    let text = read(directory, "app/Cargo.toml");
    assert!(
        text.contains("gpustub-final-app = { path = \"gpustub-final\" }\n"),
        "{text}"
    );
    ends(0, directory, &["sync", "--workspace", "--check"]);
    cargo(directory, &["metadata", "--format-version", "1"]);
}

#[test]
fn optional_dependencies_follow_their_features() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    for name in ["base", "named", "implicit", "deep"] {
        rdc(directory, name, "", "");
    }
    let inner = "[features]\ndeep = [\"dep:deep\"]\n[dependencies]\n\
                 deep = { path = \"../deep\", optional = true }\n";
    plain(directory, "inner", inner);
    let app = "[features]\ndefault = [\"gpu\"]\ngpu = [\"dep:named\"]\ndeep = [\"inner/deep\"]\n\
               [dependencies]\nbase = { path = \"../base\" }\ninner = { path = \"../inner\" }\n\
               named = { path = \"../named\", optional = true }\n\
               implicit = { path = \"../implicit\", optional = true }\n";
    program(directory, "app", app);
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["sync", "--workspace", "--check"]);
    for (features, crates) in [
        (&["--no-default-features"][..], &["base"][..]),
        (&[], &["base", "named"]),
        (
            &["--no-default-features", "-F", "implicit"],
            &["base", "implicit"],
        ),
        (&["--no-default-features", "-F", "deep"], &["base", "deep"]),
        (&["--all-features"], &["base", "deep", "implicit", "named"]),
    ] {
        assert_eq!(linked_in_app(directory, features), crates);
    }
    let text = read(directory, "app/Cargo.toml");
    let line = "implicit = [\"dep:implicit\", \"gpustub-final-app/implicit\"]\n";
    assert!(text.contains(line), "{text}");
    let code = read(directory, "app/gpustub-final/src/lib.rs");
    let line = "#[cfg(feature = \"gpu\")]\n#[doc(hidden)]\npub use gpustub_rdc_named as _named;\n";
    assert!(code.contains(line), "{code}");
    for features in ["--no-default-features", "--all-features"] {
        cargo(directory, &["check", "-p", "app", features]);
    }

    // The feature must no longer name the removed optional dependency.
    let text = text
        .replace(
            "named = { path = \"../named\", optional = true }",
            "named = { path = \"../named\" }",
        )
        .replace("\"dep:named\", ", "");
    write(directory, "app/Cargo.toml", &text);
    ends(0, directory, &["sync", "--workspace"]);
    assert!(!read(directory, "app/Cargo.toml").contains("gpustub-final-app/gpu"));
    assert_eq!(
        linked_in_app(directory, &["--no-default-features"]),
        ["base", "named"]
    );
}

#[test]
fn crates_called_only_by_device_code_get_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    rdc(
        directory,
        "tip",
        &dependencies_on(&["base"]),
        "requires = [\"base\"]\n",
    );
    rdc(
        directory,
        "tool",
        &dependencies_on(&["tip"]),
        "requires = [\"tip\"]\n",
    );
    fs::remove_file(directory.join("tool/src/lib.rs")).unwrap();
    write(directory, "tool/src/main.rs", "fn main() {}\n");
    ends(0, directory, &["sync", "--workspace"]);
    for (file, line) in [
        ("tip/src/lib.rs", "\nuse base as _; // its CUDA code"),
        ("tool/src/main.rs", "use tip as _; // its CUDA code"),
    ] {
        assert!(
            read(directory, file).contains(line),
            "{}",
            read(directory, file)
        );
    }
    ends(0, directory, &["sync", "--workspace", "--check"]);
}

/// Follows the condition of the dependency.
#[test]
fn conditional_dependencies_get_conditional_lines() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    for name in ["implicit", "named", "some", "host"] {
        rdc(directory, name, "[features]\nx = []\n", "");
    }
    let host = "x86_64-unknown-linux-gnu";
    let tip = format!(
        "[features]\ngpu = [\"dep:named\"]\nmore = [\"named/x\"]\nweak = [\"named?/x\"]\n\
         [dependencies]\nimplicit = {{ path = \"../implicit\", optional = true }}\n\
         named = {{ path = \"../named\", optional = true }}\n\
         [target.'cfg(not(windows))'.dependencies]\nsome = {{ path = \"../some\" }}\n\
         [target.{host}.dependencies]\nhost = {{ path = \"../host\" }}\n"
    );
    rdc(directory, "tip", &tip, "");
    ends(0, directory, &["sync", "--workspace"]);
    let code = read(directory, "tip/src/lib.rs");
    for (condition, name) in [
        ("feature = \"implicit\"", "implicit"),
        ("any(feature = \"gpu\", feature = \"more\")", "named"),
        ("not(windows)", "some"),
    ] {
        let lines = format!("#[cfg({condition})]\nuse {name} as _; // its CUDA code");
        assert!(code.contains(&lines), "{code}");
    }
    // Rust source cannot test for a target triple.
    assert!(!code.contains("use host"), "{code}");
    ends(0, directory, &["sync", "--workspace", "--check"]);
    for features in ["--no-default-features", "--all-features"] {
        cargo(directory, &["check", "-p", "tip", features]);
    }
    // The line is unconditional once the dependency is.
    let text = read(directory, "tip/Cargo.toml");
    write(
        directory,
        "tip/Cargo.toml",
        &text.replace("[target.'cfg(not(windows))'.dependencies]\n", ""),
    );
    ends(0, directory, &["sync", "--workspace"]);
    let code = read(directory, "tip/src/lib.rs");
    assert!(!code.contains("not(windows)"), "{code}");
    assert!(code.contains("use some as _;"), "{code}");
}

/// A library is linked with CUDA code in tests only; programs, by the build script of their package.
#[test]
fn build_scripts_follow_the_programs_of_their_package() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    // As `sync` wrote it for each package with CUDA code.
    write(directory, "base/build.rs", &build_script("finalize"));
    ends(1, directory, &["sync", "--workspace", "--check"]);
    for has_program in [false, true, false] {
        if has_program {
            write(directory, "base/src/main.rs", "fn main() {}\n");
        } else {
            let _ = fs::remove_file(directory.join("base/src/main.rs"));
        }
        ends(0, directory, &["sync", "--workspace"]);
        let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
        assert!(err.contains("Fresh"), "{err}");
        let call = if has_program { "finalize" } else { "build" };
        assert_eq!(read(directory, "base/build.rs"), build_script(call));
        let finalizer = directory.join("base/gpustub-final");
        assert_eq!(finalizer.exists(), !has_program);
        let lib = read(directory, "base/src/lib.rs");
        let uses_finalizer = lib.contains("use gpustub_final_base as _;");
        assert_eq!(uses_finalizer, !has_program);
        cargo(directory, &["check", "--workspace", "--all-targets"]);
        ends(0, directory, &["plan"]);
    }
    // A dylib is linked by each build.
    let manifest = read(directory, "base/Cargo.toml").replace(
        "[build-dependencies]",
        "[lib]\ncrate-type = [\"dylib\"]\n[build-dependencies]",
    );
    write(directory, "base/Cargo.toml", &manifest);
    ends(0, directory, &["sync", "--workspace"]);
    assert_eq!(read(directory, "base/build.rs"), build_script("finalize"));
    assert!(!directory.join("base/gpustub-final").exists());
    let text = read(directory, "base/Cargo.toml").replace("\"dylib\"", "\"lib\"");
    write(directory, "base/Cargo.toml", &text);
    // A script that links in its own way stays.
    let script = "fn main() {\n    gpustub_build::Build::new().finalize().build();\n}\n";
    write(directory, "base/build.rs", script);
    ends(0, directory, &["sync", "--workspace"]);
    assert_eq!(read(directory, "base/build.rs"), script);
    assert!(!directory.join("base/gpustub-final").exists());
    ends(0, directory, &["plan"]);
}

fn build_script(call: &str) -> String {
    format!("fn main() {{\n    gpustub_build::{call}();\n}}\n")
}

/// A published library does not name the finalizer of its tests, and builds without it.
#[test]
fn packages_omit_the_finalizers_of_tests() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    let root = read(directory, "Cargo.toml");
    let published = root.replace("\"helper\" }", "\"helper\", version = \"0.1\" }");
    write(directory, "Cargo.toml", &published);
    rdc(directory, "extra", "", "");
    let features = "[features]\nmore = [\"dep:between\"]\n[dependencies]\n\
                    between = { path = \"../between\", version = \"0.1\", optional = true }\n";
    let deps = "[dependencies]\nextra = { path = \"../extra\", version = \"0.1\" }\n";
    plain(directory, "between", deps);
    rdc(directory, "base", features, "");
    ends(0, directory, &["sync", "--workspace"]);
    let text = read(directory, "base/Cargo.toml");
    assert!(
        text.contains("more = [\"dep:between\", \"gpustub-final-base/more\"]\n"),
        "{text}"
    );
    // Without lock files, older versions of cargo do not search a registry for the other packages.
    let package = [
        "package",
        "--workspace",
        "--allow-dirty",
        "--no-verify",
        "--exclude-lockfile",
    ];
    cargo(directory, &package);
    // Cargo leaves unpacked packages only where it builds them or writes their lock files.
    let archive = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("finalizers/package")
        .join("base-0.1.0.crate");
    let mut unpack = Command::new("tar");
    unpack.arg("-xzf").arg(&archive).current_dir(directory);
    assert!(unpack.status().unwrap().success());
    let text = read(directory, "base-0.1.0/Cargo.toml");
    assert!(text.contains("more = [\"dep:between\"]\n"), "{text}");
    assert!(!text.contains("gpustub-final"), "{text}");
    assert!(!directory.join("base-0.1.0/gpustub-final").exists());
}

/// A package that needs stubs and a finalizer has both after one run.
#[test]
fn one_sync_writes_stubs_and_finalizer() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    write(directory, "app/src/lib.rs", "");
    write(
        directory,
        "app/GpuStub.toml",
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n",
    );
    ends(0, directory, &["sync", "--workspace"]);
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
    let main = read(directory, "app/src/main.rs");
    for line in ["use app as _;", "use gpustub_final_app as _;"] {
        assert!(main.contains(line), "{main}");
    }
}

/// The finalizers of the first run are those of later ones, when the packages have `links`.
#[test]
fn one_sync_writes_links_and_finalizers() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    for name in ["base", "left", "right"] {
        let path = format!("{name}/Cargo.toml");
        let text = read(directory, &path).replace(&format!("links = \"gpustub-{name}\"\n"), "");
        write(directory, &path, &text);
    }
    ends(0, directory, &["sync", "--workspace"]);
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
}

/// `sync` does not change a build script that links the code of the direct dependencies.
#[test]
fn direct_device_link_has_no_finalizer() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    let helper = "[build-dependencies]\n\
                  gpustub-build = { workspace = true, features = [\"device-link\"] }\n";
    program(
        directory,
        "app",
        &(dependencies_on(&["left", "right"]) + helper),
    );
    write(directory, "app/build.rs", &build_script("finalize"));
    ends(0, directory, &["sync", "--workspace"]);
    assert!(!directory.join("app/gpustub-final").exists());
    ends(0, directory, &["plan"]);
    // Crates without CUDA code hide their dependencies.
    plain(directory, "between", &dependencies_on(&["left", "right"]));
    program(directory, "app", &(dependencies_on(&["between"]) + helper));
    let (_, err) = ends(1, directory, &["plan"]);
    assert!(err.contains("does not receive left, right, base"), "{err}");
    // An existing finalizer is not kept, either.
    program(directory, "app", &dependencies_on(&["between"]));
    fs::remove_file(directory.join("app/build.rs")).unwrap();
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["plan"]);
    let text = read(directory, "app/Cargo.toml") + helper;
    write(directory, "app/Cargo.toml", &text);
    write(directory, "app/build.rs", &build_script("finalize"));
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    let reported =
        "error[multiple-finalizers]: the build script of `app` device-links its programs";
    assert!(err.contains(reported), "{err}");
}

/// Device code from outside of the workspace.
#[test]
fn finalizer_includes_dependencies_outside_the_workspace() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(&directory.join("others"), "base", "", "");
    let path = "others/base/Cargo.toml";
    let text = read(directory, path).replace("workspace = true", "path = \"../../helper\"");
    write(directory, path, &format!("{text}[workspace]\n"));
    program(
        directory,
        "app",
        "[dependencies]\nbase = { path = \"../others/base\" }\n",
    );
    write(directory, "app/GpuStub.toml", "schema = 1\n");
    cargo(directory, &["generate-lockfile"]);
    ends(0, directory, &["sync", "--workspace"]);
    assert_eq!(linked(directory, &["-p", "app"]), ["base"]);
    let text = read(directory, "app/gpustub-final/Cargo.toml");
    assert!(
        text.contains("base = { path = \"../../others/base\""),
        "{text}"
    );
    // A package with its own workspace: the finalizer must find the helper as other packages do.
    let alone = directory.join("others/alone");
    package(
        &alone,
        "alone",
        "[workspace]\n[dependencies]\nbase = { path = \"../base\" }\n",
    );
    write(&alone, "src/main.rs", "fn main() {}\n");
    write(&alone, "GpuStub.toml", "schema = 1\n");
    cargo(&alone, &["generate-lockfile"]);
    ends(0, &alone, &["sync"]);
    let text = read(&alone, "gpustub-final/Cargo.toml");
    assert!(
        text.contains("gpustub-build = { path = \"../../../helper\""),
        "{text}"
    );
    cargo(&alone, &["check"]);
}
