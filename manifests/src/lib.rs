//! The library manifests of gpustub, as text: data, no code.
//!
//! Each GPU library has `<id>.toml` (load names, directories, fall-back values) and
//! `<id>.symbols` (its functions, and the versions that have them); a library whose functions
//! changed their ABI also has `<id>.abi`, one with functions that name status codes `<id>.errors`.
//! `families.toml` has the search keys that the libraries of a toolkit share; user-defined libraries do not
//! read it.
//! `gpustub-core` reads the formats.

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
    /// The text of `<id>.errors`; empty: no function names status codes.
    pub errors: &'static str,
}

/// The version of this package, which lock files name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The text of `families.toml`: search keys that the libraries of a toolkit share.
pub const FAMILIES: &str = include_str!("../families.toml");

/// Names of the C and C++ run time, sorted, a line each; `*` ends a line that stands for all names that begin
/// so. `#` starts a comment line.
pub const C_RUNTIME_NAMES: &str = include_str!("../c-runtime.names");

macro_rules! libraries {
    ($($id:literal $($more:ident)*),* $(,)?) => {
        /// All libraries, sorted by id.
        pub const LIBRARIES: &[LibraryText] = &[$(LibraryText {
            id: $id,
            manifest: include_str!(concat!("../", $id, ".toml")),
            symbols: include_str!(concat!("../", $id, ".symbols")),
            abi: concat!($(libraries!(@abi $more $id),)*),
            errors: concat!($(libraries!(@errors $more $id),)*),
        }),*];
    };
    (@abi abi $id:literal) => {
        include_str!(concat!("../", $id, ".abi"))
    };
    (@errors errors $id:literal) => {
        include_str!(concat!("../", $id, ".errors"))
    };
    (@$kind:ident $other:ident $id:literal) => {
        ""
    };
}

// Written by `cargo xtask manifests`.
libraries![
    "amd-smi" abi errors,
    "cublas" abi errors,
    "cublaslt" abi errors,
    "cuda" abi errors,
    "cudart" abi errors,
    "cudnn" abi errors,
    "cudss" abi,
    "cufft" abi,
    "cufile" abi,
    "cufile-rdma",
    "cupti" abi errors,
    "curand" abi,
    "cusolver" abi,
    "cusolvermg" abi,
    "cusparse" abi errors,
    "cusparselt" abi errors,
    "custatevec" abi errors,
    "cutensor" abi errors,
    "cutensormg" abi,
    "cutensornet" abi errors,
    "hip" abi errors,
    "hipblas" abi errors,
    "hipblaslt",
    "hipfft" abi,
    "hiprand" abi,
    "hiprtc" abi errors,
    "hipsolver" abi,
    "hipsparse" abi errors,
    "hsa" abi errors,
    "level-zero",
    "migraphx" abi,
    "miopen" abi errors,
    "nccl" abi errors,
    "nvcuvid",
    "nvencode",
    "nvfatbin" abi errors,
    "nvjitlink" abi,
    "nvjpeg" abi,
    "nvjpeg2k" abi,
    "nvml" abi errors,
    "nvrtc" abi errors,
    "nvshmem" abi,
    "nvtx",
    "nvvm" abi errors,
    "opencl",
    "rccl" abi errors,
    "rocblas" abi errors,
    "rocfft" abi,
    "rocm-smi" abi errors,
    "rocrand" abi,
    "rocsolver" abi,
    "rocsparse" abi errors,
    "roctracer",
    "roctx" abi,
];
