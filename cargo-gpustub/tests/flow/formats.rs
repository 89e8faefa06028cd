//! Machine-readable output: SARIF of `check` against its schema, GitHub Actions' commands, the schema for editors.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use jsonschema::Validator;
use serde_json::Value;

use super::{cc, ended, ends, gpustub, pack, package, repository, write};

/// Schema of SARIF 2.1.0, from the crate `serde-sarif`.
fn schema() -> Validator {
    let mut metadata = cargo_metadata::MetadataCommand::new();
    metadata.manifest_path(repository().join("Cargo.toml"));
    // Only the packages for this machine's tests have been downloaded.
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let rustc_version = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc_version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .unwrap();
    let options = ["--offline", "--locked", "--filter-platform", host];
    metadata.other_options(options.map(str::to_owned).to_vec());
    let metadata = metadata.exec().expect("the packages of this repository");
    let package = metadata
        .packages
        .iter()
        .find(|package| package.name.as_str() == "serde-sarif")
        .unwrap();
    let schema_path = package
        .manifest_path
        .parent()
        .unwrap()
        .join("src/schema.json");
    let text = fs::read_to_string(schema_path).unwrap();
    // The pattern of languages has a bracket that only JavaScript accepts unescaped.
    let text = text.replace("{2}]?$", r"{2}\\]?$");
    let schema: Value = serde_json::from_str(&text).unwrap();
    assert!(
        schema["title"].as_str().unwrap().contains("Version 2.1.0"),
        "{}",
        schema["title"]
    );
    jsonschema::options()
        .should_validate_formats(true)
        .build(&schema)
        .unwrap()
}

/// Runs with `--message-format sarif`, which always prints one valid document. Returns its run.
fn sarif(code: i32, directory: &Path, arguments: &[&str]) -> Value {
    let arguments = [arguments, &["--message-format", "sarif"]].concat();
    let (out, _) = ends(code, directory, &arguments);
    let (second_out, _) = ends(code, directory, &arguments);
    assert_eq!(out, second_out);
    let document: Value = serde_json::from_str(&out).unwrap();
    let errors: Vec<String> = schema()
        .iter_errors(&document)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, [""; 0], "{out}");
    document["runs"][0].clone()
}

/// Package with findings of all levels in `GpuStub.toml`, files with odd names, and no `sync`.
fn demo(directory: &Path) {
    package(directory, "demo", "");
    let text = "schema = 1\n[stub.cudart]\nmajors = [\"12\", \"11\"]\nmin-version = \"12.2\"\n\
                header-version = \"13.77\"\n[policy]\nrules = { no-heder = \"deny\" }\n";
    write(directory, "GpuStub.toml", text);
    write(directory, "dist/a b%ü.so", "\x7fELF");
}

