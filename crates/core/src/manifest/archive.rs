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
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct Archive {
    /// Name of its file, without `.a`.
    pub name: Spanned<String>,
    /// Layers used by views, in the order of first use.
    pub layers: IndexVec<LayerId, ArchiveLayer>,
    /// The views, in the order of the file; none if `unpack` makes them.
    pub views: IndexVec<ViewId, ArchiveView>,
    /// The view visible to ordinary tools.
    pub default_view: Option<ViewId>,
    /// Whether device code of fat objects is unpacked into one view for each target.
    pub unpack: bool,
    /// Whether bitcode modules are written without the processor that they were made for.
    pub canonical_bitcode: bool,
    /// Whether members are compressed, except those of the default view.
    pub compress: bool,
    /// Whether bitcode modules are split into members.
    pub split: bool,
    /// Cargo features that enable it.
    pub required_features: RequiredFeatures,
}

/// Members that are searched together.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct ArchiveLayer {
    /// Name.
    pub name: Spanned<String>,
    /// Archives, directories, object files or globs: relative to `GpuStub.toml`, absolute, or below
    /// `$OUT_DIR/` (see [`in_out_dir`](super::in_out_dir)).
    pub files: Vec<Spanned<String>>,
    /// Whether earlier layers may override its strong definitions.
    pub interposable: bool,
}

/// One of the archives in a super-archive.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(PartialEq, Eq, Clone)]
pub struct ArchiveView {
    /// Name.
    pub name: Spanned<String>,
    /// Layers, in the order in which they are searched.
    pub layers: Vec<LayerId>,
}

impl Archive {
    /// Environment variable with its path, for the package's own code at compile time.
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

/// Whether views and layers can have this name. Families of GPUs are called `gfx90a:xnack+`, so more
/// characters are valid than in names of libraries, except separators on command lines and in paths.
pub fn is_part_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 200
        && !name.starts_with(['-', '.'])
        && name
            .chars()
            .all(|c| !c.is_control() && !c.is_whitespace() && !"/\\,=\"".contains(c))
}
