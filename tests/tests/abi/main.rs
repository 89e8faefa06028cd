//! Programs compiled against the real headers of one major of CUDA or HIP, on libraries of another.
//! Every call of a function of an ABI table has its correct meaning, or is refused; so has a call
//! of one unchanged function for each shape of a call.
//!
//! The libraries are fakes, because real ones return without any memory access if there is no GPU.
//! They are generated from the same real headers (`cargo xtask abi-programs`): each function
//! records its arguments, fills all that it may write and reads all that it may read, to the last
//! byte; the callers surround the arguments with inaccessible pages. Enumerators that were
//! renumbered, and fields that moved within a struct, are identified by their names.
//!
//! A call that an adapter translates is repeated with the arguments of `tests/cases/adapters.toml`, and
//! compared field by field.

mod adapters;
mod changes;
mod mutations;
mod nvml;
mod programs;
mod shapes;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use adapters::Adapters;
use gpustub_core::library::Library;
use gpustub_core::symbols::SymbolList;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, elf};
use programs::{
    CUDA, CUDART, CUFFT, CUFILE, CUSPARSE, Call, HIP, HIPBLAS, HIPSPARSE, NVML, Programs, ROCBLAS,
    calls, exported,
};
use shapes::Covered;

/// Functions that a caller's object imports.
fn imported(caller: &Path, symbols: &SymbolList) -> Result<BTreeSet<String>> {
    let rows = elf::symbols("--symbols", &caller.with_extension("o"))?;
    let names = rows.into_iter().filter(|row| row.section == "UND");
    let names = names.map(|row| row.name);
    Ok(names
        .filter(|name| !symbols.lookup(name).is_empty())
        .collect())
}

/// Result of a call.
enum End {
    /// A call of this function of the library.
    Called(String),
    /// A call by an adapter, with the result of `adapters.toml`.
    Adapted,
    /// A refusal: no function of the library has this meaning.
    Refused,
    /// The missing library function's error.
    Absent,
}

/// Result that the ABI table requires, on a library with these functions.
fn expected(
    shipped: &Library,
    name: &str,
    header: Option<HeaderVersion>,
    version: Version,
    exported: &BTreeSet<String>,
) -> End {
    let code = i32::try_from(version.code()).expect("a version");
    // A function that is the same in all versions is called in all that have it.
    if !shipped.abi.contains(name) {
        return if exported.contains(name) {
            End::Called(name.to_owned())
        } else {
            End::Absent
        };
    }
    let entries = shipped.abi.entries(name, header);
    let entry = entries
        .into_iter()
        .find(|entry| entry.from <= code && code < entry.below);
    let is_adapted = entry.as_ref().is_some_and(|entry| entry.adapter.is_some());
    match entry.map_or(Some(name.to_owned()), |entry| entry.name) {
        Some(name) if exported.contains(&name) && is_adapted => End::Adapted,
        Some(name) if exported.contains(&name) => End::Called(name),
        Some(name) => match shipped.fallback_symbols.get(&name) {
            Some(other) if exported.contains(other) => End::Called(other.clone()),
            _ => End::Absent,
        },
        None => End::Refused,
    }
}

/// Numbers of calls of unchanged functions, and of calls that arrived under their own name, under
/// another, or through an adapter, and of refused and absent ones.
#[derive(Debug, Default)]
struct Counts {
    unchanged: usize,
    own: usize,
    other: usize,
    adapted: usize,
    refused: usize,
    absent: usize,
}

/// Whether the library received a call as this function, with the same bytes, and filled all outputs.
fn is_understood(name: &str, call: &Call<'_>, seen: &BTreeSet<&str>) -> bool {
    let passed = call.passed.unwrap_or_default();
    seen.contains(format!("{name}{passed}").as_str()) && call.result == "result 0 filled"
}

