//! Selects the symbol names that rules need. A framework has hundreds of thousands of others.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::evidence::{functions, gpu_library_exporting};
use crate::platform_tag::hidden_symbols;

/// Prefixes, up to the first capital letter, of functions that gpustub generates stubs for: `cuda` of
/// `cudaMalloc`. A function that is newer than the lists begins with one of them.
static PREFIXES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| functions().filter_map(prefix).collect());

/// Symbols that platform tags deny in libraries that they guarantee.
static HIDDEN: LazyLock<HashSet<&str>> = LazyLock::new(|| hidden_symbols().collect());

/// The lower-case letters and digits before the first capital letter.
fn prefix(name: &str) -> Option<&str> {
    let end = name
        .bytes()
        .position(|b| !b.is_ascii_lowercase() && !b.is_ascii_digit())?;
    (end >= 2 && name.as_bytes()[end].is_ascii_uppercase()).then(|| &name[..end])
}

/// Whether a name is a function of a GPU library, or begins like one.
pub fn is_gpu(name: &str) -> bool {
    gpu_library_exporting(name).is_some()
        || prefix(name).is_some_and(|prefix| PREFIXES.contains(prefix))
}

/// Whether a name is one of gpustub's functions, or one that GPU compilers call.
pub fn is_support(name: &str) -> bool {
    ["gpustub", "__cuda", "__hip"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

/// Whether rules need a name; `node` is the version node of an import.
pub fn is_relevant(name: &str, node: Option<&str>) -> bool {
    node.is_some_and(is_in_tags)
        || is_support(name)
        // Unversioned in C libraries other than glibc.
        || ["dlopen", "dlmopen", "dlsym", "dlvsym"].contains(&name)
        || is_implib(name)
        || is_gpu(name)
        || HIDDEN.contains(name)
}

/// Whether platform tags limit a version node.
fn is_in_tags(node: &str) -> bool {
    ["GLIBC_", "GLIBCXX_", "CXXABI_", "GCC_"]
        .iter()
        .any(|prefix| node.starts_with(prefix))
}

/// Whether a name is a table or resolver of Implib.so's stubs: `_libcuda_so_tramp_table`.
fn is_implib(name: &str) -> bool {
    name.starts_with('_') && name.contains("_tramp_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_gpu_libraries_and_their_stubs_are_wanted() {
        for name in [
            "cudaMalloc",
            "cudaANameOfTomorrow",
            "cuInit",
            "hipMalloc",
            "nvrtcVersion",
            "clGetPlatformIDs",
            "cublasCreate_v2",
            "__cudaRegisterFatBinary",
            "__hipRegisterFatBinary",
            "gpustub_load",
            "_libcuda_so_tramp_table",
            "dlopen",
        ] {
            assert!(is_relevant(name, None), "{name}");
        }
        for name in [
            "",
            "main",
            "cudax",
            "curl_easy_init",
            "_ZN4cuda3fooEv",
            "printf",
            "tramp",
            "CUDA",
        ] {
            assert!(!is_relevant(name, None), "{name}");
        }
        assert!(is_relevant("printf", Some("GLIBC_2.2.5")));
        assert!(is_relevant("_ZSt4cout", Some("GLIBCXX_3.4")));
        assert!(!is_relevant("_ZN5torch3fooEv", Some("TORCH_2")));
    }

    #[test]
    fn all_shipped_functions_are_wanted() {
        assert!(functions().count() > 5000, "{}", functions().count());
        assert!(functions().all(|name| is_relevant(name, None)));
        assert!(PREFIXES.contains("cuda") && !PREFIXES.contains("c"));
    }
}
