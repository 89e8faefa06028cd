//! GPU libraries by file name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use gpustub_core::library::{Library, Role};
use serde::Deserialize;

/// A GPU library, recognized by its file name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFile {
    /// `cudart` of `libcudart.so.12` and of `cudart64_12.dll`.
    pub stem: String,
    /// Origin of the library: driver, toolkit or loader.
    pub role: Role,
    /// The number after `.so.`, or the first one after the `_` in the name of a DLL.
    pub major: Option<u32>,
    /// The whole number: `12`, `12.0.107`, `2025.2.1`.
    pub version: String,
    /// Whether the name contains the hash of a bundling tool: `libcudart-1a2b3c4d.so.12`, and `cudart64_12-…dll` with 32
    /// digits.
    pub hashed: bool,
    /// Key of the manifest's load names: `linux` or `windows`.
    pub system: &'static str,
    /// The library's manifest, if gpustub makes stubs for it.
    pub library: Option<&'static Library>,
    /// Whether programs use its C++ classes, of which there are no stubs.
    pub is_cxx: bool,
}

/// Stems in `data/libraries.toml`, by their property.
#[derive(Deserialize, Default)]
struct ListedStems {
    driver: Vec<String>,
    portable: Vec<String>,
    loader: Vec<String>,
    toolkit: Vec<String>,
    cxx: Vec<String>,
    modules: Vec<String>,
    alone: Vec<String>,
    system: Vec<String>,
    dlls: BTreeMap<String, String>,
}

/// Origin and manifest of each library, by its stem.
type LibrariesByStem = BTreeMap<String, (Role, Option<&'static Library>)>;

// A test keeps the file readable.
static LISTED: LazyLock<ListedStems> =
    LazyLock::new(|| toml::from_str(include_str!("../data/libraries.toml")).unwrap_or_default());

static LIBRARIES: LazyLock<LibrariesByStem> = LazyLock::new(|| {
    let mut libraries = LibrariesByStem::new();
    for library in Library::builtin_ids().filter_map(Library::builtin) {
        for load_name in library.load_names.get("linux").into_iter().flatten() {
            if let Some((stem, _)) = split(&load_name.name) {
                // The first of two libraries in one file owns the name: hiprtc 5 is in libamdhip64.
                libraries
                    .entry(stem.to_owned())
                    .or_insert((library.role, Some(library)));
            }
        }
    }
    for (role, stems) in [
        (Role::Driver, &LISTED.driver),
        (Role::Driver, &LISTED.portable),
        (Role::Loader, &LISTED.loader),
        (Role::Toolkit, &LISTED.toolkit),
    ] {
        for stem in stems {
            libraries.entry(stem.clone()).or_insert((role, None));
        }
    }
    libraries
});

/// Stems of `LIBRARIES` by the [key](dll_key) of a DLL's name.
static DLLS: LazyLock<BTreeMap<String, &'static str>> = LazyLock::new(|| {
    let mut stems = BTreeMap::new();
    for library in Library::builtin_ids().filter_map(Library::builtin) {
        let names = |system| library.load_names.get(system).into_iter().flatten();
        let Some((stem, _)) = names("linux").find_map(|load_name| split(&load_name.name)) else {
            continue;
        };
        for load_name in names("windows") {
            if let Some((name, _)) = split_dll(&load_name.name) {
                stems.insert(dll_key(name), stem);
            }
        }
    }
    for (key, stem) in &LISTED.dlls {
        stems.insert(key.clone(), stem);
    }
    for (stem, (_, library)) in LIBRARIES.iter() {
        let has_windows_name = library.is_some_and(|library| {
            let names = library.load_names.get("windows");
            names.is_some_and(|names| !names.is_empty())
        });
        if !has_windows_name {
            stems.entry(dll_key(stem)).or_insert(stem);
        }
    }
    stems
});

impl GpuFile {
    /// Majors of the toolkit whose libraries have this file name; empty: any, or a name that the manifest lacks.
    pub fn toolkit_majors(&self) -> BTreeSet<u32> {
        // CUPTI's DLLs of one year are of two majors: their whole versions tell.
        let majors = self.majors_of_names(|file| file.version == self.version);
        if majors.is_empty() {
            return self.majors_of_names(|file| file.major == self.major);
        }
        majors
    }

    /// Majors of the library's names that satisfy the predicate.
    fn majors_of_names(&self, is_equal: impl Fn(&GpuFile) -> bool) -> BTreeSet<u32> {
        self.library
            .and_then(|library| library.load_names.get(self.system))
            .into_iter()
            .flatten()
            .filter(|name| gpu_file(&name.name).is_some_and(|file| is_equal(&file)))
            .filter_map(|name| name.major)
            .collect()
    }

