//! Errors of the next build, `plan` or `check`, which `sync` reports in advance.

use std::collections::BTreeMap;

use cargo_metadata::{CrateType, Package};
use gpustub_check::{MIXED_HEADER_VERSIONS, check_workspace};
use gpustub_core::abi_table::headers::HeadersMark;
use gpustub_core::diag::{Diagnostic, INDIRECT_DEVICE_LIBRARY, Level, has_errors};
use gpustub_core::library::Library;
use gpustub_core::manifest::Stub;
use gpustub_workspace::edit::cargo_toml;
use gpustub_workspace::error::Result;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Members;
use gpustub_workspace::workspace::{Depth, Workspace};

use crate::state::{facts, plan_errors};

/// Whether stubs of several packages may be refused in one program: then the dependency graph is
/// read, which takes longer than everything else. A dependency from elsewhere with stubs uses the
/// helper, and `Cargo.lock` lists both.
pub(super) fn may_conflict(workspace: &Workspace, declared: &Members) -> bool {
    let stubs: Vec<&Stub> = declared
        .all()
        .flat_map(|(_, tables)| &tables.manifest.stubs)
        .collect();
    !stubs.is_empty()
        && (stubs.iter().any(|stub| !stub.provide)
            || differ(&stubs)
            || has_dylib(workspace)
            || has_foreign_helper(workspace))
}

/// Whether stubs of one library are for incompatible headers, or those of one family for headers of
/// several majors.
fn differ(stubs: &[&Stub]) -> bool {
    let mut marks: BTreeMap<&str, HeadersMark> = BTreeMap::new();
    let mut majors: BTreeMap<&str, u32> = BTreeMap::new();
    for stub in stubs {
        let library = Library::builtin(&stub.id.value);
        let mark = HeadersMark::new(library, stub.header_version());
        let first = marks.entry(&stub.id.value).or_insert_with(|| mark.clone());
        let mut differs = !mark.is_compatible(first);
        let family = library.and_then(Library::toolkit_family);
        if let (Some(family), Some(version)) = (family, stub.header_version()) {
            let major = version.from.major;
            differs |= *majors.entry(family).or_insert(major) != major;
        }
        if differs {
            return true;
        }
    }
    false
}

/// Whether a member has a Rust dylib.
fn has_dylib(workspace: &Workspace) -> bool {
    workspace
        .members()
        .into_iter()
        .flat_map(|member| &member.targets)
        .any(|target| target.crate_types.contains(&CrateType::DyLib))
}

/// Whether a package from elsewhere uses the helper.
fn has_foreign_helper(workspace: &Workspace) -> bool {
    let lock = std::fs::read_to_string(workspace.root().join("Cargo.lock")).unwrap_or_default();
    let members = workspace.members();
    cargo_toml::users_of_helper(&lock)
        .iter()
        .any(|user| !members.iter().any(|member| member.name == *user))
}

/// Reports the errors of `plan`, `check` and the build in the dependency graph, except codes in
/// `reported`. Returns whether there are none. `has_links`: the graph is required, for device links.
/// `edited` has the changes that are not written.
pub(super) fn report_graph(
    options: &Selection,
    (edited, triple): (&Workspace, &str),
    has_links: bool,
    is_stale: bool,
    reported: &[Diagnostic],
    shell: &mut Shell,
) -> Result<bool> {
    let workspace = match Workspace::load(options, Depth::Graph(triple)) {
        Err(error) if !has_links => {
            // Such as a dependency that is not downloaded yet: the files themselves are up to date.
            let why = error.message.lines().next().unwrap_or_default();
            shell.note(format!(
                "header versions and stubs of the program were not compared, because cargo cannot \
                 resolve the dependencies: {why}"
            ));
            return Ok(true);
        }
        loaded => loaded?.with_edits(edited.edits()),
    };
    let selected = workspace.selected()?;
    let graph = PackageGraph::read_selected(&workspace, &selected, options, triple)?;
    let mut diagnostics = plan_errors::read(&graph, &selected);
    diagnostics.extend(mixed_headers(&workspace, &graph, &selected)?);
    diagnostics.retain(|diagnostic| {
        let id = diagnostic.code.id;
        let is_reported = reported.iter().any(|reported| reported.code.id == id);
        let is_fixed_by_sync = is_stale && id == INDIRECT_DEVICE_LIBRARY.id;
        !is_reported && !is_fixed_by_sync
    });
    shell.diagnostics(&diagnostics, &graph.sources())?;
    Ok(!has_errors(&diagnostics))
}

/// Findings of the rule about header versions, as warnings: `[policy]` decides about them in `check`.
fn mixed_headers(
    workspace: &Workspace,
    graph: &PackageGraph<'_>,
    selected: &[&Package],
) -> Result<Vec<Diagnostic>> {
    let texts = facts::Texts::read(workspace, selected)?;
    let facts = facts::gather(workspace, graph, selected, &texts);
    let mut diagnostics = check_workspace(&facts);
    diagnostics.retain(|diagnostic| diagnostic.code.id == MIXED_HEADER_VERSIONS.code.id);
    for diagnostic in &mut diagnostics {
        diagnostic.level = Level::Warning;
    }
    Ok(diagnostics)
}
