//! `GPUSTUB_TRACE` and `GPUSTUB_FAIL`, on the OpenCL part of `hello-gpu`, and their cost when they
//! are not set.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::hello_gpu;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail};
use gpustub_tests::{Result, repository};

/// Runs the example with OpenCL as the only library.
fn opencl(variables: &[(&str, &str)]) -> Result<Ran> {
    let mut command = Command::new(hello_gpu()?);
    for library in ["CUDA", "CUDART", "NVRTC", "HIP"] {
        command.env(format!("GPUSTUB_{library}_PATH"), "off");
    }
    run(command.envs(variables.iter().copied()))
}

/// Number of calls of each function, by the lines of the calls, and by the counts at the end.
fn counts(ran: &Ran) -> Result<[BTreeMap<String, u32>; 2]> {
    let mut counts = [BTreeMap::new(), BTreeMap::new()];
    for line in ran.stderr.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["gpustub:", "called", number, "time" | "times", name] => {
                counts[1].insert(name.to_owned(), number.parse()?);
            }
            // gpustub: THREAD NAME(…)
            ["gpustub:", _, call, ..] if call.contains('(') => {
                let name = call.split('(').next().unwrap_or_default();
                *counts[0].entry(name.to_owned()).or_insert(0) += 1;
            }
            _ => {}
        }
    }
    Ok(counts)
}

#[test]
#[ignore = "needs PoCL: ./tests/run"]
fn trace_shows_the_calls_of_the_example_and_counts_them() -> Result<()> {
    let quiet = opencl(&[])?.success()?;
    let ran = opencl(&[("GPUSTUB_TRACE", "1")])?.success()?;
    assert_eq!(quiet.stderr, "");
    assert_eq!(ran.stdout, quiet.stdout, "what is seen is not changed");
    let [calls, at_exit] = counts(&ran)?;
    assert_eq!(calls, at_exit, "{}", ran.stderr);
    let devices = quiet.stdout.matches(": added ").count() as u32;
    assert!(devices > 0, "{}", quiet.stdout);
    for (name, times) in [
        ("clGetPlatformIDs", 2),
        ("clBuildProgram", devices),
        ("clCreateBuffer", 3 * devices),
        ("clSetKernelArg", 3 * devices),
        ("clEnqueueReadBuffer", devices),
        ("clReleaseMemObject", 3 * devices),
    ] {
        assert_eq!(calls.get(name), Some(&times), "{name}: {}", ran.stderr);
    }
    // In the order of the example: a list, an object, a status; the counts follow.
    let mut rest = &ran.stderr[..];
    for part in [
        " clGetPlatformIDs(0x0, 0x0, 0x",
        " clGetPlatformIDs = 0\n",
        " clCreateBuffer(0x",
        " clCreateBuffer = 0x",
        " clSetKernelArg(0x",
        " clSetKernelArg = 0\n",
        " clReleaseMemObject = 0\n",
        "\ngpustub: called ",
    ] {
        (_, rest) = rest
            .split_once(part)
            .ok_or_else(|| ran.error(&format!("no {part:?} here")))?;
    }
    for line in rest.lines().skip(1) {
        assert!(line.starts_with("gpustub: called "), "{rest}");
    }
    Ok(())
}

/// The example reports the call and the code, and releases its objects: no call is left open.
#[test]
#[ignore = "needs PoCL: ./tests/run"]
fn fail_makes_the_third_buffer_of_the_example_fail() -> Result<()> {
    let failing = ("GPUSTUB_FAIL", "clCreateBuffer:3=-61");
    let ran = opencl(&[failing])?;
    assert_eq!(ran.status.code(), Some(1), "{}", ran.error("not refused").0);
    assert_eq!(ran.stderr, "");
    let line = ran.stdout.lines().last().unwrap_or_default().to_owned();
    assert!(line.starts_with("  FAILED: "), "{line}");
    assert!(line.ends_with(": clCreateBuffer: error -61"), "{line}");

    let traced = opencl(&[failing, ("GPUSTUB_TRACE", "1")])?;
    assert_eq!(traced.stdout, ran.stdout);
    let [calls, at_exit] = counts(&traced)?;
    assert_eq!(calls, at_exit);
    assert_eq!(calls["clCreateBuffer"], 3, "{}", traced.stderr);
    assert_eq!(calls["clReleaseMemObject"], 2, "{}", traced.stderr);
    assert!(!calls.contains_key("clSetKernelArg"), "{}", traced.stderr);
    assert!(
        traced.stderr.contains(" clCreateBuffer = 0x0\n"),
        "{}",
        traced.stderr
    );

    // A code that no such call returns, for every call.
    let ran = opencl(&[("GPUSTUB_FAIL", "clBuildProgram=-4711")])?;
    assert_eq!(ran.status.code(), Some(1));
    ran.expect_in_order(&["clBuildProgram: error -4711"])?;
    Ok(())
}

