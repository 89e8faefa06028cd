//! Kernels of a program, and their arguments.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::{CStr, CString, c_void};

use crate::error::{Code, Error, Result};
use crate::image_kernels;
use crate::runtime::{Gpu, Handle, Shape};

/// A kernel that is ready to be launched.
#[derive(Debug)]
pub struct Kernel {
    name: CString,
    /// Handle of the driver.
    pub function: Handle,
    /// Number of threads.
    pub shape: Shape,
    parameters: Parameters,
}

/// The parameters of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parameters {
    /// `int argc, char **argv, char **envp, int *result`, or the first of them.
    Arguments,
    /// `int result`, or nothing.
    Result,
}

/// Start-up kernels of LLVM's libc (`libc/startup/gpu`) in their order. The first and the last one run on one
/// thread. `_end` takes the result before LLVM 22, and nothing since.
const STARTUP: [(&CStr, bool, Parameters); 3] = [
    (c"_begin", false, Parameters::Arguments),
    (START, true, Parameters::Arguments),
    (c"_end", false, Parameters::Result),
];
const START: &CStr = c"_start";

impl Kernel {
    /// Finds the kernels of an image in their order: `entry`, or those of LLVM's libc.
    ///
    /// # Errors
    ///
    /// If the image lacks the kernel of the program.
    pub fn find_all(
        gpu: &Gpu,
        module: Handle,
        entry: Option<&CStr>,
        shape: Shape,
    ) -> Result<Vec<Self>> {
        if let Some(entry) = entry {
            let kernel = Self::find(gpu, module, entry, shape, Parameters::Arguments)?;
            return Ok(vec![kernel.ok_or_else(|| missing(entry, None))?]);
        }
        let mut kernels = Vec::new();
        for (name, is_program, parameters) in STARTUP {
            let shape = if is_program { shape } else { Shape::ONE };
            match Self::find(gpu, module, name, shape, parameters)? {
                Some(kernel) => kernels.push(kernel),
                None if is_program => return Err(missing(name, None)),
                None => {}
            }
        }
        Ok(kernels)
    }

    /// Finds a kernel that runs on one thread; nothing if the image has none of this name.
    pub fn single_threaded(gpu: &Gpu, module: Handle, name: &CStr) -> Result<Option<Self>> {
        Self::find(gpu, module, name, Shape::ONE, Parameters::Arguments)
    }

    fn find(
        gpu: &Gpu,
        module: Handle,
        name: &CStr,
        shape: Shape,
        parameters: Parameters,
    ) -> Result<Option<Self>> {
        let function = gpu.function(module, name)?;
        Ok(function.map(|function| Self {
            name: name.to_owned(),
            function,
            shape,
            parameters,
        }))
    }

    /// Name of the kernel.
    pub fn name(&self) -> Cow<'_, str> {
        self.name.to_string_lossy()
    }

    /// Adds the name of the kernel to an error.
    pub fn failure(&self, error: Error) -> Error {
        let message = format!("`{}` failed: {}", self.name(), error.message);
        Error { message, ..error }
    }
}

/// Checks that an image has the kernel of its program, unless only the driver knows.
///
/// # Errors
///
/// If the image lacks it.
pub fn check_image(image: &[u8], entry: Option<&CStr>) -> Result<()> {
    let name = entry.unwrap_or(START);
    match image_kernels::names(image) {
        Some(names) if !names.contains(&*name.to_string_lossy()) => {
            Err(missing(name, Some(&names)))
        }
        _ => Ok(()),
    }
}

/// Longest list of kernels in a message.
const MAX_NAMES: usize = 8;

fn missing(name: &CStr, names: Option<&BTreeSet<String>>) -> Error {
    let name = name.to_string_lossy();
    let error = Error::new(
        Code::NotRunnable,
        format!("the image has no kernel `{name}`"),
    );
    let mut help = String::new();
    match names {
        Some(names) if names.is_empty() => {
            return error.help(
                "it has none at all: a kernel is declared with `__global__` in CUDA and HIP, and in C with \
                 `__attribute__((nvptx_kernel))` or `__attribute__((amdgpu_kernel))`, which old releases of clang ignore",
            );
        }
        Some(names) => {
            let listed: Vec<String> = names
                .iter()
                .take(MAX_NAMES)
                .map(|name| format!("`{name}`"))
                .collect();
            let more = if names.len() > MAX_NAMES { ", …" } else { "" };
            help = format!("it has {}{more}; ", listed.join(", "));
        }
        None => {}
    }
    help += "link the program with the start-up code of LLVM's libc (crt1.o), or name a kernel that takes \
             (int argc, char **argv, char **envp, int *result): --entry";
    error.help(help)
}

/// Values for the parameters of any kernel: a driver reads the number and sizes that the image
/// declares.
#[derive(Debug)]
pub struct Arguments {
    /// One word for each value, followed by as many bytes as all parameters of a kernel may have together (CUDA
    /// since 12.1: 32764).
    values: Box<[u64]>,
    pointers: Box<[*mut c_void]>,
}

const MAX_SIZE: usize = 1 << 15;

impl Arguments {
    /// Arguments of a program.
    pub fn new(argc: i32, argv: u64, envp: u64, result: u64) -> Self {
        let mut values = vec![0; 4 + MAX_SIZE / 8].into_boxed_slice();
        values[..4].copy_from_slice(&[int(argc), argv, envp, result]);
        Self {
            values,
            pointers: vec![std::ptr::null_mut(); MAX_SIZE].into_boxed_slice(),
        }
    }

    /// Arguments of a kernel, read at its launch. `result` is the result of the program.
    pub fn for_kernel(&mut self, kernel: &Kernel, result: i32) -> &mut [*mut c_void] {
        let first = match kernel.parameters {
            Parameters::Arguments => 0,
            Parameters::Result => {
                self.values[4] = int(result);
                4
            }
        };
        for (index, pointer) in self.pointers.iter_mut().enumerate() {
            let word = (first + index).min(4);
            *pointer = (&raw mut self.values[word]).cast();
        }
        &mut self.pointers
    }
}

/// An `int` in the first bytes of a word.
fn int(value: i32) -> u64 {
    let [a, b, c, d] = value.to_ne_bytes();
    u64::from_ne_bytes([a, b, c, d, 0, 0, 0, 0])
}
