//! Plans of `cargo gpustub repair`: which images of a package are edited, which functions its stub library
//! has, and what becomes of the other files.
//!
//! [`candidates`] and [`followers`] select the images of a package that may need an edit, [`plan`](plan()) decides about them, and
//! [`wheel`] writes the wheel. Only `wheel` reads and writes files, which the caller opens.

mod candidates;
mod kept;
pub mod libraries;
pub mod load_order;
mod loadable;
pub mod loaders;
pub mod names;
mod package_plan;
mod plan;
pub mod record;
mod releases;
pub mod verify;
pub mod wheel;

pub use candidates::{candidates, followers};
pub use loadable::load_fault;
pub use package_plan::{ImagePlan, Inspections, PackagePlan, PlanOptions, StubLibrary, StubPlan};
pub use plan::plan;
