//! Sets the soname of the shared library, by which linked programs search for it.

#![expect(
    clippy::disallowed_methods,
    reason = "reads only variables that cargo sets for this script"
)]

use std::env::var;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let major = var("CARGO_PKG_VERSION_MAJOR").unwrap_or_default();
    let minor = var("CARGO_PKG_VERSION_MINOR").unwrap_or_default();
    // SemVer: below 1.0, each minor version may change the ABI.
    let version = match &major[..] {
        "0" => format!("0.{minor}"),
        _ => major,
    };
    let argument = if var("CARGO_CFG_TARGET_VENDOR").as_deref() == Ok("apple") {
        format!("-Wl,-install_name,@rpath/libgpurpc.{version}.dylib")
    } else if var("CARGO_CFG_TARGET_FAMILY").as_deref() == Ok("unix") {
        format!("-Wl,-soname,libgpurpc.so.{version}")
    } else {
        return;
    };
    println!("cargo::rustc-cdylib-link-arg={argument}");
}
