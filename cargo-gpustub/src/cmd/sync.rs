//! `cargo gpustub sync`: updates files from `GpuStub.toml`.

mod refused;
mod show;

use std::collections::BTreeSet;

use gpustub_core::diag::{OUT_OF_SYNC, has_errors};
use gpustub_workspace::error::Result;
use gpustub_workspace::finalizer::{self, RejectedManifest};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, Members};
use gpustub_workspace::workspace::{Depth, Workspace, host_triple, target};

use crate::cli;
use crate::state::{dlopen, pending};
use crate::toolkit::SyncProgress;

/// Runs the command.
pub fn run(options: &cli::Sync, shell: &mut Shell) -> Result<bool> {
    let Some((workspace, repaired)) = load(options, shell)? else {
        return Ok(false);
    };
    let (declared, others) = Declared::read_members(&workspace)?;
    let has_links = finalizer::may_have_device_links(&workspace, &Members::new(&declared, &others));
    // A program need not declare the CUDA code that it links.
    if declared.is_empty() && !has_links {
        let remains = workspace.selected()?.into_iter();
        let remains: Vec<_> = remains.filter_map(pending::remains).collect();
        shell.diagnostics(&remains, &Sources::new())?;
        return Err(Declared::no_file(&workspace.selected()?));
    }
    let root = Declared::read_root(&workspace)?;

    let target = target(options.target.as_deref())?;
    let mut clean = true;
    for one in declared.iter().map(|(_, one)| one).chain(&root) {
        let (_, found) = one.plan(&target, &one.inputs);
        shell.diagnostics(&found, &one.sources())?;
        clean &= !has_errors(&found);
    }
    if !clean {
        return Ok(false);
    }

    for (package, one) in &declared {
        shell.detail("Checking", format!("{} ({})", package.name, one.shown));
    }
    let members = Members::new(&declared, &others);
    let (operations, mut found) =
        pending::pending(&workspace, &options.cargo, &members, has_links)?;
    let mut sources = Sources::new();
    let shared = Declared::read_shared(&workspace)?;
    if let Some(shared) = &shared {
        // The file may be that of a package that is not selected, whose errors were not reported.
        let seen = declared.iter().map(|(_, one)| one).chain(&root);
        if !seen
            .into_iter()
            .any(|one| one.directory == shared.directory)
        {
            found.extend(shared.diagnostics.clone());
        }
        sources = shared.sources();
    }
    for (_, one) in &declared {
        sources.extend(one.sources());
    }
    let (mut operations, mut sources_to_print) = (operations, Vec::new());
    if options.print_use_lines {
        (operations, sources_to_print) = show::split_sources(&workspace, operations);
    }

    shell.diagnostics(&found, &sources)?;
    // Before changes for which cargo would have to resolve dependencies again.
    let stubs = declared.iter().flat_map(|(_, one)| &one.manifest.stubs);
    let stubs: BTreeSet<&str> = stubs.map(|stub| stub.id.value.as_str()).collect();
    dlopen::warn(&options.cargo, &workspace, &target.triple, &stubs, shell)?;
    let read_only = options.check || options.dry_run;
    if !read_only {
        pending::refuse_locked(&options.cargo, &operations)?;
        let mut progress = SyncProgress::new(&workspace, shared.as_ref(), shell);
        ops::apply(&operations, |operation| progress.report(operation))?;
        progress.finish();
    }
    show::lines(&sources_to_print, shell)?;
    let mut clean = !has_errors(&found);
    if has_links || refused::may_conflict(&workspace, &members) {
        // Errors that pending changes would fix are not reported for the device link.
        let is_written = !read_only || operations.is_empty();
        let is_stale = !clean || !is_written || !sources_to_print.is_empty();
        let (options, triple) = (&options.cargo, &target.triple);
        clean &= refused::report_graph(options, triple, has_links, is_stale, &found, shell)?;
    }
    let left_over = found.iter().any(|one| one.code.id == OUT_OF_SYNC.id);
    let is_due = !operations.is_empty() || !sources_to_print.is_empty() || left_over;
    if clean && !is_due && !repaired {
        shell.status("Fresh", "everything agrees with GpuStub.toml");
    }
    for (package, one) in &declared {
        show::left_behind(package, one, shell);
    }
    if read_only {
        show::changes(&operations, &sources_to_print, options.check, shell)?;
        return Ok(clean && (!is_due || options.dry_run));
    }
    Ok(clean)
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
    let repairs: Result<Vec<Operation>> = rejected.iter().map(RejectedManifest::repair).collect();
    let repairs = repairs?;
    pending::refuse_locked(&options.cargo, &repairs)?;
    ops::apply(&repairs, |_| {})?;
    // Resolves the dependencies too, which the members alone do not show.
    let resolved = Workspace::load(&options.cargo, Depth::Graph(&host_triple()));
    match resolved.and_then(|_| Workspace::load(&options.cargo, Depth::Members)) {
        Ok(workspace) => {
            let mut progress = SyncProgress::new(&workspace, None, shell);
            repairs.iter().for_each(|one| progress.report(one));
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
