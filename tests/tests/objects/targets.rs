//! The table of targets in `docs/targets.md`: what is measured on each, and the limits that other stubs have there.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_engine::toolchain::REQUIRED;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::readelf;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_functions, plan_or_fail, trap_manifest};
use gpustub_tests::{Result, repository};

const PAGE: &str = "docs/targets.md";
const START: &str = "| target |";

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("trap{n:05}"))
}

/// A program that calls the first functions, whose library is absent or returns their number.
fn calling(count: usize, sum: usize) -> String {
    let (mut declarations, mut calls) = (String::new(), String::new());
    for name in numbered(count) {
        declarations += &format!("int {name}(void);\n");
        calls += &format!(" sum += {name}();\n");
    }
    format!(
        "{declarations}int main(void)\n{{\n long sum = 0;\n{calls} return sum == {sum} ? 0 : 1;\n}}\n"
    )
}

/// Compiles and links a C program with stubs.
fn program(
    dir: &Path,
    machine: Machine,
    source: &str,
    archives: &[&Path],
) -> Result<std::path::PathBuf> {
    let (main, program) = (dir.join("main.c"), dir.join("program"));
    fs::write(&main, source)?;
    let mut cc = Command::new(machine.compiler("c"));
    cc.args(["-O1", "-pthread", "-Wl,--gc-sections", "-Wl,-rpath,$ORIGIN"])
        .args(machine.link_flags())
        .arg(&main)
        .args(archives)
        .arg("-o")
        .arg(&program);
    succeed(&mut cc)?;
    Ok(program)
}

/// Bytes of the segments that a program loads.
fn loaded_bytes(program: &Path) -> Result<u64> {
    let text = readelf(&["-l"], program)?;
    Ok(text
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("LOAD "))
        .filter_map(|line| line.split_whitespace().nth(4))
        .filter_map(|size| u64::from_str_radix(size.trim_start_matches("0x"), 16).ok())
        .sum())
}

/// Bytes by which a program grows for each stub that it uses: the difference of two programs, without the call.
fn bytes_per_stub(machine: Machine) -> Result<u64> {
    // The slots of an object fill whole pages, of up to 64 KiB.
    const FEW: usize = 4096;
    const MANY: usize = 8192;
    let dir = scratch()?;
    let dir = dir.path();
    let plan = plan_functions(numbered(MANY), machine)?;
    let archive = Stubs::write(dir, &plan, &machine.compiler("c"), &[])?.archive()?;
    let mut sizes = [0; 2];
    for (size, count) in sizes.iter_mut().zip([FEW, MANY]) {
        let path = program(dir, machine, &calling(count, 77 * count), &[&archive])?;
        succeed(&mut machine.run(&path))?; // the library is absent: each call gives 77
        let calls = dir.join("calls.o");
        let mut cc = Command::new(machine.compiler("c"));
        succeed(
            cc.args(["-O1", "-c", "-o"])
                .arg(&calls)
                .arg(dir.join("main.c")),
        )?;
        *size = loaded_bytes(&path)? - text_size(&calls)?;
    }
    Ok((sizes[1] - sizes[0]) / (MANY - FEW) as u64)
}

/// Size of the code of an object.
fn text_size(object: &Path) -> Result<u64> {
    let text = readelf(&["-S"], object)?;
    let size = text
        .lines()
        .find(|line| line.contains(" .text "))
        .and_then(|line| line.split_once("PROGBITS")?.1.split_whitespace().nth(2))
        .and_then(|size| u64::from_str_radix(size, 16).ok());
    Ok(size.ok_or("an object without code")?)
}

