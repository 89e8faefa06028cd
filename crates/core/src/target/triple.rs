//! Parses target triples.

use super::Target;

/// Architecture names of triples that cargo's `cfg(target_arch)` spells differently
/// (rustc: compiler/rustc_target/src/spec/targets).
fn arch_of(name: &str) -> &str {
    match name {
        "i386" | "i586" | "i686" => "x86",
        "x86_64h" => "x86_64",
        "arm64" | "aarch64_be" | "arm64e" => "aarch64",
        _ if name.starts_with("armv") || name.starts_with("thumbv") || name == "armeb" => "arm",
        _ if name.starts_with("riscv32") => "riscv32",
        _ if name.starts_with("riscv64") => "riscv64",
        "powerpc64le" => "powerpc64",
        "mipsel" => "mips",
        "mips64el" => "mips64",
        _ => name,
    }
}

impl Target {
    /// The target of a triple such as `aarch64-unknown-linux-gnu` (for commands outside cargo).
    /// Shapes: `arch-vendor-os[-env]`, and `arch-os-env` as C compilers write it.
    pub fn from_triple(triple: &str) -> Option<Self> {
        let parts: Vec<&str> = triple.split('-').collect();
        for part in &parts {
            let is_word = part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_.".contains(&byte));
            if part.is_empty() || !is_word {
                return None;
            }
        }
        let (arch, vendor, os, env) = match parts[..] {
            [arch, os @ ("linux" | "freebsd"), env] => (arch, "", os, env),
            [arch, vendor, os] => (arch, vendor, os, ""),
            [arch, vendor, os, env] => (arch, vendor, os, env),
            _ => return None,
        };
        let (os, env) = match (os, env) {
            ("darwin", env) => ("macos", env),
            (_, "android" | "androideabi") => ("android", ""),
            // The ABI part is a cfg of its own: gnueabihf is the environment gnu.
            (os, env) => (
                os,
                ["gnu", "musl"]
                    .into_iter()
                    .find(|prefix| env.starts_with(prefix))
                    .unwrap_or(env),
            ),
        };
        Some(Self {
            triple: triple.to_owned(),
            arch: arch_of(arch).to_owned(),
            os: os.to_owned(),
            env: env.to_owned(),
            // rustc's own musl targets link libc statically by default.
            crt_static: env == "musl" && vendor == "unknown",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::{Out, OutKind, Returns};

    #[test]
    fn reads_triples() {
        for (triple, expected) in [
            ("x86_64-unknown-linux-gnu", Some("x86_64 linux gnu")),
            (
                "aarch64-unknown-linux-musl",
                Some("aarch64 linux musl static"),
            ),
            ("x86_64-alpine-linux-musl", Some("x86_64 linux musl")),
            ("x86_64-linux-gnu", Some("x86_64 linux gnu")),
            ("x86_64-unknown-freebsd", Some("x86_64 freebsd ")),
            ("x86_64-pc-windows-msvc", Some("x86_64 windows msvc")),
            ("aarch64-apple-darwin", Some("aarch64 macos ")),
            ("aarch64-linux-android", Some("aarch64 android ")),
            ("riscv64gc-unknown-linux-gnu", Some("riscv64 linux gnu")),
            ("powerpc64le-unknown-linux-gnu", Some("powerpc64 linux gnu")),
            ("armv7-unknown-linux-gnueabihf", Some("arm linux gnu")),
            ("i686-unknown-linux-gnu", Some("x86 linux gnu")),
            ("x86_64", None),
            ("", None),
            ("a--b", None),
            ("../../etc/passwd", None),
            ("a-b-c-d-e", None),
        ] {
            let words = Target::from_triple(triple).map(|target| {
                let suffix = if target.crt_static { " static" } else { "" };
                format!("{} {} {}{suffix}", target.arch, target.os, target.env)
            });
            assert_eq!(words.as_deref(), expected, "{triple}");
        }
    }

    #[test]
    fn targets_have_stubs_or_not() {
        for (triple, expected) in [
            ("x86_64-unknown-linux-gnu", true),
            ("x86_64-unknown-linux-gnux32", false),
            ("x86_64-alpine-linux-musl", true),
            ("x86_64-unknown-linux-musl", false), // static
            ("aarch64_be-unknown-linux-gnu", false),
            ("riscv64gc-unknown-linux-gnu", true),
            ("riscv64gc-unknown-freebsd", false),
            ("riscv32gc-unknown-linux-gnu", false),
            ("powerpc64le-unknown-linux-gnu", true),
            ("powerpc64-unknown-linux-gnu", false),
            ("s390x-unknown-linux-gnu", true),
            ("loongarch64-unknown-linux-gnu", true),
            ("i686-unknown-linux-gnu", true),
            ("armv7-unknown-linux-gnueabihf", true),
            ("armv7-unknown-linux-gnueabi", false),
            ("arm-unknown-linux-gnueabihf", false), // ARMv6
            ("thumbv7neon-unknown-linux-gnueabihf", true),
        ] {
            let target = Target::from_triple(triple).expect("a triple");
            assert_eq!(target.check().is_none(), expected, "{triple}");
        }
    }

    #[test]
    fn directories_are_those_of_the_architecture() {
        fn local_dir(triple: &str, dir: &str) -> String {
            let target = Target::from_triple(triple).expect("a triple");
            target.local_dir(dir)
        }
        let debian_dir = "/usr/lib/{arch}-linux-gnu/nvidia";
        for (triple, expected) in [
            (
                "x86_64-unknown-linux-gnu",
                "/usr/lib/x86_64-linux-gnu/nvidia",
            ),
            (
                "powerpc64le-unknown-linux-gnu",
                "/usr/lib/powerpc64le-linux-gnu/nvidia",
            ),
            ("i686-unknown-linux-gnu", "/usr/lib/i386-linux-gnu/nvidia"),
            (
                "armv7-unknown-linux-gnueabihf",
                "/usr/lib/arm-linux-gnueabihf/nvidia",
            ),
            (
                "riscv64gc-unknown-linux-gnu",
                "/usr/lib/riscv64-linux-gnu/nvidia",
            ),
        ] {
            assert_eq!(local_dir(triple, debian_dir), expected);
        }
        assert_eq!(
            local_dir("i686-unknown-linux-gnu", "/usr/lib64/nvidia"),
            "/usr/lib/nvidia"
        );
        assert_eq!(
            local_dir("s390x-unknown-linux-gnu", "/usr/lib64"),
            "/usr/lib64"
        );
    }

    /// An out-parameter.
    fn out(arg: u8, position: u8) -> Out {
        Out {
            arg,
            position,
            kind: OutKind::Zero(4),
        }
    }

    /// curandCreatePoissonDistribution(double, out); a function with the same arguments that returns 12 bytes.
    #[test]
    fn out_parameters_follow_floats_and_the_address_of_a_result() {
        let small = Returns::ZeroedStruct(12);
        for (triple, plain, with_result) in [
            ("x86_64-pc-windows-gnu", 1, 2),
            ("aarch64-pc-windows-gnullvm", 0, 0),
            ("x86_64-unknown-linux-gnu", 0, 0),
            ("aarch64-unknown-linux-gnu", 0, 0),
            ("i686-unknown-linux-gnu", 0, 1),
            ("s390x-unknown-linux-gnu", 0, 1),
        ] {
            let target = Target::from_triple(triple).expect("a triple");
            let word = |returns| target.argument_word(out(0, 1), &[], returns);
            assert_eq!(word(&Returns::Status), plain, "{triple}");
            assert_eq!(word(&small), with_result, "{triple}");
        }
    }

    #[test]
    fn structs_are_returned_by_address_or_in_registers() {
        for (triple, small, medium, large, floats) in [
            ("x86_64-pc-windows-gnu", false, true, true, true),
            ("aarch64-pc-windows-gnullvm", false, false, true, false),
            ("x86_64-unknown-linux-gnu", false, false, true, true),
            ("aarch64-unknown-linux-gnu", false, false, true, false),
            ("i686-unknown-linux-gnu", true, true, true, true),
            ("s390x-unknown-linux-gnu", true, true, true, true),
            ("armv7-unknown-linux-gnueabihf", false, true, true, false),
            ("riscv64gc-unknown-linux-gnu", false, false, true, true),
        ] {
            let target = Target::from_triple(triple).expect("a triple");
            for (returns, is_by_address) in [
                (Returns::ZeroedStruct(4), small),
                (Returns::ZeroedStruct(12), medium),
                (Returns::ZeroedStruct(17), large),
                (Returns::ZeroedHfa(24), floats),
            ] {
                let result = target.result(&returns);
                assert_eq!(
                    result != Returns::Null,
                    is_by_address,
                    "{triple} {returns:?}"
                );
            }
        }
    }

    /// clCreateBuffer(context, cl_mem_flags of 64 bits, size, host_ptr, errcode_ret).
    #[test]
    fn arguments_of_64_bits_are_two_words() {
        for (triple, expected) in [
            ("x86_64-unknown-linux-gnu", 4),
            ("s390x-unknown-linux-gnu", 4),
            ("i686-unknown-linux-gnu", 5),
            ("armv7-unknown-linux-gnueabihf", 6), // r0, r2 and r3, the stack
        ] {
            let target = Target::from_triple(triple).expect("a triple");
            let word = |wide| target.argument_word(out(4, 4), wide, &Returns::Null);
            assert_eq!(word(&[1]), expected, "{triple}");
            assert_eq!(word(&[]), 4, "{triple}");
        }
    }
}
