//! A Python module that uses CUDA's runtime and its compiler, if present.

mod nvrtc;

use std::ffi::c_int;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Result of the search for a library; a dictionary in Python.
#[derive(IntoPyObject)]
struct Library {
    path: Option<String>,
    version: Option<String>,
    /// Reason why the library is not available.
    reason: Option<String>,
}

// SAFETY: the declaration is that of cuda_runtime_api.h.
unsafe extern "C" {
    fn cudaGetDeviceCount(count: *mut c_int) -> c_int;
}

/// A Python module that uses CUDA from the installed `nvidia-*` wheels, if there is one.
#[pymodule]
mod hello_wheel {
    use std::collections::BTreeMap;

    use super::*;

    /// Path and version of each library, or the reason why it is not available.
    #[pyfunction]
    fn report() -> BTreeMap<&'static str, Library> {
        let found = |name| match gpustub::load(name) {
            Ok(library) => Library {
                path: Some(library.path().to_string()),
                version: library.version().map(|version| version.to_string()),
                reason: None,
            },
            Err(why) => Library {
                path: None,
                version: None,
                reason: Some(why.to_string()),
            },
        };
        BTreeMap::from(["cudart", "nvrtc"].map(|name| (name, found(name))))
    }

    /// Number of GPUs that CUDA can use. 0 without CUDA, or without a driver for it.
    #[pyfunction]
    fn devices() -> c_int {
        let mut count = 0;
        // SAFETY: the pointer is to an integer of this function. A failure sets it to 0, or leaves
        // it unchanged.
        unsafe { cudaGetDeviceCount(&mut count) };
        count
    }

    /// Compiles CUDA C++ to PTX; other Python threads run meanwhile.
    #[pyfunction]
    #[pyo3(signature = (source, architecture = "compute_75"))]
    fn compile(py: Python<'_>, source: &str, architecture: &str) -> PyResult<String> {
        py.detach(|| nvrtc::compile(source, architecture))
            .map_err(PyRuntimeError::new_err)
    }
}
