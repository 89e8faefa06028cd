//! Faults of processes and their messages.

use super::graph::NodeId;
use super::plan::LinkPlan;
use crate::diag::{
    DUPLICATE_DEVICE_LINK, DUPLICATE_DEVICE_OBJECTS, Diagnostic, INCOMPLETE_DEVICE_LINK,
    MISSING_DEVICE_LINK, MIXED_CUDART, UNSHARED_DEVICE_GLOBALS, listing,
};
use crate::manifest::Cudart;

/// Kind of a fault, in report order.
#[derive(PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
pub(super) enum Fault {
    DuplicateDeviceLink,
    /// Device links of images whose program is not in the graph.
    SeparateDeviceLinks,
    DuplicateDeviceObjects,
    MissingDeviceLink,
    /// The image with the objects is opened before the device link.
    LateDeviceLink,
    IncompleteDeviceLink,
    MixedCudart(Cudart, Cudart),
    UnsharedDeviceGlobals,
}

/// A fault and the images that it concerns.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ImageFault {
    pub kind: Fault,
    pub images: Vec<NodeId>,
}

impl ImageFault {
    pub fn new(kind: Fault, images: Vec<NodeId>) -> Self {
        Self { kind, images }
    }
}

/// A fault of some images, and the libraries that it concerns.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub fault: ImageFault,
    pub members: Vec<NodeId>,
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    listing(&quoted)
}

/// Diagnostic for a finding in the processes of these programs.
pub(super) fn diagnostic(plan: &LinkPlan<'_>, finding: Finding, roots: &[NodeId]) -> Diagnostic {
    let Finding { fault, members } = finding;
    let ImageFault { kind, images } = fault;
    let graph = &plan.walk.graph;
    let libraries = quoted(&graph.names(&members));
    let holders = quoted(&graph.names(&images));
    let programs = quoted(&graph.names(roots));
    let link_names = plan.link_names(&images);
    let links = quoted(&link_names.iter().map(String::as_str).collect::<Vec<_>>());
    let diagnostic = match kind {
        Fault::DuplicateDeviceLink => Diagnostic::error(
            &DUPLICATE_DEVICE_LINK,
            format!(
                "in {programs}, {links} each device-link {libraries}; a process registers a library \
                 once"
            ),
        )
        .help(format!(
            "close all but one of them, or link the middles and device-link all of it in {programs}"
        )),
        Fault::SeparateDeviceLinks => Diagnostic::warning(
            &DUPLICATE_DEVICE_LINK,
            format!(
                "{programs} cannot be opened by one process: {links} each device-link {libraries}, \
                 and a process registers a library once"
            ),
        )
        .help(
            "let one shared library require all that they use, and use that library in each; or make \
             the libraries static: then each has its own copy",
        ),
        Fault::DuplicateDeviceObjects => Diagnostic::error(
            &DUPLICATE_DEVICE_OBJECTS,
            format!("in {programs}, {libraries} is inside {holders}"),
        )
        .help(format!(
            "make {libraries} shared, or close all but one of them"
        )),
        Fault::MissingDeviceLink => Diagnostic::error(
            &MISSING_DEVICE_LINK,
            format!("in {programs}, {libraries} (in {holders}) is never device-linked"),
        )
        .help(
            "open a library's final or a plugin instead, or let the program link the library: \
             then it is in the program's device link",
        ),
        Fault::LateDeviceLink => Diagnostic::error(
            &MISSING_DEVICE_LINK,
            format!(
                "in {programs}, {libraries} (in `{}`) is opened before its device link, which is in \
                 `{}`",
                graph.name(images[0]),
                plan.link_name(images[1])
            ),
        )
        .help("the loader finds no definition of the functions that the library calls: open the image with the device link first"),
        Fault::IncompleteDeviceLink => Diagnostic::error(
            &INCOMPLETE_DEVICE_LINK,
            format!("in {programs}, {links} device-links {libraries}, which is not in the process"),
        )
        .help("no kernel of that device link is registered: link the library, or repeat the device link without it"),
        Fault::MixedCudart(first, second) => Diagnostic::error(
            &MIXED_CUDART,
            format!(
                "in {programs}, `{}` uses the {} CUDA runtime, `{}` the {} one",
                graph.name(images[0]),
                first.word(),
                graph.name(images[1]),
                second.word()
            ),
        )
        .help("choose one kind with `cudart` for all libraries of a process"),
        Fault::UnsharedDeviceGlobals => Diagnostic::warning(
            &UNSHARED_DEVICE_GLOBALS,
            format!("in {programs}, {libraries} is in {links}, each with device globals of its own"),
        ),
    };
    match images.first() {
        Some(&image) => plan.node(image).with_origin(diagnostic),
        None => diagnostic,
    }
}
