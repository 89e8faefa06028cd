//! Adapters in C: what linkers keep of them, and how the stubs of several packages share them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::plan::Plan;
use gpustub_core::sources::{functions_of, render_for_c};
use gpustub_engine::toolchain::REQUIRED;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::symbols;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail, trap_manifest, with_abi_table};
use gpustub_tests::{Result, repository};

use super::link;

/// Functions of the trap library that a package has stubs for; `trap_inner` has no adapter.
const FUNCTIONS: [&str; 6] = [
    "trap_chain",
    "trap_gain",
    "trap_inner",
    "trap_never",
    "trap_of_value",
    "trap_properties",
];

/// The trap library with adapters in C.
fn trap() -> PathBuf {
    repository().join("tests/traps/adapters")
}

/// As [`package_for`], for this machine.
fn package(dir: &Path, name: &str, keep: fn(&str) -> bool) -> Result<PathBuf> {
    package_for(Machine::X86_64, dir, name, keep)
}

/// Archive of a package with stubs of the trap library. `keep`: lines of the ABI table that it knows.
fn package_for(
    machine: Machine,
    dir: &Path,
    name: &str,
    keep: fn(&str) -> bool,
) -> Result<PathBuf> {
    let package = dir.join(name);
    fs::create_dir(&package)?;
    let table = fs::read_to_string(trap().join("trap.abi"))?;
    let table: Vec<&str> = table.lines().filter(|line| keep(line)).collect();
    let manifest =
        trap_manifest("header-version = \"1.0\"").replace("$ORIGIN", &dir.display().to_string());
    let lists = [("trap.symbols", list_of(FUNCTIONS))];
    let mut plan = plan_or_fail(&manifest, &lists, &machine.target())?;
    with_abi_table(&mut plan, &table.join("\n"))?;
    let stubs = Stubs::write(&package, &plan, &machine.compiler("c"), &[])?;
    stubs.add_adapters(&trap())?;
    stubs.archive()
}

fn library(dir: &Path) -> Result<()> {
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(dir.join("libtrap.so.1"));
    succeed(cc.arg(trap().join("lib.c")))?;
    Ok(())
}

/// Names of the symbols of adapters.
fn adapters_in(program: &Path) -> Result<Vec<String>> {
    let prefixes = ["adapted_", "gpustub1_adapter_", "gpustub1_targets_"];
    let mut names: Vec<String> = symbols("--symbols", program)?
        .into_iter()
        .map(|row| row.name)
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .collect();
    names.sort();
    Ok(names)
}

/// Whether a file contains this text.
fn contains(file: &Path, text: &str) -> Result<bool> {
    let bytes = fs::read(file)?;
    Ok(bytes
        .windows(text.len())
        .any(|part| part == text.as_bytes()))
}

/// Code and data of unused adapters vanish. Strings are in one section, which stays with the first adapter.
fn unused_adapters_vanish(linker: &str) -> Result<()> {
    let dir = scratch()?;
    library(dir.path())?;
    let archive = package(dir.path(), "a", |_| true)?;
    let linker = format!("-fuse-ld={linker}");
    let flags = [&linker[..], "-Wl,--gc-sections"];
    let inner = "int trap_inner(int *, int, int);\nint main(void) { int a; return trap_inner(&a, 1, 0); }\n";
    let program = link(dir.path(), &archive, inner, &flags)?;
    succeed(&mut Command::new(&program))?;
    assert_eq!(adapters_in(&program)?, [""; 0], "{linker}");
    assert!(!contains(&program, "calls that nothing makes")?, "{linker}");

    let of_value = "struct location { int type, id; };\n\
               int trap_of_value(const void *, struct location, int);\n\
               int main(void)\n{\n struct location device = {1, 4};\n return trap_of_value(\"\", device, 2) != 42;\n}\n";
    let program = link(dir.path(), &archive, of_value, &flags)?;
    succeed(&mut Command::new(&program))?;
    let kept = [
        "adapted_trap_of_value_of_value",
        "gpustub1_adapter_trap_of_value_of_value",
        "gpustub1_targets_trap_of_value",
    ];
    assert_eq!(adapters_in(&program)?, kept, "{linker}");
    assert!(
        contains(&program, "places on a device or the host")?,
        "{linker}"
    );
    Ok(())
}

