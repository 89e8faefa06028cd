//! Crates that `sync` writes for device links, and cargo's interpretation of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::cuda::{dependencies_on, diamond, plain, program, rdc, workspace};
use super::{ends, package, write};

pub fn read(folder: &Path, path: &str) -> String {
    fs::read_to_string(folder.join(path)).unwrap()
}

/// Runs cargo, which must accept the workspace; returns standard output.
pub fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).args(arguments).arg("--offline");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("finalizers");
    let output = command.env("CARGO_TARGET_DIR", target).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}\n{err}");
    String::from_utf8(output.stdout).unwrap()
}

/// Crates that a package's finalizer has under some features.
fn linked(folder: &Path, arguments: &[&str]) -> Vec<String> {
    let tree = [
        "tree", "-e", "normal", "--prefix", "depth", "--format", " {p}",
    ];
    let out = cargo(folder, &[&tree[..], arguments].concat());
    let lines: Vec<(u32, &str)> = out
        .lines()
        .filter_map(|line| {
            let (depth, rest) = line.split_once(' ')?;
            Some((depth.parse().ok()?, rest.split(' ').next()?))
        })
        .collect();
    let at = lines
        .iter()
        .position(|(_, name)| name.starts_with("gpustub-final"));
    let at = at.expect("a finalizer");
    let below = lines[at + 1..]
        .iter()
        .take_while(|(depth, _)| *depth > lines[at].0);
    let direct = below.filter(|(depth, _)| *depth == lines[at].0 + 1);
    direct.map(|(_, name)| (*name).to_owned()).collect()
}

#[test]
fn a_finalizer_depends_on_the_whole_closure() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    diamond(folder);
    let (out, _) = ends(1, folder, &["sync", "--workspace", "--check"]);
    assert!(out.contains("+++ b/app/gpustub-final/Cargo.toml"), "{out}");
    assert!(!folder.join("app/gpustub-final").exists());
    // The package alone, without a GpuStub.toml.
    ends(0, &folder.join("app"), &["sync"]);
    assert!(folder.join("app/gpustub-final").exists());
    ends(0, folder, &["sync", "--workspace"]);
    for again in [
        &["sync", "--workspace"][..],
        &["sync", "--workspace", "--check"],
    ] {
        let (out, err) = ends(0, folder, again);
        assert!(out.is_empty() && err.contains("Fresh"), "{out}{err}");
    }
    assert_eq!(linked(folder, &["-p", "app"]), ["base", "left", "right"]);
    let text = read(folder, "app/gpustub-final/Cargo.toml");
    for line in [
        "links = \"gpustub-final-app\"\n",
        "base = { path = \"../../base\", version = \"0.1.0\", default-features = false }\n",
        "gpustub-build = { workspace = true, features = [\"device-link\"] }\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let main = read(folder, "app/src/main.rs");
    let line = "use gpustub_final_app as _; // the device link of its CUDA code\n";
    assert!(main.starts_with(line), "{main}");
    // Crates with their own libraries link by their own build scripts.
    assert!(!folder.join("left/gpustub-final").exists());
    cargo(folder, &["check", "--workspace", "--all-targets"]);
}

/// A new version of the package is written into its finalizer and into the dependency on it.
#[test]
fn versions_follow() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    diamond(folder);
    ends(0, folder, &["sync", "--workspace"]);
    let text = read(folder, "app/Cargo.toml");
    let line = "gpustub-final-app = { path = \"gpustub-final\", version = \"=0.1.0\" }\n";
    assert!(text.contains(line), "{text}");
    write(
        folder,
        "app/Cargo.toml",
        &text.replacen("\"0.1.0\"", "\"0.2.0\"", 1),
    );
    ends(0, folder, &["sync", "--workspace"]);
    assert!(read(folder, "app/Cargo.toml").contains("\"=0.2.0\""));
    assert!(read(folder, "app/gpustub-final/Cargo.toml").contains("version = \"0.2.0\""));
    // An unpublished package needs no version.
    let text = read(folder, "app/Cargo.toml").replacen("edition", "publish = false\nedition", 1);
    write(folder, "app/Cargo.toml", &text);
    ends(0, folder, &["sync", "--workspace"]);
    let text = read(folder, "app/Cargo.toml");
    assert!(
        text.contains("gpustub-final-app = { path = \"gpustub-final\" }\n"),
        "{text}"
    );
    ends(0, folder, &["sync", "--workspace", "--check"]);
    cargo(folder, &["metadata", "--format-version", "1"]);
}

