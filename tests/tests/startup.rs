//! Programs with device code: the code of nvcc that runs before `main` and after it.
//!
//! The programs are those of `tests/startup`, compiled by real versions of nvcc. Linked with stubs
//! they must behave as when linked with the library, which here is a recorder of its calls or a
//! real one.

use std::path::Path;

use gpustub_tests::Result;
use gpustub_tests::command::Ran;
use gpustub_tests::components::component;
use gpustub_tests::nvcc::{
    TOOLKIT_11, TOOLKIT_12, TOOLKIT_13, Toolkit, With, hip_program, hip_recorder, hooks, host,
    recorder, runtime,
};
use gpustub_tests::pair::{Pair, count, machine, major, recorded, run};
use gpustub_tests::scratch::scratch;

// ---- starting -------------------------------------------------------------------------------------------

fn starts_without_cuda(toolkit: Toolkit) -> Result<()> {
    let dir = scratch()?;
    let program = dir.path().join("program");
    toolkit.compiled()?.program(&program, With::Stubs)?;
    let machine = machine(&[])?;
    machine.install(&program, "/app")?;
    let ran = run(&machine, "/app", &[("MODE", "calls"), ("EARLY", "1")])?;
    let expected = "\
first early count 35 0
first early free 35
second early count 35 0
second early free 35
count 35 0
version 35 0
malloc 35 null
copy 35
first launch 35
second launch 35
second late count 35 0
second late free 35
first late count 35 0
first late free 35
";
    assert_eq!(ran.stdout, expected);
    assert_eq!(ran.stderr, "main\n", "unexpected output");
    Ok(())
}

