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
    root: bool,
}

impl Policies {
    /// Reads the policies of the workspace around the current directory, if there is one. Neither
    /// cargo nor rustc has to be installed.
    pub fn nearby(options: &Selection) -> Result<Self> {
        let start = start(options)?;
        if let Some(file) = Declared::without_package(options)? {
            let root = file.directory.clone();
            return Ok(Self::new(vec![file], &root));
        }
        let Some(workspace) = Directories::find(&start)? else {
            return Ok(Self::default());
        };
        let all = Declared::read_directories(&workspace)?;
        Ok(Self::new(all, &workspace.root))
    }

    /// Policies of a workspace and its members.
    pub fn read(workspace: &Workspace) -> Result<Self> {
        let mut all: Vec<Declared> = Declared::read_root(workspace)?.into_iter().collect();
        for package in workspace.members() {
            all.extend(Declared::read(workspace, package)?);
        }
        Ok(Self::new(all, workspace.root()))
    }

    fn new(all: Vec<Declared>, root: &Path) -> Self {
        let mut files: Vec<PolicyFile> = all
            .into_iter()
            .map(|declared| PolicyFile {
                directory: slashes(&declared.directory),
                root: declared.directory == root,
                declared,
            })
            .collect();
        // The policy of a nested package takes precedence.
        files.sort_by_key(|file| (!file.root, file.directory.len()));
        Self { files }
    }

    /// Policy of the workspace root.
    pub fn root(&self) -> Policy {
        let root = self.files.iter().find(|file| file.root);
        let policy = root.and_then(|file| file.declared.manifest.policy.clone());
        policy.map(|policy| policy.value).unwrap_or_default()
    }

    /// Header versions that packages of the workspace declare for libraries, without libraries of
    /// several versions: no file shows which one it was compiled against.
    pub fn headers(&self) -> Vec<(&'static Library, HeaderVersion)> {
        let mut declared = BTreeMap::<&str, Vec<HeaderVersion>>::new();
        let stubs = self.declared().flat_map(|one| &one.manifest.stubs);
        for stub in stubs {
            let headers = declared.entry(&stub.id.value).or_default();
            headers.extend(stub.header_version());
        }
        let same = declared.into_iter().filter_map(|(id, headers)| {
            let (first, others) = headers.split_first()?;
            let library = Library::builtin(id)?;
            others
                .iter()
                .all(|other| other == first)
                .then_some((library, *first))
        });
        same.collect()
    }

    /// The policies as layers of a [`gpustub_check::policy::PolicyEngine`].
    pub fn layers(&self) -> Vec<PolicyLayer<'_>> {
        let layers = self.files.iter().filter_map(|file| {
            Some(PolicyLayer {
                directory: &file.directory,
                everywhere: file.root,
                file: &file.declared.display_path,
                policy: &file.declared.manifest.policy.as_ref()?.value,
            })
        });
        layers.collect()
    }

    /// Unknown rules and tags in policies, and files that cannot be read.
    pub fn mistakes(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for file in &self.files {
            let wrong = file.declared.diagnostics.iter();
            found.extend(wrong.filter(|d| d.level == Level::Error).cloned());
            let Some(policy) = &file.declared.manifest.policy else {
                continue;
            };
            if let Some(tag) = &policy.value.platform_tag
                && Tag::parse(&tag.value).is_none()
            {
                let message = format!("invalid value {:?} of `policy.platform-tag`", tag.value);
                found.push(
                    Diagnostic::error(&INVALID_VALUE, message)
                        .with_origin(&file.declared.display_path, tag.span.clone())
                        .help("use a manylinux or musllinux tag: \"manylinux_2_28\", \"musllinux_1_2\""),
                );
            }
            let of_levels = (policy.value.rules.iter()).map(|(id, level)| (id, &level.span));
            let allowed = policy.value.allow.iter();
            let of_allow = allowed.map(|allow| (&allow.rule.value, &allow.rule.span));
            for (id, span) in of_levels
                .chain(of_allow)
                .filter(|(id, _)| rule(id).is_none())
            {
                found.push(
                    Diagnostic::error(&UNKNOWN_RULE, format!("unknown rule `{id}`"))
                        .with_origin(&file.declared.display_path, span.clone())
                        .help(unknown_rule_help(id, &[])),
                );
            }
        }
        found
    }

    /// The texts that diagnostics may refer to.
    pub fn sources(&self) -> Sources {
        let files = self.files.iter();
        files.flat_map(|file| file.declared.sources()).collect()
    }

    /// The files, in the order of [`Policies::layers`].
    pub fn declared(&self) -> impl Iterator<Item = &Declared> {
        self.files.iter().map(|file| &file.declared)
    }
}

/// The directory whose package or workspace is meant: that of `--manifest-path`, or the current one.
pub fn start(options: &Selection) -> Result<PathBuf> {
    let manifest = options.manifest.manifest_path.as_deref();
    if let Some(path) = manifest.filter(|path| !path.is_file()) {
        return Err(Error::new(format!("no file `{}`", path.display()))
            .help("name a Cargo.toml with `--manifest-path`"));
    }
    let start = match manifest.map(std::path::absolute) {
        None => std::env::current_dir(),
        Some(path) => path.map(|path| path.parent().unwrap_or(&path).to_owned()),
    };
    start.map_err(|e| Error::io("find", Path::new("."), &e))
}
