//! Source of the build-dependency that `sync` writes, and the sources that it leaves alone.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{ends, package, repository, write};

fn read(directory: &Path, name: &str) -> String {
    fs::read_to_string(directory.join(name)).unwrap()
}

/// A package with a declared library, and with this value for gpustub-build, if any.
fn user(directory: &Path, name: &str, helper: Option<&str>) {
    let helper = helper.map(|value| format!("\n[build-dependencies]\ngpustub-build = {value}\n"));
    package(directory, name, &helper.unwrap_or_default());
    write(directory, "GpuStub.toml", "schema = 1\n[stub.opencl]\n");
}

#[test]
fn a_project_in_the_tree_of_the_tool_gets_a_relative_path() {
    let target = repository().join("target");
    fs::create_dir_all(&target).unwrap();
    let directory = tempfile::tempdir_in(target).unwrap();
    let directory = directory.path();
    write(
        directory,
        "Cargo.toml",
        "[workspace]\nresolver = \"3\"\nmembers = [\"a\", \"b\"]\n",
    );
    for name in ["a", "b"] {
        user(&directory.join(name), name, None);
    }
    ends(0, directory, &["sync", "--workspace"]);
    let line = "\n[build-dependencies]\ngpustub-build = { path = \"../../../gpustub-build\" }\n";
    for name in ["a", "b"] {
        let text = read(directory, &format!("{name}/Cargo.toml"));
        assert!(text.ends_with(line), "{text}");
    }
    let (_, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
    assert!(err.contains("Fresh"), "{err}");
    fs::copy(
        repository().join("Cargo.lock"),
        directory.join("Cargo.lock"),
    )
    .unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(directory)
        .args(["tree", "--offline", "--invert", "gpustub-build"]);
    let output = cargo.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    let tree = String::from_utf8_lossy(&output.stdout);
    assert!(
        tree.contains("a v0.1.0") && tree.contains("b v0.1.0"),
        "{tree}{err}"
    );
}

#[test]
fn a_declared_source_is_followed_and_stays() {
    for source in [
        "\"0.1\"",
        "{ version = \"=0.1.0\", registry = \"ours\" }",
        "{ path = \"../../elsewhere/gpustub-build\" }",
        "{ git = \"https://host.invalid/gpustub\" }",
        "{ git = \"https://host.invalid/gpustub\", branch = \"feature/x\" }",
        "{ git = \"ssh://git@host.invalid/gpustub\", tag = \"v1\" }",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        let members =
            "[workspace]\nresolver = \"3\"\nmembers = [\"w/*\"]\nexclude = [\"elsewhere\"]\n";
        write(directory, "Cargo.toml", members);
        // The name of a registry has to be known.
        let ours = "[registries.ours]\nindex = \"https://host.invalid/index\"\n";
        write(directory, ".cargo/config.toml", ours);
        package(
            &directory.join("elsewhere/gpustub-build"),
            "gpustub-build",
            "",
        );
        user(&directory.join("w/declares"), "declares", Some(source));
        user(&directory.join("w/another"), "another", None);
        ends(0, directory, &["sync", "--workspace"]);
        let text = read(directory, "w/declares/Cargo.toml");
        let line = format!("gpustub-build = {source}\n");
        assert!(text.ends_with(&line), "{text}");
        let text = read(directory, "w/another/Cargo.toml");
        // A registry is not a source that others are given.
        let expected = if source.contains("version") {
            "gpustub-build = \"0.1\"\n"
        } else {
            &line
        };
        assert!(text.ends_with(expected), "{source}: {text}");
        let (out, err) = ends(0, directory, &["sync", "--workspace", "--check"]);
        assert!(
            out.is_empty() && err.contains("Fresh"),
            "{source}: {out}{err}"
        );
    }
}
