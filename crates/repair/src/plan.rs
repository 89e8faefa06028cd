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
use gpustub_check::{Image, ImageId, LoadGraph, Package};
use gpustub_core::diag::{Diagnostic, Level, listing};

use crate::candidates::is_candidate;
use crate::libraries::Required;
use crate::package_plan::{Inspections, Options, PackagePlan, unsupported};
use decide::{Decision, Refusal, decide};

/// Plans the edits of a package. An image with an error is left unchanged.
pub fn plan(
    package: &Package,
    inspections: &Inspections,
    options: &Options,
) -> (PackagePlan, Vec<Diagnostic>) {
    let graph = LoadGraph::from_package(package);
    let (decisions, mut diagnostics) = decisions(package, &graph, inspections, options);
    for image in package.images().filter(has_cudart) {
        let reason = "contains the CUDA runtime (cudart_static), which stays";
        let path = &image.member.path;
        let help =
            "leave it: it opens the driver itself, and its functions return errors without one";
        diagnostics.push(unsupported(package, path, Level::Warning, reason).help(help));
    }
    let (mut plan, more) = group::plan(package, &graph, decisions, options);
    diagnostics.extend(more);
    if options.removes_copies {
        plan.removed = removed::copies(package, &plan);
    }
    (plan, diagnostics)
}

/// Scheme of a wheel's file that is installed outside of site-packages, at a distance that depends on the
/// system (binary distribution format, "The .data directory").
fn scheme<'a>(image: &Image<'a>) -> Option<&'a str> {
    let path = image.member.path.as_str();
    let (top, rest) = path.split_once('/')?;
    if !top.ends_with(".data") || installed(path) != path {
        return None;
    }
    let mut members = image.package.members.iter();
    let is_wheel = members.any(|member| is_dist_info(&member.path, "WHEEL"));
    is_wheel.then(|| rest.split('/').next().unwrap_or(rest))
}

/// Decisions about all images. An image that passes a library on to another, which cannot be edited, keeps it.
fn decisions(
    package: &Package,
    graph: &LoadGraph<'_>,
    inspections: &Inspections,
    options: &Options,
) -> (Vec<Decision>, Vec<Diagnostic>) {
    let decide = |id: ImageId, passed_on: &[Required]| {
        let path = graph.image(id).member.path.as_str();
        match (inspections.get(path), options.excluded.get(path)) {
            (_, Some(reason)) => Err(Refusal::from(reason.clone())),
            (None, None) => Ok(None),
            (Some(Err(problem)), None) => Err(problem.to_string().into()),
            (Some(Ok(inspection)), None) => {
                let decision = decide(graph, id, inspection, passed_on)?;
                match scheme(&graph.image(id)).filter(|_| decision.is_some()) {
                    Some(scheme) => Err(format!(
                        "is installed outside of site-packages (`.data/{scheme}`), where it does not find a \
                         stub library"
                    )
                    .into()),
                    None => Ok(decision),
                }
            }
        }
    };
    let mut kept: BTreeMap<ImageId, Refusal> = BTreeMap::new();
    let mut decided: BTreeMap<ImageId, Decision> = BTreeMap::new();
    for (id, image) in graph.entries().filter(|(_, image)| is_candidate(image)) {
        if !inspections.contains_key(image.member.path.as_str()) {
            continue;
        }
        match decide(id, &[]) {
            Ok(decision) => decided.extend(decision.map(|decision| (id, decision))),
            Err(refusal) => drop(kept.insert(id, refusal)),
        }
    }
    let name = |id: ImageId| graph.image(id).member.file_name();
    loop {
        let edited = decided.iter().map(|(&id, one)| (id, one.required.clone()));
        let mut more = BTreeMap::new();
        let mut failed = Vec::new();
        for (id, passed) in passed_on::find(graph, &edited.collect()) {
            match decide(id, &passed.required) {
                Ok(decision) => more.extend(decision.map(|decision| (id, decision))),
                Err(refusal) => failed.push((id, passed, refusal)),
            }
        }
        if failed.is_empty() {
            decided.extend(more);
            break;
        }
        for (id, passed, mut refusal) in failed {
            let through: Vec<&str> = passed.through.iter().map(|&other| name(other)).collect();
            refusal.reason = format!(
                "imports `{}` of a library that only {} needs, and cannot be edited: it {}",
                passed.function,
                listing(&through),
                refusal.reason
            );
            kept.entry(id).or_insert(refusal);
            for other in passed.through {
                decided.remove(&other);
                let why = format!(
                    "keeps the library that `{}` finds `{}` in: that image cannot be edited",
                    name(id),
                    passed.function
                );
                kept.entry(other).or_insert(why.into());
            }
        }
    }
    let report = |(id, refusal): (ImageId, Refusal)| {
        let path = &graph.image(id).member.path;
        let mut found = unsupported(package, path, Level::Error, &refusal.reason);
        found.help = refusal.help;
        found
    };
    (
        decided.into_values().collect(),
        kept.into_iter().map(report).collect(),
    )
}
