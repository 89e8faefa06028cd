//! `cargo gpustub check --fix`: machine-applicable fixes.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_check::policy::rule;
use gpustub_check::{OUT_OF_SYNC, UNKNOWN_LOAD_NAME, UNUSED_ALLOW, real_names};
use gpustub_core::define_id;
use gpustub_core::diag::{Diagnostic, Level, MISSING_HEADER_VERSION};
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
use crate::state::headers::{KnownHeaders, declared_headers};
use crate::state::pending;

/// Applies and reports the fixes. The check that follows reports the remaining findings.
pub fn run(options: &cli::Check, current_dir: &str, shell: &mut Shell) -> Result<()> {
    // `sync` writes files from `GpuStub.toml`, which is therefore fixed first.
    for fixes in [manifest_fixes, sync_fixes] {
        let operations = fixes(options, current_dir, shell)?;
        refuse_irreversible(options, &operations)?;
        pending::refuse_locked(&options.cargo, &operations)?;
        ops::apply(&operations, |operation| {
            shell.status("Fixed", &operation.display_path)
        })?;
    }
    Ok(())
}

/// The findings of the workspace, with the policies applied.
fn findings(
    options: &cli::Check,
    current_dir: &str,
    shell: &Shell,
) -> Result<(Vec<Diagnostic>, Policies)> {
    let (report, policies) = workspace::check(options, shell)?;
    let findings = apply_policies(options, current_dir, &report, &policies);
    Ok((findings, policies))
}

/// The changes to `GpuStub.toml` files.
fn manifest_fixes(
    options: &cli::Check,
    current_dir: &str,
    shell: &Shell,
) -> Result<Vec<Operation>> {
    let (findings, policies) = findings(options, current_dir, shell)?;
    let host = target(None)?;
    let workspace = Workspace::load(&options.cargo, Depth::Graph(&host.triple))?;
    let mut known_headers = KnownHeaders {
        toolkit_table: Declared::read_shared(&workspace)?
            .and_then(|shared| shared.manifest.toolkit),
        crates: dependencies::crates(&workspace.metadata),
        ..KnownHeaders::default()
    };
    known_headers.declared[1] = declared_headers(policies.declared());
    let mut operations = Vec::new();
    for declared in policies.declared() {
        known_headers.declared[0] = declared_headers([declared]);
        let file = &declared.display_path;
        // Edits by span come first, as the spans refer to the unchanged text.
        let unknown_names = findings_in(&findings, file, UNKNOWN_LOAD_NAME.code.id);
        let mut text = replace_load_names(declared, &unknown_names);
        for finding in findings_in(&findings, file, MISSING_HEADER_VERSION.id) {
            let library = declared
                .manifest
                .stubs
                .iter()
                .find(|stub| is_at(finding, &stub.id.span))
                .and_then(|stub| Library::builtin(&stub.id.value));
            if let Some(library) = library
                && let Some(version) = KnownHeaders::agreed(&known_headers.find(library))
            {
                text =
                    add_stub(&text, &library.id, Some(&version.to_string())).map_err(Error::new)?;
            }
        }
        let unused = unused_allowances(
            declared,
            &findings_in(&findings, file, UNUSED_ALLOW.code.id),
        );
        text = remove_allowances(&text, &unused)?;
        let path = declared.directory.join(FILE);
        operations.push(Operation::write(path, file.clone(), text)?);
    }
    operations.retain(|operation| !operation.is_done());
    Ok(operations)
}

/// Findings of a file with this code.
fn findings_in<'a>(findings: &'a [Diagnostic], file: &str, code: &str) -> Vec<&'a Diagnostic> {
    findings
        .iter()
        .filter(|finding| finding.code.id == code)
        .filter(|finding| {
            finding
                .origin
                .as_ref()
                .is_some_and(|origin| origin.file == file)
        })
        .collect()
}

/// Replaces load names that no release has in the text.
fn replace_load_names(declared: &Declared, findings: &[&Diagnostic]) -> String {
    let mut edits: Vec<(Range<usize>, String)> = declared
        .manifest
        .stubs
        .iter()
        .flat_map(|stub| &stub.custom.load_names)
        .flat_map(|(os, names)| names.iter().map(move |name| (os, name)))
        .filter(|(_, name)| findings.iter().any(|finding| is_at(finding, &name.span)))
        .filter_map(|(os, name)| {
            // Any release may be meant by other unknown names.
            let quoted: Vec<String> = real_names(os, &name.value.name)
                .iter()
                .map(|name| format!("\"{name}\""))
                .collect();
            (!quoted.is_empty()).then(|| (name.span.clone(), quoted.join(", ")))
        })
        .collect();
    edits.sort_by_key(|(span, _)| span.start);
    let mut text = declared.text.clone();
    for (span, names) in edits.into_iter().rev() {
        text.replace_range(span, &names);
    }
    text
}

