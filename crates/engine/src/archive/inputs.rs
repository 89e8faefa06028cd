//! Reads the input files of layers.

use std::path::{Path, PathBuf};

use super::device_code;
use gpustub_core::diag::{Diagnostic, IO_ERROR, MALFORMED_LIBRARY, MISSING_BUILD_FEATURE};
use gpustub_superarchive::{Error, KnownMembers, Layer, Problem, Source};

/// A layer, and the archives, directories and object files with its members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerPaths {
    /// Name.
    pub name: String,
    /// Paths in the order in which they are searched.
    pub paths: Vec<PathBuf>,
    /// Whether earlier layers may override its strong definitions.
    pub interposable: bool,
}

/// Mapped files, from which layers borrow.
#[derive(Debug, Default)]
pub struct MappedLayers {
    layers: Vec<(LayerPaths, Vec<Source>)>,
    paths: Vec<PathBuf>,
}

impl MappedLayers {
    /// Opens the files of layers.
    pub fn open(layers: &[LayerPaths]) -> Result<Self, Box<Diagnostic>> {
        let mut inputs = Self::default();
        for layer in layers {
            let mut sources = Vec::new();
            for path in &layer.paths {
                sources.push(Source::open(path).map_err(|error| unopened(path, &error))?);
                if Source::split_view(path).is_none() {
                    inputs.paths.push(path.clone());
                }
            }
            inputs.layers.push((layer.clone(), sources));
        }
        Ok(inputs)
    }

    /// Paths of the archives, directories and object files. Without super-archives of which a view is an input: the
    /// output may replace them, since a mapping keeps its file.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(PathBuf::as_path)
    }

    /// The layers: members of archives, and other files unchanged.
    pub fn layers(&self) -> Result<Vec<Layer<'_>>, Box<Diagnostic>> {
        let (mut layers, mut known) = (Vec::new(), KnownMembers::default());
        for (paths, sources) in &self.layers {
            let mut members = Vec::new();
            for source in sources {
                let layer = source.layer_with(&mut known);
                members.extend(layer.map_err(|error| diagnostic(&error))?.members);
            }
            layers.push(Layer {
                interposable: paths.interposable,
                ..Layer::new(&paths.name, members)
            });
        }
        Ok(layers)
    }
}

/// Diagnostic for an input that cannot be opened, or is no archive or object file.
fn unopened(path: &Path, error: &Error) -> Box<Diagnostic> {
    match error.problem() {
        Problem::UnsupportedInput => device_code::unsupported(path).map(Box::new),
        _ => None,
    }
    .unwrap_or_else(|| diagnostic(error))
}

/// Diagnostic for an unreadable input.
fn diagnostic(error: &Error) -> Box<Diagnostic> {
    let code = match error.problem() {
        Problem::Unreadable(_) => &IO_ERROR,
        Problem::DisabledFormat { .. } => &MISSING_BUILD_FEATURE,
        _ => &MALFORMED_LIBRARY,
    };
    Box::new(Diagnostic::error(code, error.to_string()).help(error.help()))
}
