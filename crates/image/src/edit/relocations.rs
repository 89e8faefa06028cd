//! Relocations: the symbols that an image uses, copies of data, and the contents of watched addresses. Tables
//! that end the process in glibc are rejected: by an assertion in `elf_get_dynamic_info`, a type that
//! `elf_machine_rela` does not know, or a write outside of writable segments.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use object::elf::{self, DynamicTag, PF_W, RelocationType};

use super::problem::EditProblem;
use super::relocation_types::{Action, RelocationKind, relocation_kind};
use super::words::u64_at;
use crate::elf::{ElfImage, Segment};

/// Size of an entry.
const RELA: u64 = 24;

/// Number of entries read at a time.
const CHUNK: u64 = 4096;

/// Symbols that relocations refer to, by index.
#[derive(Default)]
pub(super) struct Relocations {
    /// One more than the highest index.
    pub(super) symbols: u32,
    /// Whether any relocation refers to a symbol.
    referenced: Vec<bool>,
    /// Symbols with a copy relocation.
    copied: Vec<u32>,
    /// Symbols whose thread-local data is referred to.
    thread_local: BTreeSet<u32>,
    /// Values at watched addresses.
    pub(super) values: BTreeMap<u64, Value>,
}

/// Value at an address after relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// An address of the image.
    Address(u64),
    /// The value in the file, as an address of the image.
    InFile,
    /// Known by the loader only.
    Other,
}

impl Relocations {
    pub(super) fn is_referenced(&self, symbol: u32) -> bool {
        self.referenced
            .get(symbol as usize)
            .copied()
            .unwrap_or(false)
    }

    pub(super) fn is_copied(&self, symbol: u32) -> bool {
        self.copied.contains(&symbol)
    }

    /// Whether a relocation refers to the thread-local data of a symbol.
    pub(super) fn is_thread_local(&self, symbol: u32) -> bool {
        self.thread_local.contains(&symbol)
    }

    /// Reads the tables, and the values at the addresses of `watched`, which are multiples of 8.
    pub(super) fn read(image: &ElfImage<'_>, watched: &[Range<u64>]) -> Result<Self, EditProblem> {
        let mut relocations = Self::default();
        let targets = RelocationTargets::new(image, watched)?;
        if let Some(address) = image.tag(elf::DT_RELA) {
            check_tag(
                image,
                elf::DT_RELAENT,
                RELA,
                "unexpected size of relocations",
            )?;
            let size = image.required(elf::DT_RELASZ, "no size of the relocations")?;
            relocations.read_table(image, &targets, (address, size), false)?;
            check_relative(image, address, size)?;
        }
        if let Some(address) = image.tag(elf::DT_JMPREL) {
            check_tag(
                image,
                elf::DT_PLTREL,
                elf::DT_RELA.0 as u64,
                "unexpected kind of PLT relocations",
            )?;
            let size = image.required(elf::DT_PLTRELSZ, "no size of the PLT relocations")?;
            relocations.read_table(image, &targets, (address, size), true)?;
        }
        if let Some(address) = image.tag(elf::DT_RELR) {
            check_tag(
                image,
                elf::DT_RELRENT,
                8,
                "unexpected size of relative relocations",
            )?;
            let size = image.required(elf::DT_RELRSZ, "no size of the relative relocations")?;
            relocations.read_packed(image, &targets, address, size)?;
        }
        Ok(relocations)
    }

