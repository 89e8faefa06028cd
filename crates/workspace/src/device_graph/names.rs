//! Names of packages and libraries in the graph.

use std::collections::HashMap;

use cargo_metadata::Package;

use crate::graph::PackageGraph as Packages;
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
        let mut counts: HashMap<String, usize> = HashMap::new();
        for &index in reached {
            for name in candidates(packages.packages[index]) {
                *counts.entry(name).or_default() += 1;
            }
            for declared in packages.rdc(index) {
                *libraries.entry(declared.name.value.clone()).or_default() += 1;
            }
        }
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let mut names = HashMap::new();
        for &index in reached {
            let [short, long] = candidates(packages.packages[index]);
            let name = if counts[&short] == 1 {
                short
            } else if counts[&long] == 1 {
                long
            } else {
                // Two sources, with one name and version.
                let number = numbers.entry(long.clone()).or_default();
                *number += 1;
                format!("{long}.{number}")
            };
            names.insert(index, name);
        }
        Self {
            packages: names,
            libraries,
        }
    }

    /// Name of a package.
    pub fn package(&self, index: PackageIndex) -> &str {
        self.packages.get(&index).map_or("?", String::as_str)
    }

    /// Name of a library of a package.
    pub fn library(&self, index: PackageIndex, id: &str) -> String {
        if self.is_shared(id) {
            format!("{}/{id}", self.package(index))
        } else {
            id.to_owned()
        }
    }

    /// Whether several packages have a library of this name.
    pub fn is_shared(&self, id: &str) -> bool {
        self.libraries.get(id).is_some_and(|&count| count > 1)
    }
}

/// Names for a package, shorter ones first; names of several packages get the version.
fn candidates(package: &Package) -> [String; 2] {
    let (name, version) = (&package.name, &package.version);
    [name.to_string(), format!("{name}@{version}")]
}
