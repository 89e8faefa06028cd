//! The plan: everything that will be generated, decided, as values.

mod functions;
mod planner;
mod resolve;

use std::borrow::Cow;

use crate::abi_table::AbiTable;
use crate::by_name::ByName;
use crate::diag::Diagnostic;
use crate::library::{Fallback, Hook, LoadName, Role, StatusCodes, VersionProbe, VersionQuery};
use crate::manifest::{LibraryType, Manifest};
use crate::target::Target;
use crate::version::{HeaderVersion, Version};

/// What the planner is given besides the manifest: no file is read here.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// The package's active cargo features; `None`: all count as on (commands outside a build).
    pub features: Option<Vec<String>>,
    /// The texts of the symbol lists that `GpuStub.toml` names, by the path given there.
    pub symbol_files: ByName<String>,
}

/// One function of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// The exported name.
    pub name: String,
    /// Index into [`LibraryPlan::specs`].
    pub spec: u16,
}

/// How many libraries a plan can hold: the run time keeps the index of one in a signed byte.
pub const MOST_LIBRARIES: usize = 127;

/// What functions of a library have in common; most share number 0, a plain status function.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Spec {
    /// What happens when it cannot be called.
    pub fallback: Fallback,
    /// The function's own name, if its ABI differs between versions of the library:
    /// [`LibraryPlan::abi`] has the names that are bound there.
    pub abi_name: Option<String>,
    /// What it is to compilers' start-up code.
    pub hook: Option<Hook>,
    /// Symbol version to bind (dlvsym) instead of the default one.
    pub symbol_version: Option<String>,
    /// Symbol bound where the library lacks the function.
    pub fallback_symbol: Option<String>,
}

/// One library of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LibraryPlan {
    /// For example `cudart`.
    pub id: String,
    /// Human-readable name.
    pub title: String,
    /// Family that shares one toolkit major and root; empty: none.
    pub family: String,
    /// Where it comes from.
    pub role: Role,
    /// Names after `-l`.
    pub link_names: Vec<String>,
    /// Whether it is linked against. `false`: here only to be asked for its version.
    pub stubbed: bool,
    /// Archive or shared library.
    pub library_type: LibraryType,
    /// Names to load, in the order of majors decided for this program, unversioned last.
    pub load_names: Vec<LoadName>,
    /// The newest major that the manifest knows (0: none).
    pub newest_major: u32,
    /// The headers' version.
    pub header_version: Option<HeaderVersion>,
    /// The lowest accepted version.
    pub min_version: Option<Version>,
    /// Functions that must be there.
    pub required_functions: Vec<String>,
    /// Directories to look in first (`$ORIGIN` unexpanded).
    pub search_dirs: Vec<String>,
    /// As in [`crate::library::Library`], with `{arch}` replaced.
    pub wheel_dirs: Vec<String>,
    /// As in the library manifest.
    pub root_env: Vec<String>,
    /// As in the library manifest.
    pub roots: Vec<String>,
    /// As in the library manifest, `{arch}` replaced.
    pub root_subdirs: Vec<String>,
    /// As in the library manifest, `{arch}` replaced.
    pub dirs_before_loader: Vec<String>,
    /// As in the library manifest, `{arch}` replaced.
    pub dirs_after_loader: Vec<String>,
    /// As in the library manifest.
    pub preload: Vec<String>,
    /// As in the library manifest.
    pub toolkit_version_from: Vec<VersionProbe>,
    /// As in the library manifest.
    pub independent_major: bool,
    /// The id of the driver library, which then is in the plan too.
    pub driver: Option<String>,
    /// Query of the library's own version.
    pub version_query: Option<VersionQuery>,
    /// Status codes.
    pub codes: StatusCodes,
    /// Result of string functions.
    pub string: String,
    /// Distinct specs; number 0 is the plain status function.
    pub specs: Cow<'static, [Spec]>,
    /// Names that are bound in each version.
    pub abi: Cow<'static, AbiTable>,
    /// Sorted by name; empty when not stubbed.
    pub functions: Cow<'static, [Function]>,
}

/// How diagnostics call the symbol list `path` of the manifest `file`: both are relative to one
/// folder, so that people can open the one as they do the other.
pub fn beside(file: &str, path: &str) -> String {
    match file.rfind(['/', '\\']) {
        Some(end) => format!("{}{path}", &file[..=end]),
        None => path.to_owned(),
    }
}

/// All libraries of one image, sorted by id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What it is built for.
    pub target: Target,
    /// The libraries.
    pub libraries: Vec<LibraryPlan>,
    /// Libraries that the package uses but another one provides.
    pub required: Vec<String>,
}

/// Plans the stubs of one package for one target. With an error among the diagnostics the plan
/// must not be built.
pub fn plan(manifest: &Manifest, target: &Target, inputs: &Inputs) -> (Plan, Vec<Diagnostic>) {
    let mut planner = planner::Planner::new(manifest, target, inputs);
    let plan = planner.plan();
    (plan, planner.diagnostics)
}

#[cfg(test)]
mod tests;