    /// Whether the library works with other kernel drivers than the one that it was released with:
    /// ROCm's libraries that call the kernel are a part of ROCm, and its wheels contain them.
    pub fn is_portable(&self) -> bool {
        LISTED.portable.contains(&self.stem)
    }
}

/// The GPU library that a file of this name (without directories) is, or is a copy of.
pub fn gpu_file(name: &str) -> Option<GpuFile> {
    if let Some(file_stem) = dll_stem(name) {
        return gpu_dll(file_stem);
    }
    let (stem, version) = split(name)?;
    let (stem, hashed) = if LIBRARIES.contains_key(stem) {
        (stem, false)
    } else {
        (unhashed(stem)?, true)
    };
    let (role, library) = LIBRARIES.get(stem)?;
    Some(GpuFile {
        stem: stem.to_owned(),
        role: *role,
        major: version
            .split('.')
            .next()
            .and_then(|number| number.parse().ok()),
        hashed,
        version: version.to_owned(),
        system: "linux",
        library: *library,
        is_cxx: LISTED.cxx.iter().any(|cxx| cxx == stem),
    })
}

/// The GPU library that a DLL of this name, without `.dll`, is.
fn gpu_dll(file_stem: &str) -> Option<GpuFile> {
    let find = |file_stem| {
        let (name, version) = split_version(file_stem);
        Some((*DLLS.get(&dll_key(name))?, version))
    };
    let (stem, version, hashed) = match find(file_stem) {
        Some((stem, version)) => (stem, version, false),
        None => {
            let (stem, version) = find(unhashed(file_stem)?)?;
            (stem, version, true)
        }
    };
    let (role, library) = LIBRARIES.get(stem)?;
    Some(GpuFile {
        stem: stem.to_owned(),
        role: *role,
        major: version
            .split(['_', '.'])
            .next()
            .and_then(|number| number.parse().ok()),
        hashed,
        version: version.to_owned(),
        system: "windows",
        library: *library,
        is_cxx: LISTED.cxx.iter().any(|cxx| cxx == stem),
    })
}

/// The GPU library that a user means by a file name, or by its stem in any case: `miopen`.
pub fn named_library(name: &str) -> Option<GpuFile> {
    gpu_file(name).or_else(|| {
        let mut stems = LIBRARIES.keys();
        let stem = stems.find(|stem| stem.eq_ignore_ascii_case(name))?;
        gpu_file(&format!("lib{stem}.so"))
    })
}

/// The parts of `lib<stem>.so[.<version>]`.
pub(crate) fn split(name: &str) -> Option<(&str, &str)> {
    let (stem, version) = name.strip_prefix("lib")?.split_once(".so")?;
    match version.strip_prefix('.') {
        Some(version) => Some((stem, version)),
        None => version.is_empty().then_some((stem, "")),
    }
}

/// The name of a DLL without `.dll`, whose case Windows ignores.
pub(crate) fn dll_stem(name: &str) -> Option<&str> {
    let (stem, extension) = name.rsplit_once('.')?;
    extension.eq_ignore_ascii_case("dll").then_some(stem)
}

/// The parts of `<name>_<version>.dll`: `nvrtc64` and `120_0`.
pub(crate) fn split_dll(name: &str) -> Option<(&str, &str)> {
    Some(split_version(dll_stem(name)?))
}

pub(crate) fn split_version(file_stem: &str) -> (&str, &str) {
    let is_version = |text: &str| {
        let mut bytes = text.bytes();
        text.starts_with(|c: char| c.is_ascii_digit())
            && bytes.all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'_'))
    };
    file_stem
        .match_indices(['_', '-'])
        .map(|(end, _)| (&file_stem[..end], &file_stem[end + 1..]))
        .find(|(_, version)| is_version(version))
        .unwrap_or((file_stem, ""))
}

/// The key by which DLLs are compared: the name before its version in lower case, without the `64` or a version that
/// follows it at once, as in `hiprtc0700.dll`.
pub(crate) fn dll_key(name: &str) -> String {
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit());
    name.to_ascii_lowercase()
}

/// Whether a string contains the name of a GPU library: `/usr/lib/libcuda.so.1`, `no libcuda.so found`.
pub fn names_gpu_file(text: &str) -> bool {
    text.match_indices(".so").any(|(end, _)| {
        text[..end]
            .rfind("lib")
            .is_some_and(|start| LIBRARIES.contains_key(&text[start + 3..end]))
    })
}