/// The dynamic loader itself reports which files it opens, and when.
fn nothing_is_loaded_before_the_first_call(toolkit: Toolkit) -> Result<()> {
    let pair = Pair::new(toolkit)?;
    let variables = [("MODE", "calls"), ("LD_DEBUG", "files")];
    let ran = pair.run(&pair.stubbed, &variables)?;
    let (before, after) = ran
        .stderr
        .split_once("main\n")
        .ok_or_else(|| ran.error("main was not reached"))?;
    assert!(
        before.contains("libstdc++"),
        "the loader does not report files"
    );
    assert!(!before.contains("libcud"), "{before}");
    assert!(after.contains("libcudart.so"), "{after}");

    // Registering and unregistering need no library. Destructors that call functions do.
    let quiet = [("MODE", "nothing"), ("LD_DEBUG", "files"), ("QUIET", "1")];
    let ran = pair.run(&pair.stubbed, &quiet)?;
    assert!(ran.stderr.contains("libstdc++"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("libcud"), "{}", ran.stderr);
    Ok(())
}

// ---- registering ----------------------------------------------------------------------------------------

fn registrations_arrive_as_if_linked(toolkit: Toolkit) -> Result<()> {
    let pair = Pair::new(toolkit)?;
    let (_, calls) = pair.same(&[("MODE", "calls")])?;
    for (word, times) in [
        ("open", 2),
        ("function", 2),
        ("variable", 3),
        ("managed", 1),
        ("end", 2),
        ("copy", 1),
        ("init", 1),
        ("launch", 2),
        ("close", 2),
    ] {
        assert_eq!(count(&calls, word), times, "{word}: {calls:#?}");
    }
    // The first call is in a constructor: of the first object, before the second registers.
    let (_, early) = pair.same(&[("MODE", "calls"), ("EARLY", "1")])?;
    assert_eq!(early, calls);
    // The first call is in a destructor.
    let (late, _) = pair.same(&[("MODE", "nothing")])?;
    late.expect_in_order(&["second late count 0 1\n", "first late free 0\n"])?;
    Ok(())
}

/// Records of an image, except for those of its calls, which must be this many.
fn registrations(ran: &Ran, image: &Path, calls: usize) -> Result<Vec<String>> {
    let mut records = recorded(&ran.stderr, image)?;
    let count = records.len();
    records.retain(|record| !record.starts_with("launch ") && !record.starts_with("copy "));
    if count - records.len() == calls {
        Ok(records)
    } else {
        Err(ran.error("calls are missing"))
    }
}

/// If two threads make the first call at once, one of them replays. The kernel and variable of the
/// other must also be registered when its calls reach the library: both if it calls at the same
/// time, and if it calls later, when functions could already be bound.
fn first_call_may_come_from_two_threads(toolkit: Toolkit) -> Result<()> {
    let pair = Pair::new(toolkit)?;
    let at_once = [("MODE", "threads"), ("QUIET", "1")];
    let later = [&at_once[..], &[("LATER", "1")]].concat();
    for (variables, calls) in [(&at_once[..], 2), (&later, 3)] {
        let direct = pair.run(&pair.direct, variables)?;
        let expected = registrations(&direct, &pair.direct, calls)?;
        for _ in 0..10 {
            let paused = [variables, &[("PAUSE_REPLAY", "1")]].concat();
            let ran = pair.run(&pair.stubbed, &paused)?;
            assert_eq!(registrations(&ran, &pair.stubbed, calls)?, expected);
            let end = ran.stderr.rfind("record end");
            let is_in_order = ["record launch", "record copy"]
                .into_iter()
                .filter_map(|record| ran.stderr.find(record))
                .all(|call| end < Some(call));
            assert!(is_in_order, "{}", ran.error("a call before the end").0);
        }
    }
    Ok(())
}

/// The first calls of child and parent each replay everything to the library of their process.
fn first_call_may_come_after_a_fork(toolkit: Toolkit) -> Result<()> {
    let pair = Pair::new(toolkit)?;
    let (_, records) = pair.same(&[("MODE", "calls")])?;
    let ran = pair.run(&pair.stubbed, &[("MODE", "fork")])?;
    let ran = ran.expect_in_order(&["first launch 0\n", "child 0\n", "first launch 0\n"])?;
    let records_of_both = recorded(&ran.stderr, &pair.stubbed)?;
    assert_eq!(records_of_both, [records.clone(), records].concat());
    Ok(())
}

/// A child does not wait for the replaying thread of its parent.
fn fork_may_come_during_the_first_call(toolkit: Toolkit) -> Result<()> {
    let pair = Pair::new(toolkit)?;
    let ran = pair.run(
        &pair.stubbed,
        &[("MODE", "fork-during"), ("PAUSE_REPLAY", "1")],
    )?;
    let ran = ran.expect_in_order(&["child count 0 1\n", "child 0\n"])?;
    let (before, _) = ran.stderr.split_once("child\n").unwrap_or_default();
    let is_during = before.contains("record open 1") && !before.contains("record end 2");
    assert!(
        is_during,
        "{}",
        ran.error("the fork did not come during the replay").0
    );
    Ok(())
}

/// A plugin has its own stubs, which are unloaded with it.
fn plugin_comes_and_goes(toolkit: Toolkit) -> Result<()> {
    let pair = Pair::new(toolkit)?;
    let host = host(pair.dir.path())?;
    let run_plugin =
        |with: With<'_>, variables: &[(&str, &str)], libraries: &[&Path]| -> Result<_> {
            let plugin = pair.dir.path().join("plugin.so");
            toolkit.compiled()?.plugin(&plugin, with)?;
            let machine = machine(libraries)?;
            machine.install(&plugin, "/plugin.so")?;
            machine.install(&host, "/host")?;
            let ran = run(&machine, "/host", variables)?;
            let text = ran.stderr.replace("clos", "record clos");
            Ok((
                recorded(&text.replace("record record ", "record "), &plugin)?,
                ran,
            ))
        };
    let linked = With::Library(&pair.library);
    for variables in [
        &[("CALL", "1")][..],
        &[("CALL", "1"), ("QUIET", "1")],
        &[("CALL", "1"), ("EARLY", "1")],
    ] {
        let (expected, direct) = run_plugin(linked, variables, &[&pair.library])?;
        let (records, stubbed) = run_plugin(With::Stubs, variables, &[&pair.library])?;
        assert_eq!(records, expected);
        assert_eq!(stubbed.stdout, direct.stdout);
        assert_eq!(count(&records, "launch"), 2, "{records:#?}");
        let closing: Vec<_> = records
            .iter()
            .filter(|line| line.starts_with("clos"))
            .collect();
        assert_eq!(
            closing,
            [
                "closing",
                "close 1",
                "closed all",
                "closing",
                "close 2",
                "closed all"
            ]
        );
    }
    let (records, ran) = run_plugin(With::Stubs, &[("QUIET", "1")], &[&pair.library])?;
    assert_eq!(
        records,
        ["closing", "closed all"].repeat(2),
        "never called, never loaded"
    );
    assert_eq!(ran.stdout, "");
    let (records, ran) = run_plugin(With::Stubs, &[("CALL", "1")], &[])?;
    assert_eq!(records, ["closing", "closed all"].repeat(2));
    assert_eq!(
        ran.stdout,
        "plugin launch 35\nplugin late count 35 0\nplugin late free 35\n".repeat(2)
    );
    Ok(())
}

