//! Rejected device links: by which packages and commands, and with which further output.

use std::process::Command;

use super::cuda::{dependencies_on, diamond, program, rdc, workspace};
use super::device_links::lines;
use super::{ends, write};

/// Cargo builds a package without the features that other members enable.
#[test]
fn a_package_has_its_own_features() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    let features = "[features]\nmore = []\nextra = [\"dep:extra\"]\n\
                    [dependencies]\nextra = { path = \"../extra\", optional = true }\n";
    rdc(directory, "base", features, "");
    let table = "[device-link.more]\nsources = [\"*.cu\"]\narchs = [\"sm_90\"]\n\
                 requires = [\"base\"]\nrequired-features = [\"more\"]\n";
    let text = std::fs::read_to_string(directory.join("base/GpuStub.toml")).unwrap();
    write(directory, "base/GpuStub.toml", &(text + table));
    rdc(directory, "extra", "", "");
    for (name, feature) in [("one", "more"), ("two", "extra")] {
        let dependencies = format!(
            "[dependencies]\nbase = {{ path = \"../base\", features = [\"{feature}\"] }}\n"
        );
        program(directory, name, &dependencies);
    }
    program(directory, "none", &dependencies_on(&["base"]));
    // `more` has no code for the architecture of `base`.
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    assert!(err.contains("error[missing-arch]"), "{err}");
    for (name, code, expected) in [
        ("one", 1, "more base"),
        ("two", 0, "base extra"),
        ("none", 0, "base"),
    ] {
        let (out, err) = ends(code, directory, &["plan", "-p", name]);
        assert_eq!(linked_libraries(name, &out), expected, "{out}{err}");
        ends(code, directory, &["check", "-p", name]);
        ends(code, directory, &["sync", "-p", name]);
    }
    // Code that only other packages enable in `base` is not in its own plan.
    let (out, _) = ends(0, directory, &["plan", "-p", "base"]);
    let (tables, links) = out.split_once("device links\n").unwrap();
    assert!(tables.contains("device-link.more: off"), "{out}");
    assert!(!links.contains("more") && !out.contains("extra"), "{out}");
    // Together, and without a selection, they have the code that each enables.
    let (out, _) = ends(0, directory, &["plan", "-p", "two", "-p", "none"]);
    assert_eq!(linked_libraries("none", &out), "base extra");
    let (out, _) = ends(1, directory, &["plan"]);
    assert_eq!(linked_libraries("none", &out), "more base extra");
    // Features of the command line are those of the selected packages.
    let (_, err) = ends(
        101,
        directory,
        &["plan", "-p", "two", "--features", "nothing"],
    );
    assert!(err.contains("nothing"), "{err}");
}

/// Libraries in the device link of a package's program, from the output of `plan`.
fn linked_libraries(name: &str, out: &str) -> String {
    let line = lines(out, &format!("{name}/bin/")).concat();
    let (_, link) = line.split_once("device link: ").unwrap();
    link.split_once(" (").unwrap().0.to_owned()
}

/// `sync` does not report graphs as fresh that `plan`, `check` and the build reject.
#[test]
fn sync_refuses_what_plan_refuses() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    let path = "left/GpuStub.toml";
    let good = std::fs::read_to_string(directory.join(path)).unwrap();
    let app = std::fs::read_to_string(directory.join("app/Cargo.toml")).unwrap();
    // Writes the valid files, and also reports the error of `plan`.
    write(directory, path, &good.replace("sm_80", "sm_90"));
    let (_, err) = ends(1, directory, &["sync", "--workspace"]);
    assert!(
        err.contains("Created app/gpustub-final/Cargo.toml"),
        "{err}"
    );
    assert!(!err.contains("indirect-device-library"), "{err}");
    assert!(err.contains("error[missing-arch]"), "{err}");
    write(directory, path, &good);
    let (_, err) = ends(0, directory, &["sync", "--workspace"]);
    assert!(err.contains("Fresh"), "{err}");

    let stub = "[stub.cuda]\nheader-version = \"12\"\n";
    for (code, text) in [
        ("missing-arch", good.replace("sm_80", "sm_90")),
        (
            "unknown-device-library",
            good.replace("[\"base\"]", "[\"bas\"]"),
        ),
        ("unmatched-sources", good.replace("*.cu", "cuda/*.cu")),
        ("unmatched-sources", good.replace("*.cu", "***.cu")),
        (
            "duplicate-device-symbol",
            good.replace("device-link.left", "device-link.right"),
        ),
        ("incompatible-stubs", format!("{good}{stub}")),
    ] {
        write(directory, path, &text);
        if code == "incompatible-stubs" {
            let right = std::fs::read_to_string(directory.join("right/GpuStub.toml")).unwrap();
            let old_stub = stub.replace("12", "11.7");
            let text = format!("{right}{old_stub}");
            write(directory, "right/GpuStub.toml", &text);
            let (_, err) = ends(1, directory, &["sync", "--workspace"]);
            assert!(err.contains("Updated GpuStub.lock"), "{err}");
        }
        let reported = format!("error[{code}]");
        for command in [
            &["sync", "--workspace"][..],
            &["sync", "--workspace", "--check"],
            &["sync", "--workspace", "--dry-run"],
            &["plan"],
            &["check"],
        ] {
            let (_, err) = ends(1, directory, command);
            assert!(err.contains(&reported), "{command:?}: {err}");
            if code == "unmatched-sources" {
                assert!(err.contains("--> left/GpuStub.toml:3:12"), "{err}");
            }
            assert!(!err.contains("Fresh"), "{command:?}: {err}");
        }
    }
    // A file that is not yet written is not reported as an error.
    write(directory, path, &good);
    write(directory, "app/Cargo.toml", &app);
    let (out, err) = ends(1, directory, &["sync", "--workspace", "--check"]);
    assert!(out.contains("gpustub-final-app"), "{out}");
    assert!(!err.contains("indirect-device-library"), "{err}");
}

