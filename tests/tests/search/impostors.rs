//! Files with the name of a library that are none: stubs of another image, and unrelated libraries.

use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail};

use crate::reports;
use crate::shared::{library, program_with};

/// Checks that a file is rejected in a searched directory, in the loader's, if the user names it, and, with
/// the soname of the library, if it is loaded already.
fn check_rejected(file: &std::path::Path, reason: &str, has_soname: bool) -> Result<()> {
    let dir = scratch()?;
    let program = program_with(dir.path(), |_| {})?;
    for &(directory, preload, variable) in &[
        ("/a", "", ("LD_LIBRARY_PATH", "")),
        ("/ld", "", ("LD_LIBRARY_PATH", "/ld")),
        ("/y", "", ("GPUSTUB_ACME_PATH", "/y/libacme.so.12")),
        ("/x", "+/x/libacme.so.12", ("LD_LIBRARY_PATH", "")),
    ][..if has_soname { 4 } else { 3 }]
    {
        let machine = Isolated::new()?;
        machine.install(&program, "/program")?;
        let path = format!("{directory}/libacme.so.12");
        machine.install(file, &path)?;
        let words: Vec<&str> = [preload, "acme"]
            .into_iter()
            .filter(|w| !w.is_empty())
            .collect();
        let variables = [("GPUSTUB_LOG", "json"), variable];
        let ran = machine
            .run_with("/program", &words, &variables)?
            .success()?;
        assert!(
            ran.stdout.contains("acme nowhere\n"),
            "{path}: {}",
            ran.stdout
        );
        let report = &reports(&ran)?["acme"];
        let candidates = report["candidates"].as_array().into_iter().flatten();
        let reasons: Vec<_> = candidates
            .filter(|candidate| candidate["name"] == path[..])
            .map(|candidate| candidate["reason"].as_str().unwrap_or_default())
            .collect();
        assert_eq!(reasons, [reason], "{path}: {}", ran.stderr);
    }
    Ok(())
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn stubs_of_another_image_are_not_the_library() -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.acme]\nsymbols = \"acme.symbols\"\nload-names = { linux = [\"libother.so\"] }\n";
    let lists = [("acme.symbols", list_of(["acme_function"]))];
    let plan = plan_or_fail(manifest, &lists, &Machine::X86_64.target())?;
    let shared = Stubs::write(dir.path(), &plan, "cc", &[])?.shared(dir.path(), "shared")?;
    let file = dir.path().join("libacme.so.12");
    fs::rename(shared.library, &file)?;
    check_rejected(&file, "a library of stubs, not the library", false)
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn library_without_any_function_is_unavailable() -> Result<()> {
    let dir = scratch()?;
    let file = dir.path().join("libacme.so.12");
    library(&file, "int unrelated(void) { return 0; }\n", &[])?;
    check_rejected(
        &file,
        "exports none of the functions that the program calls",
        true,
    )
}

/// The loader finds it by its cache, in a directory that it does not list.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn a_truncated_file_of_the_loaders_cache_is_not_mapped() -> Result<()> {
    let dir = scratch()?;
    let program = program_with(dir.path(), |_| {})?;
    let file = dir.path().join("libacme.so.12");
    library(
        &file,
        "const char *acme_function(void) { return \"whole\"; }\n",
        &[],
    )?;
    let path = "/cached/libacme.so.12";
    for is_complete in [true, false] {
        let machine = Isolated::new()?;
        machine.install(&program, "/program")?;
        machine.install(&file, path)?;
        fs::create_dir_all(machine.path("/etc"))?;
        fs::write(machine.path("/etc/ld.so.conf"), "/cached\n")?;
        succeed(
            Command::new("/sbin/ldconfig")
                .arg("-r")
                .arg(machine.path("/")),
        )?;
        if !is_complete {
            let mut options = fs::OpenOptions::new();
            let installed = options.write(true).open(machine.path(path))?;
            installed.set_len(4096)?;
        }
        let variables = [("GPUSTUB_LOG", "json")];
        let ran = machine
            .run_with("/program", &["acme"], &variables)?
            .success()?;
        let report = &reports(&ran)?["acme"];
        if is_complete {
            assert_eq!(report["path"], path, "{}", ran.stderr);
            continue;
        }
        let mut candidates = report["candidates"].as_array().into_iter().flatten();
        let candidate = candidates.find(|candidate| candidate["name"] == path);
        let reason = "truncated: the file ends before its segments do";
        assert!(
            candidate.is_some_and(|candidate| candidate["reason"] == reason),
            "{}",
            ran.stderr
        );
        assert!(ran.stdout.contains("acme nowhere\n"), "{}", ran.stdout);
    }
    Ok(())
}
