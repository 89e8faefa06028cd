//! The edits of a package, as values.

use std::collections::BTreeMap;

use gpustub_check::Package;
use gpustub_core::diag::{Diagnostic, Level, UNSUPPORTED_IMAGE};
use gpustub_core::library::Library;
use gpustub_image::ImageFormat;
use gpustub_image::edit::{self, EditRequest, Inspection};

use crate::libraries::KnownLibraries;

/// Requirements of each image that may need an edit, by path in the package, or the reason why it cannot be edited.
pub type Inspections<'a> = BTreeMap<&'a str, Result<&'a Inspection, edit::EditProblem>>;

/// Decisions of the caller.
#[derive(Debug, Clone, Default)]
pub struct PlanOptions {
    /// Name of the package in file names and version nodes ([`package_name`](crate::names::package_name)).
    /// Empty: the name is the hash of the stub library's contents.
    pub name: String,
    /// Prefix of that hash.
    pub prefix: String,
    /// Directory of the stub library in the package. A DLL is beside each image that needs it.
    pub directory: String,
    /// Header versions by toolkit or library; those without a name are for toolkits.
    pub headers: Vec<(Option<String>, String)>,
    /// Images that cannot be edited, with the reason.
    pub excluded: BTreeMap<String, String>,
    /// Whether copies of GPU libraries that tools grafted into the package are replaced and removed.
    pub removes_copies: bool,
    /// Libraries that stubs replace.
    pub known: KnownLibraries,
    /// Whether images that need a library without stubs are repaired for their other libraries.
    pub is_partial: bool,
    /// Whether signatures of images for Windows are removed.
    pub removes_signatures: bool,
}

/// The edits of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackagePlan {
    /// The stub libraries.
    pub stubs: Vec<StubPlan>,
    /// The edited images, sorted by path.
    pub images: Vec<ImagePlan>,
    /// Names of GPU libraries of the package that images keep, by the image's path.
    pub kept: BTreeMap<String, Vec<String>>,
    /// Paths of removed files.
    pub removed: Vec<String>,
}

/// A stub library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubPlan {
    /// File name and soname.
    pub file: String,
    /// Paths in the package. A DLL is in the directory of each image that needs it.
    pub paths: Vec<String>,
    /// Format of the images that need it.
    pub format: ImageFormat,
    /// Machine of the images that need it.
    pub machine: String,
    /// The stubbed libraries, sorted by id.
    pub libraries: Vec<StubLibrary>,
}

/// The functions of one library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StubLibrary {
    /// The library.
    pub library: &'static Library,
    /// Value of `header-version`, if the library needs one.
    pub header: Option<String>,
    /// Directories that the stubs search first, as the runpaths of images had them: of a user-defined library.
    pub search_dirs: Vec<String>,
    /// Version node of each imported function.
    pub exports: BTreeMap<String, String>,
}

/// An edited image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImagePlan {
    /// Path in the package.
    pub path: String,
    /// Index of its stub library.
    pub stub: usize,
    /// The edit.
    pub request: EditRequest,
}

/// Diagnostic about an image that is not repaired, or only in part.
pub fn unsupported(package: &Package, path: &str, level: Level, reason: &str) -> Diagnostic {
    let file = path.rsplit('/').next().unwrap_or_default();
    let mut diagnostic = Diagnostic::error(&UNSUPPORTED_IMAGE, format!("`{file}` {reason}"))
        .with_location(package.location_of(path));
    diagnostic.level = level;
    diagnostic
}