#[test]
fn optional_dependencies_follow_their_features() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    for name in ["base", "named", "implicit", "deep"] {
        rdc(folder, name, "", "");
    }
    let inner = "[features]\ndeep = [\"dep:deep\"]\n[dependencies]\n\
                 deep = { path = \"../deep\", optional = true }\n";
    plain(folder, "inner", inner);
    let app = |named: &str| {
        format!(
            "[features]\ndefault = [\"gpu\"]\ngpu = [{}]\ndeep = [\"inner/deep\"]\n\
             [dependencies]\nbase = {{ path = \"../base\" }}\ninner = {{ path = \"../inner\" }}\n\
             named = {{ path = \"../named\"{named} }}\n\
             implicit = {{ path = \"../implicit\", optional = true }}\n",
            match named {
                "" => "",
                _ => "\"dep:named\"",
            }
        )
    };
    program(folder, "app", &app(", optional = true"));
    ends(0, folder, &["sync", "--workspace"]);
    ends(0, folder, &["sync", "--workspace", "--check"]);
    let of = |features: &[&'static str]| linked(folder, &[&["-p", "app"][..], features].concat());
    assert_eq!(of(&["--no-default-features"]), ["base"]);
    assert_eq!(of(&[]), ["base", "named"]);
    assert_eq!(
        of(&["--no-default-features", "-F", "implicit"]),
        ["base", "implicit"]
    );
    assert_eq!(
        of(&["--no-default-features", "-F", "deep"]),
        ["base", "deep"]
    );
    assert_eq!(
        of(&["--all-features"]),
        ["base", "deep", "implicit", "named"]
    );
    let text = read(folder, "app/Cargo.toml");
    let line = "implicit = [\"dep:implicit\", \"gpustub-final-app/implicit\"]\n";
    assert!(text.contains(line), "{text}");
    let code = read(folder, "app/gpustub-final/src/lib.rs");
    let line = "#[cfg(feature = \"gpu\")]\n#[doc(hidden)]\npub use named as _named;\n";
    assert!(code.contains(line), "{code}");
    for features in ["--no-default-features", "--all-features"] {
        cargo(folder, &["check", "-p", "app", features]);
    }

    // The feature must no longer name the removed optional dependency.
    let text = text
        .replace(
            "named = { path = \"../named\", optional = true }",
            "named = { path = \"../named\" }",
        )
        .replace("\"dep:named\", ", "");
    write(folder, "app/Cargo.toml", &text);
    ends(0, folder, &["sync", "--workspace"]);
    assert!(!read(folder, "app/Cargo.toml").contains("gpustub-final-app/gpu"));
    assert_eq!(of(&["--no-default-features"]), ["base", "named"]);
}

