//! The `[policy]` tables of a workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gpustub_check::platform_tag::Tag;
use gpustub_check::policy::{PolicyLayer, rule};
use gpustub_core::diag::{Diagnostic, INVALID_VALUE, Level};
use gpustub_core::library::Library;
use gpustub_core::manifest::Policy;
use gpustub_core::version::HeaderVersion;
use gpustub_workspace::codes::{UNKNOWN_RULE, unknown_rule_help};
use gpustub_workspace::directories::Directories;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::Workspace;

use gpustub_workspace::display_path::slashes;

/// The policies of a workspace, that of its root first.
#[derive(Default)]
pub struct Policies {
    files: Vec<PolicyFile>,
}

struct PolicyFile {
    declared: Declared,
    directory: String,
    /// Whether the file is at the workspace root.
    is_root: bool,
}

impl Policies {
    /// Reads the policies of the workspace around the current directory, if there is one. Neither
    /// cargo nor rustc has to be installed.
    pub fn nearby(options: &Selection) -> Result<Self> {
        let start = start_directory(options)?;
        if let Some(file) = Declared::without_package(options)? {
            let root = file.directory.clone();
            return Ok(Self::new(vec![file], &root));
        }
        let Some(workspace) = Directories::find(&start)? else {
            return Ok(Self::default());
        };
        Ok(Self::new(
            Declared::read_directories(&workspace)?,
            &workspace.root,
        ))
    }

    /// Policies of a workspace and its members.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let mut declarations: Vec<Declared> = Declared::read_root(workspace)?.into_iter().collect();
        for package in workspace.members() {
            declarations.extend(Declared::read(workspace, package)?);
        }
        Ok(Self::new(declarations, workspace.root()))
    }

    fn new(declarations: Vec<Declared>, root: &Path) -> Self {
        let mut files: Vec<PolicyFile> = declarations
            .into_iter()
            .map(|declared| PolicyFile {
                directory: slashes(&declared.directory),
                is_root: declared.directory == root,
                declared,
            })
            .collect();
        // The policy of a nested package takes precedence.
        files.sort_by_key(|file| (!file.is_root, file.directory.len()));
        Self { files }
    }

    /// Policy of the workspace root.
    pub fn root_policy(&self) -> Policy {
        self.files
            .iter()
            .find(|file| file.is_root)
            .and_then(|file| file.declared.manifest.policy.clone())
            .map(|policy| policy.value)
            .unwrap_or_default()
    }

    /// Header versions that packages of the workspace declare for libraries, without libraries of
    /// several versions: no file shows which one it was compiled against.
    pub fn header_versions(&self) -> Vec<(&'static Library, HeaderVersion)> {
        let mut versions_by_library = BTreeMap::<&str, Vec<HeaderVersion>>::new();
        for declared in self.declared() {
            for stub in &declared.manifest.stubs {
                let versions = versions_by_library.entry(&stub.id.value).or_default();
                versions.extend(stub.header_version());
            }
        }
        let mut agreed = Vec::new();
        for (id, mut versions) in versions_by_library {
            versions.dedup();
            if let [version] = versions[..]
                && let Some(library) = Library::builtin(id)
            {
                agreed.push((library, version));
            }
        }
        agreed
    }

    /// The policies as layers of a [`gpustub_check::policy::PolicyEngine`].
    pub fn layers(&self) -> Vec<PolicyLayer<'_>> {
        self.files
            .iter()
            .filter_map(|file| {
                Some(PolicyLayer {
                    directory: &file.directory,
                    everywhere: file.is_root,
                    file: &file.declared.display_path,
                    policy: &file.declared.manifest.policy.as_ref()?.value,
                })
            })
            .collect()
    }

    /// Unknown rules and tags in policies, and files that cannot be read.
    pub fn errors(&self) -> Vec<Diagnostic> {
        let mut diagnostics = Vec::new();
        for file in &self.files {
            diagnostics.extend(
                file.declared
                    .diagnostics
                    .iter()
                    .filter(|diagnostic| diagnostic.level == Level::Error)
                    .cloned(),
            );
            let Some(policy) = &file.declared.manifest.policy else {
                continue;
            };
            if let Some(tag) = &policy.value.platform_tag
                && Tag::parse(&tag.value).is_none()
            {
                let message = format!("invalid value {:?} of `policy.platform-tag`", tag.value);
                diagnostics.push(
                    Diagnostic::error(&INVALID_VALUE, message)
                        .with_origin(&file.declared.display_path, tag.span.clone())
                        .help("use a manylinux or musllinux tag: \"manylinux_2_28\", \"musllinux_1_2\""),
                );
            }
            let levels = policy.value.rules.iter();
            let allowances = policy.value.allow.iter();
            for (id, span) in levels
                .map(|(id, level)| (id, &level.span))
                .chain(allowances.map(|allow| (&allow.rule.value, &allow.rule.span)))
            {
                if rule(id).is_some() {
                    continue;
                }
                diagnostics.push(
                    Diagnostic::error(&UNKNOWN_RULE, format!("unknown rule `{id}`"))
                        .with_origin(&file.declared.display_path, span.clone())
                        .help(unknown_rule_help(id, &[])),
                );
            }
        }
        diagnostics
    }

    /// The texts that diagnostics may refer to.
    pub fn sources(&self) -> Sources {
        self.files
            .iter()
            .flat_map(|file| file.declared.sources())
            .collect()
    }

    /// The files, in the order of [`Policies::layers`].
    pub fn declared(&self) -> impl Iterator<Item = &Declared> {
        self.files.iter().map(|file| &file.declared)
    }
}

/// The directory whose package or workspace is meant: that of `--manifest-path`, or the current one.
pub fn start_directory(options: &Selection) -> Result<PathBuf> {
    let manifest = options.manifest.manifest_path.as_deref();
    if let Some(path) = manifest.filter(|path| !path.is_file()) {
        return Err(Error::new(format!("no file `{}`", slashes(path)))
            .help("name a Cargo.toml with `--manifest-path`"));
    }
    let start = match manifest.map(std::path::absolute) {
        None => std::env::current_dir(),
        Some(path) => path.map(|path| path.parent().unwrap_or(&path).to_owned()),
    };
    start.map_err(|error| Error::io("find", Path::new("."), &error))
}