/// Functions with a fixed value for a missing library return the code, too: cudart's version of the
/// driver, which is 0 then, and those of hiprtc, whose codes differ from HIP's.
#[test]
fn fail_reaches_functions_that_return_a_fixed_value() -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"none\"\n[stub.hiprtc]\n";
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;
    let source = dir.path().join("values.c");
    let text = "#include <stdio.h>\nint cudaDriverGetVersion(int *), hiprtcVersion(int *, int *);\n\
        int main(void) { int a = -7, b = -7, c = -7; int d = cudaDriverGetVersion(&a);\n\
        printf(\"%d %d\", d, a); d = hiprtcVersion(&b, &c);\n\
        printf(\" %d %d %d\\n\", d, b, c); return 0; }\n";
    std::fs::write(&source, text)?;
    let program = dir.path().join("values");
    let mut cc = Command::new("cc");
    succeed(cc.arg(source).arg(stubs).args(["-ldl", "-o"]).arg(&program))?;
    for (fail, codes) in [
        ("other=1", "0 0 11 0 0\n"),
        ("cudaDriverGetVersion=3,hiprtcVersion=5", "3 0 5 0 0\n"),
    ] {
        let mut command = Command::new(&program);
        command
            .env("GPUSTUB_CUDART_PATH", "off")
            .env("GPUSTUB_HIPRTC_PATH", "off");
        let ran = succeed(command.env("GPUSTUB_FAIL", fail))?;
        assert_eq!(ran.stdout, codes, "{fail}");
    }
    Ok(())
}

/// A line with each address as `0x` and each number as `N`, the parts that differ from run to run.
fn shape(line: &str) -> String {
    let mut parts = line.split("0x");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += "0x";
        text += part.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    }
    let words: Vec<String> = text
        .split(' ')
        .map(|word| match word.trim_matches(|c| "(),".contains(c)) {
            number if number.parse::<u32>().is_ok() => word.replace(number, "N"),
            _ => word.to_owned(),
        })
        .collect();
    words.join(" ")
}

/// The last paragraph, without the name of the device.
fn without_device(text: &str) -> String {
    let (head, tail) = text.split_once("FAILED: ").unwrap_or_default();
    let (_, error) = tail.split_once(": ").unwrap_or_default();
    format!(
        "{}FAILED: {error}",
        head.rsplit("\n\n").next().unwrap_or_default()
    )
}

/// The page's examples are the program's output except addresses, numbers and device name.
#[test]
#[ignore = "needs PoCL: ./tests/run"]
fn page_shows_the_real_output() -> Result<()> {
    let page = std::fs::read_to_string(repository().join("docs/tracing.md"))?;
    let blocks: Vec<&str> = page
        .split("```text\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    let [trace, fail] = blocks[..] else {
        return Err("the examples of docs/tracing.md differ".into());
    };
    let printed = opencl(&[("GPUSTUB_TRACE", "1")])?.success()?.stderr;
    let mut lines = printed.lines().map(shape);
    for line in trace.lines().filter(|line| *line != "…") {
        assert!(
            lines.any(|printed| printed == shape(line)),
            "{line}\n{printed}"
        );
    }
    let printed = opencl(&[("GPUSTUB_FAIL", "clCreateBuffer:3=-61")])?.stdout;
    assert_eq!(without_device(fail), without_device(&printed));
    Ok(())
}

// ---- the cost ------------------------------------------------------------------------------------

/// Instructions of one warm call by a road of `benches/c/percall.c`, with loop and callee.
fn instructions(dir: &Path, road: &str, variables: &[(&str, &str)]) -> Result<u64> {
    let mut counts = [0; 2];
    for (count, calls) in counts.iter_mut().zip(["2000", "3000"]) {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        valgrind
            .env_remove("GPUSTUB_TRACE")
            .env_remove("GPUSTUB_FAIL");
        valgrind
            .arg(dir.join("percall"))
            .arg(dir.join("libcallee.so"));
        let ran = succeed(valgrind.args([road, calls]).envs(variables.iter().copied()))?;
        let (_, number) = ran
            .stderr
            .lines()
            .find_map(|line| line.split_once("Collected : "))
            .ok_or_else(|| ran.error("no count of instructions"))?;
        *count = number.trim().parse::<u64>()?;
    }
    let difference = counts[1] - counts[0];
    assert_eq!(difference % 1000, 0, "each call takes the same");
    Ok(difference / 1000)
}

/// A warm call takes the same instructions whether the variables are unset or off; one more than
/// through a PLT; and many more when calls are traced, or the test would measure nothing.
#[test]
#[ignore = "needs valgrind: ./tests/run"]
fn tracing_is_free_when_it_is_off() -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.bench]\nload-names = { linux = [\"libbench.so.1\"] }\n\
                    symbols = \"bench.symbols\"\nfallback = { status = 1 }\n";
    let lists = [("bench.symbols", list_of(["benchStub", "benchMissing"]))];
    let plan = plan_or_fail(manifest, &lists, &Machine::X86_64.target())?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?;
    let sources = repository().join("tests/benches/c");
    let library = dir.path().join("libcallee.so");
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-shared", "-fPIC"])
        .arg(sources.join("callee.c"));
    succeed(cc.arg("-o").arg(&library))?;
    let mut cc = Command::new("cc");
    cc.arg("-O2")
        .arg(sources.join("percall.c"))
        .arg("-I")
        .arg(&stubs.sources);
    cc.arg(stubs.archive()?).arg(&library);
    succeed(cc.args(["-ldl", "-o"]).arg(dir.path().join("percall")))?;

    let unset = instructions(dir.path(), "stub", &[])?;
    let off = instructions(dir.path(), "stub", &[("GPUSTUB_TRACE", "0")])?;
    let linked = instructions(dir.path(), "plt", &[])?;
    let watched = instructions(dir.path(), "stub", &[("GPUSTUB_FAIL", "other=1")])?;
    println!("instructions of a call: {unset}, off {off}, linked {linked}, watched {watched}");
    assert_eq!(off, unset);
    assert_eq!(
        unset,
        linked + 1,
        "endbr64, which the PLT of an older linker lacks"
    );
    assert!(watched > unset + 50);
    Ok(())
}