#[test]
fn targets_are_mirrored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    for name in ["base", "some", "both"] {
        rdc(folder, name, "", "");
    }
    let inner = "[target.'cfg(not(windows))'.dependencies]\nboth = { path = \"../both\" }\n";
    plain(folder, "inner", inner);
    let app = |key: &str| {
        format!(
            "[dependencies]\nbase = {{ path = \"../base\" }}\n[target.{key}.dependencies]\n\
             some = {{ path = \"../some\" }}\ninner = {{ path = \"../inner\" }}\n"
        )
    };
    program(folder, "app", &app("'cfg(target_os = \"linux\")'"));
    ends(0, folder, &["sync", "--workspace"]);
    ends(0, folder, &["sync", "--workspace", "--check"]);
    let text = read(folder, "app/gpustub-final/Cargo.toml");
    for table in [
        "[target.'cfg(all(not(windows), target_os = \"linux\"))'.dependencies]\nboth = ",
        "[target.'cfg(target_os = \"linux\")'.dependencies]\nsome = ",
        "[dependencies]\nbase = ",
    ] {
        assert!(text.contains(table), "{text}");
    }
    let code = read(folder, "app/gpustub-final/src/lib.rs");
    assert!(code.contains("#[cfg(target_os = \"linux\")]\n#[doc(hidden)]\npub use some as _some;"));
    let of = |target| linked(folder, &["-p", "app", "--target", target]);
    assert_eq!(of("aarch64-unknown-linux-gnu"), ["base", "both", "some"]);
    assert_eq!(of("x86_64-pc-windows-msvc"), ["base"]);
    cargo(folder, &["check", "-p", "app"]);

    let host = "x86_64-unknown-linux-gnu";
    if cfg!(target_arch = "x86_64") {
        program(folder, "app", &app(host));
        let (_, err) = ends(101, folder, &["sync", "--workspace"]);
        assert!(
            err.contains(&format!("for the target `{host}` only")),
            "{err}"
        );
        assert!(err.contains("write the target as a condition"), "{err}");
    }
}

#[test]
fn packages_with_device_code_in_tests_get_a_dev_finalizer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    rdc(folder, "base", "", "");
    rdc(folder, "more", "", "");
    // A library, whose tests are its only programs, and a program with code in tests only.
    plain(folder, "lib", &dependencies_on(&["base"]));
    program(
        folder,
        "app",
        &dependencies_on(&["base"]).replace("[dep", "[dev-dep"),
    );
    for name in ["lib", "app"] {
        write(
            folder,
            &format!("{name}/tests/it.rs"),
            "#[test]\nfn it() {}\n",
        );
    }
    ends(0, folder, &["sync", "--workspace"]);
    ends(0, folder, &["sync", "--workspace", "--check"]);
    for name in ["lib", "app"] {
        let text = read(folder, &format!("{name}/Cargo.toml"));
        let (_, dev) = text.split_once("[dev-dependencies]\n").unwrap();
        let line = format!("gpustub-final-{name} = {{ path = \"gpustub-final\" }}\n");
        assert!(dev.contains(&line), "{text}");
        assert!(read(folder, &format!("{name}/tests/it.rs")).contains("use gpustub_final_"));
    }
    let code = read(folder, "lib/src/lib.rs");
    let line = "#[cfg(test)]\nuse gpustub_final_lib as _; // the device link of its CUDA code\n";
    assert_eq!(code, line);
    assert_eq!(read(folder, "app/src/main.rs"), "fn main() {}\n");
    cargo(folder, &["check", "--workspace", "--all-targets"]);

    // Needed by a program, the finalizer becomes a normal dependency.
    let text = read(folder, "app/Cargo.toml").replace("base =", "# base =");
    write(
        folder,
        "app/Cargo.toml",
        &(text + &dependencies_on(&["base"])),
    );
    ends(0, folder, &["sync", "--workspace"]);
    let text = read(folder, "app/Cargo.toml");
    assert_eq!(text.matches("gpustub-final-app").count(), 1, "{text}");
    let (_, normal) = text.split_once("\n[dependencies]\n").unwrap();
    assert!(normal.contains("gpustub-final-app"), "{text}");
    assert!(read(folder, "app/src/main.rs").contains("use gpustub_final_app as _;"));
    cargo(folder, &["check", "--workspace", "--all-targets"]);

    // If the tests have more code than the programs, no single link fits.
    let more = dependencies_on(&["more"]).replace("[dep", "\n[dev-dep");
    let text = text.replace("[dev-dependencies]\n", "");
    write(folder, "app/Cargo.toml", &(text + &more));
    let (_, err) = ends(1, folder, &["sync", "--workspace"]);
    assert!(err.contains("error[test-only-device-code]"), "{err}");
    assert!(
        err.contains("make `more` a normal dependency of `app`"),
        "{err}"
    );
}

