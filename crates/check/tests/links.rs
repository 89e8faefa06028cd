//! Symbolic links in directories.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;

use gpustub_check::FlawKind;
use gpustub_check::read::read;

#[test]
fn read_skips_links_out_of_a_directory() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    fs::create_dir_all(directory.join("d/b")).unwrap();
    fs::create_dir_all(directory.join("d2")).unwrap();
    for file in ["d/b/x.so", "d2/y.so", "z.whl"] {
        fs::write(directory.join(file), "text").unwrap();
    }
    symlink("d", directory.join("link")).unwrap();
    for (target, leads_out) in [
        ("b/x.so", false),
        ("../d/b", false),
        ("../link/b/x.so", false),
        ("l", false),
        ("../nowhere", false),
        ("/dev/null", false),
        ("../z.whl", true),
        ("../d2/y.so", true),
        ("../d2", true),
    ] {
        let link = directory.join("d/l");
        symlink(target, &link).unwrap();
        for root in ["d", "link"] {
            let packages = read(&directory.join(root), "d").unwrap();
            let [package] = packages.as_slice() else {
                panic!("{target}: {} packages", packages.len());
            };
            let [member] = package.members.as_slice() else {
                panic!("{target}: {} members", package.members.len());
            };
            assert_eq!(member.path, "b/x.so", "{target}");
            let flaws: Vec<(&str, FlawKind, &str)> = package
                .flaws
                .iter()
                .map(|flaw| (flaw.path.as_str(), flaw.kind, flaw.message.as_str()))
                .collect();
            let message = "a symbolic link out of the directory, which is not followed";
            let flaw = leads_out.then_some(("l", FlawKind::Skipped, message));
            assert_eq!(flaws, Vec::from_iter(flaw), "{target}");
        }
        fs::remove_file(link).unwrap();
    }
}
