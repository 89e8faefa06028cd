//! The library manifests of gpustub, as text: data, no code.
//!
//! Each GPU library has `<id>.toml` (load names, directories, fall-back values) and
//! `<id>.symbols` (its functions, and the versions that have them); a library whose functions
//! changed their ABI also has `<id>.abi`. `gpustub-core` reads the formats.

/// One library: its id, its manifest and its symbol list.
#[derive(Debug, Clone, Copy)]
pub struct LibraryText {
    /// The name used in `GpuStub.toml`, for example `cudart`.
    pub id: &'static str,
    /// The text of `<id>.toml`.
    pub manifest: &'static str,
    /// The text of `<id>.symbols`.
    pub symbols: &'static str,
    /// The text of `<id>.abi`; empty: no function ever changed its ABI.
    pub abi: &'static str,
}

/// The version of this package, which lock files name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

macro_rules! libraries {
    ($($id:literal $($abi:ident)?),* $(,)?) => {
        /// All libraries, sorted by id.
        pub const LIBRARIES: &[LibraryText] = &[$(LibraryText {
            id: $id,
            manifest: include_str!(concat!("../", $id, ".toml")),
            symbols: include_str!(concat!("../", $id, ".symbols")),
            abi: concat!($(libraries!(@$abi $id),)?),
        }),*];
    };
    (@abi $id:literal) => {
        include_str!(concat!("../", $id, ".abi"))
    };
}

// Written by `cargo xtask manifests`.
libraries![
    "cublas",
    "cublaslt",
    "cuda" abi,
    "cudart" abi,
    "cudnn",
    "cufft",
    "cufile",
    "cupti",
    "curand",
    "cusolver",
    "cusparse",
    "hip" abi,
    "hipblas",
    "hipfft",
    "hiprand",
    "hiprtc" abi,
    "hipsolver",
    "hipsparse",
    "nccl",
    "nvjitlink",
    "nvml",
    "nvrtc" abi,
    "nvtx",
    "opencl",
    "rocblas",
    "rocfft",
    "rocrand",
];
