//! The libraries, and the sources of their headers and exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use gpustub_cdecl::{self as headers, Clang, Headers};
use gpustub_core::version::Version;
use serde::Deserialize;

use super::history::{Evidence, History, history};
use super::numbers::enumerations;
use super::reviewed::{self, Accepted, Reviewed};
use crate::recipes::{find, library_files, read_exports, walk};

/// A table, and its sources.
pub struct AbiRecipe {
    pub id: String,
    pub row: Row,
    pub versions: Vec<Version>,
    /// Versions that are installed in a plain run of the tests.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "only tests run without the others")
    )]
    pub at_hand: Vec<Version>,
    pub reviewed: Reviewed,
}

/// Keys of `data/abi.toml`, which describes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub comment: String,
    prefixes: Vec<String>,
    #[serde(rename = "main-header")]
    pub header: String,
    directory: String,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    pub exports: Vec<String>,
    #[serde(default)]
    undeclared: Vec<String>,
    #[serde(rename = "own-version")]
    own_version: Option<String>,
    #[serde(default)]
    pub drivers: Vec<String>,
    #[serde(default)]
    accepted: Vec<Accepted>,
    versions: Versions,
    #[serde(default, rename = "at-hand")]
    at_hand: Vec<String>,
    #[serde(default)]
    elsewhere: Vec<Elsewhere>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Versions {
    /// Name of a row of `releases`.
    Releases(String),
    List(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Elsewhere {
    version: String,
    #[serde(rename = "in")]
    directory: String,
    file: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    releases: BTreeMap<String, Vec<String>>,
    without: BTreeMap<String, String>,
    #[serde(default)]
    library: BTreeMap<String, Row>,
}

/// Reasons why libraries have no table.
pub static WITHOUT: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let file: Result<File, _> = toml::from_str(include_str!("../../data/abi.toml"));
    file.unwrap_or_else(|error| panic!("abi.toml: {error}"))
        .without
});

/// All recipes, by library.
pub static RECIPES: LazyLock<Vec<AbiRecipe>> = LazyLock::new(|| {
    recipes(include_str!("../../data/abi.toml")).unwrap_or_else(|error| panic!("abi.toml: {error}"))
});

/// Stand-ins for headers of other languages and packages.
const OTHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/include");
pub const STAND_INS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/headers");

/// Table of a library in `xtask/libraries`. `recipes.rs` reads the other keys.
#[derive(Deserialize)]
struct LibraryFile {
    abi: Option<Row>,
}

fn recipes(text: &str) -> Result<Vec<AbiRecipe>, String> {
    let mut file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    for (id, text) in library_files()? {
        let library: LibraryFile =
            toml::from_str(&text).map_err(|e| format!("xtask/libraries/{id}.toml: {e}"))?;
        if let Some(row) = library.abi
            && file.library.insert(id.clone(), row).is_some()
        {
            return Err(format!("xtask/libraries/{id}.toml has `[abi]`, too"));
        }
    }
    let mut recipes = Vec::new();
    for (id, row) in file.library {
        let versions = match &row.versions {
            Versions::List(versions) => versions,
            Versions::Releases(name) => (file.releases.get(name))
                .ok_or_else(|| format!("`{id}`: no releases are called `{name}`"))?,
        };
        recipes.push(AbiRecipe {
            versions: parse_versions(&id, versions)?,
            at_hand: parse_versions(&id, &row.at_hand)?,
            reviewed: Reviewed {
                accepted: Box::leak(row.accepted.clone().into_boxed_slice()),
                ..reviewed::decisions(&id)
            },
            id,
            row,
        });
    }
    Ok(recipes)
}

fn parse_versions(id: &str, versions: &[String]) -> Result<Vec<Version>, String> {
    versions
        .iter()
        .map(|text| Version::parse(text).ok_or_else(|| format!("`{id}`: `{text}` is no version")))
        .collect()
}

/// The recipe of a library.
pub fn recipe(id: &str) -> Result<&'static AbiRecipe, String> {
    RECIPES
        .iter()
        .find(|recipe| recipe.id == id)
        .ok_or_else(|| match WITHOUT.get(id) {
            Some(reason) => format!("`{id}` has no ABI table: {reason}"),
            None => format!(
                "`{id}` has no ABI table\n  help: append `[abi]` to xtask/libraries/{id}.toml, with the keys that \
                 xtask/data/abi.toml describes, and `[{id}]` with its headers to crates/cdecl/libraries.toml"
            ),
        })
}

