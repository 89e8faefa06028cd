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

#[test]
fn compressed_members_are_extracted_verified_and_built_again() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    let run = |arguments: &[&str]| ends(0, directory, &[&["archive"], arguments].concat());
    let views = ["--view", "gfx9=gfx9,common", "--view", "gfx11=gfx11,common"];
    run(&[&["build", "-o", "plain.a"], &views[..]].concat());
    run(&[&["build", "-o", "all.a", "--compress"], &views[..]].concat());
    let size = |name: &str| std::fs::metadata(directory.join(name)).unwrap().len();
    assert!(size("all.a") < size("plain.a"));
    run(&["verify", "all.a"]);
    for arguments in [&["list"][..], &["nm"], &["find", "cos1", "cos4"]] {
        let print = |file| run(&[&arguments[..1], &[file], &arguments[1..]].concat()).0;
        assert_eq!(print("all.a"), print("plain.a"));
    }
    // `all.a:gfx11` as an input, and a view that is extracted.
    run(&[
        "build",
        "-o",
        "again.a",
        "--view",
        "gfx9=all.a:gfx9",
        "--view",
        "gfx11=all.a:gfx11",
    ]);
    for (file, output) in [("all.a", "a.a"), ("plain.a", "p.a"), ("again.a", "g.a")] {
        run(&["extract", file, "--linked", "--view", "gfx11", "-o", output]);
    }
    let read = |name: &str| std::fs::read(directory.join(name)).unwrap();
    assert!(read("a.a") == read("p.a") && read("g.a") == read("p.a"));

    // A damaged frame, at the end of the hidden contents.
    let mut bytes = read("all.a");
    let archive = gpustub_archive::SuperArchive::parse(&bytes).unwrap();
    let contents = archive.contents().map(Result::unwrap);
    let frame = contents
        .filter(|contents| contents.is_compressed())
        .last()
        .unwrap();
    let end = archive.tables_offset() + frame.offset() + frame.stored_size();
    bytes[end as usize - 5] ^= 1;
    std::fs::write(directory.join("damaged.a"), &bytes).unwrap();
    let (_, err) = ends(1, directory, &["archive", "verify", "damaged.a"]);
    assert!(err.contains("error[malformed-super-archive]"), "{err}");
}
