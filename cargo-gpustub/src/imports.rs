//! What a program's objects say of the headers that they were compiled against.
//!
//! The names come from the symbol tables of objects, archives and rlibs: those that are undefined there.
//! `gpustub-build` cannot ask: a build script runs before the package's own objects exist.

use std::collections::BTreeMap;

use gpustub_core::diag::Diagnostic;
use gpustub_core::imports::{Only, wrong_header};
use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;

/// A warning for each range of versions from which there are imports that the declared headers do not
/// have. Names of other libraries, and those that tell nothing, may be among the imported ones.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "for `check`, which reads objects")
)]
pub fn misfits<'n>(
    library: &Library,
    header: HeaderVersion,
    imported: impl IntoIterator<Item = &'n str>,
) -> Vec<Diagnostic> {
    let mut found: BTreeMap<Only, Vec<&str>> = BTreeMap::new();
    for name in imported {
        if let Some(only) = library.only_in(name, header) {
            found.entry(only).or_default().push(name);
        }
    }
    found
        .into_iter()
        .map(|(only, mut names)| {
            names.sort_unstable();
            names.dedup();
            wrong_header(&library.id, header, &names, only)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_told_by_the_versions_that_have_them() {
        let library = Library::builtin("cudart").unwrap();
        let said = |header: &str, names: &[&str]| -> Vec<String> {
            let header = HeaderVersion::parse(header).unwrap();
            let found = misfits(library, header, names.iter().copied());
            found.into_iter().map(|found| found.message).collect()
        };
        let names = [
            "main",
            "cudaMalloc",
            "cudaGraphAddNode_v2",
            "cudaGetDeviceProperties_v2",
            "cudaBindTexture",
            "cudaGetDeviceProperties_v2",
            "cudaGraphGetEdges_v2",
        ];
        assert_eq!(
            said("13.0", &names),
            [
                "headers of `cudart` 13.0 do not have cudaBindTexture: only those of 11.8 and older do",
                "headers of `cudart` 13.0 do not have cudaGetDeviceProperties_v2: only those of 12.0 to 12.9 do",
                "headers of `cudart` 13.0 do not have cudaGraphAddNode_v2, cudaGraphGetEdges_v2: only \
                 those of 12.3 to 12.9 do",
            ]
        );
        assert_eq!(
            said("12", &names),
            ["headers of `cudart` 12 do not have cudaBindTexture: only those of 11.8 and older do"]
        );
        assert_eq!(said("11.8", &["cudaMalloc", "main"]), [""; 0]);
    }
}
