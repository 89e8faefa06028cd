//! Errors of single nodes and single device links.

use std::collections::BTreeMap;

use super::graph::{Node, NodeForm, NodeId, NodeKind};
use super::plan::{LinkPlan, LinkRole, arch_names};
use crate::diag::{
    DEVICE_CODE_IN_BUILD_SCRIPT, DEVICE_LINKED_ARCHIVE, DUPLICATE_DEVICE_SYMBOL, Diagnostic,
    INDIRECT_DEVICE_LIBRARY, MISSING_ARCH, MISSING_PTX, OBJECT_LIBRARY, listing,
};
use crate::gpu_arch::{Arch, Vendor};

/// Checks all nodes and device links of a plan.
pub(super) fn check_nodes(plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    for node in plan.nodes() {
        diagnostics.extend(check_form(node));
    }
    let mut faults = LinkFaults::default();
    for id in maximal_links(plan) {
        let inputs = match plan.role(id) {
            LinkRole::UseFinal(top) => plan.inputs(top),
            _ => plan.inputs(id),
        };
        diagnostics.extend(check_host(plan, id, &inputs));
        if plan.node(id).prelinked.is_some() {
            continue;
        }
        faults.check_visibility(plan, id, &inputs);
        faults.check_archs(plan, id, &inputs);
        faults.check_ptx(plan, id, &inputs);
        faults.check_duplicates(plan, &inputs);
    }
    diagnostics.extend(faults.into_diagnostics(plan));
    diagnostics
}

/// Device links that hold all others: those of programs, and of libraries that no node links.
fn maximal_links(plan: &LinkPlan<'_>) -> Vec<NodeId> {
    let graph = &plan.walk.graph;
    let mut is_linked = graph.table(false);
    for &dependency in graph.links.iter().flatten() {
        is_linked[dependency] = true;
    }
    graph
        .ids()
        .filter(|&id| {
            let node = plan.node(id);
            node.is_terminal() || (node.is_split() && !is_linked[id])
        })
        .collect()
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

fn check_host(plan: &LinkPlan<'_>, id: NodeId, inputs: &[NodeId]) -> Option<Diagnostic> {
    let node = plan.node(id);
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
    missing_archs: BTreeMap<MissingArchs, Vec<NodeId>>,
    /// Device links of which these libraries have no PTX, and others have.
    missing_ptx: BTreeMap<Vec<NodeId>, Vec<NodeId>>,
    /// Device links without any machine code.
    no_machine_code: Vec<NodeId>,
    /// Programs that request other architectures than those of the final that they use.
    fixed_finals: BTreeMap<FixedFinal, Vec<NodeId>>,
    duplicates: BTreeMap<LibraryPair, SharedDefinition>,
}

/// A library and the architectures that it has no code for.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct MissingArchs {
    library: NodeId,
    missing: Vec<Arch>,
}