#[test]
fn a_library_for_c_and_for_rust_is_refused_where_both_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    rdc(folder, "base", "", "");
    let mixed = "[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n";
    plain(
        folder,
        "mixed",
        &(mixed.to_owned() + &dependencies_on(&["base"])),
    );
    ends(0, folder, &["sync", "--workspace"]);
    assert!(read(folder, "mixed/src/lib.rs").starts_with("use gpustub_final_mixed as _;"));
    program(folder, "app", &dependencies_on(&["mixed"]));
    let (_, err) = ends(1, folder, &["sync", "--workspace"]);
    assert!(
        err.contains("error[multiple-finalizers]") && err.contains("`app` links it"),
        "{err}"
    );
    let (out, _) = ends(0, folder, &["explain", "multiple-finalizers"]);
    assert!(out.contains("crate-type"), "{out}");
    ends(0, folder, &["explain", "test-only-device-code"]);
}

#[test]
fn a_library_for_c_over_shared_libraries_needs_one_final() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    rdc(folder, "left", "", "type = \"shared\"\n");
    rdc(folder, "right", "", "type = \"shared\"\n");
    let library = "[lib]\ncrate-type = [\"cdylib\"]\n".to_owned();
    plain(
        folder,
        "forc",
        &(library + &dependencies_on(&["left", "right"])),
    );
    let (_, err) = ends(1, folder, &["sync", "--workspace"]);
    assert!(
        err.contains("error[missing-device-link]") && err.contains("libraries left, right"),
        "{err}"
    );
    // If one library requires the other, it has a final over both.
    rdc(
        folder,
        "left",
        &dependencies_on(&["right"]),
        "type = \"shared\"\nrequires = [\"right\"]\n",
    );
    ends(0, folder, &["sync", "--workspace"]);
}

#[test]
fn crates_called_only_by_device_code_get_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    rdc(folder, "base", "", "");
    rdc(
        folder,
        "tip",
        &dependencies_on(&["base"]),
        "requires = [\"base\"]\n",
    );
    rdc(
        folder,
        "tool",
        &dependencies_on(&["tip"]),
        "requires = [\"tip\"]\n",
    );
    fs::remove_file(folder.join("tool/src/lib.rs")).unwrap();
    write(folder, "tool/src/main.rs", "fn main() {}\n");
    ends(0, folder, &["sync", "--workspace"]);
    for (file, line) in [
        ("tip/src/lib.rs", "use base as _; // its CUDA code"),
        ("tool/src/main.rs", "use tip as _; // its CUDA code"),
    ] {
        assert!(
            read(folder, file).starts_with(line),
            "{}",
            read(folder, file)
        );
    }
    ends(0, folder, &["sync", "--workspace", "--check"]);
}

/// Follows the condition of the dependency.
#[test]
fn conditional_dependencies_get_conditional_lines() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    for name in ["implicit", "named", "some", "host"] {
        rdc(folder, name, "[features]\nx = []\n", "");
    }
    let host = "x86_64-unknown-linux-gnu";
    let tip = format!(
        "[features]\ngpu = [\"dep:named\"]\nmore = [\"named/x\"]\nweak = [\"named?/x\"]\n\
         [dependencies]\nimplicit = {{ path = \"../implicit\", optional = true }}\n\
         named = {{ path = \"../named\", optional = true }}\n\
         [target.'cfg(not(windows))'.dependencies]\nsome = {{ path = \"../some\" }}\n\
         [target.{host}.dependencies]\nhost = {{ path = \"../host\" }}\n"
    );
    rdc(folder, "tip", &tip, "");
    ends(0, folder, &["sync", "--workspace"]);
    let code = read(folder, "tip/src/lib.rs");
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
    ends(0, folder, &["sync", "--workspace", "--check"]);
    for features in ["--no-default-features", "--all-features"] {
        cargo(folder, &["check", "-p", "tip", features]);
    }
    // The line is unconditional once the dependency is.
    let text = read(folder, "tip/Cargo.toml");
    write(
        folder,
        "tip/Cargo.toml",
        &text.replace("[target.'cfg(not(windows))'.dependencies]\n", ""),
    );
    ends(0, folder, &["sync", "--workspace"]);
    let code = read(folder, "tip/src/lib.rs");
    assert!(!code.contains("not(windows)"), "{code}");
    assert!(code.contains("use some as _;"), "{code}");
}

