//! Finalizers of certain targets: platforms, tests, and libraries for C.

use super::cuda::{dependencies_on, plain, program, rdc, workspace};
use super::finalizers::{cargo, linked, read};
use super::{ends, write};

#[test]
fn targets_are_mirrored() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    for name in ["base", "some", "both"] {
        rdc(directory, name, "", "");
    }
    let inner = "[target.'cfg(not(windows))'.dependencies]\nboth = { path = \"../both\" }\n";
    plain(directory, "inner", inner);
    let dependencies = "[dependencies]\nbase = { path = \"../base\" }\n\
                        [target.'cfg(target_os = \"linux\")'.dependencies]\n\
                        some = { path = \"../some\" }\ninner = { path = \"../inner\" }\n";
    program(directory, "app", dependencies);
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["sync", "--workspace", "--check"]);
    let text = read(directory, "app/gpustub-final/Cargo.toml");
    for table in [
        "[target.'cfg(all(not(windows), target_os = \"linux\"))'.dependencies]\nboth = ",
        "[target.'cfg(target_os = \"linux\")'.dependencies]\nsome = ",
        "[dependencies]\nbase = ",
    ] {
        assert!(text.contains(table), "{text}");
    }
    let code = read(directory, "app/gpustub-final/src/lib.rs");
    assert!(code.contains("#[cfg(target_os = \"linux\")]\n#[doc(hidden)]\npub use some as _some;"));
    for (target, crates) in [
        ("aarch64-unknown-linux-gnu", &["base", "both", "some"][..]),
        ("x86_64-pc-windows-msvc", &["base"]),
    ] {
        let arguments = ["-p", "app", "--target", target];
        assert_eq!(linked(directory, &arguments), crates);
    }
    cargo(directory, &["check", "-p", "app"]);

    let host = "x86_64-unknown-linux-gnu";
    if cfg!(target_arch = "x86_64") {
        let dependencies = dependencies.replace("'cfg(target_os = \"linux\")'", host);
        program(directory, "app", &dependencies);
        let (_, err) = ends(101, directory, &["sync", "--workspace"]);
        assert!(
            err.contains(&format!("for the target `{host}` only")),
            "{err}"
        );
        assert!(err.contains("write the target as a condition"), "{err}");
    }
}

#[test]
fn packages_with_device_code_in_tests_get_a_dev_finalizer() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    rdc(directory, "more", "", "");
    // A library, whose tests are its only programs, and a program with code in tests only.
    plain(directory, "lib", &dependencies_on(&["base"]));
    program(
        directory,
        "app",
        &dependencies_on(&["base"]).replace("[dep", "[dev-dep"),
    );
    for name in ["lib", "app"] {
        write(
            directory,
            &format!("{name}/tests/it.rs"),
            "#[test]\nfn it() {}\n",
        );
    }
    ends(0, directory, &["sync", "--workspace"]);
    ends(0, directory, &["sync", "--workspace", "--check"]);
    for name in ["lib", "app"] {
        let text = read(directory, &format!("{name}/Cargo.toml"));
        let (_, dev) = text.split_once("[dev-dependencies]\n").unwrap();
        let line = format!(
            "gpustub-final-{name} = {{ path = \"gpustub-final\", features = [\"gpustub-link\"] }}\n"
        );
        assert!(dev.contains(&line), "{text}");
        assert!(read(directory, &format!("{name}/tests/it.rs")).contains("use gpustub_final_"));
    }
    let code = read(directory, "lib/src/lib.rs");
    let line = "#[cfg(test)]\nuse gpustub_final_lib as _; // the device link of its CUDA code\n";
    assert_eq!(code, line);
    assert_eq!(read(directory, "app/src/main.rs"), "fn main() {}\n");
    cargo(directory, &["check", "--workspace", "--all-targets"]);

    // Needed by a program, the finalizer becomes a normal dependency.
    let text = read(directory, "app/Cargo.toml").replace("base =", "# base =");
    write(
        directory,
        "app/Cargo.toml",
        &(text + &dependencies_on(&["base"])),
    );
    ends(0, directory, &["sync", "--workspace"]);
    let text = read(directory, "app/Cargo.toml");
    assert_eq!(text.matches("gpustub-final-app").count(), 1, "{text}");
    let (_, normal) = text.split_once("\n[dependencies]\n").unwrap();
    assert!(normal.contains("gpustub-final-app"), "{text}");
    assert!(!text.contains("gpustub-link"), "{text}");
    assert!(read(directory, "app/src/main.rs").contains("use gpustub_final_app as _;"));
    cargo(directory, &["check", "--workspace", "--all-targets"]);

    // If the tests have more code than the programs, no single link fits.
    let more = dependencies_on(&["more"]).replace("[dep", "\n[dev-dep");
    let text = text.replace("[dev-dependencies]\n", "");
    write(directory, "app/Cargo.toml", &(text + &more));
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    assert!(err.contains("error[test-only-device-code]"), "{err}");
    assert!(
        err.contains("make `more` a normal dependency of `app`"),
        "{err}"
    );
}

