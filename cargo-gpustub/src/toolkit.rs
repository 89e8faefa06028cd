//! Toolkits: installed ones, and the stand-in directory for build scripts.

mod config;
pub mod headers;
pub mod installed;
mod layout;

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::diag::{Diagnostic, INVALID_VALUE, OUT_OF_SYNC, has_errors};
use gpustub_core::manifest::{Spanned, Toolkit};
use gpustub_core::suggest::nearest;
use gpustub_core::version::Version;
use gpustub_workspace::display_path::display_path;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::Operation;
use gpustub_workspace::output::MessageFormat;
use gpustub_workspace::report;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::Workspace;

use headers::Headers;
use layout::ToolkitLayout;

/// Changes that make the tree and cargo's configuration agree with the `[toolkit]` of the workspace.
/// `declared` is the file at its root; `headers` replace the placeholder headers.
pub fn operations(
    workspace: &Workspace,
    declared: &Declared,
    headers: &Headers,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<Operation>> {
    let Some(toolkit) = &declared.manifest.toolkit else {
        return Ok(Vec::new());
    };
    let toolkit = &toolkit.value;
    let layout = ToolkitLayout::shipped();
    let count = diagnostics.len();
    check_crates(&layout, toolkit, declared, diagnostics);
    check_headers(workspace, toolkit, declared, headers, diagnostics);
    if has_errors(&diagnostics[count..]) {
        return Ok(Vec::new());
    }
    let mut operations = tree(workspace, &layout, toolkit, headers)?;
    operations.extend(configuration(workspace, &layout, toolkit, diagnostics)?);
    Ok(operations)
}

/// The files of the tree.
fn tree(
    workspace: &Workspace,
    layout: &ToolkitLayout,
    toolkit: &Toolkit,
    headers: &Headers,
) -> Result<Vec<Operation>> {
    let directory = workspace.root().join(&toolkit.path);
    let mut operations = Vec::new();
    for file in layout.files(toolkit) {
        let path = directory.join(&file.path);
        if file.is_header && (headers.contains_key(&file.path) || is_copied_header(&path)) {
            continue;
        }
        let operation = Operation::write(path.clone(), display_path(&path), file.text)?;
        operations.push(if file.is_program {
            operation.executable()
        } else {
            operation
        });
    }
    for (name, bytes) in headers {
        let path = directory.join(name);
        operations.push(Operation::write(
            path.clone(),
            display_path(&path),
            bytes.clone(),
        )?);
    }
    let is_ours = fs::read(directory.join("README.md"))
        .is_ok_and(|text| text.starts_with(layout::TITLE.as_bytes()));
    let help =
        "choose another directory: `path` in `[toolkit]` of GpuStub.toml, or `--toolkit-dir`";
    Operation::refuse_to_replace(&operations, is_ours, help)?;
    Ok(operations)
}

/// Whether the user copied a header there, which is kept.
fn is_copied_header(path: &Path) -> bool {
    fs::read(path).is_ok_and(|text| !text.starts_with(layout::MARK.as_bytes()))
}

/// Change to cargo's configuration of the workspace, which passes the tree to build scripts.
fn configuration(
    workspace: &Workspace,
    layout: &ToolkitLayout,
    toolkit: &Toolkit,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Option<Operation>> {
    let directory = workspace.root().join(".cargo");
    // If both exist, cargo reads the one without an extension.
    let mut path = directory.join("config");
    if !path.is_file() {
        path = directory.join("config.toml");
    }
    let file = display_path(&path);
    let text = if path.exists() {
        fs::read_to_string(&path).map_err(|e| Error::io("read", &path, &e))?
    } else {
        String::new()
    };
    let edited = config::edit(&text, layout, toolkit)
        .map_err(|reason| Error::new(format!("could not edit `{file}`: {reason}")))?;
    for key in edited.conflicts {
        let message = format!("`{key}` in `{file}` conflicts with `[toolkit]`");
        diagnostics.push(Diagnostic::error(&OUT_OF_SYNC, message).help(format!(
            "remove `{key}` there, so that `cargo gpustub sync` can set it, or `[toolkit]`"
        )));
    }
    if text.is_empty() && edited.text.is_empty() {
        Ok(None)
    } else {
        Operation::write(path, file, edited.text).map(Some)
    }
}

/// Validates `override-build-scripts`: only for known crates is the output of the script known.
fn check_crates(
    layout: &ToolkitLayout,
    toolkit: &Toolkit,
    declared: &Declared,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let known: Vec<&str> = layout.overrides.crates.keys().map(String::as_str).collect();
    for Spanned { value: name, span } in &toolkit.override_build_scripts {
        if known.contains(&name.as_str()) {
            continue;
        }
        let message = format!("unknown crate `{name}` in `toolkit.override-build-scripts`");
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known crates are {}; other build scripts run unchanged",
                known.join(", ")
            ),
        };
        let diagnostic = Diagnostic::error(&INVALID_VALUE, message)
            .with_origin(&declared.display_path, span.clone())
            .help(help);
        diagnostics.push(diagnostic);
    }
}

