//! Properties of any input bytes: the body of fuzz targets and of the tests with damaged archives.

use gpustub_core::manifest::Policy;

use crate::{ContainerKind, check, check_process, read};

/// Reads `data` as a file of this name and checks it. Panics if a property does not hold. Returns the
/// number of members.
#[doc(hidden)]
pub fn file(data: &[u8], name: &str) -> usize {
    let packages = read::read_bytes(data, name);
    assert_eq!(packages, read::read_bytes(data, name), "twice the same");
    assert_eq!(packages[0].name, name);
    for package in &packages {
        let sorted = package.members.is_sorted_by(|a, b| a.path <= b.path);
        assert!(sorted, "members are sorted");
        assert!(package.kind != ContainerKind::Directory);
        let findings = [check(package, &Policy::default()), check_process(package)].concat();
        for finding in findings {
            let text = format!("{finding}{:?}", finding.origin);
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n'),
                "{text:?}"
            );
        }
    }
    packages.iter().map(|package| package.members.len()).sum()
}
