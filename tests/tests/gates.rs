//! Programs compiled against the real headers of one CUDA major, on libraries of another: every
//! gated function of the runtime is understood, or not called at all.
//!
//! The libraries are fakes, because real ones return without touching anything where there is no
//! GPU. They are made from the same real headers (`cargo xtask gate-programs`): each function
//! writes down its arguments, fills what it may write and reads what it may read, to the last
//! byte; the callers guard what they pass with pages that nobody may touch.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::command::succeed;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, components, repository, scratch};

/// Versions of headers and of libraries, and the libraries' sonames.
const VERSIONS: [(&str, &str); 3] = [
    ("11.8", "libcudart.so.11.0"),
    ("12.9", "libcudart.so.12"),
    ("13.5", "libcudart.so.13"),
];

/// What a call that is refused returns: `cudaErrorNotSupported`.
const NOT_SUPPORTED: &str = "result 801 ";
/// What a call returns that the library lacks: `cudaErrorSharedObjectSymbolNotFound`.
const ABSENT: &str = "result 302 ";

/// The end of a caller's name, and the flags of that mode.
type Mode = (&'static str, &'static [&'static str]);

const MODES: [Mode; 2] = [
    ("", &[]),
    ("-per-thread", &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

/// The sources of callers and fake libraries.
fn write_programs(dir: &Path) -> Result<()> {
    let components = components::component("wheels")?;
    let components = components.parent().unwrap_or(&components).to_owned();
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(repository())
        .args(["run", "--quiet", "--offline", "--package", "xtask", "--"])
        .arg("gate-programs")
        .arg(dir)
        .arg("--components")
        .arg(components);
    succeed(&mut cargo)?;
    for (version, soname) in VERSIONS {
        let folder = dir.join(version);
        fs::create_dir_all(&folder)?;
        let mut cc = Command::new("cc");
        cc.current_dir(dir).args(["-O1", "-shared", "-fPIC"]);
        cc.arg(format!("-Wl,-soname,{soname}"));
        cc.arg("-o").arg(folder.join(soname));
        succeed(cc.arg(format!("fake-{version}.c")))?;
    }
    Ok(())
}

/// The folder of the real headers of a version.
fn headers(version: &str) -> Result<PathBuf> {
    let wheel = components::component(&format!("wheels/cudart-{version}"))?;
    let mut find = Command::new("find");
    find.arg(&wheel).args(["-name", "cuda_runtime_api.h"]);
    let found = succeed(&mut find)?.stdout;
    Ok(Path::new(found.trim())
        .parent()
        .unwrap_or(&wheel)
        .to_owned())
}

/// A caller compiled against the headers of a version, with stubs that know it (or are not told).
fn caller(dir: &Path, version: &str, mode: Mode, declared: bool) -> Result<PathBuf> {
    let (end, flags) = mode;
    let folder = dir.join(format!("stubs-{version}{end}-{declared}"));
    fs::create_dir_all(&folder)?;
    let header = match declared {
        true => format!("header = \"{version}\"\n"),
        false => String::new(),
    };
    let manifest = format!("schema = 1\n[stub.cudart]\n{header}");
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    let archive = Stubs::write(&folder, &plan, "cc", &[])?.archive()?;
    let program = folder.join("caller");
    let mut cc = Command::new("cc");
    cc.current_dir(dir)
        .args(["-O1", "-Wno-deprecated-declarations"])
        .args(flags);
    cc.arg("-isystem").arg(repository().join("xtask/headers"));
    cc.arg("-isystem").arg(headers(version)?);
    cc.arg("-o").arg(&program);
    cc.arg(format!("caller-{version}{end}.c")).arg(archive);
    succeed(&mut cc)?;
    Ok(program)
}

/// One call of a caller.
struct Call<'t> {
    /// The name that was linked.
    name: &'t str,
    /// The arguments, in the words of the fake library; `None`: it did not come so far.
    passed: Option<&'t str>,
    /// `STATUS filled`, `STATUS untouched`, …
    result: &'t str,
}

/// Runs a caller on a library: its calls, and what the library saw.
fn run(dir: &Path, caller: &Path, library: &Path) -> Result<(String, String)> {
    let log = dir.join("log");
    fs::write(&log, "")?;
    let mut command = Command::new(caller);
    command
        .env("GPUSTUB_CUDART_PATH", library)
        .env("GPUSTUB_CUDA_PATH", "off")
        .env("GPUSTUB_FAKE_LOG", &log);
    let printed = succeed(&mut command)?.stdout;
    Ok((printed, fs::read_to_string(&log)?))
}

fn calls(printed: &str) -> impl Iterator<Item = Call<'_>> {
    printed.split("call ").skip(1).map(|call| {
        let mut lines = call.lines();
        let names = lines.next().unwrap_or_default();
        let rest: Vec<&str> = lines.collect();
        let name = names.split(' ').nth(1).unwrap_or_default();
        let passed = rest.iter().find_map(|line| line.strip_prefix("passed "));
        Call {
            name,
            passed: passed.map(|line| line.strip_prefix(name).unwrap_or(line)),
            result: rest.last().copied().unwrap_or_default(),
        }
    })
}

/// What a call comes to.
enum End {
    /// This function of the library.
    Called(String),
    /// A status, and no function.
    Answered(&'static str),
}

/// What the gates and the symbol list say.
fn expected(name: &str, header: Option<&str>, library: Version) -> End {
    let shipped = Library::builtin("cudart").expect("a shipped library");
    let gates = &shipped.gates;
    let code = i32::try_from(library.code()).expect("a version");
    let header = header.and_then(HeaderVersion::parse);
    let gate = gates
        .of(name, header)
        .into_iter()
        .find(|gate| gate.from <= code && code < gate.below);
    let Some(name) = gate.map_or(Some(name.to_owned()), |gate| gate.name) else {
        return End::Answered(NOT_SUPPORTED);
    };
    let exported = shipped.symbols.lookup(&name).iter().any(|symbol| {
        let ranges = &symbol.present;
        ranges.is_empty() || ranges.iter().any(|(a, b)| (*a..=*b).contains(&library))
    });
    match exported {
        true => End::Called(name),
        false => End::Answered(ABSENT),
    }
}

/// How often a call was understood under its own name, under another, refused, and absent.
#[derive(Debug, Default)]
struct Counts {
    own: usize,
    other: usize,
    refused: usize,
    absent: usize,
}

fn check(call: &Call<'_>, end: &End, seen: &BTreeSet<&str>, counts: &mut Counts) -> bool {
    let passed = call.passed.unwrap_or_default();
    match end {
        End::Called(name) => {
            counts.own += usize::from(name == call.name);
            counts.other += usize::from(name != call.name);
            seen.contains(format!("{name}{passed}").as_str()) && call.result == "result 0 filled"
        }
        End::Answered(status) => {
            counts.refused += usize::from(*status == NOT_SUPPORTED);
            counts.absent += usize::from(*status == ABSENT);
            // The function was not called, and what is zeroed is the caller's to hold. (A call with
            // nothing to fill counts as filled.)
            let harmless = ["untouched", "partly", "filled"];
            let result = call.result.strip_prefix(status);
            result.is_some_and(|rest| harmless.contains(&rest))
                && !seen.contains(format!("{}{passed}", call.name).as_str())
        }
    }
}

#[test]
#[ignore = "needs clang and the headers of three majors: ./tests/run"]
fn every_gated_function_is_understood_or_not_called() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    write_programs(dir)?;
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    for (header, _) in VERSIONS {
        for mode in MODES {
            for declared in [true, false] {
                let caller = caller(dir, header, mode, declared)?;
                for (library, soname) in VERSIONS {
                    let version = Version::parse(library).expect("a version");
                    let (printed, log) = run(dir, &caller, &dir.join(library).join(soname))?;
                    let seen: BTreeSet<&str> = log.lines().collect();
                    for call in calls(&printed) {
                        let end = expected(call.name, declared.then_some(header), version);
                        if !check(&call, &end, &seen, &mut counts) {
                            wrong.push(format!(
                                "{} of {header}{} (declared: {declared}) on {library}: {}",
                                call.name, mode.0, call.result
                            ));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{counts:?}", wrong.join("\n"));
    println!("{counts:?}");
    // That the callers call at all, and that each end was seen.
    let Counts {
        own,
        other,
        refused,
        absent,
    } = counts;
    assert!(
        own > 300 && other > 100 && refused > 300 && absent > 30,
        "{counts:?}"
    );
    Ok(())
}
