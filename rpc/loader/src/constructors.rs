//! Global constructors and destructors, and who runs them.
//!
//! Before LLVM 22 `_begin` and `_end` of its libc do; since then the image's own kernels, which the offload
//! runtime launches when it loads and unloads an image (`libc/startup/gpu/start.cpp`, llvm-project #162739).
//! Images of either have those kernels. The two differ in what `_end` takes.

use std::collections::BTreeSet;
use std::ffi::CString;

use clap::ValueEnum;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol};

use crate::error::{Code, Error, Result};
use crate::kernel::Kernel;
use crate::runtime::{Gpu, Handle};

/// Who runs global constructors and destructors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Constructors {
    /// _begin and _end (LLVM 21 and before)
    Begin,
    /// Kernels of their own (LLVM 22 and later)
    Kernels,
}

/// Has them run. `told` is who does it; otherwise the image says it.
///
/// # Errors
///
/// If nobody says it.
pub fn add(
    gpu: &Gpu,
    module: Handle,
    image: &[u8],
    told: Option<Constructors>,
    kernels: &mut Vec<Kernel>,
) -> Result<()> {
    fill_arrays(gpu, module, image)?;
    let [init, fini] = gpu.constructor_kernels();
    let init = Kernel::of_one_thread(gpu, module, init)?;
    let fini = Kernel::of_one_thread(gpu, module, fini)?;
    if init.is_none() && fini.is_none() {
        return Ok(());
    }
    let who = match told {
        Some(who) => who,
        None => who(gpu, image, kernels)?,
    };
    if who == Constructors::Kernels {
        kernels.splice(0..0, init);
        kernels.extend(fini);
    }
    Ok(())
}

fn who(gpu: &Gpu, image: &[u8], kernels: &[Kernel]) -> Result<Constructors> {
    let Some(end) = kernels.iter().find(|kernel| kernel.name() == "_end") else {
        return Ok(Constructors::Kernels);
    };
    let takes = match gpu.has_parameters(end.function)? {
        Some(takes) => Some(takes),
        None => takes_by_descriptor(image),
    };
    match takes {
        Some(true) => Ok(Constructors::Begin),
        Some(false) => Ok(Constructors::Kernels),
        None => {
            let message = "neither the driver nor the image tells who runs the global constructors";
            let help = "--constructors begin for programs of LLVM 21 and before, --constructors kernels for later ones";
            Err(Error::new(Code::NotRunnable, message).help(help))
        }
    }
}

/// Whether `_end` takes arguments, by its descriptor in a code object for AMD's GPUs: 64 bytes, of which four
/// from 8 on are the size of all arguments (LLVM's AMDGPUUsage, "Code Object V3 Kernel Descriptor"). Those
/// that the compiler adds have 56 bytes (V4) or 256 (V5 and later).
fn takes_by_descriptor(image: &[u8]) -> Option<bool> {
    let file = ElfFile64::<object::Endianness>::parse(image).ok()?;
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok("_end.kd"))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let descriptor = section.data_range(symbol.address(), 64).ok()??;
    let size = u32::from_le_bytes(*descriptor.get(8..)?.first_chunk()?);
    Some(![0, 56, 256].contains(&size))
}

/// How images for NVIDIA's GPUs name what there is one of for each constructor and destructor: the function's
/// name, one of the file's, and the priority follow (LLVM's `NVPTXCtorDtorLowering.cpp`).
const OBJECTS: [(&str, [&str; 2]); 2] = [
    (
        "__init_array_object_",
        ["__init_array_start", "__init_array_end"],
    ),
    (
        "__fini_array_object_",
        ["__fini_array_start", "__fini_array_end"],
    ),
];

/// Writes the arrays of constructors and destructors, which no linker makes for NVIDIA's GPUs.
fn fill_arrays(gpu: &Gpu, module: Handle, image: &[u8]) -> Result<()> {
    for (prefix, bounds) in OBJECTS {
        let mut array = Vec::new();
        for name in names(image, prefix) {
            // What looks like a name may be a part of another one.
            if let Some(object) = gpu.global(module, &name)? {
                let mut function = [0; 8];
                gpu.read(object.address, &mut function)?;
                array.extend(function);
            }
        }
        if array.is_empty() {
            continue;
        }
        let memory = gpu.device_memory(array.len())?;
        gpu.write(memory, &array)?;
        for (name, at) in bounds.into_iter().zip([0, array.len() as u64]) {
            let name = CString::new(name).unwrap_or_default();
            if let Some(bound) = gpu.global(module, &name)? {
                gpu.write(bound.address, &(memory + at).to_ne_bytes())?;
            }
        }
    }
    Ok(())
}

