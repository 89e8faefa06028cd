//! Sets the soname of the shared library, by which linked programs search for it.

#![expect(
    clippy::disallowed_methods,
    reason = "reads only variables that cargo sets for this script"
)]

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let part = |name: &str| var(format!("CARGO_PKG_VERSION_{name}")).unwrap_or_default();
    let (major, minor) = (part("MAJOR"), part("MINOR"));
    // SemVer: below 1.0, each minor version may change the ABI.
    let version = match &major[..] {
        "0" => format!("0.{minor}"),
        _ => major,
    };
    let is = |name, value| var(name).is_ok_and(|set| set == value);
    let argument = if is("CARGO_CFG_TARGET_VENDOR", "apple") {
        format!("-Wl,-install_name,@rpath/libgpurpc.{version}.dylib")
    } else if is("CARGO_CFG_TARGET_FAMILY", "unix") {
        format!("-Wl,-soname,libgpurpc.so.{version}")
    } else {
        return;
    };
    println!("cargo::rustc-cdylib-link-arg={argument}");
}