define_id! {
    /// Index of an entry of `policy.allow` in its file.
    struct AllowanceIndex;
}

/// Indices of a file's allowances that findings report as unused.
fn unused_allowances(declared: &Declared, findings: &[&Diagnostic]) -> Vec<AllowanceIndex> {
    declared
        .manifest
        .policy
        .iter()
        .flat_map(|policy| &policy.value.allow)
        .enumerate()
        .filter(|(_, allow)| {
            findings
                .iter()
                .any(|finding| is_at(finding, &allow.rule.span))
        })
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
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error| Error::new(format!("{error}")))?;
    let Some(allow) = document
        .get_mut("policy")
        .and_then(|policy| policy.get_mut("allow"))
    else {
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
    if is_empty
        && let Some(policy) = document
            .get_mut("policy")
            .and_then(|policy| policy.as_table_like_mut())
    {
        policy.remove("allow");
        if policy.is_empty() {
            document.remove("policy");
        }
    }
    Ok(as_before(text, &document.to_string()))
}

/// Changes of `sync`, if all declarations can be planned.
fn sync_fixes(options: &cli::Check, current_dir: &str, shell: &Shell) -> Result<Vec<Operation>> {
    let (findings, _) = findings(options, current_dir, shell)?;
    let (out_of_sync, remaining): (Vec<_>, Vec<_>) = findings
        .into_iter()
        .partition(|finding| finding.code.id == OUT_OF_SYNC.code.id);
    // Diagnostics that are not of a rule are those of the plan.
    let has_plan_errors = remaining
        .iter()
        .any(|finding| finding.level == Level::Error && rule(finding.code.id).is_none());
    if out_of_sync.is_empty() || has_plan_errors {
        return Ok(Vec::new());
    }
    let host = target(None)?;
    let workspace = Workspace::load(&options.cargo, Depth::Graph(&host.triple))?;
    let graph = PackageGraph::read(&workspace)?;
    let selected = workspace.selected()?;
    let members = graph.members(&workspace, &selected);
    let has_links = finalizer::may_have_device_links(&workspace, &members);
    let (mut operations, _) = pending::pending(&workspace, &options.cargo, &members, has_links)?;
    // Files whose finding a policy allows are not changed.
    operations.retain(|operation| {
        out_of_sync
            .iter()
            .filter_map(|finding| finding.origin.as_ref())
            .any(|origin| origin.file == operation.display_path)
    });
    Ok(operations)
}

/// Rejects changes that version control could not undo, like `cargo fix`.
fn refuse_irreversible(options: &cli::Check, operations: &[Operation]) -> Result<()> {
    let mut directories: BTreeMap<PathBuf, Vec<&Operation>> = BTreeMap::new();
    for operation in operations {
        if operation.creates() {
            continue;
        }
        let directory = operation.path.parent().unwrap_or(Path::new("."));
        directories
            .entry(directory.to_owned())
            .or_default()
            .push(operation);
    }
    for (directory, operations) in directories {
        let status = Command::new("git")
            .current_dir(&directory)
            .args(["status", "--porcelain=v1", "-z", "--ignored", "--"])
            .args(operations.iter().map(|operation| &operation.path))
            .output()
            .ok()
            .filter(|output| output.status.success());
        match status {
            None if options.allow_no_vcs => {}
            None => {
                let message = format!(
                    "{} would be changed by --fix without version control",
                    file_names(&operations)
                );
                let help = "see `cargo gpustub check` for the findings, or pass --allow-no-vcs";
                return Err(Error::new(message).help(help));
            }
            Some(output) if output.stdout.is_empty() || options.allow_dirty => {}
            Some(_) => {
                let message = format!("uncommitted changes: {}", file_names(&operations));
                return Err(Error::new(message).help("commit them, or pass --allow-dirty"));
            }
        }
    }
    Ok(())
}

fn file_names(operations: &[&Operation]) -> String {
    let names: Vec<&str> = operations
        .iter()
        .map(|operation| operation.display_path.as_str())
        .collect();
    names.join(", ")
}
