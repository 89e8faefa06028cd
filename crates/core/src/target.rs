//! The machine that the stubs are built for.

#[cfg(feature = "tools")]
mod triple;

use crate::diag::{Diagnostic, STATIC_LIBC, UNSUPPORTED_TARGET};
use crate::text::join;

/// A compilation target, by the values that cargo gives build scripts (`CARGO_CFG_TARGET_*`).
#[derive(Debug, Clone)]
#[cfg_attr(feature = "tools", derive(PartialEq, Eq))]
pub struct Target {
    /// The full triple, for messages.
    pub triple: String,
    /// `CARGO_CFG_TARGET_ARCH`.
    pub arch: String,
    /// `CARGO_CFG_TARGET_OS`.
    pub os: String,
    /// `CARGO_CFG_TARGET_ENV`.
    pub env: String,
    /// Whether libc is linked statically (`crt-static`).
    pub crt_static: bool,
}

/// The targets that have trampolines, for messages.
pub const SUPPORTED: &[&str] = &[
    "x86_64 Linux and FreeBSD",
    "aarch64 Linux and FreeBSD",
    "riscv64 Linux",
    "powerpc64le Linux",
    "s390x Linux",
    "i686 Linux",
];

impl Target {
    /// Names of the target's directories below `targets` of a CUDA toolkit. On AArch64 those of servers
    /// (Server Base System Architecture) and of Jetson.
    pub(crate) fn cuda_targets(&self) -> Vec<String> {
        let mut names = Vec::new();
        if self.arch == "aarch64" {
            names.push("sbsa-linux".to_owned());
        }
        names.push(format!("{}-linux", self.arch));
        names
    }

    /// Error if stubs cannot be built for this target.
    pub fn check(&self) -> Option<Diagnostic> {
        // Other ABIs of a machine share the architecture's name.
        let arch = match self.arch.as_str() {
            "x86_64" => !self.triple.ends_with("x32"),
            "aarch64" => !self.triple.starts_with("aarch64_be") && !self.triple.ends_with("ilp32"),
            "riscv64" | "s390x" | "x86" => true,
            "powerpc64" => self.triple.starts_with("powerpc64le"),
            _ => false,
        };
        let os = match self.os.as_str() {
            "linux" => ["gnu", "musl"].contains(&self.env.as_str()),
            "freebsd" => ["x86_64", "aarch64"].contains(&self.arch.as_str()),
            _ => false,
        };
        if !arch || !os {
            return Some(
                Diagnostic::error(
                    &UNSUPPORTED_TARGET,
                    format!("unsupported target {}: no trampolines", self.triple),
                )
                .help(format!("supported are {}", join(SUPPORTED, ", "))),
            );
        }
        if self.crt_static && self.env == "musl" {
            return Some(
                Diagnostic::error(
                    &STATIC_LIBC,
                    format!(
                        "{} links libc statically, and a statically linked musl program cannot \
                         load a library at run time",
                        self.triple
                    ),
                )
                .help("build with `-C target-feature=-crt-static` or for a gnu target"),
            );
        }
        None
    }

    /// Error if device code cannot be linked for this target.
    #[cfg(feature = "device-link")]
    pub fn check_device_link(&self) -> Option<Diagnostic> {
        if self.os == "linux" {
            return None;
        }
        let message = format!(
            "device links are for Linux targets, not for {}",
            self.triple
        );
        let help = "depend on this package for Linux only ([target.….dependencies]); or `optional = true` \
                    leaves the library out";
        Some(Diagnostic::error(&UNSUPPORTED_TARGET, message).help(help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_targets() {
        for (triple, code) in [
            ("x86_64-unknown-linux-gnu", None),
            ("aarch64-unknown-linux-gnu", None),
            ("x86_64-alpine-linux-musl", None),
            ("aarch64-unknown-freebsd", None),
            ("x86_64-unknown-linux-musl", Some("static-libc")),
            ("x86_64-unknown-linux-gnux32", Some("unsupported-target")),
            ("aarch64_be-unknown-linux-gnu", Some("unsupported-target")),
            (
                "aarch64-unknown-linux-gnu_ilp32",
                Some("unsupported-target"),
            ),
            ("riscv64gc-unknown-linux-gnu", Some("unsupported-target")),
            ("x86_64-pc-windows-msvc", Some("unsupported-target")),
            ("aarch64-apple-darwin", Some("unsupported-target")),
            ("aarch64-linux-android", Some("unsupported-target")),
        ] {
            let found = Target::from_triple(triple)
                .unwrap()
                .check()
                .map(|d| d.code.id);
            assert_eq!(found, code, "{triple}");
        }
    }

    #[test]
    fn static_glibc_is_accepted() {
        // A static glibc program can dlopen on a machine with the glibc that it was linked with,
        // and gets an error value elsewhere.
        let mut target = Target::from_triple("x86_64-unknown-linux-gnu").unwrap();
        target.crt_static = true;
        assert_eq!(target.check(), None);
    }
}
