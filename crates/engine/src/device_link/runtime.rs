//! The CUDA runtime of the toolkit.

use std::path::{Path, PathBuf};

use gpustub_core::diag::IO_ERROR;
use gpustub_core::manifest::Cudart;

use super::context::Context;
use super::hip::Clang;
use super::nvcc::Nvcc;
use crate::error::Error;
use crate::files;

/// Linker arguments for the CUDA runtime of the toolkit.
#[derive(Debug, Default)]
pub(super) struct Runtime {
    pub(super) dirs: Vec<PathBuf>,
    pub(super) libraries: Vec<(&'static str, &'static str)>,
}

/// The toolkit's library for kernels that launch kernels.
pub(super) fn cudadevrt(nvcc: &Nvcc) -> Result<PathBuf, Error> {
    for dir in nvcc.library_dirs(nvcc.arch()) {
        let file = dir.join("libcudadevrt.a");
        if file.is_file() {
            return Ok(file);
        }
    }
    let root = nvcc.root.display();
    let message =
        format!("the CUDA toolkit at {root} has no libcudadevrt.a, which `cudadevrt = true` needs");
    Err(Error::new(&IO_ERROR, message).help("install it (wheels: nvidia-cuda-runtime 13, or 12.9)"))
}

impl Runtime {
    /// Adds the HIP runtime.
    pub(super) fn add_hip(&mut self, clang: &Clang) {
        self.dirs.extend(clang.library_dir());
        self.libraries.push(("dylib", "amdhip64"));
    }

    /// Adds the library for kernels that launch kernels.
    pub(super) fn add_cudadevrt(&mut self, nvcc: &Nvcc, dir: &Path) -> Result<(), Error> {
        let library = cudadevrt(nvcc)?;
        // In a directory of its own: the toolkit's has libraries that stubs replace.
        let dir = dir.join("cudadevrt");
        std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
        files::link(&library, &dir.join("libcudadevrt.a"))?;
        self.dirs.insert(0, dir);
        self.libraries.insert(0, ("static:-bundle", "cudadevrt"));
        Ok(())
    }
}

/// Finds the CUDA runtime of a kind. `dir` is a directory of outputs.
pub(super) fn find(
    context: &Context,
    nvcc: &Nvcc,
    kind: Cudart,
    dir: &Path,
) -> Result<Runtime, Error> {
    let arch = context.env.cargo_text("CARGO_CFG_TARGET_ARCH")?;
    let dirs = nvcc.library_dirs(&arch);
    if kind == Cudart::Static {
        let name = "libcudart_static.a";
        let dir = dirs.iter().find(|dir| dir.join(name).exists());
        return Ok(Runtime {
            dirs: vec![dir.ok_or_else(|| missing(nvcc, name))?.clone()],
            libraries: vec![
                ("static:-bundle", "cudart_static"),
                ("dylib", "rt"),
                ("dylib", "pthread"),
                ("dylib", "dl"),
            ],
        });
    }
    let name = "libcudart.so";
    let libraries = vec![("dylib", "cudart")];
    if let Some(dir) = dirs.iter().find(|dir| dir.join(name).exists()) {
        return Ok(Runtime {
            dirs: vec![dir.clone()],
            libraries,
        });
    }
    // Wheels have the name that programs load, not the one that linkers search for.
    let versioned = dirs
        .iter()
        .find_map(|dir| versioned_cudart(dir))
        .ok_or_else(|| missing(nvcc, name))?;
    let links = dir.join("runtime");
    std::fs::create_dir_all(&links).map_err(|e| Error::io("create the directory", &links, &e))?;
    files::link(&versioned, &links.join(name))?;
    // Cargo puts this directory into LD_LIBRARY_PATH for `cargo run` and `cargo test`.
    if let Some(name) = versioned.file_name() {
        files::link(&versioned, &links.join(name))?;
    }
    Ok(Runtime {
        dirs: vec![links],
        libraries,
    })
}

/// `libcudart.so.<version>` in a directory: the first by name.
fn versioned_cudart(dir: &Path) -> Option<PathBuf> {
    std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("libcudart.so."))
        })
        .min()
}

/// Error for a toolkit without a file of the runtime.
fn missing(nvcc: &Nvcc, name: &str) -> Error {
    Error::new(
        &IO_ERROR,
        format!("the CUDA toolkit at {} has no {name}", nvcc.root.display()),
    )
    .help(
        "install its runtime (wheels: nvidia-cuda-runtime), or declare [stub.cudart], which \
         needs no toolkit and also starts without CUDA",
    )
}
