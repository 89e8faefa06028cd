//! The libraries, and where their headers and exports are read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpustub_core::version::Version;

use super::headers::Headers;
use super::history::{Evidence, History, history};
use super::reviewed::{self, Reviewed};
use crate::manifests::read;
use crate::recipes::find;

/// A file, and what it is made from.
pub struct Recipe {
    pub id: &'static str,
    pub comment: &'static str,
    pub headers: Headers,
    /// The header by which the folder of all is found.
    pub header: &'static str,
    /// Folders of the components, `{}` for the version.
    pub folder: &'static str,
    /// Starts of the names of the libraries that export the functions.
    pub libraries: &'static [&'static str],
    pub versions: &'static [(u32, u32)],
    /// Libraries that lie elsewhere.
    pub elsewhere: &'static [((u32, u32), &'static str, &'static str)],
    pub reviewed: Reviewed,
}

const CUDA_VERSIONS: &[(u32, u32)] = &[
    (11, 7),
    (11, 8),
    (12, 0),
    (12, 1),
    (12, 2),
    (12, 3),
    (12, 4),
    (12, 5),
    (12, 6),
    (12, 8),
    (12, 9),
    (13, 0),
    (13, 1),
    (13, 2),
    (13, 3),
    (13, 4),
    (13, 5),
];

/// CUDA declares its old entry points with the first, and the variants for a stream of each thread
/// with the second.
const CUDA_MODES: &[&[&str]] = &[
    &[],
    &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"],
    &["-D__CUDA_API_VERSION_INTERNAL"],
    &[
        "-D__CUDA_API_VERSION_INTERNAL",
        "-DCUDA_API_PER_THREAD_DEFAULT_STREAM",
    ],
];

const HIP_MODES: &[&[&str]] = &[&[], &["-DHIP_API_PER_THREAD_DEFAULT_STREAM"]];

pub const RECIPES: &[Recipe] = &[
    Recipe {
        id: "cuda",
        comment: "cuda.h of NVIDIA's wheels; a driver exports what the headers up to its version declare.",
        headers: Headers {
            include: &[
                "vdpau/vdpau.h",
                "cuda.h",
                "cudaGL.h",
                "cudaEGL.h",
                "cudaVDPAU.h",
            ],
            defines: &[],
            modes: CUDA_MODES,
            prefixes: &["cu"],
        },
        header: "cuda.h",
        folder: "wheels/cudart-{}",
        libraries: &[],
        versions: CUDA_VERSIONS,
        elsewhere: &[
            ((12, 2), "driver-535", "libcuda.so.1"),
            ((12, 4), "driver-550", "libcuda.so.1"),
        ],
        reviewed: reviewed::CUDA,
    },
    Recipe {
        id: "cudart",
        comment: "cuda_runtime_api.h of NVIDIA's wheels, and the exports of libcudart beside it.",
        headers: Headers {
            include: &[
                "cuda_runtime_api.h",
                "cuda_gl_interop.h",
                "cuda_egl_interop.h",
                "cuda_vdpau_interop.h",
            ],
            defines: &[],
            modes: CUDA_MODES,
            prefixes: &["cuda", "__cuda"],
        },
        header: "cuda_runtime_api.h",
        folder: "wheels/cudart-{}",
        libraries: &["libcudart.so."],
        versions: CUDA_VERSIONS,
        elsewhere: &[],
        reviewed: reviewed::CUDART,
    },
    Recipe {
        id: "hip",
        comment: "hip_runtime_api.h of Debian's packages, and the exports of libamdhip64 beside it.",
        headers: Headers {
            include: &["hip/hip_runtime_api.h"],
            defines: &["-D__HIP_PLATFORM_AMD__"],
            modes: HIP_MODES,
            prefixes: &["hip", "__hip"],
        },
        header: "hip/hip_runtime_api.h",
        folder: "hip-headers-{}",
        libraries: &["libamdhip64.so."],
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        elsewhere: &[],
        reviewed: reviewed::HIP,
    },
    Recipe {
        id: "hiprtc",
        comment: "hiprtc.h of Debian's packages.",
        headers: Headers {
            include: &["hip/hiprtc.h"],
            defines: &["-D__HIP_PLATFORM_AMD__"],
            modes: &[&[]],
            prefixes: &["hiprtc"],
        },
        header: "hip/hiprtc.h",
        folder: "hip-headers-{}",
        libraries: &[],
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        elsewhere: &[],
        reviewed: reviewed::NONE,
    },
    Recipe {
        id: "nvrtc",
        comment: "nvrtc.h of NVIDIA's wheels, and the exports of libnvrtc beside it.",
        headers: Headers {
            include: &["stdlib.h", "nvrtc.h"],
            defines: &[],
            modes: &[&[]],
            prefixes: &["nvrtc"],
        },
        header: "nvrtc.h",
        folder: "wheels/nvrtc-{}",
        libraries: &["libnvrtc.so."],
        versions: &[
            (11, 7),
            (11, 8),
            (12, 0),
            (12, 4),
            (12, 8),
            (12, 9),
            (13, 0),
            (13, 3),
            (13, 5),
        ],
        elsewhere: &[],
        reviewed: reviewed::NONE,
    },
];

impl Recipe {
    /// Reads the versions that `wanted` says.
    pub fn read(
        &self,
        components: &Path,
        wanted: impl Fn(Version) -> bool,
    ) -> Result<History, String> {
        history(&self.evidence(components, wanted)?, &self.reviewed)
    }

    /// The folder of the headers of a version, from which the names of headers start.
    pub fn include(&self, components: &Path, version: Version) -> Result<PathBuf, String> {
        let file = Path::new(self.header).file_name().unwrap_or_default();
        let header = find(&self.folder(components, version), &file.to_string_lossy())?;
        let below = Path::new(self.header).components().count();
        Ok(header
            .ancestors()
            .nth(below)
            .unwrap_or(Path::new(""))
            .to_owned())
    }

    pub fn folder(&self, components: &Path, version: Version) -> PathBuf {
        components.join(self.folder.replace("{}", &version.to_string()))
    }

    pub fn evidence(
        &self,
        components: &Path,
        wanted: impl Fn(Version) -> bool,
    ) -> Result<Vec<Evidence>, String> {
        let mut evidence = Vec::new();
        for &(major, minor) in self.versions {
            let version = Version::new(major, minor);
            if !wanted(version) {
                continue;
            }
            let folder = self.folder(components, version);
            let include = self.include(components, version)?;
            let mut exports: Option<BTreeSet<String>> = None;
            for library in self.libraries {
                let names = self.exports(&find(&folder, library)?)?;
                exports.get_or_insert_default().extend(names);
            }
            let headers = self.headers.read(&include)?;
            for (of, folder, library) in self.elsewhere {
                if *of == (major, minor) {
                    let names = self.exports(&find(&components.join(folder), library)?)?;
                    exports
                        .get_or_insert_with(|| headers.functions.keys().cloned().collect())
                        .extend(names);
                }
            }
            evidence.push(Evidence {
                version,
                headers,
                exports,
            });
        }
        Ok(evidence)
    }

    pub fn exports(&self, library: &Path) -> Result<BTreeSet<String>, String> {
        let list = read(library)?;
        let names = list.functions().map(|symbol| symbol.name.clone());
        Ok(names.filter(|name| self.headers.is_name(name)).collect())
    }
}
