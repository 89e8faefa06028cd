//! Selects the symbol names that rules need. A framework has hundreds of thousands of others.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::evidence::{functions, gpu_library_exporting};
use crate::platform_tag::hidden_symbols;

/// Prefixes, up to the first capital letter, of functions that gpustub generates stubs for: `cuda` of
/// `cudaMalloc`. A function that is newer than the lists begins with one of them.
static HEADS: LazyLock<HashSet<&str>> = LazyLock::new(|| functions().filter_map(head).collect());

/// Symbols that platform tags deny in libraries that they guarantee.
static HIDDEN: LazyLock<HashSet<&str>> = LazyLock::new(|| hidden_symbols().collect());

/// The lower-case letters and digits before the first capital letter.
fn head(name: &str) -> Option<&str> {
    let small = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let end = name.bytes().position(|b| !small(b))?;
    (end >= 2 && name.as_bytes()[end].is_ascii_uppercase()).then(|| &name[..end])
}

/// Whether a name is a function of a GPU library, or begins like one.
pub fn is_gpu(name: &str) -> bool {
    gpu_library_exporting(name).is_some() || head(name).is_some_and(|head| HEADS.contains(head))
}

/// Whether a name is one of gpustub's functions, or one that GPU compilers call.
pub fn is_support(name: &str) -> bool {
    let starts = ["gpustub", "__cuda", "__hip"];
    starts.iter().any(|start| name.starts_with(start))
}

/// Whether rules need a name; `node` is the version node of an import.
pub fn wanted(name: &str, node: Option<&str>) -> bool {
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
        .any(|start| node.starts_with(start))
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
            assert!(wanted(name, None), "{name}");
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
            assert!(!wanted(name, None), "{name}");
        }
        assert!(wanted("printf", Some("GLIBC_2.2.5")));
        assert!(wanted("_ZSt4cout", Some("GLIBCXX_3.4")));
        assert!(!wanted("_ZN5torch3fooEv", Some("TORCH_2")));
    }

    #[test]
    fn all_shipped_functions_are_wanted() {
        assert!(functions().count() > 5000, "{}", functions().count());
        assert!(functions().all(|name| wanted(name, None)));
        assert!(HEADS.contains("cuda") && !HEADS.contains("c"));
    }
}
