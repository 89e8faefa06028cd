//! Edits of finished images, which bind GPU functions to a stub library.
//!
//! [`inspect`] reads what an image requires, [`plan`] returns the edited image as a [`Patch`]: ranges of
//! the original, and new bytes. Neither reads or writes a file. The edited image
//!
//! - needs the stub instead of the replaced libraries,
//! - requires a version node of the stub's own for their functions, so that no other library provides
//!   them, and no other library finds those of the stub,
//! - has all addresses, symbols, hash tables and relocations of the original.
//!
//! Both read headers and tables only, by the program headers and the dynamic section, as the loader
//! does. Section headers are adjusted if there are any. The result is read again and compared with the
//! request, and [`plan`] returns an error where it differs.

mod dynamic;
mod evict;
mod hashes;
mod headers;
mod image;
mod initializers;
mod inspect;
mod layout;
mod overlaps;
mod patch;
mod plan;
mod problem;
mod relocation_types;
mod relocations;
mod request;
mod segments;
mod source;
mod strings;
mod symbol;
mod symbols;
mod symtab;
mod targets;
mod verify;
mod versions;

pub use inspect::{ImportKind, Imported, Inspection, inspect};
pub use patch::{Patch, Piece};
pub use plan::plan;
pub use problem::Problem;
pub use request::{Replaced, Request, Unversioned};