/// Instructions of a warm call's trampoline: up to the jump through the slot.
fn warm_instructions(machine: Machine) -> Result<usize> {
    let dir = scratch()?;
    let plan = plan_functions(["trapOpen"], machine)?;
    let archive = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &[])?.archive()?;
    let tool = match machine {
        Machine::Loongarch64 => "llvm-objdump-19".to_owned(),
        _ => machine.tool("objdump"),
    };
    let mut objdump = Command::new(tool);
    objdump.args(["-d", "--no-show-raw-insn"]).arg(&archive);
    let listing = succeed(&mut objdump)?.stdout;
    let (_, code) = listing.split_once("<trapOpen>:\n").ok_or("no trampoline")?;
    // The thunk is after the jump.
    let jumps = ["\tjmp ", "\tbr\t", "\tjr\t", "\tbctr", "\tldr\tpc"];
    let jump = code
        .lines()
        .position(|line| jumps.iter().any(|jump| line.contains(jump)));
    Ok(jump.ok_or("no jump")? + 1)
}

/// Column of the machine that the torture suite (`tests/tests/traps/main.rs`) uses.
fn runs_by(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 | Machine::I686 | Machine::Musl => "native",
        Machine::Loongarch64 => "qemu-user, `--all` only",
        _ => "qemu-user",
    }
}

/// Compilers that the suites build the stubs with.
fn compilers(machine: Machine) -> &'static str {
    match machine {
        Machine::Musl => "GCC",
        Machine::Loongarch64 => "clang",
        _ => "GCC, clang",
    }
}

/// Systems without a C library and an emulator among the components: triple of the row, triple of clang, linker.
const OTHER_SYSTEMS: &str = "\
x86_64-unknown-freebsd x86_64-unknown-freebsd14 lld, by zig
aarch64-unknown-freebsd aarch64-unknown-freebsd14 no
aarch64-linux-android aarch64-linux-android24 no
x86_64-linux-android x86_64-linux-android24 no
i686-linux-android i686-linux-android24 no
armv7-linux-androideabi armv7a-linux-androideabi24 no
";

/// Rows of the targets that the suites `windows` (with its figures) and `macos` test.
const OTHER_SUITES: &str = "\
| `x86_64-pc-windows-msvc` | rustc | lld | wine 8 | 66 | 1 |
| `x86_64-pc-windows-gnu` | rustc | bfd (mingw-w64) | wine 8 | 66 | 1 |
| `x86_64-pc-windows-gnullvm` | rustc | lld | wine 8, `--all` only | 66 | 1 |
| `aarch64-pc-windows-gnullvm` | rustc, clang | lld | wine 10 in qemu-user, `--all` only | 54 | 3 |
| `aarch64-pc-windows-msvc` | rustc, clang | lld | no | 54 | 3 |
| `x86_64-apple-darwin` | rustc | lld | instructions only, native | | |
| `aarch64-apple-darwin` | rustc | lld | instructions only, qemu-user | | |
";

/// Machine with the trampolines of a triple.
fn machine_of(triple: &str) -> Result<Machine> {
    let arch = |triple: &str| triple.split('-').next().map(str::to_owned);
    let mut machines = Machine::ALL.iter().copied();
    let machine = machines.find(|machine| arch(&machine.target().triple) == arch(triple));
    Ok(machine.ok_or("an architecture")?)
}

/// Assembles the trampolines for another system.
fn assemble(machine: Machine, triple: &str) -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(["trapOpen"], machine)?;
    let stubs = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &[])?;
    let mut clang = Command::new("clang-19");
    clang
        .current_dir(&stubs.sources)
        .arg(format!("--target={triple}"));
    succeed(clang.args(["-fPIC", "-c", "-o", "other.o", "stubs.S"]))?;
    Ok(())
}

fn linkers(machine: Machine) -> &'static str {
    match machine {
        Machine::X86_64 => "bfd, gold, lld, mold",
        Machine::Aarch64 | Machine::Riscv64 | Machine::I686 | Machine::Musl => "bfd, lld, mold",
        Machine::Powerpc64le | Machine::S390x | Machine::Arm => "bfd, lld",
        Machine::Loongarch64 => "lld",
    }
}

