//! `components/wheel-headers`, with wheels that a directory has.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// Writes a wheel with these files and a RECORD of them, which has another hash for `broken.h`.
const PACK: &str = r#"
import base64, hashlib, sys, zipfile
directory, name, *files = sys.argv[1:]
record = f"{name}-1.dist-info/RECORD"
with zipfile.ZipFile(f"{directory}/{name}-1-py3-none-any.whl", "w") as wheel:
    rows = []
    for file in files:
        wheel.writestr(file, file)
        listed = "" if file.endswith("broken.h") else file
        digest = base64.urlsafe_b64encode(hashlib.sha256(listed.encode()).digest())
        rows.append(f"{file},sha256={digest.decode().rstrip('=')},{len(file)}")
    wheel.writestr(record, "\n".join([*rows, f"{record},,"]))
"#;

/// Unpacks a wheel with these files: its headers, or the error.
fn unpack(files: &[&str]) -> Result<std::result::Result<Vec<String>, String>> {
    let dir = scratch()?;
    let mut pack = Command::new("python3");
    pack.args(["-c", PACK])
        .arg(dir.path())
        .arg("acme")
        .args(files);
    succeed(&mut pack)?;
    let tree = dir.path().join("tree");
    let list = dir.path().join("wanted");
    fs::write(&list, "headers/acme-1\tacme==1\n")?;
    let mut command = Command::new("python3");
    command
        .arg(repository().join("tests/components/wheel-headers"))
        .args([&list, &tree])
        .env("PYTHONPATH", component("pip")?)
        .env("PIP_NO_INDEX", "1")
        .env("PIP_FIND_LINKS", dir.path());
    let ran = run(&mut command)?;
    if ran.status.success() {
        let expected = format!("headers/acme-1\tacme==1\t{}\n", tree.join("0").display());
        assert_eq!(ran.stdout, expected);
        let ran = succeed(
            Command::new("find")
                .current_dir(tree.join("0"))
                .args(["-type", "f"]),
        )?;
        let mut headers: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
        headers.sort();
        return Ok(Ok(headers));
    }
    assert!(!tree.join("include/outside.h").exists());
    Ok(Err(ran
        .stderr
        .lines()
        .last()
        .unwrap_or_default()
        .to_owned()))
}

#[test]
#[ignore = "needs pip of the components: ./tests/run"]
fn only_headers_that_the_record_names_are_unpacked() -> Result<()> {
    let files = [
        "acme/include/acme.h",
        "acme/include/acme/more.hpp",
        "acme/include/__init__.py",
        "acme/lib/libacme.so.1",
        "acme/include.h",
    ];
    let headers = ["./acme/include/acme.h", "./acme/include/acme/more.hpp"];
    assert_eq!(unpack(&files)?, Ok(headers.map(str::to_owned).to_vec()));
    for (file, error) in [
        (
            "acme/include/broken.h",
            "`acme/include/broken.h` is not the file that RECORD names",
        ),
        (
            "../include/outside.h",
            "`../include/outside.h` is outside of the wheel",
        ),
    ] {
        let expected = format!("error: acme==1: {error}");
        assert_eq!(unpack(&["acme/include/acme.h", file])?, Err(expected));
    }
    let none = "error: acme==1 has no headers".to_owned();
    assert_eq!(unpack(&["acme/lib/libacme.so.1"])?, Err(none));
    Ok(())
}

#[test]
#[ignore = "needs pip of the components: ./tests/run"]
fn files_of_the_newest_wheel_are_listed() -> Result<()> {
    let dir = scratch()?;
    let mut pack = Command::new("python3");
    pack.args(["-c", PACK]).arg(dir.path());
    succeed(pack.args(["acme", "acme/libacme.so.1", "acme/__init__.py"]))?;
    let list = |project: &str| -> Result<_> {
        let mut command = Command::new("python3");
        command
            .arg(repository().join("tests/components/wheel-headers"))
            .args(["--files", project])
            .env("PYTHONPATH", component("pip")?)
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", dir.path());
        run(&mut command)
    };
    let files =
        "acme\t1\tacme/libacme.so.1\nacme\t1\tacme/__init__.py\nacme\t1\tacme-1.dist-info/RECORD\n";
    assert_eq!(list("acme")?.success()?.stdout, files);
    let missing = list("acme-cu13")?;
    assert_eq!(missing.status.code(), Some(1));
    let error = "error: no wheel for acme-cu13: the index of pip has none for this machine, or does not answer\n";
    assert_eq!(missing.stderr, error);
    Ok(())
}

/// A directory with `components/install`, whose only component is a source package, and the versions that apt
/// lists of it, none of which can be downloaded.
fn install_sources(versions: &[&str]) -> Result<Vec<String>> {
    let dir = scratch()?;
    let tools = dir.path().join("tools");
    fs::create_dir(&tools)?;
    let script = dir.path().join("install");
    fs::copy(repository().join("tests/components/install"), &script)?;
    for list in ["moving.list", "moving-trees.list"] {
        fs::write(dir.path().join(list), "")?;
    }
    let line = "acme-7   sid  acme-toolchain-7 src\n";
    fs::write(dir.path().join("moving-sources.list"), line)?;
    let output: String = versions
        .iter()
        .map(|version| format!("Version: {version}\\n"))
        .collect();
    for (tool, code) in [
        ("apt-cache", format!("printf '{output}'")),
        (
            "apt-get",
            // The part after `=` is the version. That of version 1 is not listed.
            format!(
                "for word; do case $word in *=2) \
                 echo \"'file://{}/none' acme_2.orig.tar.xz 1 SHA256:0\" ;; esac; done",
                dir.path().display()
            ),
        ),
    ] {
        let tool = tools.join(tool);
        fs::write(&tool, format!("#!/bin/sh\n{code}\n"))?;
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755))?;
    }
    let mut install = Command::new("bash");
    install.args([
        "-c",
        r#"PATH=$1:$PATH exec bash "$2" "$3" --moving"#,
        "install",
    ]);
    install.args([&tools, &script, &dir.path().join("components")]);
    let ran = run(&mut install)?;
    assert_eq!(ran.status.code(), Some(1), "{}", ran.stderr);
    let directory = dir.path().display().to_string();
    Ok(ran
        .stderr
        .lines()
        .map(|line| line.replace(&directory, "DIRECTORY"))
        .collect())
}

#[test]
#[ignore = "needs Debian's apt: ./tests/run"]
fn missing_sources_are_named_with_the_versions_that_were_tried() -> Result<()> {
    let change = "help: change the line of `acme-7` in tests/components/moving-sources.list if the suite has another \
                  package";
    let error = "error: cannot download the source package `acme-toolchain-7` of Debian sid, for the component \
                 `acme-7`";
    let lines = install_sources(&["2", "1"])?;
    let error_line =
        (lines.iter().position(|line| line == error)).ok_or_else(|| lines.join("\n"))?;
    assert_eq!(
        lines[error_line + 1..],
        [
            "  tried: 2 (file://DIRECTORY/none)",
            "  tried: 1",
            "help: a mirror may lag behind its own list: run this again later, or with another mirror in /etc/apt",
            change,
        ]
    );
    assert_eq!(
        install_sources(&[])?,
        [
            error,
            "  tried: nothing, as the mirror lists no version",
            "help: find the suites that have it at https://tracker.debian.org/pkg/acme-toolchain-7",
            change,
        ]
    );
    Ok(())
}
