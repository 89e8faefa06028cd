//! From files to layers.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{BAD_LIBRARY, Diagnostic, FILE_ERROR};
use gpustub_object::superarchive::{Input, Layer};
use gpustub_object::{archive_members, definitions};

/// A layer, and the archives, folders and object files that it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPaths {
    /// Its name.
    pub name: String,
    /// In the order in which they are searched.
    pub paths: Vec<PathBuf>,
}

/// Files in memory, from which layers borrow.
#[derive(Debug, Default)]
pub struct Inputs {
    layers: Vec<(String, Vec<File>)>,
}

#[derive(Debug)]
struct File {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl Inputs {
    /// Reads the files of layers; of a folder, those in it.
    pub fn open(layers: &[LayerPaths]) -> Result<Self, Box<Diagnostic>> {
        let mut inputs = Self::default();
        for layer in layers {
            let mut files = Vec::new();
            for path in &layer.paths {
                read(path, &mut files).map_err(|(path, e)| {
                    let message = format!("cannot read {}: {e}", path.display());
                    Box::new(Diagnostic::error(&FILE_ERROR, message))
                })?;
            }
            inputs.layers.push((layer.name.clone(), files));
        }
        Ok(inputs)
    }

    /// Every file that was read.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        let files = self.layers.iter().flat_map(|(_, files)| files);
        files.map(|file| file.path.as_path())
    }

    /// The layers: members of archives, and other files as they are.
    pub fn layers(&self) -> Result<Vec<Layer<'_>>, Box<Diagnostic>> {
        let mut layers = Vec::new();
        for (name, files) in &self.layers {
            let mut members = Vec::new();
            for file in files {
                members.extend(file.members()?);
            }
            layers.push(Layer {
                name: name.clone(),
                members,
            });
        }
        Ok(layers)
    }
}

impl File {
    fn members(&self) -> Result<Vec<Input<'_>>, Box<Diagnostic>> {
        let wrong = |member: &str, error: gpustub_object::Error| {
            let message = format!("{}{member}: {error}", self.path.display());
            Box::new(Diagnostic::error(&BAD_LIBRARY, message))
        };
        let input = |name: Cow<'_, [u8]>, data| {
            let shown = format!("({})", String::from_utf8_lossy(&name));
            let symbols = definitions(data).map_err(|e| wrong(&shown, e))?;
            let name = name.into_owned().into();
            Ok::<_, Box<Diagnostic>>(Input {
                name,
                data,
                symbols,
            })
        };
        if !self.bytes.starts_with(b"!<arch>\n") {
            let name = self.path.file_name().unwrap_or_default();
            let name = name.to_string_lossy().into_owned().into_bytes();
            return Ok(vec![input(name.into(), &self.bytes)?]);
        }
        let mut members = Vec::new();
        for member in archive_members(&self.bytes).map_err(|e| wrong("", e))? {
            let member = member.map_err(|e| wrong("", e))?;
            if member.name != b"gpustub-views.o" {
                members.push(input(member.name.into(), member.data)?);
            }
        }
        Ok(members)
    }
}

fn read(path: &Path, files: &mut Vec<File>) -> Result<(), (PathBuf, std::io::Error)> {
    let failed = |e| (path.to_owned(), e);
    if !path.is_dir() {
        let bytes = fs::read(path).map_err(failed)?;
        let path = path.to_owned();
        files.push(File { path, bytes });
        return Ok(());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            paths.push(path);
        }
    }
    paths.sort();
    paths.iter().try_for_each(|path| read(path, files))
}
