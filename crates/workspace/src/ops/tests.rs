use super::*;

fn operation(directory: &Path, name: &str, after: &str) -> Operation {
    Operation::write(directory.join(name), name.into(), after).unwrap()
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn apply_creates_and_updates_files() {
    let directory = tempfile::tempdir().unwrap();
    let create = operation(directory.path(), "sub/a.toml", "one\n");
    assert_eq!(create.verb(), "Created");
    assert_eq!(
        create.diff(),
        "--- /dev/null\n+++ b/sub/a.toml\n@@ -0,0 +1 @@\n+one\n"
    );
    create.apply().unwrap();

    let update = operation(directory.path(), "sub/a.toml", "two\n");
    assert_eq!(update.verb(), "Updated");
    assert_eq!(
        update.diff(),
        "--- a/sub/a.toml\n+++ b/sub/a.toml\n@@ -1 +1 @@\n-one\n+two\n"
    );
    update.apply().unwrap();

    let same = operation(directory.path(), "sub/a.toml", "two\n");
    assert!(same.is_done());
    assert_eq!(same.diff(), "");
    assert_eq!(names(&directory.path().join("sub")), ["a.toml"]);
}

#[test]
fn remove_deletes_the_empty_directory() {
    let directory = tempfile::tempdir().unwrap();
    operation(directory.path(), "sub/a", "one\n")
        .apply()
        .unwrap();
    operation(directory.path(), "sub/b", "two\n")
        .apply()
        .unwrap();
    let removal = |name: &str| Operation::remove(directory.path().join(name), name.into()).unwrap();
    let first = removal("sub/a");
    assert_eq!(first.verb(), "Removed");
    assert_eq!(
        first.diff(),
        "--- a/sub/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n"
    );
    first.apply().unwrap();
    assert_eq!(names(&directory.path().join("sub")), ["b"]);
    assert!(removal("sub/a").is_done());
    removal("sub/b").apply().unwrap();
    assert!(names(directory.path()).is_empty());
}

#[test]
fn pending_reads_earlier_changes() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    fs::write(&path, "one\n").unwrap();
    let mut pending = Pending::default();
    pending.write(&path, "one\n").unwrap();
    pending.write(&path, "one\ntwo\n").unwrap();
    let text = pending.read(&path).unwrap() + "three\n";
    pending.write(&path, text).unwrap();
    let operations = pending.into_operations();
    assert_eq!(operations.len(), 2);
    assert!(operations[1].diff().contains(" one\n two\n+three\n"));
    apply(&operations, |_| {}).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\nthree\n");
}

#[test]
fn failed_operation_leaves_complete_files() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("c"), "old").unwrap();
    fs::create_dir(directory.path().join("b")).unwrap();
    // The second operation cannot replace a directory.
    let blocked = Operation {
        path: directory.path().join("b"),
        display_path: "b".into(),
        before: None,
        after: Some("new".into()),
        becomes_program: false,
    };
    let operations = [
        operation(directory.path(), "a", "new"),
        blocked,
        operation(directory.path(), "c", "new"),
    ];
    let mut done = Vec::new();
    let error = apply(&operations, |o| done.push(o.display_path.clone())).unwrap_err();
    assert!(error.message.contains("could not write"), "{error}");
    assert_eq!(done, ["a"]);
    assert_eq!(names(directory.path()), ["a", "b", "c"]);
    assert_eq!(
        fs::read_to_string(directory.path().join("a")).unwrap(),
        "new"
    );
    assert_eq!(
        fs::read_to_string(directory.path().join("c")).unwrap(),
        "old"
    );
}

#[test]
fn apply_removes_leftovers_of_killed_runs() {
    let directory = tempfile::tempdir().unwrap();
    for name in [
        ".a.gpustub-4000000000",
        &format!(".a.gpustub-{}", std::process::id()),
        ".a.gpustub-",
        ".a.gpustub-x",
    ] {
        fs::write(directory.path().join(name), "half").unwrap();
    }
    operation(directory.path(), "a", "whole").apply().unwrap();
    assert_eq!(
        names(directory.path()),
        [".a.gpustub-", ".a.gpustub-x", "a"]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn apply_keeps_the_neighbours_of_running_processes() {
    use std::process::{Command, Stdio};
    let directory = tempfile::tempdir().unwrap();
    // Reads until its standard input is closed.
    let mut process = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let neighbour = format!(".a.gpustub-{}", process.id());
    fs::write(directory.path().join(&neighbour), "half").unwrap();
    operation(directory.path(), "a", "one").apply().unwrap();
    assert_eq!(names(directory.path()), [neighbour.as_str(), "a"]);
    drop(process.stdin.take());
    process.wait().unwrap();
    operation(directory.path(), "a", "two").apply().unwrap();
    assert_eq!(names(directory.path()), ["a"]);
}

#[cfg(unix)]
#[test]
fn executable_sets_execute_permission() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let program = || operation(directory.path(), "p", "#!/bin/sh\n").executable();
    program().apply().unwrap();
    assert!(program().is_done());
    let path = directory.path().join("p");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(program().diff(), "new mode 100755: p\n");
    program().apply().unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o750
    );
    assert!(program().is_done());
}

#[cfg(unix)]
#[test]
fn apply_keeps_permissions_and_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("real");
    fs::write(&real, "old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("real", directory.path().join("link")).unwrap();
    operation(directory.path(), "link", "new").apply().unwrap();
    assert!(directory.path().join("link").is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "new");
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
}

#[test]
fn changed_lines_have_their_new_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a");
    fs::write(&path, "one\n\nold\nthree\n").unwrap();
    let mut pending = Pending::default();
    pending.write(&path, "new\none\n\nthree\n").unwrap();
    pending.write(&path, "new\none\n\nthree\nfour\n").unwrap();
    let merged = merge(pending.into_operations());
    assert_eq!(merged.len(), 1);
    let lines = merged[0].changed_lines();
    let expected = [(1, "new"), (4, "remove old"), (5, "four")];
    assert_eq!(
        lines,
        expected.map(|(number, line)| (number, line.to_owned()))
    );
}
