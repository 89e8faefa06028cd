//! Reads the declarations of C headers, and compares two versions of them.
//!
//! [`Headers::read`] runs clang to find the functions that a library's headers declare, by the
//! symbol names that a program compiled with them refers to, and [`check_call`] checks whether a function
//! as one version declares it can be called as another declares it. clang only parses and lays out
//! types: no code of a header is run, and no file is written. Any contents of the headers give a
//! value or an [`Error`]: no panic, and no more memory than a multiple of [`MAX_OUTPUT`].
//!
//! ```no_run
//! use gpustub_cdecl::{Clang, Headers, check_call};
//!
//! let headers = Headers::including(["acme.h"]);
//! let read = |directory: &str| {
//!     headers.read(&Clang::new("clang").directory(directory), &|name| name.starts_with("acme"))
//! };
//! let (old, new) = (read("acme-1/include")?, read("acme-2/include")?);
//! for (name, old_function) in &old.functions {
//!     if let Some(new_function) = new.functions.get(name) {
//!         if let Err(difference) = check_call(old_function, new_function) {
//!             println!("{name}: {difference}"); // acmeOpen: 1 -> 2 arguments
//!         }
//!     }
//! }
//! # Ok::<(), gpustub_cdecl::Error>(())
//! ```

mod clang;
mod compare;
mod fields;
mod headers;
mod known;
mod prototypes;
mod results;
mod rules;
mod types;

pub use clang::{Clang, Error, MAX_OUTPUT, output};
pub use compare::enums::counts_others;
pub use compare::{
    Difference, DifferenceKind, Reserved, check_call, check_call_with_zeroed_reserved,
    check_takes_null, check_value, differences,
};
pub use fields::{Leaf, is_handle, leaves};
pub use headers::{Declarations, Headers, functions};
pub use known::packages_of;
pub use prototypes::Prototype;
pub use results::{ResultClass, Results};
pub use rules::{Guard, Mechanism, Pattern, Rules, UntypedPointees};
pub use types::{DeclaredFunction, Member, Type, TypeId, Types, VOID};