#[test]
fn unused_adapters_vanish_with_the_default_linker() -> Result<()> {
    unused_adapters_vanish("bfd")
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn unused_adapters_vanish_with_other_linkers() -> Result<()> {
    for linker in ["gold", "lld", "mold"] {
        unused_adapters_vanish(linker)?;
    }
    Ok(())
}

/// Trampolines jump to adapters, which processors permit at marked instructions only.
fn adapters_start_with_a_landing(machine: Machine, tool: &str, landings: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let archive = package_for(machine, dir.path(), "a", |_| true)?;
    let listing = succeed(
        Command::new(tool)
            .args(["-d", "--no-show-raw-insn"])
            .arg(archive),
    )?;
    let mut lines = listing.stdout.lines();
    let mut count = 0;
    while let Some(line) = lines.next() {
        if line.contains("<adapted_") && line.ends_with(">:") {
            let instruction = lines.next().unwrap_or_default();
            assert!(
                landings.iter().any(|landing| instruction.contains(landing)),
                "{line}\n{instruction}"
            );
            count += 1;
        }
    }
    assert_eq!(count, 6); // trap_chain has two
    Ok(())
}

#[test]
fn adapters_start_with_endbr64() -> Result<()> {
    adapters_start_with_a_landing(Machine::X86_64, "objdump", &["endbr64"])
}

/// `paciasp` is a landing as well (Arm ARM, "PACIASP").
#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn adapters_start_with_bti() -> Result<()> {
    let tool = "aarch64-linux-gnu-objdump";
    adapters_start_with_a_landing(Machine::Aarch64, tool, &["bti\tc", "paciasp"])
}

/// A package whose gpustub has fewer adapters: of each function, the stub of the first package remains.
fn packages_with_other_adapters_merge(linker: &str) -> Result<()> {
    let dir = scratch()?;
    library(dir.path())?;
    let complete = package(dir.path(), "all", |_| true)?;
    let without_adapters = package(dir.path(), "none", |line| !line.starts_with("@adapter"))?;
    let without_chain = package(dir.path(), "some", |line| !line.ends_with("chain_by_15"))?;
    let source = "#include <stdio.h>\nint trap_gain(int, long, int);\nint trap_chain(int);\n\
                  int main(void)\n{\n int gain = trap_gain(-1, -(1L << 40), 3);\n \
                  return printf(\"%d %d\\n\", gain, trap_chain(7)) < 0;\n}\n";
    let (main, program) = (dir.path().join("main.c"), dir.path().join("program"));
    fs::write(&main, source)?;
    for (first, second, output) in [
        (&complete, &without_adapters, "-12 715\n"),
        (&without_adapters, &complete, "77 77\n"),
        (&without_chain, &complete, "-12 77\n"),
        (&complete, &without_chain, "-12 715\n"),
        (&without_adapters, &without_chain, "77 77\n"),
    ] {
        for flags in [&["-Wl,--gc-sections"][..], &[], &["-no-pie"]] {
            let mut cc = Command::new("cc");
            cc.arg(&main)
                .arg("-Wl,--whole-archive")
                .args([first, second]);
            cc.args(["-Wl,--no-whole-archive", "-ldl", "-o"])
                .arg(&program);
            cc.arg(format!("-fuse-ld={linker}")).args(flags);
            succeed(&mut cc)?;
            let ran = succeed(&mut Command::new(&program))?;
            assert_eq!(ran.stdout, output, "{linker} {} {flags:?}", first.display());
        }
    }
    Ok(())
}

