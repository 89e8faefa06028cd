//! Execution of global constructors and destructors.
//!
//! Before LLVM 22, `_begin` and `_end` of its libc run them; since then kernels of the image do, which the offload
//! runtime launches when it loads and unloads an image (`libc/startup/gpu/start.cpp`, llvm-project #162739).
//! Images of both kinds contain those kernels. They differ in the parameters of `_end`.

use std::collections::BTreeSet;
use std::ffi::CString;

use clap::ValueEnum;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSymbol};

use crate::error::{Code, Error, Result};
use crate::kernel::Kernel;
use crate::runtime::{Gpu, Handle};

/// Code that runs global constructors and destructors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Constructors {
    /// _begin and _end (LLVM 21 and before)
    Begin,
    /// Kernels of the image (LLVM 22 and later)
    Kernels,
}

/// Prepares global constructors and destructors. Without `requested`, the image determines the code that runs
/// them.
///
/// # Errors
///
/// If neither `requested` nor the image determines it.
pub fn prepare(
    gpu: &Gpu,
    module: Handle,
    image: &[u8],
    requested: Option<Constructors>,
    kernels: &mut Vec<Kernel>,
) -> Result<()> {
    fill_arrays(gpu, module, image)?;
    let [init, fini] = gpu.constructor_kernels();
    let init = Kernel::single_threaded(gpu, module, init)?;
    let fini = Kernel::single_threaded(gpu, module, fini)?;
    if init.is_none() && fini.is_none() {
        return Ok(());
    }
    let constructors = match requested {
        Some(constructors) => constructors,
        None => detect(gpu, image, kernels)?,
    };
    if constructors == Constructors::Kernels {
        kernels.splice(0..0, init);
        kernels.extend(fini);
    }
    Ok(())
}

fn detect(gpu: &Gpu, image: &[u8], kernels: &[Kernel]) -> Result<Constructors> {
    let Some(end) = kernels.iter().find(|kernel| kernel.name() == "_end") else {
        return Ok(Constructors::Kernels);
    };
    let has_parameters = match gpu.has_parameters(end.function)? {
        Some(has_parameters) => Some(has_parameters),
        None => end_has_parameters(image),
    };
    match has_parameters {
        Some(true) => Ok(Constructors::Begin),
        Some(false) => Ok(Constructors::Kernels),
        None => {
            let message = "unknown code for global constructors: neither the driver nor the image determines it";
            let help =
                "--init begin for programs of LLVM 21 and before, --init kernels for later ones";
            Err(Error::new(Code::NotRunnable, message).help(help))
        }
    }
}

/// Whether `_end` has parameters, by its descriptor in a code object for AMD's GPUs: 64 bytes, of which four
/// at offset 8 are the size of all arguments (LLVM's AMDGPUUsage, "Code Object V3 Kernel Descriptor"). Arguments
/// that the compiler adds have 56 bytes (V4) or 256 (V5 and later).
fn end_has_parameters(image: &[u8]) -> Option<bool> {
    let file = ElfFile64::<object::Endianness>::parse(image).ok()?;
    let symbol = file
        .dynamic_symbols()
        .find(|symbol| symbol.name() == Ok("_end.kd"))?;
    let section = file.section_by_index(symbol.section_index()?).ok()?;
    let descriptor = section.data_range(symbol.address(), 64).ok()??;
    let size = u32::from_le_bytes(*descriptor.get(8..)?.first_chunk()?);
    Some(![0, 56, 256].contains(&size))
}

/// Prefixes of the variables that images for NVIDIA's GPUs have for each constructor and destructor, with the
/// bounds of their arrays. The name of the function, one of the file, and the priority follow (LLVM's
/// `NVPTXCtorDtorLowering.cpp`).
const ARRAYS: [(&str, [&str; 2]); 2] = [
    (
        "__init_array_object_",
        ["__init_array_start", "__init_array_end"],
    ),
    (
        "__fini_array_object_",
        ["__fini_array_start", "__fini_array_end"],
    ),
];

/// Writes the arrays of constructors and destructors, which no linker creates for NVIDIA's GPUs.
fn fill_arrays(gpu: &Gpu, module: Handle, image: &[u8]) -> Result<()> {
    for (prefix, bounds) in ARRAYS {
        let mut array = Vec::new();
        for name in names_with_prefix(image, prefix) {
            // A match may be a part of another name.
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
        for (name, offset) in bounds.into_iter().zip([0, array.len() as u64]) {
            let name = CString::new(name).unwrap_or_default();
            if let Some(bound) = gpu.global(module, &name)? {
                gpu.write(bound.address, &(memory + offset).to_ne_bytes())?;
            }
        }
    }
    Ok(())
}

/// Names in an image with this prefix, in ascending order of their priority numbers. The bytes of the image are
/// searched, which contain symbol names or PTX, because a driver lists no names.
fn names_with_prefix(image: &[u8], prefix: &str) -> Vec<CString> {
    let mut names = BTreeSet::new();
    let mut rest = image;
    while let Some(start) = rest
        .windows(prefix.len())
        .position(|bytes| bytes == prefix.as_bytes())
    {
        rest = &rest[start..];
        let end = rest.iter().position(|byte| !is_name_byte(*byte));
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        if let (Some(priority), Ok(name)) = (priority(name), CString::new(name)) {
            names.insert((priority, name));
        }
    }
    names.into_iter().map(|(_, name)| name).collect()
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$'
}

/// Priority at the end of the name of a constructor's or destructor's variable.
fn priority(name: &[u8]) -> Option<u16> {
    let digits = name.rsplit(|byte| *byte == b'_').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
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
        let names = names_with_prefix(image, "__init_array_object_");
        assert_eq!(
            names.iter().map(|name| name.as_c_str()).collect::<Vec<_>>(),
            expected
        );
    }

    /// Descriptors that clang writes, in each version of code objects.
    #[test]
    #[ignore = "needs clang 19: ./tests/run"]
    fn descriptors_of_clang_contain_kernel_arguments() -> std::io::Result<()> {
        const KERNEL: &str = "__attribute__((amdgpu_kernel, visibility(\"protected\"))) void _end";
        // The last one needs the arguments that the compiler adds.
        let size = "{ *(volatile int *)16 = __builtin_amdgcn_workgroup_size_x(); }";
        for (rest, has_parameters) in [
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
                assert_eq!(
                    end_has_parameters(&std::fs::read(&image)?),
                    Some(has_parameters),
                    "version {version}: {rest}"
                );
            }
        }
        Ok(())
    }

    #[test]
    fn other_files_have_no_kernel_descriptors() {
        for image in [
            &b""[..],
            b"\x7fELF",
            b"\x7fELF\x02\x01\x01",
            b".version 7.0",
        ] {
            assert_eq!(end_has_parameters(image), None);
        }
    }
}
