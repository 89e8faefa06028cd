//! Names of packages and libraries in the graph.

use std::collections::HashMap;

use crate::graph::Graph as Packages;
use crate::package_index::PackageIndex;

/// Short names if unique, otherwise with the version or the package.
pub struct Names {
    packages: HashMap<PackageIndex, String>,
    /// Number of packages that declare a library of this name.
    libraries: HashMap<String, usize>,
}

impl Names {
    /// Collects the names of the packages `reached`.
    pub fn new(packages: &Packages, reached: &[PackageIndex]) -> Self {
        let mut libraries: HashMap<String, usize> = HashMap::new();
        // Shorter names first; names of several packages get the version.
        let all = |at: PackageIndex| {
            let package = packages.packages[at];
            let (name, version) = (&package.name, &package.version);
            [name.to_string(), format!("{name}@{version}")]
        };
        let mut count: HashMap<String, usize> = HashMap::new();
        for &at in reached {
            for name in all(at) {
                *count.entry(name).or_default() += 1;
            }
            for declared in packages.rdc(at) {
                *libraries.entry(declared.name.value.clone()).or_default() += 1;
            }
        }
        let mut same: HashMap<String, usize> = HashMap::new();
        let mut names = HashMap::new();
        for &at in reached {
            let [short, long] = all(at);
            let name = if count[&short] == 1 {
                short
            } else if count[&long] == 1 {
                long
            } else {
                // Two sources, with one name and version.
                let number = same.entry(long.clone()).or_default();
                *number += 1;
                format!("{long}.{number}")
            };
            names.insert(at, name);
        }
        Self {
            packages: names,
            libraries,
        }
    }

    /// Name of a package.
    pub fn package(&self, at: PackageIndex) -> &str {
        self.packages.get(&at).map_or("?", String::as_str)
    }

    /// Name of a library of a package.
    pub fn library(&self, at: PackageIndex, id: &str) -> String {
        if self.is_shared(id) {
            format!("{}/{id}", self.package(at))
        } else {
            id.to_owned()
        }
    }

    /// Whether several packages have a library of this name.
    pub fn is_shared(&self, id: &str) -> bool {
        self.libraries.get(id).is_some_and(|&count| count > 1)
    }
}