/// `BLESS=1` writes the table.
#[test]
#[ignore = "needs cross compilers and emulators: ./tests/run --all"]
fn heavy_table_of_targets_is_current() -> Result<()> {
    let mut table = format!(
        "{START} assembled by | linked by | run | bytes per used stub | instructions of a warm call |\n\
         |---|---|---|---|---|---|\n"
    );
    for &machine in Machine::ALL {
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {} |",
            machine.target().triple,
            compilers(machine),
            linkers(machine),
            runs_by(machine),
            bytes_per_stub(machine)?,
            warm_instructions(machine)?,
        )?;
    }
    for line in OTHER_SYSTEMS.lines() {
        let [row, triple, linker] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
            return Err(format!("{line}: not three words").into());
        };
        assemble(machine_of(row)?, triple)?;
        writeln!(table, "| `{row}` | clang | {linker} | no | | |")?;
    }
    table += OTHER_SUITES;
    let path = repository().join(PAGE);
    let page = fs::read_to_string(&path)?;
    let start = page.find(START).ok_or("no table")?;
    let end = page[start..]
        .find("\n\n")
        .map_or(page.len(), |end| start + end + 1);
    let current = format!("{}{table}{}", &page[..start], &page[end..]);
    #[expect(
        clippy::disallowed_methods,
        reason = "a test reads its own environment"
    )]
    let bless = std::env::var_os("BLESS").is_some();
    if bless {
        fs::write(&path, &current)?;
    } else {
        assert_eq!(page, current);
    }
    Ok(())
}

/// clang inlines no function into one for other registers, and knows other directives than binutils.
fn clang_compiles(clang: &str) -> Result<()> {
    for &machine in Machine::ALL {
        let Some(gnu) = machine
            .gnu_triple()
            .filter(|_| machine != Machine::Loongarch64)
        else {
            continue;
        };
        let dir = scratch()?;
        let plan = plan_functions(["trapOpen"], machine)?;
        // Debian's cross headers are not below a sysroot.
        let flags = ["-idirafter".to_owned(), format!("/usr/{gnu}/include")];
        Stubs::write(dir.path(), &plan, clang, &flags)?.archive()?;
    }
    Ok(())
}

/// Whether a listing of objdump names a vector register. Lines have an offset, bytes, and an instruction; the address
/// of a jump may read as a register.
fn uses_vectors(listing: &str) -> bool {
    listing
        .lines()
        .filter_map(|line| line.splitn(3, '\t').nth(2))
        .filter(|instruction| !instruction.contains('<'))
        .flat_map(|instruction| instruction.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter_map(|word| word.strip_prefix(['q', 'v', 'd', 's']))
        .any(|number| number.parse::<u8>().is_ok())
}

/// Some callers expect vector registers to be preserved, which no code saves before these functions.
#[test]
#[ignore = "needs clang and a cross compiler: ./tests/run"]
fn answers_of_aarch64_use_general_registers() -> Result<()> {
    let machine = Machine::Aarch64;
    let dir = scratch()?;
    let plan = plan_functions(["trapOpen"], machine)?;
    let stubs = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &[])?;
    let clang = [
        "--target=aarch64-linux-gnu",
        "-idirafter",
        "/usr/aarch64-linux-gnu/include",
    ];
    for (compiler, flags) in [("clang", &clang[..]), ("aarch64-linux-gnu-gcc", &[])] {
        let mut cc = Command::new(compiler);
        cc.current_dir(&stubs.sources)
            .args(flags)
            .args(REQUIRED)
            .args(["-O2", "-w", "-c", "-o", "optimized.o", "runtime.c"]);
        let ran = succeed(&mut cc)?;
        assert_eq!(ran.stderr, "", "{compiler}");
        let mut objdump = Command::new(machine.tool("objdump"));
        objdump
            .current_dir(&stubs.sources)
            .args(["-d", "optimized.o"]);
        let listing = succeed(&mut objdump)?.stdout;
        // The last two may be inlined.
        let names = [
            "gpustub1_answer",
            "gpustub1_has_sve",
            "write_out_params",
            "composed_result",
        ];
        for (name, is_required) in names.iter().zip([true, true, false, false]) {
            let Some((_, code)) = listing.split_once(&format!("<{name}>:\n")) else {
                assert!(!is_required, "{compiler}: no {name}");
                continue;
            };
            let code = code.split("\n\n").next().unwrap_or_default();
            assert!(!uses_vectors(code), "{compiler}: {name}");
        }
        assert!(uses_vectors(&listing), "{compiler}: no function uses any");
    }
    Ok(())
}

