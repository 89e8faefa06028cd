//! Properties of plans of any graph: in every process each object has one device link or the graph is
//! rejected, no library of a closure is missing, the order does not depend on the nodes' numbers.

mod loader;

use std::collections::BTreeSet;

use gpustub_core::device_link::{
    Graph, Link, LinkReason, LinkRole, Node, NodeForm, NodeId, NodeKind, Open, plan,
};
use gpustub_core::diag::{Diagnostic, Level, has_errors};
use gpustub_core::fuzz;
use gpustub_core::ids::Id;
use gpustub_core::manifest::Cudart;
use loader::{Loader, Order, Process, is_split};
use proptest::collection::vec;
use proptest::prelude::*;

/// A node, as numbers: form, device code, closed, prelinked, earlier nodes that it links and opens,
/// and a key to shuffle them.
type Seed = (u8, bool, u8, u16, u16, u64);

fn can_be_opened(node: &Node) -> bool {
    use NodeForm::{Cdylib, Plugin, Shared};
    matches!(node.form, Shared | Plugin | Cdylib)
}

fn shuffled(mask: u16, count: usize, seed: u64) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..count.min(16))
        .filter(|index| mask >> index & 1 == 1)
        .collect();
    indices.sort_by_key(|index| seed.wrapping_mul(2 * *index as u64 + 1) >> 32);
    indices
}

/// A graph without cycles. `opaque`: with closed and prelinked images.
fn graph(seeds: &[Seed], opaque: bool) -> Graph {
    use NodeForm::{Bin, Cdylib, Plugin, Shared, Static};
    let mut graph = Graph::default();
    for (index, &(form, rdc, marks, links, opens, seed)) in seeds.iter().enumerate() {
        let forms = [
            Static, Static, Static, Shared, Shared, Shared, Bin, Bin, Plugin, Cdylib,
        ];
        let form = forms[usize::from(form) % if opaque { 10 } else { 9 }];
        let is_interface = form == Static && marks % 5 == 4;
        let kind = match (is_interface, rdc) {
            (true, _) => NodeKind::Interface,
            (false, true) => NodeKind::Rdc,
            (false, false) => NodeKind::Plain,
        };
        let mut node = Node::new(format!("n{index}"), kind, form);
        if opaque && form != Static {
            node.closed = marks % 7 == 6;
            node.prelinked = (form == Shared && rdc && marks % 9 == 8).then(Vec::new);
        }
        for linked_index in shuffled(links, index, seed) {
            let linked = &graph.nodes[linked_index];
            if !matches!(linked.form, Bin | Plugin) {
                node.links.push(Link {
                    to: linked.name.clone(),
                    private: seed % 3 == 0,
                });
            }
        }
        for opened_index in shuffled(opens & (opens >> 3), index, seed.rotate_left(20)) {
            let opened = &graph.nodes[opened_index];
            // Two libraries of one image have no order in which they open others.
            if matches!(form, Bin | Plugin) && can_be_opened(opened) {
                node.opens.push(Open {
                    to: opened.name.clone(),
                    r#final: is_split(opened) && seed % 2 == 0,
                });
            }
        }
        graph.nodes.push(node);
    }
    graph
}

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let seed = (
        any::<u8>(),
        any::<bool>(),
        any::<u8>(),
        any::<u16>(),
        any::<u16>(),
        any::<u64>(),
    );
    vec(seed, 1..14)
}

fn naive_closure(graph: &Graph, id: NodeId, closure: &mut BTreeSet<NodeId>) {
    for link in &graph[id].links {
        let to = graph.find(&link.to).unwrap();
        if graph[to].kind == NodeKind::Rdc {
            closure.insert(to);
        }
        naive_closure(graph, to, closure);
    }
}

/// Whether a process may start with a library, or open it, without a program of the graph.
fn is_terminal_library(node: &Node) -> bool {
    node.closed || matches!(node.form, NodeForm::Plugin | NodeForm::Cdylib)
}

fn names<'g>(graph: &'g Graph, ids: &[NodeId]) -> Vec<&'g str> {
    ids.iter().map(|&id| graph[id].name.as_str()).collect()
}

