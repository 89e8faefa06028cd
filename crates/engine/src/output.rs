//! Result of a build.

use std::path::PathBuf;

use gpustub_core::directives::Directive;

/// Products of a build. Nothing has been printed yet.
///
/// ```
/// let output = gpustub_engine::Output::default();
/// assert!(output.directives.is_empty() && output.stub_library.is_none());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Output {
    /// Lines for cargo, in this order.
    pub directives: Vec<Directive>,
    /// Sorted ids of the libraries that have stubs.
    pub stubs: Vec<String>,
    /// The archive or shared library with the stubs; `None` if there are none.
    pub stub_library: Option<PathBuf>,
    /// The directory with `gpustub.h`; `None` if nothing was generated.
    pub include_dir: Option<PathBuf>,
    /// Paths of the super-archives, sorted.
    pub archives: Vec<PathBuf>,
}
