//! Locations of members: the file, and the path in it.

mod archive;

use std::fs;

use archive::{entry, static_library, zip};
use gpustub_check::read::{read, read_bytes};

#[test]
fn members_of_archives_have_the_outermost_file() {
    let directory = tempfile::tempdir().unwrap();
    let objects = static_library(directory.path());
    let inner = zip(&[entry("inner/libx.a", objects.clone())]);
    let outer = zip(&[entry("inner.whl", inner)]);
    fs::create_dir(directory.path().join("a.zip!b")).unwrap();
    fs::write(directory.path().join("a.zip!b/libx.a"), &objects).unwrap();
    fs::write(directory.path().join("a.zip!b/outer.whl"), &outer).unwrap();
    let mut locations = Vec::new();
    let packages = read(&directory.path().join("a.zip!b"), "a.zip!b").unwrap();
    for package in packages.iter().chain(&read_bytes(&objects, "y/libx.a")) {
        for member in &package.members {
            let location = package.location(member);
            assert_eq!(location.display(), package.display_path(member));
            locations.push((location.file, location.member));
        }
    }
    let expected = [
        ("a.zip!b/libx.a", None),
        ("a.zip!b/libx.a", Some("x.o")),
        ("a.zip!b/outer.whl", None),
        ("a.zip!b/outer.whl", Some("inner.whl")),
        ("a.zip!b/outer.whl", Some("inner.whl!inner/libx.a")),
        ("a.zip!b/outer.whl", Some("inner.whl!inner/libx.a!x.o")),
        ("y/libx.a", Some("x.o")),
    ];
    assert_eq!(
        locations,
        expected.map(|(file, member)| (file.to_owned(), member.map(str::to_owned)))
    );
}
