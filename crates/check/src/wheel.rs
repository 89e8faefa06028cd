//! Name and metadata of a Python wheel.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::gpu_file::split_dll;
use crate::package::{ContainerKind, Package};

/// Metadata of a wheel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WheelMetadata {
    /// The project's name, in the form of PEP 503: `nvidia-cuda-runtime-cu12`.
    pub name: String,
    /// The version, including its local part.
    pub version: String,
    /// The platform tags: `manylinux_2_28_x86_64`, `any`.
    pub platforms: Vec<String>,
    /// The names of the projects that it requires, for some extra or always (PEP 503).
    pub requires: Vec<String>,
    /// Projects of `requires` that are required without an extra, on the system of the wheel's tag: Windows, or else Linux.
    pub always_requires: Vec<String>,
    /// Whether its `METADATA` was read.
    pub has_metadata: bool,
}

impl WheelMetadata {
    /// Metadata of a package that is a wheel: by its kind, by a name that ends in `.whl`, or by a file
    /// `*.dist-info/WHEEL`, which an unpacked wheel has.
    pub fn from_package(package: &Package) -> Option<Self> {
        let file = package.name.trim_end_matches('/').rsplit('/').next()?;
        let stem = file.strip_suffix(".whl");
        let wheel_text = dist_info_text(package, "WHEEL");
        let is_wheel = stem.is_some()
            || match package.kind {
                ContainerKind::Wheel => true,
                ContainerKind::File => false,
                _ => wheel_text.is_some(),
            };
        is_wheel.then(|| {
            Self::read(
                stem,
                wheel_text.unwrap_or_default(),
                dist_info_text(package, "METADATA"),
            )
        })
    }

    /// Parses a file name (without `.whl`) and the two files. The name takes precedence, as in installers.
    fn read(stem: Option<&str>, wheel_text: &str, metadata: Option<&str>) -> Self {
        let mut wheel = Self::default();
        let mut requirements = Vec::new();
        if let Some(metadata) = metadata {
            wheel.has_metadata = true;
            wheel.name = headers(metadata, "Name")
                .next()
                .map(normalized)
                .unwrap_or_default();
            wheel.version = headers(metadata, "Version")
                .next()
                .unwrap_or_default()
                .into();
            for requirement in headers(metadata, "Requires-Dist") {
                let mut projects = parts_of_toolkit(requirement);
                projects.push(required_project(requirement));
                requirements.push((requirement, projects));
            }
        }
        let parts: Vec<&str> = stem.unwrap_or_default().split('-').collect();
        // name-version[-build]-python-abi-platform
        if let [name, version, .., platforms] = parts[..]
            && (5..=6).contains(&parts.len())
        {
            wheel.name = normalized(name);
            wheel.version = version.to_owned();
            wheel.platforms = platforms.split('.').map(str::to_owned).collect();
        } else {
            wheel.platforms = headers(wheel_text, "Tag")
                .filter_map(|tag| tag.rsplit('-').next())
                .flat_map(|platforms| platforms.split('.'))
                .map(str::to_owned)
                .collect();
            wheel.platforms.sort();
            wheel.platforms.dedup();
        }
        let is_unconditional = if wheel.is_for_windows() {
            is_unconditional_on_windows
        } else {
            is_unconditional
        };
        for (requirement, mut projects) in requirements {
            if is_unconditional(requirement) {
                wheel.always_requires.extend_from_slice(&projects);
            }
            wheel.requires.append(&mut projects);
        }
        wheel
    }

    /// Whether all tags are for Windows.
    fn is_for_windows(&self) -> bool {
        let mut platforms = self.platforms.iter();
        !self.platforms.is_empty() && platforms.all(|tag| tag.starts_with("win"))
    }

    /// Whether a wheel of NVIDIA's that this one always requires has a DLL of this file name.
    pub fn requires_dll(&self, name: &str) -> bool {
        NvidiaWheel::providing(name).any(|wheel| {
            let mut projects = self.always_requires.iter();
            projects.any(|project| wheel.is_project(project))
        })
    }
}

