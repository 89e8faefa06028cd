//! C interface of the RPC server, from C and C++ programs: as installed, by its pkg-config file.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::cargo::{capi, cargo, without_own_cargo};
use gpurpc_tests::command::succeed;
use gpurpc_tests::components::target_dir;
use gpurpc_tests::{Result, scratch, workspace};

/// Releases of LLVM with different clients.
const CLIENTS: [u32; 2] = [20, 23];

const STRICT: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn headers() -> PathBuf {
    workspace().join("capi/include")
}

/// Installs the files of the package.
fn install(prefix: &Path) -> Result<()> {
    let mut make = Command::new("make");
    without_own_cargo(&mut make);
    make.args(["--quiet", "-C"]);
    make.arg(workspace().join("capi")).arg("install");
    let mut to = OsString::from("PREFIX=");
    to.push(prefix);
    make.arg(to).arg("CARGO_PROFILE=dev");
    succeed(make.env("CARGO_TARGET_DIR", target_dir()))?;
    Ok(())
}

#[test]
#[ignore = "needs clang and pkg-config: ./tests/run"]
fn c_and_cpp_serve_clients() -> Result<()> {
    let dir = scratch()?;
    let source = workspace().join("tests/programs/rpc.c");
    for (library, words) in [("libgpurpc.a", &["--static"][..]), ("libgpurpc.so", &[])] {
        let prefix = dir.path().join(library).join("with a space");
        install(&prefix)?;
        if library.ends_with(".a") {
            // A linker prefers the shared library.
            std::fs::remove_file(prefix.join("lib/libgpurpc.so"))?;
        }
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
        pkg_config
            .args(words)
            .args(["--cflags", "--libs", "gpurpc"]);
        let flags = succeed(&mut pkg_config)?.stdout;
        let mut compilers = vec![
            ("gcc", &["-std=c11", "-Wstrict-prototypes"][..]),
            ("clang", &["-std=c11", "-Wstrict-prototypes"]),
            ("g++", &["-std=c++17", "-x", "c++"]),
            ("clang++", &["-std=c++17", "-x", "c++"]),
        ];
        if library.ends_with(".a") {
            // The whole program, including libc.
            compilers.push(("gcc", &["-std=c11", "-static"]));
            compilers.push(("clang++", &["-std=c++17", "-static", "-x", "c++"]));
        }
        for (compiler, of) in compilers {
            let program = dir.path().join("program");
            let mut compile = Command::new(compiler);
            compile.args(of).args(STRICT).arg("-pthread");
            compile.arg("-o").arg(&program).arg(&source);
            // Splits the flags as a shell does: a space is escaped.
            let escaped = flags.trim().replace("\\ ", "\u{0}");
            let flags = escaped.split_whitespace();
            compile.args(["-x", "none"]);
            compile.args(flags.map(|flag| flag.replace('\u{0}', " ")));
            succeed(&mut compile)?;
            let mut run = Command::new(&program);
            run.env("LD_LIBRARY_PATH", prefix.join("lib"));
            let ran = succeed(&mut run)?;
            let expected = format!(
                "42 42\n7: hello, \n10: hello, you\n156: hello, {}\n\
                 opcode 0x6300001d of device 1 was dropped: 0x1001: no handler is registered for the opcode\n\
                 100\n",
                "x".repeat(149)
            );
            assert_eq!(ran.stdout, expected, "{compiler}, {library}");
            assert_eq!(ran.stderr, "", "{compiler}, {library}");
            let mut needed = Command::new("readelf");
            let needed = succeed(needed.arg("-d").arg(&program))?.stdout;
            let is_shared = library.ends_with(".so");
            assert_eq!(needed.contains("[libgpurpc.so.0.1]"), is_shared, "{needed}");
        }
    }
    Ok(())
}

/// valgrind sees each write to memory that was freed: a device writes while it is removed, and afterwards.
#[test]
#[ignore = "needs valgrind: ./tests/run"]
fn removed_devices_write_to_memory_that_is_theirs() -> Result<()> {
    let dir = scratch()?;
    let (prefix, program) = (dir.path().join("installed"), dir.path().join("program"));
    install(&prefix)?;
    let mut compile = Command::new("gcc");
    compile
        .args(["-std=gnu11", "-g"])
        .args(STRICT)
        .arg("-I")
        .arg(prefix.join("include"));
    compile.arg(workspace().join("tests/programs/rpc-remove.c"));
    compile.arg(prefix.join("lib/libgpurpc.so")).arg("-pthread");
    succeed(compile.arg("-o").arg(&program))?;
    let mut valgrind = Command::new("valgrind");
    valgrind.env("LD_LIBRARY_PATH", prefix.join("lib"));
    // Threads take turns: a serving thread must let the device write.
    valgrind.args([
        "--quiet",
        "--fair-sched=yes",
        "--error-exitcode=1",
        "--leak-check=full",
    ]);
    let ran = succeed(valgrind.arg(&program))?;
    assert_eq!((&ran.stdout[..], &ran.stderr[..]), ("10 devices\n", ""));
    Ok(())
}

