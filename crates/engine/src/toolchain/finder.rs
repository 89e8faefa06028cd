//! The choice of the tools, as the `cc` crate makes it.

use std::path::Path;

use gpustub_core::diag::{COMPILER_ERROR, MISSING_COMPILER};
use gpustub_core::target::Target;

use super::help;
use super::tool::underscores;
use crate::error::Error;

/// Configures `cc` to select the tools.
pub(super) fn finder(target: &Target, host: &str, scratch: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .target(&target.triple)
        .host(host)
        .out_dir(scratch)
        // Bound calls pass through assembly only, so the compile time of the C code matters most where the
        // program is not optimised either (Toolchain::optimised). Level 0 takes 2/3 of what g takes with
        // GCC 12, and 1/8 with clang 14.
        .opt_level(0)
        .debug(false)
        .warnings(false)
        .pic(target.env != "msvc")
        .inherit_rustflags(false)
        .cargo_metadata(false)
        .cargo_warnings(false);
    if target.env != "msvc" {
        build.flag("-g0");
    }
    build
}

/// Error of a compiler for another target than this.
pub(super) fn other_compiler(target: &Target, program: &Path, reason: &str) -> Error {
    let message = format!("the C compiler `{}` {reason}", program.display());
    Error::new(&COMPILER_ERROR, message).help(help::other_compiler(target))
}

pub(super) fn no_tool(target: &Target, error: &cc::Error) -> Error {
    Error::new(
        &MISSING_COMPILER,
        format!("no C compiler for {} can be chosen: {error}", target.triple),
    )
    .help(format!("set CC_{} to one", underscores(&target.triple)))
}
