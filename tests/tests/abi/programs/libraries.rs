//! The libraries under test.

use gpustub_core::version::Version;

use super::{Mode, Programs};

const CUDA_MODES: &[Mode] = &[
    ("", &[]),
    ("-per-thread", &["-DCUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

/// Shapes that no library under test has in an unchanged function.
const RARE: &[&str] = &[
    "float4:stack",
    "float8:stack",
    "struct_vi",
    "struct_ii:stack",
    "->float4",
    "->float8",
    "->struct_ii",
    "->struct_vv",
    "->struct_vi",
];

/// Shapes of structs that only some runtimes have.
const STRUCTS: &[&str] = &["struct_ii", "struct:stack", "->struct:memory"];

pub const CUDART: Programs = Programs {
    id: "cudart",
    headers: &["11.8", "12.9", "13.5"],
    // The last and first of each major, and one between: some functions are added within a major.
    libraries: &["11.8", "12.0", "12.4", "12.9", "13.0", "13.5"],
    all_versions: false,
    sonames: &[
        (Version::new(11, 0), "libcudart.so.11.0"),
        (Version::new(12, 0), "libcudart.so.12"),
        (Version::new(13, 0), "libcudart.so.13"),
    ],
    component: ("wheels/cudart-", "cuda_runtime_api.h"),
    needs: None,
    defines: &[],
    modes: CUDA_MODES,
    off: &["cuda"],
    made_up: &[
        RARE,
        &["16 arguments", "float4", "float8", "struct_vv", "->void"],
    ],
};

pub const CUDA: Programs = Programs {
    id: "cuda",
    sonames: &[(Version::new(11, 0), "libcuda.so.1")],
    component: ("wheels/cudart-", "cuda.h"),
    off: &[],
    made_up: &[
        RARE,
        &[
            "16 arguments",
            "float8",
            "struct_ii",
            "struct_vv",
            "->int",
            "->void",
            "->struct:memory",
        ],
    ],
    ..CUDART
};

pub const HIP: Programs = Programs {
    id: "hip",
    headers: &["5.2", "5.7", "6.4", "7.2"],
    libraries: &["5.2", "5.7", "6.4", "7.2"],
    sonames: &[
        (Version::new(5, 0), "libamdhip64.so.5"),
        (Version::new(6, 0), "libamdhip64.so.6"),
        (Version::new(7, 0), "libamdhip64.so.7"),
    ],
    all_versions: false,
    component: ("hip-headers-", "hip/hip_runtime_api.h"),
    needs: None,
    defines: &["-D__HIP_PLATFORM_AMD__"],
    // No function of an ABI table has a twin for per-thread streams: both modes are equal today.
    modes: &[
        ("", &[]),
        ("-per-thread", &["-DHIP_API_PER_THREAD_DEFAULT_STREAM"]),
    ],
    off: &[],
    made_up: &[RARE, &["16 arguments", "float8", "struct_vv"]],
};

pub const CUFFT: Programs = Programs {
    id: "cufft",
    headers: &["11.7", "11.8", "12.0", "12.2", "12.9", "13.5"],
    libraries: &["11.7", "11.8", "12.0", "12.3", "12.9", "13.0"],
    sonames: &[
        (Version::new(11, 0), "libcufft.so.10"),
        (Version::new(12, 0), "libcufft.so.11"),
        (Version::new(13, 0), "libcufft.so.12"),
    ],
    component: ("headers/cufft-", "cufft.h"),
    needs: Some((
        &[
            ("11.7", "wheels/cudart-11.7"),
            ("11.8", "wheels/cudart-11.8"),
            ("12.0", "wheels/cudart-12.0"),
            ("12.2", "wheels/cudart-12.2"),
            ("12.9", "wheels/cudart-12.9"),
            ("13.5", "wheels/cudart-13.5"),
        ],
        "cuda_runtime_api.h",
    )),
    modes: &[("", &[])],
    off: &["cuda"],
    made_up: &[
        RARE,
        STRUCTS,
        &[
            "16 arguments",
            "float4",
            "float8",
            "struct_vv",
            "->int",
            "->void",
            "/in/",
        ],
    ],
    ..CUDART
};

/// cuFile, which is numbered independently of the toolkit.
pub const CUFILE: Programs = Programs {
    id: "cufile",
    headers: &["1.11", "1.18", "1.19", "1.20"],
    libraries: &["1.11", "1.18", "1.19", "1.20"],
    sonames: &[(Version::new(1, 0), "libcufile.so.0")],
    component: ("headers/cufile-", "cufile.h"),
    needs: Some((
        &[
            ("1.11", "wheels/cudart-12.9"),
            ("1.18", "wheels/cudart-13.5"),
            ("1.19", "wheels/cudart-13.5"),
            ("1.20", "wheels/cudart-13.5"),
        ],
        "cuda_runtime_api.h",
    )),
    made_up: &[
        RARE,
        STRUCTS,
        &["16 arguments", "float4", "float8", "struct_vv", "/in/"],
    ],
    ..CUFFT
};

/// cuSPARSE: the libraries of CUDA 12 and 13 have one soname and differ in their own numbers.
pub const CUSPARSE: Programs = Programs {
    id: "cusparse",
    headers: &["11.8", "13.1", "13.5"],
    libraries: &["11.8", "12.9", "13.0", "13.2", "13.3", "13.5"],
    sonames: &[
        (Version::new(11, 0), "libcusparse.so.11"),
        (Version::new(12, 0), "libcusparse.so.12"),
    ],
    defines: &["-DCUSPARSE_ENABLE_EXPERIMENTAL_API"],
    component: ("headers/cusparse-", "cusparse.h"),
    needs: Some((
        &[
            ("11.8", "wheels/cudart-11.8"),
            ("13.1", "wheels/cudart-13.1"),
            ("13.5", "wheels/cudart-13.5"),
        ],
        "cuda_runtime_api.h",
    )),
    made_up: &[RARE, STRUCTS, &["->void"]],
    ..CUFFT
};

pub const NVML: Programs = Programs {
    id: "nvml",
    headers: &["11.8", "12.2", "12.9", "13.5"],
    libraries: &["11.8", "12.2", "12.9", "13.5"],
    sonames: &[(Version::new(11, 0), "libnvidia-ml.so.1")],
    component: ("headers/nvml-", "nvml.h"),
    needs: None,
    modes: &[
        ("", &[]),
        ("-versioned", &["-DNVML_NO_UNVERSIONED_FUNC_DEFS"]),
    ],
    off: &[],
    made_up: &[
        RARE,
        STRUCTS,
        &[
            "16 arguments",
            "int:stack",
            "float4",
            "float8",
            "struct_vv",
            "->void",
            "/in/",
        ],
    ],
    ..CUDART
};

pub const HIPBLAS: Programs = Programs {
    id: "hipblas",
    headers: &["5.5", "6.4", "7.2"],
    libraries: &["5.5", "6.4", "7.2"],
    sonames: &[
        (Version::new(5, 0), "libhipblas.so.0"),
        (Version::new(6, 0), "libhipblas.so.2"),
        (Version::new(7, 0), "libhipblas.so.3"),
    ],
    all_versions: false,
    component: ("hipblas-", "hipblas/hipblas.h"),
    needs: Some((
        &[
            ("5.5", "hip-headers-5.7"),
            ("6.4", "hip-headers-6.4"),
            ("7.2", "hip-headers-7.2"),
        ],
        "hip/hip_runtime_api.h",
    )),
    defines: &["-D__HIP_PLATFORM_AMD__"],
    modes: &[("", &[]), ("-v2", &["-DHIPBLAS_V2"])],
    off: &[],
    made_up: &[RARE, STRUCTS, &["float4", "float8", "struct_vv", "->void"]],
};

pub const HIPSPARSE: Programs = Programs {
    id: "hipsparse",
    headers: &["5.3", "5.7", "6.4", "7.2"],
    libraries: &["5.3", "5.7", "6.4", "7.2"],
    sonames: &[
        (Version::new(5, 0), "libhipsparse.so.0"),
        (Version::new(6, 0), "libhipsparse.so.1"),
        (Version::new(7, 0), "libhipsparse.so.4"),
    ],
    component: ("hipsparse-", "hipsparse/hipsparse.h"),
    needs: Some((
        &[
            ("5.3", "hip-headers-5.7"),
            ("5.7", "hip-headers-5.7"),
            ("6.4", "hip-headers-6.4"),
            ("7.2", "hip-headers-7.2"),
        ],
        "hip/hip_runtime_api.h",
    )),
    modes: &[("", &[])],
    made_up: &[RARE, STRUCTS, &["->int", "->void"]],
    ..HIPBLAS
};

pub const ROCBLAS: Programs = Programs {
    id: "rocblas",
    sonames: &[
        (Version::new(5, 0), "librocblas.so.0"),
        (Version::new(6, 0), "librocblas.so.4"),
        (Version::new(7, 0), "librocblas.so.5"),
    ],
    component: ("rocblas-", "rocblas/rocblas.h"),
    modes: &[("", &[])],
    made_up: &[RARE, STRUCTS, &["float4", "float8", "struct_vv"]],
    ..HIPBLAS
};
