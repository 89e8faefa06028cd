//! Oldest glibc that images with stubs start on, although the machine that builds them has a newer one;
//! oldest assembler that builds them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::elf::{needed, symbols};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail, trap_manifest};
use gpustub_tests::{Result, repository};

use super::NAMES;

/// Oldest glibc of most of Rust's targets ("Platform Support", target page of each), and of manylinux2014.
const FLOOR: (u32, u32) = (2, 17);

fn floor(machine: Machine) -> (u32, u32) {
    match machine {
        Machine::Riscv64 => (2, 29),
        Machine::Loongarch64 => (2, 36),
        _ => FLOOR,
    }
}

/// glibc 2.38 redirects functions in its headers if `_GNU_SOURCE` is defined; here for any glibc.
const NEWER_HEADERS: &str = "#ifndef __ASSEMBLER__\n#include <features.h>\n\
    long strtol(const char *, char **, int) __asm__(\"__isoc23_strtol\");\n\
    unsigned long strtoul(const char *, char **, int) __asm__(\"__isoc23_strtoul\");\n\
    long long strtoll(const char *, char **, int) __asm__(\"__isoc23_strtoll\");\n\
    #endif\n";

/// Symbols of glibc that an image imports in a version above the floor.
fn too_recent(image: &Path, floor: (u32, u32)) -> Result<Vec<String>> {
    let mut versioned = 0;
    let mut recent = Vec::new();
    for symbol in symbols("--dyn-syms", image)? {
        let Some((_, version)) = symbol.name.split_once("@GLIBC_") else {
            continue;
        };
        let mut numbers = version.split('.').map(str::parse::<u32>);
        let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else {
            return Err(format!("{}: not a version", symbol.name).into());
        };
        versioned += 1;
        if (major, minor) > floor {
            recent.push(symbol.name);
        }
    }
    if versioned == 0 {
        return Err("no symbol has a version of glibc".into());
    }
    Ok(recent)
}

/// Both forms of stubs need no version above the floor, and no library but libc.
fn needs_no_newer_glibc(machine: Machine, flags: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let lists = [("trap.symbols", list_of(NAMES))];
    let plan = plan_or_fail(&trap_manifest(""), &lists, &machine.target())?;
    fs::write(dir.path().join("newer.h"), NEWER_HEADERS)?;
    let flags: Vec<String> = flags
        .iter()
        .map(|flag| flag.replace("{dir}", &dir.path().to_string_lossy()))
        .collect();
    let stubs = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &flags)?;
    let extension = dir.path().join("extension.so");
    let source = dir.path().join("extension.c");
    fs::write(
        &source,
        "int trapOpen(void);\nint used(void) { return trapOpen(); }\n",
    )?;
    let mut cc = Command::new(machine.compiler("c"));
    cc.args(["-shared", "-fPIC", "-O1", "-Wl,-z,defs"])
        .arg(&source);
    succeed(cc.arg(stubs.archive()?).arg("-o").arg(&extension))?;
    for image in [extension, stubs.shared(dir.path(), "shared")?.library] {
        let recent = too_recent(&image, floor(machine))?;
        assert!(
            recent.is_empty(),
            "{}, {flags:?}: {recent:?}",
            image.display()
        );
        let needed = needed(&image)?;
        // Unwind tables of Arm refer to a function of libgcc.
        let known = |name: &str| {
            name == "libc.so.6" || (machine == Machine::Arm && name == "libgcc_s.so.1")
        };
        assert!(needed.iter().all(|name| known(name)), "{needed:?}");
    }
    Ok(())
}

const FLAGS: [&[&str]; 3] = [
    &[],
    &["-O2", "-D_FORTIFY_SOURCE=3"],
    &["-include", "{dir}/newer.h"],
];

#[test]
fn stubs_need_no_newer_glibc_than_2_17() -> Result<()> {
    FLAGS
        .iter()
        .try_for_each(|flags| needs_no_newer_glibc(Machine::X86_64, flags))
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn stubs_need_no_newer_glibc_than_2_17_on_aarch64() -> Result<()> {
    FLAGS
        .iter()
        .try_for_each(|flags| needs_no_newer_glibc(Machine::Aarch64, flags))
}

#[test]
#[ignore = "needs cross compilers: ./tests/run"]
fn stubs_do_not_raise_the_floor_of_other_targets() -> Result<()> {
    use Machine::{Arm, I686, Powerpc64le, Riscv64, S390x};
    [Riscv64, Powerpc64le, S390x, I686, Arm]
        .iter()
        .try_for_each(|&machine| needs_no_newer_glibc(machine, FLAGS[2]))
}

// ---- the assembler ---------------------------------------------------------------------------------

/// Directives and instructions of the trampolines, all of them in binutils 2.27 (RHEL 7): a list,
/// because no registry has an assembler of that age. SVE (2.28), `endbr64` (2.29) and
/// `.cfi_negate_ra_state` are not in it, nor are the mnemonics of pointer authentication.
const KNOWN: &str = "
    .asciz .byte .cfi_def_cfa .cfi_def_cfa_offset .cfi_def_cfa_register .cfi_endproc .cfi_escape
    .cfi_offset .cfi_remember_state .cfi_restore .cfi_restore_state .cfi_same_value .cfi_signal_frame
    .cfi_startproc .else .elseif .endif .endm .endr .globl .hidden .if .ifndef .inst .irp .long .macro
    .p2align .quad .section .short .size .type .word .zero
    addq andl andq btl call cmpb cmpl cmpq cpuid fldcw fnstcw ja jb je jmp jmpq jnc jne jnz jz
    ldmxcsr leaq leave movaps movb movl movq movslq movzbl movzwl imulq pushq stmxcsr subq testl testq vmovaps xgetbv
    xorl xorps xorq
    add adrp and b bl blr br cbnz cbz fmov hint ldar ldp ldr ldrh ldrsw madd mov mrs msr ret stp str strb sub \\instruction";

#[test]
fn trampolines_assemble_with_binutils_2_27() -> Result<()> {
    let known: BTreeSet<&str> = KNOWN.split_whitespace().collect();
    let templates = repository().join("templates");
    for file in ["asm/x86_64.S", "asm/aarch64.S", "runtime/elf_table.h"] {
        let mut text = fs::read_to_string(templates.join(file))?;
        while let Some((before, rest)) = text.split_once("/*") {
            let (_, after) = rest.split_once("*/").ok_or("a comment without an end")?;
            text = format!("{before}{after}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let code = line.split("//").next().unwrap_or_default();
            let label = |word: &&str| word.ends_with(':');
            let Some(word) = code.split_whitespace().find(|word| !label(word)) else {
                continue;
            };
            let own = ["gpustub_", "GPUSTUB_", "ENDBR64"];
            let own = own.iter().any(|prefix| word.starts_with(prefix));
            assert!(own || known.contains(word), "{file}: `{line}`");
            // Loads and stores of SVE have known names.
            assert!(!code.contains("mul vl"), "{file}: `{line}`");
        }
    }
    Ok(())
}
