//! The CUDA runtime of the toolkit.

use std::path::{Path, PathBuf};

use gpustub_core::diag::IO_ERROR;
use gpustub_core::manifest::Cudart;

use super::context::Context;
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
    let dirs = nvcc.library_dirs(nvcc.arch()).into_iter();
    let mut files = dirs.map(|dir| dir.join("libcudadevrt.a"));
    files.find(|file| file.is_file()).ok_or_else(|| {
        let root = nvcc.root.display();
        let message = format!(
            "the CUDA toolkit at {root} has no libcudadevrt.a, which `cudadevrt = true` needs"
        );
        Error::new(&IO_ERROR, message).help("install it (wheels: nvidia-cuda-runtime 13, or 12.9)")
    })
}

pub(super) fn find(
    context: &Context,
    nvcc: &Nvcc,
    kind: Cudart,
    dir: &Path,
) -> Result<Runtime, Error> {
    let arch = context.env.cargo_text("CARGO_CFG_TARGET_ARCH")?;
    let dirs = nvcc.library_dirs(&arch);
    let having = |name: &str| dirs.iter().find(|dir| dir.join(name).exists());
    let missing = |name: &str| {
        Error::new(
            &IO_ERROR,
            format!("the CUDA toolkit at {} has no {name}", nvcc.root.display()),
        )
        .help(
            "install its runtime (wheels: nvidia-cuda-runtime), or declare [stub.cudart], which \
             needs no toolkit and also starts without CUDA",
        )
    };
    if kind == Cudart::Static {
        let found = having("libcudart_static.a").ok_or_else(|| missing("libcudart_static.a"))?;
        let libraries = ["rt", "pthread", "dl"].map(|name| ("dylib", name));
        return Ok(Runtime {
            dirs: vec![found.clone()],
            libraries: [("static:-bundle", "cudart_static")]
                .into_iter()
                .chain(libraries)
                .collect(),
        });
    }
    let libraries = vec![("dylib", "cudart")];
    if let Some(found) = having("libcudart.so") {
        return Ok(Runtime {
            dirs: vec![found.clone()],
            libraries,
        });
    }
    // Wheels have the name that programs load, not the one that linkers search for.
    let versioned = dirs.iter().find_map(|dir| {
        let mut names: Vec<_> = std::fs::read_dir(dir)
            .ok()?
            .flatten()
            .map(|e| e.path())
            .collect();
        names.sort();
        names.into_iter().find(|path| {
            let name = path
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.starts_with("libcudart.so."))
        })
    });
    let versioned = versioned.ok_or_else(|| missing("libcudart.so"))?;
    let names = dir.join("runtime");
    std::fs::create_dir_all(&names).map_err(|e| Error::io("create the directory", &names, &e))?;
    files::link(&versioned, &names.join("libcudart.so"))?;
    // Cargo puts this directory into LD_LIBRARY_PATH for `cargo run` and `cargo test`.
    if let Some(name) = versioned.file_name() {
        files::link(&versioned, &names.join(name))?;
    }
    Ok(Runtime {
        dirs: vec![names],
        libraries,
    })
}
