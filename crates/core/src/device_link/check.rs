//! Errors of single nodes and single device links.

use std::collections::BTreeMap;

use super::graph::{Node, NodeForm, NodeId};
use super::plan::{LinkPlan, Role};
use crate::diag::{
    DEVICE_CODE_IN_BUILD_SCRIPT, DEVICE_LINKED_ARCHIVE, DUPLICATE_DEVICE_SYMBOL, Diagnostic,
    INDIRECT_DEVICE_LIBRARY, MISSING_ARCH, OBJECT_LIBRARY, listing,
};
use crate::gpu_arch::Arch;

/// Checks all nodes and device links of a plan.
pub(super) fn check_nodes(plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for node in plan.nodes() {
        found.extend(check_form(node));
    }
    let mut links = LinkFaults::default();
    for at in maximal_links(plan) {
        let node = plan.node(at);
        let inputs = match plan.role(at) {
            Role::UseFinal(top) => plan.inputs(top),
            _ => plan.inputs(at),
        };
        found.extend(check_host(plan, at, &inputs));
        if node.prelinked.is_some() {
            continue;
        }
        links.check_visibility(plan, at, &inputs);
        links.check_archs(plan, at, &inputs);
        links.check_duplicates(plan, &inputs);
    }
    found.extend(links.into_diagnostics(plan));
    found
}

/// Device links that hold all others: those of programs, and of libraries that no node links.
fn maximal_links(plan: &LinkPlan<'_>) -> Vec<NodeId> {
    let graph = &plan.walk.graph;
    let mut linked = graph.table(false);
    for at in graph.links.iter().flatten() {
        linked[*at] = true;
    }
    let wanted = |&at: &NodeId| {
        let node = plan.node(at);
        node.is_terminal() || (node.is_split() && !linked[at])
    };
    graph.ids().filter(wanted).collect()
}

fn check_form(node: &Node) -> Option<Diagnostic> {
    if !node.is_rdc() || node.is_image() {
        return None;
    }
    let name = &node.name;
    let (code, message, help) = if node.form == NodeForm::Object {
        (
            &OBJECT_LIBRARY,
            format!("`{name}` has relocatable code in objects that are in no library"),
            "declare it static or shared",
        )
    } else if node.prelinked.is_some() {
        (
            &DEVICE_LINKED_ARCHIVE,
            format!("the archive of `{name}` already holds a device link; nvlink skips all of it"),
            "archive its objects alone: `nvcc -dc`, no `-dlink`; in CMake, \
             CUDA_RESOLVE_DEVICE_SYMBOLS OFF; not `cc::Build::compile`",
        )
    } else {
        return None;
    };
    Some(node.with_origin(Diagnostic::error(code, message).help(help)))
}

fn check_host(plan: &LinkPlan<'_>, at: NodeId, inputs: &[NodeId]) -> Option<Diagnostic> {
    let node = plan.node(at);
    if !node.host || inputs.is_empty() {
        return None;
    }
    let reached = listing(&plan.walk.graph.names(inputs));
    let message = format!(
        "`{}` is a build script or procedural macro and reaches relocatable code: {reached}",
        node.name
    );
    let help = "cargo passes no link arguments to them, so no device link can be added: depend on \
                it in [dependencies], or run it as a program of its own";
    Some(node.with_origin(Diagnostic::error(&DEVICE_CODE_IN_BUILD_SCRIPT, message).help(help)))
}

/// Faults of device links, each reported once for all links that have it.
#[derive(Default)]
struct LinkFaults {
    /// Nodes whose builds do not receive the metadata of these libraries.
    invisible: BTreeMap<Vec<NodeId>, Vec<NodeId>>,
    /// Device links that need code that a library lacks.
    archs: BTreeMap<MissingArchs, Vec<NodeId>>,
    /// Device links without any machine code.
    no_machine_code: Vec<NodeId>,
    duplicates: BTreeMap<LibraryPair, SharedDefinition>,
}

/// A library and the architectures that it has no code for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MissingArchs {
    library: NodeId,
    missing: Vec<Arch>,
}

/// Two libraries of one device link.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct LibraryPair {
    first: NodeId,
    second: NodeId,
}

/// A definition that two libraries share.
enum SharedDefinition {
    Symbol(String),
    Library(String),
}

impl LinkFaults {
    fn check_visibility(&mut self, plan: &LinkPlan<'_>, at: NodeId, inputs: &[NodeId]) {
        let Some(visible) = &plan.walk.graph.visible[at] else {
            return;
        };
        let invisible = |&&input: &&NodeId| input != at && !visible.contains(&input);
        let missing: Vec<NodeId> = inputs.iter().filter(invisible).copied().collect();
        if !missing.is_empty() {
            self.invisible.entry(missing).or_default().push(at);
        }
    }

