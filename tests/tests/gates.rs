//! Programs compiled against the real headers of one major of CUDA or HIP, on libraries of another:
//! every gated function is understood, or not called at all.
//!
//! The libraries are fakes, because real ones return without touching anything where there is no
//! GPU. They are made from the same real headers (`cargo xtask gate-programs`): each function
//! writes down its arguments, fills what it may write and reads what it may read, to the last
//! byte; the callers guard what they pass with pages that nobody may touch. Enumerators that were
//! renumbered, and fields that moved within a struct, are told by their names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{Library, override_variable};
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::command::succeed;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, components, elf, repository, scratch};

/// What is tried of one library.
struct Programs {
    id: &'static str,
    /// Versions of headers and of libraries, and the libraries' sonames.
    versions: &'static [(&'static str, &'static str)],
    /// The component with the headers of a version, and one of these.
    headers: (&'static str, &'static str),
    defines: &'static [&'static str],
    modes: &'static [Mode],
    /// Libraries that are not to be looked for.
    off: &'static [&'static str],
}

/// The end of a caller's name, and the flags of that mode.
type Mode = (&'static str, &'static [&'static str]);

const CUDA_MODES: &[Mode] = &[
    ("", &[]),
    ("-per-thread", &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

const CUDART: Programs = Programs {
    id: "cudart",
    versions: &[
        ("11.8", "libcudart.so.11.0"),
        ("12.9", "libcudart.so.12"),
        ("13.5", "libcudart.so.13"),
    ],
    headers: ("wheels/cudart-", "cuda_runtime_api.h"),
    defines: &[],
    modes: CUDA_MODES,
    off: &["cuda"],
};

const CUDA: Programs = Programs {
    id: "cuda",
    versions: &[
        ("11.8", "libcuda.so.1"),
        ("12.9", "libcuda.so.1"),
        ("13.5", "libcuda.so.1"),
    ],
    headers: ("wheels/cudart-", "cuda.h"),
    off: &[],
    ..CUDART
};

const HIP: Programs = Programs {
    id: "hip",
    versions: &[
        ("5.2", "libamdhip64.so.5"),
        ("5.7", "libamdhip64.so.5"),
        ("6.4", "libamdhip64.so.6"),
        ("7.2", "libamdhip64.so.7"),
    ],
    headers: ("hip-headers-", "hip/hip_runtime_api.h"),
    defines: &["-D__HIP_PLATFORM_AMD__"],
    // No gated function has a twin for the stream of a thread, so that both are the same today.
    modes: &[
        ("", &[]),
        ("-per-thread", &["-DHIP_API_PER_THREAD_DEFAULT_STREAM"]),
    ],
    off: &[],
};

impl Programs {
    /// The sources of callers, and the fake libraries.
    fn write(&self, dir: &Path) -> Result<()> {
        let (folder, _) = self.headers;
        let components = components::component(&format!("{folder}{}", self.versions[0].0))?;
        let root = components
            .ancestors()
            .nth(Path::new(folder).components().count());
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(repository())
            .args(["run", "--quiet", "--offline", "--package", "xtask", "--"])
            .arg("gate-programs")
            .arg(dir)
            .arg(self.id)
            .arg("--components")
            .arg(root.unwrap_or(&components));
        succeed(&mut cargo)?;
        for (version, soname) in self.versions {
            let folder = dir.join(version);
            fs::create_dir_all(&folder)?;
            let mut cc = Command::new("cc");
            cc.current_dir(dir.join(self.id))
                .args(["-O1", "-shared", "-fPIC"]);
            cc.arg(format!("-Wl,-soname,{soname}"));
            cc.arg(format!("-Wl,--version-script=fake-{version}.map"));
            cc.arg("-o").arg(folder.join(soname));
            succeed(cc.arg(format!("fake-{version}.c")))?;
        }
        Ok(())
    }

    /// The folder of the real headers of a version.
    fn include(&self, version: &str) -> Result<PathBuf> {
        let (folder, header) = self.headers;
        let component = components::component(&format!("{folder}{version}"))?;
        let mut find = Command::new("find");
        find.arg(&component).arg("-path").arg(format!("*/{header}"));
        let found = succeed(&mut find)?.stdout;
        let found = Path::new(found.lines().next().unwrap_or_default());
        let include = found
            .ancestors()
            .nth(Path::new(header).components().count());
        Ok(include.unwrap_or(&component).to_owned())
    }

    /// A caller compiled against the headers of a version, with stubs that know it (or are not
    /// told).
    fn caller(&self, dir: &Path, version: &str, mode: Mode, declared: bool) -> Result<PathBuf> {
        let (end, flags) = mode;
        let folder = dir.join(format!("stubs-{version}{end}-{declared}"));
        fs::create_dir_all(&folder)?;
        let header = match declared {
            true => format!("header = \"{version}\"\n"),
            false => String::new(),
        };
        let manifest = format!("schema = 1\n[stub.{}]\n{header}", self.id);
        let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
        let archive = Stubs::write(&folder, &plan, "cc", &[])?.archive()?;
        let object = folder.join("caller.o");
        let mut cc = Command::new("cc");
        cc.current_dir(dir.join(self.id))
            .args(["-O1", "-c", "-Wno-deprecated-declarations"])
            .args(self.defines)
            .args(flags);
        cc.arg("-isystem").arg(repository().join("xtask/headers"));
        cc.arg("-isystem").arg(self.include(version)?);
        cc.arg("-o").arg(&object);
        cc.arg(format!("caller-{version}{end}.c"));
        succeed(&mut cc)?;
        let program = folder.join("caller");
        let mut cc = Command::new("cc");
        succeed(cc.arg("-o").arg(&program).arg(&object).arg(archive))?;
        Ok(program)
    }

    /// Runs a caller on a library: its calls, and what the library saw.
    fn run(&self, dir: &Path, caller: &Path, library: &Path) -> Result<(String, String)> {
        let log = dir.join("log");
        fs::write(&log, "")?;
        let mut command = Command::new(caller);
        command
            .env(override_variable(self.id), library)
            .envs(self.off.iter().map(|id| (override_variable(id), "off")))
            .env("GPUSTUB_FAKE_LOG", &log);
        let printed = succeed(&mut command)?.stdout;
        Ok((printed, fs::read_to_string(&log)?))
    }
}

/// The functions that a caller's object really asks the linker for.
fn imported(caller: &Path, library: &Library) -> Result<BTreeSet<String>> {
    let rows = elf::symbols("--symbols", &caller.with_extension("o"))?;
    let names = rows.into_iter().filter(|row| row.section == "UND");
    let names = names.map(|row| row.name);
    Ok(names.filter(|name| library.gates.has(name)).collect())
}

/// The functions that a fake library exports.
fn exported(library: &Path) -> Result<BTreeSet<String>> {
    let rows = elf::symbols("--dyn-syms", library)?;
    let rows = rows.into_iter().filter(|row| row.section != "UND");
    Ok(rows
        .map(|row| row.name.split('@').next().unwrap_or_default().to_owned())
        .collect())
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
    /// This one, with a null pointer as this argument more.
    Translated(String, u8),
    /// The meaning is not there under any name, and the call is not made.
    Refused,
    /// The library lacks the function.
    Absent,
}

/// What the gates say, on a library with these functions.
fn expected(
    shipped: &Library,
    name: &str,
    header: Option<&str>,
    version: Version,
    exported: &BTreeSet<String>,
) -> End {
    let code = i32::try_from(version.code()).expect("a version");
    let header = header.and_then(HeaderVersion::parse);
    let gates = shipped.gates.of(name, header);
    let gate = gates
        .into_iter()
        .find(|gate| gate.from <= code && code < gate.below);
    let null = gate.as_ref().and_then(|gate| gate.null);
    match gate.map_or(Some(name.to_owned()), |gate| gate.name) {
        Some(name) if exported.contains(&name) => match null {
            None => End::Called(name),
            Some(argument) => End::Translated(name, argument),
        },
        Some(_) => End::Absent,
        None => End::Refused,
    }
}

/// Arguments as a caller passes them (` 0:0x12 1:…`), with a null pointer put in at one place.
fn with_null(passed: &str, argument: u8) -> String {
    let passed = passed.split_whitespace().map(|word| {
        let (_, value) = word.split_once(':').expect("a number and a value");
        value
    });
    let mut values: Vec<&str> = passed.collect();
    values.insert(argument.into(), "NULL");
    let values = values.iter().enumerate();
    values.map(|(at, value)| format!(" {at}:{value}")).collect()
}

/// How often a call was understood under its own name, under another, with a null pointer more,
/// refused, and absent.
#[derive(Debug, Default)]
struct Counts {
    own: usize,
    other: usize,
    translated: usize,
    refused: usize,
    absent: usize,
}

impl Counts {
    /// Counts a call, and says whether it came to the expected end.
    fn check(
        &mut self,
        shipped: &Library,
        call: &Call<'_>,
        end: &End,
        seen: &BTreeSet<&str>,
    ) -> bool {
        let passed = call.passed.unwrap_or_default();
        let status = match end {
            End::Called(name) => {
                self.own += usize::from(name == call.name);
                self.other += usize::from(name != call.name);
                return seen.contains(format!("{name}{passed}").as_str())
                    && call.result == "result 0 filled";
            }
            End::Translated(name, argument) => {
                self.translated += 1;
                return seen.contains(format!("{name}{}", with_null(passed, *argument)).as_str())
                    && call.result == "result 0 filled";
            }
            End::Refused => {
                self.refused += 1;
                shipped.codes.refused
            }
            End::Absent => {
                self.absent += 1;
                shipped.codes.function_missing
            }
        };
        // The function was not called, and what is zeroed is the caller's to hold. (A call with
        // nothing to fill counts as filled.)
        let harmless = ["untouched", "partly", "filled"];
        let result = call.result.strip_prefix(&format!("result {status} "));
        result.is_some_and(|rest| harmless.contains(&rest))
            && !seen.contains(format!("{}{passed}", call.name).as_str())
    }
}

/// Tries every header on every library; how many calls came to which end.
fn understood_or_not_called(programs: &Programs) -> Result<Counts> {
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let mut counts = Counts::default();
    let mut wrong = Vec::new();
    for (header, _) in programs.versions {
        for mode in programs.modes {
            for declared in [true, false] {
                let caller = programs.caller(dir, header, *mode, declared)?;
                let imported = imported(&caller, shipped)?;
                for (library, soname) in programs.versions {
                    let version = Version::parse(library).expect("a version");
                    let library_file = dir.join(library).join(soname);
                    let exported = exported(&library_file)?;
                    let (printed, log) = programs.run(dir, &caller, &library_file)?;
                    let seen: BTreeSet<&str> = log.lines().collect();
                    let mut called = BTreeSet::new();
                    for call in calls(&printed) {
                        called.insert(call.name.to_owned());
                        let header = declared.then_some(*header);
                        let end = expected(shipped, call.name, header, version, &exported);
                        if !counts.check(shipped, &call, &end, &seen) {
                            wrong.push(format!(
                                "{} of {header:?}{} (declared: {declared}) on {library}: {}",
                                call.name, mode.0, call.result
                            ));
                        }
                    }
                    // The names behind macros are those of the compiled program.
                    assert_eq!(called, imported, "{header}{}", mode.0);
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}\n{counts:?}", wrong.join("\n"));
    println!("{counts:?}");
    Ok(counts)
}

#[test]
#[ignore = "needs clang and the headers of three majors: ./tests/run"]
fn every_gated_function_is_understood_or_not_called() -> Result<()> {
    let counts = understood_or_not_called(&CUDART)?;
    // That the callers call at all, and that each end was seen.
    let Counts {
        own,
        other,
        translated,
        refused,
        absent,
    } = counts;
    // On 13: six functions of 11.8, seven of 12.9, and a twin each, with and without per-thread streams.
    assert_eq!(translated, 12 + 15, "{counts:?}");
    assert!(
        own > 300 && other > 100 && refused > 300 && absent > 30,
        "{counts:?}"
    );
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of three majors: ./tests/run"]
fn every_gated_function_of_the_driver_is_understood_or_not_called() -> Result<()> {
    let counts = understood_or_not_called(&CUDA)?;
    // The driver gives what is new a new name, as a rule.
    assert!(counts.own > 1000 && counts.refused > 10, "{counts:?}");
    assert_eq!(counts.translated, 0);
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_every_gated_function_of_hip_is_understood_or_not_called() -> Result<()> {
    let counts = understood_or_not_called(&HIP)?;
    assert!(counts.own > 100 && counts.refused > 300, "{counts:?}");
    Ok(())
}
