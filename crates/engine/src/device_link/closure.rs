//! Libraries of dependencies, and the libraries that one library requires.

use std::path::PathBuf;

use super::metadata::{self, DeviceLibrary};
use crate::env::Env;
use crate::error::Error;

/// Libraries that the direct dependencies announce, their own and required ones: each once,
/// dependents first.
pub(super) fn upstream(env: &Env) -> Result<Vec<DeviceLibrary>, Error> {
    let mut libraries: Vec<DeviceLibrary> = Vec::new();
    for (_, path) in &env.dependency_metadata(metadata::KEY) {
        let path = PathBuf::from(path);
        let text = std::fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?;
        for library in metadata::parse(&path, &text)? {
            if !libraries.contains(&library) {
                libraries.push(library);
            }
        }
    }
    Ok(libraries)
}

/// The library and all libraries that it requires, itself first, each once.
pub(super) fn inherited<'a>(
    name: &'a str,
    libraries: &'a [DeviceLibrary],
    dependencies: &'a [DeviceLibrary],
) -> Vec<&'a DeviceLibrary> {
    let mut closure: Vec<&DeviceLibrary> = Vec::new();
    let mut pending = vec![name];
    while let Some(name) = pending.pop() {
        if closure.iter().any(|library| library.name == name) {
            continue;
        }
        let library = libraries
            .iter()
            .chain(dependencies)
            .find(|library| library.name == name);
        if let Some(library) = library {
            closure.push(library);
            pending.extend(library.requires.iter().rev().map(String::as_str));
        }
    }
    closure
}
