//! What is refused of one node or of one device link.

use std::collections::BTreeMap;

use super::graph::{Node, NodeForm};
use super::plan::{LinkPlan, Role};
use crate::arch::Arch;
use crate::diag::{
    DEVICE_CODE_IN_BUILD_SCRIPT, DEVICE_LINKED_ARCHIVE, DUPLICATE_DEVICE_SYMBOL, Diagnostic,
    INDIRECT_DEVICE_LIBRARY, MISSING_ARCH, OBJECT_LIBRARY, listing,
};

/// All nodes and device links of a plan.
pub(super) fn nodes(plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for node in plan.nodes() {
        found.extend(forms(node));
    }
    let mut links = Links::default();
    for at in largest(plan) {
        let node = &plan.nodes()[at];
        let inputs = match plan.role(at) {
            Role::UseFinal(top) => plan.inputs(top),
            _ => plan.inputs(at),
        };
        found.extend(host(plan, at, &inputs));
        if node.prelinked.is_some() {
            continue;
        }
        links.unseen(plan, at, &inputs);
        links.archs(plan, at, &inputs);
        links.duplicates(plan, &inputs);
    }
    found.extend(links.tell(plan));
    found
}

/// The device links that hold all others: those of programs, and of libraries that nothing links.
fn largest(plan: &LinkPlan<'_>) -> Vec<usize> {
    let mut linked = vec![false; plan.nodes().len()];
    for at in plan.walk.net.links.iter().flatten() {
        linked[*at] = true;
    }
    let wanted = |&at: &usize| {
        let node = &plan.nodes()[at];
        node.is_terminal() || (node.is_split() && !linked[at])
    };
    (0..plan.nodes().len()).filter(wanted).collect()
}

fn forms(node: &Node) -> Option<Diagnostic> {
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
    Some(node.placed(Diagnostic::error(code, message).help(help)))
}

fn host(plan: &LinkPlan<'_>, at: usize, inputs: &[usize]) -> Option<Diagnostic> {
    let node = &plan.nodes()[at];
    if !node.host || inputs.is_empty() {
        return None;
    }
    let reached = listing(&plan.walk.net.names(inputs));
    let message = format!(
        "`{}` is a build script or procedural macro and reaches relocatable code: {reached}",
        node.name
    );
    let help = "cargo passes no link arguments to them, so no device link can be added: depend on \
                it in [dependencies], or run it as a program of its own";
    Some(node.placed(Diagnostic::error(&DEVICE_CODE_IN_BUILD_SCRIPT, message).help(help)))
}

/// What is wrong in device links, each thing told once for all links that have it.
#[derive(Default)]
struct Links {
    /// By libraries: the nodes whose builds are not told of them.
    unseen: BTreeMap<Vec<usize>, Vec<usize>>,
    /// By library and what it lacks: the device links.
    archs: BTreeMap<(usize, Vec<Arch>), Vec<usize>>,
    /// Device links without any machine code.
    no_machine_code: Vec<usize>,
    /// Two libraries of a device link, and what both define.
    duplicates: BTreeMap<(usize, usize), Same>,
}

enum Same {
    Symbol(String),
    Library(String),
}

impl Links {
    fn unseen(&mut self, plan: &LinkPlan<'_>, at: usize, inputs: &[usize]) {
        let Some(sees) = &plan.walk.net.sees[at] else {
            return;
        };
        let unseen = |&&input: &&usize| input != at && !sees.contains(&input);
        let missing: Vec<usize> = inputs.iter().filter(unseen).copied().collect();
        if !missing.is_empty() {
            self.unseen.entry(missing).or_default().push(at);
        }
    }

