//! The note `.note.gnu.property` of objects: what `ld -r` makes of those of several objects (Linux
//! Extensions to gABI, and the processor supplements of x86-64 and AArch64).
//!
//! Linkers merge the notes of all objects that they load. Without its own, the object with the tables would
//! turn off branch protection in programs that link the whole archive.

use std::collections::BTreeMap;

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
    let all: Vec<Properties<'_>> = objects.iter().map(|object| read(object, wide)).collect();
    let Some(first) = all.first() else {
        return Vec::new();
    };
    let mut kinds: Vec<u32> = all.iter().flat_map(BTreeMap::keys).copied().collect();
    kinds.sort_unstable();
    kinds.dedup();
    let number = |number: u32| {
        if big {
            number.to_be_bytes()
        } else {
            number.to_le_bytes()
        }
    };
    let mut properties = Vec::new();
    for kind in kinds {
        let Some(rule) = rule(kind, machine) else {
            continue;
        };
        let values: Vec<&[u8]> = all
            .iter()
            .filter_map(|one| one.get(&kind).copied())
            .collect();
        let in_all = values.len() == all.len();
        let same_size = values.iter().all(|value| value.len() == values[0].len());
        if !same_size || !in_all && [Rule::And, Rule::OrIfAll, Rule::Equal].contains(&rule) {
            continue;
        }
        let by_bytes = |merge: fn(u8, u8) -> u8| {
            let merge =
                |a: Vec<u8>, b: &&[u8]| a.iter().zip(*b).map(|(a, b)| merge(*a, *b)).collect();
            values[1..].iter().fold(values[0].to_vec(), merge)
        };
        let value = match rule {
            Rule::And => by_bytes(|a, b| a & b),
            Rule::Or | Rule::OrIfAll => by_bytes(|a, b| a | b),
            Rule::Largest => {
                let order = |value: &&&[u8]| {
                    let mut bytes = value.to_vec();
                    if !big {
                        bytes.reverse();
                    }
                    bytes
                };
                values
                    .iter()
                    .max_by_key(order)
                    .map_or_else(Vec::new, |value| value.to_vec())
            }
            Rule::Equal if all.iter().all(|one| one.get(&kind) == first.get(&kind)) => {
                values[0].to_vec()
            }
            Rule::Equal => continue,
        };
        if rule == Rule::And && value.iter().all(|&byte| byte == 0) {
            continue;
        }
        properties.extend(number(kind));
        properties.extend(number(value.len() as u32));
        properties.extend(value);
        properties.resize(
            properties.len().next_multiple_of(if wide { 8 } else { 4 }),
            0,
        );
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
        note.extend(number(field));
    }
    note.extend(name);
    note.push(0);
    note.extend(properties);
    note
}

/// The properties of an object; none of one that is damaged.
fn read(object: &[u8], wide: bool) -> Properties<'_> {
    let found = if wide {
        read_class::<elf::FileHeader64<Endianness>>(object)
    } else {
        read_class::<elf::FileHeader32<Endianness>>(object)
    };
    found.unwrap_or_default()
}

fn read_class<Elf: FileHeader<Endian = Endianness>>(object: &[u8]) -> Option<Properties<'_>> {
    let header: &Elf = object.read_at(0).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, object).ok()?;
    let mut found = Properties::new();
    for section in sections.iter() {
        let Ok(Some(mut notes)) = section.notes(endian, object) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            for property in note.gnu_properties(endian).into_iter().flatten().flatten() {
                found.insert(property.pr_type().0, property.pr_data());
            }
        }
    }
    Some(found)
}
