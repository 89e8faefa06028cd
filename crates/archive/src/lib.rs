//! Reads super-archives: static libraries for many GPU families in one file, each member once.
//!
//! To ordinary tools a super-archive is an ordinary `ar` archive: they see one *view* of it, the
//! default one. The other views, each with its own symbol table, are in a part that those tools
//! skip. Members of several views are stored once. `FORMAT.md` specifies each byte.
//!
//! ```no_run
//! # fn link(_: &[u8]) {}
//! # fn main() -> Result<(), gpustub_archive::Error> {
//! # let bytes: &'static [u8] = &[];
//! let builtins = gpustub_archive::SuperArchive::parse(bytes)?;
//! let family = builtins.view("gfx1100")?.expect("written with this view");
//! if let Some(member) = family.find_symbol("_Z3cosDv16_f")? {
//!     link(member.data()?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! The bytes may come from `include_bytes!`, a mapped file or the program's own image, and may have
//! any address. The reader allocates nothing, writes nothing, and trusts no byte: damage results in
//! an [`Error`], never a panic. Selecting a view, and finding a symbol in it, take about the same
//! time for any number of views and symbols.
//!
//! Checks for changes by other tools:
//!
//! | function | checks |
//! |---|---|
//! | [`SuperArchive::parse`] | that the tables are within the archive, and require nothing unknown |
//! | [`Member::data`] | that an ordinary member's header is as written, at the member's offset |
//! | [`SuperArchive::verify`] | all contents, by their hashes, and what other tools see |

#![no_std]
#![forbid(unsafe_code)]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod bytes;
mod c_files;
mod closure;
mod container;
mod contents;
mod error;
mod format;
pub mod hash;
mod member;
mod ordinary;
mod slots;
mod super_archive;
mod tables;
mod target;
mod verify;
mod view;
#[cfg(feature = "zstd")]
mod zstd;

pub use c_files::C_FILES;
pub use closure::Closure;
#[doc(hidden)]
pub use container::contains_tables;
pub use contents::{Contents, ZSTD};
pub use error::{Error, Part};
pub use format::{MAGIC, MAJOR, TRAILER};
pub use member::Member;
pub use ordinary::{Ordinary, OrdinaryMember};
pub use super_archive::SuperArchive;
pub use target::match_target;
pub use view::{Layer, Symbol, Symbols, View};
#[cfg(feature = "zstd")]
pub use zstd::zstd;
