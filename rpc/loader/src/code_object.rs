//! Kernel descriptors of code objects for AMD's GPUs (LLVM's AMDGPUUsage, "Code Object V3 Kernel Descriptor").

use std::collections::BTreeMap;

use object::read::elf::ElfFile64;
use object::{Endianness, Object, ObjectSection, ObjectSymbol};

use crate::error::{Code, Error, Result};
use crate::image::{EM_AMDGPU, elf_machine};

/// Size of a descriptor.
const SIZE: usize = 64;
/// Position of the size of all arguments, a word.
const KERNARG_SIZE: usize = 8;
/// Position of `kernel_code_properties`, a half word.
const KERNEL_CODE_PROPERTIES: usize = 56;
/// Its bit for wavefronts of 32 lanes instead of 64.
const ENABLE_WAVEFRONT_SIZE32: u16 = 1 << 10;

/// Descriptor of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor<'a>(&'a [u8; SIZE]);

impl Descriptor<'_> {
    /// Size of all arguments in bytes, with those that the compiler adds.
    pub fn kernarg_size(self) -> u32 {
        u32::from_le_bytes(std::array::from_fn(|index| self.0[KERNARG_SIZE + index]))
    }

    /// Number of lanes of a wavefront.
    fn lanes(self) -> u32 {
        let properties = u16::from_le_bytes(std::array::from_fn(|index| {
            self.0[KERNEL_CODE_PROPERTIES + index]
        }));
        if properties & ENABLE_WAVEFRONT_SIZE32 == 0 {
            64
        } else {
            32
        }
    }
}

/// Descriptors by the names of their kernels; none of code object V2, and of bundles.
pub fn descriptors(image: &[u8]) -> BTreeMap<String, Descriptor<'_>> {
    let mut descriptors = BTreeMap::new();
    let Ok(file) = ElfFile64::<Endianness>::parse(image) else {
        return descriptors;
    };
    for symbol in file.dynamic_symbols() {
        let Some(name) = symbol.name().ok().and_then(|name| name.strip_suffix(".kd")) else {
            continue;
        };
        let data = symbol
            .section_index()
            .and_then(|index| file.section_by_index(index).ok())
            .and_then(|section| section.data_range(symbol.address(), SIZE as u64).ok()?);
        if let Some(bytes) = data.and_then(|data| data.first_chunk()) {
            descriptors.insert(name.to_owned(), Descriptor(bytes));
        }
    }
    descriptors
}

/// Number of lanes of the wavefronts in which the kernels of an image run; nothing if only the device determines it.
///
/// # Errors
///
/// If kernels differ: a client of each size expects the packets of calls at other places.
pub fn lanes(image: &[u8]) -> Result<Option<u32>> {
    if elf_machine(image) != Some(EM_AMDGPU) {
        return Ok(None);
    }
    let mut kernels = BTreeMap::new();
    for (name, descriptor) in descriptors(image) {
        kernels.entry(descriptor.lanes()).or_insert(name);
    }
    match (kernels.get(&32), kernels.get(&64)) {
        (Some(narrow), Some(wide)) => {
            let message = format!(
                "`{narrow}` runs in wavefronts of 32 lanes, and `{wide}` of 64, which cannot share the memory of calls"
            );
            let help = "compile all sources with -mwavefrontsize64, or none";
            Err(Error::new(Code::NotRunnable, message).help(help))
        }
        (Some(_), None) => Ok(Some(32)),
        (None, Some(_)) => Ok(Some(64)),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_without_descriptors_are_unknown() {
        for image in [
            &b""[..],
            b"\x7fELF\x02\x01\x01",
            b"CCOB\x02\0",
            b".version 7.0\n",
        ] {
            assert_eq!(lanes(image).expect("no mixture"), None);
        }
        // This program.
        let program = std::fs::read(std::env::current_exe().expect("a path")).expect("a file");
        assert_eq!(lanes(&program).expect("no mixture"), None);
    }
}
