//! A package's `GpuStub.toml`, read and decoded.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cargo_metadata::Package;
use gpustub_core::diag::Diagnostic;
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::Inputs;

use crate::error::{Error, Result};
use crate::report::Sources;
use crate::workspace::{folder, shown};

/// The name of the file.
pub const FILE: &str = "GpuStub.toml";

/// What one package declares.
#[derive(Debug)]
pub struct Declared {
    /// The folder of the package.
    pub folder: PathBuf,
    /// How messages call the file.
    pub shown: String,
    /// Its text.
    pub text: String,
    /// What it says, as far as it could be read.
    pub manifest: Manifest,
    /// What is wrong with it.
    pub diagnostics: Vec<Diagnostic>,
    /// The symbol lists that it names and that exist.
    pub inputs: Inputs,
}

impl Declared {
    /// Reads the file in this folder; `None` if there is none.
    pub fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(FILE);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", &path, &e)),
        };
        let shown = shown(&path);
        let (manifest, diagnostics) = Manifest::parse(&shown, &text);
        let mut inputs = Inputs::default();
        for stub in &manifest.stubs {
            let Some(symbols) = &stub.custom.symbols else {
                continue;
            };
            let path = folder.join(&symbols.value);
            match fs::read_to_string(&path) {
                Ok(text) => drop(inputs.symbol_files.insert(symbols.value.clone(), text)),
                // That it is missing is for the planner to say, who knows where it is named.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(Error::io("read", &path, &e)),
            }
        }
        Ok(Some(Self {
            folder: folder.to_owned(),
            shown,
            text,
            manifest,
            diagnostics,
            inputs,
        }))
    }

    /// Reads the files of those packages that have one, which must be at least one.
    pub fn read_all<'a>(packages: &[&'a Package]) -> Result<Vec<(&'a Package, Self)>> {
        let mut found = Vec::new();
        for package in packages {
            if let Some(declared) = Self::read(folder(package))? {
                found.push((*package, declared));
            }
        }
        if found.is_empty() {
            let error = match packages {
                [package] => Error::new(format!("package `{}` has no {FILE}", package.name)),
                _ => Error::new(format!(
                    "none of the {} packages has a {FILE}",
                    packages.len()
                )),
            };
            return Err(error.help("write one with `cargo gpustub init`"));
        }
        Ok(found)
    }

    /// The texts that diagnostics may point into.
    pub fn sources(&self) -> Sources {
        let mut sources = Sources::from([(self.shown.clone(), self.text.clone())]);
        sources.extend(self.inputs.symbol_files.clone());
        sources
    }

    /// Whether any stub comes out of this package itself.
    pub fn provides(&self) -> bool {
        self.manifest.stubs.iter().any(|stub| stub.provide)
    }
}