#[test]
#[ignore = "needs clang and the C libraries of other machines: ./tests/run"]
fn clang_compiles_stubs_of_each_machine() -> Result<()> {
    clang_compiles("clang")
}

#[test]
#[ignore = "needs clang 19 and the C libraries of other machines: ./tests/run --all"]
fn heavy_clang_19_compiles_stubs_of_each_machine() -> Result<()> {
    clang_compiles("clang-19")
}

/// A library whose functions return their number.
fn library(
    dir: &Path,
    machine: Machine,
    name: &str,
    functions: impl IntoIterator<Item = String>,
) -> Result<()> {
    let source = dir.join(format!("{name}.c"));
    let definitions: String = functions
        .into_iter()
        .enumerate()
        .map(|(number, function)| format!("int {function}(void) {{ return {number}; }}\n"))
        .collect();
    fs::write(&source, definitions)?;
    let mut cc = Command::new(machine.compiler("c"));
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(dir.join(name))
        .arg(format!("-Wl,-soname,{name}"));
    succeed(cc.arg(&source))?;
    Ok(())
}

/// Stubs with 16-bit offsets end at 4,096 functions.
#[test]
#[ignore = "needs a cross compiler and qemu-user: ./tests/run"]
fn heavy_stubs_of_powerpc64le_reach_10_000_functions() -> Result<()> {
    const COUNT: usize = 10_000;
    let machine = Machine::Powerpc64le;
    let dir = scratch()?;
    let dir = dir.path();
    let plan = plan_functions(numbered(COUNT), machine)?;
    let archive = Stubs::write(dir, &plan, &machine.compiler("c"), &[])?.archive()?;
    library(dir, machine, "libtrap.so.1", numbered(COUNT))?;
    let source = calling(COUNT, COUNT * (COUNT - 1) / 2);
    let program = program(dir, machine, &source, &[&archive])?;
    succeed(&mut machine.run(&program))?;
    Ok(())
}

/// Stubs whose sections share one group name are dropped for the second library.
#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn stubs_of_three_libraries_are_in_one_program_of_i686() -> Result<()> {
    let machine = Machine::I686;
    let dir = scratch()?;
    let dir = dir.path();
    let mut archives = Vec::new();
    for id in ["one", "two", "three"] {
        let manifest = trap_manifest("")
            .replace("[stub.trap]", &format!("[stub.{id}]"))
            .replace("libtrap", &format!("lib{id}"));
        let functions: [String; 3] = std::array::from_fn(|number| format!("{id}{number}"));
        let lists = [("trap.symbols", list_of(&functions))];
        let plan = plan_or_fail(&manifest, &lists, &machine.target())?;
        let package = dir.join(id);
        fs::create_dir(&package)?;
        archives.push(Stubs::write(&package, &plan, &machine.compiler("c"), &[])?.archive()?);
        library(dir, machine, &format!("lib{id}.so.1"), functions)?;
    }
    let source = "int one0(void), one2(void), two1(void), three1(void), three2(void);\n\
        int main(void) { return one0() + one2() + two1() + three1() + three2() == 6 ? 0 : 1; }\n";
    let archives: Vec<&Path> = archives.iter().map(AsRef::as_ref).collect();
    succeed(&mut machine.run(&program(dir, machine, source, &archives)?))?;
    Ok(())
}

