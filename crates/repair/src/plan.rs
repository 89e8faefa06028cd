//! The plan of a package: decisions about each image, then groups of images that share a stub library.

mod decide;
mod group;
mod passed_on;
mod removed;
mod runpath;

use std::collections::BTreeMap;

use gpustub_check::evidence::has_cudart;
use gpustub_check::search_dirs::installed;
use gpustub_check::wheel::is_dist_info;
use gpustub_check::{ImageId, LoadGraph, Package, PackageImage};
use gpustub_core::diag::{Diagnostic, Level, listing};

use crate::candidates::is_candidate;
use crate::libraries::Requirement;
use crate::package_plan::{Inspections, PackagePlan, PlanOptions, unsupported};
use decide::{Decision, Refusal, decide};
use passed_on::PassedOn;

/// Plans the edits of a package. An image with an error is left unchanged.
pub fn plan(
    package: &Package,
    inspections: &Inspections,
    options: &PlanOptions,
) -> (PackagePlan, Vec<Diagnostic>) {
    let graph = LoadGraph::from_package(package);
    let (decisions, mut diagnostics) = decisions(package, &graph, inspections, options);
    for image in package.images().filter(has_cudart) {
        let reason = "contains the CUDA runtime (cudart_static), which stays";
        diagnostics.push(
            unsupported(package, &image.member.path, Level::Warning, reason).help(
                "leave it: it opens the driver itself, and its functions return errors without one",
            ),
        );
    }
    let (mut plan, group_diagnostics) = group::plan(package, &graph, &decisions, options);
    diagnostics.extend(group_diagnostics);
    if options.removes_copies {
        plan.removed = removed::copies(package, &plan);
    }
    (plan, diagnostics)
}

/// Scheme of a wheel's file that is installed outside of site-packages, at a distance that depends on the
/// system (binary distribution format, "The .data directory").
fn scheme<'a>(image: &PackageImage<'a>) -> Option<&'a str> {
    let path = image.member.path.as_str();
    let (top, rest) = path.split_once('/')?;
    if !top.ends_with(".data") || installed(path) != path {
        return None;
    }
    let is_wheel = image
        .package
        .members
        .iter()
        .any(|member| is_dist_info(&member.path, "WHEEL"));
    is_wheel.then(|| rest.split('/').next().unwrap_or(rest))
}

/// Decisions about all images. An image that passes a library on to another, which cannot be edited, keeps it.
fn decisions(
    package: &Package,
    graph: &LoadGraph<'_>,
    inspections: &Inspections,
    options: &PlanOptions,
) -> (Vec<Decision>, Vec<Diagnostic>) {
    let mut decisions: BTreeMap<ImageId, Decision> = BTreeMap::new();
    let mut refusals: BTreeMap<ImageId, Refusal> = BTreeMap::new();
    for (id, image) in graph.entries() {
        if !is_candidate(image) || !inspections.contains_key(&image.member.path) {
            continue;
        }
        match decide_image(graph, inspections, options, id, &[]) {
            Ok(decision) => decisions.extend(decision.map(|decision| (id, decision))),
            Err(refusal) => drop(refusals.insert(id, refusal)),
        }
    }
    loop {
        let requirements = decisions
            .iter()
            .map(|(&id, decision)| (id, decision.requirements.clone()))
            .collect();
        let mut user_decisions = BTreeMap::new();
        let mut failures = Vec::new();
        for (id, passed_on) in passed_on::find(graph, &requirements) {
            match decide_image(graph, inspections, options, id, &passed_on.requirements) {
                Ok(decision) => user_decisions.extend(decision.map(|decision| (id, decision))),
                Err(refusal) => failures.push((id, passed_on, refusal)),
            }
        }
        if failures.is_empty() {
            decisions.extend(user_decisions);
            break;
        }
        for (id, passed_on, refusal) in failures {
            refuse_with_providers(graph, id, passed_on, refusal, &mut decisions, &mut refusals);
        }
    }
    let mut diagnostics = Vec::new();
    for (id, refusal) in refusals {
        let path = &graph.image(id).member.path;
        let mut diagnostic = unsupported(package, path, Level::Error, &refusal.reason);
        diagnostic.help = refusal.help;
        diagnostics.push(diagnostic);
    }
    (decisions.into_values().collect(), diagnostics)
}

/// Decides about an image; `passed_on` are libraries that it uses through others. `None`: no edit.
fn decide_image(
    graph: &LoadGraph<'_>,
    inspections: &Inspections,
    options: &PlanOptions,
    id: ImageId,
    passed_on: &[Requirement],
) -> Result<Option<Decision>, Refusal> {
    let image = graph.image(id);
    let path = image.member.path.as_str();
    if let Some(reason) = options.excluded.get(path) {
        return Err(reason.clone().into());
    }
    let inspection = match inspections.get(path) {
        None => return Ok(None),
        Some(Err(problem)) => return Err(problem.to_string().into()),
        Some(Ok(inspection)) => inspection,
    };
    let decision = decide(graph, id, inspection, passed_on)?;
    if decision.is_some()
        && let Some(scheme) = scheme(&image)
    {
        return Err(format!(
            "is installed outside of site-packages (`.data/{scheme}`), where it does not find a \
             stub library"
        )
        .into());
    }
    Ok(decision)
}

/// Refuses the edit of an image and of those that pass a library on to it.
fn refuse_with_providers(
    graph: &LoadGraph<'_>,
    id: ImageId,
    passed_on: PassedOn,
    mut refusal: Refusal,
    decisions: &mut BTreeMap<ImageId, Decision>,
    refusals: &mut BTreeMap<ImageId, Refusal>,
) {
    let PassedOn {
        through, function, ..
    } = passed_on;
    let provider_names: Vec<&str> = through
        .iter()
        .map(|&provider| graph.image(provider).member.file_name())
        .collect();
    refusal.reason = format!(
        "imports `{function}` of a library that only {} needs, and cannot be edited: it {}",
        listing(&provider_names),
        refusal.reason
    );
    refusals.entry(id).or_insert(refusal);
    let file_name = graph.image(id).member.file_name();
    for provider in through {
        decisions.remove(&provider);
        let reason = format!(
            "keeps the library that `{file_name}` finds `{function}` in: that image cannot be edited"
        );
        refusals.entry(provider).or_insert(reason.into());
    }
}
