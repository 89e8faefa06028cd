//! Writes super-archives: static libraries for many GPU families in one file, each member once.
//!
//! `crates/archive/FORMAT.md` specifies the format; `gpustub-archive` reads it. The input is a
//! [`Request`]: layers, each the members of an archive or a directory ([`Source`]), and views, each
//! an ordered list of layers. [`Plan::new`] selects the member of each view for each symbol, and lays out
//! the file; [`Plan::write`] streams it. The bytes depend only on the request.

mod ar;
mod canonical_bitcode;
#[cfg(feature = "zstd")]
mod compression;
mod container;
mod decompressed;
mod definitions;
mod dictionaries;
mod error;
#[doc(hidden)]
pub mod fuzz;
mod ids;
mod known_members;
mod layout;
mod map;
mod names;
mod pool;
mod refresh;
mod request;
mod resolver;
mod source;
mod tables;
mod variants;
mod write;

pub use canonical_bitcode::{CanonicalBitcode, UnchangedModule};
#[cfg(feature = "zstd")]
pub use decompressed::decompress_frame;
pub use decompressed::{Decompressed, verify};
pub use definitions::collector::{Binding, Definition};
pub use definitions::not_canonical::NotCanonical;
pub use definitions::{bitcode_producer, definitions, is_bitcode};
pub use error::{Error, Problem};
pub use ids::{LayerId, LayerPosition, MemberId, MemberPosition, ViewId};
pub use known_members::KnownMembers;
pub use refresh::refresh;
pub use request::{Input, Layer, Request, View};
pub use resolver::{Conflict, Override, ResolvedView, ViewMember};
pub use source::{Source, has_unknown_symbols};
pub use variants::{Outcome, Refusal};
pub use write::{Plan, WriteError, write_archive};
