use super::*;

fn write(root: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Root and packages of the workspace of a directory, relative to `root`.
fn relative_directories(root: &Path, start: &str) -> Option<(String, Vec<String>)> {
    let directories = Directories::find(&root.join(start)).unwrap()?;
    let relative = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
    let packages = directories.packages.iter();
    Some((
        relative(&directories.root),
        packages.map(|path| relative(path)).collect(),
    ))
}

/// Directories of the members by `cargo metadata`, which needs no registry for them.
fn members(root: &Path) -> BTreeSet<PathBuf> {
    let mut cargo = cargo_metadata::MetadataCommand::new();
    cargo.manifest_path(root.join("Cargo.toml")).no_deps();
    let metadata = cargo.exec().unwrap();
    metadata
        .workspace_packages()
        .into_iter()
        .filter_map(|member| Some(member.manifest_path.parent()?.into()))
        .collect()
}

fn package(more: &str) -> String {
    format!("[package]\nname = \"x\"\n{more}")
}

#[test]
fn find_agrees_with_cargo_on_members() {
    let root = tempfile::tempdir().unwrap();
    let root = &fs::canonicalize(root.path()).unwrap();
    write(
        root,
        &[
            (
                "Cargo.toml",
                "[workspace]\nresolver = \"3\"\nmembers = [\"crates/*\", \"tool\", \"skipped/kept\"]\n\
                 exclude = [\"skipped\", \"crates/out\"]\n\
                 [workspace.dependencies]\nshared = { path = \"shared\" }\n",
            ),
            (
                "crates/a/Cargo.toml",
                "[package]\nname = \"a\"\n[dependencies]\nb = { path = \"../../hidden/b\" }\n",
            ),
            ("crates/a/src/lib.rs", ""),
            (
                "tool/Cargo.toml",
                "[package]\nname = \"tool\"\n[build-dependencies]\nshared = { workspace = true }\n\
                 [target.'cfg(unix)'.dev-dependencies]\nunix = { path = \"unix\" }\nserde = \"1\"\n",
            ),
            ("tool/src/lib.rs", ""),
            ("hidden/b/Cargo.toml", "[package]\nname = \"b\"\n"),
            ("hidden/b/src/lib.rs", ""),
            ("shared/Cargo.toml", "[package]\nname = \"shared\"\n"),
            ("shared/src/lib.rs", ""),
            ("tool/unix/Cargo.toml", "[package]\nname = \"unix\"\n"),
            ("tool/unix/src/lib.rs", ""),
            ("skipped/kept/Cargo.toml", "[package]\nname = \"kept\"\n"),
            ("skipped/kept/src/lib.rs", ""),
            ("skipped/other/Cargo.toml", "[package]\nname = \"other\"\n"),
            ("skipped/other/src/lib.rs", ""),
            ("crates/out/Cargo.toml", "[package]\nname = \"out\"\n"),
            ("crates/out/src/lib.rs", ""),
            ("unlisted/readme", ""),
        ],
    );
    let members = members(root);
    assert_eq!(members.len(), 6, "{members:?}");
    for start in ["", "tool/src", "unlisted", "shared", "hidden/b"] {
        let directories = Directories::find(&root.join(start)).unwrap().unwrap();
        assert_eq!(directories.root, *root, "{start}");
        assert_eq!(directories.packages, members, "{start}");
        assert!(directories.is_virtual());
    }
    assert_eq!(
        relative_directories(root, "skipped/other/src").unwrap(),
        ("skipped/other".into(), vec!["skipped/other".into()])
    );
}

#[test]
fn find_follows_package_workspace_and_stops_without_a_package() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    write(
        root,
        &[
            (
                "alone/Cargo.toml",
                &package("[dependencies]\nb = { path = \"b\" }\n"),
            ),
            ("alone/b/Cargo.toml", &package("")),
            (
                "far/Cargo.toml",
                &package("[workspace]\nmembers = [\"../member\"]\n"),
            ),
            ("member/Cargo.toml", &package("workspace = \"../far\"\n")),
            ("none/readme", ""),
        ],
    );
    // Path dependencies are members of workspaces only.
    assert_eq!(
        relative_directories(root, "alone").unwrap(),
        ("alone".into(), vec!["alone".into()])
    );
    for start in ["member", "far"] {
        assert_eq!(
            relative_directories(root, start).unwrap(),
            ("far".into(), vec!["far".into(), "member".into()])
        );
    }
    assert_eq!(relative_directories(root, "none"), None);
}

#[test]
fn find_reports_a_manifest_that_is_no_toml() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), &[("Cargo.toml", "[package\n")]);
    let error = Directories::find(root.path()).unwrap_err();
    assert!(error.message.starts_with("could not parse `"), "{error}");
}

#[test]
fn find_agrees_with_cargo_on_this_repository() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let directories = Directories::find(here).unwrap().unwrap();
    assert_eq!(directories.root, here.ancestors().nth(2).unwrap());
    assert_eq!(directories.packages, members(&directories.root));
    assert!(directories.packages.contains(here));
}
