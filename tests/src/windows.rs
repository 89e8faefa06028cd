//! Targets of rustc for Windows (x86-64).

use std::ffi::OsString;

use crate::wine::TRIPLE;
use crate::{Result, msvc, repository};

/// Triple of the target with the tools of LLVM.
pub const LLVM_TRIPLE: &str = "x86_64-pc-windows-gnullvm";

/// Triples with stubs.
pub const TRIPLES: [&str; 3] = [TRIPLE, LLVM_TRIPLE, msvc::TRIPLE];

/// Variables with which cargo builds programs for a triple.
pub fn build_variables(triple: &str) -> Result<Vec<(&'static str, OsString)>> {
    if triple == msvc::TRIPLE {
        return msvc::variables();
    }
    if triple != LLVM_TRIPLE {
        return Ok(Vec::new());
    }
    let clang = repository().join("tests/programs/windows/x86_64-w64-mingw32-clang");
    Ok(vec![
        (
            "CARGO_TARGET_X86_64_PC_WINDOWS_GNULLVM_LINKER",
            clang.clone().into(),
        ),
        ("CC_x86_64_pc_windows_gnullvm", clang.into()),
    ])
}