/// A library's final, and the architectures that programs request.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct FixedFinal {
    top: NodeId,
    requested: Vec<Arch>,
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
    fn check_visibility(&mut self, plan: &LinkPlan<'_>, id: NodeId, inputs: &[NodeId]) {
        let Some(visible) = &plan.walk.graph.visible[id] else {
            return;
        };
        let invisible: Vec<NodeId> = inputs
            .iter()
            .copied()
            .filter(|input| *input != id && !visible.contains(input))
            .collect();
        if !invisible.is_empty() {
            self.invisible.entry(invisible).or_default().push(id);
        }
    }

    fn check_archs(&mut self, plan: &LinkPlan<'_>, id: NodeId, inputs: &[NodeId]) {
        let requested = match plan.role(id) {
            LinkRole::UseFinal(top) => {
                let archs = plan.requested_archs(top, inputs);
                self.check_final(plan, id, top, &archs);
                archs
            }
            _ => plan.requested_archs(id, inputs),
        };
        if requested.is_empty()
            && inputs
                .iter()
                .any(|&input| !plan.node(input).archs.is_empty())
        {
            self.no_machine_code.push(id);
        }
        for &library in inputs {
            let archs = &plan.node(library).archs;
            // Empty: unknown.
            if archs.is_empty() {
                continue;
            }
            // The device link of a vendor is over the libraries that have code for it.
            let missing: Vec<Arch> = requested
                .iter()
                .copied()
                .filter(|requested| requested.vendor().is_in(archs.iter().copied()))
                .filter(|&requested| !archs.iter().any(|arch| arch.serves(requested)))
                .collect();
            if !missing.is_empty() {
                let missing = MissingArchs { library, missing };
                self.missing_archs.entry(missing).or_default().push(id);
            }
        }
    }

    /// The driver repeats a device link for a later GPU only with PTX of all objects.
    fn check_ptx(&mut self, plan: &LinkPlan<'_>, id: NodeId, inputs: &[NodeId]) {
        let (with_ptx, without): (Vec<_>, Vec<_>) = plan
            .cuda_archs(inputs)
            .partition(|(_, archs)| archs.iter().any(|arch| arch.is_portable()));
        if !with_ptx.is_empty() && !without.is_empty() {
            let without = without.into_iter().map(|(library, _)| library).collect();
            self.missing_ptx.entry(without).or_default().push(id);
        }
    }

    /// Compares the architectures that a program requests with those of the final that it uses.
    fn check_final(&mut self, plan: &LinkPlan<'_>, id: NodeId, top: NodeId, archs: &[Arch]) {
        let mut requested: Vec<Arch> = plan.node(id).archs.clone();
        requested.retain(|arch| arch.vendor().is_in(archs.iter().copied()));
        requested.sort_unstable();
        if !requested.is_empty() && requested != archs {
            let fixed = FixedFinal { top, requested };
            self.fixed_finals.entry(fixed).or_default().push(id);
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
        let mut diagnostics = Vec::new();
        for (libraries, ids) in self.invisible {
            let message = format!(
                "the device link of {} does not receive {}",
                listing(&plan.walk.graph.names(&ids)),
                listing(&plan.walk.graph.names(&libraries))
            );
            let help = "run `cargo gpustub sync`, which writes a crate that depends on each, or add \
                        direct dependencies on the packages that declare them";
            let error = Diagnostic::error(&INDIRECT_DEVICE_LIBRARY, message).help(help);
            diagnostics.extend(ids.first().map(|&id| plan.node(id).with_origin(error)));
        }
        for (pair, shared) in self.duplicates {
            diagnostics.push(duplicate_definition(plan, &pair, &shared));
        }
        for (MissingArchs { library, missing }, ids) in self.missing_archs {
            let node = plan.node(library);
            let names = arch_names(&missing);
            let linker = if Vendor::Nvidia.is_in(missing.iter().copied()) {
                "nvlink only warns"
            } else {
                "clang reports nothing"
            };
            let message = format!(
                "`{}` has {}; the device link of {} needs {names} ({linker})",
                node.name,
                arch_names(&node.archs),
                listing(&plan.link_names(&ids)),
            );
            let is_requested = ids.iter().any(|&id| {
                let program = plan.node(id);
                program.kind != NodeKind::Rdc
                    && missing.iter().all(|arch| program.archs.contains(arch))
            });
            let alternative = if is_requested {
                "remove it from `link-archs` of the program"
            } else {
                "do not request it"
            };
            let help = format!(
                "compile `{}` for {names} as well, or {alternative}",
                node.name
            );
            let error = Diagnostic::error(&MISSING_ARCH, message).help(help);
            diagnostics.push(node.with_origin(error));
        }
        for (libraries, ids) in self.missing_ptx {
            let names = listing(&plan.walk.graph.names(&libraries));
            let message = format!(
                "the device link of {} has no PTX of {names}: the driver cannot repeat it for later GPUs",
                listing(&plan.link_names(&ids))
            );
            let help = format!(
                "add a `compute_` to `archs` of {names}, or remove it from those of the others"
            );
            let warning = Diagnostic::warning(&MISSING_PTX, message).help(help);
            diagnostics.extend(
                libraries
                    .first()
                    .map(|&id| plan.node(id).with_origin(warning)),
            );
        }
        for (FixedFinal { top, requested }, ids) in self.fixed_finals {
            let archs = plan.requested_archs(top, &plan.inputs(top));
            let message = format!(
                "{} requests a device link for {}, and uses that of `{}`, which is for {}",
                listing(&plan.link_names(&ids)),
                arch_names(&requested),
                plan.node(top).name,
                arch_names(&archs)
            );
            let is_served = |arch: &Arch| archs.iter().any(|linked| linked.serves(*arch));
            let (diagnostic, help) = if requested.iter().all(is_served) {
                (
                    Diagnostic::note(&MISSING_ARCH, message),
                    "nothing is missing: a shared library has one device link, for all of its `archs`",
                )
            } else {
                (
                    Diagnostic::error(&MISSING_ARCH, message),
                    "programs cannot change the device link of a shared library: add to the `archs` of the libraries, \
                     or make them static",
                )
            };
            let node = ids.first().map(|&id| plan.node(id));
            diagnostics.extend(node.map(|node| node.with_origin(diagnostic.help(help))));
        }
        for id in self.no_machine_code {
            let message = format!(
                "the device link of {} makes no machine code",
                plan.link_name(id)
            );
            let help = "add an `sm_` to `archs`: with only PTX nothing is linked, and nvcc reports \
                        nothing";
            let error = Diagnostic::error(&MISSING_ARCH, message).help(help);
            diagnostics.push(plan.node(id).with_origin(error));
        }
        diagnostics
    }
}

fn duplicate_definition(
    plan: &LinkPlan<'_>,
    pair: &LibraryPair,
    shared: &SharedDefinition,
) -> Diagnostic {
    let (first, second) = (plan.node(pair.first), plan.node(pair.second));
    let (a, b) = (&first.name, &second.name);
    let (message, help) = match shared {
        SharedDefinition::Symbol(symbol) => (
            format!("`{a}` and `{b}` both define `{symbol}`"),
            "rename one: in a device link, names of device functions and variables are unique",
        ),
        SharedDefinition::Library(library) => (
            format!(
                "`{a}` and `{b}` are both `device-link.{library}`, which a process can have once"
            ),
            "let all require one version of it, or close the image that holds one; libraries of \
             different packages need different names",
        ),
    };
    second.with_origin(Diagnostic::error(&DUPLICATE_DEVICE_SYMBOL, message).help(help))
}
