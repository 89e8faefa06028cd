//! rustc as the assembler: each machine with Rust has it, and not every one with the compiler of MSVC another.

use crate::target::Target;

/// `stubs.rs`, which makes rustc assemble `stubs.s`.
pub(super) fn rustc_source(target: &Target) -> String {
    let syntax = match target.arch.as_str() {
        "x86_64" => "att_syntax, ",
        _ => "",
    };
    format!(
        "#![no_std]\ncore::arch::global_asm!(include_str!(\"stubs.s\"), options({syntax}raw));\n"
    )
}