fn sorted_codes(diagnostics: &[Diagnostic]) -> Vec<&'static str> {
    let mut codes: Vec<&str> = diagnostics
        .iter()
        .map(|diagnostic| diagnostic.code.id)
        .collect();
    codes.sort_unstable();
    codes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Compares the errors with simulated processes of the planned files: an accepted graph runs in
    /// each variant, and a rejected one fails in some.
    #[test]
    fn each_object_has_one_device_link_or_the_graph_is_rejected(seeds in seeds()) {
        let graph = graph(&seeds, true);
        let (plan, diagnostics) = plan(&graph);
        let linked: BTreeSet<&str> = graph
            .nodes
            .iter()
            .flat_map(|node| &node.links)
            .map(|link| link.to.as_str())
            .collect();
        let mut used = linked.clone();
        for node in &graph.nodes {
            used.extend(node.opens.iter().map(|open| open.to.as_str()));
        }
        let mut orders = vec![Order::Declared, Order::Reversed];
        orders.extend((2..graph.nodes.len()).map(Order::First));
        let (mut runs, mut fails) = (true, false);
        let mut processes = String::new();
        for id in graph.ids() {
            let node = &graph[id];
            let is_unused = is_terminal_library(node) && !used.contains(node.name.as_str());
            if node.form != NodeForm::Bin && !is_unused {
                continue;
            }
            for &order in &orders {
                for variant in 0..4 {
                    let (exports, global) = (variant & 1 == 1, variant & 2 == 2);
                    let loader = Loader { exports, global, order };
                    let process = Process::run(&plan, &graph, id, loader);
                    if !process.is_sound() {
                        fails = true;
                        runs &= order != Order::Declared;
                        processes += &format!("{} {loader:?}: {process:?}\n", node.name);
                    }
                }
            }
        }
        // Cdylibs that only a library links are checked alone as well; that can only add errors.
        let is_checked_alone = graph.nodes.iter().any(|node| {
            is_terminal_library(node) && linked.contains(node.name.as_str())
        });
        let report = format!("{}{}{diagnostics:?}\n{processes}", graph.to_text(), plan.to_text());
        prop_assert!(runs || has_errors(&diagnostics), "{report}");
        prop_assert!(is_checked_alone || fails || !has_errors(&diagnostics), "{report}");
    }

    /// Builds plan a program for all images of a package, which may be a cdylib.
    #[test]
    fn cdylibs_are_linked_as_programs(seeds in seeds()) {
        let mut graph = graph(&seeds, false);
        graph.nodes.retain(|node| matches!(node.form, NodeForm::Static | NodeForm::Shared));
        let known: BTreeSet<String> = graph.nodes.iter().map(|node| node.name.clone()).collect();
        for node in &mut graph.nodes {
            node.links.retain(|link| known.contains(&link.to));
        }
        let mut program = Node::new("program", NodeKind::Plain, NodeForm::Bin);
        program.links = known.into_iter().map(|to| Link { to, private: false }).collect();
        graph.nodes.push(program);
        let id = NodeId::from_index(graph.nodes.len() - 1);
        let [bin, mut cdylib] = [NodeForm::Bin, NodeForm::Cdylib].map(|form| {
            graph.nodes[id.index()].form = form;
            plan(&graph).0.node_plan(id)
        });
        if let (LinkRole::OwnLink(_), LinkRole::OwnLink(LinkReason::Closed)) = (&bin.role, &cdylib.role) {
            cdylib.role = bin.role.clone();
        }
        prop_assert_eq!(bin, cdylib, "{}", graph.to_text());
    }

    #[test]
    fn no_library_is_missed_and_dependents_come_first(seeds in seeds()) {
        let graph = graph(&seeds, false);
        let (plan, _) = plan(&graph);
        for planned in plan.node_plans() {
            let id = planned.node;
            let has_link = matches!(planned.role, LinkRole::Split | LinkRole::OwnLink(_));
            let mut closure = BTreeSet::new();
            naive_closure(&graph, id, &mut closure);
            if let LinkRole::UseFinal(top) = planned.role {
                prop_assert_eq!(&plan.inputs(top).into_iter().collect::<BTreeSet<_>>(), &closure);
            }
            if !has_link {
                prop_assert_eq!(&planned.inputs, &Vec::new());
                continue;
            }
            if graph[id].kind == NodeKind::Rdc {
                closure.insert(id);
            }
            let inputs: BTreeSet<NodeId> = planned.inputs.iter().copied().collect();
            prop_assert_eq!(inputs.len(), planned.inputs.len(), "each once");
            prop_assert_eq!(&inputs, &closure);
            for (index, &input) in planned.inputs.iter().enumerate() {
                let mut below = BTreeSet::new();
                naive_closure(&graph, input, &mut below);
                prop_assert!(planned.inputs[..index].iter().all(|earlier| !below.contains(earlier)));
            }
        }
    }

    #[test]
    fn order_is_that_of_declared_links_whatever_the_numbers(seeds in seeds(), turn in any::<u64>()) {
        let graph = graph(&seeds, true);
        let mut reordered = graph.clone();
        reordered.nodes.sort_by_key(|node| {
            let number: u64 = node.name[1..].parse().unwrap();
            turn.wrapping_mul(2 * number + 1) >> 20
        });
        let (plan_a, diagnostics_a) = plan(&graph);
        let (plan_b, diagnostics_b) = plan(&reordered);
        for id_a in graph.ids() {
            let id_b = reordered.find(&graph[id_a].name).unwrap();
            let (a, b) = (plan_a.node_plan(id_a), plan_b.node_plan(id_b));
            prop_assert_eq!(names(&graph, &a.inputs), names(&reordered, &b.inputs));
            prop_assert_eq!(plan_a.summary(&a), plan_b.summary(&b));
            prop_assert_eq!(plan_a.explain(id_a), plan_b.explain(id_b));
        }
        prop_assert_eq!(sorted_codes(&diagnostics_a), sorted_codes(&diagnostics_b));
    }

    #[test]
    fn written_graphs_parse_to_the_same_graph(seeds in seeds(), more in any::<u8>()) {
        let mut graph = graph(&seeds, true);
        if let Some(node) = graph.nodes.last_mut() {
            node.cudart = [None, Some(Cudart::Static), Some(Cudart::None)][usize::from(more) % 3];
            node.visible = (more & 1 == 0).then(|| vec!["n0".to_owned(); usize::from(more >> 1 & 1)]);
            node.host = more & 4 != 0;
            node.symbols = vec!["_Z1fv".to_owned(); usize::from(more >> 3 & 3)];
            node.version_of = (more & 32 != 0).then(|| "x".to_owned());
        }
        let (mut parsed, diagnostics) = Graph::parse("x", &graph.to_text());
        for node in &mut parsed.nodes {
            node.origin = None;
        }
        prop_assert_eq!(diagnostics, []);
        prop_assert_eq!(parsed, graph);
    }

    #[test]
    fn any_text_is_read(text in "[ABab*:;,=+>#\\- \n]{0,60}|([AB]\\*?:(static|shared|bin|plugin|cdylib)(->[AB])?( (opens [AB](:final)?|closed|prelinked|host|archs=sm_[0-9a]{1,4}))?;){1,4}") {
        fuzz::device_link(&text);
    }
}