/// Whether a vendor of GPUs ships a file of this name (without directories), including variants such
/// as `libnvrtc.alt.so.12`.
pub fn is_vendor_file(name: &str) -> bool {
    // `nvrtc64_120_0.alt.dll`.
    let dll = dll_stem(name).and_then(|stem| gpu_dll(stem.strip_suffix(".alt")?));
    gpu_file(name).is_some()
        || dll.is_some()
        || LISTED.modules.iter().any(|start| name.starts_with(start))
        || name
            .strip_prefix("lib")
            .and_then(|name| name.split('.').next())
            .is_some_and(|stem| LIBRARIES.contains_key(stem))
}

/// Whether the library of this stem needs no other GPU library.
pub fn is_standalone(stem: &str) -> bool {
    LISTED.alone.iter().any(|listed| listed == stem)
}

/// Whether a file of this name is a system library without GPU functions.
pub fn is_system(name: &str) -> bool {
    let stem = name.split(".so").next().unwrap_or_default();
    LISTED.system.iter().any(|listed| listed == stem)
}

/// The stem of the GPU library that a search by partial name finds in this name: `cudart` for
/// `libcudart.so.12` and for `libcudart_stub.so`.
pub fn impersonated_library(name: &str) -> Option<&str> {
    let stem = name.strip_prefix("lib")?;
    stem.match_indices(|c: char| !c.is_ascii_alphanumeric())
        .map(|(end, _)| &stem[..end])
        .rfind(|stem| LIBRARIES.contains_key(*stem))
}

