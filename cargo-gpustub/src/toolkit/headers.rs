//! Headers from a directory or a wheel that the user names.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use gpustub_check::read::Zip;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};

/// Headers by their path below the tree: `include/cuda.h`.
pub type Headers = BTreeMap<String, Vec<u8>>;

/// Maximum number of bytes: the headers of a whole toolkit are about a third of this.
const MAX_BYTES: u64 = 256 << 20;

/// Maximum depth of directories; a toolkit's are half as deep. Links may form a cycle.
const MAX_DEPTH: usize = 16;

/// Reads the headers of a directory (its `include`, or itself) or of a wheel.
pub fn read(path: &Path) -> Result<Headers> {
    let mut copied = CopiedHeaders::default();
    if path.is_dir() {
        let include = path.join("include");
        let directory = if include.is_dir() { &include } else { path };
        copied.add_directory(directory, "include", 0)?;
    } else {
        copied.add_wheel(path)?;
    }
    if copied.headers.is_empty() {
        let error = Error::new(format!("no headers in `{}`", slashes(path)));
        return Err(error.help(
            "name a toolkit's directory, its `include`, or a wheel such as nvidia-cuda-runtime-cu12",
        ));
    }
    Ok(copied.headers)
}

#[derive(Default)]
struct CopiedHeaders {
    headers: Headers,
    bytes: u64,
}

impl CopiedHeaders {
    fn add_directory(&mut self, directory: &Path, name: &str, depth: usize) -> Result<()> {
        let entries = fs::read_dir(directory)
            .and_then(Iterator::collect::<io::Result<Vec<_>>>)
            .map_err(|e| Error::io("read", directory, &e))?;
        for entry in entries {
            let path = entry.path();
            let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let name = format!("{name}/{file_name}");
            if path.is_dir() {
                if depth < MAX_DEPTH {
                    self.add_directory(&path, &name, depth + 1)?;
                }
            } else if path.is_file() {
                let file = File::open(&path).map_err(|e| Error::io("read", &path, &e))?;
                self.add(name, file, &path)?;
            }
        }
        Ok(())
    }

    /// Wheels have one `include` per library: `nvidia/cuda_runtime/include/cuda.h`.
    fn add_wheel(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(|e| Error::io("read", path, &e))?;
        let failed = |e: io::Error| {
            let message = format!("could not read `{}` as a wheel: {e}", slashes(path));
            Error::new(message).help("name a *.whl file, or a directory with headers")
        };
        let wheel = Zip::new(file).map_err(failed)?;
        for file in wheel.files() {
            let (name, bytes) = file.map_err(failed)?;
            if let Some((_, below)) = name.split_once("/include/") {
                self.add(format!("include/{below}"), bytes, path)?;
            }
        }
        Ok(())
    }

    /// Adds a file if it is text: binary files are no headers and do not belong into a repository.
    fn add(&mut self, name: String, reader: impl Read, path: &Path) -> Result<()> {
        let mut bytes = Vec::new();
        let remaining = MAX_BYTES - self.bytes;
        reader
            .take(remaining + 1)
            .read_to_end(&mut bytes)
            .map_err(|e| Error::io("read", path, &e))?;
        if bytes.len() as u64 > remaining {
            let message = format!(
                "more than {} MiB of headers in `{}`",
                MAX_BYTES >> 20,
                slashes(path)
            );
            return Err(Error::new(message).help("name a directory with the headers only"));
        }
        if !bytes.contains(&0) {
            self.bytes += bytes.len() as u64;
            self.headers.insert(name, bytes);
        }
        Ok(())
    }
}