    fn archs(&mut self, plan: &LinkPlan<'_>, at: usize, inputs: &[usize]) {
        let asked = plan.asked(at, inputs);
        let known = |&&input: &&usize| !plan.nodes()[input].archs.is_empty();
        if asked.is_empty() && inputs.iter().any(|input| known(&input)) {
            self.no_machine_code.push(at);
        }
        for &input in inputs.iter().filter(known) {
            let holds = &plan.nodes()[input].archs;
            let served = |wanted: &Arch| holds.iter().any(|arch| arch.serves(*wanted));
            let missing: Vec<Arch> = asked.iter().copied().filter(|a| !served(a)).collect();
            if !missing.is_empty() {
                self.archs.entry((input, missing)).or_default().push(at);
            }
        }
    }

    fn duplicates(&mut self, plan: &LinkPlan<'_>, inputs: &[usize]) {
        let (mut symbols, mut libraries) = (BTreeMap::new(), BTreeMap::new());
        for &input in inputs {
            let node = &plan.nodes()[input];
            for symbol in &node.symbols {
                let first = *symbols.entry(symbol).or_insert(input);
                if first != input {
                    let same = || Same::Symbol(symbol.clone());
                    self.duplicates.entry((first, input)).or_insert_with(same);
                }
            }
            if let Some(library) = &node.version_of {
                let first = *libraries.entry(library).or_insert(input);
                if first != input {
                    let same = || Same::Library(library.clone());
                    self.duplicates.entry((first, input)).or_insert_with(same);
                }
            }
        }
    }

    fn tell(self, plan: &LinkPlan<'_>) -> Vec<Diagnostic> {
        let nodes = plan.nodes();
        let mut found = Vec::new();
        for (missing, at) in self.unseen {
            let message = format!(
                "the device link of {} does not receive {}",
                listing(&plan.walk.net.names(&at)),
                listing(&plan.walk.net.names(&missing))
            );
            let help = "run `cargo gpustub sync`, which writes a crate that depends on each, or add \
                        direct dependencies on the packages that declare them";
            let error = Diagnostic::error(&INDIRECT_DEVICE_LIBRARY, message).help(help);
            found.extend(at.first().map(|&first| nodes[first].placed(error)));
        }
        for ((first, second), same) in self.duplicates {
            let (a, b) = (&nodes[first].name, &nodes[second].name);
            let (message, help) = match same {
                Same::Symbol(symbol) => (
                    format!("`{a}` and `{b}` both define `{symbol}`"),
                    "rename one: in a device link, names of device functions and variables are \
                     unique",
                ),
                Same::Library(library) => (
                    format!(
                        "`{a}` and `{b}` are both `device-link.{library}`, which a process can have \
                         once"
                    ),
                    "let all require one version of it, or close the image that holds one; \
                     libraries of different packages want names of their own",
                ),
            };
            let error = Diagnostic::error(&DUPLICATE_DEVICE_SYMBOL, message).help(help);
            found.push(nodes[second].placed(error));
        }
        let links = |at: &[usize]| {
            let names: Vec<String> = at.iter().map(|&at| plan.link_name(at)).collect();
            listing(&names)
        };
        for ((library, missing), at) in self.archs {
            let node = &nodes[library];
            let message = format!(
                "`{}` has {}; the device link of {} wants {} (nvlink only warns)",
                node.name,
                words(&node.archs),
                links(&at),
                words(&missing)
            );
            let help = format!(
                "compile `{}` for {} too, or let nothing ask for it",
                node.name,
                words(&missing)
            );
            found.push(node.placed(Diagnostic::error(&MISSING_ARCH, message).help(help)));
        }
        for at in self.no_machine_code {
            let message = format!("the device link of {} makes no machine code", links(&[at]));
            let help = "add an `sm_` to `archs`: with only PTX nothing is linked, and nvcc reports \
                        nothing";
            found.push(nodes[at].placed(Diagnostic::error(&MISSING_ARCH, message).help(help)));
        }
        found
    }
}

fn words(archs: &[Arch]) -> String {
    let words: Vec<String> = archs.iter().map(ToString::to_string).collect();
    words.join(", ")
}
