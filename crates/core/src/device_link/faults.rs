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
    pub fault: Fault,
    pub images: Vec<NodeId>,
}

impl ImageFault {
    pub fn new(fault: Fault, images: Vec<NodeId>) -> Self {
        Self { fault, images }
    }
}

/// A fault of some images, and the libraries that it concerns.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub at: ImageFault,
    pub members: Vec<NodeId>,
}

/// Diagnostic for a finding in the processes of these programs.
pub(super) fn diagnostic(plan: &LinkPlan<'_>, finding: Finding, roots: &[NodeId]) -> Diagnostic {
    let Finding { at, members } = finding;
    let ImageFault { fault, images } = at;
    let graph = &plan.walk.graph;
    let quoted = |names: Vec<&str>| {
        let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        listing(&quoted)
    };
    let (m, holders) = (quoted(graph.names(&members)), quoted(graph.names(&images)));
    let (root, links) = (quoted(graph.names(roots)), {
        let names: Vec<String> = images.iter().map(|&at| plan.link_name(at)).collect();
        quoted(names.iter().map(String::as_str).collect())
    });
    let diagnostic = match fault {
        Fault::DuplicateDeviceLink => Diagnostic::error(
            &DUPLICATE_DEVICE_LINK,
            format!("in {root}, {links} each device-link {m}; a process registers a library once"),
        )
        .help(format!(
            "close all but one of them, or link the middles and device-link all of it in {root}"
        )),
        Fault::SeparateDeviceLinks => Diagnostic::warning(
            &DUPLICATE_DEVICE_LINK,
            format!(
                "{root} cannot be opened by one process: {links} each device-link {m}, and a process \
                 registers a library once"
            ),
        )
        .help(
            "let one shared library require all that they use, and use that library in each; or make \
             the libraries static: then each has its own copy",
        ),
        Fault::DuplicateDeviceObjects => Diagnostic::error(
            &DUPLICATE_DEVICE_OBJECTS,
            format!("in {root}, {m} is inside {holders}"),
        )
        .help(format!("make {m} shared, or close all but one of them")),
        Fault::MissingDeviceLink => Diagnostic::error(
            &MISSING_DEVICE_LINK,
            format!("in {root}, {m} (in {holders}) is never device-linked"),
        )
        .help(
            "open a library's final or a plugin instead, or let the program link the library: \
             then it is in the program's device link",
        ),
        Fault::LateDeviceLink => Diagnostic::error(
            &MISSING_DEVICE_LINK,
            format!(
                "in {root}, {m} (in `{}`) is opened before its device link, which is in `{}`",
                graph.name(images[0]),
                plan.link_name(images[1])
            ),
        )
        .help("the loader finds no definition of the functions that the library calls: open the image with the device link first"),
        Fault::IncompleteDeviceLink => Diagnostic::error(
            &INCOMPLETE_DEVICE_LINK,
            format!("in {root}, {links} device-links {m}, which is not in the process"),
        )
        .help("no kernel of that device link is registered: link the library, or repeat the device link without it"),
        Fault::MixedCudart(one, other) => Diagnostic::error(
            &MIXED_CUDART,
            format!(
                "in {root}, `{}` uses the {} CUDA runtime, `{}` the {} one",
                graph.name(images[0]),
                one.word(),
                graph.name(images[1]),
                other.word()
            ),
        )
        .help("choose one kind with `cudart` for all libraries of a process"),
        Fault::UnsharedDeviceGlobals => Diagnostic::warning(
            &UNSHARED_DEVICE_GLOBALS,
            format!("in {root}, {m} is in {links}, each with device globals of its own"),
        ),
    };
    match images.first() {
        Some(&image) => plan.node(image).with_origin(diagnostic),
        None => diagnostic,
    }
}
