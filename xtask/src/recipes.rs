//! `recipes.toml` and `libraries/*.toml`: sources of the symbol lists.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::symbols::SymbolList;
use gpustub_core::version::Version;
use gpustub_image::{SymbolRequirements, read_symbols_file};
use serde::Deserialize;

/// Sources of one library's list; `recipes.toml` describes the keys.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Recipe {
    #[serde(default)]
    pub comment: Vec<String>,
    pub only: Option<String>,
    #[serde(default)]
    pub without: Vec<String>,
    #[serde(default)]
    pub without_versions: bool,
    pub soname: Option<String>,
    pub exports: Vec<Exports>,
    #[serde(default)]
    pub copied: Vec<String>,
    #[serde(default)]
    pub updates: Vec<Update>,
    /// Read by `tests/tests/libraries/main.rs`, as `bound`.
    #[serde(default, rename = "call")]
    pub _call: serde::de::IgnoredAny,
    #[serde(default, rename = "bound")]
    pub _bound: serde::de::IgnoredAny,
    #[serde(default)]
    pub include: Vec<Vec<String>>,
    #[serde(default)]
    pub defines: Vec<Vec<String>>,
    #[serde(default)]
    pub headers: Vec<Headers>,
    #[serde(default)]
    pub status: Vec<String>,
    #[serde(default)]
    pub alike: Vec<String>,
    pub not_zeroed: Option<Vec<String>>,
    pub windows: Option<Windows>,
    /// Read by `abi/recipes.rs`.
    #[serde(default, rename = "abi")]
    pub _abi: serde::de::IgnoredAny,
    #[serde(default)]
    pub undeclared: Vec<String>,
}

/// A function that changes the data in [`Recipe::copied`].
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    pub function: String,
    pub callback: Option<u8>,
}

/// Sources of the functions that only Windows has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Windows {
    pub exports: Vec<Exports>,
    pub include: Vec<Vec<String>>,
    pub headers: Vec<Headers>,
}

/// Source of the functions of one version.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Exports {
    #[serde(deserialize_with = "version")]
    pub version: Version,
    #[serde(rename = "in")]
    pub directory: Option<String>,
    pub file: Option<String>,
    pub installed: Option<String>,
    pub declared_in: Option<String>,
}

/// Directories with the headers of one version.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Headers {
    #[serde(deserialize_with = "version")]
    pub version: Version,
    #[serde(rename = "in")]
    pub directories: Vec<String>,
}

fn version<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    let text = String::deserialize(deserializer)?;
    Version::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no version")))
}

/// Texts of `xtask/libraries/*.toml`, by library.
pub fn library_files() -> Result<BTreeMap<String, String>, String> {
    let directory = root().join("xtask/libraries");
    let mut files = BTreeMap::new();
    if !directory.is_dir() {
        return Ok(files);
    }
    for path in walk(&directory, |path| {
        path.extension().is_some_and(|e| e == "toml")
    })? {
        let id = path.file_stem().unwrap_or_default().to_string_lossy();
        let text =
            std::fs::read_to_string(&path).map_err(|e| format!("`{}`: {e}", path.display()))?;
        files.insert(id.into_owned(), text);
    }
    Ok(files)
}

/// All recipes, by library.
pub fn read() -> Result<BTreeMap<String, Recipe>, String> {
    let mut recipes: BTreeMap<String, Recipe> = toml::from_str(include_str!("../recipes.toml"))
        .map_err(|e| format!("recipes.toml: {e}"))?;
    for (id, text) in library_files()? {
        let recipe =
            toml::from_str(&text).map_err(|e| format!("xtask/libraries/{id}.toml: {e}"))?;
        if recipes.insert(id.clone(), recipe).is_some() {
            return Err(format!(
                "recipes.toml and xtask/libraries/{id}.toml both have `{id}`"
            ));
        }
    }
    for (id, recipe) in &mut recipes {
        recipe.complete(id)?;
    }
    Ok(recipes)
}

impl Recipe {
    /// Adds the headers and macros of `crates/cdecl/libraries.toml`.
    fn complete(&mut self, id: &str) -> Result<(), String> {
        if let Some(headers) = gpustub_cdecl::Headers::for_library(id) {
            if self.include.is_empty() {
                self.include.clone_from(&headers.include);
            }
            if self.defines.is_empty() {
                self.defines.clone_from(&headers.defines);
            }
        }
        if self.defines.is_empty() {
            self.defines.push(Vec::new());
        }
        if self.include.is_empty() && !self.headers.is_empty() {
            return Err(format!(
                "no `include` names a header for {id}, although its recipe has `headers`\n  help: append `[{id}]` to \
                 crates/cdecl/libraries.toml with `include = [[\"HEADER.h\"]]`"
            ));
        }
        Ok(())
    }