/// The stem without the hash that tools append: `-` (auditwheel) or `.` (torchvision's), and
/// eight hexadecimal digits.
pub(crate) fn unhashed(stem: &str) -> Option<&str> {
    let (stem, hash) = stem.rsplit_once(['-', '.'])?;
    (hash.len() >= 8 && hash.bytes().all(|b| b.is_ascii_hexdigit())).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_libraries_have_no_manifest() {
        let text = include_str!("../data/libraries.toml");
        let listed: ListedStems = toml::from_str(text).unwrap();
        let mut stems = BTreeSet::new();
        for stem in &listed.alone {
            assert!(LIBRARIES.contains_key(stem), "{stem} is not known");
        }
        for stem in [
            listed.driver,
            listed.portable,
            listed.loader,
            listed.toolkit,
        ]
        .concat()
        {
            assert!(LIBRARIES[&stem].1.is_none(), "{stem} has a manifest");
            assert!(stems.insert(stem.clone()), "{stem} is listed twice");
        }
    }

    #[test]
    fn gpu_file_parses_file_names() {
        for (name, stem, role, major, hashed) in [
            ("libcudart.so.12", "cudart", Role::Toolkit, Some(12), false),
            (
                "libcudart.so.11.0",
                "cudart",
                Role::Toolkit,
                Some(11),
                false,
            ),
            (
                "libcudart-5ad2a8f1.so.12.4.99",
                "cudart",
                Role::Toolkit,
                Some(12),
                true,
            ),
            (
                "libcudart.41118559.so.12",
                "cudart",
                Role::Toolkit,
                Some(12),
                true,
            ),
            ("libcuda.so", "cuda", Role::Driver, None, false),
            ("libcuda-1234abcd.so.1", "cuda", Role::Driver, Some(1), true),
            (
                "libnvidia-ml.so.1",
                "nvidia-ml",
                Role::Driver,
                Some(1),
                false,
            ),
            ("libOpenCL.so.1", "OpenCL", Role::Loader, Some(1), false),
            (
                "libamdhip64.so.6",
                "amdhip64",
                Role::Toolkit,
                Some(6),
                false,
            ),
            (
                "libcudnn_ops.so.9",
                "cudnn_ops",
                Role::Toolkit,
                Some(9),
                false,
            ),
        ] {
            let gpu = gpu_file(name).unwrap();
            assert_eq!(
                (gpu.stem.as_str(), gpu.role, gpu.major, gpu.hashed),
                (stem, role, major, hashed),
                "{name}"
            );
        }
        for name in [
            "libcudart.sox",
            "libcudart-hot.so",
            "libc.so.6",
            "cudart.so",
        ] {
            assert_eq!(gpu_file(name), None, "{name}");
        }
        assert!(gpu_file("libsycl.so.8").unwrap().is_cxx);
        for stem in &LISTED.cxx {
            assert!(LISTED.toolkit.contains(stem), "{stem}");
        }
    }

    #[test]
    fn gpu_file_parses_names_of_dlls() {
        for (name, stem, major, hashed, majors) in [
            ("cudart64_12.dll", "cudart", Some(12), false, &[12][..]),
            ("CUDART64_110.DLL", "cudart", Some(110), false, &[11]),
            (
                "cudart64_12-0123456789abcdef0123456789abcdef.dll",
                "cudart",
                Some(12),
                true,
                &[12],
            ),
            ("nvrtc64_112_0.dll", "nvrtc", Some(112), false, &[11]),
            ("nvJitLink_120_0.dll", "nvJitLink", Some(120), false, &[12]),
            ("cupti64_2025.1.0.dll", "cupti", Some(2025), false, &[12]),
            ("cupti64_2025.3.1.dll", "cupti", Some(2025), false, &[13]),
            (
                "cupti64_2025.9.0.dll",
                "cupti",
                Some(2025),
                false,
                &[12, 13],
            ),
            ("cufft64_11.dll", "cufft", Some(11), false, &[12]),
            ("cusparse64_12.dll", "cusparse", Some(12), false, &[]),
            ("nvcuda.dll", "cuda", None, false, &[]),
            ("nvml.dll", "nvidia-ml", None, false, &[]),
            ("OpenCL.dll", "OpenCL", None, false, &[]),
            ("amdhip64_7.dll", "amdhip64", Some(7), false, &[7]),
            ("amdhip64.dll", "amdhip64", None, false, &[]),
            ("hiprtc0700.dll", "hiprtc", None, false, &[]),
            ("cudnn_ops64_9.dll", "cudnn_ops", Some(9), false, &[]),
            ("nppc64_13.dll", "nppc", Some(13), false, &[]),
            ("nvEncodeAPI64.dll", "nvidia-encode", None, false, &[]),
            ("vulkan-1.dll", "vulkan", Some(1), false, &[]),
        ] {
            let gpu = gpu_file(name).unwrap_or_else(|| panic!("{name}"));
            assert_eq!(
                (gpu.stem.as_str(), gpu.major, gpu.hashed, gpu.system),
                (stem, major, hashed, "windows"),
                "{name}"
            );
            assert_eq!(Vec::from_iter(gpu.toolkit_majors()), majors, "{name}");
        }
        for name in [
            "cuda.dll",
            "libcudart.so.dll",
            "KERNEL32.dll",
            "64.dll",
            ".dll",
        ] {
            assert_eq!(gpu_file(name), None, "{name}");
        }
        assert!(is_vendor_file("nvrtc64_120_0.alt.dll"));
        assert!(!is_vendor_file("cudart64_12.alt2.dll"));
        for stem in LISTED.dlls.values() {
            assert!(LIBRARIES.contains_key(stem), "{stem} is not known");
        }
    }

    #[test]
    fn libraries_have_names_of_users() {
        for (name, library) in [
            ("libcudart.so.12", Some(Some("cudart"))),
            ("libcudart.so", Some(Some("cudart"))),
            ("amdhip64", Some(Some("hip"))),
            ("OPENCL", Some(Some("opencl"))),
            ("MIOpen", Some(Some("miopen"))),
            ("librccl.so.1", Some(Some("rccl"))),
            ("rocalution", Some(None)),
            ("libacme.so.3", None),
            ("", None),
        ] {
            let file = named_library(name);
            let id = file.map(|file| file.library.map(|library| library.id.as_str()));
            assert_eq!(id, library, "{name}");
        }
    }

    #[test]
    fn texts_and_variants() {
        assert!(names_gpu_file("cannot load /usr/lib/libcuda.so.1: %s"));
        assert!(names_gpu_file("libm.so.6libnvidia-ml.so"));
        assert!(!names_gpu_file("libcudart_stub.so, libm.so, .so"));
        assert!(is_vendor_file("libnvrtc.alt.so.12"));
        assert!(is_vendor_file("libcudart-5ad2a8f1.so.12.4.99"));
        assert!(!is_vendor_file("libcudart_stub.so"));
        assert!(is_system("libc.so.6") && is_system("ld-linux-x86-64.so.2"));
        assert!(!is_system("libtorch.so"));
        assert_eq!(impersonated_library("libcudart_stub.so"), Some("cudart"));
        assert_eq!(impersonated_library("libcudnn_ops.so.9"), Some("cudnn_ops"));
        assert_eq!(
            impersonated_library("libnvidia-ml-stub.so"),
            Some("nvidia-ml")
        );
        assert_eq!(impersonated_library("libstub_cudart.so"), None);
        assert_eq!(impersonated_library("libcudartx.so"), None);
    }
}
