//! Instructions that a server executes for a call, counted by callgrind: our C library, LLVM 19's, and the servers in
//! the headers of LLVM 22 and 23. Times of messages and of libc's services with our C library.
//!
//! `cargo bench -p gpurpc-tests --bench rpc_calls`, with valgrind and the components `llvmlibc-19`, `llvm-libc-22` and
//! `llvm-libc-23` (`./tests/run --all --components-only`).

use std::path::{Path, PathBuf};
use std::process::Command;

use gpurpc_tests::command::{run, succeed};
use gpurpc_tests::components::{component, target_dir};
use gpurpc_tests::{Failure, Result, scratch, workspace};

/// Program, its argument, and the heading of the column.
const KINDS: [(&str, &str, &str); 9] = [
    ("gpurpc", "blocking", "blocking"),
    ("gpurpc", "waiting", "blocking, waits"),
    ("gpurpc", "warp", "warp"),
    ("gpurpc", "warp in place", "warp in place"),
    ("llvm-19", "callback", "LLVM 19 C"),
    ("llvm-22", "loader", "LLVM 22"),
    ("llvm-23", "loader", "LLVM 23"),
    ("llvm-22", "offload", "LLVM 22 offload"),
    ("llvm-23", "offload", "LLVM 23 offload"),
];

/// Calls of several packets, and of libc's services.
const SERVICES: [&str; 4] = ["recv_n", "send_n", "WRITE_TO_STDOUT", "MALLOC"];

/// Rounds of the two runs whose difference counts.
const ROUNDS: [u64; 2] = [10, 60];

/// Rounds of the calls whose time counts.
const TIMED_ROUNDS: u64 = 500;

/// Compiles the programs.
fn programs(directory: &Path) -> Result<()> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--release", "--quiet", "-p", "gpurpc-capi"]);
    succeed(cargo.current_dir(workspace()))?;
    let sources = workspace().join("tests/benches/rpc-calls");
    let release = target_dir().join("release");
    let libc = component("llvmlibc-19/usr/lib/llvm-19")?;
    let compile = |compiler: &str, source: &str, name: &str, words: &[PathBuf]| {
        let mut compiler = Command::new(compiler);
        compiler.arg("-O2").arg(sources.join(source)).args(words);
        succeed(compiler.arg("-o").arg(directory.join(name)))
    };
    let include = |directory: PathBuf| PathBuf::from(format!("-I{}", directory.display()));
    compile(
        "cc",
        "gpurpc.c",
        "gpurpc",
        &[
            include(workspace().join("capi/include")),
            release.join("libgpurpc_capi.a"),
            "-lm".into(),
        ],
    )?;
    for release in ["22", "23"] {
        compile(
            "c++",
            "llvm.cpp",
            &format!("llvm-{release}"),
            &[
                "-std=c++17".into(),
                format!("-DLLVM_{release}").into(),
                include(component(&format!("llvm-libc-{release}/libc/shared"))?),
            ],
        )?;
    }
    compile(
        "cc",
        "llvm-19.c",
        "llvm-19",
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

/// Prints the instructions of calls of one packet.
fn print_instructions(directory: &Path) -> Result<()> {
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
                    let arguments = arguments(kind, [ports, lanes, pending, rounds]);
                    instructions(&directory.join(program), &arguments)
                };
                let calls = (ROUNDS[1] - ROUNDS[0]) * pending;
                print!(" {} |", (count(ROUNDS[1])? - count(ROUNDS[0])?) / calls);
            }
            println!();
        }
    }
    Ok(())
}

/// Prints the times of calls of several packets, and of libc's services.
fn print_services(directory: &Path) -> Result<()> {
    println!("\nus of a call with 64 ports: medians of {TIMED_ROUNDS} rounds");
    println!("| call | 1 lane | 32 lanes | 64 lanes | 32 lanes, 64 pending |");
    println!("|---|---|---|---|---|");
    for kind in SERVICES {
        print!("| {kind} |");
        for (lanes, pending) in [(1, 1), (32, 1), (64, 1), (32, 64)] {
            let mut program = Command::new(directory.join("gpurpc"));
            program.args(arguments(kind, [64, lanes, pending, TIMED_ROUNDS]));
            let ran = run(&mut program)?.success()?;
            let nanoseconds: f64 = ran.stdout.trim().parse()?;
            print!(" {:.1} |", nanoseconds / 1000.0);
        }
        println!();
    }
    Ok(())
}

/// Arguments of the programs.
fn arguments(kind: &str, numbers: [u64; 4]) -> Vec<String> {
    let numbers = numbers.map(|number| number.to_string());
    [kind.to_owned()].into_iter().chain(numbers).collect()
}

fn main() -> Result<()> {
    let directory = scratch()?;
    programs(directory.path())?;
    // Only one part, if requested: `services`.
    if !std::env::args().any(|word| word == "services") {
        print_instructions(directory.path())?;
    }
    print_services(directory.path())
}