/// Whether a path is that of a wheel's metadata file: `x-1.dist-info/WHEEL`.
pub fn is_dist_info(path: &str, name: &str) -> bool {
    path.split_once('/')
        .is_some_and(|(directory, file)| file == name && directory.ends_with(".dist-info"))
}

/// Whether a package has the metadata of a wheel.
pub fn is_wheel(package: &Package) -> bool {
    let mut members = package.members.iter();
    members.any(|member| is_dist_info(&member.path, "WHEEL"))
}

/// Text of a wheel's metadata file.
fn dist_info_text<'a>(package: &'a Package, name: &str) -> Option<&'a str> {
    let member = package
        .members
        .iter()
        .find(|member| is_dist_info(&member.path, name))?;
    package.text(&member.path)
}

/// The values of a header, up to the empty line that ends them.
fn headers<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .take_while(|line| !line.trim().is_empty())
        .filter_map(|line| line.split_once(':'))
        .filter(move |(key, _)| key.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.trim())
}

/// A project's name, normalized as in PEP 503.
pub fn normalized(name: &str) -> String {
    let mut normalized = String::with_capacity(name.len());
    for word in name.split(['-', '_', '.']).filter(|word| !word.is_empty()) {
        if !normalized.is_empty() {
            normalized.push('-');
        }
        normalized.push_str(&word.to_ascii_lowercase());
    }
    normalized
}

/// The name at the start of a requirement: `torch` of `torch>=2 ; extra == "gpu"`.
fn required_project(requirement: &str) -> String {
    let end = requirement
        .find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '-' | '_' | '.'))
        .unwrap_or(requirement.len());
    normalized(&requirement[..end])
}

/// The projects that extras of NVIDIA's `cuda-toolkit` require: `nvidia-cuda-runtime` for `cuda-toolkit[cudart]==13.*`.
fn parts_of_toolkit(requirement: &str) -> Vec<String> {
    let extras = requirement
        .split_once(';')
        .map_or(requirement, |(project, _)| project)
        .split_once('[')
        .filter(|(project, _)| normalized(project.trim()) == "cuda-toolkit")
        .and_then(|(_, extras)| extras.split_once(']'));
    let Some((extras, _)) = extras else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for extra in extras.split(',').map(|extra| normalized(extra.trim())) {
        if extra == "all" {
            parts.extend(PROJECTS.nvidia.keys().cloned());
        }
        parts.push(PROJECTS.cuda_toolkit.get(&extra).cloned().unwrap_or(extra));
    }
    parts.iter().map(|part| format!("nvidia-{part}")).collect()
}

/// Whether a requirement has no marker for an extra or another system: `; platform_system == "Darwin"`.
fn is_unconditional(requirement: &str) -> bool {
    !marker_words(requirement)
        .any(|word| matches!(word, "extra" | "Darwin" | "darwin" | "Windows" | "win32"))
}

/// Whether a requirement holds for each installation on Windows. One with `!=` may be for all systems but Windows.
fn is_unconditional_on_windows(requirement: &str) -> bool {
    !requirement
        .split_once(';')
        .is_some_and(|(_, marker)| marker.contains("!="))
        && !marker_words(requirement)
            .any(|word| matches!(word, "extra" | "Darwin" | "darwin" | "Linux" | "linux"))
}

fn marker_words(requirement: &str) -> impl Iterator<Item = &str> {
    let marker = requirement.split_once(';').map_or("", |(_, marker)| marker);
    marker.split(|c: char| !c.is_ascii_alphanumeric())
}

/// Stems of the libraries in the wheels of projects (`data/wheels.toml`).
#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct Projects {
    libraries: BTreeMap<String, Vec<String>>,
    nvidia: BTreeMap<String, Vec<String>>,
    nvidia_windows: BTreeMap<String, Vec<String>>,
    /// Projects of `nvidia` by the extra that requires them, where the two differ.
    cuda_toolkit: BTreeMap<String, String>,
}

// A test keeps the file readable.
static PROJECTS: LazyLock<Projects> =
    LazyLock::new(|| toml::from_str(include_str!("../data/wheels.toml")).unwrap_or_default());

