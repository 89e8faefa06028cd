//! The plan of a package: decisions about each image, then groups of images that share a stub library.

mod decide;
mod for_others;
mod group;
mod passed_on;
mod refusal;
mod removed;
mod runpath;
mod unavailable;

use std::collections::BTreeMap;

use gpustub_check::evidence::has_cudart;
use gpustub_check::search_dirs::installed;
use gpustub_check::wheel::is_wheel;
use gpustub_check::{Content, ImageId, LoadGraph, Package, PackageImage};
use gpustub_core::diag::{Diagnostic, Level, listing};
use gpustub_image::{Error, ImageFormat};

use crate::candidates::is_candidate;
use crate::kept::KeptLibraries;
use crate::libraries::Requirement;
use crate::names::is_stub_file;
use crate::package_plan::{Inspections, PackagePlan, PlanOptions, unsupported};
use decide::{Decision, decide};
use passed_on::PassedOn;
use refusal::Refusal;

/// Plans the edits of a package. An image with an error is left unchanged.
pub fn plan(
    package: &Package,
    inspections: &Inspections<'_>,
    options: &PlanOptions,
) -> (PackagePlan, Vec<Diagnostic>) {
    let mut plan = PackagePlan::default();
    let (mut diagnostics, mut group_diagnostics) = (Vec::new(), Vec::new());
    for format in [ImageFormat::Elf, ImageFormat::Pe] {
        let images = package.all_images();
        let graph = LoadGraph::from_images(images.filter(|image| image.facts.format == format));
        let context = Context {
            graph: &graph,
            kept: KeptLibraries::find(&graph, options),
            inspections,
            options,
        };
        let (decisions, refusals) = context.decisions(package);
        diagnostics.extend(refusals);
        plan.kept.extend(context.kept_names());
        group_diagnostics.extend(group::plan(package, &graph, &decisions, options, &mut plan));
    }
    diagnostics.extend(damaged(package));
    for image in package.images().filter(has_cudart) {
        let reason = "contains the CUDA runtime (cudart_static), which stays";
        diagnostics.push(
            unsupported(package, &image.member.path, Level::Warning, reason).help(
                "leave it: it opens the driver itself, and its functions return errors without one",
            ),
        );
    }
    diagnostics.extend(group_diagnostics);
    plan.images.sort_by(|a, b| a.path.cmp(&b.path));
    if options.removes_copies {
        plan.removed = removed::copies(package, &plan, &options.known);
    }
    (plan, diagnostics)
}

/// Errors about the images whose tables cannot be read. Which libraries they need is unknown.
fn damaged(package: &Package) -> impl Iterator<Item = Diagnostic> {
    package.members.iter().filter_map(|member| {
        let Content::Damaged(problem) = &member.content else {
            return None;
        };
        let diagnostic = unsupported(package, &member.path, Level::Error, &problem.to_string());
        Some(diagnostic.help(Error::from(problem.clone()).help()))
    })
}

/// Scheme of a wheel's file that is installed outside of site-packages, at a distance that depends on the
/// system (binary distribution format, "The .data directory").
fn scheme<'a>(image: &PackageImage<'a>) -> Option<&'a str> {
    let path = image.member.path.as_str();
    let (top, rest) = path.split_once('/')?;
    if !top.ends_with(".data") || installed(path) != path {
        return None;
    }
    is_wheel(image.package).then(|| rest.split('/').next().unwrap_or(rest))
}

/// The images of a package, and what is known about them.
struct Context<'a> {
    graph: &'a LoadGraph<'a>,
    kept: KeptLibraries<'a>,
    inspections: &'a Inspections<'a>,
    options: &'a PlanOptions,
}

