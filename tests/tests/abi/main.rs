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
mod traces;
mod trials;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use adapters::Adapters;
use gpustub_core::library::Library;
use gpustub_core::symbols::SymbolList;
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, elf};
use programs::{
    CUDA, CUDART, CUFFT, CUFILE, CUSPARSE, Call, HIP, HIPBLAS, HIPSPARSE, Mode, NVML, Programs,
    ROCBLAS, calls, exported,
};
use shapes::Covered;

/// Functions that a caller's object imports.
fn imported(caller: &Path, symbols: &SymbolList) -> Result<BTreeSet<String>> {
    let rows = elf::symbols("--symbols", &caller.with_extension("o"))?;
    Ok(rows
        .into_iter()
        .filter(|row| row.section == "UND" && !symbols.lookup(&row.name).is_empty())
        .map(|row| row.name)
        .collect())
}

/// Result of a call.
enum Outcome {
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
) -> Outcome {
    let code = i32::try_from(version.code()).expect("a version");
    // A function that is the same in all versions is called in all that have it.
    if !shipped.abi.contains(name) {
        return if exported.contains(name) {
            Outcome::Called(name.to_owned())
        } else {
            Outcome::Absent
        };
    }
    let entries = shipped.abi.entries(name, header);
    let entry = entries
        .into_iter()
        .find(|entry| entry.from <= code && code < entry.below);
    let is_adapted = entry.as_ref().is_some_and(|entry| entry.adapter.is_some());
    match entry.map_or(Some(name.to_owned()), |entry| entry.name) {
        Some(name) if exported.contains(&name) && is_adapted => Outcome::Adapted,
        Some(name) if exported.contains(&name) => Outcome::Called(name),
        Some(name) => match shipped.fallback_symbols.get(&name) {
            Some(fallback) if exported.contains(fallback) => Outcome::Called(fallback.clone()),
            _ => Outcome::Absent,
        },
        None => Outcome::Refused,
    }
}

/// Numbers of calls of unchanged functions, and of calls that arrived under the same name, under
/// another name, or through an adapter, and of refused and absent ones.
#[derive(Debug, Default)]
struct Counts {
    unchanged: usize,
    same_name: usize,
    other_name: usize,
    adapted: usize,
    refused: usize,
    absent: usize,
}

/// Whether the library received a call as this function, with the same bytes, and filled all outputs.
fn is_understood(name: &str, call: &Call<'_>, recorded: &BTreeSet<&str>) -> bool {
    let arguments = call.arguments.unwrap_or_default();
    recorded.contains(format!("{name}{arguments}").as_str()) && call.result == "result 0 filled"
}