/// With errors a plan is shown only if it is complete, and programs can detect that.
#[test]
fn incomplete_plan_is_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let path = "left/GpuStub.toml";
    let good = std::fs::read_to_string(directory.join(path)).unwrap();
    let json = ["plan", "--format", "json"];
    for (code, text) in [(0, good.clone()), (1, good.replace("sm_80", "sm_90"))] {
        write(directory, path, &text);
        let (out, _) = ends(code, directory, &json);
        let document: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["has_errors"], code == 1);
    }
    let (out, err) = ends(1, directory, &["plan"]);
    assert!(!lines(&out, "app/bin/").is_empty(), "{out}");
    assert!(!err.contains("note: no plan"), "{err}");
    for incomplete in [
        good.replace("[\"base\"]", "[\"bas\"]"),
        good.replace("[\"base\"]", "[\"left\"]"),
        good.replace("schema = 1", "schema = 1\nschema = 2"),
        good.replace("*.cu", "cuda/*.cu"),
    ] {
        write(directory, path, &incomplete);
        for command in [&["plan"][..], &json, &["plan", "--why", "app/bin/app"]] {
            let (out, err) = ends(1, directory, command);
            assert!(out.is_empty(), "{out}");
            assert!(err.contains("note: plan not shown"), "{err}");
        }
        let (out, err) = ends(1, directory, &["plan", "--message-format", "json"]);
        assert!(err.is_empty() && !out.contains("\"plan\""), "{out}{err}");
    }
}

/// A runtime that the build would reject for a shared library is rejected before it.
#[test]
fn a_shared_library_needs_shared_stubs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    ends(0, directory, &["sync", "--workspace"]);
    let path = "left/GpuStub.toml";
    let good = std::fs::read_to_string(directory.join(path)).unwrap() + "type = \"shared\"\n";
    let right = std::fs::read_to_string(directory.join("right/GpuStub.toml")).unwrap();
    let stub = |rest: &str| format!("{good}[stub.cudart]\n{rest}");
    for (text, provider, reported) in [
        (good.clone(), "", ""),
        (stub("header-version = \"12\"\ntype = \"shared\"\n"), "", ""),
        (
            stub("provide = false\n"),
            "[stub.cudart]\nheader-version = \"12\"\ntype = \"shared\"\n",
            "",
        ),
        (
            stub("header-version = \"12\"\n"),
            "",
            ", and the stubs of the CUDA runtime are static",
        ),
        (
            stub("provide = false\n"),
            "[stub.cudart]\nheader-version = \"12\"\n",
            ", and the stubs of the CUDA runtime are static",
        ),
        (
            format!("{good}cudart = \"static\"\n"),
            "",
            " and cudart = \"static\"",
        ),
        (
            format!(
                "{}cudart = \"none\"\n[stub.cudart]\nheader-version = \"12\"\n",
                good
            ),
            "",
            "",
        ),
    ] {
        write(directory, path, &text);
        write(directory, "right/GpuStub.toml", &(right.clone() + provider));
        let reported =
            format!("error[invalid-value]: device-link.left has type = \"shared\"{reported}");
        ends_with_or_without(directory, &reported, !reported.ends_with("\"shared\""));
    }
}

