//! The library manifests of gpustub, as text: data, no code.
//!
//! Each GPU library has `<id>.toml` (load names, directories, fall-back values, ABI changes) and
//! `<id>.symbols` (its functions, and the versions that have them); those whose functions changed
//! their meaning have `<id>.gates` too. The formats are read by `gpustub-core`.

/// One library: its id, its manifest and its symbol list.
#[derive(Debug, Clone, Copy)]
pub struct LibraryText {
    /// The name used in `GpuStub.toml`, for example `cudart`.
    pub id: &'static str,
    /// The text of `<id>.toml`.
    pub manifest: &'static str,
    /// The text of `<id>.symbols`.
    pub symbols: &'static str,
    /// The text of `<id>.gates`; empty: no function ever changed its meaning.
    pub gates: &'static str,
}

/// The version of this package, which lock files name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

macro_rules! libraries {
    ($($id:literal $($gates:ident)?),* $(,)?) => {
        /// All libraries, sorted by id.
        pub const LIBRARIES: &[LibraryText] = &[$(LibraryText {
            id: $id,
            manifest: include_str!(concat!("../", $id, ".toml")),
            symbols: include_str!(concat!("../", $id, ".symbols")),
            gates: concat!($(libraries!(@$gates $id),)?),
        }),*];
    };
    (@gates $id:literal) => {
        include_str!(concat!("../", $id, ".gates"))
    };
}

libraries![
    "cublas",
    "cublaslt",
    "cuda" gates,
    "cudart" gates,
    "cudnn",
    "cufft",
    "cufile",
    "cupti",
    "curand",
    "cusolver",
    "cusparse",
    "hip" gates,
    "hipblas",
    "hipfft",
    "hiprand",
    "hiprtc",
    "hipsolver",
    "hipsparse",
    "nccl",
    "nvjitlink",
    "nvml",
    "nvrtc" gates,
    "nvtx",
    "opencl",
    "rocblas",
    "rocfft",
    "rocrand",
];
