//! Instructions that a server executes for a call, counted by callgrind: our C library, LLVM 19's, and the server in
//! LLVM 22's header.
//!
//! `cargo bench -p gpustub-tests --bench rpc_calls`, with valgrind and the components `llvmlibc-19` and
//! `llvm-libc-22` (`./tests/run --all --components-only`).

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{component, target_dir};
use gpustub_tests::{Failure, Result, repository, scratch};

/// Program, its argument, and the heading of the column.
const KINDS: [(&str, &str, &str); 9] = [
    ("gpurpc", "reply", "request"),
    ("gpurpc", "queued", "queued"),
    ("gpurpc", "blocking", "blocking"),
    ("gpurpc", "waiting", "blocking, waits"),
    ("gpurpc", "warp", "warp"),
    ("gpurpc", "warp in place", "warp in place"),
    ("llvm-19", "callback", "LLVM 19 C"),
    ("llvm-22", "loader", "LLVM 22"),
    ("llvm-22", "offload", "LLVM 22 offload"),
];

/// Rounds of the two runs whose difference counts.
const ROUNDS: [u64; 2] = [10, 60];

/// Compiles the programs.
fn programs(directory: &Path) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--quiet", "-p", "gpurpc-capi"]);
    succeed(cargo.current_dir(repository()))?;
    let sources = repository().join("tests/benches/rpc-calls");
    let release = target_dir().join("release");
    let libc = component("llvmlibc-19/usr/lib/llvm-19")?;
    let compile = |compiler: &str, source: &str, words: &[PathBuf]| {
        let output = directory.join(Path::new(source).with_extension(""));
        let mut compiler = Command::new(compiler);
        compiler.arg("-O2").arg(sources.join(source)).args(words);
        succeed(compiler.arg("-o").arg(output))
    };
    let include = |directory: PathBuf| PathBuf::from(format!("-I{}", directory.display()));
    compile(
        "cc",
        "gpurpc.c",
        &[
            include(repository().join("rpc/capi/include")),
            release.join("libgpurpc_capi.a"),
            "-lm".into(),
        ],
    )?;
    compile(
        "c++",
        "llvm-22.cpp",
        &[
            "-std=c++17".into(),
            include(component("llvm-libc-22/libc/shared")?),
        ],
    )?;
    compile(
        "cc",
        "llvm-19.c",
        &[
            include(libc.join("include")),
            libc.join("lib/libllvmlibc_rpc_server.a"),
            "-lstdc++".into(),
        ],
    )?;
    Ok(())
}

/// Instructions of a run.
fn instructions(program: &Path, arguments: &[String]) -> Result<u64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let ran = run(valgrind.arg(program).args(arguments))?.success()?;
    let line = ran
        .stderr
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let (_, count) = line.ok_or_else(|| Failure::from("valgrind counted nothing"))?;
    Ok(count.trim().parse()?)
}

fn main() -> Result<()> {
    let directory = scratch()?;
    programs(directory.path())?;
    println!(
        "instructions of a call, by callgrind: {} less {} rounds",
        ROUNDS[1], ROUNDS[0]
    );
    print!("| ports | lanes | pending |");
    KINDS
        .iter()
        .for_each(|(.., heading)| print!(" {heading} |"));
    println!("\n|---|---|---|{}", "---|".repeat(KINDS.len()));
    for (ports, pending) in [(1, 1), (64, 1), (64, 64), (4096, 1), (4096, 64)] {
        for lanes in [1, 32, 64] {
            print!("| {ports} | {lanes} | {pending} |");
            for (program, kind, _) in KINDS {
                let count = |rounds: u64| {
                    let numbers = [ports, lanes, pending, rounds].map(|number| number.to_string());
                    let arguments = [kind.to_owned()].into_iter().chain(numbers);
                    instructions(
                        &directory.path().join(program),
                        &arguments.collect::<Vec<_>>(),
                    )
                };
                let calls = (ROUNDS[1] - ROUNDS[0]) * pending;
                print!(" {} |", (count(ROUNDS[1])? - count(ROUNDS[0])?) / calls);
            }
            println!();
        }
    }
    Ok(())
}
