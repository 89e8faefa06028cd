//! The process's environment: the only module that reads it.

use std::ffi::OsString;

/// A variable, if it is set and not empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the ban is for what runs in build scripts"
)]
pub fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}