/// Number of nodes of a graph on which a recursive walk, or a walk along each path, would not terminate.
const COUNT: usize = 10_000;

fn link(index: usize) -> Link {
    Link {
        to: format!("n{index}"),
        private: false,
    }
}

fn chain(index: usize) -> Vec<Link> {
    index.checked_sub(1).map(link).into_iter().collect()
}

/// Each layer of two is linked with both nodes of the layer below: 2^5000 paths.
fn ladder(index: usize) -> Vec<Link> {
    match index / 2 {
        0 => Vec::new(),
        layer => vec![link(2 * layer - 2), link(2 * layer - 1)],
    }
}

#[test]
fn large_graphs_are_planned() {
    /// Links of the node of this number.
    type Links = fn(usize) -> Vec<Link>;
    let links_of_all: Vec<Link> = (0..COUNT - 1).map(link).collect();
    let shapes: [(Links, Vec<Link>); 3] = [
        (chain, vec![link(COUNT - 2)]),
        (ladder, links_of_all.clone()),
        (|_| Vec::new(), links_of_all),
    ];
    for (links, program_links) in shapes {
        for form in [NodeForm::Static, NodeForm::Shared] {
            let mut graph = Graph::default();
            for index in 0..COUNT - 1 {
                let mut node = Node::new(format!("n{index}"), NodeKind::Rdc, form);
                node.links = links(index);
                graph.nodes.push(node);
            }
            let mut program = Node::new("exe", NodeKind::Plain, NodeForm::Bin);
            program.links.clone_from(&program_links);
            graph.nodes.push(program);
            let (plan, diagnostics) = plan(&graph);
            assert_eq!(diagnostics, []);
            let planned = plan.node_plan(NodeId::from_index(COUNT - 1));
            match planned.role {
                LinkRole::UseFinal(top) => assert_eq!(plan.inputs(top).len(), COUNT - 1),
                _ => assert_eq!(planned.inputs.len(), COUNT - 1),
            }
        }
    }
}

