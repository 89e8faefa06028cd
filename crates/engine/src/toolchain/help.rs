//! Next steps after a missing or failing compiler, by target.

use gpustub_core::target::Target;

use super::msvc::Family;
use super::tool::underscores;

/// Help for a machine without a C compiler. `cross`: the target is not this machine.
pub fn compiler(target: &Target, cross: bool) -> String {
    let variable = underscores(&target.triple);
    if target.env == "msvc" {
        return visual_studio(target, cross);
    }
    if !cross {
        return native_compiler(target);
    }
    if target.os == "windows" && target.triple.ends_with("-gnu") && !cfg!(windows) {
        let arch = target.arch.replace("_", "-");
        return format!(
            "install mingw-w64: Debian, Ubuntu: apt install gcc-mingw-w64-{arch}; Fedora: dnf install mingw64-gcc; \
             or set CC_{variable}"
        );
    }
    // No package of a distribution is for a host of Windows.
    if target.os != "linux" || target.env != "gnu" || cfg!(windows) {
        return format!("install one for that system, and set CC_{variable} to it");
    }
    let short = match target.arch.as_str() {
        "powerpc64" => "powerpc64le-linux-gnu".to_owned(),
        "x86" => "i686-linux-gnu".to_owned(),
        "arm" => "arm-linux-gnueabihf".to_owned(),
        arch => format!("{arch}-linux-gnu"),
    };
    format!(
        "install one: Debian, Ubuntu: apt install gcc-{}; Fedora: dnf install gcc-{short}; \
         or set CC_{variable}",
        short.replace("_", "-"),
    )
}

fn native_compiler(target: &Target) -> String {
    let packages = match target.os.as_str() {
        "windows" => {
            "MSYS2 (https://www.msys2.org): pacman -S mingw-w64-x86_64-gcc, with its mingw64\\bin in PATH"
        }
        _ => {
            "Debian, Ubuntu: apt install gcc libc6-dev; Fedora: dnf install gcc; \
             Alpine: apk add gcc musl-dev; FreeBSD: pkg install llvm"
        }
    };
    format!("install one: {packages}; or set CC")
}

/// Help for a compiler whose objects are for another target.
pub(super) fn other_compiler(target: &Target) -> String {
    if target.env == "msvc" {
        return visual_studio(target, true);
    }
    format!(
        "set CC_{} to a compiler for it",
        underscores(&target.triple)
    )
}

fn visual_studio(target: &Target, cross: bool) -> String {
    let variable = underscores(&target.triple);
    if cross {
        return format!(
            "set CC_{variable} to clang-cl, or to `clang` with CFLAGS_{variable}=--target={}; its \
             headers come from the Windows SDK",
            target.triple
        );
    }
    format!(
        "install the Build Tools for Visual Studio with \"Desktop development with C++\"; or set \
         CC_{variable} to clang-cl"
    )
}

/// Help for a failure with this output, if its cause is a common one.
pub(super) fn failure(target: &Target, family: Family, output: &str) -> Option<String> {
    // Versions before 16.8 of Visual Studio 2019 say so in their language, with this number.
    if family == Family::Cl && output.contains("D9002") && output.contains("std:c11") {
        return Some("update Visual Studio: C11 needs 2019, version 16.8, or later".to_owned());
    }
    let header = [
        "stddef.h", "stdint.h", "stdlib.h", "string.h", "errno.h", "dlfcn.h",
    ]
    .into_iter()
    .find(|header| {
        output.contains(&format!("{header}: No such file"))
            || output.contains(&format!("'{header}' file not found"))
            || (family == Family::Cl
                && output.contains("C1083")
                && output.contains(&format!("'{header}'")))
    })?;
    if target.env == "msvc" {
        let option = match family {
            Family::Gnu => "-isystem",
            Family::Cl | Family::ClangCl => "/imsvc",
        };
        return Some(format!(
            "the headers of the Windows SDK ({header}) are missing: the installer of Visual Studio has it as \
             \"Windows SDK\"; elsewhere cargo-xwin (https://github.com/rust-cross/cargo-xwin) fetches them, or name \
             their directories: CFLAGS_{}=\"{option} <directory>\"",
            underscores(&target.triple)
        ));
    }
    if target.os == "windows" {
        return Some(format!(
            "the headers of mingw-w64 ({header}) are missing: Debian, Ubuntu: mingw-w64-x86-64-dev; Fedora: \
             mingw64-headers"
        ));
    }
    Some(format!(
        "the C library's headers ({header}) for {} are missing: Debian, Ubuntu: libc6-dev; \
         Fedora: glibc-devel; Alpine: musl-dev",
        target.triple
    ))
}
