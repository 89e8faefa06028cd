//! Plans of `cargo gpustub repair`: which images of a package are edited, which functions its stub library
//! has, and what becomes of the other files.
//!
//! [`candidates`] and [`followers`] select the images of a package that may need an edit, [`plan`](plan()) decides about them, and
//! [`wheel`] writes the wheel. Only `wheel` reads and writes files, which the caller opens.

pub mod libraries;
pub mod loaders;
pub mod names;
mod plan;
pub mod record;
mod releases;
pub mod wheel;

pub use plan::{
    ImagePlan, Inspections, Options, PackagePlan, StubLibrary, StubPlan, candidates, followers,
    plan,
};
