//! Machine and tools that the trials run on.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{succeed, which};

/// Whether the tests run as root.
pub fn is_root() -> Result<bool> {
    Ok(succeed(Command::new("id").arg("-u"))?.stdout == "0\n")
}

/// Directory of the linkers for all machines: a cross compiler searches for them under its own
/// prefix, and in directories that `-B` names.
pub fn linkers(dir: &Path) -> Result<PathBuf> {
    let directory = dir.join("linkers");
    fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    // lld 14 relaxes nothing on RISC-V, and refuses objects that ask for it.
    for (name, names) in [
        ("ld.lld", &["ld.lld-19", "ld.lld"][..]),
        ("ld.mold", &["ld.mold"]),
    ] {
        if let Some(found) = names.iter().find_map(|name| which(name).ok()) {
            symlink(found, directory.join(name))
                .map_err(|e| format!("{}: {e}", directory.display()))?;
        }
    }
    Ok(directory)
}

/// Returns whether this processor has a feature that cases name.
pub fn cpu_has(feature: &str) -> Result<bool> {
    #[cfg(target_arch = "x86_64")]
    match feature {
        "avx2" => return Ok(std::arch::is_x86_feature_detected!("avx2")),
        "avx512f" => return Ok(std::arch::is_x86_feature_detected!("avx512f")),
        _ => {}
    }
    Err(format!("traps/cases.toml names an unknown processor feature: {feature}").into())
}
