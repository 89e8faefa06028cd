//! Compares the imports of a program's objects with the declared headers.
//!
//! The names are the undefined ones in the symbol tables of objects, archives, rlibs and images.
//! `gpustub-build` cannot do this: a build script runs before the package's own objects exist.

use std::collections::BTreeMap;

use gpustub_check::{Package, imports};
use gpustub_core::diag::Diagnostic;
use gpustub_core::imports::{Only, wrong_header};
use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;

/// A warning for each file of a package that imports functions which the declared headers do not have.
pub fn misfits(package: &Package, library: &Library, header: HeaderVersion) -> Vec<Diagnostic> {
    imports(package, library)
        .into_iter()
        .filter_map(|(origin, names)| Some(misfit(library, header, names)?.at(origin)))
        .collect()
}

/// Imported names of other libraries, and names without information, are skipped.
fn misfit<'n>(
    library: &Library,
    header: HeaderVersion,
    imported: impl IntoIterator<Item = &'n str>,
) -> Option<Diagnostic> {
    let mut found: BTreeMap<Only, Vec<&str>> = BTreeMap::new();
    for name in imported {
        if let Some(only) = library.only_in(name, header) {
            found.entry(only).or_default().push(name);
        }
    }
    let found: Vec<(Only, Vec<&str>)> = found.into_iter().collect();
    (!found.is_empty()).then(|| wrong_header(&library.id, header, &found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_grouped_by_the_versions_that_have_them() {
        let library = Library::builtin("cudart").unwrap();
        let said = |header: &str, names: &[&str]| -> Option<String> {
            let header = HeaderVersion::parse(header).unwrap();
            Some(misfit(library, header, names.iter().copied())?.message)
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
            said("13.0", &names).unwrap(),
            "headers of `cudart` 13.0 do not have cudaBindTexture: only those of 11.8 and older do; \
             nor cudaGetDeviceProperties_v2: only those of 12.0 to 12.9 do; \
             nor cudaGraphAddNode_v2, cudaGraphGetEdges_v2: only those of 12.3 to 12.9 do"
        );
        assert_eq!(
            said("12", &names).unwrap(),
            "headers of `cudart` 12 do not have cudaBindTexture: only those of 11.8 and older do"
        );
        assert_eq!(said("11.8", &["cudaMalloc", "main"]), None);
    }
}
