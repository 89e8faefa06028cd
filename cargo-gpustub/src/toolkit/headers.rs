//! Headers that the user names: a folder's, or a wheel's.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gpustub_check::read::Zip;
use gpustub_report::error::{Error, Result};

/// Headers by their path below the tree: `include/cuda.h`.
pub type Headers = BTreeMap<String, Vec<u8>>;

/// How much is taken: the headers of a whole toolkit are about a third of this.
const LIMIT: u64 = 256 << 20;

/// How deep folders are followed; a toolkit's are half as deep. Links may go in a circle.
const DEPTH: usize = 16;

/// The headers of a folder (with an `include` in it, or of headers itself) or of a wheel.
pub fn read(path: &Path) -> Result<Headers> {
    let mut taken = Taken::default();
    if path.is_dir() {
        let include = path.join("include");
        let folder = if include.is_dir() { &include } else { path };
        taken.folder(folder, "include", 0)?;
    } else {
        taken.wheel(path)?;
    }
    if taken.headers.is_empty() {
        let error = Error::new(format!("`{}` has no headers in it", path.display()));
        return Err(error.help(
            "name a toolkit's directory, its `include`, or a wheel such as nvidia-cuda-runtime-cu12",
        ));
    }
    Ok(taken.headers)
}

#[derive(Default)]
struct Taken {
    headers: Headers,
    bytes: u64,
}

impl Taken {
    fn folder(&mut self, folder: &Path, name: &str, depth: usize) -> Result<()> {
        let failed = |e| Error::io("read", folder, &e);
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            entries.push(entry.map_err(failed)?.path());
        }
        for path in entries {
            let Some(file_name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            let name = format!("{name}/{file_name}");
            if path.is_dir() {
                if depth < DEPTH {
                    self.folder(&path, &name, depth + 1)?;
                }
            } else if path.is_file() {
                let file = File::open(&path).map_err(|e| Error::io("read", &path, &e))?;
                self.take(name, file, &path)?;
            }
        }
        Ok(())
    }

    /// Wheels have one `include` per library: `nvidia/cuda_runtime/include/cuda.h`.
    fn wheel(&mut self, path: &Path) -> Result<()> {
        let file = File::open(path).map_err(|e| Error::io("read", path, &e))?;
        let failed = |e: io::Error| {
            let message = format!("could not read `{}` as a wheel: {e}", path.display());
            Error::new(message).help("name a *.whl file, or a directory with headers")
        };
        let wheel = Zip::new(file).map_err(failed)?;
        for file in wheel.files() {
            let (name, bytes) = file.map_err(failed)?;
            if let Some((_, below)) = name.split_once("/include/") {
                self.take(format!("include/{below}"), bytes, path)?;
            }
        }
        Ok(())
    }

    /// Takes a file, if it is a text: nothing else belongs into a repository, or into a header.
    fn take(&mut self, name: String, from: impl Read, of: &Path) -> Result<()> {
        let mut bytes = Vec::new();
        let left = LIMIT - self.bytes;
        let read = from.take(left + 1).read_to_end(&mut bytes);
        read.map_err(|e| Error::io("read", of, &e))?;
        if bytes.len() as u64 > left {
            let what = format!(
                "`{}` has more than {} MiB of headers",
                of.display(),
                LIMIT >> 20
            );
            return Err(Error::new(what).help("name a directory with the headers only"));
        }
        if !bytes.contains(&0) {
            self.bytes += bytes.len() as u64;
            self.headers.insert(name, bytes);
        }
        Ok(())
    }
}
