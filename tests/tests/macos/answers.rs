//! Constant answers, executed: the instructions are those of macOS, in an ELF object. Each equals the answer of the run
//! time while the library is missing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{HookKind, Library, OutKind, Returns, override_variable};
use gpustub_core::plan::{Plan, Spec};
use gpustub_core::sources::render;
use gpustub_core::target::Target;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, repository};

/// The directives of the templates that depend on the object format, for ELF.
const ELF: &str = "
.macro gpustub_symbol symbol
 .globl \\symbol
 .p2align 2
\\symbol:
.endm
.macro gpustub_function name
 .text
 gpustub_symbol _\\name
.endm
.macro gpustub_data name
 .section .rodata
 gpustub_symbol _\\name
.endm
.macro gpustub_address register, symbol
 adrp \\register, \\symbol
 add \\register, \\register, :lo12:\\symbol
.endm
";

/// A user-defined library of forms that no shipped one has.
const FORMS: &str = "\
@gpustub-symbols 1
formsArea returns=zeroed-struct:24
formsBytes returns=status
formsDouble returns=null
formsLarge returns=value:70000
formsNegative returns=value:-70000
formsText returns=string
formsVoid returns=void
";
const FORMS_TABLE: &str = "
[stub.forms]
load-names = { linux = [\"libforms.so.1\"] }
symbols = \"forms.symbols\"
fallback = { status = -2147483648, string = \"no \\\"forms\\\"??! \\\\ über\" }
zero-out = { formsBytes = [{ arg = 0, size = 1 }, { arg = 1, size = 7 }, { arg = 7, size = 640 }, { arg = 8, size = 4 }] }
";

/// Plan of all libraries but OpenCL, a part of macOS, and RCCL, which has NCCL's names.
fn plan(target: &Target) -> Result<Plan> {
    let mut manifest = "schema = 1\n".to_owned();
    for id in Library::builtin_ids().filter(|id| !["opencl", "rccl"].contains(id)) {
        manifest += &format!("[stub.{id}]\nheader-version = \"none\"\n");
    }
    let lists = [("forms.symbols", FORMS.to_owned())];
    plan_or_fail(&(manifest + FORMS_TABLE), &lists, target)
}

/// Arguments of `FUNCTION` after the name.
fn description(spec: &Spec) -> String {
    let is_hook = spec
        .hook
        .is_some_and(|hook| !matches!(hook.kind, HookKind::CopyThrough | HookKind::Update));
    let kind = match (&spec.fallback.returns, is_hook) {
        // The run time returns a handle of its own, and loads the library for a function that gets another handle.
        (_, true) => "NOTHING",
        (Returns::Status | Returns::UnknownError(_), _) => "STATUS",
        (Returns::Value(_) | Returns::Null | Returns::ZeroedHfa(_), _) => "VALUE",
        (Returns::String | Returns::ErrorName | Returns::ErrorString, _) => "TEXT",
        (Returns::ZeroedStruct(_), _) => "STRUCT",
        (Returns::Void, _) => "NOTHING",
    };
    let size = match spec.fallback.returns {
        Returns::ZeroedStruct(size) => size,
        _ => 0,
    };
    let mut texts = 0_u32;
    for out in &spec.fallback.outs {
        match out.kind {
            OutKind::String | OutKind::ErrorName | OutKind::ErrorString => texts |= 1 << out.arg,
            OutKind::Zero(_) | OutKind::Status => {}
        }
    }
    let describes = u8::from(spec.fallback.names_error());
    format!("{kind}, {size}, {texts}, {describes}")
}

/// Writes the functions of a plan and the status codes for `answers.c`, and returns the number of functions.
fn write_tables(plan: &Plan, dir: &Path) -> Result<usize> {
    let (mut functions, mut codes) = (String::new(), BTreeSet::from([12345, -12345]));
    let mut count = 0;
    for planned in plan.libraries.iter().filter(|planned| planned.stubbed) {
        for function in planned.functions.iter() {
            let description = description(&planned.specs[usize::from(function.spec)]);
            functions += &format!("FUNCTION({}, {description})\n", function.name);
            count += 1;
        }
        let lines = planned.library.errors.lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let (code, _) = line.split_once(' ').ok_or("a code and a name")?;
            codes.insert(code.parse()?);
        }
    }
    fs::write(dir.join("functions.inc"), functions)?;
    let codes: String = codes.iter().map(|code| format!("{code},\n")).collect();
    fs::write(dir.join("codes.inc"), codes)?;
    Ok(count)
}

/// Object with the answers of macOS, of the format of Linux.
fn answers(machine: Machine, plan: &Plan, dir: &Path) -> Result<PathBuf> {
    let sources = render(plan);
    let (_, instructions) = sources["stubs.s"]
        .split_once("/* ---- instructions")
        .ok_or("a template of two parts")?;
    let text = format!("{ELF}/* {instructions}\n .section .note.GNU-stack,\"\",%progbits\n");
    fs::write(dir.join("stubs.s"), text)?;
    fs::write(dir.join("stubs.rs"), &sources["stubs.rs"])?;
    let object = dir.join("answers.o");
    let mut assembler = match machine {
        Machine::X86_64 => {
            let mut rustc = Command::new("rustc");
            rustc.args([
                "--crate-type=lib",
                "--emit=obj",
                "-Ccodegen-units=1",
                "stubs.rs",
            ]);
            rustc
        }
        _ => {
            let mut clang = Command::new("clang");
            clang.args(["--target=aarch64-linux-gnu", "-c", "stubs.s"]);
            clang
        }
    };
    succeed(assembler.current_dir(dir).arg("-o").arg(&object))?;
    Ok(object)
}

/// `places`: number of arguments whose place macOS' calling convention tells without their types.
fn equal_those_of_the_run_time(machine: Machine, triple: &str, places: u8) -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let macos = plan(&Target::from_triple(triple).ok_or("a triple")?)?;
    let count = write_tables(&macos, dir)?;
    let object = answers(machine, &macos, dir)?;
    let stubs = Stubs::write(dir, &plan(&machine.target())?, &machine.compiler("c"), &[])?;
    let program = dir.join("program");
    let mut compiler = Command::new(machine.compiler("c"));
    compiler
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(dir)
        .arg(format!("-DPLACES={places}"))
        .arg("-I")
        .arg(&stubs.sources)
        .arg(repository().join("tests/programs/answers.c"))
        .args([&object, &stubs.archive()?])
        .args(machine.link_flags());
    succeed(compiler.arg("-o").arg(&program))?;
    let mut command = machine.run(&program);
    for planned in &macos.libraries {
        // No file, whatever this machine has.
        command.env(
            override_variable(&planned.library.id),
            "/nonexistent/library",
        );
    }
    let ran = succeed(&mut command)?;
    assert_eq!(ran.stdout, format!("{count} functions\n"));
    assert!(count > 5000, "{count}");
    Ok(())
}

#[test]
fn answers_on_x86_64_equal_those_of_the_run_time() -> Result<()> {
    equal_those_of_the_run_time(Machine::X86_64, "x86_64-apple-darwin", 32)
}

#[test]
#[ignore = "needs clang and a cross compiler: ./tests/run"]
fn answers_on_aarch64_equal_those_of_the_run_time() -> Result<()> {
    equal_those_of_the_run_time(Machine::Aarch64, "aarch64-apple-darwin", 9)
}
