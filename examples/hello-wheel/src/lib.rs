//! A Python module with CUDA's runtime and its compiler, where they are.

mod nvrtc;

use std::ffi::c_int;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// What was found of a library; a dictionary in Python.
#[derive(IntoPyObject)]
struct Library {
    path: Option<String>,
    version: Option<String>,
    /// Why it is not available.
    reason: Option<String>,
}

// SAFETY: the declaration is that of cuda_runtime_api.h.
unsafe extern "C" {
    fn cudaGetDeviceCount(count: *mut c_int) -> c_int;
}

/// A Python module that uses the CUDA of the wheels beside it, if there is one.
#[pymodule]
mod hello_wheel {
    use std::collections::BTreeMap;

    use super::*;

    /// What was found of each library, and where; or why not.
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

    /// How many GPUs CUDA can use. 0 without CUDA, or without a driver for it.
    #[pyfunction]
    fn devices() -> c_int {
        let mut count = 0;
        // SAFETY: the pointer is to an integer of this function. A failure sets it to 0, or leaves
        // it alone.
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
