//! Writes super-archives: static libraries for many GPU families in one file, each member once.
//!
//! `crates/archive/FORMAT.md` tells what is written; `gpustub-archive` reads it. What goes in is a
//! [`Request`]: layers, each the members of an archive or a folder ([`Source`]), and views, each an
//! ordered list of layers. [`Plan::new`] finds which member each view has for each symbol, and where everything
//! goes; [`Plan::write`] streams it. The bytes written depend on nothing but the request.

mod ar;
mod canonical;
mod carrier;
mod layers;
mod layout;
mod names;
mod sources;
mod tables;
mod unique;
mod write;

use std::borrow::Cow;

pub use canonical::{Canonical, Left};
pub use layers::{Conflict, Flat, Shadow};
pub use sources::Source;
pub use write::{Plan, WriteError, write_archive};

/// A member to be, and what it defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input<'d> {
    /// The name of its file.
    pub name: Cow<'d, [u8]>,
    /// Its contents.
    pub data: &'d [u8],
    /// The symbols that others can be linked with, in its own order.
    pub symbols: Vec<Definition<'d>>,
}

/// A symbol that a member defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition<'d> {
    /// Its name, as linkers know it.
    pub name: Cow<'d, [u8]>,
    /// Whether another definition may take its place: weak, common, or in a group of which linkers
    /// keep one.
    pub weak: bool,
}

/// Members that are searched together: of an archive, or of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer<'d> {
    /// Its name, for people.
    pub name: String,
    /// Its members; of two that define a symbol the first is taken.
    pub members: Vec<Input<'d>>,
}

/// An archive to be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: String,
    /// Indices of layers, in the order in which they are searched.
    pub layers: Vec<usize>,
}

/// What is to be written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request<'d> {
    /// All layers.
    pub layers: Vec<Layer<'d>>,
    /// All views.
    pub views: Vec<View>,
    /// The index of the view that ordinary tools see.
    pub default: Option<usize>,
}