/// First words of records.
fn kinds(records: &[String]) -> String {
    let kinds: Vec<_> = records
        .iter()
        .map(|record| record.split(' ').next().unwrap_or_default())
        .collect();
    kinds.join(" ")
}

/// Every argument of every registration function arrives unchanged.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn registration_functions_receive_all_arguments() -> Result<()> {
    let pair = Pair::other(
        |dir, library| hooks(dir, "cudart", &[], library),
        |dir| recorder(dir, 13),
    )?;
    let (_, records) = pair.same(&[])?;
    assert_eq!(
        kinds(&records),
        "open function variable texture surface managed host table end close"
    );

    let pair = Pair::other(
        |dir, library| hooks(dir, "hip", &["-DHIP"], library),
        hip_recorder,
    )?;
    let (_, records) = pair.same(&[])?;
    assert_eq!(
        kinds(&records),
        "open function variable texture surface managed close"
    );
    Ok(())
}

/// clang's code for HIP registers in a constructor as nvcc's does, and tests whether it has a
/// handle before it closes.
#[test]
#[ignore = "needs clang and user namespaces: ./tests/run"]
fn registrations_for_hip_arrive_as_if_linked() -> Result<()> {
    let pair = Pair::other(hip_program, hip_recorder)?;
    let (_, records) = pair.same(&[("LAUNCH", "1")])?;
    assert_eq!(
        kinds(&records),
        "open function variable variable managed launch close"
    );
    let (_, early) = pair.same(&[("LAUNCH", "1"), ("EARLY", "1")])?;
    assert_eq!(early, records);
    // Here clang unregisters before the destructor makes the first call: nothing is left to replay.
    let late = pair.run(&pair.stubbed, &[])?;
    assert_eq!(late.stdout, "late count 0 1, free 0\n");
    assert_eq!(late.stderr, "");

    let machine = machine(&[])?;
    machine.install(&pair.stubbed, "/app")?;
    let ran = run(&machine, "/app", &[("LAUNCH", "1")])?;
    assert_eq!(ran.stdout, "launch 100\nlate count 100 0, free 100\n");
    assert_eq!(ran.stderr, "");
    Ok(())
}

/// Logs each call with its return value; no library has been loaded for it.
#[test]
#[ignore = "needs nvcc 13.5 and user namespaces: ./tests/run"]
fn trace_shows_registrations() -> Result<()> {
    let pair = Pair::new(TOOLKIT_13)?;
    let variables = [("MODE", "nothing"), ("QUIET", "1"), ("GPUSTUB_TRACE", "1")];
    let ran = pair.run(&pair.stubbed, &variables)?;
    assert_eq!(recorded(&ran.stderr, &pair.stubbed)?, [""; 0]);
    let (_, rest) = ran
        .stderr
        .split_once(" __cudaRegisterFatBinary = 0x")
        .unwrap_or_default();
    let handle = rest.split('\n').next().unwrap_or_default();
    for name in ["__cudaRegisterFunction", "__cudaUnregisterFatBinary"] {
        let call = format!(" {name}(0x{handle},");
        assert!(rest.contains(&call), "{}", ran.error(&call).0);
    }
    assert!(
        rest.contains("gpustub: called 2 times __cudaRegisterFatBinary\n"),
        "{rest}"
    );
    Ok(())
}

