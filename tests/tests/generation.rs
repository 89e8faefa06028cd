//! Symbols that a stub cannot provide are rejected by name when the stubs are generated.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::target::Target;
use gpustub_image::{Options, read_symbols_file};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_of, plan_or_fail, trap_manifest};
use gpustub_tests::{Result, scratch};

const LIBRARY: &str = "\
int trap_data = 42;
__thread int trap_thread_local = 43;
int trap_function(void) { return trap_data + trap_thread_local; }
";

fn library(dir: &Path) -> Result<PathBuf> {
    let (source, library) = (dir.join("lib.c"), dir.join("libtrap.so.1"));
    std::fs::write(&source, LIBRARY)?;
    succeed(
        Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(&source),
    )?;
    Ok(library)
}

fn text(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(|diagnostic| format!("{diagnostic}\n"))
        .collect()
}

#[test]
fn data_and_thread_local_data_are_errors_that_name_the_symbols() -> Result<()> {
    let dir = scratch()?;
    let list = read_symbols_file(&library(dir.path())?, Options::default())?;
    let lists = [("trap.symbols", list.to_text())];
    let (_, diagnostics) = plan_of(&trap_manifest(""), &lists, &Machine::X86_64.target());
    let reported = text(&diagnostics);
    assert!(has_errors(&diagnostics), "{reported}");
    for part in ["trap_data", "trap_thread_local", "help: "] {
        assert!(
            reported.contains(part),
            "{part} is missing from:\n{reported}"
        );
    }
    assert!(!reported.contains("trap_function"), "{reported}");
    Ok(())
}

/// After the data is removed from the list, as the error demands, a program that uses the data
/// fails to link with the symbol's name: it never reads other data.
#[test]
fn program_that_uses_data_does_not_link() -> Result<()> {
    let dir = scratch()?;
    let lists = [("trap.symbols", list_of(["trap_function"]))];
    let plan = plan_or_fail(&trap_manifest(""), &lists, &Machine::X86_64.target())?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;
    for (variable, declaration) in [
        ("trap_data", "extern int trap_data;"),
        (
            "trap_thread_local",
            "extern __thread int trap_thread_local;",
        ),
    ] {
        let source = dir.path().join("main.c");
        std::fs::write(
            &source,
            format!("{declaration}\nint main(void) {{ return {variable}; }}\n"),
        )?;
        let mut link = Command::new("cc");
        let ran = run(link
            .arg(&source)
            .arg(&archive)
            .arg("-o")
            .arg(dir.path().join("program")))?;
        assert!(!ran.status.success(), "a program with {variable} linked");
        assert!(ran.stderr.contains(variable), "{}", ran.stderr);
    }
    Ok(())
}

/// A static musl program cannot load libraries: an error. A target without trampolines is built without stubs: a warning.
#[test]
fn static_musl_is_an_error_and_unknown_targets_a_warning() -> Result<()> {
    let lists = [("trap.symbols", list_of(["trap_function"]))];
    for (triple, expected, is_error) in [
        ("x86_64-unknown-linux-musl", "statically", true),
        ("sparc64-unknown-linux-gnu", "no trampolines", false),
        ("x86_64-pc-windows-msvc", "no trampolines", false),
    ] {
        let target = Target::from_triple(triple).ok_or("a triple of rustc")?;
        let (plan, diagnostics) = plan_of(&trap_manifest(""), &lists, &target);
        let reported = text(&diagnostics);
        assert!(reported.contains(expected), "{triple}: {reported}");
        assert_eq!(has_errors(&diagnostics), is_error, "{triple}: {reported}");
        assert!(is_error || plan.libraries.is_empty(), "{triple}");
    }
    Ok(())
}
