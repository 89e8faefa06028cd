//! `cargo gpustub sync`: updates files from `GpuStub.toml`.

mod left;
mod refused;
mod show;

use std::collections::BTreeSet;

use cargo_metadata::Package;
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC, has_errors};
use gpustub_core::target::Target;
use gpustub_workspace::error::Result;
use gpustub_workspace::finalizer::{self, RejectedManifest};
use gpustub_workspace::ops::{self, Operation, Pending};
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, Members};
use gpustub_workspace::workspace::{Depth, Workspace, host_triple, target};

use crate::cli;
use crate::state::{dlopen, pending, plan_errors};
use crate::toolkit::SyncProgress;

/// Runs the command.
pub fn run(options: &cli::Sync, shell: &mut Shell) -> Result<bool> {
    sync(options, None, &mut false, shell)
}

/// Applies changes of `GpuStub.toml` by `add` and `remove`, together with the changes of other files that follow: all
/// of them, or none.
pub fn run_with_edits(
    edits: &Pending,
    dry_run: bool,
    selection: &Selection,
    shell: &mut Shell,
) -> Result<bool> {
    let options = cli::Sync {
        check: false,
        dry_run,
        print_use_lines: false,
        target: None,
        cargo: selection.clone(),
    };
    let mut has_started = dry_run || edits.is_empty();
    let result = sync(&options, Some(edits), &mut has_started, shell);
    if !has_started {
        shell.note("nothing was written; `--no-sync` changes GpuStub.toml only");
    }
    result
}

/// Applies changes of `GpuStub.toml` by `add` and `remove` with `--no-sync`, or without a package. `next` is the command to
/// run afterwards.
pub fn run_edits_only(
    edits: &Pending,
    dry_run: bool,
    next: &str,
    shell: &mut Shell,
) -> Result<bool> {
    let operations = edits.clone().into_operations();
    if dry_run {
        show::changes(&operations, &[], false, shell)?;
        return Ok(true);
    }
    ops::apply(&operations, |operation| {
        shell.status(operation.verb(), &operation.display_path)
    })?;
    if !operations.is_empty() {
        shell.note(format!("next: `{next}`"));
    }
    Ok(true)
}

/// Reads all tables, compares the files with them, writes what differs, and reports what the next build would refuse.
/// `edits` are changes of the tables by another command; `has_started` is set when files begin to change.
fn sync(
    options: &cli::Sync,
    edits: Option<&Pending>,
    has_started: &mut bool,
    shell: &mut Shell,
) -> Result<bool> {
    let target = target(options.target.as_deref())?;
    let Some((workspace, is_repaired)) = load(options, shell)? else {
        return Ok(false);
    };
    let workspace = match edits {
        Some(edits) => workspace.with_edits(edits),
        None => workspace,
    };
    let (declared, unselected) = Declared::read_members(&workspace)?;
    let members = Members::new(&declared, &unselected);
    let has_links = finalizer::may_have_device_links(&workspace, &members);
    // A program need not declare the CUDA code that it links.
    if declared.is_empty() && !has_links {
        return left::run(options, &workspace, &unselected, shell);
    }
    let root = Declared::read_root(&workspace)?;
    if !report_plans(&declared, root.as_ref(), &target, edits.is_some(), shell)? {
        return Ok(false);
    }

    for (package, tables) in &declared {
        shell.detail(
            "Checking",
            format!("{} ({})", package.name, tables.display_path),
        );
    }
    let (operations, mut diagnostics) =
        pending::pending(&workspace, &options.cargo, &members, has_links)?;
    let (operations, use_lines) = if options.print_use_lines {
        show::split_sources(&workspace, operations)
    } else {
        (operations, Vec::new())
    };
    let shared = Declared::read_shared(&workspace)?;
    diagnostics.extend(unreported(shared.as_ref(), &declared, root.as_ref()));
    shell.diagnostics(&diagnostics, &sources(shared.as_ref(), &declared))?;
    // Before changes for which cargo would have to resolve dependencies again. `add` warns of its libraries.
    if edits.is_none() {
        let stubs = stub_ids(&declared);
        dlopen::warn(&options.cargo, &workspace, &target.triple, &stubs, shell)?;
    }

    let is_read_only = options.check || options.dry_run;
    if edits.is_some_and(|edits| !edits.is_empty()) && !is_read_only && has_errors(&diagnostics) {
        return Ok(false);
    }
    if !is_read_only {
        pending::refuse_locked(&options.cargo, &operations)?;
        *has_started = true;
        let mut progress = SyncProgress::new(&workspace, shared.as_ref(), shell);
        ops::apply(&operations, |operation| progress.report(operation))?;
        progress.finish();
        show::helper_version(workspace.root(), &operations, shell);
    }
    show::lines(&use_lines, shell)?;

    let mut is_clean = !has_errors(&diagnostics);
    if has_links || refused::may_conflict(&workspace, &members) {
        // Errors that pending changes would fix are not reported for the device link.
        let has_pending = is_read_only && !operations.is_empty() || !use_lines.is_empty();
        is_clean &= refused::report_graph(
            &options.cargo,
            (&workspace, &target.triple),
            has_links,
            !is_clean || has_pending,
            &diagnostics,
            shell,
        )?;
    }
    let is_out_of_sync = !operations.is_empty()
        || !use_lines.is_empty()
        || diagnostics
            .iter()
            .any(|diagnostic| diagnostic.code.id == OUT_OF_SYNC.id);
    if is_clean && !is_out_of_sync && !is_repaired {
        shell.status("Fresh", "everything agrees with GpuStub.toml");
    }
    // Elsewhere such programs are not built.
    if target.check_shared_stubs().is_none() {
        for (package, tables) in &declared {
            show::left_behind(package, tables, shell);
        }
    }
    if is_read_only {
        show::changes(&operations, &use_lines, options.check, shell)?;
        return Ok(is_clean && (!is_out_of_sync || options.dry_run));
    }
    Ok(is_clean)
}