// ---- other versions of the library ----------------------------------------------------------------------

/// Code of nvcc 13 calls `__cudaGetKernel` and `__cudaLaunchKernel`, which a runtime of 11 lacks:
/// the stubs call `cudaLaunchKernel` with the registered host function instead.
#[test]
#[ignore = "needs nvcc 13.5 and user namespaces: ./tests/run"]
fn launch_by_nvcc_13_code_works_on_runtime_11() -> Result<()> {
    let pair = Pair::new(TOOLKIT_13)?;
    let (_, expected) = pair.same(&[("MODE", "calls")])?;
    for major in [11, 12] {
        let old = recorder(pair.dir.path(), major)?;
        let machine = machine(&[&old])?;
        machine.install(&pair.stubbed, "/app")?;
        let ran = run(&machine, "/app", &[("MODE", "calls")])?;
        assert_eq!(recorded(&ran.stderr, &pair.stubbed)?, expected);
        let version = format!("version 0 {major}010\n");
        ran.expect_in_order(&[
            &version,
            "first launch 0\n",
            "second launch 0\n",
            "managed 6\n",
        ])?;
    }
    let launches: Vec<_> = expected
        .iter()
        .filter(|line| line.starts_with("launch "))
        .collect();
    assert_eq!(
        launches,
        [
            "launch _Z12first_kernelPif#0+0 of 1: 2,3,1 4,1,1 32 null",
            "launch _Z13second_kernelv#0+0 of 2: 1,1,1 8,1,1 0 null",
        ]
    );
    Ok(())
}

/// Expected output of the program on a runtime that returns `code`, or `late` in its destructors.
fn answers(version: &str, code: i32, late: i32, mode: &str, early: bool) -> Result<String> {
    let mut text = String::new();
    if early {
        text += &answer("first", "early", code);
        text += &answer("second", "early", code);
    }
    if mode == "calls" {
        // The version query needs no driver from 12 on.
        let reported = match major(version)? {
            11 => format!("{code} -7"),
            major => format!(
                "0 {major}0{}0",
                version.split('.').nth(1).unwrap_or_default()
            ),
        };
        text += &format!("count {code} -7\nversion {reported}\nmalloc {code} set\ncopy {code}\n");
        text += &format!("first launch {code}\nsecond launch {code}\n");
    }
    // Without an earlier call, the first destructor's call loads the library and gets its code.
    let second = if mode == "calls" { late } else { code };
    Ok(text + &answer("second", "late", second) + &answer("first", "late", late))
}

/// Output of an object's constructor or destructor.
fn answer(object: &str, phase: &str, code: i32) -> String {
    format!("{object} {phase} count {code} -7\n{object} {phase} free {code}\n")
}

