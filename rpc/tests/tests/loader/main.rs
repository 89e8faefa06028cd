//! `gpurpc-loader` with fake drivers, without a GPU. The tests cover the loader's own work, not the
//! waiting of a real driver or the memory that a GPU sees.

mod lanes;
mod llvm_startup;
mod readme;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use gpurpc_tests::cargo::loader;
use gpurpc_tests::command::{Ran, run, succeed};
use gpurpc_tests::isolated::Isolated;
use gpurpc_tests::{Result, scratch, workspace};
use serde::Deserialize;

/// Case: a command and its expected results.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Runtimes of the case; by default both.
    #[serde(default = "both")]
    only: Vec<String>,
    /// Macros for compiling the program.
    #[serde(default = "client")]
    variant: String,
    /// Whether `--runtime` is passed to the loader.
    #[serde(default = "yes")]
    runtime: bool,
    /// Arguments of the loader. `IMAGE` is the program, `DIRECTORY` a directory with a file in it.
    command: String,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    stdout: String,
    /// Parts of the standard error, in their order. Without parts it must stay empty.
    #[serde(default)]
    stderr: Vec<String>,
    #[serde(default)]
    code: i32,
    /// All calls of the driver.
    calls: Option<Vec<String>>,
    /// Parts of calls of the driver, in their order.
    #[serde(default)]
    calls_have: Vec<String>,
}

fn both() -> Vec<String> {
    ["cuda", "hip"].map(String::from).to_vec()
}

fn client() -> String {
    "CLIENT=1".into()
}

fn yes() -> bool {
    true
}

/// Names of a driver and of its functions.
struct Driver {
    runtime: &'static str,
    variable: &'static str,
    source: &'static str,
    soname: &'static str,
    launch: &'static str,
    query: &'static str,
    allocate: &'static str,
    free: &'static str,
    /// Function by which a thread selects its device.
    attach: &'static str,
    read: &'static str,
}

const CUDA: Driver = Driver {
    runtime: "cuda",
    variable: "GPUSTUB_CUDA_PATH",
    source: "fake-cuda.c",
    soname: "libcuda.so.1",
    launch: "cuLaunchKernel",
    query: "cuStreamQuery",
    allocate: "cuMemAllocAsync",
    free: "cuMemFreeAsync",
    attach: "cuCtxSetCurrent",
    read: "cuMemcpyDtoH",
};

const HIP: Driver = Driver {
    runtime: "hip",
    variable: "GPUSTUB_HIP_PATH",
    source: "fake-hip.c",
    soname: "libamdhip64.so.6",
    launch: "hipModuleLaunchKernel",
    query: "hipStreamQuery",
    allocate: "hipMallocAsync",
    free: "hipFreeAsync",
    attach: "hipSetDevice",
    read: "hipMemcpyDtoH",
};

/// A directory with the fake drivers and programs, and a log.
struct Bench {
    dir: tempfile::TempDir,
    loader: PathBuf,
}

fn sources() -> PathBuf {
    workspace().join("tests/programs/loader")
}

/// Compiles a shared library from one source.
fn compile(source: &Path, to: &Path, words: &[&str]) -> Result<()> {
    let mut compile = Command::new("cc");
    compile.args([
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O1",
        "-fPIC",
        "-shared",
    ]);
    compile.args(["-pthread", "-nostartfiles"]).args(words);
    compile.arg("-I").arg(workspace().join("capi/include"));
    succeed(compile.arg(source).arg("-o").arg(to)).map(drop)
}

