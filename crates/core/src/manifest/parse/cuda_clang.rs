//! `compiler = "clang"` of a `[device-link.<name>]` table.

use crate::decode::{Decoder, Table};
use crate::diag::INVALID_VALUE;
use crate::gpu_arch::Vendor;
use crate::manifest::{CudaCompiler, DeviceCode, DeviceLink};

pub(super) const COMPILERS: [(&str, CudaCompiler); 2] =
    [("nvcc", CudaCompiler::Nvcc), ("clang", CudaCompiler::Clang)];

pub(super) fn compiler(decoder: &mut Decoder<'_>, table: &Table<'_>) -> CudaCompiler {
    let value = table.get("compiler");
    let compiler = value.and_then(|value| decoder.one_of(&value, &COMPILERS));
    compiler.unwrap_or_default()
}

/// Rejects what clang cannot compile, and the key where nothing is compiled.
pub(super) fn check(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    link: &DeviceLink,
    is_module: bool,
) {
    let Some(value) = table.get("compiler") else {
        return;
    };
    let problem = if !matches!(link.code, DeviceCode::Sources(_)) {
        Some("remove it: the library has no `sources`")
    } else if link.compiler == CudaCompiler::Nvcc {
        None
    } else if is_module {
        Some("modules are compiled by nvcc: remove it, or move the code to a library")
    } else if link.cudadevrt {
        Some("clang compiles no kernels that launch kernels: write compiler = \"nvcc\"")
    } else if !Vendor::Nvidia.is_in(link.archs.iter().map(|arch| arch.value)) {
        Some("remove it: code for AMD is compiled by clang")
    } else {
        None
    };
    if let Some(help) = problem {
        let message = format!("`{}` in this table", value.name);
        return decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
    }
    for (arch, help) in link.uncompilable() {
        let message = format!(
            "`{}.archs` has \"{}\" with compiler = \"clang\"",
            table.name, arch.value
        );
        decoder.error_with_help(&INVALID_VALUE, arch.span.clone(), message, help);
    }
}