/// A file for another machine, a truncated one, and a library of stubs are rejected before the loader maps them: by
/// readers of either class and byte order.
fn files_are_checked(machine: Machine) -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let plan = plan_functions(["trapOpen"], machine)?;
    let stubs = Stubs::write(dir, &plan, &machine.compiler("c"), &[])?;
    let archive = stubs.archive()?;
    let source = "int trapOpen(void); int main(void) { return trapOpen() == 77 ? 0 : 1; }\n";
    let program = program(dir, machine, source, &[&archive])?;
    let stub_library = stubs.shared(dir, "shared")?.library;
    library(dir, machine, "whole.so", ["trapOpen".to_owned()])?;
    let mut bytes = fs::read(dir.join("whole.so"))?;
    let truncated = dir.join("truncated.so");
    fs::write(&truncated, &bytes[..bytes.len() / 8])?;
    // e_machine of SPARC: the last byte of a big-endian number, the first of a little-endian one.
    (bytes[18], bytes[19]) = if bytes[5] == 2 { (0, 2) } else { (2, 0) };
    let foreign = dir.join("foreign.so");
    fs::write(&foreign, bytes)?;
    for (file, reason) in [
        (foreign, "a library for another processor"),
        (truncated, "truncated: the file ends before its segments do"),
        (stub_library, "a library of stubs, not the library"),
    ] {
        let mut command = machine.run(&program);
        command
            .env("GPUSTUB_LOG", "1")
            .env("GPUSTUB_TRAP_PATH", &file);
        let ran = succeed(&mut command)?;
        assert!(
            ran.stderr.contains(reason),
            "{}: {}",
            file.display(),
            ran.stderr
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs a cross compiler and qemu-user: ./tests/run"]
fn files_are_checked_on_s390x() -> Result<()> {
    files_are_checked(Machine::S390x)
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn files_are_checked_on_i686() -> Result<()> {
    files_are_checked(Machine::I686)
}

/// Words that a missing library leaves: the out-parameter, and the arguments around it.
const AROUND: &str = "#include <stddef.h>
typedef unsigned long long flags;
int clEnqueueMigrateMemObjects(void *, unsigned, void **, flags, unsigned, void **, void **);
int clGetDeviceIDs(void *, flags, unsigned, void **, unsigned *);
void *clCreateBuffer(void *, flags, size_t, void *, int *);
int curandCreateGenerator(void **, int);
int main(void)
{
    void *objects[1] = {objects}, *events[1] = {objects}, *event = objects, *devices[1] = {objects};
    void *generator = objects;
    unsigned count = 5;
    int status = 0;
    if (!clEnqueueMigrateMemObjects(NULL, 1, objects, 1, 1, events, &event) || event || events[0] != objects ||
        objects[0] != objects)
        return 1;
    if (!clGetDeviceIDs(NULL, ~0ull, 1, devices, &count) || count || devices[0] != objects)
        return 2;
    if (clCreateBuffer(NULL, 1, 16, NULL, &status) || status != -32)
        return 3;
    if (!curandCreateGenerator(&generator, 1) || generator != objects)
        return 4;
    return 0;
}
";

/// Without OpenCL. An argument of 64 bits before an out-parameter moves it by two words; of libraries that do not exist
/// for these machines, out-parameters stay as they are.
fn writes_no_other_argument(machine: Machine) -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.opencl]\n[stub.curand]\nheader-version = \"none\"\n";
    let plan = plan_or_fail(manifest, &[], &machine.target())?;
    let archive = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &[])?.archive()?;
    succeed(&mut machine.run(&program(dir.path(), machine, AROUND, &[&archive])?))?;
    Ok(())
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn missing_functions_of_i686_write_no_other_argument() -> Result<()> {
    writes_no_other_argument(Machine::I686)
}

#[test]
#[ignore = "needs a cross compiler and qemu-user: ./tests/run"]
fn missing_functions_of_arm_write_no_other_argument() -> Result<()> {
    writes_no_other_argument(Machine::Arm)
}