impl Bench {
    fn new() -> Result<Self> {
        let dir = scratch()?;
        for (name, text) in [
            ("greeting.txt", "hello, device\n"),
            ("other.ptx", ".version 7.0\n.visible .entry other()\n"),
            ("none.ptx", ".version 7.0\n.visible .func _start()\n"),
        ] {
            fs::write(dir.path().join(name), text)?;
        }
        for driver in [CUDA, HIP] {
            compile(
                &sources().join(driver.source),
                &dir.path().join(driver.soname),
                &[],
            )?;
        }
        let loader = loader()?;
        Ok(Self { dir, loader })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Path of the program in a variant, which is compiled once.
    fn image(&self, variant: &str) -> Result<PathBuf> {
        let image = self.path(&format!("{variant}.so"));
        if !image.exists() {
            let mut macros: Vec<_> = variant.split(' ').map(|name| format!("-D{name}")).collect();
            if !variant.contains("CLIENT") {
                macros.push(format!("-D{}", client()));
            }
            let macros: Vec<&str> = macros.iter().map(|name| &name[..]).collect();
            compile(&sources().join("program.c"), &image, &macros)?;
        }
        Ok(image)
    }

    /// Command of the loader, with a driver and an empty log.
    fn loader(&self, driver: &Driver) -> Result<Command> {
        let log = self.path("log");
        fs::write(&log, "")?;
        let mut command = Command::new(&self.loader);
        command
            .env("FAKE_LOG", log)
            .env(driver.variable, self.path(driver.soname));
        Ok(command)
    }

    /// Recorded calls of the driver.
    fn calls(&self) -> Result<Vec<String>> {
        let log = fs::read_to_string(self.path("log"))?;
        Ok(log.lines().map(str::to_owned).collect())
    }
}

fn expect(case: &Case, ran: &Ran, calls: &[String]) -> Result<()> {
    if ran.status.code() != Some(case.code) {
        return Err(ran.error(&format!("the exit code is not {}", case.code)));
    }
    if ran.stdout != case.stdout {
        return Err(ran.error(&format!("the output is not {:?}", case.stdout)));
    }
    let mut rest = &ran.stderr[..];
    for part in &case.stderr {
        let at = rest.find(part);
        let at = at.ok_or_else(|| ran.error(&format!("{part:?} is missing on standard error")))?;
        rest = &rest[at + part.len()..];
    }
    if case.stderr.is_empty() && !rest.is_empty() {
        return Err(ran.error("unexpected output on standard error"));
    }
    let mut rest = calls.iter();
    for part in &case.calls_have {
        if !rest.any(|call| call.contains(part)) {
            return Err(ran.error(&format!("{part:?} is missing in the calls {calls:#?}")));
        }
    }
    match &case.calls {
        Some(expected) if expected != calls => {
            Err(ran.error(&format!("calls {calls:?} instead of {expected:?}")))
        }
        _ => Ok(()),
    }
}

#[test]
fn programs_run_as_their_cases_state() -> Result<()> {
    let text = fs::read_to_string(workspace().join("tests/cases/loader.toml"))?;
    let cases: BTreeMap<String, Case> = toml::from_str(&text)?;
    assert!(cases.len() > 30, "{} cases", cases.len());
    let bench = Bench::new()?;
    let mut wrong = Vec::new();
    for (name, case) in &cases {
        for driver in [CUDA, HIP] {
            if !case.only.iter().any(|only| only == driver.runtime) {
                continue;
            }
            let mut command = bench.loader(&driver)?;
            command.envs(&case.environment);
            if case.runtime {
                command.args(["--runtime", driver.runtime]);
            }
            // A hanging case fails.
            if !case.command.contains("--timeout 0") {
                command.args(["--timeout", "300"]);
            }
            for word in case.command.split(' ') {
                let word = word.replace("DIRECTORY", &bench.dir.path().to_string_lossy());
                match &word[..] {
                    "IMAGE" => command.arg(bench.image(&case.variant)?),
                    word => command.arg(word),
                };
            }
            let ran = run(&mut command)?;
            if let Err(error) = expect(case, &ran, &bench.calls()?) {
                wrong.push(format!("\"{name}\" on {}: {}", driver.runtime, error.0));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    Ok(())
}

/// Field of a recorded call: `stream` of `cuStreamQuery stream=1`.
fn field<'a>(call: &'a str, name: &str) -> Option<&'a str> {
    let mut words = call.split(' ').filter_map(|word| word.split_once('='));
    words.find(|(key, _)| *key == name).map(|(_, value)| value)
}

fn function(call: &str) -> &str {
    call.split(' ').next().unwrap_or(call)
}

/// A kernel waits for the host calls that it makes. A driver that waited for the kernel within such
/// a call would wait indefinitely.
#[test]
fn driver_calls_do_not_wait_for_running_kernels() -> Result<()> {
    let bench = Bench::new()?;
    for driver in [CUDA, HIP] {
        let mut command = bench.loader(&driver)?;
        command.args(["--runtime", driver.runtime, "--timeout", "300"]);
        command.args(["--blocks", "8", "--threads", "32"]);
        succeed(command.arg(bench.image("CLIENT=1")?).arg("work"))?;
        let calls = bench.calls()?;
        let of = |name: &str| calls.iter().filter(|call| function(call) == name).count();

        let launches: Vec<usize> = (0..calls.len())
            .filter(|at| function(&calls[*at]) == driver.launch)
            .collect();
        assert_eq!(launches.len(), 3, "{calls:#?}");
        let kernels = launches
            .iter()
            .filter_map(|at| calls[*at].split(' ').nth(1));
        assert_eq!(kernels.collect::<Vec<_>>(), ["_begin", "_start", "_end"]);
        let shape = |at: usize| (field(&calls[at], "grid"), field(&calls[at], "block"));
        assert_eq!(shape(launches[0]), (Some("1,1,1"), Some("1,1,1")));
        assert_eq!(shape(launches[1]), (Some("8,1,1"), Some("32,1,1")));

        // Everything is loaded and allocated before the first launch; later calls only load and
        // allocate on behalf of the program.
        let late: BTreeSet<&str> = calls[launches[0]..]
            .iter()
            .map(|call| function(call))
            .collect();
        let allowed = [
            driver.launch,
            driver.query,
            driver.allocate,
            driver.free,
            driver.attach,
            driver.read,
            "done",
        ];
        let others = late.iter().filter(|name| !allowed.contains(*name));
        let others: Vec<_> = others.collect();
        assert!(others.is_empty(), "after the first launch: {others:?}");
        // Nor does the loader read while a kernel runs.
        for launch in launches {
            let running = calls[launch + 1..].iter().map(|call| function(call));
            let mut running = running.take_while(|name| *name != "done");
            assert!(running.all(|name| name != driver.read), "{calls:#?}");
        }

        // One allocation is the loader's own: it makes the driver create its pool.
        assert_eq!((of(driver.allocate), of(driver.free)), (33, 33));
        let streams = |name: &str| -> BTreeSet<_> {
            let calls = calls.iter().filter(|call| function(call) == name);
            calls.filter_map(|call| field(call, "stream")).collect()
        };
        assert_eq!(streams(driver.launch), ["1"].into());
        assert_eq!(streams(driver.allocate), ["2"].into());
        assert_eq!(streams(driver.free), ["2"].into());
        // Neither stream waits for the other, nor for the default stream.
        let created = calls.iter().filter(|call| call.contains("StreamCreate"));
        let flags: Vec<_> = created.filter_map(|call| field(call, "flags")).collect();
        assert_eq!(flags, ["1", "1"]);
        // An address is passed on only after the driver has reported the allocation complete.
        for (at, call) in calls.iter().enumerate() {
            if function(call) == driver.allocate {
                let next = calls[at + 1..]
                    .iter()
                    .filter(|call| call.ends_with("stream=2"));
                let next: Vec<_> = next.take(3).map(|call| function(call)).collect();
                assert_eq!(next, [driver.query; 3], "after call {at}");
            }
        }
    }
    Ok(())
}

/// The newest symbol first. Releases that share a symbol differ in its size.
#[test]
fn symbols_of_a_client_are_requested_once() -> Result<()> {
    let bench = Bench::new()?;
    let (new, old) = ("__llvm_rpc_client", "__llvm_libc_rpc_client");
    for driver in [CUDA, HIP] {
        for (variant, symbols) in [
            ("CLIENT=0", &[new, old][..]),
            ("CLIENT=1", &[new]),
            ("CLIENT=2", &[new, old]),
            ("CLIENT=4", &[new]),
        ] {
            let mut command = bench.loader(&driver)?;
            command.args(["--runtime", driver.runtime, "--timeout", "300"]);
            succeed(command.arg(bench.image(variant)?))?;
            let calls = bench.calls()?;
            let names = calls.iter().filter_map(|call| call.split(' ').nth(1));
            let found: Vec<_> = names.filter(|name| name.ends_with("rpc_client")).collect();
            assert_eq!(found, symbols, "{variant} on {}", driver.runtime);
        }
    }
    Ok(())
}

#[test]
fn image_is_read_from_standard_input() -> Result<()> {
    let bench = Bench::new()?;
    let image = bench.image("ONLY_START")?;
    // `run` leaves its programs without input.
    let piped = |words: &str| -> Result<Ran> {
        let loader = bench.loader(&CUDA)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("\"$0\" {words} < \"$1\"")]);
        shell.arg(loader.get_program()).arg(&image);
        shell.envs(
            loader
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        run(&mut shell)
    };
    for (word, printed) in [
        ("show", "show\n\n"),
        // The program's standard input is at its end: it reads nothing from it.
        ("hang-in-call", ""),
    ] {
        let ran = piped(&format!("--runtime cuda --timeout 300 - {word}"))?.success()?;
        assert_eq!(ran.stdout, printed, "{word}");
    }
    // The format is detected as that of a file.
    let ran = piped("-")?;
    assert_eq!(ran.status.code(), Some(126));
    let expected = "error: `-` is not a GPU program: ELF file for machine 62\n";
    assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
    Ok(())
}

/// A driver removes its memory when the process ends.
#[test]
fn server_stops_before_the_driver_ends() -> Result<()> {
    let bench = Bench::new()?;
    for driver in [CUDA, HIP] {
        let mut command = bench.loader(&driver)?;
        command.env("FAKE_END", "1");
        command.args(["--runtime", driver.runtime, "--timeout", "300"]);
        succeed(command.arg(bench.image("CLIENT=1")?).arg("work"))?;
        let calls = bench.calls()?;
        assert_eq!(calls.last().map(String::as_str), Some("end serving=0"));
    }
    Ok(())
}

/// A module or function that the driver loads at its first use waits for running kernels.
#[test]
fn cuda_loads_nothing_lazily() -> Result<()> {
    let bench = Bench::new()?;
    for (word, loads) in [("", 3), ("-DBEFORE_12_4", 0)] {
        let words: &[&str] = if word.is_empty() { &[] } else { &[word] };
        compile(
            &sources().join(CUDA.source),
            &bench.path(CUDA.soname),
            words,
        )?;
        let mut command = bench.loader(&CUDA)?;
        command.env("CUDA_MODULE_LOADING", "LAZY");
        command.args(["--runtime", "cuda", "--timeout", "300"]);
        succeed(command.arg(bench.image("CLIENT=1")?))?;
        let calls = bench.calls()?;
        let init = calls.iter().find(|call| function(call) == "cuInit");
        let init = init.and_then(|call| field(call, "CUDA_MODULE_LOADING"));
        assert_eq!(init, Some("EAGER"));
        // Drivers before 12.4 have no such call.
        let loaded = calls.iter().filter(|call| function(call) == "cuFuncLoad");
        assert_eq!(loaded.count(), loads);
    }
    Ok(())
}

/// A timeout reports a call that waits for input, and ends the process. The timeout grows until the
/// call is open, however slow the machine.
#[test]
fn timeout_reports_open_calls() -> Result<()> {
    let bench = Bench::new()?;
    let image = bench.image("ONLY_START")?;
    for seconds in ["0.5", "5", "50", "300"] {
        let mut command = bench.loader(&CUDA)?;
        command.args(["--runtime", "cuda", "--timeout", seconds]);
        command.arg(&image).arg("hang-in-call");
        // Input without data or end of file while the child runs.
        command.stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let ended = child.wait_with_output()?;
        drop(input);
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(124), "{said}");
        let reported = |calls| {
            format!("`_start` was still running after {seconds} s, with {calls} of the host open\n")
        };
        if said.contains(&reported("1 call")) {
            return Ok(());
        }
        assert!(said.contains(&reported("0 calls")), "{said}");
    }
    Err("the call was never open".into())
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn loader_starts_without_a_driver() -> Result<()> {
    let machine = Isolated::new()?;
    machine.install(&loader()?, "/bin/gpurpc-loader")?;
    for (image, library) in [
        (&b".version 7.0\n.entry _start()"[..], "libcuda.so.1, "),
        (b"CCOB", "libamdhip64.so.7, libamdhip64.so.6, "),
    ] {
        fs::write(machine.path("/tmp/image"), image)?;
        let ran = machine.run("/bin/gpurpc-loader", &["/tmp/image"])?;
        assert_eq!(ran.status.code(), Some(123), "{}", ran.stderr);
        let expected = format!("error: no GPU driver found: {library}");
        assert!(ran.stderr.starts_with(&expected), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("not found\n  searched: "),
            "{}",
            ran.stderr
        );
    }
    Ok(())
}
