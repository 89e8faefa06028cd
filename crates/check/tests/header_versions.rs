//! Header versions of the shipped libraries beside each other.

use gpustub_check::workspace::{Crate, WorkspaceFacts};
use gpustub_check::{MIXED_HEADER_VERSIONS, check_workspace};
use gpustub_core::ids::IndexVec;
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;

/// Findings of `mixed-header-versions` in a package with these tables.
fn findings(stubs: &[(&str, String)]) -> Vec<String> {
    let mut text = "schema = 1\n".to_owned();
    for (id, version) in stubs {
        text += &format!("[stub.{id}]\nheader-version = \"{version}\"\n");
    }
    let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", &text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let krate = Crate {
        name: "demo".into(),
        manifest: Some(&manifest),
        checked: true,
        linked: true,
        ..Crate::default()
    };
    let workspace = WorkspaceFacts {
        crates: IndexVec::from_iter([krate]),
        ..WorkspaceFacts::default()
    };
    check_workspace(&workspace)
        .into_iter()
        .filter(|finding| finding.code.id == MIXED_HEADER_VERSIONS.code.id)
        .map(|finding| finding.message)
        .collect()
}

/// Each shipped library with a version, and the newest one of its headers or list.
fn newest_versions() -> Vec<(&'static str, String)> {
    Library::builtin_ids()
        .filter_map(Library::builtin)
        .filter_map(|library| {
            let headers = library.abi.headers().last();
            let version = headers.max(library.symbols.releases.last())?;
            Some((library.id.as_str(), version.to_string()))
        })
        .collect()
}

#[test]
fn newest_headers_of_all_shipped_libraries_agree() {
    let versions = newest_versions();
    assert_eq!(versions.len(), Library::builtin_ids().count());
    for (index, first) in versions.iter().enumerate() {
        for second in &versions[index + 1..] {
            let pair = [first.clone(), second.clone()];
            assert_eq!(findings(&pair), [""; 0], "{pair:?}");
        }
    }
}

#[test]
fn majors_of_one_toolkit_are_compared() {
    let version = |id, version: &str| (id, version.to_owned());
    assert_eq!(
        findings(&[version("cublas", "13.5"), version("cudart", "12.9")]),
        [
            "`stub.cublas` of `demo` is compiled against cuda 13.5, but `stub.cudart` of `demo` \
             against 12.9"
        ]
    );
    assert_eq!(
        findings(&[version("hip", "6"), version("hipblaslt", "7.2")]).len(),
        1
    );
}