/// Stacks of blocking callbacks, as valgrind and AddressSanitizer see them. The latter warns of a jump if it does not know
/// the stack, and a leak is a callback that has not returned.
#[test]
#[ignore = "needs valgrind: ./tests/run"]
fn blocking_callbacks_run_under_valgrind_and_asan() -> Result<()> {
    let dir = scratch()?;
    let asan = target_dir().join("asan");
    let mut build = cargo(&workspace());
    build.args(["build", "--quiet", "--package", "gpurpc-capi"]);
    build.args(["--features", "sanitizer", "--target-dir"]);
    succeed(build.arg(&asan))?;
    let plain: (PathBuf, &[&str]) = (capi()?, &[]);
    for (library, words) in [plain, (asan.join("debug"), &["-fsanitize=address"])] {
        let program = dir.path().join("program");
        let mut compile = Command::new("gcc");
        compile.args(["-std=gnu11", "-g", "-pthread"]).args(STRICT);
        compile.args(words).arg("-I").arg(headers());
        compile.arg(workspace().join("tests/programs/rpc-blocking.c"));
        compile.arg(library.join("libgpurpc_capi.a"));
        succeed(compile.args(["-lm", "-ldl", "-o"]).arg(&program))?;
        let mut run = Command::new(if words.is_empty() {
            "valgrind".as_ref()
        } else {
            program.as_path()
        });
        if words.is_empty() {
            run.args(["--quiet", "--fair-sched=yes", "--error-exitcode=1"]);
            run.arg("--leak-check=full").arg(&program);
        }
        run.env("ASAN_OPTIONS", "detect_stack_use_after_return=1");
        let ran = succeed(&mut run)?;
        let expected = ("120 calls, 8 abandoned\n", "");
        assert_eq!((&ran.stdout[..], &ran.stderr[..]), expected, "{words:?}");
    }
    Ok(())
}

/// Threads share a client of each generation; that of LLVM 23 has a doorbell.
#[test]
fn threads_share_a_client() -> Result<()> {
    let (dir, built) = (scratch()?, capi()?);
    let program = dir.path().join("program");
    for llvm in CLIENTS {
        let mut compile = Command::new("cc");
        compile.args(["-std=c11", "-pthread"]).args(STRICT);
        compile.arg(format!("-DGPURPC_CLIENT_LLVM={llvm}"));
        compile.arg("-I").arg(headers()).arg("-o").arg(&program);
        compile.arg(workspace().join("tests/programs/rpc-threads.c"));
        compile
            .arg(built.join("libgpurpc_capi.a"))
            .args(["-lm", "-ldl"]);
        succeed(&mut compile)?;
        let ran = succeed(&mut Command::new(&program))?;
        assert_eq!(ran.stdout, "3600 calls\n", "LLVM {llvm}");
    }
    Ok(())
}

/// Both libraries define the functions that the header declares, and the shared one nothing else.
#[test]
fn libraries_define_the_symbols_of_the_header() -> Result<()> {
    let built = capi()?;
    let read = |name| std::fs::read_to_string(headers().join(name));
    let header = read("gpurpc.h")? + &read("gpurpc_blocking.h")? + &read("gpurpc_libc.h")?;
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("gpurpc_"))
        .collect();
    assert!(declared.len() > 20, "{declared:?}");

    let mut nm = Command::new("nm");
    nm.args(["-D", "--defined-only", "--format=posix"]);
    let listed = succeed(nm.arg(built.join("libgpurpc_capi.so")))?.stdout;
    let exported = names(&listed);
    assert_eq!(exported, declared);

    let mut nm = Command::new("nm");
    nm.args(["-g", "--defined-only", "--format=posix"]);
    let listed = succeed(nm.arg(built.join("libgpurpc_capi.a")))?.stdout;
    let ours = names(&listed);
    let ours: BTreeSet<_> = ours
        .into_iter()
        .filter(|name| name.starts_with("gpurpc_") || name.starts_with("rpc_"))
        .collect();
    assert_eq!(ours, declared);
    Ok(())
}

fn names(listed: &str) -> BTreeSet<&str> {
    let lines = listed.lines().filter(|line| line.contains(' '));
    lines.filter_map(|line| line.split(' ').next()).collect()
}

/// Each header alone, as host code.
#[test]
#[ignore = "needs clang: ./tests/run"]
fn headers_compile_alone() -> Result<()> {
    let dir = scratch()?;
    for header in [
        "gpurpc.h",
        "gpurpc_blocking.h",
        "gpurpc_libc.h",
        "gpurpc_client.h",
        "gpurpc_opcodes.h",
        "gpurpc.hpp",
    ] {
        // Twice, and with the others.
        let code = format!(
            "#include <{header}>\n#include <{header}>\n#include <gpurpc.h>\n\
             #include <gpurpc_client.h>\nint main(void) {{ return 0; }}\n"
        );
        let source = dir.path().join("source.c");
        std::fs::write(&source, code)?;
        for (compiler, of) in [
            ("gcc", &["-std=c11", "-Wstrict-prototypes"][..]),
            ("clang", &["-std=c11", "-Wstrict-prototypes"]),
            ("g++", &["-std=c++17", "-x", "c++"]),
            ("clang++", &["-std=c++17", "-x", "c++"]),
        ] {
            if header.ends_with(".hpp") && !of.contains(&"c++") {
                continue;
            }
            let mut compile = Command::new(compiler);
            compile.args(of).args(STRICT).arg("-fsyntax-only");
            compile.arg("-I").arg(headers()).arg(&source);
            succeed(&mut compile)?;
        }
    }
    Ok(())
}
