//! Description of an edit.

/// Changes to an image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EditRequest {
    /// `DT_NEEDED` of the stub. Replaces the first of the replaced libraries; the entries of the others
    /// are removed. In a PE image it replaces the name of each replaced DLL.
    pub stub: String,
    /// Directory to append to the image's `DT_RUNPATH`, or to its `DT_RPATH` if it has only that one.
    pub runpath: Option<String>,
    /// Entries of that search path to remove.
    pub removed_runpath: Vec<String>,
    /// Libraries whose functions the stub provides.
    pub libraries: Vec<Replaced>,
    /// Imports without a version that a node of the stub provides. In an image without version needs
    /// ([`Inspection::has_versions`](super::Inspection::has_versions)) they stay without a version.
    pub unversioned: Vec<Unversioned>,
    /// Data that the stub has, with the size of the library's. Images of other data are not edited.
    pub data: Vec<String>,
    /// Whether the signature of a PE image, which the edit makes invalid, is removed.
    pub removes_signature: bool,
}

/// A library that the stub replaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replaced {
    /// Names in `DT_NEEDED`: `libcudart.so.12`, and those of grafted copies
    /// (`libcudart-5a077122.so.12.0.107`); the DLLs of a PE image, as its import tables have them. A library that provides one of `nodes` is replaced in any case.
    pub needed: Vec<String>,
    /// Version nodes of the library.
    pub nodes: Vec<String>,
    /// The stub's node for its functions, `GPUSTUB_<package>_<library>`. All nodes that an image requires
    /// of the library become this one.
    pub node: String,
}

/// An import without a version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unversioned {
    /// Name of the symbol.
    pub symbol: String,
    /// The stub's node that provides it.
    pub node: String,
}
