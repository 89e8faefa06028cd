//! Every small graph, built as its plan says with the real nvcc, or clang for HIP, and run with a recording runtime:
//! what is registered is what is planned, and a rejected graph does not work.

mod compiler;
mod graphs;
mod link;
mod packages;
mod verdict;

use std::fs;

use gpustub_core::device_link::{Graph, NodeId, NodePlan, plan};
use gpustub_core::diag::has_errors;
use gpustub_core::gpu_arch::Vendor;
use gpustub_core::ids::Id;
use gpustub_tests::Result;
use gpustub_tests::scratch::scratch;

use compiler::Compiler;
use graphs::Statements;
use link::Images;
use packages::Workspace;
use verdict::Registered;

/// Builds and runs the graphs whose number, counted from 0, is a multiple of `step`.
fn graphs_register_as_planned(step: usize, vendor: Vendor) -> Result<()> {
    let dir = scratch()?;
    let compiler = Compiler::new(dir.path(), &["a", "b", "c", "exe", "p"], vendor)?;
    let (mut number, mut wrong) = (0, Vec::new());
    let [mut accepted, mut rejected] = [0, 0];
    for libraries in graphs::small() {
        let directory = dir.path().join("graph");
        fs::create_dir(&directory)?;
        for programs in graphs::programs(libraries.len()) {
            number += 1;
            if (number - 1) % step != 0 {
                continue;
            }
            let text = [&programs[..], &libraries].concat().join("; ");
            let is_accepted = check(&compiler, &directory, &text, programs.len())
                .map_err(|why| format!("{text}: {}", why.0))?;
            match is_accepted {
                Ok(true) => accepted += 1,
                Ok(false) => rejected += 1,
                Err(why) => wrong.push(format!("{text}\n{why}")),
            }
        }
        fs::remove_dir_all(&directory)?;
    }
    println!(
        "{accepted} accepted, {rejected} rejected, {} wrong",
        wrong.len()
    );
    if wrong.is_empty() && accepted > 0 && rejected > 0 {
        return Ok(());
    }
    Err(wrong.join("\n\n").into())
}