    fn check_archs(&mut self, plan: &LinkPlan<'_>, at: NodeId, inputs: &[NodeId]) {
        let asked = plan.asked(at, inputs);
        let known = |&&input: &&NodeId| !plan.node(input).archs.is_empty();
        if asked.is_empty() && inputs.iter().any(|input| known(&input)) {
            self.no_machine_code.push(at);
        }
        for &input in inputs.iter().filter(known) {
            let holds = &plan.node(input).archs;
            let served = |wanted: &Arch| holds.iter().any(|arch| arch.serves(*wanted));
            let missing: Vec<Arch> = asked.iter().copied().filter(|a| !served(a)).collect();
            if !missing.is_empty() {
                let library = input;
                let missing = MissingArchs { library, missing };
                self.archs.entry(missing).or_default().push(at);
            }
        }
    }

    fn check_duplicates(&mut self, plan: &LinkPlan<'_>, inputs: &[NodeId]) {
        let (mut symbols, mut libraries) = (BTreeMap::new(), BTreeMap::new());
        for &input in inputs {
            let node = plan.node(input);
            for symbol in &node.symbols {
                let first = *symbols.entry(symbol).or_insert(input);
                self.add_duplicate(first, input, || SharedDefinition::Symbol(symbol.clone()));
            }
            if let Some(library) = &node.version_of {
                let first = *libraries.entry(library).or_insert(input);
                self.add_duplicate(first, input, || SharedDefinition::Library(library.clone()));
            }
        }
    }

    fn add_duplicate(
        &mut self,
        first: NodeId,
        second: NodeId,
        shared: impl Fn() -> SharedDefinition,
    ) {
        if first != second {
            let pair = LibraryPair { first, second };
            self.duplicates.entry(pair).or_insert_with(shared);
        }
    }

    fn into_diagnostics(self, plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (missing, at) in self.invisible {
            let message = format!(
                "the device link of {} does not receive {}",
                listing(&plan.walk.graph.names(&at)),
                listing(&plan.walk.graph.names(&missing))
            );
            let help = "run `cargo gpustub sync`, which writes a crate that depends on each, or add \
                        direct dependencies on the packages that declare them";
            let error = Diagnostic::error(&INDIRECT_DEVICE_LIBRARY, message).help(help);
            found.extend(at.first().map(|&first| plan.node(first).with_origin(error)));
        }
        for (LibraryPair { first, second }, shared) in self.duplicates {
            let (a, b) = (&plan.node(first).name, &plan.node(second).name);
            let (message, help) = match shared {
                SharedDefinition::Symbol(symbol) => (
                    format!("`{a}` and `{b}` both define `{symbol}`"),
                    "rename one: in a device link, names of device functions and variables are \
                     unique",
                ),
                SharedDefinition::Library(library) => (
                    format!(
                        "`{a}` and `{b}` are both `device-link.{library}`, which a process can have \
                         once"
                    ),
                    "let all require one version of it, or close the image that holds one; \
                     libraries of different packages need different names",
                ),
            };
            let error = Diagnostic::error(&DUPLICATE_DEVICE_SYMBOL, message).help(help);
            found.push(plan.node(second).with_origin(error));
        }
        let links = |at: &[NodeId]| {
            let names: Vec<String> = at.iter().map(|&at| plan.link_name(at)).collect();
            listing(&names)
        };
        for (MissingArchs { library, missing }, at) in self.archs {
            let node = plan.node(library);
            let message = format!(
                "`{}` has {}; the device link of {} needs {} (nvlink only warns)",
                node.name,
                words(&node.archs),
                links(&at),
                words(&missing)
            );
            let help = format!(
                "compile `{}` for {} as well, or do not request it",
                node.name,
                words(&missing)
            );
            found.push(node.with_origin(Diagnostic::error(&MISSING_ARCH, message).help(help)));
        }
        for at in self.no_machine_code {
            let message = format!("the device link of {} makes no machine code", links(&[at]));
            let help = "add an `sm_` to `archs`: with only PTX nothing is linked, and nvcc reports \
                        nothing";
            found.push(
                plan.node(at)
                    .with_origin(Diagnostic::error(&MISSING_ARCH, message).help(help)),
            );
        }
        found
    }
}

fn words(archs: &[Arch]) -> String {
    let words: Vec<String> = archs.iter().map(ToString::to_string).collect();
    words.join(", ")
}