impl AbiRecipe {
    /// Headers to include, and their macros.
    pub fn headers(&self) -> Result<&'static Headers, String> {
        let (id, header) = (&self.id, &self.row.header);
        Headers::for_library(id).ok_or_else(|| {
            format!(
                "crates/cdecl/libraries.toml has no `[{id}]`, whose headers `[abi]` compares\n  help: append `[{id}]` with \
                 `include = [[\"{header}\"]]`"
            )
        })
    }

    /// Reads headers below directories.
    pub fn declared(
        &self,
        headers: &Headers,
        directories: &[PathBuf],
    ) -> Result<headers::Declarations, String> {
        let mut clang = Clang::new("clang");
        for directory in directories {
            clang = clang.directory(directory);
        }
        let mut declared = headers
            .read(&clang, &|name| self.is_name(name))
            .map_err(|e| format!("{directories:?}: {e}"))?;
        declared.meant.retain(|source, _| self.is_name(source));
        Ok(declared)
    }

    /// Functions that the headers of a version declare.
    pub fn declared_names(
        &self,
        components: &Path,
        version: Version,
    ) -> Result<BTreeSet<String>, String> {
        let headers = self.declared(self.headers()?, &self.includes(components, version)?)?;
        Ok(headers.functions.into_keys().collect())
    }

    /// Identifiers in the headers of a version, of any language.
    pub fn words(&self, components: &Path, version: Version) -> Result<BTreeSet<String>, String> {
        let is_header = |path: &Path| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("h" | "hpp" | "cuh"))
        };
        let mut words = BTreeSet::new();
        for header in walk(&self.include(components, version)?, is_header)? {
            let text =
                std::fs::read(&header).map_err(|e| format!("`{}`: {e}", header.display()))?;
            let text = String::from_utf8_lossy(&text);
            let identifiers = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.extend(
                identifiers
                    .filter(|word| self.is_name(word))
                    .map(str::to_owned),
            );
        }
        Ok(words)
    }

    /// Whether a name may be that of a function of the library.
    fn is_name(&self, name: &str) -> bool {
        self.row.prefixes.iter().any(|prefix| {
            name.strip_prefix(prefix.as_str())
                .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
        })
    }

    /// Reads the versions that `accepts` returns true for.
    #[cfg(test)]
    pub fn read(
        &self,
        components: &Path,
        accepts: impl Fn(Version) -> bool,
    ) -> Result<History, String> {
        self.history(&self.evidence(components, accepts)?)
    }

    /// All names of these versions, in groups.
    pub fn history(&self, evidence: &[Evidence]) -> Result<History, String> {
        let mut history = history(evidence, &self.reviewed, &enumerations(&self.id)?)?;
        history.table.drivers.clone_from(&self.row.drivers);
        history
            .undeclared
            .extend(self.row.undeclared.iter().cloned());
        Ok(history)
    }

    /// Include directory of a version.
    pub fn include(&self, components: &Path, version: Version) -> Result<PathBuf, String> {
        let file = Path::new(&self.row.header).file_name().unwrap_or_default();
        let header = find(
            &self.directory(components, version),
            &file.to_string_lossy(),
        )?;
        let depth = Path::new(&self.row.header).components().count();
        Ok(header
            .ancestors()
            .nth(depth)
            .unwrap_or(Path::new(""))
            .to_owned())
    }

    /// Branch of the driver of a version, if the recipe has it; of unknown versions the first.
    pub fn driver(&self, version: Version) -> Option<&str> {
        let branch_of = |release: &str| {
            self.row.drivers.iter().find_map(|row| {
                let (row_release, branch) = row.split_once('=')?;
                (row_release == release).then_some(branch)
            })
        };
        branch_of(&version.to_string()).or_else(|| branch_of("-"))
    }

    /// The library's own number in a version, if the recipe names macros for it.
    fn own_version(&self, components: &Path, version: Version) -> Result<Option<String>, String> {
        let Some(prefix) = &self.row.own_version else {
            return Ok(None);
        };
        let header = self.include(components, version)?.join(&self.row.header);
        let text =
            std::fs::read_to_string(&header).map_err(|e| format!("`{}`: {e}", header.display()))?;
        let mut parts = Vec::new();
        for part in ["MAJOR", "MINOR", "PATCH"] {
            let name = format!("{prefix}_{part}");
            let number = text.lines().find_map(|line| {
                let mut words = line.strip_prefix("#define")?.split_whitespace();
                (words.next() == Some(&name)).then(|| words.next())?
            });
            parts.push(
                number.ok_or_else(|| format!("`{}`: {name} is not defined", header.display()))?,
            );
        }
        Ok(Some(parts.join(".")))
    }

    /// Components with the headers and libraries of all versions.
    pub fn components(&self) -> Result<BTreeSet<String>, String> {
        let mut components = BTreeSet::new();
        let directory = |library: &Self, version: Version| {
            library.row.directory.replace("{}", &version.to_string())
        };
        for &version in &self.versions {
            components.insert(directory(self, version));
            for (library, library_version) in self.needed(version)? {
                components.insert(directory(library, library_version));
            }
        }
        let elsewhere = self.row.elsewhere.iter();
        components.extend(elsewhere.map(|library| library.directory.clone()));
        Ok(components)
    }

    /// Libraries whose headers those of a version include, each with its version.
    fn needed(&self, version: Version) -> Result<Vec<(&'static Self, Version)>, String> {
        let mut needed = Vec::new();
        for id in &self.row.needs {
            let library = recipe(id)?;
            let versions = &library.versions;
            let library_version = versions
                .iter()
                .rfind(|known| **known == version)
                .or_else(|| versions.iter().rfind(|v| v.major == version.major))
                .or(versions.last())
                .ok_or_else(|| format!("`{id}` has no versions"))?;
            needed.push((library, *library_version));
        }
        Ok(needed)
    }

    /// Whether the components have all headers of a version.
    pub fn has_headers(&self, components: &Path, version: Version) -> Result<bool, String> {
        let mut libraries = self.needed(version)?;
        libraries.push((self, version));
        Ok(libraries
            .iter()
            .all(|(library, version)| library.directory(components, *version).exists()))
    }

    /// Include directories of a version: its own, those of other libraries, and those of stand-ins.
    pub fn includes(&self, components: &Path, version: Version) -> Result<Vec<PathBuf>, String> {
        let mut directories = vec![self.include(components, version)?];
        for (library, library_version) in self.needed(version)? {
            directories.push(library.include(components, library_version)?);
        }
        directories.extend([STAND_INS, OTHERS].map(PathBuf::from));
        Ok(directories)
    }

    pub fn directory(&self, components: &Path, version: Version) -> PathBuf {
        components.join(self.row.directory.replace("{}", &version.to_string()))
    }

    pub fn evidence(
        &self,
        components: &Path,
        accepts: impl Fn(Version) -> bool,
    ) -> Result<Vec<Evidence>, String> {
        let mut evidence = Vec::new();
        for &version in &self.versions {
            if !accepts(version) {
                continue;
            }
            let directory = self.directory(components, version);
            let mut exports: Option<BTreeSet<String>> = None;
            for library in &self.row.exports {
                let names = self.exports(&find(&directory, library)?)?;
                exports.get_or_insert_default().extend(names);
            }
            let headers = self.declared(self.headers()?, &self.includes(components, version)?)?;
            for elsewhere in &self.row.elsewhere {
                if elsewhere.version == version.to_string() {
                    let directory = components.join(&elsewhere.directory);
                    let names = self.exports(&find(&directory, &elsewhere.file)?)?;
                    exports
                        .get_or_insert_with(|| headers.functions.keys().cloned().collect())
                        .extend(names);
                }
            }
            evidence.push(Evidence {
                version,
                own_version: self.own_version(components, version)?,
                headers,
                exports,
            });
        }
        Ok(evidence)
    }

    pub fn exports(&self, library: &Path) -> Result<BTreeSet<String>, String> {
        Ok(read_exports(library)?
            .functions()
            .map(|symbol| symbol.name.clone())
            .filter(|name| self.is_name(name))
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_headers_names_their_file() {
        let row = "[library.acme]\ncomment = \"\"\nprefixes = []\nmain-header = \"acme.h\"\ndirectory = \"\"\nversions = []\n";
        let text = format!("{}\n{row}", include_str!("../../data/abi.toml"));
        let recipes = recipes(&text).unwrap();
        let acme = recipes.iter().find(|recipe| recipe.id == "acme").unwrap();
        let expected = "crates/cdecl/libraries.toml has no `[acme]`, whose headers `[abi]` compares\n  help: append \
                        `[acme]` with `include = [[\"acme.h\"]]`";
        assert_eq!(acme.headers(), Err(expected.to_owned()));
    }
}