impl Context<'_> {
    /// Decisions about all images. An image that passes a library on to another, which cannot be edited, keeps it.
    fn decisions(&self, package: &Package) -> (Vec<Decision>, Vec<Diagnostic>) {
        let mut decisions: BTreeMap<ImageId, Decision> = BTreeMap::new();
        let mut refusals: BTreeMap<ImageId, Refusal> = BTreeMap::new();
        for (id, image) in self.graph.entries() {
            if !is_candidate(image, &self.options.known)
                || !self.inspections.contains_key(image.member.path.as_str())
            {
                continue;
            }
            match self.decide_image(id, &[]) {
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
            for (id, passed_on) in
                passed_on::find(self.graph, &self.kept, &self.options.known, &requirements)
            {
                match self.decide_image(id, &passed_on.requirements) {
                    Ok(decision) => user_decisions.extend(decision.map(|decision| (id, decision))),
                    Err(refusal) => failures.push((id, passed_on, refusal)),
                }
            }
            if failures.is_empty() {
                decisions.extend(user_decisions);
                break;
            }
            for (id, passed_on, refusal) in failures {
                refuse_with_providers(
                    self.graph,
                    id,
                    passed_on,
                    refusal,
                    &mut decisions,
                    &mut refusals,
                );
            }
        }
        for_others::refuse(
            self.graph,
            &self.kept,
            &self.options.known,
            &mut decisions,
            &mut refusals,
        );
        let mut diagnostics = Vec::new();
        // An earlier repair has edited the others.
        let mut images = package.all_images();
        let is_repaired = images.any(|image| image.needed().iter().any(|name| is_stub_file(name)));
        for (id, refusal) in refusals {
            let path = &self.graph.image(id).member.path;
            let is_unrelated = refusal.is_unrelated && (is_repaired || !decisions.is_empty());
            let mut diagnostic = if is_unrelated && self.options.is_partial {
                let reason = format!("stays as it is: it {}", refusal.reason);
                unsupported(package, path, Level::Warning, &reason)
            } else {
                unsupported(package, path, Level::Error, &refusal.reason)
            };
            diagnostic.help = if is_unrelated && !self.options.is_partial {
                let part = "`--partial` leaves it as it is, with a warning, for the other images";
                refusal.or(part).help
            } else {
                refusal.help
            };
            diagnostics.push(diagnostic);
        }
        for decision in decisions
            .values()
            .filter(|decision| !decision.unavailable.is_empty())
        {
            diagnostics.push(repaired_in_part(package, decision));
        }
        (decisions.into_values().collect(), diagnostics)
    }

    /// Decides about an image; `passed_on` are libraries that it uses through others. `None`: no edit.
    fn decide_image(
        &self,
        id: ImageId,
        passed_on: &[Requirement],
    ) -> Result<Option<Decision>, Refusal> {
        let image = self.graph.image(id);
        let path = image.member.path.as_str();
        if let Some(reason) = self.options.excluded.get(path) {
            return Err(reason.clone().into());
        }
        let inspection = match self.inspections.get(path) {
            None => return Ok(None),
            Some(Err(_)) if passed_on.is_empty() && self.keeps_all(&image) => return Ok(None),
            Some(Err(problem)) => return Err(problem.to_string().into()),
            Some(Ok(inspection)) => inspection,
        };
        let decision = decide(
            self.graph,
            &self.kept,
            self.options,
            id,
            inspection,
            passed_on,
        )?;
        if decision.is_some()
            && !image.is_pe()
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

    /// Whether the package brings all GPU libraries that an image needs.
    fn keeps_all(&self, image: &PackageImage<'_>) -> bool {
        let mut needed = image.needed().iter().chain(&image.facts.delayed);
        needed.all(|name| !self.options.known.is_file(name) || self.kept.contains(name))
    }

    /// Names of GPU libraries of the package that each image keeps, by its path.
    fn kept_names(&self) -> BTreeMap<String, Vec<String>> {
        let known = &self.options.known;
        let mut kept_names = BTreeMap::new();
        for (path, inspection) in self.inspections {
            let Ok(inspection) = inspection else {
                continue;
            };
            let names = inspection.needed.iter().filter(|name| {
                self.kept.contains(name)
                    && (known.is_file(name) || known.replaced_library(inspection, name).is_some())
            });
            let names: Vec<String> = names.cloned().collect();
            if !names.is_empty() {
                kept_names.insert((*path).to_owned(), names);
            }
        }
        kept_names
    }
}

/// Warning about an image that keeps libraries which stubs cannot replace.
fn repaired_in_part(package: &Package, decision: &Decision) -> Diagnostic {
    let reasons: Vec<&str> = (decision.unavailable.iter())
        .map(|refusal| refusal.reason.as_str())
        .collect();
    let names: Vec<&String> = (decision.unavailable.iter())
        .flat_map(|refusal| &refusal.keeps)
        .collect();
    let lazy: Vec<&str> = (decision.requirements.iter())
        .map(|requirement| requirement.library.id.as_str())
        .collect();
    let (are, need) = match names.len() {
        1 => ("is", "it needs"),
        _ => ("are", "they need"),
    };
    let reason = format!("is repaired in part: it {}", reasons.join("; it "));
    unsupported(package, &decision.path, Level::Warning, &reason).help(format!(
        "it starts only where {} {are} installed, with all that {need}; its functions of {} are bound at their \
         first call, to any major",
        listing(&names),
        listing(&lazy)
    ))
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
