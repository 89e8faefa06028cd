//! `cargo gpustub check --fix`: machine-applicable fixes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_check::{OUT_OF_SYNC, UNKNOWN_LOAD_NAME, UNUSED_ALLOW, real_names};
use gpustub_core::define_id;
use gpustub_core::diag::{Diagnostic, MISSING_HEADER_VERSION, has_errors};
use gpustub_core::ids::Id;
use gpustub_core::library::Library;
use gpustub_workspace::edit::as_before;
use gpustub_workspace::edit::gpustub_toml::add_stub;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::finalizer;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, target};
use toml_edit::DocumentMut;

use super::apply::apply_policies;
use super::policies::Policies;
use super::workspace;
use crate::cli;
use crate::dependencies;
use crate::state::headers::KnownHeaders;
use crate::state::pending;

/// Applies and reports the fixes. The check that follows reports the remaining findings.
pub fn run(options: &cli::Check, here: &str, shell: &mut Shell) -> Result<()> {
    // `sync` writes files from `GpuStub.toml`, which is therefore fixed first.
    for make in [manifests, tree] {
        let operations = make(options, here)?;
        guard(options, &operations)?;
        pending::refuse_locked(&options.cargo, &operations)?;
        ops::apply(&operations, |o| shell.status("Fixed", &o.display_path))?;
    }
    Ok(())
}

/// The findings of the workspace, with the policies applied.
fn findings(options: &cli::Check, here: &str) -> Result<(Vec<Diagnostic>, Policies)> {
    let (report, policies) = workspace::check(options)?;
    Ok((apply_policies(options, here, &report, &policies), policies))
}

/// The changes to `GpuStub.toml` files.
fn manifests(options: &cli::Check, here: &str) -> Result<Vec<Operation>> {
    let (found, policies) = findings(options, here)?;
    let host = target(None)?;
    let loaded = Workspace::load(&options.cargo, Depth::Graph(&host.triple))?;
    let known = KnownHeaders {
        toolkit: Declared::read_shared(&loaded)?.and_then(|one| one.manifest.toolkit),
        crates: dependencies::crates(&loaded.metadata),
        ..KnownHeaders::default()
    };
    let mut operations = Vec::new();
    for declared in policies.declared() {
        let mine = |code: &str| -> Vec<&Diagnostic> {
            let of_file = found.iter().filter(|d| d.code.id == code);
            of_file
                .filter(|d| {
                    d.origin
                        .as_ref()
                        .is_some_and(|o| o.file == declared.display_path)
                })
                .collect()
        };
        // Edits by span come first, as the spans refer to the unchanged text.
        let mut text = load_names(declared, &mine(UNKNOWN_LOAD_NAME.code.id));
        for finding in mine(MISSING_HEADER_VERSION.id) {
            let mut stubs = declared.manifest.stubs.iter();
            let stub = stubs.find(|stub| is_at(finding, &stub.id.span));
            let library = stub.and_then(|stub| Library::builtin(&stub.id.value));
            let header =
                library.and_then(|l| Some((l, KnownHeaders::agreed(&known.find(l))?.to_string())));
            if let Some((library, header)) = header {
                text = add_stub(&text, &library.id, Some(&header)).map_err(Error::new)?;
            }
        }
        text = remove_allowances(
            &text,
            &unused_allowances(declared, &mine(UNUSED_ALLOW.code.id)),
        )?;
        let path = declared.directory.join(FILE);
        operations.push(Operation::write(path, declared.display_path.clone(), text)?);
    }
    operations.retain(|operation| !operation.is_done());
    Ok(operations)
}

/// Replaces load names that no release has in the text.
fn load_names(declared: &Declared, found: &[&Diagnostic]) -> String {
    let mut text = declared.text.clone();
    let stubs = declared.manifest.stubs.iter();
    let mut edits: Vec<(Range<usize>, String)> = stubs
        .flat_map(|stub| &stub.custom.load_names)
        .flat_map(|(os, names)| names.iter().map(move |name| (os, name)))
        .filter(|(_, name)| found.iter().any(|d| is_at(d, &name.span)))
        .filter_map(|(os, name)| {
            // Any release may be meant by other unknown names.
            let real = real_names(os, &name.value.name);
            let quoted: Vec<String> = real.iter().map(|name| format!("\"{name}\"")).collect();
            (!quoted.is_empty()).then(|| (name.span.clone(), quoted.join(", ")))
        })
        .collect();
    edits.sort_by_key(|(span, _)| span.start);
    for (span, new) in edits.into_iter().rev() {
        text.replace_range(span, &new);
    }
    text
}

define_id! {
    /// Index of an entry of `policy.allow` in its file.
    struct AllowanceIndex;
}

