//! Functions declared in NVIDIA's `cuda.h`.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use gpustub_cdecl::output;

/// Names of all functions, sorted. The header maps names to newer ones by macros (`cuCtxCreate` to
/// `cuCtxCreate_v4`), so it is preprocessed: once for each set of macros that changes its
/// declarations.
pub fn functions(header: &Path) -> Result<Vec<String>, String> {
    let mut names = BTreeSet::new();
    // The first declares the old entry points beside the new ones; the second selects the variants for
    // a default stream per thread.
    let internal = "-D__CUDA_API_VERSION_INTERNAL";
    let per_thread = "-DCUDA_API_PER_THREAD_DEFAULT_STREAM";
    for macros in [&[][..], &[internal], &[per_thread], &[internal, per_thread]] {
        names.extend(declared(&preprocess(header, macros)?));
    }
    Ok(names.into_iter().collect())
}

fn preprocess(header: &Path, macros: &[&str]) -> Result<String, String> {
    let mut compiler = Command::new("cc");
    compiler
        .args(["-E", "-P", "-x", "c", "-I"])
        .arg(header.parent().unwrap_or(Path::new("")))
        .args(macros)
        .arg("-");
    output(&mut compiler, "#include <cuda.h>\n").map_err(|e| format!("`{}`: {e}", header.display()))
}

/// Every `CUresult cuName(` in preprocessed text.
fn declared(text: &str) -> impl Iterator<Item = String> {
    text.split("CUresult ").skip(1).filter_map(|after| {
        let name = after
            .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()?;
        let is_function = after[name.len()..].trim_start().starts_with('(');
        let third = name.strip_prefix("cu")?.chars().next()?;
        (is_function && third.is_ascii_uppercase()).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_uses_are_not_declarations() {
        let text = "typedef enum cudaError_enum { A } CUresult;\n\
            CUresult cuInit(unsigned int Flags);\n\
            CUresult cuDeviceGet (CUdevice *device, int n);\n\
            typedef CUresult (*CUcallback)(int);\n\
            CUresult curious(void);\n\
            CUresult cuFlag; extern CUresult\n";
        assert_eq!(
            declared(text).collect::<Vec<_>>(),
            ["cuInit", "cuDeviceGet"]
        );
    }
}