/// Checks that all commands reject the runtime, with its span, or that none does.
fn ends_with_or_without(directory: &std::path::Path, reported: &str, refused: bool) {
    for command in [
        &["sync", "--workspace"][..],
        &["sync", "--workspace", "--check"],
        &["plan"],
        &["check"],
    ] {
        let output = super::run(directory, command);
        let err = String::from_utf8(output.stderr).unwrap();
        let is_there = err.contains("error[invalid-value]");
        assert_eq!(is_there, refused, "{command:?}: {err}");
        if refused {
            assert!(err.contains(reported), "{err}");
            assert!(err.contains("--> left/GpuStub.toml:2:14"), "{err}");
            assert_eq!(output.status.code(), Some(1));
        }
    }
}

/// For two versions of a package only the device code is reported first, not its consequences.
#[test]
fn device_code_of_two_package_versions_is_reported_first() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    workspace(directory);
    let old = directory.join("others");
    rdc(
        directory,
        "vec",
        "",
        "[stub.cudart]\nheader-version = \"12\"\n",
    );
    rdc(&old, "vec", "", "[stub.cudart]\nheader-version = \"12\"\n");
    for (name, old, new) in [
        ("vec/Cargo.toml", "0.1.0", "0.2.0"),
        (
            "others/vec/Cargo.toml",
            "workspace = true",
            "path = \"../../helper\"",
        ),
        ("others/vec/Cargo.toml", "gpustub-vec", "gpustub-old-vec"),
    ] {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        assert!(text.contains(old), "{text}");
        write(directory, name, &text.replacen(old, new, 1));
    }
    let both = "[dependencies]\nvec = { path = \"../vec\" }\n\
                old = { path = \"../others/vec\", package = \"vec\" }\n";
    program(directory, "app", both);
    for command in [&["sync", "--workspace"][..], &["plan"], &["check"]] {
        let (_, err) = ends(1, directory, command);
        let first = err.split("error[").nth(1).unwrap();
        assert!(first.starts_with("duplicate-device-symbol]"), "{err}");
        assert!(first.contains("--> "), "{err}");
        assert!(
            !err.contains("indirect-device-library"),
            "{command:?}: {err}"
        );
    }
    // Without the code both versions bring stubs, which is accepted.
    for name in ["vec", "others/vec"] {
        write(
            directory,
            &format!("{name}/GpuStub.toml"),
            "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n",
        );
    }
    ends(0, directory, &["plan"]);
}

/// A list of the files to install needs no prefix, and only libraries can be installed.
#[test]
fn a_list_of_files_needs_no_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    let (_, err) = ends(2, directory, &["export", "device-link", "-p", "base"]);
    assert!(err.contains("--prefix"), "{err}");
    let (_, err) = ends(101, directory, &["export", "device-link", "--list"]);
    assert!(
        err.contains("select one with `-p`: base, left, right\n"),
        "{err}"
    );
    // The helper of these tests builds nothing.
    let (_, err) = ends(
        101,
        directory,
        &["export", "device-link", "-p", "base", "--list"],
    );
    assert!(err.contains("built no [device-link.*]"), "{err}");
}

/// Stubs for a program are for its system, which is not that of the host.
#[test]
#[ignore = "needs mingw-w64: ./tests/run"]
fn stubs_for_a_program_of_windows_need_a_target() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let compile = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(format!("x86_64-w64-mingw32-{program}"));
        let output = command.current_dir(directory).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    write(
        directory,
        "cudart.def",
        "LIBRARY cudart64_12.dll\nEXPORTS\ncudaDeviceReset\n",
    );
    write(
        directory,
        "main.c",
        "int cudaDeviceReset(void);\nint main(void) { return cudaDeviceReset(); }\n",
    );
    compile("dlltool", &["-d", "cudart.def", "-l", "libcudart.a"]);
    compile("gcc", &["-o", "program.exe", "main.c", "libcudart.a"]);
    let export = [
        "export",
        "stubs",
        "--for",
        "program.exe",
        "--out-dir",
        "stubs",
        "--sources-only",
    ];
    let (_, err) = ends(101, directory, &export);
    assert!(
        err.contains("`program.exe` is a PE file, for Windows, the stubs are for ")
            && err.contains("`--target x86_64-pc-windows-gnu`"),
        "{err}"
    );
    let target = ["--target", "x86_64-pc-windows-gnu"];
    ends(0, directory, &[&export[..], &target].concat());
    let (_, err) = ends(
        101,
        directory,
        &[&export[..3], &["/bin/sh"], &export[4..], &target].concat(),
    );
    assert!(
        err.contains("`/bin/sh` is an ELF file, the stubs are for x86_64-pc-windows-gnu"),
        "{err}"
    );
}
