//! rustc as the assembler: each machine with Rust has it, and not every one with the compiler of MSVC another.

use crate::target::Target;

/// `stubs.rs`, which makes rustc assemble `stubs.s`. On Windows a symbol says so: rustc names what a DLL exports, and a GNU
/// ld before 2.40 would warn of each directive that hides a name.
pub(super) fn rustc_source(target: &Target) -> String {
    let syntax = match target.arch.as_str() {
        "x86_64" => "att_syntax, ",
        _ => "",
    };
    let mark = match target.os.as_str() {
        "windows" => "\"gpustub_by_rustc = 1\", ",
        _ => "",
    };
    format!(
        "#![no_std]\ncore::arch::global_asm!({mark}include_str!(\"stubs.s\"), options({syntax}raw));\n"
    )
}
