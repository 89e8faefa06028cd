//! Device links of LTO code (`lto_90`).
//!
//! nvlink loads `nvvm/lib64/libnvvm.so` of its toolkit, by this path alone (11.8 to 13.5); no option of
//! nvcc changes it. Wheels have `lib/libnvvm.so.4`. Such a toolkit is run from a directory of symbolic
//! links to its files, which has the missing name.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::nvcc::Nvcc;
use crate::error::Error;
use crate::files;

/// Path that nvlink loads, relative to the toolkit.
const LOADED: &str = "nvvm/lib64/libnvvm.so";

/// nvcc for a device link. `dir` is a directory of outputs.
pub(super) fn command(nvcc: &Nvcc, dir: &Path) -> Result<Command, Error> {
    let root = &nvcc.root;
    let is_of_toolkit =
        fs::canonicalize(nvcc.program()).ok() == fs::canonicalize(root.join("bin/nvcc")).ok();
    if !is_of_toolkit || root.join(LOADED).exists() {
        return Ok(nvcc.link());
    }
    let Some(library) = installed_nvvm(nvcc) else {
        return Ok(nvcc.link());
    };
    let tree = dir.join("toolkit");
    // Real directories on the way to the new name, and `bin`, because nvcc reads `bin/..`.
    mirror(root, &tree, &["bin", "nvvm"])?;
    mirror(&root.join("bin"), &tree.join("bin"), &[])?;
    mirror(&root.join("nvvm"), &tree.join("nvvm"), &["lib64"])?;
    mirror(&root.join("nvvm/lib64"), &tree.join("nvvm/lib64"), &[])?;
    files::link(&library, &tree.join(LOADED))?;
    Ok(nvcc.link_as(tree.join("bin/nvcc").into()))
}

/// Links all entries of a directory, if it exists, from another one.
fn mirror(from: &Path, to: &Path, excluded: &[&str]) -> Result<(), Error> {
    fs::create_dir_all(to).map_err(|e| Error::io("create the directory", to, &e))?;
    let Ok(entries) = fs::read_dir(from) else {
        return Ok(());
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if excluded.iter().all(|excluded| name != *excluded) {
            files::link(&entry.path(), &to.join(name))?;
        }
    }
    Ok(())
}

/// libnvvm of the toolkit under another name: the newest.
fn installed_nvvm(nvcc: &Nvcc) -> Option<PathBuf> {
    let mut dirs = nvcc.library_dirs(nvcc.arch());
    dirs.push(nvcc.root.join("nvvm/lib64"));
    dirs.into_iter().find_map(|dir| {
        fs::read_dir(dir)
            .ok()?
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                name.starts_with("libnvvm.so")
            })
            .max()
    })
}

/// Next step after errors of nvlink about LTO.
pub(super) fn help(nvcc: &Nvcc, printed: &str) -> Option<String> {
    let root = &nvcc.root;
    let loaded = root.join(LOADED);
    if printed.contains("linker library load error") && !loaded.exists() {
        let step = match installed_nvvm(nvcc) {
            Some(library) => {
                let (link, dir) = (loaded.display(), loaded.parent().unwrap_or(root).display());
                format!("`mkdir -p {dir} && ln -s {} {link}`", library.display())
            }
            None => "install it (wheels: nvidia-nvvm)".to_owned(),
        };
        return Some(format!(
            "for LTO code nvlink loads {}, which does not exist: {step}",
            loaded.display()
        ));
    }
    printed.contains("expected libcudadevrt object").then(|| {
        format!(
            "for LTO code nvlink needs libcudadevrt.a, and the toolkit at {} has none: install it (wheels: \
             nvidia-cuda-runtime)",
            root.display()
        )
    })
}
