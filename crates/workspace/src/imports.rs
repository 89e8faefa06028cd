//! Compares the imports of a program's objects with the declared headers.
//!
//! The names are the undefined ones in the symbol tables of objects, archives, rlibs and images.
//! `gpustub-build` cannot do this: a build script runs before the package's own objects exist.

use std::collections::BTreeMap;

use gpustub_check::{Package, imports};
use gpustub_core::diag::Diagnostic;
use gpustub_core::imports::{VersionSpan, wrong_header};
use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;

/// A warning for each file of a package that imports functions which the declared headers do not have.
pub fn header_mismatches(
    package: &Package,
    library: &Library,
    header: HeaderVersion,
) -> Vec<Diagnostic> {
    imports(package, library)
        .into_iter()
        .filter_map(|(origin, names)| Some(mismatch(library, header, names)?.with_location(origin)))
        .collect()
}

/// A warning for the imports of one file. Imported names of other libraries, and names without
/// information, are skipped.
fn mismatch<'n>(
    library: &Library,
    header: HeaderVersion,
    imported: impl IntoIterator<Item = &'n str>,
) -> Option<Diagnostic> {
    let mut by_versions: BTreeMap<VersionSpan, Vec<&str>> = BTreeMap::new();
    for name in imported {
        if let Some(versions) = library.only_in(name, header) {
            by_versions.entry(versions).or_default().push(name);
        }
    }
    if by_versions.is_empty() {
        return None;
    }
    let groups: Vec<(VersionSpan, Vec<&str>)> = by_versions.into_iter().collect();
    Some(wrong_header(&library.id, header, &groups))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_grouped_by_the_versions_that_have_them() {
        let library = Library::builtin("cudart").unwrap();
        let message = |header: &str, names: &[&str]| -> Option<String> {
            let header = HeaderVersion::parse(header).unwrap();
            Some(mismatch(library, header, names.iter().copied())?.message)
        };
        let names = [
            "cudaBindTexture",
            "cudaGetDeviceProperties_v2",
            "cudaGraphAddNode_v2",
            "cudaGraphGetEdges_v2",
            "cudaMalloc",
            "main",
        ];
        assert_eq!(
            message("13.0", &names).unwrap(),
            "headers of `cudart` 13.0 do not have cudaBindTexture: only those of 11.8 and older do; \
             nor cudaGetDeviceProperties_v2: only those of 12.0 to 12.9 do; \
             nor cudaGraphAddNode_v2, cudaGraphGetEdges_v2: only those of 12.3 to 12.9 do"
        );
        assert_eq!(
            message("12", &names).unwrap(),
            "headers of `cudart` 12 do not have cudaBindTexture: only those of 11.8 and older do"
        );
        assert_eq!(message("11.8", &["cudaMalloc", "main"]), None);
    }
}
