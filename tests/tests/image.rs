//! Images with stubs, as the loader and other software see them.

use std::collections::BTreeSet;
use std::process::Command;

use gpustub_core::library::Library;
use gpustub_tests::cargo::{gpustub, hello_gpu};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, plan_or_fail};
use gpustub_tests::{Result, elf};

const LIBRARIES: [&str; 5] = ["cuda", "cudart", "hip", "nvrtc", "opencl"];

fn is_gpu_library(name: &str) -> bool {
    [
        "cuda", "cudart", "nvrtc", "amdhip64", "hiprtc", "OpenCL", "nvidia",
    ]
    .iter()
    .any(|word| name.contains(word))
}

#[test]
#[ignore = "needs PoCL and HIP: ./tests/run"]
fn nothing_is_loaded_before_the_first_call() -> Result<()> {
    let ran = succeed(Command::new(hello_gpu()?).env("LD_DEBUG", "files"))?;
    let (before, after) = (ran.stderr.split_once("transferring control"))
        .ok_or_else(|| ran.error("the loader did not say when the program starts"))?;
    assert!(!is_gpu_library(before), "{before}");
    assert!(
        after.contains("libOpenCL.so.1") && after.contains("libamdhip64.so.5"),
        "{after}"
    );
    Ok(())
}

#[test]
fn program_needs_and_exports_no_gpu_library() -> Result<()> {
    let hello = hello_gpu()?;
    let needed = elf::needed(&hello)?;
    assert!(needed.contains(&"libc.so.6".to_owned()), "{needed:?}");
    assert!(
        !needed.iter().any(|name| is_gpu_library(name)),
        "{needed:?}"
    );
    let functions = all_functions()?;
    let exported: Vec<_> = elf::symbols("--dyn-syms", &hello)?
        .into_iter()
        .filter(|row| {
            row.section != "UND"
                && (functions.contains(&row.name) || row.name.starts_with("gpustub"))
        })
        .collect();
    assert!(exported.is_empty(), "{exported:?}");
    Ok(())
}

/// Functions of all shipped libraries that get stubs.
fn all_functions() -> Result<BTreeSet<String>> {
    let mut functions = BTreeSet::new();
    for id in LIBRARIES {
        let manifest = format!("schema = 1\n[stub.{id}]\nheader-version = \"none\"\n");
        let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
        let library = plan
            .libraries
            .iter()
            .find(|library| library.library.id == id)
            .ok_or("not planned")?;
        functions.extend(
            library
                .functions
                .iter()
                .map(|function| function.name.clone()),
        );
    }
    assert!(functions.contains("cudaFree") && functions.contains("clGetPlatformIDs"));
    Ok(functions)
}

/// The shared form exports only the functions; no search for the real library finds its name.
#[test]
fn shared_stubs_export_the_functions_under_a_separate_soname() -> Result<()> {
    for id in LIBRARIES {
        let dir = scratch()?;
        let mut generate = gpustub(&["export", "stubs", id, "--type", "shared"])?;
        generate.args(["--header-version", "none", "--out-dir"]);
        succeed(generate.arg(dir.path()))?;

        let library = Library::builtin(id).ok_or("a shipped library")?;
        let load_names = &library.load_names["linux"];
        let real_names: BTreeSet<_> = load_names
            .iter()
            .filter_map(|name| name.name.split('.').next())
            .collect();
        let shared = dir.path().join(format!("lib/libgpustub_{id}.so"));
        let soname = elf::soname(&shared)?.ok_or("no soname")?;
        let file = shared
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        for name in &real_names {
            assert!(
                !soname.contains(name) && !file.contains(name),
                "{file}, {soname}: {name}"
            );
        }

        let manifest = format!("schema = 1\n[stub.{id}]\nheader-version = \"none\"\n");
        let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
        let planned = plan
            .libraries
            .iter()
            .find(|library| library.library.id == id)
            .ok_or("not planned")?;
        let expected: BTreeSet<_> = planned
            .functions
            .iter()
            .map(|function| function.name.clone())
            .collect();
        let rows = elf::symbols("--dyn-syms", &shared)?;
        let exported: BTreeSet<_> = rows
            .into_iter()
            .filter(|row| row.section != "UND" && row.section != "ABS")
            .map(|row| row.name)
            .collect();
        // No other library's reference binds to a hidden version of a foreign node.
        let node = format!("@GPUSTUB_gpustub_{id}");
        let api = format!("gpustub1_api_gpustub_{id}");
        let expected = expected.into_iter().chain([api]);
        let expected: BTreeSet<_> = expected.map(|name| name + &node).collect();
        assert_eq!(exported, expected, "{id}");
        assert!(
            !elf::needed(&shared)?
                .iter()
                .any(|name| is_gpu_library(name))
        );
    }
    Ok(())
}