impl Counts {
    /// Counts a call, and returns whether it had the expected result.
    fn check(
        &mut self,
        shipped: &Library,
        call: &Call<'_>,
        end: &End,
        seen: &BTreeSet<&str>,
        arriving: &BTreeSet<String>,
    ) -> bool {
        let passed = call.passed.unwrap_or_default();
        let status = match end {
            End::Called(name) => {
                if !shipped.abi.contains(call.name) {
                    self.unchanged += 1;
                } else if name == call.name {
                    self.own += 1;
                } else {
                    self.other += 1;
                }
                return is_understood(name, call, seen);
            }
            End::Adapted => {
                self.adapted += 1;
                return true;
            }
            End::Refused => {
                self.refused += 1;
                shipped.status.refused
            }
            End::Absent => {
                self.absent += 1;
                shipped.status.missing
            }
        };
        // The caller prints -1 for a struct that is not the library's.
        let is_struct = call.shape.contains("->struct");
        let status = if is_struct { -1 } else { status };
        // The function was not called, and only memory of the caller was zeroed. (A call with
        // nothing to fill counts as filled.)
        let harmless = ["untouched", "partly", "filled"];
        let result = call.result.strip_prefix(&format!("result {status} "));
        let line = format!("{}{passed}", call.name);
        result.is_some_and(|rest| harmless.contains(&rest))
            && (!seen.contains(line.as_str()) || arriving.contains(&line))
    }
}

/// Makes the calls of `adapters.toml` for these functions. Returns what is wrong.
fn try_adapters(
    programs: &Programs,
    adapters: &Adapters,
    dir: &Path,
    (caller, header): (&Path, Version),
    (library, version): (&Path, Version),
    names: &BTreeSet<String>,
) -> Result<Vec<String>> {
    let refused = Library::builtin(programs.id).map_or(0, |library| library.status.refused);
    let (mut trials, mut wrong) = (Vec::new(), Vec::new());
    for name in names {
        let of_name = adapters.trials(programs.id, name, header, version);
        if of_name.is_empty() {
            wrong.push(format!("{name}: adapters.toml has no row"));
        }
        trials.extend(of_name);
    }
    let lines = trials.iter().enumerate();
    let lines: String = lines.map(|(label, trial)| trial.line(label)).collect();
    let file = dir.join("cases");
    fs::write(&file, lines)?;
    let (printed, log) = programs.run(dir, caller, library, Some(&file))?;
    let runs = trials::runs(&printed, &log);
    for (label, trial) in trials.iter().enumerate() {
        let ran = runs.get(&label).ok_or("a case that was not run")?;
        if let Err(e) = trials::check(adapters, trial, ran, refused) {
            wrong.push(format!("{}: {e}\n  {trial:?}\n  {ran:?}", trial.name));
        }
    }
    Ok(wrong)
}

/// Results of the calls of programs that declare their headers' version, and of the others.
#[derive(Debug, Default)]
struct Results {
    declared: Counts,
    undeclared: Counts,
    /// Calls of the former without a function, on libraries of the headers' versions.
    left: usize,
}

/// Tries every header on every library; returns the numbers of results.
fn called_correctly_or_refused(programs: &Programs) -> Result<Results> {
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let symbols = programs.symbols(dir, shipped)?;
    let adapters = Adapters::read()?;
    let mut results = Results::default();
    let mut left: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for header in programs.headers() {
        for mode in programs.modes {
            for declared in [true, false] {
                let caller = programs.caller(dir, header, *mode, declared, &symbols)?;
                let imported = imported(&caller, &symbols)?;
                for (version, library_file) in programs.libraries(dir) {
                    let exported = exported(&library_file)?;
                    let (printed, log) = programs.run(dir, &caller, &library_file, None)?;
                    let seen: BTreeSet<&str> = log.lines().collect();
                    let pair = format!("{header}{} (declared: {declared}) on {version}", mode.0);
                    let (mut called, mut covered) = (BTreeSet::new(), Covered::default());
                    let mut adapted = BTreeSet::new();
                    let declares = HeaderVersion::parse(&header.to_string()).filter(|_| declared);
                    let end = |call: &Call<'_>| {
                        expected(shipped, call.name, declares, version, &exported)
                    };
                    // Calls of other functions can arrive under the name of a refused one.
                    let arriving = calls(&printed).filter_map(|call| match end(&call) {
                        End::Called(name) => {
                            Some(format!("{name}{}", call.passed.unwrap_or_default()))
                        }
                        _ => None,
                    });
                    let arriving: BTreeSet<String> = arriving.collect();
                    for call in calls(&printed) {
                        called.insert(call.name.to_owned());
                        let mut end = end(&call);
                        // A call can be passed as it is though a struct has another size.
                        if let End::Called(name) = &end
                            && !is_understood(name, &call, &seen)
                            && !adapters
                                .trials(programs.id, call.name, header, version)
                                .is_empty()
                        {
                            end = End::Adapted;
                        }
                        if matches!(end, End::Adapted) {
                            adapted.insert(call.name.to_owned());
                        }
                        let counts = if declared {
                            &mut results.declared
                        } else {
                            &mut results.undeclared
                        };
                        let lacks = matches!(end, End::Refused | End::Absent);
                        if declared && lacks && programs.headers().contains(&version) {
                            let place = format!("{} {header} on {version}", call.name);
                            *left.entry(place).or_default() += 1;
                        }
                        if !counts.check(shipped, &call, &end, &seen, &arriving) {
                            wrong.push(format!("{} of {pair}: {}", call.name, call.result));
                        } else if !shipped.abi.contains(call.name) {
                            covered.add(&call);
                        }
                    }
                    if !adapted.is_empty() {
                        let problems = try_adapters(
                            programs,
                            &adapters,
                            dir,
                            (&caller, header),
                            (&library_file, version),
                            &adapted,
                        )?;
                        wrong.extend(problems.iter().map(|problem| format!("{pair}: {problem}")));
                    }
                    let missing = covered.missing(programs);
                    assert!(
                        missing.is_empty(),
                        "{pair}: {missing:?} of {covered:?}\n{wrong:?}"
                    );
                    // The names behind macros are those of the compiled program.
                    assert_eq!(called, imported, "{header}{}", mode.0);
                }
            }
        }
    }
    results.left = left.values().sum();
    assert!(wrong.is_empty(), "{}\n{results:?}", wrong.join("\n"));
    println!("{}: {results:?}: {left:#?}", programs.id);
    Ok(results)
}

