//! The subcommand and build scripts on Windows, run by wine with the cargo and rustc of Windows. What wine does is not what
//! Windows does in each detail; no machine with Windows runs these tests.

mod commands;
mod host;
mod interrupt;
mod packages;
mod project;
