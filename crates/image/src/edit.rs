//! Edits of finished images, which bind GPU functions to a stub library.
//!
//! An [`Editable`] is a parsed image with what it requires; [`Editable::plan`] returns the edited image as a
//! [`Patch`]: ranges of the original, and new bytes. Neither reads or writes a file. [`inspect`] and [`plan`] do
//! the same with bytes. The edited image
//!
//! - needs the stub instead of the replaced libraries,
//! - requires a version node of the stub's own for their functions, so that no other library provides
//!   them, and no other library finds those of the stub,
//! - has all addresses, symbols, hash tables and relocations of the original.
//!
//! Both read headers and tables only, by the program headers and the dynamic section, as the loader
//! does. Section headers are adjusted if there are any. The result is read again and compared with the
//! request, and the plan is an error where it differs.

mod dynamic;
mod editable;
mod evict;
mod hashes;
mod headers;
mod image;
mod initializers;
mod inspect;
mod layout;
mod machines;
mod overlaps;
mod patch;
mod placement;
mod plan;
mod problem;
mod relocation_types;
mod relocations;
mod request;
mod segments;
mod strings;
mod symbols;
mod symtab;
mod targets;
mod verify;
mod versions;
mod words;

pub use editable::{Editable, inspect, plan, read};
pub use inspect::{ImportKind, Imported, Inspection};
pub use machines::{ELF_MACHINES, PE_MACHINES};
pub use patch::{Patch, Piece};
pub use problem::EditProblem;
pub use request::{EditRequest, Replaced, Unversioned};
