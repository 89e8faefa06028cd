//! Images of a package.

use std::path::{Path, PathBuf};

use crate::edit::use_line;
use cargo_metadata::{CrateType, Edition, Package, TargetKind};

use crate::graph::PackageGraph;
use crate::workspace::{has_crate_type, library};

/// Whether a package declares libraries of relocatable CUDA code.
pub fn has_rdc(graph: &PackageGraph, package: &Package) -> bool {
    let index = graph.index(&package.id);
    index.is_some_and(|index| !graph.rdc(index).is_empty())
}

/// Whether builds of a package with CUDA code link some: programs, libraries for C, or a Rust dylib.
pub fn has_programs(package: &Package) -> bool {
    !Programs::from_package(package).shipped.is_empty()
        || (package.targets.iter()).any(|target| has_crate_type(target, &[CrateType::DyLib]))
}

/// Images of a package.
#[derive(Debug, Default)]
pub struct Programs {
    /// Programs, and libraries for C.
    pub shipped: Vec<(PathBuf, Edition)>,
    /// Tests, examples and benchmarks.
    pub development: Vec<(PathBuf, Edition)>,
    /// The library, for its unit tests.
    pub unit_tests: Option<(PathBuf, Edition)>,
    /// Whether a library for C is also a crate for Rust.
    pub has_mixed_library: bool,
}

impl Programs {
    /// Collects the targets of a package.
    pub fn from_package(package: &Package) -> Self {
        let mut programs = Self::default();
        for target in &package.targets {
            let root = (target.src_path.clone().into_std_path_buf(), target.edition);
            let is_lib = library(package).is_some_and(|lib| lib.src_path == target.src_path);
            if target.is_kind(TargetKind::Bin) {
                programs.shipped.push(root);
            } else if is_lib && has_crate_type(target, &[CrateType::CDyLib, CrateType::StaticLib]) {
                programs.has_mixed_library =
                    has_crate_type(target, &[CrateType::Lib, CrateType::RLib]);
                programs.shipped.push(root);
            } else if [TargetKind::Test, TargetKind::Example, TargetKind::Bench]
                .into_iter()
                .any(|kind| target.is_kind(kind))
            {
                programs.development.push(root);
            } else if is_lib && target.test && !has_crate_type(target, &[CrateType::ProcMacro]) {
                programs.unit_tests = Some(root);
            }
        }
        programs
    }

    /// Root files, shipped ones first, with their lines.
    pub fn lines(&self) -> impl Iterator<Item = (&Path, Edition, &'static use_line::Line)> {
        let unit_tests = self.unit_tests.iter();
        self.shipped
            .iter()
            .chain(&self.development)
            .map(|root| (root, &use_line::DEVICE_LINK))
            .chain(unit_tests.map(|root| (root, &use_line::UNIT_TESTS)))
            .map(|((path, edition), line)| (path.as_path(), *edition, line))
    }

    /// Whether the package has tests that are linked with CUDA code. Unit tests count if the code is
    /// the package's own (`has_rdc`).
    pub fn has_tests(&self, has_rdc: bool) -> bool {
        !self.development.is_empty() || has_rdc && self.unit_tests.is_some()
    }
}
