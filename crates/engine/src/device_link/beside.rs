//! Shared libraries where `cargo run` and `cargo test` find them.
//!
//! Cargo makes the loader search the directories of `rustc-link-search` below the target directory only ("Dynamic library
//! paths" of cargo's reference). With `build.build-dir`, OUT_DIR is elsewhere. Of the build directory only
//! `<profile>/deps` is searched, so that it gets a link to each library. The CUDA runtime gets none: stubs of other programs
//! would find it before that of LD_LIBRARY_PATH.

use std::fs;
use std::path::{Path, PathBuf};

use crate::files;

/// Links libraries into cargo's directory of libraries. A file there that is no link belongs to cargo, which may copy it
/// to the target directory. Without the links, in another layout of the build directory, the default target
/// directory still works.
pub(super) fn link(out_dir: &Path, libraries: &[PathBuf]) {
    let Some(deps) = files::cargo_libraries(out_dir) else {
        return;
    };
    for library in libraries {
        let Some(name) = library.file_name() else {
            continue;
        };
        let link = deps.join(name);
        let is_foreign = fs::symlink_metadata(&link).is_ok_and(|file| !file.is_symlink());
        let is_runtime = name.to_string_lossy().starts_with("libcudart.so");
        if !is_foreign && !is_runtime && library.is_file() {
            let _ = files::link(library, &link);
        }
    }
}
