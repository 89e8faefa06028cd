//! Decisions of reviewers where headers do not suffice, with the reasons.

use std::collections::BTreeMap;

use gpustub_cdecl::{DeclaredFunction, Reserved, differences};
use gpustub_core::version::Version;
use serde::Deserialize;

use super::table::AbiVariant;

/// Differences that change no call, reviewed.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accepted {
    functions: String,
    differences: Vec<String>,
    why: String,
}

impl std::fmt::Display for Accepted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`: {}", self.functions, self.why.trim())
    }
}

impl Accepted {
    pub fn covers(&self, name: &str, difference: &str) -> bool {
        matches(&self.functions, name)
            && self
                .differences
                .iter()
                .any(|pattern| matches(pattern, difference))
    }
}

/// Whether a text is that of a pattern, in which `*` is any text.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len())
                .any(|index| text.is_char_boundary(index) && matches(rest, &text[index..]))
        }),
    }
}

/// Decisions for one library.
pub struct Reviewed {
    /// Other names for a stem: the first belongs to the group of the second.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Names that one library exports side by side with the same types, and that have the same ABI.
    pub interchangeable: &'static [(&'static str, &'static str)],
    /// Mark of names that one library exports beside those without it, and that have the same ABI if their types are
    /// the same.
    pub mark: Option<&'static str>,
    /// Functions whose results depend on the major of the library, though their types do not.
    pub library_bound: &'static [&'static str],
    /// Functions, by their stems, whose later form has one more pointer, as this argument counted from 0,
    /// and behaves as the earlier form if that is null.
    pub nullable: &'static [(&'static str, u8)],
    /// Functions, by their stems, that may write to a struct by its type, but in which reserved bytes are zero:
    /// programs fill the struct.
    pub zeroed: &'static [&'static str],
    /// A version whose headers were read, and the version that introduced their contents.
    pub since: &'static [(Version, Version)],
    /// Functions that some libraries of a version have with another ABI than its headers declare.
    pub avoided: &'static [(&'static str, Version)],
    /// Differences that are none, from `data/abi.toml`.
    pub accepted: &'static [Accepted],
}

/// Marks of twins: those that work on the stream of the calling thread, and those with 64-bit sizes.
pub const TWINS: [&str; 4] = ["_64", "_ptds", "_ptsz", "_spt"];

impl Reviewed {
    /// The stem of a name, and the mark of a twin.
    pub fn group(&self, name: &str) -> (String, String) {
        let (name, twin) = split_twin(name);
        let mut stem = stem(name);
        if let Some((_, group)) = self.aliases.iter().find(|(alias, _)| *alias == stem) {
            stem = group;
        }
        (stem.to_owned(), twin.to_owned())
    }

    pub fn is_library_bound(&self, name: &str) -> bool {
        let (plain, _) = split_twin(name);
        self.library_bound.contains(&plain)
    }

    /// Reason why a name has another variant than in an earlier version, if it is library-bound.
    pub fn follows(&self, name: &str, before: Version, version: Version) -> Option<String> {
        (before.major != version.major && self.is_library_bound(name))
            .then(|| format!("gives out functions of {}", version.major))
    }

    /// Compares two declarations of a name.
    pub fn same(
        &self,
        name: &str,
        older: &DeclaredFunction,
        newer: &DeclaredFunction,
    ) -> Result<(), String> {
        let reserved = if self.zeroed.contains(&self.group(name).0.as_str()) {
            Reserved::Zero
        } else {
            Reserved::Written
        };
        for difference in differences(older, newer, reserved) {
            if difference.guard.is_some() {
                continue;
            }
            let difference = difference.to_string();
            let is_accepted = self
                .accepted
                .iter()
                .any(|accepted| accepted.covers(name, &difference));
            if !is_accepted {
                return Err(difference);
            }
        }
        Ok(())
    }

    pub fn interchangeable(&self, a: &str, b: &str) -> bool {
        self.interchangeable.contains(&(a, b))
            || self.interchangeable.contains(&(b, a))
            || self.unmarked(a).is_some_and(|plain| plain == b)
            || self.unmarked(b).is_some_and(|plain| plain == a)
    }

    /// A name with the mark, without it.
    pub fn unmarked(&self, name: &str) -> Option<String> {
        let (name, twin) = split_twin(name);
        let stem = name.strip_suffix(self.mark?)?;
        Some(format!("{stem}{twin}"))
    }

    /// The additional argument of a later form of these functions.
    pub fn nullable(&self, stem: &str) -> Option<u8> {
        self.nullable
            .iter()
            .find(|(nullable, _)| *nullable == stem)
            .map(|(_, argument)| *argument)
    }

    /// Version that introduced the declarations of a version's headers.
    pub fn introduced_in(&self, version: Version) -> Version {
        self.since
            .iter()
            .find(|(read, _)| *read == version)
            .map_or(version, |(_, since)| *since)
    }

    /// Whether a name changes its variant, or one replaces another.
    pub fn is_listed(&self, lines: &Lines) -> bool {
        lines.iter().any(|(name, line)| {
            // `@renamed` has marked names.
            changes_variant(line) || self.unmarked(name).is_none() && is_replaced(name, lines)
        })
    }
}

/// Variants of each name from a version on.
type Lines = BTreeMap<String, Vec<(Version, AbiVariant)>>;

fn changes_variant(line: &[(Version, AbiVariant)]) -> bool {
    let mut variants = line
        .iter()
        .map(|(_, variant)| variant)
        .filter(|variant| **variant != AbiVariant::Missing);
    let first = variants.next();
    variants.any(|variant| Some(variant) != first)
}

/// Whether another name has a variant that a name no longer has.
fn is_replaced(name: &str, lines: &Lines) -> bool {
    lines[name].windows(2).any(|pair| {
        let [(_, variant), (_, AbiVariant::Missing)] = pair else {
            return false;
        };
        lines
            .iter()
            .any(|(successor, line)| successor != name && line.iter().any(|(_, v)| v == variant))
    })
}

/// A name without the mark of a twin, and the mark.
fn split_twin(name: &str) -> (&str, &'static str) {
    for twin in TWINS {
        if let Some(plain) = name.strip_suffix(twin) {
            return (plain, twin);
        }
    }
    (name, "")
}

/// A name without the marks of versions: `_v2`, `R0600`.
fn stem(name: &str) -> &str {
    let digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let count = name.len() - digits.len();
    match digits.strip_suffix("_v") {
        Some(stem) if count > 0 => stem,
        _ => match digits.strip_suffix('R') {
            Some(stem) if count == 4 => stem,
            _ => name,
        },
    }
}

/// Returns the decisions for a library.
pub fn decisions(library: &str) -> Reviewed {
    match library {
        "cuda" => CUDA,
        "cudart" => CUDART,
        "cufft" => CUFFT,
        "hip" => HIP,
        "hipblas" => HIPBLAS,
        "hipsparse" => ROCM,
        "nvml" => NVML,
        "rocblas" => ROCBLAS,
        _ => NONE,
    }
}

const CUDA: Reviewed = Reviewed {
    // cuGraphInstantiate of 12.0 and later is this one, by a macro.
    aliases: &[("cuGraphInstantiateWithFlags", "cuGraphInstantiate")],
    // cuda.h 12.8: the second "will supplant this version in CUDA 13.0". They differ in that it may
    // leave errors of pending work to a later call.
    interchangeable: &[("cuEventElapsedTime", "cuEventElapsedTime_v2")],
    zeroed: &[
        // cuda.h: "Reserved for future use, must be zeroed".
        "cuCheckpointProcessCheckpoint",
        "cuCheckpointProcessRestore",
        "cuDevSmResourceSplit",
        // CUmemPoolProps: "reserved for future use, must be 0"; the second returns what the program set.
        "cuGraphAddMemAllocNode",
        "cuGraphMemAllocNodeGetParams",
    ],
    ..NONE
};

const CUDART: Reviewed = Reviewed {
    aliases: &[
        ("cudaGraphInstantiateWithFlags", "cudaGraphInstantiate"),
        // cuda_runtime_api.h: "Its functionality is identical to the non-deprecated function", for
        // cudaThreadSynchronize "similar"; 13.0 has only the latter ones.
        ("cudaThreadExit", "cudaDeviceReset"),
        ("cudaThreadGetCacheConfig", "cudaDeviceGetCacheConfig"),
        ("cudaThreadGetLimit", "cudaDeviceGetLimit"),
        ("cudaThreadSetCacheConfig", "cudaDeviceSetCacheConfig"),
        ("cudaThreadSetLimit", "cudaDeviceSetLimit"),
        ("cudaThreadSynchronize", "cudaDeviceSynchronize"),
    ],
    interchangeable: &[
        // As in the driver; the plain name of 13.0 is the second of 12.8.
        ("cudaEventElapsedTime", "cudaEventElapsedTime_v2"),
        // cuda_runtime_api.h 12.0 describes both in the same words.
        ("cudaGraphInstantiate", "cudaGraphInstantiateWithFlags"),
        ("cudaThreadExit", "cudaDeviceReset"),
        ("cudaThreadGetCacheConfig", "cudaDeviceGetCacheConfig"),
        ("cudaThreadGetLimit", "cudaDeviceGetLimit"),
        ("cudaThreadSetCacheConfig", "cudaDeviceSetCacheConfig"),
        ("cudaThreadSetLimit", "cudaDeviceSetLimit"),
        ("cudaThreadSynchronize", "cudaDeviceSynchronize"),
    ],
    // Returns driver functions of the runtime's own version: cuCtxCreate has other arguments in 13.
    // cudaGetDriverEntryPointByVersion receives the version, so it is stable.
    library_bound: &["cudaGetDriverEntryPoint"],
    // The edge data of 12.3 and later, as in cuda_runtime_api.h 12.9 (in _v2) and 13.5. The forms
    // without it only have edges with zeroed data.
    nullable: &[
        // "Optional array of edge data. If NULL, default (zeroed) edge data is assumed."
        ("cudaGraphAddDependencies", 3),
        // "Optional edge data for the dependencies. If NULL, the data is assumed to be default
        // (zeroed) for all dependencies."
        ("cudaGraphAddNode", 3),
        // "edgeData may alone be NULL, in which case the edges must all have default (zeroed) edge
        // data", else cudaErrorLossyQuery. The forms without it can also return this error:
        // driver_types.h has it for an "object using functionality newer than the API version used to
        // introspect it or omission of optional return arguments". The same holds for the next two.
        ("cudaGraphGetEdges", 3),
        ("cudaGraphNodeGetDependencies", 2),
        ("cudaGraphNodeGetDependentNodes", 2),
        // "edgeData is nullable, which is equivalent to passing default (zeroed) data for each edge."
        ("cudaGraphRemoveDependencies", 3),
        // "Optional array of data associated with each dependency."
        ("cudaStreamUpdateCaptureDependencies", 2),
        // Not cudaStreamGetCaptureInfo: not all of its seven arguments are in registers.
    ],
    // As in the driver.
    zeroed: &[
        "cudaDevSmResourceSplit",
        "cudaGraphAddMemAllocNode",
        "cudaGraphMemAllocNodeGetParams",
    ],
    ..NONE
};

const CUFFT: Reviewed = Reviewed {
    // The headers of 12.6 to 12.9 replace cufftXtSetJITCallback by this one, with the arguments that it has in 13.0.
    aliases: &[("__cufftXtSetJITCallback_12_7", "cufftXtSetJITCallback")],
    ..NONE
};

const HIP: Reviewed = Reviewed {
    // Takes a version, but uses it only for hipGetDeviceProperties and hipChooseDevice (hipamd's
    // hip_device.cpp): other functions are those of the library's own version.
    library_bound: &["hipGetProcAddress", "hipGetDriverEntryPoint"],
    // hipMemPoolProps: "reserved for future use, must be 0".
    zeroed: &["hipGraphAddMemAllocNode", "hipGraphMemAllocNodeGetParams"],
    // Debian has no headers of the versions between. In AMD's repository, 5.3.0 renumbers and moves the
    // nodes of graphs and hipMemAllocationProp, 6.0.0 hipMemoryType and R0600; AMD's Python bindings
    // have hipMemsetParams from 7.0 on, which is assumed for the other changes of 7.2. A name that
    // was added in between also counts from there, which is accepted: the lookup then fails.
    since: &[
        (Version::new(5, 7), Version::new(5, 3)),
        (Version::new(6, 4), Version::new(6, 0)),
        (Version::new(7, 2), Version::new(7, 0)),
    ],
    ..NONE
};

const NVML: Reviewed = Reviewed {
    // Their entries have 32 bytes in the headers of 12.2.81 and 12.2.128 and in drivers from 535.43 until 535.98
    // (XuehaiPan/nvitop#79 and #89, gpuopenanalytics/pynvml#48 and #50), in all others 24.
    avoided: &[
        (
            "nvmlDeviceGetComputeRunningProcesses_v3",
            Version::new(12, 2),
        ),
        (
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            Version::new(12, 2),
        ),
        (
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
            Version::new(12, 2),
        ),
    ],
    // nvml.h declares them side by side, with nvmlProcessInfo_v2_t, which is nvmlProcessInfo_t.
    interchangeable: &[
        (
            "nvmlDeviceGetComputeRunningProcesses_v3",
            "nvmlDeviceGetComputeRunningProcesses_v2",
        ),
        (
            "nvmlDeviceGetGraphicsRunningProcesses_v3",
            "nvmlDeviceGetGraphicsRunningProcesses_v2",
        ),
        (
            "nvmlDeviceGetMPSComputeRunningProcesses_v3",
            "nvmlDeviceGetMPSComputeRunningProcesses_v2",
        ),
    ],
    ..NONE
};

const ROCM: Reviewed = Reviewed {
    // Debian has no packages of the versions between; the number in the library's name grew with these majors.
    since: &[
        (Version::new(6, 4), Version::new(6, 0)),
        (Version::new(7, 2), Version::new(7, 0)),
    ],
    ..NONE
};

const HIPBLAS: Reviewed = Reviewed {
    // Names with HIPBLAS_V2 in 6: with other complex types, of the same layout, and with the data types of 7, whose plain names
    // are these functions (ROCm/hipBLAS#982).
    mark: Some("_v2"),
    ..ROCM
};

const ROCBLAS: Reviewed = Reviewed {
    // rocblas.h of 5.5 describes these as 6.4 describes the plain ones, except for the status if C is B and ldc is not
    // ldb: rocblas_status_invalid_size, and rocblas_status_invalid_value.
    aliases: &[
        ("rocblas_strmm_outofplace", "rocblas_strmm"),
        ("rocblas_dtrmm_outofplace", "rocblas_dtrmm"),
        ("rocblas_ctrmm_outofplace", "rocblas_ctrmm"),
        ("rocblas_ztrmm_outofplace", "rocblas_ztrmm"),
        ("rocblas_strmm_outofplace_batched", "rocblas_strmm_batched"),
        ("rocblas_dtrmm_outofplace_batched", "rocblas_dtrmm_batched"),
        ("rocblas_ctrmm_outofplace_batched", "rocblas_ctrmm_batched"),
        ("rocblas_ztrmm_outofplace_batched", "rocblas_ztrmm_batched"),
        (
            "rocblas_strmm_outofplace_strided_batched",
            "rocblas_strmm_strided_batched",
        ),
        (
            "rocblas_dtrmm_outofplace_strided_batched",
            "rocblas_dtrmm_strided_batched",
        ),
        (
            "rocblas_ctrmm_outofplace_strided_batched",
            "rocblas_ctrmm_strided_batched",
        ),
        (
            "rocblas_ztrmm_outofplace_strided_batched",
            "rocblas_ztrmm_strided_batched",
        ),
    ],
    ..ROCM
};

pub const NONE: Reviewed = Reviewed {
    aliases: &[],
    interchangeable: &[],
    mark: None,
    library_bound: &[],
    nullable: &[],
    zeroed: &[],
    since: &[],
    avoided: &[],
    accepted: &[],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_stems() {
        for (name, stem, twin) in [
            ("cudaMemAdvise_v2", "cudaMemAdvise", ""),
            (
                "cudaMemPrefetchAsync_v2_ptsz",
                "cudaMemPrefetchAsync",
                "_ptsz",
            ),
            ("cudaMemcpy_ptds", "cudaMemcpy", "_ptds"),
            ("cudaMemcpy2D", "cudaMemcpy2D", ""),
            ("cudaThreadExit", "cudaDeviceReset", ""),
            ("hipGetDevicePropertiesR0600", "hipGetDeviceProperties", ""),
            ("hipMemcpy_spt", "hipMemcpy", "_spt"),
            ("_v2", "", ""),
        ] {
            assert_eq!(CUDART.group(name), (stem.to_owned(), twin.to_owned()));
        }
    }

    #[test]
    fn twins_are_bound_as_their_originals() {
        assert!(CUDART.is_library_bound("cudaGetDriverEntryPoint_ptsz"));
        assert!(!CUDART.is_library_bound("cudaGetDriverEntryPointByVersion"));
    }
}
