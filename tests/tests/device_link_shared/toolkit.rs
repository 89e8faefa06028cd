//! A CUDA toolkit in one folder, out of the wheels that have its parts.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_tests::Result;
use gpustub_tests::components::component;

/// Compiler, headers, runtime: in `dir`, as `CUDA_HOME` wants them.
pub fn lay_out(dir: &Path) -> Result<PathBuf> {
    let root = dir.join("cuda-13.5");
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    for (wheel, folder) in [
        ("nvcc-13.5", "bin"),
        ("nvcc-13.5", "nvvm"),
        ("nvcc-13.5", "include"),
        ("cudart-13.5", "include"),
        ("cudart-13.5", "lib"),
    ] {
        let from = component(&format!("wheels/{wheel}/nvidia/cu13/{folder}"))?;
        merge(&from, &root.join(folder))?;
    }
    Ok(root)
}

/// Links, where the file system allows: nvcc looks for its neighbours beside its real path.
fn merge(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let to = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            merge(&entry.path(), &to)?;
        } else if fs::hard_link(entry.path(), &to).is_err() {
            fs::copy(entry.path(), &to)?;
        }
    }
    Ok(())
}
