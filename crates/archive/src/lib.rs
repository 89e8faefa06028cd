//! Reads super-archives: static libraries for many GPU families in one file, each member once.
//!
//! A super-archive is an ordinary `ar` archive to ordinary tools: they see one *view* of it, the
//! default one. The other views, each with its own table of symbols, lie in a part that those tools
//! skip. Members that several views have are there once. `FORMAT.md` tells what each byte is.
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
//! The bytes may come from `include_bytes!`, a mapped file or the program's own image, and may lie at
//! any address. Nothing is allocated, nothing is written, and nothing in the bytes is trusted: what
//! is damaged gives an [`Error`], never a panic. Choosing a view, and finding a symbol in it, take
//! about the same time however many there are.
//!
//! What a change by other tools comes to:
//!
//! | when | what is checked |
//! |---|---|
//! | [`SuperArchive::parse`] | that the length is as written, and that the tables lie within |
//! | [`Member::data`] | that the member's header is as written, where the member should be |
//! | [`SuperArchive::verify`] | all contents, by their hashes |

#![no_std]
#![forbid(unsafe_code)]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod bytes;
mod container;
mod error;
mod format;
pub mod hash;
mod member;
mod super_archive;
mod tables;
mod verify;
mod view;

pub use error::{Error, Part};
pub use format::{MAGIC, MAJOR, TRAILER};
pub use member::Member;
pub use super_archive::SuperArchive;
pub use view::{Layer, Symbol, Symbols, View};
