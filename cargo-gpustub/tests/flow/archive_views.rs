//! Views of a super-archive that are replaced, and chosen for a device.

use super::archives::objects;
use super::{cc, ends, write};
#[test]
fn archive_build_replaces_a_view_in_place() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    let build = |arguments: &[&str]| {
        let words = [&["archive", "build", "-o", "all.a"], arguments].concat();
        ends(0, directory, &words).1
    };
    let find = |arguments: &[&str]| {
        ends(
            0,
            directory,
            &[&["archive", "find", "all.a"], arguments].concat(),
        )
        .0
    };
    let printed = build(&["gfx9", "gfx11"]);
    let note = "note[nothing-shared]: no view shares a member with another";
    assert!(printed.contains(note), "{printed}");
    assert_eq!(find(&["--best", "gfx11"]), "gfx11\n");
    write(directory, "both.c", "int later(void) { return 1; }");
    cc(directory, &["-c", "both.c"]);

    let printed = build(&["all.a:gfx9", "--view", "gfx11=all.a:gfx11,both.o"]);
    assert!(printed.contains(note), "{printed}");
    assert!(find(&["later", "--best", "gfx11"]).contains("both.o"));
    let printed = build(&["--view", "a=gfx9,both.o", "--view", "b=gfx11,both.o"]);
    assert!(!printed.contains(note), "{printed}");
    let (_, err) = ends(
        101,
        directory,
        &["archive", "find", "all.a", "--best", "gfx942"],
    );
    let message = "error: no view serves `gfx942`";
    assert!(
        err.contains(message) && err.contains("views are: a, b"),
        "{err}"
    );
}
