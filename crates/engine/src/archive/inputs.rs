//! From files to layers.

use std::path::{Path, PathBuf};

use gpustub_core::diag::{Diagnostic, IO_ERROR, MALFORMED_LIBRARY, MISSING_BUILD_FEATURE};
use gpustub_superarchive::{Error, Layer, Problem, Source};

/// A layer, and the archives, folders and object files that it is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPaths {
    /// Its name.
    pub name: String,
    /// In the order in which they are searched.
    pub paths: Vec<PathBuf>,
}

/// Mapped files, from which layers borrow.
#[derive(Debug, Default)]
pub struct Inputs {
    layers: Vec<(String, Vec<Source>)>,
    paths: Vec<PathBuf>,
}

impl Inputs {
    /// Opens the files of layers.
    pub fn open(layers: &[LayerPaths]) -> Result<Self, Box<Diagnostic>> {
        let mut inputs = Self::default();
        for layer in layers {
            let sources = layer.paths.iter().map(|path| Source::open(path));
            let sources: Result<_, _> = sources.collect();
            let sources = sources.map_err(|error| diagnostic(&error))?;
            inputs.layers.push((layer.name.clone(), sources));
            inputs.paths.extend_from_slice(&layer.paths);
        }
        Ok(inputs)
    }

    /// The archives, folders and object files.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    /// The layers: members of archives, and other files as they are.
    pub fn layers(&self) -> Result<Vec<Layer<'_>>, Box<Diagnostic>> {
        let mut layers = Vec::new();
        for (name, sources) in &self.layers {
            let mut members = Vec::new();
            for source in sources {
                let layer = source.layer();
                members.extend(layer.map_err(|error| diagnostic(&error))?.members);
            }
            layers.push(Layer {
                name: name.clone(),
                members,
            });
        }
        Ok(layers)
    }
}

/// The diagnostic for an input that cannot be read.
fn diagnostic(error: &Error) -> Box<Diagnostic> {
    let code = match error.problem() {
        Problem::Unreadable(_) => &IO_ERROR,
        Problem::DisabledFormat { .. } => &MISSING_BUILD_FEATURE,
        _ => &MALFORMED_LIBRARY,
    };
    Box::new(Diagnostic::error(code, error.to_string()).help(error.help()))
}
