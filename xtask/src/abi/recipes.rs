//! The libraries, and the sources of their headers and exports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpustub_cdecl::{self as headers, Clang, Headers};
use gpustub_core::version::Version;

use super::history::{Evidence, History, history};
use super::reviewed::{self, Reviewed};
use crate::manifests::read;
use crate::recipes::find;

/// A file, and its sources.
pub struct Recipe {
    pub id: &'static str,
    pub comment: &'static str,
    /// Prefixes of names of functions; a capital or an underscore follows.
    pub prefixes: &'static [&'static str],
    /// The header that identifies the include directory.
    pub header: &'static str,
    /// Directories of the components, with `{}` for the version.
    pub directory: &'static str,
    /// Prefixes of the names of the libraries that export the functions.
    pub libraries: &'static [&'static str],
    pub versions: &'static [(u32, u32)],
    /// Libraries in other directories.
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

/// Stand-ins for headers of other packages.
pub const STAND_INS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/headers");

pub const RECIPES: &[Recipe] = &[
    Recipe {
        id: "cuda",
        comment: "cuda.h of NVIDIA's wheels; a driver exports what the headers up to its version declare.",
        prefixes: &["cu"],
        header: "cuda.h",
        directory: "wheels/cudart-{}",
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
        prefixes: &["cuda", "__cuda"],
        header: "cuda_runtime_api.h",
        directory: "wheels/cudart-{}",
        libraries: &["libcudart.so."],
        versions: CUDA_VERSIONS,
        elsewhere: &[],
        reviewed: reviewed::CUDART,
    },
    Recipe {
        id: "hip",
        comment: "hip_runtime_api.h of Debian's packages, and the exports of libamdhip64 beside it.",
        prefixes: &["hip", "__hip"],
        header: "hip/hip_runtime_api.h",
        directory: "hip-headers-{}",
        libraries: &["libamdhip64.so."],
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        elsewhere: &[],
        reviewed: reviewed::HIP,
    },
    Recipe {
        id: "hiprtc",
        comment: "hiprtc.h of Debian's packages.",
        prefixes: &["hiprtc"],
        header: "hip/hiprtc.h",
        directory: "hip-headers-{}",
        libraries: &[],
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        elsewhere: &[],
        reviewed: reviewed::NONE,
    },
    Recipe {
        id: "nvrtc",
        comment: "nvrtc.h of NVIDIA's wheels, and the exports of libnvrtc beside it.",
        prefixes: &["nvrtc"],
        header: "nvrtc.h",
        directory: "wheels/nvrtc-{}",
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
    /// Headers to include, and their macros.
    pub fn headers(&self) -> Result<&'static Headers, String> {
        Headers::for_library(self.id).ok_or_else(|| format!("libraries.toml has no `{}`", self.id))
    }

    /// Reads headers below a directory.
    pub fn declared(
        &self,
        headers: &Headers,
        directory: &Path,
    ) -> Result<headers::Version, String> {
        let clang = Clang::new("clang")
            .directory(STAND_INS)
            .directory(directory);
        let read = headers.read(&clang, &|name| self.is_name(name));
        let mut read = read.map_err(|e| format!("`{}`: {e}", directory.display()))?;
        read.meant.retain(|source, _| self.is_name(source));
        Ok(read)
    }

    /// Whether a name may be that of a function of the library.
    fn is_name(&self, name: &str) -> bool {
        self.prefixes.iter().any(|prefix| {
            let next = name
                .strip_prefix(prefix)
                .and_then(|rest| rest.chars().next());
            next.is_some_and(|c| c.is_ascii_uppercase() || c == '_')
        })
    }

    /// Reads the versions that `wanted` accepts.
    pub fn read(
        &self,
        components: &Path,
        wanted: impl Fn(Version) -> bool,
    ) -> Result<History, String> {
        history(&self.evidence(components, wanted)?, &self.reviewed)
    }

    /// Include directory of a version.
    pub fn include(&self, components: &Path, version: Version) -> Result<PathBuf, String> {
        let file = Path::new(self.header).file_name().unwrap_or_default();
        let header = find(
            &self.directory(components, version),
            &file.to_string_lossy(),
        )?;
        let below = Path::new(self.header).components().count();
        Ok(header
            .ancestors()
            .nth(below)
            .unwrap_or(Path::new(""))
            .to_owned())
    }

    pub fn directory(&self, components: &Path, version: Version) -> PathBuf {
        components.join(self.directory.replace("{}", &version.to_string()))
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
            let directory = self.directory(components, version);
            let include = self.include(components, version)?;
            let mut exports: Option<BTreeSet<String>> = None;
            for library in self.libraries {
                let names = self.exports(&find(&directory, library)?)?;
                exports.get_or_insert_default().extend(names);
            }
            let headers = self.declared(self.headers()?, &include)?;
            for (of, directory, library) in self.elsewhere {
                if *of == (major, minor) {
                    let names = self.exports(&find(&components.join(directory), library)?)?;
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
        Ok(names.filter(|name| self.is_name(name)).collect())
    }
}
