//! Objects of the stubs, as linkers, loaders and `readelf` see them.

mod adapters;
mod floor;
mod merged;
mod shared;
mod size;
mod targets;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::elf::symbols;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{
    Machine, SOURCES, Stubs, list_of, plan_functions, plan_or_fail, trap_manifest, with_abi_table,
};

const NAMES: [&str; 3] = ["trapOpen", "trapRead", "trap_close_v2"];

/// A function that has an additional pointer argument in a newer library.
const ADAPTED: &str = "trapRead";
const ABI: &str = "@gpustub-abi 1\n@headers 1.0 1.5\n@null-argument 1 2 1\ntrapRead 1.0=1 1.5=2\n";

/// The objects of a few stubs, unpacked from their archive into `dir`.
fn objects(dir: &Path, machine: Machine) -> Result<Vec<PathBuf>> {
    let manifest = trap_manifest("header-version = \"1.0\"");
    let lists = [("trap.symbols", list_of(NAMES))];
    let mut plan = plan_or_fail(&manifest, &lists, &machine.target())?;
    with_abi_table(&mut plan, ABI)?;
    let archive = Stubs::write(dir, &plan, &machine.compiler("c"), &[])?.archive()?;
    let ran = succeed(Command::new("ar").current_dir(dir).arg("xv").arg(&archive))?;
    let objects: Vec<_> = ran
        .stdout
        .lines()
        .filter_map(|line| line.strip_prefix("x - "))
        .map(|name| dir.join(name))
        .collect();
    if objects.len() < 2 {
        return Err(ran.error("the archive should contain the stubs and the run time"));
    }
    Ok(objects)
}

/// Compiles and links a program of one C file with the stubs.
fn link(dir: &Path, archive: &Path, source: &str, flags: &[&str]) -> Result<PathBuf> {
    let (main, program) = (dir.join("main.c"), dir.join("program"));
    fs::write(&main, source).map_err(|e| format!("{}: {e}", main.display()))?;
    let mut command = Command::new("cc");
    command
        .arg("-I")
        .arg(dir.join(SOURCES))
        .arg("-O1")
        .arg(&main)
        .arg(archive);
    succeed(command.args(["-pthread", "-o"]).arg(&program).args(flags))?;
    Ok(program)
}

/// Every object is marked for the processor's protections: one without the mark disables them for
/// the whole program.
fn every_object_is_marked(machine: Machine, marks: &[&str]) -> Result<()> {
    let dir = scratch()?;
    for object in objects(dir.path(), machine)? {
        // binutils 2.40 prints notes of unknown types, and fails.
        let notes = run(Command::new("readelf").args(["-W", "-n"]).arg(&object))?.stdout;
        for mark in marks {
            assert!(
                notes.contains(mark),
                "{}: no {mark}:\n{notes}",
                object.display()
            );
        }
    }
    Ok(())
}

