//! The plan of a package: decisions about each image, then groups of images that share a stub library.

mod decide;
mod group;
mod removed;
mod runpath;

use std::collections::BTreeMap;

use gpustub_check::evidence::{has_cudart, is_from_vendor};
use gpustub_check::{Image, LoadGraph, Package};
use gpustub_core::diag::{Diagnostic, Level, UNSUPPORTED_IMAGE};
use gpustub_core::library::Library;
use gpustub_image::edit::{self, Inspection, Request};

use crate::libraries::is_gpu_name;
use crate::names::is_stub_file;
use decide::{Decision, Refusal, decide};

/// An image that may need an edit.
#[derive(Debug, Clone)]
pub struct Found {
    /// Path in the package.
    pub path: String,
    /// Requirements, or the reason why the image cannot be edited.
    pub inspection: Result<Inspection, edit::Problem>,
}

/// Decisions of the caller.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Name of the package in file names and version nodes ([`package_name`](crate::names::package_name)).
    /// Empty: the name is the hash of the stub library's contents.
    pub name: String,
    /// Prefix of that hash.
    pub prefix: String,
    /// Directory of the stub library in the package.
    pub directory: String,
    /// Header versions by toolkit or library; those without a name are for toolkits.
    pub headers: Vec<(Option<String>, String)>,
    /// Images that cannot be edited, with the reason.
    pub excluded: BTreeMap<String, String>,
    /// Whether copies of GPU libraries that no image needs any more are removed.
    pub removes_copies: bool,
}

/// The edits of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackagePlan {
    /// The stub libraries.
    pub stubs: Vec<StubPlan>,
    /// The edited images, sorted by path.
    pub images: Vec<ImagePlan>,
    /// Paths of removed files.
    pub removed: Vec<String>,
}

/// A stub library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubPlan {
    /// File name and soname.
    pub file: String,
    /// Path in the package.
    pub path: String,
    /// Machine of the images that need it.
    pub machine: String,
    /// The stubbed libraries, sorted by id.
    pub libraries: Vec<StubLibrary>,
}

/// The functions of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubLibrary {
    /// The library.
    pub library: &'static Library,
    /// Value of `header-version`, if the library needs one.
    pub header: Option<String>,
    /// Version node of each imported function.
    pub exports: BTreeMap<String, String>,
}

/// An edited image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePlan {
    /// Path in the package.
    pub path: String,
    /// Index of its stub library.
    pub stub: usize,
    /// The edit.
    pub request: Request,
}

/// Paths of images that require GPU libraries and are not a vendor's.
pub fn candidates(package: &Package) -> Vec<&str> {
    let images = package.images().filter(is_candidate);
    images.map(|image| image.member.path.as_str()).collect()
}

fn is_candidate(image: &Image<'_>) -> bool {
    let link = &image.facts.link;
    let nodes = link.verneed.iter().flat_map(|need| &need.nodes);
    !is_from_vendor(image)
        && !is_stub_file(image.member.file_name())
        && link
            .needed
            .iter()
            .chain(nodes)
            .any(|name| is_gpu_name(name))
}

/// Plans the edits of a package. An image with an error is left unchanged.
pub fn plan(
    package: &Package,
    found: &[Found],
    options: &Options,
) -> (PackagePlan, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let mut decisions: Vec<Decision> = Vec::new();
    let graph = LoadGraph::from_package(package);
    let images: BTreeMap<&str, _> = graph
        .entries()
        .map(|(id, image)| (image.member.path.as_str(), id))
        .collect();
    for one in found {
        let Some(&id) = images.get(one.path.as_str()) else {
            continue;
        };
        let reason = options.excluded.get(&one.path).cloned();
        let decided = match (&one.inspection, reason) {
            (_, Some(reason)) => Err(reason.into()),
            (Err(problem), None) => Err(problem.to_string().into()),
            (Ok(inspection), None) => decide(&graph, id, inspection),
        };
        match decided {
            Ok(decision) => decisions.extend(decision),
            Err(Refusal { reason, help }) => {
                let mut found = unsupported(package, &one.path, Level::Error, &reason);
                found.help = help;
                diagnostics.push(found);
            }
        }
    }
    for image in package.images().filter(has_cudart) {
        let reason = "contains the CUDA runtime (cudart_static), which stays";
        let path = &image.member.path;
        diagnostics.push(unsupported(package, path, Level::Warning, reason));
    }
    let (mut plan, more) = group::plan(package, &graph, decisions, options);
    diagnostics.extend(more);
    if options.removes_copies {
        plan.removed = removed::copies(package, &plan);
    }
    (plan, diagnostics)
}

fn unsupported(package: &Package, path: &str, level: Level, reason: &str) -> Diagnostic {
    let file = path.rsplit('/').next().unwrap_or_default();
    let mut found = Diagnostic::error(&UNSUPPORTED_IMAGE, format!("`{file}` {reason}"))
        .with_origin(package.display_path_of(path), 0..0);
    found.level = level;
    found
}
