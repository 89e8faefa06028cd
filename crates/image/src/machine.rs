//! Names of machines, as in `@machine` of symbol lists.

use object::elf::{
    EM_386, EM_AARCH64, EM_ARM, EM_LOONGARCH, EM_MIPS, EM_PPC, EM_PPC64, EM_RISCV, EM_S390,
    EM_SPARCV9, EM_X86_64, Machine,
};

/// Name of the architecture in Rust's target triples; `elf-machine-N` if unknown.
pub(crate) fn machine_name(machine: Machine, is_64: bool, little: bool) -> String {
    let name = match (machine, is_64, little) {
        (EM_X86_64, true, _) => "x86_64",
        (EM_X86_64, false, _) => "x86_64-x32",
        (EM_386, ..) => "x86",
        (EM_AARCH64, true, true) => "aarch64",
        (EM_AARCH64, true, false) => "aarch64_be",
        (EM_AARCH64, false, _) => "aarch64-ilp32",
        (EM_ARM, _, true) => "arm",
        (EM_ARM, _, false) => "armeb",
        (EM_RISCV, true, _) => "riscv64",
        (EM_RISCV, false, _) => "riscv32",
        (EM_PPC64, _, true) => "powerpc64le",
        (EM_PPC64, _, false) => "powerpc64",
        (EM_PPC, ..) => "powerpc",
        (EM_S390, true, _) => "s390x",
        (EM_S390, false, _) => "s390",
        (EM_LOONGARCH, true, _) => "loongarch64",
        (EM_LOONGARCH, false, _) => "loongarch32",
        (EM_MIPS, true, true) => "mips64el",
        (EM_MIPS, true, false) => "mips64",
        (EM_MIPS, false, true) => "mipsel",
        (EM_MIPS, false, false) => "mips",
        (EM_SPARCV9, ..) => "sparc64",
        _ => return format!("elf-machine-{}", machine.0),
    };
    name.to_owned()
}
