//! `GpuStub.lock`: the symbol lists that the tree was made with.

use std::collections::BTreeSet;

use crate::edit::templates;
use gpustub_manifests::LIBRARIES;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::tables::Declared;

/// Name of the file.
pub const FILE: &str = "GpuStub.lock";

/// Text of the lock file for all declarations of a workspace.
pub fn text<'a>(declared: impl IntoIterator<Item = &'a Declared>) -> String {
    let mut lists: BTreeSet<(&str, bool, &str)> = BTreeSet::new();
    for declared in declared {
        for stub in &declared.manifest.stubs {
            let id = stub.id.value.as_str();
            let list = match &stub.custom.symbols {
                Some(path) => declared
                    .inputs
                    .symbol_files
                    .get(&path.value)
                    .map(String::as_str),
                None => LIBRARIES
                    .iter()
                    .find(|library| library.id == id)
                    .map(|library| library.symbols),
            };
            if let Some(list) = list {
                lists.insert((id, stub.custom.symbols.is_none(), list));
            }
        }
    }
    let libraries: Vec<_> = lists
        .into_iter()
        .map(|(name, shipped, list)| {
            json!({ "name": name, "shipped": shipped, "checksum": digest(list) })
        })
        .collect();
    templates::render(
        FILE,
        &json!({ "libraries": libraries, "manifests_version": gpustub_manifests::VERSION }),
    )
}

fn digest(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn digests_are_sha256() {
        // NIST's example for "abc".
        assert_eq!(
            super::digest("abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
