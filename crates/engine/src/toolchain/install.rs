//! The next step where a compiler is missing.

use gpustub_core::target::Target;

/// A triple as a part of variables' names.
pub(super) fn underscores(triple: &str) -> String {
    triple.replace("-", "_").replace(".", "_")
}

/// Packages with a C compiler for a target.
pub(super) fn install_help(target: &Target, cross: bool) -> String {
    if !cross {
        return "install one: Debian, Ubuntu: apt install gcc libc6-dev; Fedora: dnf install gcc; \
                Alpine: apk add gcc musl-dev; FreeBSD: pkg install llvm; or set CC"
            .to_owned();
    }
    let variable = underscores(&target.triple);
    let short = match (target.os.as_str(), target.env.as_str()) {
        ("linux", "gnu") => linux_name(&target.arch),
        ("windows", "gnu") => {
            let arch = target.arch.replace("_", "-");
            return format!(
                "install mingw-w64: Debian, Ubuntu: apt install gcc-mingw-w64-{arch}; Fedora: dnf install mingw64-gcc; \
                 or set CC_{variable}"
            );
        }
        _ => return format!("install one for that system, and set CC_{variable} to it"),
    };
    format!(
        "install one: Debian, Ubuntu: apt install gcc-{}; Fedora: dnf install gcc-{short}; \
         or set CC_{variable}",
        short.replace("_", "-"),
    )
}

/// Name of the architecture in names of packages.
fn linux_name(arch: &str) -> String {
    match arch {
        "powerpc64" => "powerpc64le-linux-gnu".to_owned(),
        "x86" => "i686-linux-gnu".to_owned(),
        "arm" => "arm-linux-gnueabihf".to_owned(),
        arch => format!("{arch}-linux-gnu"),
    }
}