/// The rule of each result, sorted.
fn rule_ids(run: &Value) -> Vec<&str> {
    let results = run["results"].as_array().unwrap();
    let mut ids: Vec<&str> = results
        .iter()
        .map(|result| result["ruleId"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    ids
}

#[test]
fn sarif_is_valid_against_its_schema() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    demo(directory);
    let run = sarif(1, directory, &["check"]);
    let expected = [
        "out-of-sync",
        "out-of-sync",
        "out-of-sync",
        "unknown-rule",
        "unsupported-header-version",
        "unusable-major",
    ];
    assert_eq!(rule_ids(&run), expected);
    let results = run["results"].as_array().unwrap();
    let result = results
        .iter()
        .find(|result| result["ruleId"] == "unusable-major")
        .unwrap();
    let location = &result["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "GpuStub.toml");
    assert_eq!(location["region"]["startLine"], 3);

    // An invalid file, by a relative and an absolute path.
    for path in ["dist", directory.join("dist").to_str().unwrap()] {
        sarif(1, directory, &["check", path]);
    }
    // No findings; and a command that could not run, with the reason.
    let clean = tempfile::tempdir().unwrap();
    write(clean.path(), "text", "nothing");
    let run = sarif(0, clean.path(), &["check", "text"]);
    assert_eq!(rule_ids(&run), [""; 0]);
    let run = sarif(101, clean.path(), &["check"]);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    // Other commands support it, too.
    let run = sarif(1, directory, &["sync", "--check"]);
    let expected = [
        "out-of-sync",
        "out-of-sync",
        "out-of-sync",
        "unsupported-header-version",
    ];
    assert_eq!(rule_ids(&run), expected);
}

/// Only the human-readable format ends with a summary.
#[test]
fn summary_is_only_in_human_output() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    demo(directory);
    let (_, err) = ends(1, directory, &["check"]);
    let summary = err.lines().last().unwrap_or_default();
    assert_eq!(summary, "     Checked 1 package: 5 errors, 1 warning");
    for format in ["short", "json", "github", "sarif"] {
        let (_, err) = ends(1, directory, &["check", "--message-format", format]);
        assert!(!err.contains("Checked"), "{format}: {err}");
    }
    let (_, err) = ends(1, directory, &["check", "-q"]);
    assert!(err.contains("error[") && !err.contains("warning["), "{err}");
    let (_, err) = ends(1, directory, &["check", "-v"]);
    assert!(
        err.contains("    Checking the workspace: build-time-toolkit, "),
        "{err}"
    );
    write(directory, "other/text", "nothing");
    fs::remove_file(directory.join("GpuStub.toml")).unwrap();
    let (_, err) = ends(0, directory, &["check", "other"]);
    assert_eq!(err, "     Checked 1 file: nothing found\n");
    // A file named on the command line is expected to be checkable.
    let (_, err) = ends(0, directory, &["check", "other/text"]);
    let skipped =
        "     Skipped other/text: not an ELF or PE file, wheel, crate, zip or tar.gz archive\n";
    assert_eq!(
        err,
        format!("{skipped}     Checked 1 file: nothing found\n")
    );
    let (_, err) = ends(
        0,
        directory,
        &["check", "--message-format", "short", "other/text"],
    );
    assert_eq!(err, "");
    for name in ["a.dylib", "b.dylib"] {
        fs::write(
            directory.join("other").join(name),
            b"\xcf\xfa\xed\xfe\x0c\0\0\x01",
        )
        .unwrap();
    }
    let (_, err) = ends(0, directory, &["check", "other"]);
    let skipped = "other/a.dylib and 1 more: programs and libraries of macOS are not checked";
    assert!(
        err.starts_with(&format!("     Skipped {skipped}\n")),
        "{err}"
    );
}

/// Links that a check does not follow are reported.
#[test]
#[cfg(unix)]
fn links_out_of_a_directory_are_skipped() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "x.so", "\x7fELF");
    fs::create_dir(directory.join("d")).unwrap();
    let reason = "a symbolic link out of the directory, which is not followed";
    for (link, skipped) in [("d/a.so", "d/a.so"), ("d/b.so", "d/a.so and 1 more")] {
        std::os::unix::fs::symlink("../x.so", directory.join(link)).unwrap();
        let (_, err) = ends(0, directory, &["check", "d"]);
        let expected =
            format!("     Skipped {skipped}: {reason}\n     Checked 0 files: nothing found\n");
        assert_eq!(err, expected);
    }
}

/// Copies and siblings of a file have the same fault, which is fixed once.
#[test]
fn human_output_groups_equal_findings() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    for name in ["a.so", "b.so", "c.so"] {
        write(directory, &format!("lib/{name}"), "\x7fELF");
    }
    // An ELF header alone, whose segments would follow it (e_phoff, e_phentsize, e_phnum).
    let mut header = [0; 64];
    header[..7].copy_from_slice(b"\x7fELF\x02\x01\x01");
    (header[16], header[18], header[20]) = (3, 62, 1);
    (header[32], header[52], header[54], header[56]) = (64, 64, 56, 5);
    fs::write(directory.join("lib/c.so"), header).unwrap();
    let (_, err) = ends(1, directory, &["check", "lib"]);
    let group = " --> lib/a.so\n ::: lib/b.so\n  = help: ";
    assert!(err.contains(group), "{err}");
    assert!(err.contains(" --> lib/c.so\n"), "{err}");
    assert!(err.ends_with("Checked 3 files: 3 errors\n"), "{err}");
    let (_, err) = ends(1, directory, &["check", "--message-format", "short", "lib"]);
    assert_eq!(err.lines().count(), 3, "{err}");
    // A file that is named twice is checked once.
    let (_, err) = ends(
        1,
        directory,
        &["check", "--message-format", "short", "lib", "lib"],
    );
    assert_eq!(err.lines().count(), 3, "{err}");
}

