//! `[toolkit]`: the directory that build scripts of dependencies see as an installed toolkit.

use super::Spanned;
use crate::version::Version;

/// The `[toolkit]` of a workspace, which build scripts see as an installed toolkit.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// Path of the directory, relative to `GpuStub.toml`.
    pub path: String,
    /// CUDA release that the directory reports.
    pub cuda: Option<Spanned<Version>>,
    /// HIP release that the directory reports.
    pub hip: Option<Spanned<Version>>,
    /// Whether it overrides the toolkit of the environment.
    pub force: bool,
    /// Crates whose build scripts are not run.
    pub override_build_scripts: Vec<Spanned<String>>,
}
