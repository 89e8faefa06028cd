//! Targets that device links are refused for, with a compiler that only records its command line.
#![cfg(all(unix, feature = "device-link"))]

#[path = "tools/package.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod package;
#[path = "tools/toolkit.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod toolkit;
#[path = "../../crates/engine/tests/tools/mod.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod tools;

use package::Package;
use toolkit::{MANIFEST, directives, expect, log, package};

const MODULE: &str = "schema = 1\n[device-link.my-waves]\ntype = \"module\"\nseparable = false\n\
                      sources = [\"cuda/*.cu\"]\n";

#[test]
fn device_links_are_refused_for_other_systems() {
    let message = "error[unsupported-target]: device links are for Linux targets, not for x86_64-pc-windows-msvc";
    for (name, manifest) in [
        ("windows", MANIFEST),
        ("windows-module", &format!("{MODULE}archs = [\"sm_80\"]\n")),
    ] {
        let package = windows_package(name, manifest);
        expect(&package.error(), &[message, "`optional = true` leaves"]);
        assert_eq!(log(&package), "");
    }
    let manifest = format!("{MANIFEST}optional = true\n");
    let directives = directives(&windows_package("windows-optional", &manifest));
    let warning = format!("cargo::warning=device-link.waves is left out: {message}");
    assert!(directives.contains(&warning), "{directives:#?}");
}

/// A package that is built for Windows.
#[test]
fn static_programs_are_refused() {
    let mut library = package("static", MANIFEST);
    library.set("CARGO_CFG_TARGET_FEATURE", "crt-static,fxsr");
    expect(
        &library.error(),
        &[
            "error[static-libc]: programs for x86_64-unknown-linux-gnu are static (`crt-static`)",
            "help: build with `-C target-feature=-crt-static`",
        ],
    );
    // Before the linker makes a shared library for static programs.
    let stubs = "[stub.cudart]\nheader-version = \"13\"\ntype = \"shared\"\n";
    let manifest = format!("{MANIFEST}type = \"shared\"\n{stubs}");
    let mut shared = package("static-shared", &manifest);
    shared.set("CARGO_CFG_TARGET_FEATURE", "crt-static,fxsr");
    expect(
        &shared.error(),
        &[
            "error[static-libc]: programs for x86_64-unknown-linux-gnu are static (`crt-static`), and cannot load the \
             shared stubs",
            "help: build with `-C target-feature=-crt-static`",
        ],
    );
    // A module has no host code.
    let mut module = package("static-module", &format!("{MODULE}archs = [\"sm_80\"]\n"));
    module.set("CARGO_CFG_TARGET_FEATURE", "crt-static,fxsr");
    module.output();
}

fn windows_package(name: &str, manifest: &str) -> Package {
    let mut package = package(name, manifest);
    for (name, value) in [
        ("TARGET", "x86_64-pc-windows-msvc"),
        ("CARGO_CFG_TARGET_OS", "windows"),
        ("CARGO_CFG_TARGET_ENV", "msvc"),
    ] {
        package.set(name, value);
    }
    package
}