#[test]
fn packages_with_other_adapters_merge_with_the_default_linker() -> Result<()> {
    packages_with_other_adapters_merge("bfd")
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn packages_with_other_adapters_merge_with_other_linkers() -> Result<()> {
    for linker in ["gold", "lld", "mold"] {
        packages_with_other_adapters_merge(linker)?;
    }
    Ok(())
}

fn compile(machine: Machine, stubs: &Stubs, source: &str, object: &str) -> Result<()> {
    let mut cc = Command::new(machine.compiler("c"));
    cc.current_dir(&stubs.sources).args(REQUIRED);
    succeed(cc.args(["-c", source, "-o", object]))?;
    Ok(())
}

/// Archives per library have one run time, with the adapters of all: those of the other libraries refer to
/// stubs that the image lacks.
fn archives_per_library_link(machine: Machine, linker: &str) -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.cuda]\nheader-version = \"12.4\"\n[stub.cudart]\nheader-version = \"12.4\"\n";
    let plan = plan_or_fail(manifest, &[], &machine.target())?;
    let stubs = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &[])?;
    compile(machine, &stubs, "runtime.c", "runtime.o")?;
    for (id, call) in [("cuda", "cuInit"), ("cudart", "cudaDeviceSynchronize")] {
        let (path, functions) = functions_of(&plan, id);
        fs::write(stubs.sources.join(path), functions)?;
        compile(machine, &stubs, "stubs.S", "stubs.o")?;
        let archive = stubs.sources.join(format!("{id}.a"));
        let mut ar = Command::new("ar");
        ar.current_dir(&stubs.sources).args(["cqsD"]).arg(&archive);
        succeed(ar.args(["stubs.o", "runtime.o"]))?;
        let main = format!("int {call}(int);\nint main(void) {{ return {call}(0) == 0; }}\n");
        fs::write(stubs.sources.join("main.c"), main)?;
        for flags in [
            &["-Wl,--gc-sections"][..],
            &[],
            &["-no-pie"],
            &["-shared", "-fPIC"],
            &["-static-pie", "-w"],
        ] {
            let is_static = flags.contains(&"-static-pie");
            if is_static && linker == "gold" {
                continue; // has no --no-dynamic-linker
            }
            let mut cc = Command::new(machine.compiler("c"));
            cc.current_dir(&stubs.sources)
                .args(["main.c"])
                .arg(&archive);
            cc.arg(format!("-fuse-ld={linker}"))
                .args(["-o", "main", "-ldl"]);
            succeed(cc.args(flags)).map_err(|e| format!("{id}, {flags:?}: {e:?}"))?;
            let is_native = machine == Machine::X86_64;
            if is_native && !flags.contains(&"-shared") && !is_static {
                let mut program = Command::new(stubs.sources.join("main"));
                succeed(
                    program
                        .env("GPUSTUB_CUDA_PATH", "/none")
                        .env("GPUSTUB_CUDART_PATH", "/none"),
                )?;
            }
        }
    }
    Ok(())
}

#[test]
fn archives_per_library_link_with_the_default_linker() -> Result<()> {
    archives_per_library_link(Machine::X86_64, "bfd")
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn archives_per_library_link_with_other_linkers() -> Result<()> {
    for linker in ["gold", "lld", "mold"] {
        archives_per_library_link(Machine::X86_64, linker)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn archives_per_library_link_for_another_machine() -> Result<()> {
    archives_per_library_link(Machine::Aarch64, "bfd")
}

/// Libraries with an ABI table.
const LIBRARIES: [&str; 8] = [
    "cuda",
    "cudart",
    "hip",
    "hipblas",
    "hiprtc",
    "hipsparse",
    "nvrtc",
    "rocblas",
];

fn plan_of_headers(rows: &[(&str, String)]) -> Result<Plan> {
    let mut manifest = "schema = 1\n".to_owned();
    for (id, version) in rows {
        manifest += &format!("[stub.{id}]\nheader-version = \"{version}\"\n");
    }
    plan_or_fail(&manifest, &[], &Machine::X86_64.target())
}

/// Compiles a source of a plan for C projects, with the flags that the run time is checked with.
fn compile_source(dir: &Path, plan: &Plan, source: &str) -> Result<()> {
    gpustub_engine::write_sources(dir, &render_for_c(plan))?;
    let mut cc = Command::new("cc");
    cc.current_dir(dir)
        .args(["-O2", "-fPIC", "-c", "-o", "x.o", source]);
    succeed(cc.args(super::WARNINGS))?;
    Ok(())
}

/// The adapters of every library, for all headers, and in one unit with the run time.
#[test]
fn shipped_adapters_compile_without_a_warning() -> Result<()> {
    let dir = scratch()?;
    let mut newest = Vec::new();
    let mut oldest = Vec::new();
    for id in LIBRARIES {
        let manifest = format!("schema = 1\n[stub.{id}]\nheader-version = \"none\"\n");
        let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
        let headers = plan.libraries[0].library.abi.headers().to_vec();
        for version in &headers {
            let sources = dir.path().join(format!("{id}-{version}"));
            fs::create_dir(&sources)?;
            compile_source(
                &sources,
                &plan_of_headers(&[(id, version.to_string())])?,
                "adapters.c",
            )
            .map_err(|e| format!("{id} {version}: {e:?}"))?;
        }
        oldest.push((id, headers.first().ok_or("no headers")?.to_string()));
        newest.push((id, headers.last().ok_or("no headers")?.to_string()));
    }
    for (name, rows) in [("oldest", oldest), ("newest", newest)] {
        let sources = dir.path().join(name);
        fs::create_dir(&sources)?;
        compile_source(&sources, &plan_of_headers(&rows)?, "runtime.c")?;
    }
    Ok(())
}
