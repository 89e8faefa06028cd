//! The kernels of a program, and what they are given.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_void};

use crate::error::{Code, Error, Result};
use crate::runtime::{Gpu, Handle, Shape};

/// A kernel that is ready to be launched.
#[derive(Debug)]
pub struct Kernel {
    name: CString,
    /// What the driver has for it.
    pub function: Handle,
    /// How many threads run it.
    pub shape: Shape,
    takes: Takes,
}

/// The parameters of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// `int argc, char **argv, char **envp, int *result`, or the first ones of them.
    Arguments,
    /// `int result`, or nothing.
    Result,
}

/// What LLVM's libc has for start-up (`libc/startup/gpu`), in the order in which they run: the first and the
/// last one by one thread. `_end` takes the result before LLVM 22, and nothing since.
const STARTUP: [(&CStr, bool, Takes); 3] = [
    (c"_begin", false, Takes::Arguments),
    (START, true, Takes::Arguments),
    (c"_end", false, Takes::Result),
];
const START: &CStr = c"_start";

impl Kernel {
    /// The kernels of an image in the order in which they run: `entry`, or those of LLVM's libc.
    ///
    /// # Errors
    ///
    /// If the image lacks the one that is the program's.
    pub fn all(gpu: &Gpu, module: Handle, entry: Option<&CStr>, shape: Shape) -> Result<Vec<Self>> {
        if let Some(entry) = entry {
            let kernel = Self::get(gpu, module, entry, shape, Takes::Arguments)?;
            return Ok(vec![kernel.ok_or_else(|| missing(entry))?]);
        }
        let mut kernels = Vec::new();
        for (name, is_program, takes) in STARTUP {
            let shape = if is_program { shape } else { Shape::ONE };
            match Self::get(gpu, module, name, shape, takes)? {
                Some(kernel) => kernels.push(kernel),
                None if is_program => return Err(missing(name)),
                None => {}
            }
        }
        Ok(kernels)
    }

    /// A kernel that is run by one thread, if the image has one of this name.
    pub fn of_one_thread(gpu: &Gpu, module: Handle, name: &CStr) -> Result<Option<Self>> {
        Self::get(gpu, module, name, Shape::ONE, Takes::Arguments)
    }

    fn get(
        gpu: &Gpu,
        module: Handle,
        name: &CStr,
        shape: Shape,
        takes: Takes,
    ) -> Result<Option<Self>> {
        let function = gpu.function(module, name)?;
        Ok(function.map(|function| Self {
            name: name.to_owned(),
            function,
            shape,
            takes,
        }))
    }

    /// Its name.
    pub fn name(&self) -> Cow<'_, str> {
        self.name.to_string_lossy()
    }

    /// The error, with the kernel that it comes of.
    pub fn failed(&self, error: Error) -> Error {
        let message = format!("`{}` failed: {}", self.name(), error.message);
        Error { message, ..error }
    }
}

fn missing(name: &CStr) -> Error {
    let name = name.to_string_lossy();
    let error = Error::new(
        Code::NotRunnable,
        format!("the image has no kernel `{name}`"),
    );
    error.help(
        "link the program with the start-up code of LLVM's libc (crt1.o), or name a kernel that takes \
         (int argc, char **argv, char **envp, int *result): --entry",
    )
}

/// Values for the parameters of any kernel, whatever it takes: a driver reads as many of them, of such
/// sizes, as the image says.
#[derive(Debug)]
pub struct Arguments {
    /// The values in words of their own, and behind them as many bytes as all parameters of a kernel may
    /// have together (CUDA since 12.1: 32764).
    values: Box<[u64]>,
    pointers: Box<[*mut c_void]>,
}

const MOST: usize = 1 << 15;

impl Arguments {
    /// Of a program.
    pub fn new(argc: i32, argv: u64, envp: u64, result: u64) -> Self {
        let mut values = vec![0; 4 + MOST / 8].into_boxed_slice();
        values[..4].copy_from_slice(&[int(argc), argv, envp, result]);
        Self {
            values,
            pointers: vec![std::ptr::null_mut(); MOST].into_boxed_slice(),
        }
    }

    /// Those of a kernel: `result` is what the program gave. They are read when the kernel is launched.
    pub fn of(&mut self, kernel: &Kernel, result: i32) -> &mut [*mut c_void] {
        let first = match kernel.takes {
            Takes::Arguments => 0,
            Takes::Result => {
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
