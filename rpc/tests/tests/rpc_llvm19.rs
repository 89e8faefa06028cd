//! Programs written to the header of LLVM 19's RPC server, with our library and LLVM's.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::cargo::without_own_cargo;
use gpurpc_tests::command::{Ran, succeed};
use gpurpc_tests::components::{component, target_dir};
use gpurpc_tests::{Result, scratch, workspace};

/// Output of `tests/programs/rpc-llvm19.c` with LLVM's library.
const EXPECTED: &str = "552 bytes, 4096 ports, __llvm_libc_rpc_client
0x1000 0x1002 0x1000 0x1000 0x1000 0x1000 1
host: before the device
host: interface 9
host: interface 9
text of the device that takes more than one packet, as it has many words
host: after the device
device: increment 42
device: increment 43
device: increment 44
device: interface 9
device: interface 8
device: stream 0
device: stream 57
device: stream 114
device: stream 171
device: stream 228
device: stream 285
device: stream 342
device: stream 399
device: replaced 2
device: memory 43080
device: written 73
device: written 6
device: opened 1
device: written 8
device: closed 0
status 0x1001
8 1 800
shutdown 0 2
";

/// Installs our library. Returns the directory.
fn install(directory: &Path) -> Result<PathBuf> {
    let prefix = directory.join("installed");
    let mut make = Command::new("make");
    without_own_cargo(&mut make);
    make.args(["--quiet", "-C"]).arg(workspace().join("llvm19"));
    make.arg("install").arg("CARGO_PROFILE=dev");
    make.arg(format!("PREFIX={}", prefix.display()));
    succeed(make.env("CARGO_TARGET_DIR", target_dir()))?;
    Ok(prefix)
}

/// Compiles the program.
fn compile(directory: &Path, include: &Path) -> Result<PathBuf> {
    let object = directory.join("program.o");
    let mut compile = Command::new("cc");
    compile.args([
        "-std=c11", "-Wall", "-Wextra", "-Werror", "-O1", "-g", "-c", "-I",
    ]);
    compile.arg(include).arg("-o").arg(&object);
    succeed(compile.arg(workspace().join("tests/programs/rpc-llvm19.c")))?;
    Ok(object)
}

/// Links the program as programs for LLVM's library are.
fn link(object: &Path, library: &Path, program: &Path) -> Result<()> {
    let mut link = Command::new("c++");
    link.arg(object).arg("-L").arg(library);
    link.args(["-lllvmlibc_rpc_server", "-pthread", "-o"]);
    succeed(link.arg(program))?;
    Ok(())
}

/// Runs the program, and checks what it writes.
fn check(ran: &Ran, directory: &Path) -> Result<()> {
    assert_eq!(ran.stdout, EXPECTED);
    assert!(ran.stderr.starts_with("error\n"), "{}", ran.stderr);
    let file = directory.join("rpc-llvm19.txt");
    assert_eq!(std::fs::read_to_string(&file)?, "contents");
    Ok(std::fs::remove_file(file)?)
}

/// valgrind follows the stacks of callbacks, and finds neither wrong accesses nor leaks.
fn check_with_valgrind(program: &Path, directory: &Path) -> Result<()> {
    let mut valgrind = Command::new("valgrind");
    // Threads take turns: the device spins. Threads of services may end after the program, and are a possible leak then.
    valgrind.args(["--quiet", "--fair-sched=yes", "--error-exitcode=1"]);
    valgrind.args(["--leak-check=full", "--show-leak-kinds=definite"]);
    valgrind.arg("--errors-for-leak-kinds=definite");
    check(
        &succeed(valgrind.arg(program).current_dir(directory))?,
        directory,
    )
}

#[test]
#[ignore = "needs valgrind: ./tests/run"]
fn a_program_for_llvm_19_runs_with_our_library() -> Result<()> {
    let dir = scratch()?;
    let prefix = install(dir.path())?;
    let object = compile(dir.path(), &prefix.join("include"))?;
    let program = dir.path().join("program");
    link(&object, &prefix.join("lib"), &program)?;
    check_with_valgrind(&program, dir.path())
}

/// The object is compiled with LLVM's header, and linked with both libraries.
#[test]
#[ignore = "needs the RPC server of LLVM 19: ./tests/run --all"]
fn heavy_an_object_for_llvm_19_links_with_our_library() -> Result<()> {
    let dir = scratch()?;
    let llvm = component("llvmlibc-19/usr/lib/llvm-19")?;
    let prefix = install(dir.path())?;
    let object = compile(dir.path(), &llvm.join("include"))?;
    for library in [llvm.join("lib"), prefix.join("lib")] {
        let program = dir.path().join("program");
        link(&object, &library, &program)?;
        let ran = succeed(Command::new(&program).current_dir(dir.path()))?;
        check(&ran, dir.path())?;
    }
    check_with_valgrind(&dir.path().join("program"), dir.path())
}

/// Numbers of our headers, in LLVM's.
#[test]
#[ignore = "needs the RPC server of LLVM 19: ./tests/run --all"]
fn heavy_numbers_are_those_of_llvm_19() -> Result<()> {
    let dir = scratch()?;
    let llvm = component("llvmlibc-19/usr/lib/llvm-19/include")?;
    let source = dir.path().join("source.c");
    let (mut code, mut asserts) = (String::new(), String::new());
    for name in ["llvmlibc_rpc_server.h", "llvmlibc_rpc_opcodes.h"] {
        let header = workspace().join("llvm19/include").join(name);
        writeln!(code, "#include <{name}>")?;
        for line in std::fs::read_to_string(header)?.lines() {
            let number = line.trim().trim_end_matches(',').split_once(" = ");
            if let Some((name, number)) = number.filter(|(name, _)| !name.contains(' ')) {
                writeln!(asserts, "_Static_assert({name} == {number}, \"{name}\");")?;
            }
        }
    }
    assert!(asserts.lines().count() > 30, "{asserts}");
    std::fs::write(&source, code + &asserts)?;
    let mut compile = Command::new("cc");
    compile.args(["-std=c11", "-fsyntax-only", "-I"]);
    succeed(compile.arg(llvm).arg(&source))?;
    Ok(())
}

/// Strict compilers of C and C++ accept the headers.
#[test]
fn headers_compile_alone() -> Result<()> {
    let dir = scratch()?;
    let source = dir.path().join("source.c");
    let names = ["llvmlibc_rpc_server.h", "llvmlibc_rpc_opcodes.h"];
    let code: String = names
        .iter()
        .chain(&names)
        .map(|name| format!("#include <{name}>\n"))
        .collect();
    std::fs::write(
        &source,
        code + "int main(void) { return RPC_REMOVE - 27; }\n",
    )?;
    for words in [["cc", "-std=c11", "-xc"], ["c++", "-std=c++17", "-xc++"]] {
        let mut compile = Command::new(words[0]);
        compile
            .args(&words[1..])
            .args(["-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
        compile.args(["-Wstrict-prototypes"].iter().filter(|_| words[0] == "cc"));
        compile.arg("-I").arg(workspace().join("llvm19/include"));
        succeed(compile.arg("-fsyntax-only").arg(&source))?;
    }
    Ok(())
}