/// The names in an image that begin so, those of lower priority numbers first: its symbol names, or its text
/// as PTX. A driver lists none.
fn names(image: &[u8], prefix: &str) -> Vec<CString> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_$".contains(byte);
    let mut found = BTreeSet::new();
    let mut rest = image;
    while let Some(at) = rest
        .windows(prefix.len())
        .position(|part| part == prefix.as_bytes())
    {
        let end = rest[at..].iter().position(|byte| !is_of_name(byte));
        let (name, after) = rest[at..].split_at(end.unwrap_or(rest.len() - at));
        rest = after;
        let priority = name.rsplit(|byte| *byte == b'_').next();
        let priority =
            priority.and_then(|digits| std::str::from_utf8(digits).ok()?.parse::<u16>().ok());
        if let (Some(priority), Ok(name)) = (priority, CString::new(name)) {
            found.insert((priority, name));
        }
    }
    found.into_iter().map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_priorities() {
        let image = b"\0__init_array_object_b_c_cpp_0f_65535\0x__init_array_object__GLOBAL__sub_I_c_$_cpp_bd2c_101 = f;\n\
            __init_array_object_b_c_cpp_0f_65535[8]__init_array_object_none\0__init_array_object_\0\
            __fini_array_object_a_0f_1\0__init_array_object_z_0f_99999\0__init_array_object_last_0f_9";
        let expected = [
            c"__init_array_object_last_0f_9",
            c"__init_array_object__GLOBAL__sub_I_c_$_cpp_bd2c_101",
            c"__init_array_object_b_c_cpp_0f_65535",
        ];
        let names = names(image, "__init_array_object_");
        assert_eq!(
            names.iter().map(|name| name.as_c_str()).collect::<Vec<_>>(),
            expected
        );
    }

    /// What clang says of kernels, in each version of code objects.
    #[test]
    #[ignore = "needs clang 19: ./tests/run"]
    fn descriptors_of_clang_tell_what_kernels_take() -> std::io::Result<()> {
        const KERNEL: &str = "__attribute__((amdgpu_kernel, visibility(\"protected\"))) void _end";
        // The last one needs the arguments that the compiler adds.
        let size = "{ *(volatile int *)16 = __builtin_amdgcn_workgroup_size_x(); }";
        for (rest, takes) in [
            (
                "(int result) { *(volatile int *)16 = result; }".to_owned(),
                true,
            ),
            ("(void) {}".to_owned(), false),
            (format!("(void) {size}"), false),
            (format!("(int result) {{ if (result) {size} }}"), true),
        ] {
            for version in ["4", "5"] {
                let dir = tempfile::tempdir()?;
                let (source, image) = (dir.path().join("end.c"), dir.path().join("end"));
                std::fs::write(&source, format!("{KERNEL}{rest}\n"))?;
                let mut clang = std::process::Command::new("clang-19");
                clang.args([
                    "--target=amdgcn-amd-amdhsa",
                    "-mcpu=gfx90a",
                    "-nogpulib",
                    "-O1",
                ]);
                clang
                    .arg(format!("-mcode-object-version={version}"))
                    .arg(&source)
                    .arg("-o");
                let status = clang.arg(&image).status()?;
                assert!(status.success(), "clang-19: {status}");
                let told = takes_by_descriptor(&std::fs::read(&image)?);
                assert_eq!(told, Some(takes), "version {version}: {rest}");
            }
        }
        Ok(())
    }

    #[test]
    fn what_is_no_code_object_tells_nothing() {
        for image in [
            &b""[..],
            b"\x7fELF",
            b"\x7fELF\x02\x01\x01",
            b".version 7.0",
        ] {
            assert_eq!(takes_by_descriptor(image), None);
        }
    }
}