/// Indices of a file's allowances that findings report as unused.
fn unused_allowances(declared: &Declared, found: &[&Diagnostic]) -> Vec<AllowanceIndex> {
    let policy = declared.manifest.policy.iter();
    let all = policy.flat_map(|policy| &policy.value.allow).enumerate();
    let is_found = |span: &Range<usize>| found.iter().any(|d| is_at(d, span));
    let unused = all.filter(|(_, allow)| is_found(&allow.rule.span));
    unused
        .map(|(index, _)| AllowanceIndex::from_index(index))
        .collect()
}

/// Whether a finding has this span.
fn is_at(finding: &Diagnostic, span: &Range<usize>) -> bool {
    finding
        .origin
        .as_ref()
        .is_some_and(|origin| origin.span == *span)
}

/// Removes some `[[policy.allow]]` from the text.
fn remove_allowances(text: &str, unused: &[AllowanceIndex]) -> Result<String> {
    let mut document: DocumentMut = text.parse().map_err(|e| Error::new(format!("{e}")))?;
    let allow = document
        .get_mut("policy")
        .and_then(|policy| policy.get_mut("allow"));
    let Some(allow) = allow else {
        return Ok(text.to_owned());
    };
    for index in unused.iter().rev().map(|unused| unused.index()) {
        if let Some(tables) = allow.as_array_of_tables_mut() {
            tables.remove(index);
        } else if let Some(list) = allow.as_array_mut() {
            list.remove(index);
        }
    }
    let is_empty = allow
        .as_array_of_tables()
        .is_some_and(toml_edit::ArrayOfTables::is_empty)
        || allow.as_array().is_some_and(toml_edit::Array::is_empty);
    let policy = document.get_mut("policy");
    if let Some(policy) = policy
        .and_then(|p| p.as_table_like_mut())
        .filter(|_| is_empty)
    {
        policy.remove("allow");
        if policy.is_empty() {
            document.remove("policy");
        }
    }
    Ok(as_before(text, &document.to_string()))
}

/// Changes of `sync`, if all declarations can be planned.
fn tree(options: &cli::Check, here: &str) -> Result<Vec<Operation>> {
    let (found, _) = findings(options, here)?;
    let (stale, others): (Vec<_>, Vec<_>) = found
        .into_iter()
        .partition(|d| d.code.id == OUT_OF_SYNC.code.id);
    let unplanned: Vec<Diagnostic> = others
        .into_iter()
        .filter(|d| gpustub_check::policy::rule(d.code.id).is_none())
        .collect();
    if stale.is_empty() || has_errors(&unplanned) {
        return Ok(Vec::new());
    }
    let host = target(None)?;
    let loaded = Workspace::load(&options.cargo, Depth::Graph(&host.triple))?;
    let graph = PackageGraph::read(&loaded)?;
    let selected = loaded.selected()?;
    let members = graph.members(&loaded, &selected);
    let has_links = finalizer::may_have_device_links(&loaded, &members);
    let (mut operations, _) = pending::pending(&loaded, &options.cargo, &members, has_links)?;
    // Files whose finding a policy allows are not changed.
    operations.retain(|operation| {
        let mut places = stale.iter().filter_map(|d| d.origin.as_ref());
        places.any(|place| place.file == operation.display_path)
    });
    Ok(operations)
}

/// Rejects changes that version control could not undo, like `cargo fix`.
fn guard(options: &cli::Check, operations: &[Operation]) -> Result<()> {
    let existing: Vec<&Operation> = operations.iter().filter(|o| !o.creates()).collect();
    let mut directories: BTreeMap<PathBuf, Vec<&Operation>> = BTreeMap::new();
    for operation in existing {
        let directory = operation.path.parent().unwrap_or(Path::new("."));
        directories
            .entry(directory.to_owned())
            .or_default()
            .push(operation);
    }
    for (directory, operations) in directories {
        let mut git = Command::new("git");
        git.current_dir(&directory)
            .args(["status", "--porcelain=v1", "-z", "--ignored", "--"]);
        git.args(operations.iter().map(|operation| &operation.path));
        let output = git.output().ok().filter(|output| output.status.success());
        let names = || {
            let names: Vec<&str> = operations.iter().map(|o| o.display_path.as_str()).collect();
            names.join(", ")
        };
        match output {
            None if options.allow_no_vcs => {}
            None => {
                let message = format!(
                    "{} would be changed by --fix without version control",
                    names()
                );
                let help = "see `cargo gpustub check` for the findings, or pass --allow-no-vcs";
                return Err(Error::new(message).help(help));
            }
            Some(output) if output.stdout.is_empty() || options.allow_dirty => {}
            Some(_) => {
                let message = format!("uncommitted changes: {}", names());
                return Err(Error::new(message).help("commit them, or pass --allow-dirty"));
            }
        }
    }
    Ok(())
}
