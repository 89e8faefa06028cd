//! DLLs and programs of Windows with nothing but import tables. A C compiler, which all cases need, makes none; published
//! wheels are checked by `tests/tests/wheels.rs`, DLLs of a linker by `crates/image/tests/pe.rs`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Contents of a PE image.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Recipe {
    /// Imported DLLs, and functions of each.
    #[serde(default)]
    needs: BTreeMap<String, Vec<String>>,
    /// DLLs that are loaded at the first call.
    #[serde(default)]
    delayed: BTreeMap<String, Vec<String>>,
    /// IMAGE_FILE_MACHINE_…; default: AMD64.
    machine: Option<u16>,
    /// Whether the image is a program.
    #[serde(default)]
    program: bool,
}

/// Address of the only section.
const BASE: u32 = 0x1000;
/// Offset of the section in the file.
const HEADERS: usize = 0x200;

impl Recipe {
    /// Bytes of the image (Microsoft, "PE Format").
    pub fn write(&self) -> Vec<u8> {
        let mut section = Vec::new();
        let imports = tables(&mut section, &self.needs, |names, dll| {
            [names, 0, 0, dll, names].to_vec()
        });
        // The lowest bit of the attributes: fields are relative to the image's base.
        let delayed = tables(&mut section, &self.delayed, |names, dll| {
            [1, dll, 0, names, names, 0, 0, 0].to_vec()
        });
        let size = section.len() as u32;
        let mut bytes = vec![0; HEADERS];
        let mut put = |offset: usize, value: &[u8]| {
            bytes[offset..offset + value.len()].copy_from_slice(value)
        };
        put(0, b"MZ");
        put(60, &64_u32.to_le_bytes());
        put(64, b"PE\0\0");
        put(68, &self.machine.unwrap_or(0x8664).to_le_bytes());
        put(70, &1_u16.to_le_bytes()); // NumberOfSections
        put(84, &240_u16.to_le_bytes()); // SizeOfOptionalHeader
        put(
            86,
            &(if self.program { 2_u16 } else { 0x2002 }).to_le_bytes(),
        ); // IMAGE_FILE_DLL
        put(88, &0x20b_u16.to_le_bytes()); // PE32+
        put(196, &16_u32.to_le_bytes()); // NumberOfRvaAndSizes
        put(200 + 8, &imports.to_le_bytes());
        put(200 + 8 * 13, &delayed.to_le_bytes());
        for (index, value) in [size, BASE, size, HEADERS as u32].into_iter().enumerate() {
            put(328 + 8 + 4 * index, &value.to_le_bytes());
        }
        bytes.extend(section);
        bytes
    }
}

/// Appends names, lookup tables and descriptors to the section; returns the address of the descriptors.
fn tables(
    section: &mut Vec<u8>,
    dlls: &BTreeMap<String, Vec<String>>,
    descriptor: fn(names: u32, dll: u32) -> Vec<u32>,
) -> u32 {
    let mut descriptors = Vec::new();
    for (dll, functions) in dlls {
        let mut lookup: Vec<u64> = functions
            .iter()
            .map(|name| append(section, format!("\0\0{name}\0").as_bytes()).into())
            .collect();
        lookup.push(0);
        let lookup: Vec<u8> = lookup.into_iter().flat_map(u64::to_le_bytes).collect();
        let names = append(section, &lookup);
        let dll = append(section, format!("{dll}\0").as_bytes());
        descriptors.extend(descriptor(names, dll));
    }
    descriptors.extend([0; 8]);
    let descriptors: Vec<u8> = descriptors.into_iter().flat_map(u32::to_le_bytes).collect();
    append(section, &descriptors)
}

/// Appends bytes to the section; returns their address.
fn append(section: &mut Vec<u8>, bytes: &[u8]) -> u32 {
    let address = BASE + section.len() as u32;
    section.extend_from_slice(bytes);
    address
}