/// Compares a graph's plan with its run. `Ok` says whether the graph was accepted, `Err` what differs.
fn check(
    compiler: &Compiler,
    directory: &std::path::Path,
    text: &str,
    programs: usize,
) -> Result<Result<bool, String>> {
    let (graph, errors) = Graph::parse("graph", text);
    let (plan, found) = plan(&graph);
    if has_errors(&errors) || plan.nodes().is_empty() {
        return Err(format!("{errors:?} {found:?}").into());
    }
    let planned: Vec<NodePlan> = plan.node_plans().collect();
    let images = Images {
        compiler,
        directory,
        plan: &plan,
    };
    // The images of programs are those of the last graph, with other links.
    for program in (0..programs).map(NodeId::from_index) {
        images.remove(program);
    }
    let process = NodeId::from_index(0);
    // Libraries are declared dependencies first, programs from the last.
    let order = planned[programs..]
        .iter()
        .chain(planned[..programs].iter().rev());
    let opens_libraries = !plan.node(process).opens.is_empty();
    let mut linked = Ok(());
    for node_plan in order {
        if node_plan.node != process || !opens_libraries {
            linked = linked.and_then(|()| images.link(node_plan));
        }
    }
    let expected = Registered::planned(&plan, &planned, process);
    // A graph is rejected if it fails in one of two ways to open libraries.
    let (mut works, mut output) = (linked.is_ok(), String::new());
    works &= !expected.has_duplicates(&plan, &planned);
    if let Err(why) = linked {
        output = why.0;
    } else {
        for is_global in [false, true] {
            let ran = images.run(process, is_global)?;
            let recorded = Registered::recorded(&ran);
            if recorded.as_ref() != Some(&expected) {
                works = false;
                output += &ran.error(&format!("recorded {recorded:?}")).0;
            }
        }
    }
    if works == has_errors(&found) {
        let messages: Vec<&str> = found.iter().map(|one| &*one.message).collect();
        return Ok(Err(format!("{messages:?}\nplanned {expected:?}\n{output}")));
    }
    Ok(Ok(works))
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn some_graphs_register_as_planned() -> Result<()> {
    graphs_register_as_planned(211, Vendor::Nvidia)
}

#[test]
#[ignore = "needs HIP's headers and device libraries: ./tests/run"]
fn some_graphs_of_hip_register_as_planned() -> Result<()> {
    graphs_register_as_planned(211, Vendor::Amd)
}

#[test]
#[ignore = "needs HIP's headers and device libraries, and minutes: ./tests/run --all"]
fn heavy_many_graphs_of_hip_register_as_planned() -> Result<()> {
    graphs_register_as_planned(5, Vendor::Amd)
}

/// Two images with a device link over the same shared libraries: the one that is opened first registers them.
#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn second_link_over_the_same_libraries_registers_nothing() -> Result<()> {
    let dir = scratch()?;
    let compiler = Compiler::new(dir.path(), &["a", "b"], Vendor::Nvidia)?;
    let text = "host:bin opens p,q; p:cdylib -> a,b; q:cdylib -> b,a; a*:shared; b*:shared";
    let directory = dir.path().join("graph");
    fs::create_dir(&directory)?;
    assert_eq!(check(&compiler, &directory, text, 3)?, Ok(true));
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler, and minutes: ./tests/run --all"]
fn heavy_all_graphs_register_as_planned() -> Result<()> {
    graphs_register_as_planned(1, Vendor::Nvidia)
}

/// The accepted graphs over these libraries that packages can have.
fn accepted(all: &[Statements]) -> Vec<(String, Graph)> {
    let mut accepted = Vec::new();
    for libraries in all {
        for programs in graphs::programs(libraries.len()) {
            let text = [&programs[..], libraries].concat().join("; ");
            let (graph, _) = Graph::parse("graph", &text);
            if !has_errors(&plan(&graph).1) && packages::are_possible(&graph) {
                accepted.push((text, graph));
            }
        }
    }
    accepted
}

/// Every so many of the graphs that about `count` remain.
fn some(graphs: Vec<(String, Graph)>, count: usize) -> Vec<(String, Graph)> {
    let step = (graphs.len() / count).max(1);
    graphs.into_iter().step_by(step).collect()
}

/// Builds graphs with cargo, and runs them.
fn packages_register_as_planned(chosen: &[(String, Graph)], vendor: Vendor) -> Result<()> {
    // A workspace for a few graphs at a time: cargo builds their packages in parallel.
    for some in chosen.chunks(6) {
        let graphs: Vec<Graph> = some.iter().map(|(_, graph)| graph.clone()).collect();
        let workspace = Workspace::new(&graphs, vendor)?;
        for (number, (text, graph)) in some.iter().enumerate() {
            let (plan, _) = plan(graph);
            let planned: Vec<NodePlan> = plan.node_plans().collect();
            let expected = Registered::planned(&plan, &planned, NodeId::from_index(0));
            let ran = workspace.run(number, graph)?;
            let recorded = Registered::recorded(&ran);
            if recorded.as_ref() != Some(&expected) {
                let what = format!("{text}\nplanned {expected:?}\nrecorded {recorded:?}");
                return Err(ran.error(&what));
            }
        }
    }
    println!("{} graphs", chosen.len());
    Ok(())
}

#[test]
#[ignore = "needs CUDA's compiler: ./tests/run"]
fn packages_of_some_graphs_register_as_planned() -> Result<()> {
    packages_register_as_planned(&some(accepted(&graphs::small()), 5), Vendor::Nvidia)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_packages_of_some_graphs_of_hip_register_as_planned() -> Result<()> {
    packages_register_as_planned(&some(accepted(&graphs::small()), 3), Vendor::Amd)
}

#[test]
#[ignore = "needs HIP's headers and device libraries, and minutes: ./tests/run --all"]
fn heavy_packages_of_many_graphs_of_hip_register_as_planned() -> Result<()> {
    packages_register_as_planned(&some(accepted(&graphs::small()), 60), Vendor::Amd)
}

#[test]
#[ignore = "needs CUDA's compiler, and half an hour: ./tests/run --all"]
fn heavy_packages_of_all_graphs_of_three_register_as_planned() -> Result<()> {
    let mut graphs = accepted(&graphs::small());
    graphs.retain(|(_, graph)| packages::count(graph) <= 3);
    packages_register_as_planned(&graphs, Vendor::Nvidia)
}

#[test]
#[ignore = "needs CUDA's compiler, and an hour: ./tests/run --all"]
fn heavy_packages_of_five_libraries_register_as_planned() -> Result<()> {
    packages_register_as_planned(&some(accepted(&graphs::large(200)), 200), Vendor::Nvidia)
}
