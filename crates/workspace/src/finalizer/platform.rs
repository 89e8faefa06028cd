//! Targets of a package of the closure, from `[target.'cfg(…)'.dependencies]` on the paths to it.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::DependencyKind;

use super::naming::is_finalizer;
use crate::graph::PackageGraph;
use crate::package_index::PackageIndex;

/// Conditions of the dependencies on a path, which must all hold. Empty: the path counts always.
type DependencyPath = BTreeSet<String>;

/// Paths to one package, of which one is enough.
pub type DependencyPaths = BTreeSet<DependencyPath>;

/// Maximum number of paths to one package. With more, the package is linked for all targets.
const MAX_PATHS: usize = 16;

/// Paths from `root` to each package that it reaches.
pub fn paths(
    graph: &PackageGraph,
    root: PackageIndex,
    for_tests: bool,
) -> BTreeMap<PackageIndex, DependencyPaths> {
    let unconditional = DependencyPaths::from([DependencyPath::new()]);
    let mut paths = BTreeMap::from([(root, unconditional)]);
    let mut open = vec![root];
    while let Some(index) = open.pop() {
        let paths_to_user = paths.get(&index).cloned().unwrap_or_default();
        for edge in &graph.edges[index] {
            // The dependencies of a finalizer are the result of this search.
            if is_finalizer(graph.packages[edge.to]) {
                continue;
            }
            let known = paths.get(&edge.to).cloned().unwrap_or_default();
            let mut extended = known.clone();
            for (kind, target) in &edge.kinds {
                let counts = match kind {
                    DependencyKind::Normal => true,
                    DependencyKind::Development => for_tests && index == root,
                    _ => false,
                };
                if !counts {
                    continue;
                }
                for path in &paths_to_user {
                    extended.insert(path.iter().chain(target).cloned().collect());
                }
            }
            let shortest = shortest(extended);
            if shortest != known {
                paths.insert(edge.to, shortest);
                open.push(edge.to);
            }
        }
    }
    paths
}

/// Removes paths that require more than another one.
fn shortest(paths: DependencyPaths) -> DependencyPaths {
    if paths.len() > MAX_PATHS {
        return DependencyPaths::from([DependencyPath::new()]);
    }
    paths
        .iter()
        .filter(|path| {
            !paths
                .iter()
                .any(|shorter| shorter != *path && shorter.is_subset(path))
        })
        .cloned()
        .collect()
}

/// Condition of the paths for `cfg(…)`; `None`: always. `Err`: the name of a target, which a
/// condition in a source file cannot express.
pub fn condition(paths: &DependencyPaths) -> Result<Option<String>, String> {
    let mut conditions = Vec::new();
    for path in paths {
        let mut predicates = Vec::new();
        for target in path {
            let predicate = target
                .strip_prefix("cfg(")
                .and_then(|target| target.strip_suffix(')'));
            predicates.push(predicate.ok_or_else(|| target.clone())?);
        }
        match predicates.as_slice() {
            [] => return Ok(None),
            [predicate] => conditions.push((*predicate).to_owned()),
            _ => conditions.push(format!("all({})", predicates.join(", "))),
        }
    }
    Ok(match conditions.as_slice() {
        [] => None,
        [condition] => Some(condition.clone()),
        _ => Some(format!("any({})", conditions.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&[&str]]) -> DependencyPaths {
        paths
            .iter()
            .map(|path| path.iter().map(|target| (*target).to_owned()).collect())
            .collect()
    }

    #[test]
    fn conditions_are_the_union_of_all_paths() {
        for (paths, expected) in [
            (&[][..], Ok(None)),
            (&[&[][..]], Ok(None)),
            (&[&["cfg(unix)"]], Ok(Some("unix"))),
            (&[&["cfg(unix)", "cfg(a)"]], Ok(Some("all(a, unix)"))),
            (
                &[&["cfg(a)"], &["cfg(b)", "cfg(not(c))"]],
                Ok(Some("any(a, all(b, not(c)))")),
            ),
            (
                &[&["x86_64-unknown-linux-gnu"]],
                Err("x86_64-unknown-linux-gnu"),
            ),
        ] {
            let condition = condition(&shortest(set(paths)));
            let expected = expected.map(|expected: Option<&str>| expected.map(str::to_owned));
            assert_eq!(condition, expected.map_err(str::to_owned), "{paths:?}");
        }
    }

    #[test]
    fn a_path_covered_by_another_adds_no_condition() {
        assert_eq!(shortest(set(&[&["a"], &["a", "b"]])), set(&[&["a"]]));
        assert_eq!(shortest(set(&[&["a"], &[]])), set(&[&[]]));
        let too_many = (0..=MAX_PATHS)
            .map(|number| DependencyPath::from([number.to_string()]))
            .collect();
        assert_eq!(shortest(too_many), set(&[&[]]));
    }
}
