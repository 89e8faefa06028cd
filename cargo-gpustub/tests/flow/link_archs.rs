//! `link-archs`: architectures that a program requests for its device link.

use super::cuda::diamond;
use super::device_links::lines;
use super::{ends, write};

/// `link-archs` of a program without tables, in the plan and in its finalizer.
#[test]
fn programs_choose_the_architectures_of_their_device_link() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    diamond(directory);
    let path = "left/GpuStub.toml";
    // Its own tests are programs, too.
    let table = std::fs::read_to_string(directory.join(path))
        .unwrap()
        .replace("sm_80", "sm_86")
        .replace("schema = 1\n", "schema = 1\nlink-archs = [\"sm_86\"]\n");
    write(directory, path, &table);
    for command in ["plan", "check", "sync"] {
        let (_, err) = ends(1, directory, &[command, "-p", "app"]);
        assert!(err.contains("error[missing-arch]"), "{command}: {err}");
    }
    let request = |archs: &str| {
        write(
            directory,
            "app/GpuStub.toml",
            &format!("schema = 1\n{archs}"),
        )
    };
    let finalizer = "app/gpustub-final/GpuStub.toml";
    request("link-archs = [\"sm_86\"]\n");
    ends(0, directory, &["sync", "--workspace"]);
    let text = std::fs::read_to_string(directory.join(finalizer)).unwrap();
    assert!(
        text.ends_with("schema = 1\nlink-archs = [\"sm_86\"]\n"),
        "{text}"
    );
    let manifest = std::fs::read_to_string(directory.join("app/Cargo.toml")).unwrap();
    assert!(!manifest.contains("build-dependencies"), "{manifest}");
    let (out, _) = ends(0, directory, &["plan", "-p", "app"]);
    let line = "app/bin/app: device link: left right base";
    assert!(
        lines(&out, line)
            .iter()
            .all(|line| line.ends_with("; for sm_86")),
        "{out}"
    );
    ends(0, directory, &["check", "-p", "app"]);
    // Not served, and a file that is out of date.
    request("link-archs = [\"sm_90\"]\n");
    for command in ["plan", "check", "sync"] {
        let (_, err) = ends(1, directory, &[command, "-p", "app"]);
        assert!(
            err.contains("app/bin-tests/app needs sm_90"),
            "{command}: {err}"
        );
    }
    request("link-archs = [\"sm_86\", \"sm_89\"]\n");
    let (out, _) = ends(1, directory, &["sync", "--workspace", "--check"]);
    assert!(
        out.contains("+link-archs = [\"sm_86\", \"sm_89\"]"),
        "{out}"
    );
    ends(0, directory, &["sync", "--workspace"]);
    write(directory, path, &table.replace("sm_86", "sm_80"));
    request("");
    let (_, err) = ends(0, directory, &["sync", "--workspace"]);
    assert!(err.contains(&format!("Removed {finalizer}")), "{err}");
    // Without a package at the root, there is no program.
    write(
        directory,
        "GpuStub.toml",
        "schema = 1\nlink-archs = [\"sm_86\"]\n",
    );
    let (_, err) = ends(1, directory, &["check", "--workspace"]);
    assert!(
        err.contains("error[misplaced-table]: no package has the programs"),
        "{err}"
    );
}