    fn read_table(
        &mut self,
        image: &ElfImage<'_>,
        targets: &RelocationTargets<'_>,
        (address, size): (u64, u64),
        is_plt: bool,
    ) -> Result<(), EditProblem> {
        // The whole table first, so that no work is done for a size that a small file only claims.
        // mold leaves the address of an empty table unset.
        if size == 0 {
            return Ok(());
        }
        image.offset_of(address, size)?;
        if size % RELA != 0 {
            return Err(EditProblem::Malformed(
                "size of the relocations is no multiple of one",
            ));
        }
        let mut segment_index = 0;
        for start in (0..size).step_by((CHUNK * RELA) as usize) {
            let chunk = image.bytes_at(address + start, (size - start).min(CHUNK * RELA))?;
            for entry in chunk.chunks_exact(RELA as usize) {
                let (target, info) = (u64_at(entry, 0), u64_at(entry, 8));
                let symbol = (info >> 32) as u32;
                let kind = targets.kind(RelocationType(info as u32))?;
                // Lazily, the loader accepts only these (`elf_machine_lazy_rel`).
                if is_plt
                    && !matches!(
                        kind.action,
                        Action::Address | Action::Call | Action::ThreadLocal
                    )
                {
                    return Err(EditProblem::Malformed("unexpected kind of PLT relocations"));
                }
                if kind.action == Action::None {
                    continue;
                }
                segment_index = targets.check(target, kind.width, segment_index)?;
                let is_slot = matches!(kind.action, Action::Address | Action::ThreadLocal);
                if is_slot && target % 8 != 0 {
                    return Err(EditProblem::Malformed("address in no slot of its own"));
                }
                self.apply(image, kind.action, symbol, u64_at(entry, 16))?;
                if targets.is_watched(target, kind.width)? {
                    let value = match kind.action {
                        Action::Relative => Value::Address(u64_at(entry, 16)),
                        _ => Value::Other,
                    };
                    self.values.insert(target, value);
                }
            }
            (image.consumed)(chunk);
        }
        Ok(())
    }

    /// Reads packed relative relocations (gABI, `DT_RELR`): an address, or 63 bits for the words behind the last
    /// one.
    fn read_packed(
        &mut self,
        image: &ElfImage<'_>,
        targets: &RelocationTargets<'_>,
        address: u64,
        size: u64,
    ) -> Result<(), EditProblem> {
        if size == 0 {
            return Ok(());
        }
        image.offset_of(address, size)?;
        let mut next_base = None;
        let mut segment_index = 0;
        for start in (0..size).step_by((CHUNK * 8) as usize) {
            let chunk = image.bytes_at(address + start, (size - start).min(CHUNK * 8))?;
            for entry in chunk.chunks_exact(8).map(|entry| u64_at(entry, 0)) {
                let (base, bits) = match next_base {
                    _ if entry & 1 == 0 => (entry, 1),
                    Some(base) => (base, entry >> 1),
                    None => {
                        return Err(EditProblem::Malformed(
                            "relative relocations have no address",
                        ));
                    }
                };
                for bit in (0..63).filter(|bit| bits >> bit & 1 != 0) {
                    let target = u64::wrapping_add(base, 8 * bit);
                    segment_index = targets.check(target, 8, segment_index)?;
                    if targets.is_watched(target, 8)? {
                        self.values.insert(target, Value::InFile);
                    }
                }
                let words = if entry & 1 == 0 { 1 } else { 63 };
                next_base = Some(base.wrapping_add(8 * words));
            }
        }
        Ok(())
    }

    /// Records the symbol of a relocation, and checks what the loader does with it.
    fn apply(
        &mut self,
        image: &ElfImage<'_>,
        action: Action,
        symbol: u32,
        addend: u64,
    ) -> Result<(), EditProblem> {
        match action {
            Action::Call if !image.is_code(addend) => {
                return Err(EditProblem::Malformed(
                    "function of a relocation is no code",
                ));
            }
            Action::Relative if !image.has_range(addend, 0) => {
                return Err(EditProblem::Malformed(
                    "relative relocation to no address of it",
                ));
            }
            Action::Address if symbol == 0 => {
                return Err(EditProblem::Malformed("relocation without a symbol"));
            }
            Action::ThreadLocal if symbol == 0 && !image.has_thread_local(addend) => {
                return Err(EditProblem::Malformed("outside of the thread-local data"));
            }
            Action::ThreadLocal => {
                self.thread_local.insert(symbol);
            }
            _ => {}
        }
        if symbol == 0 {
            return Ok(());
        }
        self.refer(image, symbol)?;
        if action == Action::Copy && !self.copied.contains(&symbol) {
            self.copied.push(symbol);
        }
        Ok(())
    }

    fn refer(&mut self, image: &ElfImage<'_>, symbol: u32) -> Result<(), EditProblem> {
        let index = symbol as usize;
        if index >= self.referenced.len() {
            // A symbol has 24 bytes, which bounds the indices by the size of the file.
            if u64::from(symbol) > image.source.len() / 24 {
                return Err(EditProblem::Malformed(
                    "relocation against an unknown symbol",
                ));
            }
            self.referenced.resize(index + 1, false);
            self.symbols = symbol + 1;
        }
        self.referenced[index] = true;
        Ok(())
    }
}