/// Validates that real headers have the declared version: build scripts read either.
fn check_headers(
    workspace: &Workspace,
    toolkit: &Toolkit,
    declared: &Declared,
    headers: &Headers,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let directory = workspace.root().join(&toolkit.path);
    let families = [
        ("cuda", "CUDA", "cuda", &toolkit.cuda),
        ("hip", "HIP", "rocm", &toolkit.hip),
    ];
    for (key, title, family, declared_version) in families {
        let Some(Spanned { value, span }) = declared_version else {
            continue;
        };
        let Some((version, name)) = version_of(family, &directory, headers) else {
            continue;
        };
        if version != *value {
            let message =
                format!("`{name}` is from {title} {version}, but `[toolkit] {key}` is {value}");
            let diagnostic = Diagnostic::error(&INVALID_VALUE, message)
                .with_origin(&declared.display_path, span.clone())
                .help(format!(
                    "write `{key} = \"{version}\"`, or copy headers of {value} with \
                     `cargo gpustub add --toolkit-headers DIR`"
                ));
            diagnostics.push(diagnostic);
        }
    }
}

/// The version of the real header among `headers`, or in the tree, and its path there.
fn version_of(
    family: &str,
    directory: &Path,
    headers: &Headers,
) -> Option<(Version, &'static str)> {
    let name = installed::header(family)?;
    let bytes = match headers.get(name) {
        Some(bytes) => Cow::Borrowed(bytes),
        None => Cow::Owned(fs::read(directory.join(name)).ok()?),
    };
    if bytes.starts_with(layout::MARK.as_bytes()) {
        return None;
    }
    Some((installed::version_in(family, &bytes)?, name))
}

/// Progress of applied operations, with one line for the whole toolkit directory of a hundred files.
pub struct SyncProgress<'a> {
    tree: Option<PathBuf>,
    /// Number of applied operations in the tree.
    count: usize,
    shell: &'a mut Shell,
}

impl<'a> SyncProgress<'a> {
    /// Progress of the operations for `declared`.
    pub fn new(workspace: &Workspace, declared: Option<&Declared>, shell: &'a mut Shell) -> Self {
        let toolkit = declared.and_then(|declared| declared.manifest.toolkit.as_ref());
        Self {
            tree: toolkit.map(|toolkit| workspace.root().join(&toolkit.value.path)),
            count: 0,
            shell,
        }
    }

    /// Reports one applied operation.
    pub fn report(&mut self, operation: &Operation) {
        if self.shell.format() == MessageFormat::Json {
            // A closed pipe must not stop the changes.
            let _ = self.shell.json(&report::json::change(operation, "applied"));
        }
        match &self.tree {
            Some(tree) if operation.path.starts_with(tree) => {
                self.count += 1;
                self.shell.detail(operation.verb(), &operation.display_path);
            }
            _ => self.shell.status(operation.verb(), &operation.display_path),
        }
    }

    /// Reports the toolkit directory.
    pub fn finish(self) {
        if let Some(tree) = self.tree.filter(|_| self.count > 0) {
            let directory = display_path(&tree);
            let text = format!("{directory} (files: {})", self.count);
            self.shell.status("Wrote", text);
        }
    }
}
