//! Stubs of a package with device code.
#![cfg(all(unix, feature = "device-link"))]

#[path = "tools/package.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod package;
#[path = "tools/toolkit.rs"]
#[allow(dead_code, reason = "other tests need the rest of it")]
mod toolkit;
#[allow(dead_code, reason = "other tests need the rest of them")]
#[path = "../../crates/engine/tests/tools/mod.rs"]
mod tools;

use std::fs;
use std::path::Path;

use toolkit::{MANIFEST, executable, package};

/// A C compiler that records its outputs.
const CC: &str = r#"#!/bin/sh
case $* in *" -o "*) echo "cc $*" >>'LOG' ;; esac
exec cc "$@"
"#;

/// A build script also runs when only device code has changed.
#[test]
fn stubs_are_compiled_if_they_or_the_compiler_change() {
    let manifest = format!("{MANIFEST}[stub.cudart]\nheader-version = \"13\"\n");
    let package = package("compiled-once", &manifest);
    let compiler = package.dir.join("cc");
    let other_compiler = package.dir.join("other-cc");
    let log = package.dir.join("compiled");
    for compiler in [&compiler, &other_compiler] {
        executable(compiler, &CC.replace("LOG", log.to_str().unwrap()));
    }
    let library = package.dir.join("out/gpustub/link/libgpustub_my_package.a");
    let compiles_stubs = |compiler: &Path| {
        let _ = fs::remove_file(&log);
        package.build().compiler(compiler).try_build().unwrap();
        assert!(library.exists());
        fs::read_to_string(&log).is_ok_and(|log| log.contains("gpustub_runtime.o"))
    };
    assert!(compiles_stubs(&compiler));
    assert!(!compiles_stubs(&compiler), "nothing has changed");
    fs::write(package.dir.join("cuda/waves.cu"), "// changed").unwrap();
    assert!(!compiles_stubs(&compiler), "only device code has changed");
    assert!(compiles_stubs(&other_compiler));
    let newer = manifest.replace("\"13\"", "\"12\"");
    fs::write(package.dir.join("GpuStub.toml"), newer).unwrap();
    assert!(compiles_stubs(&other_compiler));
    fs::remove_file(&library).unwrap();
    assert!(compiles_stubs(&other_compiler), "the library is gone");
    assert!(!compiles_stubs(&other_compiler), "nothing has changed");
}
