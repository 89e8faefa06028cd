//! Targets of a package of the closure, from `[target.'cfg(…)'.dependencies]` on the paths to it.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::DependencyKind;

use super::naming::is_one;
use crate::graph::Graph;
use crate::package_index::PackageIndex;

/// Alternative conditions, each of several that must all hold. An empty one: always.
pub type Ways = BTreeSet<BTreeSet<String>>;

/// Maximum number of paths to one package. With more, the package is linked for all targets.
const MAX_WAYS: usize = 16;

/// Paths from `root` to each package that it reaches.
pub fn ways(graph: &Graph, root: PackageIndex, tests: bool) -> BTreeMap<PackageIndex, Ways> {
    let mut found = BTreeMap::from([(root, Ways::from([BTreeSet::new()]))]);
    let mut open = vec![root];
    while let Some(at) = open.pop() {
        let here = found.get(&at).cloned().unwrap_or_default();
        // The dependencies of a finalizer are the result of this search.
        let edges = graph.edges[at].iter();
        for edge in edges.filter(|edge| !is_one(graph.packages[edge.to])) {
            let counts = |kind| match kind {
                DependencyKind::Normal => true,
                DependencyKind::Development => tests && at == root,
                _ => false,
            };
            let kinds = edge.kinds.iter().filter(|(kind, _)| counts(*kind));
            let mut there = found.get(&edge.to).cloned().unwrap_or_default();
            let before = there.clone();
            for (_, target) in kinds {
                there.extend(here.iter().map(|way| {
                    let way = way.iter().chain(target).cloned();
                    way.collect::<BTreeSet<String>>()
                }));
            }
            let there = shortest(there);
            if there != before {
                found.insert(edge.to, there);
                open.push(edge.to);
            }
        }
    }
    found
}

/// Removes paths that require more than another one.
fn shortest(ways: Ways) -> Ways {
    let covered = |way: &&BTreeSet<String>| {
        let mut others = ways.iter().filter(|other| other != way);
        others.any(|other| other.is_subset(way))
    };
    if ways.len() > MAX_WAYS {
        return Ways::from([BTreeSet::new()]);
    }
    ways.iter().filter(|way| !covered(way)).cloned().collect()
}

/// Condition of the paths for `cfg(…)`; `None`: always. `Err`: the name of a target, which a
/// condition in a source file cannot express.
pub fn condition(ways: &Ways) -> Result<Option<String>, String> {
    let mut any = Vec::new();
    for way in ways {
        let mut all = Vec::new();
        for target in way {
            let inner = target
                .strip_prefix("cfg(")
                .and_then(|t| t.strip_suffix(')'));
            all.push(inner.ok_or_else(|| target.clone())?.to_owned());
        }
        match all.as_slice() {
            [] => return Ok(None),
            [one] => any.push(one.clone()),
            several => any.push(format!("all({})", several.join(", "))),
        }
    }
    Ok(match any.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("any({})", several.join(", "))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(ways: &[&[&str]]) -> Ways {
        let way = |way: &&[&str]| way.iter().map(|s| (*s).to_owned()).collect();
        ways.iter().map(way).collect()
    }

    #[test]
    fn conditions_are_the_union_of_all_paths() {
        for (ways, expected) in [
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
            let found = condition(&shortest(set(ways)));
            let expected = expected.map(|c: Option<&str>| c.map(str::to_owned));
            assert_eq!(found, expected.map_err(str::to_owned), "{ways:?}");
        }
    }

    #[test]
    fn a_path_covered_by_another_adds_no_condition() {
        assert_eq!(shortest(set(&[&["a"], &["a", "b"]])), set(&[&["a"]]));
        assert_eq!(shortest(set(&[&["a"], &[]])), set(&[&[]]));
        let many: Vec<String> = (0..=MAX_WAYS).map(|n| n.to_string()).collect();
        let many = many.into_iter().map(|one| BTreeSet::from([one])).collect();
        assert_eq!(shortest(many), set(&[&[]]));
    }
}
