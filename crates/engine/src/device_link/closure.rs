//! Libraries of dependencies, and the libraries that one library requires.

use std::path::PathBuf;

use super::metadata::{self, Library};
use crate::env::Env;
use crate::error::Error;

/// Libraries that the direct dependencies announce, their own and required ones: each once,
/// dependents first.
pub(super) fn upstream(env: &Env) -> Result<Vec<Library>, Error> {
    let mut all: Vec<Library> = Vec::new();
    for (_, path) in &env.dependency_metadata(metadata::KEY) {
        let path = PathBuf::from(path);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?;
        for library in metadata::parse(&path, &text)? {
            if !all.contains(&library) {
                all.push(library);
            }
        }
    }
    Ok(all)
}

/// The library and all libraries that it requires, itself first, each once.
pub(super) fn inherited<'a>(
    name: &'a str,
    own: &'a [Library],
    foreign: &'a [Library],
) -> Vec<&'a Library> {
    let mut found: Vec<&Library> = Vec::new();
    let mut waiting = vec![name];
    while let Some(name) = waiting.pop() {
        if found.iter().any(|library| library.name == name) {
            continue;
        }
        let mut all = own.iter().chain(foreign);
        if let Some(library) = all.find(|library| library.name == name) {
            found.push(library);
            waiting.extend(library.requires.iter().rev().map(String::as_str));
        }
    }
    found
}