#[test]
fn every_object_is_marked_for_indirect_branch_tracking_and_shadow_stacks() -> Result<()> {
    every_object_is_marked(Machine::X86_64, &["x86 feature: IBT, SHSTK"])
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn every_object_is_marked_for_branch_targets_and_signed_returns() -> Result<()> {
    every_object_is_marked(Machine::Aarch64, &["AArch64 feature: BTI, PAC"])
}

/// Links only our objects, so that every warning of the linker is about them.
fn linker_takes_the_marks(machine: Machine, options: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let mut command = Command::new(machine.compiler("c"));
    command
        .args(["-shared", "-nostdlib", "-Wl,--fatal-warnings"])
        .args(options);
    command
        .args(objects(dir.path(), machine)?)
        .arg("-o")
        .arg(dir.path().join("all.so"));
    let ran = succeed(&mut command)?;
    assert_eq!(ran.stderr, "");
    Ok(())
}

#[test]
fn linker_finds_no_object_without_control_flow_protection() -> Result<()> {
    linker_takes_the_marks(
        Machine::X86_64,
        &["-Wl,-z,cet-report=error", "-Wl,-z,ibt", "-Wl,-z,shstk"],
    )
}

#[test]
#[ignore = "needs lld: ./tests/run"]
fn lld_finds_no_object_without_control_flow_protection() -> Result<()> {
    linker_takes_the_marks(
        Machine::X86_64,
        &[
            "-fuse-ld=lld",
            "-Wl,-z,force-ibt",
            "-Wl,-z,cet-report=error",
            "-Wl,-z,shstk",
        ],
    )
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn linker_finds_no_object_without_branch_targets() -> Result<()> {
    linker_takes_the_marks(Machine::Aarch64, &["-Wl,-z,force-bti"])
}

/// Every target of a call or an indirect jump has a landing instruction.
fn stubs_start_with_a_landing(machine: Machine, tool: &str, landing: &str) -> Result<()> {
    let dir = scratch()?;
    for object in objects(dir.path(), machine)? {
        let listing = succeed(
            Command::new(tool)
                .args(["-d", "--no-show-raw-insn"])
                .arg(&object),
        )?;
        let mut lines = listing.stdout.lines();
        let mut seen = 0;
        while let Some(line) = lines.next() {
            let Some(name) = NAMES
                .iter()
                .find(|name| line.ends_with(&format!("<{name}>:")))
            else {
                continue;
            };
            // Code after a jump is the target of another jump: the thunk, and an adapter thunk.
            let code: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
            let code: Vec<&str> = code
                .into_iter()
                .filter(|line| !line.contains("nop"))
                .collect();
            let leaves = |line: &&str| {
                ["\tjmp ", "\tb\t", "\tbr\t"]
                    .iter()
                    .any(|jump| line.contains(jump))
            };
            let parts: Vec<&[&str]> = code.split_inclusive(leaves).collect();
            assert_eq!(parts.len(), 2 + usize::from(*name == ADAPTED), "{code:#?}");
            for part in parts {
                assert!(part[0].contains(landing), "{name}: {part:#?}");
            }
            seen += 1;
        }
        let stubs = object.ends_with("gpustub_stubs.o");
        assert_eq!(
            seen,
            if stubs { NAMES.len() } else { 0 },
            "{}",
            object.display()
        );
    }
    Ok(())
}

#[test]
fn stubs_start_with_endbr64() -> Result<()> {
    stubs_start_with_a_landing(Machine::X86_64, "objdump", "endbr64")
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn stubs_of_i686_start_with_endbr32() -> Result<()> {
    stubs_start_with_a_landing(Machine::I686, "objdump", "endbr32")
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn stubs_start_with_bti() -> Result<()> {
    stubs_start_with_a_landing(Machine::Aarch64, "aarch64-linux-gnu-objdump", "bti\tc")
}

/// Profilers and debuggers attribute addresses by size and type.
fn stub_symbols_are_whole(machine: Machine) -> Result<()> {
    let dir = scratch()?;
    let mut seen = Vec::new();
    for object in objects(dir.path(), machine)? {
        for row in symbols("--symbols", &object)? {
            if row.section == "UND" || row.binding == "LOCAL" {
                continue;
            }
            assert_eq!(row.visibility, "HIDDEN", "{}", row.name);
            if NAMES.contains(&&row.name[..]) {
                assert_eq!(
                    (&row.kind[..], &row.binding[..]),
                    ("FUNC", "GLOBAL"),
                    "{}",
                    row.name
                );
                assert!(row.size > 0, "{} has no size", row.name);
                seen.push(row.name);
            } else {
                // GCC's helper for position-independent code, one group in all objects.
                assert!(
                    row.name.starts_with("gpustub") || row.name.starts_with("__x86.get_pc_thunk."),
                    "{} is not of our name space",
                    row.name
                );
            }
        }
    }
    seen.sort();
    assert_eq!(seen, NAMES);
    Ok(())
}

#[test]
fn stub_symbols_have_type_size_and_are_hidden() -> Result<()> {
    stub_symbols_are_whole(Machine::X86_64)
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn stub_symbols_have_type_size_and_are_hidden_on_aarch64() -> Result<()> {
    stub_symbols_are_whole(Machine::Aarch64)
}

#[test]
#[ignore = "needs cross compilers: ./tests/run"]
fn stub_symbols_have_type_size_and_are_hidden_on_other_machines() -> Result<()> {
    use Machine::{Arm, I686, Powerpc64le, Riscv64, S390x};
    [Riscv64, Powerpc64le, S390x, I686, Arm]
        .into_iter()
        .try_for_each(stub_symbols_are_whole)
}

/// Even `-rdynamic` exports no stub.
#[test]
fn programs_export_no_stub() -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(NAMES, Machine::X86_64)?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;
    let program = link(
        dir.path(),
        &archive,
        "int trapOpen(void); int main(void) { return trapOpen(); }",
        &["-rdynamic"],
    )?;
    let exported = symbols("--dyn-syms", &program)?;
    assert!(
        exported.iter().any(|row| row.name == "main"),
        "-rdynamic exports main"
    );
    let ours: Vec<_> = exported
        .iter()
        .filter(|row| row.name.starts_with("trap") || row.name.starts_with("gpustub"))
        .collect();
    assert!(ours.is_empty(), "{ours:?}");
    Ok(())
}

/// Slots are function pointers: outside of a binding, they are read-only, and so is what is beside them.
#[test]
fn slots_are_read_only_before_and_after_each_binding() -> Result<()> {
    let dir = scratch()?;
    let manifest = format!(
        "{}\n[stub.other]\nload-names = {{ linux = [\"libother.so.1\"] }}\nsymbols = \"other.symbols\"\n",
        trap_manifest("")
    );
    let lists = [
        ("trap.symbols", list_of(["trap_value"])),
        ("other.symbols", list_of(["other_value"])),
    ];
    let plan = plan_or_fail(&manifest, &lists, &Machine::X86_64.target())?;
    let archive = Stubs::write(dir.path(), &plan, "cc", &[])?.archive()?;

    let library = dir.path().join("lib.c");
    fs::write(&library, "int trap_value(void) { return 42; }")?;
    let mut command = Command::new("cc");
    command
        .args(["-shared", "-fPIC", "-o"])
        .arg(dir.path().join("libtrap.so.1"))
        .arg(library);
    succeed(&mut command)?;

    let program = link(
        dir.path(),
        &archive,
        include_str!("../../traps/read-only.c"),
        &[],
    )?;
    let ran = succeed(&mut Command::new(program))?;
    assert_eq!(ran.stdout, "r--p r--p r--p r--p\n");
    Ok(())
}

// ---- the run time as a C program -----------------------------------------------------------------

const WARNINGS: [&str; 11] = [
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Werror",
    "-Wshadow",
    "-Wconversion",
    "-Wstrict-prototypes",
    "-Wmissing-prototypes",
    "-Wundef",
    "-Wvla",
    "-Wwrite-strings",
];

fn compiles_without_a_warning(compiler: &str, standard: &str) -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(NAMES, Machine::X86_64)?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?;
    let mut command = Command::new(compiler);
    command.current_dir(&stubs.sources).args([
        standard,
        "-O2",
        "-fPIC",
        "-c",
        "runtime.c",
        "-o",
        "x.o",
    ]);
    command.args(WARNINGS);
    succeed(&mut command)?;
    Ok(())
}

#[test]
fn run_time_compiles_without_a_warning() -> Result<()> {
    compiles_without_a_warning("gcc", "-std=c11")?;
    compiles_without_a_warning("gcc", "-std=gnu17")
}

#[test]
#[ignore = "needs clang: ./tests/run"]
fn run_time_compiles_without_a_warning_by_clang() -> Result<()> {
    compiles_without_a_warning("clang", "-std=c11")?;
    compiles_without_a_warning("clang", "-std=gnu17")
}

/// The header compiles in C++ programs, and in the oldest C still in use.
#[test]
#[ignore = "needs a C++ compiler: ./tests/run"]
fn header_compiles_as_c_and_cpp() -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(NAMES, Machine::X86_64)?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?;
    for (compiler, language, standard) in [
        ("gcc", "c", "-std=c99"),
        ("g++", "c++", "-std=c++11"),
        ("g++", "c++", "-std=c++20"),
    ] {
        let mut command = Command::new(compiler);
        command.args([
            "-x",
            language,
            standard,
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
        ]);
        succeed(
            command
                .arg("-fsyntax-only")
                .arg(stubs.sources.join("gpustub.h")),
        )?;
    }
    Ok(())
}