impl Counts {
    /// Counts a call, and returns whether it had the expected result.
    fn check(
        &mut self,
        shipped: &Library,
        call: &Call<'_>,
        outcome: &Outcome,
        recorded: &BTreeSet<&str>,
        arriving: &BTreeSet<String>,
    ) -> bool {
        let arguments = call.arguments.unwrap_or_default();
        let status = match outcome {
            Outcome::Called(name) => {
                if !shipped.abi.contains(call.name) {
                    self.unchanged += 1;
                } else if name == call.name {
                    self.same_name += 1;
                } else {
                    self.other_name += 1;
                }
                return is_understood(name, call, recorded);
            }
            Outcome::Adapted => {
                self.adapted += 1;
                return true;
            }
            Outcome::Refused => {
                self.refused += 1;
                shipped.status.refused
            }
            Outcome::Absent => {
                self.absent += 1;
                shipped.status.missing
            }
        };
        // The caller prints -1 for a struct that is not the library's.
        let is_struct = call.shape.contains("->struct");
        let status = if is_struct { -1 } else { status };
        // The function was not called, and only memory of the caller was zeroed. (A call with
        // nothing to fill counts as filled.)
        let is_harmless = call
            .result
            .strip_prefix(&format!("result {status} "))
            .is_some_and(|rest| ["untouched", "partly", "filled"].contains(&rest));
        let line = format!("{}{arguments}", call.name);
        is_harmless && (!recorded.contains(line.as_str()) || arriving.contains(&line))
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
        let first = trials.len();
        trials.extend(adapters.trials(programs.id, name, header, version));
        if trials.len() == first {
            wrong.push(format!("{name}: adapters.toml has no row"));
        }
    }
    let lines: String = (trials.iter().enumerate())
        .map(|(label, trial)| trial.line(label))
        .collect();
    let file = dir.join("cases");
    fs::write(&file, lines)?;
    let (printed, log) = programs.run(dir, caller, library, Some(&file))?;
    let calls = traces::traced_calls(&printed, &log);
    for (label, trial) in trials.iter().enumerate() {
        let call = calls.get(&label).ok_or("a case that was not run")?;
        if let Err(e) = trials::check(adapters, trial, call, refused) {
            wrong.push(format!("{}: {e}\n  {trial:?}\n  {call:?}", trial.name));
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
    without_function: usize,
}

/// A program, and how it was compiled.
struct Caller {
    program: PathBuf,
    header: Version,
    mode: Mode,
    /// Whether the stubs know the version of the headers.
    declared: bool,
    imported: BTreeSet<String>,
}

/// Calls of one library's programs on all versions of the library.
struct Survey<'a> {
    programs: &'a Programs,
    shipped: &'a Library,
    adapters: Adapters,
    dir: &'a Path,
    results: Results,
    /// Calls that [`Results::without_function`] counts.
    without_function: BTreeMap<String, usize>,
    wrong: Vec<String>,
}

impl Survey<'_> {
    /// Tries the calls of a program on a library.
    fn try_pair(&mut self, caller: &Caller, version: Version, library: &Path) -> Result<()> {
        let Caller {
            program,
            header,
            mode,
            declared,
            imported,
        } = caller;
        let (header, declared) = (*header, *declared);
        let (id, shipped) = (self.programs.id, self.shipped);
        let exported = exported(library)?;
        let (printed, log) = self.programs.run(self.dir, program, library, None)?;
        let recorded: BTreeSet<&str> = log.lines().collect();
        let pair = format!("{header}{} (declared: {declared}) on {version}", mode.0);
        let declares = HeaderVersion::parse(&header.to_string()).filter(|_| declared);
        let calls: Vec<(Call<'_>, Outcome)> = calls(&printed)
            .map(|call| {
                let outcome = expected(shipped, call.name, declares, version, &exported);
                (call, outcome)
            })
            .collect();
        // Calls of other functions can arrive under the name of a refused one.
        let arriving: BTreeSet<String> = calls
            .iter()
            .filter_map(|(call, outcome)| match outcome {
                Outcome::Called(name) => {
                    Some(format!("{name}{}", call.arguments.unwrap_or_default()))
                }
                _ => None,
            })
            .collect();
        let (mut called, mut adapted) = (BTreeSet::new(), BTreeSet::new());
        let mut covered = Covered::default();
        for (call, mut outcome) in calls {
            called.insert(call.name.to_owned());
            // A call can be passed as it is though a struct has another size.
            if let Outcome::Called(name) = &outcome
                && !is_understood(name, &call, &recorded)
                && !(self.adapters)
                    .trials(id, call.name, header, version)
                    .is_empty()
            {
                outcome = Outcome::Adapted;
            }
            if matches!(outcome, Outcome::Adapted) {
                adapted.insert(call.name.to_owned());
            }
            let lacks_function = matches!(outcome, Outcome::Refused | Outcome::Absent);
            if declared && lacks_function && self.programs.headers().contains(&version) {
                let key = format!("{} {header} on {version}", call.name);
                *self.without_function.entry(key).or_default() += 1;
            }
            let counts = if declared {
                &mut self.results.declared
            } else {
                &mut self.results.undeclared
            };
            if !counts.check(shipped, &call, &outcome, &recorded, &arriving) {
                self.wrong
                    .push(format!("{} of {pair}: {}", call.name, call.result));
            } else if !shipped.abi.contains(call.name) {
                covered.add(&call);
            }
        }
        if !adapted.is_empty() {
            let problems = try_adapters(
                self.programs,
                &self.adapters,
                self.dir,
                (program, header),
                (library, version),
                &adapted,
            )?;
            self.wrong
                .extend(problems.iter().map(|problem| format!("{pair}: {problem}")));
        }
        let missing = covered.missing(self.programs);
        assert!(
            missing.is_empty(),
            "{pair}: {missing:?} of {covered:?}\n{:?}",
            self.wrong
        );
        // The names behind macros are those of the compiled program.
        assert_eq!(&called, imported, "{header}{}", mode.0);
        Ok(())
    }
}

/// Tries every header on every library; returns the numbers of results.
fn called_correctly_or_refused(programs: &Programs) -> Result<Results> {
    let dir = scratch()?;
    let dir = dir.path();
    programs.write(dir)?;
    let shipped = Library::builtin(programs.id).expect("a shipped library");
    let symbols = programs.symbols(dir, shipped)?;
    let mut survey = Survey {
        programs,
        shipped,
        adapters: Adapters::read()?,
        dir,
        results: Results::default(),
        without_function: BTreeMap::new(),
        wrong: Vec::new(),
    };
    for header in programs.headers() {
        for mode in programs.modes {
            for declared in [true, false] {
                let program = programs.caller(dir, header, *mode, declared, &symbols)?;
                let caller = Caller {
                    imported: imported(&program, &symbols)?,
                    program,
                    header,
                    mode: *mode,
                    declared,
                };
                for (version, library) in programs.libraries(dir) {
                    survey.try_pair(&caller, version, &library)?;
                }
            }
        }
    }
    let Survey {
        mut results,
        without_function,
        wrong,
        ..
    } = survey;
    results.without_function = without_function.values().sum();
    assert!(wrong.is_empty(), "{}\n{results:?}", wrong.join("\n"));
    println!("{}: {results:?}: {without_function:#?}", programs.id);
    Ok(results)
}

/// Checks that the callers make calls, that every result occurs, and how many calls are without a function.
/// `renamed`: whether the library has functions that arrive under another name, unchanged.
fn assert_adapted(results: &Results, renamed: bool, without_function: usize) {
    let Results {
        declared,
        undeclared,
        ..
    } = results;
    assert!(
        declared.adapted > 100 && declared.same_name > 100 && (declared.other_name > 10) == renamed,
        "{results:?}"
    );
    // Without the version of the headers, the meaning of the arguments is unknown.
    assert!(undeclared.refused > 50, "{results:?}");
    assert_eq!(results.without_function, without_function, "{results:?}");
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_abi_table_functions_are_called_correctly_or_refused() -> Result<()> {
    assert_adapted(&called_correctly_or_refused(&CUDART)?, true, 24);
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_abi_table_functions_of_the_driver_are_called_correctly_or_refused() -> Result<()> {
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

/// Calls of declared headers by the outcome: under the same name, under another, adapted, refused, absent.
fn outcomes(programs: &Programs) -> Result<[usize; 5]> {
    let declared = called_correctly_or_refused(programs)?.declared;
    Ok([
        declared.same_name,
        declared.other_name,
        declared.adapted,
        declared.refused,
        declared.absent,
    ])
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_hipblas_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&HIPBLAS)?, [561, 288, 327, 81, 87]);
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_hipsparse_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&HIPSPARSE)?, [128, 0, 124, 4, 0]);
    Ok(())
}

#[test]
#[ignore = "needs clang and packages of suites that move on: ./tests/run --all"]
fn heavy_abi_table_functions_of_rocblas_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&ROCBLAS)?, [72, 48, 24, 0, 0]);
    Ok(())
}

/// Libraries of one major whose functions differ: they are distinguished by their own numbers.
#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_cufft_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&CUFFT)?, [45, 2, 0, 21, 4]);
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_cufile_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&CUFILE)?, [15, 0, 0, 21, 0]);
    Ok(())
}

#[test]
#[ignore = "needs clang and the headers of all versions: ./tests/run --all"]
fn heavy_abi_table_functions_of_cusparse_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&CUSPARSE)?, [6, 0, 0, 18, 0]);
    Ok(())
}

/// The lists of processes of a driver of 12.2 have entries of another size: the older function is called.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_abi_table_functions_of_nvml_are_called_correctly_or_refused() -> Result<()> {
    assert_eq!(outcomes(&NVML)?, [240, 48, 0, 0, 0]);
    Ok(())
}
