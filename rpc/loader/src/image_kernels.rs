//! Kernels of an image, as far as its format is known: a missing one is reported without a driver.

use std::collections::BTreeSet;

use object::read::elf::{ElfFile64, Sym};
use object::{Endianness, Object, ObjectSymbol};

use crate::image::{EM_AMDGPU, EM_CUDA, is_ptx};

/// Bit of `st_other` of the kernels in a cubin (NVIDIA's `STO_CUDA_ENTRY`).
const STO_CUDA_ENTRY: u8 = 0x10;
/// Position of the ABI version in `e_ident`.
const EI_ABIVERSION: usize = 8;

/// Names of the kernels in an image; nothing if only the driver knows, as of fatbins and bundles, whose parts may be
/// compressed.
pub fn names(image: &[u8]) -> Option<BTreeSet<String>> {
    if is_ptx(image) {
        return Some(ptx_entries(&String::from_utf8_lossy(image)));
    }
    let file = ElfFile64::<Endianness>::parse(image).ok()?;
    let machine = file.elf_header().e_machine.get(file.endian()).0;
    let mut symbols = file.symbols().chain(file.dynamic_symbols()).peekable();
    // Without symbols the names are unknown.
    symbols.peek()?;
    let mut names = BTreeSet::new();
    for symbol in symbols {
        let Ok(name) = symbol.name() else { continue };
        let kernel = match machine {
            EM_CUDA => (symbol.elf_symbol().st_other().0 & STO_CUDA_ENTRY != 0).then_some(name),
            // The descriptor of a kernel (LLVM's AMDGPUUsage, "Code Object V3 Kernel Descriptor").
            _ => name.strip_suffix(".kd"),
        };
        names.extend(kernel.map(str::to_owned));
    }
    match machine {
        EM_CUDA => Some(names),
        // Kernels of code object V2, whose ABI version is 0, have no descriptors.
        EM_AMDGPU => (image[EI_ABIVERSION] > 0).then_some(names),
        _ => None,
    }
}

/// Names behind `.entry` (PTX ISA, "Kernel and Function Directives").
fn ptx_entries(ptx: &str) -> BTreeSet<String> {
    let code = without_comments(ptx);
    let mut words = code
        .split(|c: char| c.is_whitespace() || "(){};,".contains(c))
        .filter(|word| !word.is_empty());
    let mut names = BTreeSet::new();
    while words.by_ref().any(|word| word == ".entry") {
        names.extend(words.next().map(str::to_owned));
    }
    names
}

fn without_comments(mut ptx: &str) -> String {
    let mut code = String::with_capacity(ptx.len());
    while let Some((before, comment)) = ptx.split_once('/') {
        code += before;
        let (end, inner) = match comment.as_bytes().first() {
            Some(b'/') => ("\n", comment),
            Some(b'*') => ("*/", &comment[1..]),
            _ => {
                ptx = comment;
                continue;
            }
        };
        code.push(' ');
        ptx = inner.split_once(end).map_or("", |(_, rest)| rest);
    }
    code + ptx
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> Option<BTreeSet<String>> {
        Some(names.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn entries_of_ptx_are_found() {
        let ptx = "// .entry comment(\n.version 7.0\n.target sm_70 // .entry other()\n\
                   /* .entry more */ .func _start(.param .b32 x)\n{ div.full.f32 a, b, c; }\n\
                   .visible .entry\n  first(\n.param .u64 p\n)\n{}\n.entry second{ret;}\n.weak .entry third ()";
        assert_eq!(names(ptx.as_bytes()), set(&["first", "second", "third"]));
        assert_eq!(names(b".version 7.0\n.func _start()"), set(&[]));
        assert_eq!(names(b".version 7.0\n.entry /* without an end"), set(&[]));
    }

    #[test]
    fn other_images_are_unknown() {
        for image in [
            &b""[..],
            b"\x7fELF\x02\x01\x01",
            b"CCOB\x02\0",
            b"__CLANG_OFFLOAD_BUNDLE__",
        ] {
            assert_eq!(names(image), None);
        }
        // This program.
        let program = std::fs::read(std::env::current_exe().expect("a path")).expect("a file");
        assert_eq!(names(&program), None);
    }
}
