//! Names of a package's stub library and of its version nodes.
//!
//! Two repaired packages of a process must not share a soname: the loader would use the library that
//! was loaded first for both (`dl-load.c`, `_dl_map_object`), with the functions of one. That of Windows does so with the
//! file names of DLLs ("Dynamic-Link Library Search Order").

use gpustub_core::library::{Library, c_name};
use gpustub_image::ImageFormat;
use sha2::{Digest, Sha256};

/// Longest name of a package in file names and version nodes.
const MAX_NAME: usize = 100;

/// Name of a package in file names and version nodes: letters, digits and `_`. No name of a real library is
/// part of it, since programs search for these among the loaded files.
pub fn package_name(parts: &[&str]) -> String {
    let text = parts.join("_");
    let name: String = text
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if name.is_empty() || name.len() > MAX_NAME || names_library(&name) {
        return short_hash(text.as_bytes());
    }
    name
}

/// Eight hexadecimal digits.
pub fn short_hash(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    data_encoding::HEXLOWER.encode(&hash[..4])
}

fn names_library(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    Library::builtin_ids()
        .filter_map(Library::builtin)
        .flat_map(|library| &library.link_names)
        .any(|link_name| name.contains(&format!("lib{}", link_name.to_ascii_lowercase())))
}

/// File name and soname of the stub library.
pub fn stub_file(package: &str, suffix: &str, format: ImageFormat) -> String {
    match format {
        ImageFormat::Elf => format!("libgpustub_{package}{suffix}.so"),
        ImageFormat::Pe => format!("gpustub_{package}{suffix}.dll"),
    }
}

/// Whether a file name is that of a stub library.
pub fn is_stub_file(name: &str) -> bool {
    name.starts_with("libgpustub_") && name.ends_with(".so")
        || name.starts_with("gpustub_") && name.ends_with(".dll")
}

/// Version node for the functions of a library.
pub fn node(package: &str, suffix: &str, library: &str) -> String {
    format!("GPUSTUB_{package}{suffix}_{}", c_name(library))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_c_names_without_those_of_real_libraries() {
        assert_eq!(
            package_name(&["faiss-gpu", "1.14.1.post1+cu12"]),
            "faiss_gpu_1_14_1_post1_cu12"
        );
        for unusable in ["libcuda-tools", "", &"x".repeat(200)] {
            let name = package_name(&[unusable]);
            assert!(name.len() == 8, "{name}");
        }
        for (format, file) in [
            (ImageFormat::Elf, "libgpustub_p_1_cuda12.so"),
            (ImageFormat::Pe, "gpustub_p_1_cuda12.dll"),
        ] {
            assert_eq!(stub_file("p_1", "_cuda12", format), file);
            assert!(is_stub_file(file));
        }
        assert_eq!(node("p_1", "", "cublas-lt"), "GPUSTUB_p_1_cublas_lt");
    }
}