/// This program also contains the texts that identify a CUDA runtime and stubs.
#[test]
fn check_has_no_findings_in_its_own_program() {
    let (_, err) = ends(
        0,
        Path::new("."),
        &["check", env!("CARGO_BIN_EXE_cargo-gpustub")],
    );
    assert_eq!(err, "     Checked 1 file: nothing found\n");
}

/// A file without a line is named alone.
#[test]
fn findings_without_a_line_name_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    demo(directory);
    let (out, _) = ends(1, directory, &["check", "--message-format", "github"]);
    let command = "::error file=build.rs,title=gpustub out-of-sync::";
    assert!(out.lines().any(|line| line.starts_with(command)), "{out}");
    let (_, err) = ends(1, directory, &["check"]);
    assert!(err.contains("\n --> build.rs\n"), "{err}");
}

/// Code hosts read paths as relative to the repository, wherever the command runs; a symbolic link may name the repository.
#[test]
fn reports_for_code_hosts_name_files_from_the_root_of_the_repository() {
    let directory = tempfile::tempdir().unwrap();
    let directory = fs::canonicalize(directory.path()).unwrap();
    let repository = directory.join("r");
    let workspace = "[workspace]\nmembers = [\"m\", \"n\"]\nresolver = \"3\"\n";
    write(&repository, "rust/Cargo.toml", workspace);
    package(&repository.join("rust/m"), "m", "");
    package(&repository.join("rust/n"), "n", "");
    let file = "schema = 1\n[stub.cudart]\nheader-version = \"13.77\"\n";
    write(&repository, "rust/m/GpuStub.toml", file);
    write(&repository, "dist/a.so", "\x7fELF");
    let link = directory.join("link");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&repository, &link).unwrap();
    #[cfg(not(unix))]
    let link = repository.clone();
    let absolute = repository.join("dist");
    let declared = ["rust/GpuStub.lock", "rust/m/GpuStub.toml"];
    for (current, arguments, expected) in [
        ("rust/m", &[][..], &declared[..]),
        (
            "rust/n",
            &["--manifest-path", "../m/Cargo.toml"],
            &declared[..],
        ),
        ("rust/m", &["../../dist"], &["dist/a.so"]),
        ("dist", &["."], &["dist/a.so"]),
        ("rust", &[absolute.to_str().unwrap()], &["dist/a.so"]),
    ] {
        for root in [&repository, &link] {
            let output = |format| {
                let arguments = [&["check", "--message-format", format], arguments].concat();
                let mut command = gpustub(&repository.join(current), &arguments);
                let output = command.env("GITHUB_WORKSPACE", root).output().unwrap();
                ended(1, output, &arguments).0
            };
            let commands = output("github");
            let document: Value = serde_json::from_str(&output("sarif")).unwrap();
            let results = document["runs"][0]["results"].as_array().unwrap();
            let locations = results
                .iter()
                .map(|result| &result["locations"][0]["physicalLocation"]["artifactLocation"]);
            let uris: Vec<&str> = locations
                .map(|location| {
                    assert_eq!(location["uriBaseId"], "SRCROOT", "{location}");
                    location["uri"].as_str().unwrap()
                })
                .collect();
            assert!(!commands.contains("file=/"), "{commands}");
            for file in expected {
                assert!(commands.contains(&format!(" file={file},")), "{commands}");
                assert!(uris.contains(file), "{uris:?}");
            }
        }
    }
}

