//! The machine that the stubs are built for.

#[cfg(feature = "tools")]
mod triple;

use crate::diag::{Diagnostic, STATIC_LIBC, UNSUPPORTED_TARGET};
use crate::library::{Out, Returns};
use crate::text::join;

/// A compilation target, by the values that cargo gives build scripts (`CARGO_CFG_TARGET_*`).
#[derive(Debug, Clone, PartialEq, Eq)]
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
    "x86_64 and aarch64 for Linux and FreeBSD",
    "x86_64 and aarch64 for Windows",
    "x86_64 and aarch64 for macOS",
    "riscv64, powerpc64le, s390x, loongarch64, i686 and hard-float armv7 for Linux",
];

impl Target {
    /// Names of the target's directories below `targets` of a CUDA toolkit. On AArch64 those of servers
    /// (Server Base System Architecture) and of Jetson; on POWER up to CUDA 12.4.
    pub(crate) fn cuda_targets(&self) -> Vec<String> {
        match self.arch.as_str() {
            "aarch64" => vec!["sbsa-linux".to_owned(), "aarch64-linux".to_owned()],
            "powerpc64" => vec!["ppc64le-linux".to_owned()],
            arch => vec![format!("{arch}-linux")],
        }
    }

    /// A manifest's directory on the target: `{arch}-linux-gnu` is Debian's directory of the architecture
    /// (wiki.debian.org/Multiarch/Tuples), and `/usr/lib64` is `/usr/lib` for 32 bits.
    pub(crate) fn local_dir(&self, dir: &str) -> String {
        let multiarch = match self.arch.as_str() {
            "powerpc64" => "powerpc64le-linux-gnu",
            "x86" => "i386-linux-gnu",
            "arm" => "arm-linux-gnueabihf",
            _ => "{arch}-linux-gnu",
        };
        let mut dir = dir
            .replace("{arch}-linux-gnu", multiarch)
            .replace("{arch}", &self.arch);
        if !self.has_64_bits() && dir.starts_with("/usr/lib64") {
            dir = dir.replace("/usr/lib64", "/usr/lib");
        }
        dir
    }

    /// Whether a word has 64 bits.
    pub(crate) fn has_64_bits(&self) -> bool {
        !["x86", "arm"].contains(&self.arch.as_str())
    }

    /// Whether a struct of three or four floats or doubles is returned in registers (AAPCS64 6.9, AAPCS32 7.1.1, ELFv2
    /// 2.2.5), rather than through a hidden pointer.
    pub(crate) fn returns_floats_in_registers(&self) -> bool {
        ["aarch64", "powerpc64", "arm"].contains(&self.arch.as_str())
    }

    /// Whether a struct of this size is returned through a hidden pointer: i386 psABI 2.3.3, s390x ELF ABI 1.2.5,
    /// AAPCS32 6.5, "x64 calling convention" (learn.microsoft.com), and as in [`Self::returns_floats_in_registers`].
    fn returns_struct_by_address(&self, size: u32) -> bool {
        match self.arch.as_str() {
            "x86_64" if self.os == "windows" => ![1, 2, 4, 8].contains(&size),
            "x86" | "s390x" => true,
            "arm" => size > 4,
            _ => size > 16,
        }
    }

    /// Class of a result, where structs in registers are zero as a number is.
    pub(crate) fn result(&self, returns: &Returns) -> Returns {
        match *returns {
            Returns::ZeroedHfa(_) if self.returns_floats_in_registers() => Returns::Null,
            Returns::ZeroedHfa(size) | Returns::ZeroedStruct(size) => {
                if self.returns_struct_by_address(size) {
                    Returns::ZeroedStruct(size)
                } else {
                    Returns::Null
                }
            }
            _ => returns.clone(),
        }
    }

    /// Index of the word of an out-parameter, where the arguments `wide` have 64 bits. With 32 bits these take two
    /// words, on Arm an even one and the next (AAPCS32 6.4, stage C.3). The hidden pointer of a result is before all
    /// arguments, except on AArch64, where it has a register of its own.
    pub(crate) fn argument_word(&self, out: Out, wide: &[u8], returns: &Returns) -> usize {
        let is_by_address = matches!(self.result(returns), Returns::ZeroedStruct(_));
        let first = usize::from(is_by_address && self.arch != "aarch64");
        first + self.argument_word_after(first, out, wide)
    }

    /// [`Self::argument_word`] after the `first` word of the arguments.
    fn argument_word_after(&self, first: usize, out: Out, wide: &[u8]) -> usize {
        if self.os == "windows" && self.arch == "x86_64" {
            return usize::from(out.position);
        }
        let argument = usize::from(out.arg);
        if self.has_64_bits() {
            return argument;
        }
        let mut word = 0;
        for index in 0..=argument {
            let is_wide = wide.iter().any(|&number| usize::from(number) == index);
            if is_wide && self.arch == "arm" {
                word += (first + word) % 2;
            }
            if index < argument {
                word += if is_wide { 2 } else { 1 };
            }
        }
        word
    }