#[test]
fn a_library_for_c_and_for_rust_is_refused_where_both_are_used() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "");
    let lib = "[lib]\ncrate-type = [\"cdylib\", \"rlib\"]\n".to_owned();
    plain(directory, "mixed", &(lib + &dependencies_on(&["base"])));
    ends(0, directory, &["sync", "--workspace"]);
    assert!(read(directory, "mixed/src/lib.rs").starts_with("use gpustub_final_mixed as _;"));
    program(directory, "app", &dependencies_on(&["mixed"]));
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    assert!(
        err.contains("error[multiple-finalizers]") && err.contains("`app` links it"),
        "{err}"
    );
    let (out, _) = ends(0, directory, &["explain", "multiple-finalizers"]);
    assert!(out.contains("crate-type"), "{out}");
    ends(0, directory, &["explain", "test-only-device-code"]);
}

#[test]
fn a_library_for_c_exports_its_device_link_to_shared_libraries() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "left", "", "type = \"shared\"\n");
    rdc(directory, "right", "", "type = \"shared\"\n");
    let library = "[lib]\ncrate-type = [\"cdylib\"]\n".to_owned();
    plain(
        directory,
        "forc",
        &(library + &dependencies_on(&["left", "right"])),
    );
    ends(0, directory, &["sync", "--workspace"]);
    let plan = ["plan", "-p", "forc"];
    let (out, _) = ends(0, directory, &plan);
    assert!(
        out.contains("exports the functions for left right"),
        "{out}"
    );
    let code = read(directory, "forc/gpustub-final/src/lib.rs");
    assert!(code.contains("\"/gpustub/exports.rs\""), "{code}");
    // If one library requires the other, it has a final over both.
    rdc(
        directory,
        "left",
        &dependencies_on(&["right"]),
        "type = \"shared\"\nrequires = [\"right\"]\n",
    );
    ends(0, directory, &["sync", "--workspace"]);
    let (out, _) = ends(0, directory, &plan);
    assert!(out.contains("forc/cdylib: uses left_final"), "{out}");
}

/// No build script passes a device link to a Rust dylib of another package.
#[test]
fn rust_dylibs_that_reach_device_code_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    rdc(directory, "base", "", "type = \"shared\"\n");
    let library = "[lib]\ncrate-type = [\"dylib\"]\n".to_owned();
    plain(
        directory,
        "dynamic",
        &(library + &dependencies_on(&["base"])),
    );
    program(directory, "app", &dependencies_on(&["dynamic"]));
    for command in [&["sync", "--workspace"][..], &["plan"]] {
        let (_, err) = ends(1, directory, command);
        let reported = "the device link of dynamic/dylib does not receive base";
        assert!(err.contains(reported), "{err}");
    }
}