/// A full or missing temporary directory is a fault of the machine: no finding blames the wheel.
#[test]
fn unusable_temporary_directory_is_no_finding() {
    let work = tempfile::tempdir().unwrap();
    let directory = work.path();
    let mut image = b"\x7fELF".to_vec();
    image.resize(5 << 20, 0);
    let members = [("x/libx.so".to_owned(), image)];
    let name = "x-1.0-py3-none-manylinux_2_28_x86_64.whl";
    pack::pack(&directory.join("none"), &members, &directory.join(name)).unwrap();
    write(directory, "d/README", "");
    fs::rename(directory.join(name), directory.join("d").join(name)).unwrap();
    for path in ["d", &format!("d/{name}")] {
        let mut without_directory = gpustub(directory, &["check", path]);
        without_directory.env("TMPDIR", "/nonexistent");
        // A write beyond the limit of a file's size is an error if the signal is ignored.
        let mut with_limit = Command::new("bash");
        with_limit
            .current_dir(directory)
            .args([
                "-c",
                "trap '' XFSZ; ulimit -f 1024; exec \"$0\" check \"$1\"",
            ])
            .args([env!("CARGO_BIN_EXE_cargo-gpustub"), path]);
        let default = std::env::temp_dir().display().to_string();
        for (command, temp, cause, help) in [
            (
                &mut without_directory,
                "/nonexistent",
                "No such file or directory (os error 2)",
                "name another directory with TMPDIR",
            ),
            (
                &mut with_limit,
                &default,
                "File too large (os error 27)",
                "raise the limit of a file's size (`ulimit -f`), or name a directory of another file system with TMPDIR",
            ),
        ] {
            let output = command.output().unwrap();
            let err = String::from_utf8(output.stderr).unwrap();
            let expected = format!(
                "error: could not write a temporary file in `{temp}` for `{path}`: {cause}\n\
                 help: {help}\n"
            );
            assert_eq!((output.status.code(), err), (Some(101), expected));
        }
        let (_, err) = ends(1, directory, &["check", path]);
        assert!(err.contains("malformed-image"), "{err}");
    }
}

#[test]
fn empty_and_relative_runpath_entries_have_help_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "x.c", "const char driver[] = \"libcuda.so.1\";");
    let link = [
        "-shared",
        "-fPIC",
        "-Wl,-rpath,lib:",
        "-o",
        "libx.so",
        "x.c",
    ];
    cc(directory, &link);
    let (_, err) = ends(1, directory, &["check", "libx.so"]);
    for help in [
        "help: remove the empty entry: a `:` at an end of the runpath, or two in a row\n",
        "help: name directories of the package relative to `$ORIGIN`\n",
    ] {
        assert_eq!(err.matches(help).count(), 1, "{err}");
    }
}

/// Directories below a directory, with itself.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let mut directories = vec![directory.to_owned()];
    let mut next = 0;
    while let Some(directory) = directories.get(next) {
        let entries = fs::read_dir(directory).unwrap().flatten();
        let below = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        directories.extend(below.map(|entry| entry.path()).collect::<Vec<_>>());
        next += 1;
    }
    directories
}

/// The schema for editors accepts each `GpuStub.toml` that core's tests read without an error.
#[test]
fn the_schema_accepts_valid_files() {
    let (text, _) = ends(0, Path::new("."), &["schema"]);
    let schema = jsonschema::validator_for(&serde_json::from_str(&text).unwrap()).unwrap();
    let accepts = |text: &str| schema.is_valid(&toml::from_str(text).unwrap());
    let mut valid = 0;
    for directory in directories(&repository().join("crates/core/tests/cases")) {
        let [Ok(text), Ok(expected)] =
            ["GpuStub.toml", "expected.txt"].map(|name| fs::read_to_string(directory.join(name)))
        else {
            continue;
        };
        if !expected.contains("error[") {
            assert!(accepts(&text), "{}", directory.display());
            valid += 1;
        }
    }
    assert!(valid > 15, "{valid} valid files");
    for (text, is_valid) in [
        ("schema = 1\n[policy.rules]\nout-of-sync = \"deny\"\n", true),
        (
            "schema = 1\n[policy.rules]\nout-of-snyc = \"deny\"\n",
            false,
        ),
        ("schema = 2\n", false),
        ("[stub.cuda]\n", false),
    ] {
        assert_eq!(accepts(text), is_valid, "{text}");
    }
}
