//! What C headers declare, and in what two versions of them differ.
//!
//! [`Headers::read`] asks clang which functions a library's headers declare, by the names that a
//! program compiled with them asks the linker for, and [`same`] whether a function as one version
//! declares it can be called as another declares it. clang only parses and lays out types: nothing
//! of a header is run, and no file is written. Whatever the headers hold, they give a value or an
//! [`Error`]: no panic, and no more memory than a multiple of [`LIMIT`].
//!
//! ```no_run
//! use gpustub_headers::{Clang, Headers, same};
//!
//! let headers = Headers::including(["acme.h"]);
//! let read = |folder: &str| {
//!     headers.read(&Clang::new("clang").folder(folder), &|name| name.starts_with("acme"))
//! };
//! let (old, new) = (read("acme-1/include")?, read("acme-2/include")?);
//! for (name, declared) in &old.functions {
//!     if let Some(other) = new.functions.get(name) {
//!         if let Err(difference) = same(declared, other) {
//!             println!("{name}: {difference}"); // acmeOpen: 1 -> 2 arguments
//!         }
//!     }
//! }
//! # Ok::<(), gpustub_headers::Error>(())
//! ```

mod clang;
mod compare;
mod declared;
mod fields;
mod known;
mod types;

pub use clang::{Clang, Error, LIMIT, output};
pub use compare::{counts_others, same, takes_null};
pub use declared::{Headers, Version, functions};
pub use fields::{Leaf, is_handle, leaves};
pub use types::{Declared, Member, Type, TypeId, Types, VOID};