/// The project whose wheel is known to provide a library of this file name.
pub fn project_providing(library: &str) -> Option<&'static str> {
    projects_with(&PROJECTS.libraries, library).next()
}

/// A wheel of NVIDIA's: the part of its name after `nvidia-`, without the major of CUDA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvidiaWheel(&'static str);

impl NvidiaWheel {
    /// The wheels that contain a library of this file name.
    pub fn providing(library: &str) -> impl Iterator<Item = Self> {
        let of_windows = split_dll(library).map(|(stem, _)| stem);
        let windows = PROJECTS.nvidia_windows.iter().filter(move |(_, stems)| {
            let stem = of_windows.unwrap_or_default();
            stems.iter().any(|listed| listed.eq_ignore_ascii_case(stem))
        });
        projects_with(&PROJECTS.nvidia, library)
            .chain(windows.map(|(project, _)| project.as_str()))
            .map(Self)
    }

    /// Whether a project, for any major, is this one: `nvidia-cublas`, `nvidia-cublas-cu12`.
    pub fn is_project(self, name: &str) -> bool {
        name.strip_prefix("nvidia-")
            .and_then(|name| name.strip_prefix(self.0))
            .is_some_and(|suffix| suffix.is_empty() || suffix.starts_with("-cu"))
    }

    /// Whether the wheel's libraries are in this directory of site-packages: `nvidia/cuda_runtime/lib`, and
    /// `nvidia/cu13/lib` since CUDA 13.
    pub fn is_directory(self, directory: &str) -> bool {
        directory
            .strip_prefix("nvidia/")
            .and_then(|subdirectory| subdirectory.split('/').next())
            .is_some_and(|name| is_cuda_major(name) || normalized(name) == self.0)
    }
}

/// Whether a directory is named after a major of CUDA: `cu13`.
fn is_cuda_major(directory: &str) -> bool {
    directory
        .strip_prefix("cu")
        .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
}