    /// Whether a function belongs to this list.
    pub fn accepts(&self, name: &str) -> bool {
        (self.only.as_ref()).is_none_or(|prefix| name.starts_with(prefix))
            && !self.without.iter().any(|prefix| name.starts_with(prefix))
    }
}

/// Common arguments of tasks on recipes.
pub struct Options {
    pub check: bool,
    pub components: PathBuf,
    /// Requested libraries; empty: all.
    pub only: Vec<String>,
}

impl Options {
    /// `[--check] [--components DIR] [LIBRARY...]`
    pub fn parse(task: &str, arguments: &[String]) -> Result<Self, String> {
        let mut options = Self {
            check: false,
            components: root().join("target/components"),
            only: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--check" => options.check = true,
                "--components" => {
                    options.components = rest
                        .next()
                        .ok_or("`--components` takes a directory")?
                        .into();
                }
                id if !id.starts_with('-') => options.only.push(id.to_owned()),
                unknown => return Err(format!("`{task}` does not know `{unknown}`")),
            }
        }
        Ok(options)
    }

    /// Whether a library was requested.
    pub fn wants(&self, id: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|requested| requested == id)
    }

    /// The requested recipes.
    pub fn recipes(&self) -> Result<Vec<(String, Recipe)>, String> {
        let mut recipes = read()?;
        if self.only.is_empty() {
            return Ok(recipes.into_iter().collect());
        }
        let mut requested = Vec::new();
        for id in &self.only {
            let recipe = recipes.remove(id);
            let recipe = recipe.ok_or_else(|| {
                format!(
                    "no recipe is for `{id}`\n  help: write xtask/libraries/{id}.toml with its `exports`; CONTRIBUTING.md has \
                     an example"
                )
            })?;
            requested.push((id.clone(), recipe));
        }
        Ok(requested)
    }
}

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The files and directories below `directory` that `accepts` returns true for, sorted by path.
pub fn walk(directory: &Path, accepts: impl Fn(&Path) -> bool) -> Result<Vec<PathBuf>, String> {
    let mut directories = vec![directory.to_owned()];
    let mut paths = Vec::new();
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory).map_err(|e| {
            format!(
                "`{}`: {e}\n  help: `tests/run --all --components-only` unpacks the packages",
                directory.display()
            )
        })?;
        for entry in entries {
            let path = entry
                .map_err(|e| format!("`{}`: {e}", directory.display()))?
                .path();
            if path.is_dir() && !path.is_symlink() {
                directories.push(path.clone());
            }
            if accepts(&path) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    Ok(paths)
}

/// The first file, by path, whose name starts with `prefix`, below `directory`.
pub fn find(directory: &Path, prefix: &str) -> Result<PathBuf, String> {
    let files = walk(directory, |path| {
        !path.is_dir()
            && path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(prefix))
    })?;
    match files.into_iter().next() {
        Some(file) => Ok(file),
        None => Err(format!("no `{prefix}…` below `{}`", directory.display())),
    }
}

/// Reads the exports of a library.
pub fn read_exports(library: &Path) -> Result<SymbolList, String> {
    read_symbols_file(library, SymbolRequirements::default())
        .map_err(|error| format!("{error}\n  help: {}", error.help()))
}

/// Path at which the C compiler finds a library.
pub fn installed(file: &str) -> Result<PathBuf, String> {
    let output = Command::new("cc")
        .arg(format!("-print-file-name={file}"))
        .output()
        .map_err(|e| format!("`cc`: {e}"))?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim_end());
    if path.is_absolute() {
        return Ok(path);
    }
    Err(format!(
        "`{file}` is not installed\n  help: `tests/run --components-only` installs it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_without_include_are_an_error() {
        let text = "exports = []\nheaders = [{ version = \"1\", in = [\"acme-1\"] }]\n";
        let mut recipe: Recipe = toml::from_str(text).unwrap();
        let error = recipe.complete("acme").unwrap_err();
        let start = "no `include` names a header for acme";
        assert!(
            error.starts_with(start) && error.contains("crates/cdecl/libraries.toml"),
            "{error}"
        );
        recipe.include = vec![vec!["acme.h".to_owned()]];
        assert_eq!(recipe.complete("acme"), Ok(()));
    }

    #[test]
    fn every_shipped_list_has_a_recipe() {
        let recipes = read().unwrap();
        let ids: Vec<_> = recipes.keys().map(String::as_str).collect();
        let shipped: Vec<_> = gpustub_core::library::Library::builtin_ids().collect();
        assert_eq!(ids, shipped);
        for id in gpustub_cdecl::Headers::all().keys() {
            assert!(recipes.contains_key(id), "{id}");
        }
        for (id, recipe) in &recipes {
            let sorted = recipe.exports.is_sorted_by(|a, b| a.version < b.version);
            assert!(sorted, "{id}");
            assert!(!recipe.exports.is_empty(), "{id}");
        }
    }
}
