//! Machines of images that can be edited, as in Rust's target triples.

/// Machines of ELF images.
pub const ELF_MACHINES: &[&str] = &["x86_64", "aarch64", "riscv64", "powerpc64le", "loongarch64"];

/// Machines of images for Windows.
pub const PE_MACHINES: &[&str] = &["x86_64"];