    /// Error if stubs cannot be built for this target.
    pub fn check(&self) -> Option<Diagnostic> {
        // Other ABIs of a machine share the architecture's name.
        let is_known_arch = match self.arch.as_str() {
            "x86_64" => !self.triple.ends_with("x32"),
            "aarch64" => !self.triple.starts_with("aarch64_be") && !self.triple.ends_with("ilp32"),
            "riscv64" | "s390x" | "x86" | "loongarch64" => true,
            "arm" => {
                let is_v7 = self.triple.starts_with("armv7") || self.triple.starts_with("thumbv7");
                is_v7 && self.triple.ends_with("hf")
            }
            "powerpc64" => self.triple.starts_with("powerpc64le"),
            _ => false,
        };
        let is_known_os = match self.os.as_str() {
            "linux" => ["gnu", "musl"].contains(&self.env.as_str()),
            "freebsd" => ["x86_64", "aarch64"].contains(&self.arch.as_str()),
            "windows" => {
                ["x86_64", "aarch64"].contains(&self.arch.as_str())
                    && ["gnu", "msvc"].contains(&self.env.as_str())
            }
            // Not arm64e, which signs pointers.
            "macos" => ["x86_64-apple-darwin", "aarch64-apple-darwin"].contains(&&*self.triple),
            _ => false,
        };
        if !is_known_arch || !is_known_os {
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

    /// Error if stubs cannot be a shared library for this target.
    pub fn check_shared_stubs(&self) -> Option<Diagnostic> {
        if ["windows", "macos"].contains(&self.os.as_str()) {
            let message = format!("stubs cannot be a shared library for {}", self.triple);
            let help = "leave out `type`: static stubs";
            return Some(Diagnostic::error(&UNSUPPORTED_TARGET, message).help(help));
        }
        self.crt_static.then(|| {
            let message = format!(
                "programs for {} are static (`crt-static`), and cannot load the shared stubs of this package",
                self.triple
            );
            let help = "build with `-C target-feature=-crt-static`";
            Diagnostic::error(&STATIC_LIBC, message).help(help)
        })
    }

    /// Error if device code cannot be linked for this target. `has_host_code`: programs are linked with it,
    /// which is not so for modules.
    #[cfg(feature = "device-link")]
    pub fn check_device_link(&self, has_host_code: bool) -> Option<Diagnostic> {
        if self.os == "linux" {
            return (self.crt_static && has_host_code).then(|| {
                // A static-pie needs the library all the same, nobody loads it, and the first constructor of the
                // host code crashes (glibc 2.36, rustc 1.95).
                let message = format!(
                    "programs for {} are static (`crt-static`), and the host part of device code \
                     needs libstdc++, which a static program cannot load",
                    self.triple
                );
                let help = "build with `-C target-feature=-crt-static`; or `optional = true` leaves the \
                            library out";
                Diagnostic::error(&STATIC_LIBC, message).help(help)
            });
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
        for (triple, expected) in [
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
            ("sparc64-unknown-linux-gnu", Some("unsupported-target")),
            ("x86_64-pc-windows-gnu", None),
            ("x86_64-pc-windows-gnullvm", None),
            ("x86_64-pc-windows-msvc", None),
            ("aarch64-pc-windows-gnullvm", None),
            ("aarch64-pc-windows-msvc", None),
            ("arm64ec-pc-windows-msvc", Some("unsupported-target")),
            ("i686-pc-windows-gnu", Some("unsupported-target")),
            ("x86_64-pc-windows-msv", Some("unsupported-target")),
            ("x86_64-apple-darwin", None),
            ("aarch64-apple-darwin", None),
            ("arm64e-apple-darwin", Some("unsupported-target")),
            ("aarch64-apple-ios", Some("unsupported-target")),
            ("aarch64-linux-android", Some("unsupported-target")),
        ] {
            let error = Target::from_triple(triple).unwrap().check();
            assert_eq!(error.map(|error| error.code.id), expected, "{triple}");
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

    #[cfg(feature = "device-link")]
    #[test]
    fn static_programs_have_no_device_link() {
        for triple in ["x86_64-unknown-linux-gnu", "x86_64-unknown-linux-musl"] {
            let mut target = Target::from_triple(triple).unwrap();
            target.crt_static = true;
            let error = target.check_device_link(true).unwrap();
            assert_eq!(error.code.id, "static-libc", "{triple}");
            assert_eq!(target.check_device_link(false), None, "{triple}");
            target.crt_static = false;
            assert_eq!(target.check_device_link(true), None, "{triple}");
        }
    }
}
