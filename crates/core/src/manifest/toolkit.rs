//! `[toolkit]`: the directory that build scripts of dependencies see as an installed toolkit.

use super::Spanned;
use crate::version::Version;

/// The `[toolkit]` of a workspace: what build scripts take for an installed toolkit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toolkit {
    /// Its folder, relative to `GpuStub.toml`.
    pub path: String,
    /// The CUDA release that it says it is.
    pub cuda: Option<Spanned<Version>>,
    /// The HIP release that it says it is.
    pub hip: Option<Spanned<Version>>,
    /// Whether it goes before what the environment names.
    pub force: bool,
    /// Crates whose build scripts are not run.
    pub override_build_scripts: Vec<Spanned<String>>,
}
