//! Types of relocations that glibc applies when it loads an image (`elf_machine_rela` of each machine). It ends
//! the process for others.

use object::elf::{
    self, EM_AARCH64, EM_LOONGARCH, EM_PPC64, EM_RISCV, EM_X86_64, Machine, RelocationType,
};

/// A type of relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RelocationKind {
    pub(super) action: Action,
    /// Number of bytes that the loader writes; less where the types are not listed here.
    pub(super) width: u64,
}

/// Action of the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    None,
    /// Writes an address of the image.
    Relative,
    /// Calls a function of the image, and writes its result.
    Call,
    /// Copies data of another image.
    Copy,
    /// Writes a value that depends on a symbol.
    Symbol,
    /// Writes the address of a symbol, which the relocation must name.
    Address,
    /// Writes a module or an offset of thread-local data.
    ThreadLocal,
}

/// Kind of a type; `None` if glibc rejects it.
pub(super) fn relocation_kind(
    machine: Machine,
    relocation_type: RelocationType,
) -> Option<RelocationKind> {
    use Action::{Address, Call, Copy, None, Relative, Symbol, ThreadLocal};
    let (action, width) = match (machine, relocation_type) {
        // The number 0 does nothing on all machines.
        (_, RelocationType(0)) => (None, 0),
        (EM_X86_64, _) => match relocation_type {
            elf::R_X86_64_RELATIVE | elf::R_X86_64_RELATIVE64 => (Relative, 8),
            elf::R_X86_64_IRELATIVE => (Call, 8),
            elf::R_X86_64_COPY => (Copy, 1),
            elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => (Address, 8),
            elf::R_X86_64_64 | elf::R_X86_64_SIZE64 => (Symbol, 8),
            elf::R_X86_64_32 | elf::R_X86_64_PC32 | elf::R_X86_64_SIZE32 => (Symbol, 4),
            elf::R_X86_64_DTPMOD64 | elf::R_X86_64_DTPOFF64 | elf::R_X86_64_TPOFF64 => {
                (ThreadLocal, 8)
            }
            elf::R_X86_64_TLSDESC => (ThreadLocal, 16),
            _ => return Option::None,
        },
        (EM_AARCH64, _) => match relocation_type {
            elf::R_AARCH64_RELATIVE => (Relative, 8),
            elf::R_AARCH64_IRELATIVE => (Call, 8),
            elf::R_AARCH64_COPY => (Copy, 1),
            elf::R_AARCH64_GLOB_DAT | elf::R_AARCH64_JUMP_SLOT => (Address, 8),
            elf::R_AARCH64_ABS64 => (Symbol, 8),
            elf::R_AARCH64_TLS_DTPMOD | elf::R_AARCH64_TLS_DTPREL | elf::R_AARCH64_TLS_TPREL => {
                (ThreadLocal, 8)
            }
            elf::R_AARCH64_TLSDESC => (ThreadLocal, 16),
            _ => return Option::None,
        },
        (EM_RISCV, _) => match relocation_type {
            elf::R_RISCV_RELATIVE => (Relative, 8),
            elf::R_RISCV_IRELATIVE => (Call, 8),
            elf::R_RISCV_COPY => (Copy, 1),
            elf::R_RISCV_JUMP_SLOT => (Address, 8),
            elf::R_RISCV_64 => (Symbol, 8),
            elf::R_RISCV_TLS_DTPMOD64 | elf::R_RISCV_TLS_DTPREL64 | elf::R_RISCV_TLS_TPREL64 => {
                (ThreadLocal, 8)
            }
            elf::R_RISCV_TLSDESC => (ThreadLocal, 16),
            _ => return Option::None,
        },
        (EM_LOONGARCH, _) => match relocation_type {
            elf::R_LARCH_RELATIVE => (Relative, 8),
            elf::R_LARCH_IRELATIVE => (Call, 8),
            elf::R_LARCH_COPY => (Copy, 1),
            elf::R_LARCH_JUMP_SLOT => (Address, 8),
            elf::R_LARCH_64 => (Symbol, 8),
            elf::R_LARCH_TLS_DTPMOD64 | elf::R_LARCH_TLS_DTPREL64 | elf::R_LARCH_TLS_TPREL64 => {
                (ThreadLocal, 8)
            }
            elf::R_LARCH_TLS_DESC64 => (ThreadLocal, 16),
            _ => return Option::None,
        },
        // glibc applies about 60 types there, many of which edit instructions.
        (EM_PPC64, _) => match relocation_type {
            elf::R_PPC64_RELATIVE => (Relative, 8),
            elf::R_PPC64_IRELATIVE | elf::R_PPC64_JMP_IREL => (Call, 8),
            elf::R_PPC64_COPY => (Copy, 1),
            elf::R_PPC64_GLOB_DAT | elf::R_PPC64_JMP_SLOT => (Address, 8),
            elf::R_PPC64_DTPMOD64 | elf::R_PPC64_DTPREL64 | elf::R_PPC64_TPREL64 => {
                (ThreadLocal, 8)
            }
            _ => (Symbol, 2),
        },
        // `check_loadable` rejects other machines.
        _ => return Option::None,
    };
    Some(RelocationKind { action, width })
}
