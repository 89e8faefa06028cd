//! Functions that the loader calls (`call_init` and `_dl_fini` of glibc), and the other requirements that it
//! has of the dynamic section.

use std::ops::Range;

use object::elf::{self, DynamicTag, PF_W};

use super::problem::EditProblem;
use super::relocations::{Relocations, Value};
use super::words::u64_at;
use crate::elf::ElfImage;

/// Arrays of functions: address and size.
const ARRAYS: [(DynamicTag, DynamicTag); 3] = [
    (elf::DT_PREINIT_ARRAY, elf::DT_PREINIT_ARRAYSZ),
    (elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ),
    (elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ),
];

/// Sizes and counts with their tables. The loader ignores those of a table that is not there, so that its
/// relocations or initializers would be missing.
const TABLES: [(DynamicTag, DynamicTag); 9] = [
    (elf::DT_RELASZ, elf::DT_RELA),
    (elf::DT_RELRSZ, elf::DT_RELR),
    (elf::DT_PLTRELSZ, elf::DT_JMPREL),
    (elf::DT_RELACOUNT, elf::DT_RELA),
    (elf::DT_VERNEEDNUM, elf::DT_VERNEED),
    (elf::DT_VERDEFNUM, elf::DT_VERDEF),
    (elf::DT_PREINIT_ARRAYSZ, elf::DT_PREINIT_ARRAY),
    (elf::DT_INIT_ARRAYSZ, elf::DT_INIT_ARRAY),
    (elf::DT_FINI_ARRAYSZ, elf::DT_FINI_ARRAY),
];

/// Tags that a dynamic section may have several times.
const REPEATED: [DynamicTag; 5] = [
    elf::DT_NEEDED,
    elf::DT_AUXILIARY,
    elf::DT_FILTER,
    elf::DT_AUDIT,
    elf::DT_DEPAUDIT,
];

/// Checks requirements that are independent of an edit.
pub(super) fn check_dynamic(image: &ElfImage<'_>) -> Result<(), EditProblem> {
    // Readers differ in which one counts.
    let mut unique_tags: Vec<DynamicTag> = image
        .dynamic()
        .map(|(tag, _)| tag)
        .filter(|tag| !REPEATED.contains(tag))
        .collect();
    unique_tags.sort_unstable_by_key(|tag| tag.0);
    if unique_tags.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(EditProblem::Malformed("dynamic section has an entry twice"));
    }
    for (size, table) in TABLES {
        if image.tag(table).is_none() && image.tag(size).is_some_and(|size| size != 0) {
            return Err(EditProblem::Malformed(
                "dynamic section has the size of a table, and no table",
            ));
        }
    }
    // The loader adds the load address to entries, unless the program header declares them read-only.
    let dynamic = image.own_dynamic_segment()?;
    if dynamic.flags & PF_W.0 != 0 && !image.is_writable(dynamic.vaddr, dynamic.filesz) {
        return Err(EditProblem::Malformed("dynamic section is not writable"));
    }
    // `elf_machine_runtime_setup` writes two words behind the first.
    let has_slots = image.tag(elf::DT_PLTRELSZ).is_some_and(|size| size != 0);
    let slots = image.tag(elf::DT_PLTGOT).filter(|_| has_slots);
    if slots.is_some_and(|slots| !image.is_writable(slots, 24)) {
        return Err(EditProblem::Malformed(
            "table of PLT addresses is not writable",
        ));
    }
    Ok(())
}

/// Addresses of the arrays.
pub(super) fn arrays(image: &ElfImage<'_>) -> Result<Vec<Range<u64>>, EditProblem> {
    let mut arrays = Vec::new();
    for (table, size) in ARRAYS {
        let Some(address) = image.tag(table) else {
            continue;
        };
        let size = image.required(size, "no size of the initializers")?;
        // Linkers leave the address of an empty array unset.
        if size < 8 {
            continue;
        }
        image.offset_of(address, size)?;
        if address % 8 != 0 {
            return Err(EditProblem::Malformed("initializers are not aligned"));
        }
        arrays.push(address..address + size / 8 * 8);
    }
    Ok(arrays)
}

/// Checks that all functions are code of the image, as far as relocations determine it.
pub(super) fn check(
    image: &ElfImage<'_>,
    arrays: &[Range<u64>],
    relocations: &Relocations,
) -> Result<(), EditProblem> {
    let no_code = EditProblem::Malformed("initializer is no code");
    for tag in [elf::DT_INIT, elf::DT_FINI] {
        if image
            .tag(tag)
            .is_some_and(|address| !image.is_code(address))
        {
            return Err(no_code);
        }
    }
    for array in arrays {
        let bytes = image.bytes_at(array.start, array.end - array.start)?;
        for (address, entry) in array.clone().step_by(8).zip(bytes.chunks_exact(8)) {
            let in_file = u64_at(entry, 0);
            let is_code = match relocations.values.get(&address) {
                Some(Value::Other) => true,
                Some(&Value::Address(function)) => image.is_code(function),
                Some(Value::InFile) => image.is_code(in_file),
                // Without a relocation only the addresses of a program that is not relocated are right.
                None => image.header.kind == elf::ET_EXEC && image.is_code(in_file),
            };
            if !is_code {
                return Err(no_code);
            }
        }
    }
    Ok(())
}
