use std::fs;

use super::*;

/// Record of `cargo install` 1.95 with one more package.
fn record(source: &str) -> String {
    format!(
        r#"{{"installs":{{
            "cargo-deny 0.18.4 (registry+https://registry.example/index)":
                {{"version_req":null,"bins":["cargo-deny"],"features":[],"profile":"release"}},
            "cargo-gpustub 0.1.0 ({source})":
                {{"version_req":null,"bins":["cargo-gpustub"],"features":[],"all_features":false,
                 "no_default_features":false,"profile":"release",
                 "target":"x86_64-unknown-linux-gnu","rustc":"rustc 1.95.0"}}}}}}"#
    )
}

fn git_source(url: &str, reference: Option<(&str, &str)>) -> HelperSource {
    HelperSource::Git {
        url: url.to_owned(),
        reference: reference.map(|(key, value)| (key.to_owned(), value.to_owned())),
    }
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

#[test]
fn recorded_finds_the_source_of_the_program() {
    fn recorded_source(source: &str) -> Option<Installed> {
        recorded(&record(source), "cargo-gpustub")
    }
    let commit = Some(("rev", COMMIT));
    for (url, written) in [
        (
            "https://github.com/gpustub/gpustub",
            "https://github.com/gpustub/gpustub",
        ),
        (
            "https://user:secret@host:8443/a/b.git",
            "https://host:8443/a/b.git",
        ),
        ("https://token@host/a", "https://host/a"),
        ("ssh://git@host/a", "ssh://git@host/a"),
        ("file:///srv/gpustub", "file:///srv/gpustub"),
    ] {
        for query in ["", "?branch=main", "?tag=v0.1.0", "?rev=0123456"] {
            let source = format!("git+{url}{query}#{COMMIT}");
            assert_eq!(
                recorded_source(&source),
                Some(Installed::Git(git_source(written, commit)))
            );
        }
    }
    let path = recorded_source("path+file:///home/a%20b/gpustub/cargo-gpustub");
    assert_eq!(
        path,
        Some(Installed::Path("/home/a b/gpustub/cargo-gpustub".into()))
    );
    for registry in [
        "registry+https://registry.example/index",
        "sparse+https://host/index/",
    ] {
        assert_eq!(recorded_source(registry), Some(Installed::Registry));
    }
    assert_eq!(recorded(&record("git+https://host/a#0"), "other"), None);
    assert_eq!(recorded("{}", "cargo-gpustub"), None);
    assert_eq!(recorded("no JSON", "cargo-gpustub"), None);
}

#[test]
fn installed_reads_the_record_of_its_root() {
    let root = tempfile::tempdir().unwrap();
    let program = root.path().join("bin/cargo-gpustub");
    assert_eq!(installed(&program), None);
    let text = record(&format!("git+https://host/a#{COMMIT}"));
    fs::write(root.path().join(".crates2.json"), text).unwrap();
    let source = git_source("https://host/a", Some(("rev", COMMIT)));
    assert_eq!(installed(&program), Some(Installed::Git(source)));
    assert_eq!(installed(&root.path().join("cargo-gpustub")), None);
}

#[test]
fn git_reads_sources_of_dependencies() {
    for (source, expected) in [
        ("git+https://host/a", git_source("https://host/a", None)),
        (
            "git+https://host/a?tag=v1",
            git_source("https://host/a", Some(("tag", "v1"))),
        ),
        (
            "git+https://host/a?branch=feature%2Fx",
            git_source("https://host/a", Some(("branch", "feature/x"))),
        ),
        (
            "git+https://host/a?rev=0#1",
            git_source("https://host/a", Some(("rev", "1"))),
        ),
    ] {
        assert_eq!(git(source), Some(expected));
    }
    assert_eq!(git("registry+https://host/index"), None);
}

#[test]
fn dependency_has_no_absolute_path() {
    for (source, expected) in [
        (
            HelperSource::Directory("/w/gpustub/gpustub-build".into()),
            "{ path = \"../../gpustub/gpustub-build\" }",
        ),
        (HelperSource::Registry, "\"0.1\""),
        (HelperSource::Inherited, "{ workspace = true }"),
        (
            git_source("https://host/a", Some(("rev", COMMIT))),
            &format!("{{ git = \"https://host/a\", rev = \"{COMMIT}\" }}"),
        ),
    ] {
        let value = source.dependency(Path::new("/w/app/inner"));
        assert_eq!(value.to_string(), expected);
    }
}

#[test]
fn in_tree_needs_one_tree() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    for directory in [
        "gpustub/target/debug",
        "gpustub/examples/app",
        "other",
        "x/third-party",
    ] {
        fs::create_dir_all(root.join(directory)).unwrap();
    }
    for package in ["gpustub-build", "cargo-gpustub"] {
        let directory = root.join("gpustub").join(package);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("Cargo.toml"), "").unwrap();
    }
    let program = root.join("gpustub/target/debug/cargo-gpustub");
    let helper = |project: &str, program: &Path| match in_tree(program, &root.join(project))? {
        HelperSource::Directory(path) => Some(relative(&path, &root.join(project))),
        _ => None,
    };
    let inside = helper("gpustub/examples/app", &program);
    assert_eq!(inside.as_deref(), Some("../../gpustub-build"));
    assert_eq!(
        helper("gpustub", &program).as_deref(),
        Some("gpustub-build")
    );
    assert_eq!(helper("other", &program), None);
    assert_eq!(helper("other", &root.join("x/bin/cargo-gpustub")), None);
    // A project around the checkout, as with a submodule.
    fs::rename(root.join("gpustub"), root.join("x/third-party/gpustub")).unwrap();
    let program = root.join("x/third-party/gpustub/target/debug/cargo-gpustub");
    let around = helper("x", &program);
    assert_eq!(around.as_deref(), Some("third-party/gpustub/gpustub-build"));
}

#[test]
fn patches_helper_reads_patches_of_all_registries() {
    for registry in ["crates-io", "\"https://host/index\""] {
        for (name, is_helper) in [(HELPER, true), ("cc", false)] {
            let patch = format!("[patch.{registry}]\n{name} = {{ path = \"x\" }}\n");
            assert_eq!(patches_helper(&patch).unwrap(), is_helper);
        }
    }
    assert!(!patches_helper("[workspace]\n").unwrap() && patches_helper("[").is_err());
}
