//! Symbols that a stub cannot provide are rejected by name when the stubs are generated.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_platform::{Cfg, CfgExpr};
use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::target::Target;
use gpustub_image::{SymbolRequirements, read_symbols_file};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_of, plan_or_fail, trap_manifest};
use gpustub_tests::{Result, repository};

const LIBRARY: &str = "\
int trap_data = 42;
__thread int trap_thread_local = 43;
int trap_function(void) { return trap_data + trap_thread_local; }
";

fn library(dir: &Path) -> Result<PathBuf> {
    let (source, library) = (dir.join("lib.c"), dir.join("libtrap.so.1"));
    fs::write(&source, LIBRARY)?;
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
    let list = read_symbols_file(&library(dir.path())?, SymbolRequirements::default())?;
    let lists = [("trap.symbols", list.to_text())];
    let manifest = trap_manifest("").replace("status = 77", "status = 77, returns = \"status\"");
    let (_, diagnostics) = plan_of(&manifest, &lists, &Machine::X86_64.target());
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
        fs::write(
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
        ("i686-pc-windows-msvc", "no trampolines", false),
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

/// Attribute of the module that declares the functions of `gpustub.h`.
fn cfg_of_stubs() -> Result<CfgExpr> {
    let text = fs::read_to_string(repository().join("crates/gpustub/src/ffi.rs"))?;
    let file = syn::parse_file(&text)?;
    let mut attributes = file.items.iter().filter_map(|item| match item {
        syn::Item::Use(item) => item.attrs.iter().find(|one| one.path().is_ident("cfg")),
        _ => None,
    });
    let attribute = attributes.next_back().ok_or("ffi.rs has no `cfg`")?;
    let syn::Meta::List(list) = &attribute.meta else {
        return Err("a cfg without an expression".into());
    };
    Ok(list.tokens.to_string().parse()?)
}

/// The crate `gpustub` links where stubs are, by rustc's own description of each target.
#[test]
fn queries_are_linked_on_the_targets_that_have_stubs() -> Result<()> {
    let expression = cfg_of_stubs()?;
    let rustc = |words: &[&str]| succeed(Command::new("rustc").args(words));
    let mut with_stubs = 0;
    for triple in rustc(&["--print=target-list"])?.stdout.lines() {
        let systems = ["-linux", "-freebsd", "-windows"];
        if !systems.iter().any(|system| triple.contains(system)) {
            continue;
        }
        let printed = rustc(&["--print=cfg", "--target", triple])?.stdout;
        let cfgs: Vec<Cfg> = printed.lines().map(str::parse).collect::<Result<_, _>>()?;
        let value = |key: &str| {
            let line = printed
                .lines()
                .find_map(|line| line.strip_prefix(key)?.strip_prefix("=\""));
            line.unwrap_or_default().trim_end_matches('"').to_owned()
        };
        let target = Target {
            triple: triple.to_owned(),
            arch: value("target_arch"),
            os: value("target_os"),
            env: value("target_env"),
            crt_static: false,
        };
        // A stable compiler describes ARMv6, which has no stubs, as ARMv7.
        let is_v6 = triple.starts_with("arm-") && triple.ends_with("hf");
        let has_stubs = target.check().is_none();
        assert_eq!(expression.matches(&cfgs), has_stubs || is_v6, "{triple}");
        with_stubs += usize::from(has_stubs);
    }
    assert!(with_stubs > 10, "{with_stubs}");
    Ok(())
}
