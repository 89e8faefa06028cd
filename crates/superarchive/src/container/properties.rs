//! The note `.note.gnu.property` of objects: what `ld -r` makes of those of several objects (Linux
//! Extensions to gABI, and the processor supplements of x86-64 and AArch64).
//!
//! Linkers merge the notes of all objects that they load. Without its own, the object with the tables would
//! turn off branch protection in programs that link the whole archive.

use std::collections::{BTreeMap, BTreeSet};

use object::read::elf::{FileHeader, SectionHeader};
use object::{Endianness, ReadRef, elf};

/// Properties of one object, by their types.
type Properties<'d> = BTreeMap<u32, &'d [u8]>;

const STACK_SIZE: u32 = 1;
const NO_COPY_ON_PROTECTED: u32 = 2;

/// Merging of a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Bits that all objects have.
    And,
    /// Bits that some object has.
    Or,
    /// Bits that some object has, if all have the property.
    OrIfAll,
    /// The largest number.
    Largest,
    /// The property, if it is the same in all objects.
    Equal,
}

fn rule(kind: u32, machine: u16) -> Option<Rule> {
    let is_x86 = [elf::EM_X86_64.0, elf::EM_386.0].contains(&machine);
    Some(match kind {
        STACK_SIZE => Rule::Largest,
        NO_COPY_ON_PROTECTED => Rule::Or,
        0xB000_0000..=0xB000_7FFF => Rule::And,
        0xB000_8000..=0xB000_FFFF => Rule::Or,
        0xC000_0002..=0xC000_7FFF if is_x86 => Rule::And,
        0xC000_8000..=0xC000_FFFF if is_x86 => Rule::Or,
        0xC001_0000..=0xC001_7FFF if is_x86 => Rule::OrIfAll,
        // `GNU_PROPERTY_AARCH64_FEATURE_1_AND`, `…_FEATURE_PAUTH`; `GNU_PROPERTY_RISCV_FEATURE_1_AND`.
        0xC000_0000 if [elf::EM_AARCH64.0, elf::EM_RISCV.0].contains(&machine) => Rule::And,
        0xC000_0001 if machine == elf::EM_AARCH64.0 => Rule::Equal,
        _ => return None,
    })
}

/// The contents of the note for these objects; empty without properties.
pub fn merged(objects: &[&[u8]], wide: bool, big: bool, machine: u16) -> Vec<u8> {
    let objects: Vec<Properties<'_>> = objects.iter().map(|object| read(object, wide)).collect();
    let kinds: BTreeSet<u32> = objects.iter().flat_map(BTreeMap::keys).copied().collect();
    let mut properties = Vec::new();
    for kind in kinds {
        if let Some(value) = merge(kind, &objects, big, machine) {
            properties.extend(word(kind, big));
            properties.extend(word(value.len() as u32, big));
            properties.extend(value);
            let align = if wide { 8 } else { 4 };
            properties.resize(properties.len().next_multiple_of(align), 0);
        }
    }
    if properties.is_empty() {
        return properties;
    }
    let name = elf::ELF_NOTE_GNU;
    let mut note = Vec::new();
    for field in [
        name.len() as u32 + 1,
        properties.len() as u32,
        elf::NT_GNU_PROPERTY_TYPE_0.0,
    ] {
        note.extend(word(field, big));
    }
    note.extend(name);
    note.push(0);
    note.extend(properties);
    note
}

fn word(number: u32, big: bool) -> [u8; 4] {
    if big {
        number.to_be_bytes()
    } else {
        number.to_le_bytes()
    }
}

/// The property of this type that objects have together.
fn merge(kind: u32, objects: &[Properties<'_>], big: bool, machine: u16) -> Option<Vec<u8>> {
    let rule = rule(kind, machine)?;
    let values: Vec<&[u8]> = objects
        .iter()
        .filter_map(|properties| properties.get(&kind).copied())
        .collect();
    let (&first, rest) = values.split_first()?;
    let in_all = values.len() == objects.len();
    let same_size = rest.iter().all(|value| value.len() == first.len());
    if !same_size || !in_all && [Rule::And, Rule::OrIfAll, Rule::Equal].contains(&rule) {
        return None;
    }
    match rule {
        Rule::And => {
            let bits = merge_bytes(first, rest, |a, b| a & b);
            bits.iter().any(|&byte| byte != 0).then_some(bits)
        }
        Rule::Or | Rule::OrIfAll => Some(merge_bytes(first, rest, |a, b| a | b)),
        Rule::Largest => {
            let largest = values.iter().max_by_key(|value| {
                let mut digits = value.to_vec();
                if !big {
                    digits.reverse();
                }
                digits
            })?;
            Some(largest.to_vec())
        }
        Rule::Equal => rest
            .iter()
            .all(|value| *value == first)
            .then(|| first.to_vec()),
    }
}

fn merge_bytes(first: &[u8], rest: &[&[u8]], merge: fn(u8, u8) -> u8) -> Vec<u8> {
    let mut merged = first.to_vec();
    for value in rest {
        for (merged, byte) in merged.iter_mut().zip(*value) {
            *merged = merge(*merged, *byte);
        }
    }
    merged
}

/// The properties of an object; none of one that is damaged.
fn read(object: &[u8], wide: bool) -> Properties<'_> {
    let properties = if wide {
        read_class::<elf::FileHeader64<Endianness>>(object)
    } else {
        read_class::<elf::FileHeader32<Endianness>>(object)
    };
    properties.unwrap_or_default()
}

fn read_class<Elf: FileHeader<Endian = Endianness>>(object: &[u8]) -> Option<Properties<'_>> {
    let header: &Elf = object.read_at(0).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, object).ok()?;
    let mut properties = Properties::new();
    for section in sections.iter() {
        let Ok(Some(mut notes)) = section.notes(endian, object) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            for property in note.gnu_properties(endian).into_iter().flatten().flatten() {
                properties.insert(property.pr_type().0, property.pr_data());
            }
        }
    }
    Some(properties)
}