/// Many programs over one chain, each with a device link over all of it; many plugins, all with one
/// more.
#[test]
fn many_images_over_one_chain_are_planned() {
    for (form, kind) in [
        (NodeForm::Bin, NodeKind::Plain),
        (NodeForm::Plugin, NodeKind::Rdc),
    ] {
        let mut graph = Graph::default();
        for index in 0..COUNT / 10 {
            let mut node = Node::new(format!("n{index}"), NodeKind::Rdc, NodeForm::Static);
            node.links = chain(index);
            graph.nodes.push(node);
        }
        for index in 0..COUNT / 10 {
            let mut node = Node::new(format!("p{index}"), kind, form);
            node.links = vec![link(COUNT / 10 - 1)];
            graph.nodes.push(node);
        }
        let mut host = Node::new("host", NodeKind::Plain, NodeForm::Bin);
        if form == NodeForm::Plugin {
            for index in 0..COUNT / 10 {
                host.opens.push(Open {
                    to: format!("p{index}"),
                    r#final: false,
                });
            }
        }
        graph.nodes.push(host);
        let (_, diagnostics) = plan(&graph);
        // One error concerns all of them, and is reported once.
        assert_eq!(diagnostics.len(), usize::from(form == NodeForm::Plugin));
    }
}

#[test]
fn a_cycle_through_all_nodes_is_one_error() {
    let mut graph = Graph::default();
    for index in 0..COUNT {
        let mut node = Node::new(format!("n{index}"), NodeKind::Rdc, NodeForm::Static);
        node.links = vec![link((index + 1) % COUNT)];
        graph.nodes.push(node);
    }
    let (plan, diagnostics) = plan(&graph);
    assert_eq!((plan.nodes().len(), diagnostics.len()), (0, 1));
    assert_eq!(diagnostics[0].level, Level::Error);
    assert!(
        diagnostics[0].message.len() < 200,
        "{}",
        diagnostics[0].message
    );
}

/// The device link of the image that is opened first registers the only copy of the library, and nothing
/// calls the other.
#[test]
fn images_over_one_shared_library_may_each_have_its_device_link() {
    for (first, second) in [
        ("plugin", "cdylib"),
        ("plugin", "plugin"),
        ("cdylib", "cdylib"),
    ] {
        let text = format!(
            "base*:static\nmiddle:shared -> -base\nfirst:{first} -> -middle\n\
             second:{second} -> -middle\nhost:bin opens first,second\n"
        );
        let (graph, diagnostics) = Graph::parse("graph", &text);
        assert_eq!(diagnostics, []);
        let (plan, diagnostics) = plan(&graph);
        assert_eq!(diagnostics, [], "{text}");
        let host = graph.find("host").unwrap();
        for order in [Order::Declared, Order::Reversed] {
            for (exports, global) in [(false, false), (false, true), (true, false), (true, true)] {
                let loader = Loader {
                    exports,
                    global,
                    order,
                };
                let process = Process::run(&plan, &graph, host, loader);
                assert!(process.is_sound(), "{text}{process:?}");
            }
        }
    }
}
