use std::collections::BTreeSet;
use std::process::Command;

use super::super::table::{AbiTable, AbiVariant};
use super::super::tests::{components, shipped};
use super::*;

/// Functions whose results have new fields in bytes that were reserved, or other numbers behind `void *`.
const RESULTS: [&str; 4] = [
    "cudaFuncGetAttributes",
    "cudaPointerGetAttributes",
    "hipDrvPointerGetAttributes",
    "hipPointerGetAttribute",
];

/// Runs a command that must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_callers_and_fake_libraries_agree_just_where_the_abi_tables_say_so() {
    for id in ["cuda", "cudart"] {
        let agreed = agreed(id);
        assert!(agreed > 300, "{agreed} calls of {id} were understood");
    }
}

#[test]
#[ignore = "needs packages of suites that change (tests/run --all)"]
fn heavy_callers_and_fake_libraries_of_hip_agree_just_where_the_abi_tables_say_so() {
    assert!(agreed("hip") > 100);
}

/// Number of calls of functions of the ABI table that were understood, without stubs. All other calls
/// must be.
fn agreed(id: &str) -> usize {
    let components = components();
    let programs = PROGRAMS.iter().find(|programs| programs.id == id).unwrap();
    let recipe = programs.recipe().unwrap();
    let directory = std::env::temp_dir().join(format!("gpustub-abi-{id}-{}", std::process::id()));
    programs.write(&directory, &components, false).unwrap();
    compile(programs, &directory, &components);
    let mut calls = Calls {
        recipe,
        table: AbiTable::parse(&shipped(recipe)).unwrap(),
        agreed: 0,
        mismatches: Vec::new(),
    };
    let (header_versions, library_versions) = programs.versions(false).unwrap();
    // Sets of shapes of the calls that all versions must understand, by mode.
    let mut shapes: BTreeMap<&str, BTreeSet<BTreeSet<String>>> = BTreeMap::new();
    for headers in &header_versions {
        for library in &library_versions {
            for (suffix, _) in programs.modes {
                let log = directory.join("log");
                std::fs::write(&log, "").unwrap();
                let printed = output(
                    Command::new(directory.join(format!("caller-{headers}{suffix}")))
                        .env("LD_PRELOAD", directory.join(format!("fake-{library}.so")))
                        .env("GPUSTUB_TEST_FAKE_LOG", &log),
                );
                let log = std::fs::read_to_string(&log).unwrap();
                let outside_table = calls.compare(*headers, suffix, *library, &printed, &log);
                shapes.entry(suffix).or_default().insert(outside_table);
            }
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(
        calls.mismatches.is_empty(),
        "{}",
        calls.mismatches.join("\n")
    );
    for (suffix, shape_sets) in shapes {
        // No pair has fewer than another.
        let first = shape_sets.first().unwrap();
        assert!(
            shape_sets.len() == 1 && first.len() > 25,
            "{id}{suffix}: {shape_sets:#?}"
        );
    }
    calls.agreed
}

fn compile(programs: &Programs, directory: &Path, components: &Path) {
    let recipe = programs.recipe().unwrap();
    let (header_versions, library_versions) = programs.versions(false).unwrap();
    for version in &library_versions {
        let mut library = cc(directory);
        library.args(["-shared", "-fPIC", "-o", &format!("fake-{version}.so")]);
        library.arg(format!("-Wl,--version-script=fake-{version}.map"));
        output(library.arg(format!("fake-{version}.c")));
    }
    for version in &header_versions {
        for (suffix, mode) in programs.modes {
            let mut caller = cc(directory);
            caller.args(["-Wno-deprecated-declarations", "-DWEAK"]);
            for define in macros(recipe.headers().unwrap(), mode) {
                caller.arg(format!("-D{define}"));
            }
            caller.args(["-isystem", STAND_INS, "-isystem"]);
            caller.arg(recipe.include(components, *version).unwrap());
            caller.args(["-o", &format!("caller-{version}{suffix}")]);
            output(caller.arg(format!("caller-{version}{suffix}.c")));
        }
    }
}

fn cc(directory: &Path) -> Command {
    let mut cc = Command::new("cc");
    cc.current_dir(directory)
        .args(["-O1", "-Wall", "-Wextra", "-Werror"]);
    cc
}

/// Calls that are compared with the ABI table.
struct Calls {
    recipe: &'static AbiRecipe,
    table: AbiTable,
    agreed: usize,
    mismatches: Vec<String>,
}

impl Calls {
    /// Compares what a caller printed with the log of a library. Returns the shapes of the calls that are
    /// not in the table.
    fn compare(
        &mut self,
        headers: Version,
        suffix: &str,
        library: Version,
        printed: &str,
        log: &str,
    ) -> BTreeSet<String> {
        let logged: BTreeSet<&str> = log.lines().collect();
        let mut outside_table = BTreeSet::new();
        for call in printed.split("call ").skip(1) {
            let (names, rest) = call.split_once('\n').unwrap();
            let name = names.split(' ').nth(1).unwrap();
            let is_understood = rest.strip_prefix("passed ").is_some_and(|rest| {
                let (passed, result) = rest.split_once('\n').unwrap();
                logged.contains(passed) && result == "result 0 filled\n"
            });
            let mismatch = format!("{name}, {headers}{suffix} on {library}: {rest}");
            let group = self
                .table
                .groups
                .iter()
                .find(|group| group.names.contains_key(name));
            let Some(group) = group else {
                outside_table.insert(names.split(' ').next_back().unwrap().to_owned());
                if !is_understood {
                    self.mismatches.push(mismatch);
                }
                continue;
            };
            // HIP 5.2 declares two functions that it does not export yet: no program with calls
            // of them was ever linked.
            if group.variant(name, headers) == AbiVariant::Missing {
                continue;
            }
            let is_same = group.variant(name, headers) == group.variant(name, library);
            self.agreed += usize::from(is_same);
            // Types do not show the result of a library-bound function.
            // Nor do bytes show a field in reserved bytes of a result.
            let is_hidden = is_understood && RESULTS.contains(&name);
            let is_mismatch = is_same != is_understood && !is_hidden;
            if is_mismatch && !self.recipe.reviewed.is_library_bound(name) {
                self.mismatches.push(mismatch);
            }
        }
        outside_table
    }
}
