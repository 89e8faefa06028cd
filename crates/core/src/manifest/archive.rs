//! `[archive.<name>]`: a super-archive.

use super::features::RequiredFeatures;
use crate::define_id;
use crate::ids::IndexVec;
use crate::spanned::Spanned;

define_id! {
    /// Index of a layer in its archive.
    pub struct LayerId;
}

define_id! {
    /// Index of a view in its archive.
    pub struct ViewId;
}

/// One `[archive.<name>]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Its name: that of its file, without `.a`.
    pub name: Spanned<String>,
    /// The layers that views have, in the order in which these name them.
    pub layers: IndexVec<LayerId, ArchiveLayer>,
    /// The views, in the order of the file.
    pub views: IndexVec<ViewId, ArchiveView>,
    /// The view that ordinary tools see.
    pub default_view: Option<ViewId>,
    /// Whether modules of bitcode are written without the processor that they were made for.
    pub canonical_bitcode: bool,
    /// Cargo features that turn it on.
    pub required_features: RequiredFeatures,
}

/// Members that are searched together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveLayer {
    /// Its name.
    pub name: Spanned<String>,
    /// Archives, folders, object files or globs: relative to `GpuStub.toml`, absolute, or behind
    /// `$OUT_DIR/` (see [`in_out_dir`](super::in_out_dir)).
    pub files: Vec<Spanned<String>>,
}

/// One of the archives that it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveView {
    /// Its name.
    pub name: Spanned<String>,
    /// Its layers, in the order in which they are searched.
    pub layers: Vec<LayerId>,
}

impl Archive {
    /// The variable that the package's own code finds its path in, when it is compiled.
    pub fn variable(&self) -> String {
        variable(&self.name.value)
    }
}

/// See [`Archive::variable`].
pub(super) fn variable(name: &str) -> String {
    format!(
        "GPUSTUB_ARCHIVE_{}",
        name.to_ascii_uppercase().replace('-', "_")
    )
}

/// Whether views and layers can have this name. Families of GPUs are called `gfx90a:xnack+`, so
/// more is taken than of libraries; not what separates names on command lines and in paths.
pub fn is_part_name(name: &str) -> bool {
    let taken = |c: char| !c.is_control() && !c.is_whitespace() && !"/\\,=\"".contains(c);
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(['-', '.'])
        && name.chars().all(taken)
}
