//! Files of the stand-in tree, from `tree/toolkit/layout.toml`, without access to the file system.

use std::collections::BTreeMap;

use gpustub_core::library::{Library, Role};
use gpustub_core::manifest::Toolkit;
use gpustub_core::version::Version;
use gpustub_workspace::edit::templates;
use serde::Deserialize;
use serde_json::{Value, json};

/// First line of placeholder headers, which declare nothing.
pub const MARK: &str =
    "/* Written by cargo gpustub: stands in for a header that build scripts search for.";

/// First line of the tree's `README.md`.
pub const TITLE: &str = "# A stand-in for a GPU toolkit";

/// An archive without members.
const EMPTY_ARCHIVE: &str = "!<arch>\n";

/// Contents of `layout.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolkitLayout {
    cuda: Family,
    hip: Family,
    files: BTreeMap<String, String>,
    /// Overridden build scripts.
    pub overrides: Overrides,
}

/// Variables, directories and files that build scripts search for a family of libraries.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Family {
    root_env: Vec<String>,
    dirs: Vec<String>,
    driver_dirs: Vec<String>,
    manifests: Manifests,
    static_names: Vec<String>,
    executable: Vec<String>,
    files: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
}

/// The libraries that belong to a family.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Manifests {
    family: String,
    without_family: Vec<String>,
}

impl Manifests {
    fn has(&self, library: &Library) -> bool {
        library.family == self.family || self.without_family.contains(&library.id)
    }
}

/// Build scripts that cargo does not run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overrides {
    /// Targets for which cargo overrides them.
    pub targets: Vec<String>,
    /// Overrides by crate name.
    pub crates: BTreeMap<String, ScriptOutput>,
}

/// Output of a build script that only prints link lines.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptOutput {
    /// `links` of its Cargo.toml.
    pub links: String,
    /// The libraries in its link lines.
    pub libraries: Vec<String>,
}

/// A file of the tree.
#[derive(Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// Path below the tree's directory, with `/`.
    pub path: String,
    /// Contents.
    pub text: String,
    /// Whether the file is a placeholder header.
    pub is_header: bool,
    /// Whether the file is executable.
    pub is_program: bool,
}

/// Environment variables to set to the tree, and to remove.
pub struct Variables {
    /// Variables of the families that the tree stands in for.
    pub set: Vec<String>,
    /// Variables of other families.
    pub unset: Vec<String>,
}

impl ToolkitLayout {
    /// The layout that this program was built with. Tests parse it, so a failure is a bug and panics.
    pub fn shipped() -> Self {
        toml_edit::de::from_str(gpustub_templates::TOOLKIT)
            .unwrap_or_else(|error| panic!("tree/toolkit/layout.toml: {error}"))
    }

    /// The families with their declared releases.
    fn families<'a>(
        &'a self,
        toolkit: &Toolkit,
    ) -> [(&'static str, &'a Family, Option<Version>); 2] {
        let cuda = toolkit.cuda.as_ref().map(|version| version.value);
        let hip = toolkit.hip.as_ref().map(|version| version.value);
        [("cuda", &self.cuda, cuda), ("hip", &self.hip, hip)]
    }

    /// The variables that name the tree to build scripts.
    pub fn variables(&self, toolkit: &Toolkit) -> Variables {
        let mut variables = Variables {
            set: Vec::new(),
            unset: Vec::new(),
        };
        for (_, family, version) in self.families(toolkit) {
            match version {
                Some(_) => variables.set.extend(family.root_env.clone()),
                None => variables.unset.extend(family.root_env.clone()),
            }
        }
        variables
    }

    /// All files of the tree, sorted by path; empty without a declared family.
    pub fn files(&self, toolkit: &Toolkit) -> Vec<TreeFile> {
        let families = self.families(toolkit);
        let mut data = json!({ "mark": MARK, "force": toolkit.force });
        for (name, _, version) in &families {
            data[*name] = version.map_or(Value::Null, |version| {
                json!({
                    "version": version.to_string(),
                    "major": version.major,
                    "minor": version.minor,
                    "number": version.code(),
                })
            });
        }
        let mut files = Vec::new();
        for (_, family, version) in families {
            if version.is_none() {
                continue;
            }
            for (path, template) in &family.files {
                let mut file = render(path, template, &data);
                file.is_program = family.executable.contains(path);
                files.push(file);
            }
            for (path, template) in &family.headers {
                let mut file = render(path, template, &data);
                file.is_header = true;
                file.is_program = family.executable.contains(path);
                files.push(file);
            }
            files.extend(archives(family));
        }
        if !files.is_empty() {
            for (path, template) in &self.files {
                files.push(render(path, template, &data));
            }
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files
    }
}

