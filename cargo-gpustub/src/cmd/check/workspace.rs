//! Checks of a workspace: declarations, plan, generated files and dependencies.

use cargo_metadata::Package;
use gpustub_check::{Check, check_workspace};
use gpustub_core::diag::has_errors;
use gpustub_core::target::Target;
use gpustub_workspace::error::Result;
use gpustub_workspace::finalizer;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::output::number;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, target};

use super::build_scripts;
use super::policies::Policies;
use super::report::{Report, rule_ids};
use crate::cli;
use crate::state::facts::{self, Texts};
use crate::state::{pending, plan_errors};

/// Checks the selected packages.
pub fn check(options: &cli::Check, shell: &Shell) -> Result<(Report, Policies)> {
    let target = target(options.target.as_deref())?;
    if let Some(file) = Declared::without_package(&options.cargo)? {
        let (_, findings) = file.plan(&target, &file.inputs);
        let report = Report {
            findings,
            sources: file.sources(),
            subject: file.display_path.clone(),
            ..Report::default()
        };
        return Ok((report, Policies::nearby(&options.cargo)?));
    }
    let workspace = Workspace::load(&options.cargo, Depth::Graph(&target.triple))
        .map_err(|error| finalizer::explain(&options.cargo, error))?;
    let policies = Policies::read(&workspace)?;
    let selected = workspace.selected()?;
    let graph = PackageGraph::read_selected(&workspace, &selected, &options.cargo, &target.triple)?;
    let mut report = Report {
        subject: number(selected.len(), "package"),
        ..Report::default()
    };

    check_declarations(&graph, &selected, &target, &mut report);
    let members = graph.members(&workspace, &selected);
    if members.all().any(|(_, file)| has_errors(&file.diagnostics)) {
        // Tables with errors are left out, and all that follows would be findings about their absence.
        report.scope.workspace = false;
        report.unchecked_reason = Some(format!(
            "generated files and rules were not checked, because of the errors in {FILE}"
        ));
        for (_, file) in members.others {
            report.findings.extend(file.diagnostics.clone());
            report.sources.extend(file.sources());
        }
        report.sources.extend(graph.sources());
        return Ok((report, policies));
    }
    if !members.selected.is_empty() {
        let has_links = finalizer::may_have_device_links(&workspace, &members);
        let (operations, diagnostics) =
            pending::pending(&workspace, &options.cargo, &members, has_links)?;
        report.findings.extend(diagnostics);
        report
            .findings
            .extend(operations.iter().map(pending::drift));
    } else {
        let remains = selected
            .iter()
            .filter_map(|package| pending::remains(package));
        report.findings.extend(remains);
    }
    report.findings.extend(plan_errors::read(&graph, &selected));

    let texts = Texts::read(&workspace, &selected)?;
    let mut facts = facts::gather(&workspace, &graph, &selected, &texts);
    report.sources.extend(graph.sources());
    report.sources.extend(texts.sources());
    if options.build {
        for script in build_scripts::run(options, &workspace, &selected, shell)? {
            for (id, package) in facts.crates.ids().zip(&graph.packages) {
                if package.id == script.package {
                    facts.crates[id]
                        .link_libraries
                        .clone_from(&script.libraries);
                }
            }
            report.sources.extend(script.source);
        }
    }
    report.details.push(format!(
        "the workspace: {}",
        rule_ids(|check| matches!(check, Check::Workspace(_)))
    ));
    report.findings.extend(check_workspace(&facts));

    report.unchecked_reason = nothing_declared(&selected, &graph, &workspace)?;
    report.scope.workspace = selected.len() == workspace.members().len();
    Ok((report, policies))
}

/// Plans the declarations of each selected package.
fn check_declarations(
    graph: &PackageGraph<'_>,
    selected: &[&Package],
    target: &Target,
    report: &mut Report,
) {
    for package in selected {
        let Some(index) = graph.index(&package.id) else {
            continue;
        };
        let Some(declared) = &graph.declared[index] else {
            report
                .details
                .push(format!("{}: no stubs declared", package.name));
            continue;
        };
        report
            .details
            .push(format!("{} ({})", package.name, declared.display_path));
        let mut inputs = declared.inputs.clone();
        inputs.features = Some(graph.features[index].clone());
        let (_, diagnostics) = plan_errors::plan(declared, target, &inputs);
        report.findings.extend(diagnostics);
    }
}

/// Reason why declarations were not checked: no selected package has any.
fn nothing_declared(
    selected: &[&Package],
    graph: &PackageGraph<'_>,
    workspace: &Workspace,
) -> Result<Option<String>> {
    if selected
        .iter()
        .filter_map(|package| graph.index(&package.id))
        .any(|index| graph.declared[index].is_some())
    {
        return Ok(None);
    }
    let reason = match selected {
        [package] => format!(
            "nothing declared to check: `{}` has no {FILE}",
            package.name
        ),
        packages => format!(
            "nothing declared to check: none of {} packages has a {FILE}",
            packages.len()
        ),
    };
    let mut declaring = Vec::new();
    for member in workspace.members() {
        if Declared::read(workspace, member)?.is_some() {
            declaring.push(format!("`{}`", member.name));
        }
    }
    Ok(Some(match declaring.as_slice() {
        [] => reason,
        [member] => format!("{reason}, but {member} does; see `--workspace` and `-p`"),
        [first, rest @ ..] => format!(
            "{reason}, but {first} and {} more members do; see `--workspace` and `-p`",
            rest.len()
        ),
    }))
}