fn projects_with<'a>(
    projects: &'a BTreeMap<String, Vec<String>>,
    library: &str,
) -> impl Iterator<Item = &'a str> {
    let library_stem = library.split_once(".so").map(|(stem, _)| stem);
    projects
        .iter()
        .filter(move |(_, stems)| stems.iter().any(|stem| Some(stem.as_str()) == library_stem))
        .map(|(project, _)| project.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &str = "Metadata-Version: 2.1\nName: My_Kernels\nVersion: 1.0+cu126\n\
        Requires-Dist: nvidia_cublas-cu12>=12 ; extra == 'gpu'\nRequires-Dist: torch (>=2)\n\n\
        Name: not-this\n";

    #[test]
    fn file_name_takes_precedence_over_metadata() {
        let wheel = WheelMetadata::read(
            Some("Other-2.0-1-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64"),
            "Tag: cp312-cp312-linux_x86_64\n",
            Some(METADATA),
        );
        assert_eq!(
            (wheel.name.as_str(), wheel.version.as_str()),
            ("other", "2.0")
        );
        assert_eq!(
            wheel.platforms,
            ["manylinux_2_17_x86_64", "manylinux2014_x86_64"]
        );
        assert_eq!(wheel.requires, ["nvidia-cublas-cu12", "torch"]);
        assert_eq!(wheel.always_requires, ["torch"]);
    }

    #[test]
    fn unpacked_wheel_is_described_by_its_metadata() {
        let wheel_text =
            "Wheel-Version: 1.0\nTag: cp312-cp312-linux_x86_64\nTag: cp312-abi3-linux_x86_64\n";
        for stem in [None, Some("renamed")] {
            let wheel = WheelMetadata::read(stem, wheel_text, Some(METADATA));
            assert_eq!(
                (wheel.name.as_str(), wheel.version.as_str()),
                ("my-kernels", "1.0+cu126")
            );
            assert_eq!(wheel.platforms, ["linux_x86_64"]);
        }
    }

    #[test]
    fn libraries_belong_to_projects() {
        assert_eq!(project_providing("libtorch_cpu.so"), Some("torch"));
        assert_eq!(project_providing("libz3.so.4.15"), Some("z3-solver"));
        assert_eq!(project_providing("libtorch_cpux.so"), None);
    }

    #[test]
    fn extras_of_the_toolkit_require_its_parts() {
        for (requirement, expected) in [
            (
                "cuda-toolkit[cublas, cudart]==13.*; sys_platform == 'linux'",
                &["nvidia-cublas", "nvidia-cuda-runtime"][..],
            ),
            ("cuda_toolkit[nvrtc] (>=12)", &["nvidia-cuda-nvrtc"]),
            ("cuda-toolkit==13.*; extra == 'a[b]'", &[]),
            ("torch[cudart]", &[]),
            ("cuda-toolkit[", &[]),
        ] {
            assert_eq!(parts_of_toolkit(requirement), expected, "{requirement}");
        }
        let all = parts_of_toolkit("cuda-toolkit[all]");
        assert!(all.contains(&"nvidia-cufft".to_owned()), "{all:?}");
        assert!(
            PROJECTS
                .cuda_toolkit
                .values()
                .all(|part| PROJECTS.nvidia.contains_key(part))
        );
    }

    #[test]
    fn wheels_of_windows_provide_dlls() {
        let metadata = "Name: x\nRequires-Dist: nvidia-cublas-cu12; platform_system == 'Windows'\n\
            Requires-Dist: nvidia-cuda-runtime-cu12; sys_platform == 'linux'\n\
            Requires-Dist: nvidia-cufft-cu12; sys_platform != 'win32'\n\
            Requires-Dist: nvidia-curand-cu12\n";
        let wheel = |stem| WheelMetadata::read(Some(stem), "", Some(metadata));
        let windows = wheel("x-1-py3-none-win_amd64");
        for (dll, expected) in [
            ("cublas64_12.dll", true),
            ("CUBLASLT64_12.DLL", true),
            ("cudart64_12.dll", false),
            ("cufft64_11.dll", false),
            ("curand64_10.dll", true),
            ("curand.dll", false),
            ("libcurand.so.10", true),
            ("nvcuda.dll", false),
        ] {
            assert_eq!(windows.requires_dll(dll), expected, "{dll}");
        }
        let linux = wheel("x-1-py3-none-manylinux_2_28_x86_64");
        assert!(!linux.requires_dll("cublas64_12.dll"));
    }

    #[test]
    fn nvidia_wheels_have_a_project_for_each_major_and_a_directory() {
        let wheel = NvidiaWheel("cuda-runtime");
        assert_eq!(
            NvidiaWheel::providing("libcudart.so.12").collect::<Vec<_>>(),
            [wheel]
        );
        for (name, expected) in [
            ("nvidia-cuda-runtime-cu12", true),
            ("nvidia-cuda-runtime", true),
            ("nvidia-cuda-runtimes", false),
            ("cuda-runtime-cu12", false),
        ] {
            assert_eq!(wheel.is_project(name), expected, "{name}");
        }
        for (directory, expected) in [
            ("nvidia/cuda_runtime/lib", true),
            ("nvidia/cu13/lib", true),
            ("nvidia/cublas/lib", false),
            ("nvidia/cufft/lib", false),
            ("nvidia", false),
            ("cuda_runtime/lib", false),
        ] {
            assert_eq!(wheel.is_directory(directory), expected, "{directory}");
        }
        assert_eq!(NvidiaWheel::providing("libtorch.so").next(), None);
        assert_eq!(NvidiaWheel::providing("libcufftw.so.12").count(), 2);
    }

    #[test]
    fn metadata_files_are_in_the_top_directory() {
        assert!(is_dist_info("x-1.dist-info/WHEEL", "WHEEL"));
        assert!(!is_dist_info("a/x-1.dist-info/WHEEL", "WHEEL"));
        assert!(!is_dist_info("x-1.dist-info/sub/WHEEL", "WHEEL"));
        assert!(!is_dist_info("x/WHEEL", "WHEEL"));
    }
}