/// Addresses that relocations may write to.
struct RelocationTargets<'i> {
    image: &'i ElfImage<'i>,
    writable: Vec<&'i Segment>,
    /// The dynamic section, whose spare entries an edit fills.
    dynamic: Range<u64>,
    watched: &'i [Range<u64>],
}

impl<'i> RelocationTargets<'i> {
    fn new(image: &'i ElfImage<'_>, watched: &'i [Range<u64>]) -> Result<Self, EditProblem> {
        let writes_text = has_text_relocations(image);
        let dynamic = image.own_dynamic_segment()?;
        Ok(Self {
            image,
            writable: image
                .loads()
                .filter(|s| writes_text || s.flags & PF_W.0 != 0)
                .collect(),
            dynamic: dynamic.vaddr..dynamic.vaddr + dynamic.filesz,
            watched,
        })
    }

    fn kind(&self, relocation_type: RelocationType) -> Result<RelocationKind, EditProblem> {
        relocation_kind(self.image.header.machine, relocation_type)
            .ok_or(EditProblem::Malformed("unknown type of relocation"))
    }

    /// Checks a target, and returns the index of its segment. Most relocations follow each other in one segment: that
    /// of the last relocation, `last_index`, is tried first.
    fn check(&self, target: u64, width: u64, last_index: usize) -> Result<usize, EditProblem> {
        let last = self.writable.get(last_index);
        let index = if last.is_some_and(|segment| segment.contains(target, width)) {
            Some(last_index)
        } else {
            (self.writable.iter()).position(|segment| segment.contains(target, width))
        };
        if overlaps(&self.dynamic, target, width) {
            return Err(EditProblem::Malformed("relocation of the dynamic section"));
        }
        index.ok_or(EditProblem::Malformed(
            "relocation outside of writable segments",
        ))
    }

    /// Whether a target is watched; a watched one has a word of its own.
    fn is_watched(&self, target: u64, width: u64) -> Result<bool, EditProblem> {
        let is_watched = (self.watched.iter()).any(|range| overlaps(range, target, width));
        if is_watched && (target % 8 != 0 || width != 8) {
            return Err(EditProblem::Malformed(
                "relocation of a part of an initializer",
            ));
        }
        Ok(is_watched)
    }
}

/// Checks the value of a tag that must be present.
fn check_tag(
    image: &ElfImage<'_>,
    tag: DynamicTag,
    expected: u64,
    why: &'static str,
) -> Result<(), EditProblem> {
    match image.tag(tag) {
        Some(value) if value == expected => Ok(()),
        _ => Err(EditProblem::Malformed(why)),
    }
}

fn overlaps(range: &Range<u64>, target: u64, width: u64) -> bool {
    target < range.end && range.start < target.saturating_add(width)
}

/// Checks the relocations that `DT_RELACOUNT` declares to be relative, and glibc asserts to be
/// (`elf_machine_rela_relative`).
fn check_relative(image: &ElfImage<'_>, address: u64, size: u64) -> Result<(), EditProblem> {
    let count = image.tag(elf::DT_RELACOUNT).unwrap_or(0);
    if count > size / RELA {
        return Err(EditProblem::Malformed(
            "more relative relocations than relocations",
        ));
    }
    for start in (0..count).step_by(CHUNK as usize) {
        let size = (count - start).min(CHUNK) * RELA;
        let chunk = image.bytes_at(address + start * RELA, size)?;
        for entry in chunk.chunks_exact(RELA as usize) {
            let relocation_type = RelocationType(u64_at(entry, 8) as u32);
            let kind = relocation_kind(image.header.machine, relocation_type);
            if kind.is_none_or(|kind| kind.action != Action::Relative) {
                return Err(EditProblem::Malformed(
                    "relocation is not relative as declared",
                ));
            }
        }
        (image.consumed)(chunk);
    }
    Ok(())
}

fn has_text_relocations(image: &ElfImage<'_>) -> bool {
    let flags = image.tag(elf::DT_FLAGS).unwrap_or(0);
    image.tag(elf::DT_TEXTREL).is_some() || flags & elf::DF_TEXTREL.0 != 0
}