/// Reports the errors of the plans of all tables. Returns whether there are none. `has_edits`: whether another command
/// changes tables.
fn report_plans(
    declared: &[(&Package, Declared)],
    root: Option<&Declared>,
    target: &Target,
    has_edits: bool,
    shell: &mut Shell,
) -> Result<bool> {
    let mut is_clean = true;
    for tables in declared.iter().map(|(_, tables)| tables).chain(root) {
        let (_, mut diagnostics) = tables.plan(target, &tables.inputs);
        if has_edits {
            plan_errors::allow_unknown_results(&mut diagnostics);
        }
        shell.diagnostics(&diagnostics, &tables.sources())?;
        is_clean &= !has_errors(&diagnostics);
    }
    Ok(is_clean)
}

/// Diagnostics of the file with `[toolkit]`, if it is that of a package that is not selected: they were not
/// reported with the plans.
fn unreported(
    shared: Option<&Declared>,
    declared: &[(&Package, Declared)],
    root: Option<&Declared>,
) -> Vec<Diagnostic> {
    let Some(shared) = shared else {
        return Vec::new();
    };
    let mut reported = declared.iter().map(|(_, tables)| tables).chain(root);
    if reported.any(|tables| tables.directory == shared.directory) {
        return Vec::new();
    }
    shared.diagnostics.clone()
}

/// Texts that diagnostics quote.
fn sources(shared: Option<&Declared>, declared: &[(&Package, Declared)]) -> Sources {
    let mut sources = shared.map(Declared::sources).unwrap_or_default();
    for (_, tables) in declared {
        sources.extend(tables.sources());
    }
    sources
}

/// Ids of all declared stubs.
fn stub_ids<'a>(declared: &'a [(&Package, Declared)]) -> BTreeSet<&'a str> {
    declared
        .iter()
        .flat_map(|(_, tables)| &tables.manifest.stubs)
        .map(|stub| stub.id.value.as_str())
        .collect()
}

/// Loads the workspace, if necessary after a repair of finalizers that cargo rejects; returns whether
/// there were any. `None`: there are, and nothing may be written.
fn load(options: &cli::Sync, shell: &mut Shell) -> Result<Option<(Workspace, bool)>> {
    let loaded = Workspace::load(&options.cargo, Depth::Members);
    let rejected = finalizer::rejected_manifests(&options.cargo, loaded.as_ref().ok());
    if rejected.is_empty() {
        return Ok(Some((loaded?, false)));
    }
    if options.check || options.dry_run {
        let diagnostics: Vec<_> = rejected.iter().map(RejectedManifest::diagnostic).collect();
        shell.diagnostics(&diagnostics, &Sources::new())?;
        return Ok(None);
    }
    let repairs: Vec<Operation> = rejected
        .iter()
        .map(RejectedManifest::repair)
        .collect::<Result<_>>()?;
    pending::refuse_locked(&options.cargo, &repairs)?;
    ops::apply(&repairs, |_| {})?;
    // Resolves the dependencies too, which the members alone do not show.
    let resolved = Workspace::load(&options.cargo, Depth::Graph(&host_triple()));
    match resolved.and_then(|_| Workspace::load(&options.cargo, Depth::Members)) {
        Ok(workspace) => {
            let mut progress = SyncProgress::new(&workspace, None, shell);
            repairs.iter().for_each(|repair| progress.report(repair));
            progress.finish();
            Ok(Some((workspace, true)))
        }
        Err(error) => {
            // Cargo rejects another file as well.
            rejected.iter().try_for_each(RejectedManifest::restore)?;
            Err(error)
        }
    }
}
