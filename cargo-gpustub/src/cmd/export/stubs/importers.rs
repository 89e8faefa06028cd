//! Programs and libraries that stubs are for (`--for`): what they need and import.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use gpustub_core::diag::{Diagnostic, UNKNOWN_FUNCTION, listing};
use gpustub_core::library::Library;
use gpustub_core::plan::Plan;
use gpustub_core::target::Target;
use gpustub_image::{ImageFacts, ImageFormat, Import, read_image_file};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};

use crate::shipped;

/// The files of `--for`.
pub struct Importers {
    /// Display path and facts of each file.
    files: Vec<(String, ImageFacts)>,
}

/// Functions for which stubs are made.
#[derive(Default)]
pub struct StubFunctions {
    /// Their names.
    functions: BTreeSet<String>,
    /// Ids and load names of their libraries.
    libraries: BTreeMap<String, Vec<String>>,
}

impl StubFunctions {
    /// Adds the functions of a plan.
    pub fn add(&mut self, plan: &Plan) {
        for library in plan.libraries.iter().filter(|library| library.stubbed) {
            for function in library.functions.iter() {
                self.functions.insert(function.name.clone());
            }
            let load_names = library.load_names.iter().map(|name| name.name.clone());
            self.libraries
                .insert(library.library.id.clone(), load_names.collect());
        }
    }
}

impl Importers {
    /// Reads the files. `None`: there are none, so that all functions get stubs.
    pub fn read(paths: &[PathBuf]) -> Result<Option<Self>> {
        let mut files = Vec::new();
        for path in paths {
            let facts = read_image_file(path, &|_, _| true)
                .map_err(|error| Error::new(error.to_string()))?;
            files.push((slashes(path), facts));
        }
        Ok((!files.is_empty()).then_some(Self { files }))
    }

    /// An error if a file is not for the target's system. The target of a PE file is ambiguous: the formats of its
    /// stubs depend on the linker.
    pub fn check_format(&self, target: &Target) -> Result<()> {
        let expected = match target.os.as_str() {
            "windows" => ImageFormat::Pe,
            _ => ImageFormat::Elf,
        };
        let Some((path, facts)) = self
            .files
            .iter()
            .find(|(_, facts)| facts.format != expected)
        else {
            return Ok(());
        };
        let (format, help) = match facts.format {
            ImageFormat::Pe => (
                "a PE file, for Windows",
                "name its target: `--target x86_64-pc-windows-gnu`, or `--target x86_64-pc-windows-msvc` for MSVC's linker",
            ),
            ImageFormat::Elf => (
                "an ELF file",
                "name its target with `--target`, such as `--target x86_64-unknown-linux-gnu`",
            ),
        };
        let message = format!("`{path}` is {format}, the stubs are for {}", target.triple);
        Err(Error::new(message).help(help))
    }

    /// File names of the libraries that the files need.
    pub fn needed(&self) -> impl Iterator<Item = &str> + Clone {
        self.files
            .iter()
            .flat_map(|(_, facts)| &facts.link.needed)
            .map(String::as_str)
    }

    /// Names of the shipped libraries that the files need.
    pub fn libraries(&self, os: &str) -> Result<Vec<String>> {
        let ids: BTreeSet<String> = self
            .needed()
            .flat_map(|file| shipped::with_load_name(os, file))
            .map(|library| library.id.clone())
            .collect();
        if ids.is_empty() {
            let message = format!(
                "{} needs no library that gpustub knows",
                self.display_paths()
            );
            return Err(Error::new(message).help(
                "name the libraries; a program that opens them itself (dlopen) needs all functions: \
                 leave `--for` out",
            ));
        }
        Ok(ids.into_iter().collect())
    }

    /// The paths of the files, for messages.
    fn display_paths(&self) -> String {
        let paths: Vec<String> = self
            .files
            .iter()
            .map(|(path, _)| format!("`{path}`"))
            .collect();
        paths.join(", ")
    }

    /// All imports, each with the display path of its file.
    fn imports(&self) -> impl Iterator<Item = (&str, &Import)> {
        self.files.iter().flat_map(|(path, facts)| {
            facts
                .imports
                .iter()
                .map(move |import| (path.as_str(), import))
        })
    }

    /// Removes all functions from a plan that no file imports.
    pub fn restrict(&self, plan: &mut Plan) {
        let imported: BTreeSet<&str> = self
            .imports()
            .map(|(_, import)| import.name.as_str())
            .collect();
        for library in plan.libraries.iter_mut().filter(|library| library.stubbed) {
            library
                .functions
                .to_mut()
                .retain(|function| imported.contains(function.name.as_str()));
        }
    }

    /// An error if the files import none of the functions that could have stubs.
    pub fn check_any(&self, provided: &StubFunctions) -> Result<()> {
        if self
            .imports()
            .any(|(_, import)| provided.functions.contains(&import.name))
        {
            return Ok(());
        }
        let ids: Vec<String> = provided
            .libraries
            .keys()
            .map(|id| format!("`{id}`"))
            .collect();
        let message = format!(
            "{} imports no function of {}",
            self.display_paths(),
            ids.join(", ")
        );
        Err(Error::new(message).help(
            "a program that opens libraries itself (dlopen) needs all functions: leave `--for` out",
        ))
    }

    /// Warnings about imports of GPU libraries that get no stub.
    pub fn without_stub(&self, os: &str, provided: &StubFunctions) -> Vec<Diagnostic> {
        let mut missing = BTreeMap::<(&str, &str), BTreeSet<&str>>::new();
        for (path, import) in self.imports() {
            let name = import.name.as_str();
            if !provided.functions.contains(name)
                && let Some(library) = origin(os, import, provided)
            {
                missing.entry((path, library)).or_default().insert(name);
            }
        }
        let mut warnings = Vec::new();
        for ((path, library), names) in missing {
            let names = Vec::from_iter(names);
            let count = match names.len() {
                1 => "1 symbol".to_owned(),
                count => format!("{count} symbols"),
            };
            let names = listing(&names);
            let (message, help) = if provided.libraries.contains_key(library) {
                (
                    format!("`{path}` imports {count} of `{library}` without a stub: {names}"),
                    "gpustub knows no such function of this version of the library; data cannot have stubs"
                        .to_owned(),
                )
            } else {
                (
                    format!("`{path}` imports {count} of `{library}`, which is not named: {names}"),
                    format!("name `{library}` as well, unless the program links it itself"),
                )
            };
            warnings.push(Diagnostic::warning(&UNKNOWN_FUNCTION, message).help(help));
        }
        warnings
    }
}

/// Library that an import is of: that of its version, or the one with this function.
fn origin<'a>(os: &str, import: &Import, provided: &'a StubFunctions) -> Option<&'a str> {
    let file = import.version.as_ref().map(|version| version.file.as_str());
    for (id, load_names) in &provided.libraries {
        if load_names.iter().any(|name| Some(name.as_str()) == file) {
            return Some(id);
        }
    }
    let library = Library::builtin_ids()
        .filter_map(Library::builtin)
        .find(|library| {
            file.is_none_or(|file| !library.load_names_like(os, file).is_empty())
                && !library.symbols.lookup(&import.name).is_empty()
        })?;
    Some(&library.id)
}