/// A package that needs stubs and a finalizer has both after one run.
#[test]
fn one_sync_writes_stubs_and_finalizer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    diamond(folder);
    write(folder, "app/src/lib.rs", "");
    write(
        folder,
        "app/GpuStub.toml",
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n",
    );
    ends(0, folder, &["sync", "--workspace"]);
    let (_, err) = ends(0, folder, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
    let main = read(folder, "app/src/main.rs");
    for line in ["use app as _;", "use gpustub_final_app as _;"] {
        assert!(main.contains(line), "{main}");
    }
}

/// `sync` does not change a build script that links the code of the direct dependencies.
#[test]
fn direct_device_link_has_no_finalizer() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    diamond(folder);
    let light = "[build-dependencies]\n\
                 gpustub-build = { workspace = true, features = [\"device-link\"] }\n";
    program(
        folder,
        "app",
        &(dependencies_on(&["left", "right"]) + light),
    );
    write(
        folder,
        "app/build.rs",
        "fn main() {\n    gpustub_build::finalize();\n}\n",
    );
    ends(0, folder, &["sync", "--workspace"]);
    assert!(!folder.join("app/gpustub-final").exists());
    ends(0, folder, &["plan"]);
    // Crates without CUDA code hide their dependencies.
    plain(folder, "between", &dependencies_on(&["left", "right"]));
    program(folder, "app", &(dependencies_on(&["between"]) + light));
    let (_, err) = ends(1, folder, &["plan"]);
    assert!(err.contains("does not receive left, right, base"), "{err}");
    // An existing finalizer is not kept, either.
    program(folder, "app", &dependencies_on(&["between"]));
    fs::remove_file(folder.join("app/build.rs")).unwrap();
    ends(0, folder, &["sync", "--workspace"]);
    ends(0, folder, &["plan"]);
    let text = read(folder, "app/Cargo.toml") + light;
    write(folder, "app/Cargo.toml", &text);
    let (_, err) = ends(1, folder, &["sync", "--workspace"]);
    let told = "error[multiple-finalizers]: the build script of `app` device-links its programs";
    assert!(err.contains(told), "{err}");
}

/// Device code from outside of the workspace.
#[test]
fn finalizer_includes_dependencies_outside_the_workspace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    workspace(folder);
    let other = folder.join("others");
    rdc(&other, "base", "", "");
    let path = "others/base/Cargo.toml";
    let text = read(folder, path).replace("workspace = true", "path = \"../../helper\"");
    write(folder, path, &format!("{text}[workspace]\n"));
    program(
        folder,
        "app",
        "[dependencies]\nbase = { path = \"../others/base\" }\n",
    );
    write(folder, "app/GpuStub.toml", "schema = 1\n");
    cargo(folder, &["generate-lockfile"]);
    ends(0, folder, &["sync", "--workspace"]);
    assert_eq!(linked(folder, &["-p", "app"]), ["base"]);
    let text = read(folder, "app/gpustub-final/Cargo.toml");
    assert!(
        text.contains("base = { path = \"../../others/base\""),
        "{text}"
    );
    // A package with its own workspace: the finalizer must find the helper as other packages do.
    let alone = folder.join("others/alone");
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
