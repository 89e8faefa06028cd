//! Checks of a workspace: declarations, plan, generated files and dependencies.

use cargo_metadata::Package;
use gpustub_check::{Check, RULES, check_workspace};
use gpustub_workspace::error::Result;
use gpustub_workspace::finalizer;
use gpustub_workspace::graph::PackageGraph;
use gpustub_workspace::output::number;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, Workspace, target};

use super::build_scripts;
use super::policies::Policies;
use super::report::Report;
use crate::cli;
use crate::state::facts::{self, Texts};
use crate::state::{pending, plan_errors};

/// Checks the selected packages.
pub fn check(options: &cli::Check) -> Result<(Report, Policies)> {
    let target = target(options.target.as_deref())?;
    if let Some(file) = Declared::without_package(&options.cargo)? {
        let (_, findings) = file.plan(&target, &file.inputs);
        let report = Report {
            findings,
            sources: file.sources(),
            what: file.display_path.clone(),
            ..Report::default()
        };
        return Ok((report, Policies::nearby(&options.cargo)?));
    }
    let workspace = Workspace::load(&options.cargo, Depth::Graph(&target.triple))
        .map_err(|error| finalizer::explain(&options.cargo, error))?;
    let policies = Policies::read(&workspace)?;
    let selected = workspace.selected()?;
    let graph = PackageGraph::read_selected(&workspace, &selected, &options.cargo, &target.triple)?;
    let mut findings = Vec::new();
    let mut details = Vec::new();

    for package in &selected {
        let Some(at) = graph.index(&package.id) else {
            continue;
        };
        let Some(one) = &graph.declared[at] else {
            details.push(format!("{}: no stubs declared", package.name));
            continue;
        };
        details.push(format!("{} ({})", package.name, one.display_path));
        let mut inputs = one.inputs.clone();
        inputs.features = Some(graph.features[at].clone());
        let (_, found) = one.plan(&target, &inputs);
        findings.extend(found);
    }
    let members = graph.members(&workspace, &selected);
    if !members.selected.is_empty() {
        let has_links = finalizer::may_have_device_links(&workspace, &members);
        let (operations, found) =
            pending::pending(&workspace, &options.cargo, &members, has_links)?;
        findings.extend(found);
        findings.extend(operations.iter().map(pending::drift));
    }
    findings.extend(plan_errors::read(&graph, &selected));

    let texts = Texts::read(&workspace, &selected)?;
    let mut facts = facts::gather(&workspace, &graph, &selected, &texts);
    let mut sources = graph.sources();
    sources.extend(texts.sources());
    if options.build {
        let linked = build_scripts::run(options, &workspace, &selected)?;
        for script in linked {
            let crates = facts.crates.ids().zip(graph.packages.iter());
            let krate = crates.filter(|(_, package)| package.id == script.package);
            for (id, _) in krate.collect::<Vec<_>>() {
                facts.crates[id]
                    .link_libraries
                    .clone_from(&script.libraries);
            }
            sources.extend(script.source);
        }
    }
    let rules = RULES
        .iter()
        .filter(|r| matches!(r.check, Check::Workspace(_)));
    let rules: Vec<&str> = rules.map(|rule| rule.code.id).collect();
    details.push(format!("the workspace: {}", rules.join(", ")));
    findings.extend(check_workspace(&facts));

    let mut report = Report {
        findings,
        sources,
        details,
        what: number(selected.len(), "package"),
        ..Report::default()
    };
    report.nothing = nothing(&selected, &graph, &workspace)?;
    report.scope.workspace = selected.len() == workspace.members().len();
    Ok((report, policies))
}

/// Reason why declarations were not checked: no selected package has any.
fn nothing(
    selected: &[&Package],
    graph: &PackageGraph<'_>,
    workspace: &Workspace,
) -> Result<Option<String>> {
    let has = |package: &&&Package| {
        let at = graph.index(&package.id);
        at.is_some_and(|at| graph.declared[at].is_some())
    };
    if selected.iter().any(|package| has(&package)) {
        return Ok(None);
    }
    let nothing = match selected {
        [one] => format!("nothing declared to check: `{}` has no {FILE}", one.name),
        several => format!(
            "nothing declared to check: none of {} packages has a {FILE}",
            several.len()
        ),
    };
    let mut others = Vec::new();
    for member in workspace.members() {
        if Declared::read(workspace, member)?.is_some() {
            others.push(format!("`{}`", member.name));
        }
    }
    Ok(Some(match others.as_slice() {
        [] => nothing,
        [one] => format!("{nothing}, but {one} does; see `--workspace` and `-p`"),
        [first, ..] => format!(
            "{nothing}, but {first} and {} more members do; see `--workspace` and `-p`",
            others.len() - 1
        ),
    }))
}
