//! Search keys that the libraries of a toolkit share: `families.toml` of the shipped manifests.

use std::sync::OnceLock;

use gpustub_manifests::FAMILIES;

use super::{Library, Role};
use crate::decode::Decoder;
use crate::diag::Diagnostic;
use crate::spanned::values;

const KEYS: [&str; 4] = ["root-env", "roots", "root-subdirs", "windows"];

/// Search keys of a family.
struct Family {
    id: String,
    root_env: Vec<String>,
    roots: Vec<String>,
    root_subdirs: Vec<String>,
    windows_root_subdirs: Vec<String>,
}

impl Library {
    /// Fills in the search keys of the family that the manifest of a shipped library leaves out.
    pub(super) fn inherit_search_keys(&mut self) {
        static SHIPPED: OnceLock<Vec<Family>> = OnceLock::new();
        let families = SHIPPED.get_or_init(|| families(FAMILIES).0);
        let Some(family) = families.iter().find(|family| family.id == self.family) else {
            return;
        };
        // Drivers are searched where drivers live only.
        if self.role != Role::Toolkit {
            return;
        }
        for (list, shared) in [
            (&mut self.root_env, &family.root_env),
            (&mut self.roots, &family.roots),
            (&mut self.root_subdirs, &family.root_subdirs),
            (&mut self.windows.root_subdirs, &family.windows_root_subdirs),
        ] {
            if list.is_empty() {
                list.clone_from(shared);
            }
        }
    }
}

fn families(text: &str) -> (Vec<Family>, Vec<Diagnostic>) {
    let mut decoder = Decoder::new("families.toml");
    let mut families = Vec::new();
    if let Some(document) = decoder.document(text) {
        for (id, value) in document.top().entries() {
            let Some(table) = decoder.table(&value, &KEYS) else {
                continue;
            };
            let windows = table
                .get("windows")
                .and_then(|windows| decoder.table(&windows, &["root-subdirs"]));
            let windows = windows.as_ref().and_then(|table| table.get("root-subdirs"));
            let [root_env, roots, root_subdirs, windows_root_subdirs] = [
                table.get("root-env"),
                table.get("roots"),
                table.get("root-subdirs"),
                windows,
            ]
            .map(|value| match value {
                Some(value) => values(&decoder.strings(&value)),
                None => Vec::new(),
            });
            families.push(Family {
                id: id.to_owned(),
                root_env,
                roots,
                root_subdirs,
                windows_root_subdirs,
            });
        }
    }
    (families, decoder.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shipped_families_are_read_and_used() {
        let (families, diagnostics) = families(FAMILIES);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        for family in families {
            let mut libraries = Library::builtin_ids().filter_map(Library::builtin);
            assert!(libraries.any(|library| library.roots == family.roots));
        }
        let [cudart, cudnn, nvml] =
            ["cudart", "cudnn", "nvml"].map(|id| Library::builtin(id).unwrap());
        assert_eq!(cudart.root_env, ["CUDA_HOME", "CUDA_PATH"]);
        assert_eq!(cudnn.root_env, ["CUDNN_PATH", "CUDA_HOME", "CUDA_PATH"]);
        assert_eq!(cudnn.roots, cudart.roots);
        assert!(nvml.roots.is_empty(), "a driver has no toolkit's roots");
    }
}