/// A file that is neither a header nor executable.
fn render(path: &str, template: &str, data: &Value) -> TreeFile {
    TreeFile {
        path: path.to_owned(),
        text: templates::render(&format!("toolkit/{template}"), data),
        is_header: false,
        is_program: false,
    }
}

/// An empty archive for each name that may be linked.
fn archives(family: &Family) -> Vec<TreeFile> {
    let mut files = Vec::new();
    for library in Library::builtin_ids().filter_map(Library::builtin) {
        if !family.manifests.has(library) {
            continue;
        }
        for link_name in &library.link_names {
            files.extend(family.dirs.iter().map(|dir| archive(dir, link_name)));
            if library.role == Role::Driver {
                let dirs = family.driver_dirs.iter();
                files.extend(dirs.map(|dir| archive(dir, link_name)));
            }
        }
    }
    for link_name in &family.static_names {
        files.extend(family.dirs.iter().map(|dir| archive(dir, link_name)));
    }
    files
}

fn archive(directory: &str, link_name: &str) -> TreeFile {
    TreeFile {
        path: format!("{directory}/lib{link_name}.a"),
        text: EMPTY_ARCHIVE.to_owned(),
        is_header: false,
        is_program: false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gpustub_core::manifest::Manifest;

    use super::*;

    fn files(table: &str) -> Vec<TreeFile> {
        let (manifest, diagnostics) =
            Manifest::parse("GpuStub.toml", &format!("schema = 1\n[toolkit]\n{table}"));
        assert_eq!(diagnostics, []);
        ToolkitLayout::shipped().files(&manifest.toolkit.unwrap().value)
    }

    fn text<'a>(files: &'a [TreeFile], path: &str) -> &'a str {
        let file = files.iter().find(|file| file.path == path);
        &file.unwrap_or_else(|| panic!("no {path}")).text
    }

    fn programs(files: &[TreeFile]) -> Vec<&str> {
        files
            .iter()
            .filter(|file| file.is_program)
            .map(|file| file.path.as_str())
            .collect()
    }

    #[test]
    fn every_library_of_a_toolkit_can_be_linked() {
        let files = files("cuda = '12.8'\nhip = '6.4'");
        let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), files.len(), "duplicate path");
        for library in Library::builtin_ids().filter_map(Library::builtin) {
            for name in &library.link_names {
                let has_archive = paths.contains(&*format!("lib/lib{name}.a"));
                // Loaders are in neither: crates only pass their names to the linker.
                assert_eq!(has_archive, library.role != Role::Loader, "{name}");
                let as_stub = paths.contains(&*format!("lib64/stubs/lib{name}.a"));
                assert_eq!(as_stub, library.role == Role::Driver, "{name}");
            }
        }
        for name in [
            "cudart_static",
            "cublas_static",
            "cublasLt_static",
            "culibos",
        ] {
            assert_eq!(text(&files, &format!("lib64/lib{name}.a")), "!<arch>\n");
        }
    }

    #[test]
    fn each_family_alone_and_none() {
        assert_eq!(files(""), []);
        let cuda = files("cuda = '13.0'");
        assert!(text(&cuda, "bin/nvcc").contains("release 13.0, V13.0.0'"));
        assert!(text(&cuda, "include/cuda.h").contains("#define CUDA_VERSION 13000\n"));
        let readme = text(&cuda, "README.md");
        assert!(readme.contains("as CUDA 13.0.\n") && readme.starts_with(TITLE));
        assert!(cuda.iter().all(|file| !file.path.contains("hip")));
        let hip = files("hip = '6.4'");
        assert_eq!(text(&hip, ".info/version"), "6.4.0\n");
        assert!(text(&hip, "README.md").contains("as HIP 6.4.\n"));
        assert!(hip.iter().all(|file| !file.path.contains("cuda")));
        assert_eq!(programs(&cuda), ["bin/nvcc"]);
        assert_eq!(programs(&hip), ["bin/hipconfig"]);
    }

    #[test]
    fn placeholder_headers_begin_with_the_mark() {
        let files = files("cuda = '12.8'\nhip = '6.4'");
        for file in &files {
            assert_eq!(file.is_header, file.text.starts_with(MARK), "{}", file.path);
            assert_eq!(file.is_header, file.path.starts_with("include/"));
        }
    }
}