/// Real runtimes, with and without a driver: a program with stubs gets the return codes of one that
/// is linked with the library, where such a program exists, and the same codes from other majors.
/// One difference remains: a library runs its exit handlers before the destructors of the images
/// loaded before it, and cudart returns cudaErrorCudartUnloading (4) from then on. A call in a
/// constructor avoids that.
fn real_runtimes_give_the_same_codes(toolkit: Toolkit) -> Result<()> {
    let dir = scratch()?;
    let compiled = toolkit.compiled()?;
    let (stubbed, direct) = (dir.path().join("stubbed"), dir.path().join("direct"));
    compiled.program(&stubbed, With::Stubs)?;
    let driver = component("driver-535/libcuda.so.1")?;
    // Runtimes newer than the driver return 35 (driver too old), the others 100 for "no device".
    for (version, with_driver) in [("11.8", 100), ("12.9", 100), ("13.0", 35), ("13.5", 35)] {
        let library = runtime(version)?;
        let can_link = major(version)? == major(toolkit.version)?;
        if can_link {
            compiled.program(&direct, With::Library(&library))?;
        }
        let pairs = [
            (&[library.as_path()][..], 35),
            (&[&library, &driver], with_driver),
        ];
        for (libraries, code) in pairs {
            let machine = machine(libraries)?;
            machine.install(&stubbed, "/stubbed")?;
            if can_link {
                machine.install(&direct, "/direct")?;
            }
            for (mode, early) in [("calls", false), ("calls", true), ("nothing", false)] {
                let variables = &[("MODE", mode), ("EARLY", "1")][..1 + usize::from(early)];
                let ran = run(&machine, "/stubbed", variables)?;
                let late = if early { code } else { 4 };
                assert_eq!(
                    ran.stdout,
                    answers(version, code, late, mode, early)?,
                    "{version}"
                );
                assert_eq!(ran.stderr, "main\n");
                if can_link {
                    let ran = run(&machine, "/direct", variables)?;
                    assert_eq!(
                        ran.stdout,
                        answers(version, code, code, mode, early)?,
                        "{version}"
                    );
                }
            }
            let quiet = run(&machine, "/stubbed", &[("MODE", "nothing"), ("QUIET", "1")])?;
            assert_eq!(quiet.stdout, "");
            let threads = run(&machine, "/stubbed", &[("MODE", "threads"), ("QUIET", "1")])?;
            assert_eq!(
                threads.stdout.matches(&format!(" launch {code}\n")).count(),
                2
            );
        }
    }
    Ok(())
}

/// The same for a plugin that is unloaded, and whose library stays loaded.
fn real_runtimes_outlive_plugins(toolkit: Toolkit) -> Result<()> {
    let dir = scratch()?;
    let plugin = dir.path().join("plugin.so");
    toolkit.compiled()?.plugin(&plugin, With::Stubs)?;
    for version in ["11.8", "12.9", "13.0", "13.5"] {
        let machine = machine(&[&runtime(version)?])?;
        machine.install(&plugin, "/plugin.so")?;
        machine.install(&host(dir.path())?, "/host")?;
        let ran = run(&machine, "/host", &[("CALL", "1")])?;
        let output = "plugin launch 35\nplugin late count 35 -7\nplugin late free 35\n";
        assert_eq!(ran.stdout, output.repeat(2), "{version}");
        assert_eq!(ran.stderr, "closing\nclosed all\n".repeat(2));
    }
    Ok(())
}

/// Instantiates each test for each toolkit, with a module each: those of older ones are heavy.
macro_rules! with {
    ($module:ident, $toolkit:ident, $needs:literal: $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                #[ignore = $needs]
                fn $test() -> gpustub_tests::Result<()> {
                    super::$test(super::$toolkit)
                }
            )*
        }
    };
}

macro_rules! with_each_toolkit {
    ($($test:ident)*) => {
        with!(nvcc_13, TOOLKIT_13, "needs nvcc 13.5 and user namespaces: ./tests/run": $($test)*);
        with!(heavy_nvcc_12, TOOLKIT_12, "needs nvcc 12.4 and user namespaces: ./tests/run --all": $($test)*);
        with!(heavy_nvcc_11, TOOLKIT_11, "needs nvcc 11.8 and user namespaces: ./tests/run --all": $($test)*);
    };
}

with_each_toolkit! {
    starts_without_cuda
    nothing_is_loaded_before_the_first_call
    registrations_arrive_as_if_linked
    first_call_may_come_from_two_threads
    first_call_may_come_after_a_fork
    fork_may_come_during_the_first_call
    plugin_comes_and_goes
    real_runtimes_give_the_same_codes
    real_runtimes_outlive_plugins
}