/// Checks that the callers make calls, and that every result occurred; and how many calls are left without a
/// function; `renamed`: whether the library has functions that arrive under another name, unchanged.
fn assert_adapted(results: &Results, renamed: bool, left: usize) {
    let Results {
        declared,
        undeclared,
        ..
    } = results;
    assert!(
        declared.adapted > 100 && declared.own > 100 && (declared.other > 10) == renamed,
        "{results:?}"
    );
    // Without the version of the headers, the meaning of the arguments is unknown.
    assert!(undeclared.refused > 50, "{results:?}");
    assert_eq!(results.left, left, "{results:?}");
}

#[test]
#[ignore = "needs clang and the headers of three majors: ./tests/run"]
fn abi_table_functions_are_called_correctly_or_refused() -> Result<()> {
    assert_adapted(&called_correctly_or_refused(&CUDART)?, true, 18);
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of three majors: ./tests/run"]
fn abi_table_functions_of_the_driver_are_called_correctly_or_refused() -> Result<()> {
    assert_adapted(&called_correctly_or_refused(&CUDA)?, true, 24);
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_each_runtime_are_called_correctly_or_refused() -> Result<()> {
    let results = called_correctly_or_refused(&CUDART.of_all_versions())?;
    assert!(results.declared.adapted > 1000, "{results:?}");
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_each_driver_are_called_correctly_or_refused() -> Result<()> {
    let results = called_correctly_or_refused(&CUDA.of_all_versions())?;
    assert!(results.declared.adapted > 1000, "{results:?}");
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_hip_are_called_correctly_or_refused() -> Result<()> {
    assert_adapted(&called_correctly_or_refused(&HIP)?, false, 56);
    Ok(())
}

/// Calls of declared headers by the result: under its own name, under another, adapted, refused, absent.
fn ends(programs: &Programs) -> Result<[usize; 5]> {
    let declared = called_correctly_or_refused(programs)?.declared;
    let Counts {
        own,
        other,
        adapted,
        refused,
        absent,
        ..
    } = declared;
    Ok([own, other, adapted, refused, absent])
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_hipblas_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&HIPBLAS)?, [561, 288, 327, 81, 87]);
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_hipsparse_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&HIPSPARSE)?, [128, 0, 124, 4, 0]);
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_rocblas_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&ROCBLAS)?, [72, 48, 24, 0, 0]);
    Ok(())
}

/// Libraries of one major whose functions differ: they are distinguished by their own numbers.
#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_cufft_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&CUFFT)?, [45, 2, 0, 21, 4]);
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_cufile_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&CUFILE)?, [15, 0, 0, 21, 0]);
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_cusparse_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&CUSPARSE)?, [6, 0, 0, 18, 0]);
    Ok(())
}

/// The lists of processes of a driver of 12.2 have entries of another size: the older function is called.
#[test]
#[ignore = "needs clang and headers of three majors: ./tests/run"]
fn abi_table_functions_of_nvml_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(ends(&NVML)?, [240, 48, 0, 0, 0]);
    Ok(())
}
