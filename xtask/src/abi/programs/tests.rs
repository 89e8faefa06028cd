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
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn callers_and_fake_libraries_agree_just_where_the_abi_tables_say_so() {
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
    let table = AbiTable::parse(&shipped(recipe)).unwrap();
    let directory = std::env::temp_dir().join(format!("gpustub-abi-{id}-{}", std::process::id()));
    programs.write(&directory, &components, false).unwrap();
    let (of_headers, of_libraries) = programs.versions(false).unwrap();
    let cc = || {
        let mut cc = Command::new("cc");
        cc.current_dir(&directory)
            .args(["-O1", "-Wall", "-Wextra", "-Werror"]);
        cc
    };
    for version in &of_libraries {
        let mut library = cc();
        library.args(["-shared", "-fPIC", "-o", &format!("fake-{version}.so")]);
        library.arg(format!("-Wl,--version-script=fake-{version}.map"));
        output(library.arg(format!("fake-{version}.c")));
    }
    for version in &of_headers {
        for (end, mode) in programs.modes {
            let mut caller = cc();
            caller
                .args(["-Wno-deprecated-declarations", "-DWEAK"])
                .args(
                    macros(recipe.headers().unwrap(), mode)
                        .iter()
                        .map(|m| format!("-D{m}")),
                );
            caller.args(["-isystem", STAND_INS, "-isystem"]);
            caller.arg(recipe.include(&components, *version).unwrap());
            caller.args(["-o", &format!("caller-{version}{end}")]);
            output(caller.arg(format!("caller-{version}{end}.c")));
        }
    }
    let (mut agreed, mut wrong) = (0, Vec::new());
    // Sets of shapes of the calls that all versions must understand, by mode.
    let mut shapes: BTreeMap<&str, BTreeSet<BTreeSet<String>>> = BTreeMap::new();
    for (of, library) in of_headers
        .iter()
        .flat_map(|of| of_libraries.iter().map(|library| (*of, *library)))
    {
        for (end, _) in programs.modes {
            let log = directory.join("log");
            std::fs::write(&log, "").unwrap();
            let printed = output(
                Command::new(directory.join(format!("caller-{of}{end}")))
                    .env("LD_PRELOAD", directory.join(format!("fake-{library}.so")))
                    .env("GPUSTUB_TEST_FAKE_LOG", &log),
            );
            let seen = std::fs::read_to_string(&log).unwrap();
            let seen: BTreeSet<&str> = seen.lines().collect();
            let mut called = BTreeSet::new();
            for call in printed.split("call ").skip(1) {
                let (names, rest) = call.split_once('\n').unwrap();
                let name = names.split(' ').nth(1).unwrap();
                let is_understood = rest.strip_prefix("passed ").is_some_and(|rest| {
                    let (passed, result) = rest.split_once('\n').unwrap();
                    seen.contains(passed) && result == "result 0 filled\n"
                });
                let mut groups = table.groups.iter();
                let group = groups.find(|group| group.names.contains_key(name));
                let Some(group) = group else {
                    called.insert(names.split(' ').next_back().unwrap().to_owned());
                    if !is_understood {
                        wrong.push(format!("{name}, {of}{end} on {library}: {rest}"));
                    }
                    continue;
                };
                // HIP 5.2 declares two functions that it does not export yet: no program with calls
                // of them was ever linked.
                if group.variant(name, of) == AbiVariant::Missing {
                    continue;
                }
                let is_same = group.variant(name, of) == group.variant(name, library);
                agreed += usize::from(is_same);
                // Types do not show the result of a library-bound function.
                // Nor do bytes show a field in reserved bytes of a result.
                let is_hidden = is_understood && RESULTS.contains(&name);
                let is_wrong = is_same != is_understood && !is_hidden;
                if is_wrong && !recipe.reviewed.is_library_bound(name) {
                    wrong.push(format!("{name}, {of}{end} on {library}: {rest}"));
                }
            }
            shapes.entry(end).or_default().insert(called);
        }
    }
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (end, of_pairs) in shapes {
        // No pair has fewer than another.
        let first = of_pairs.first().unwrap();
        assert!(
            of_pairs.len() == 1 && first.len() > 25,
            "{id}{end}: {of_pairs:#?}"
        );
    }
    agreed
}
