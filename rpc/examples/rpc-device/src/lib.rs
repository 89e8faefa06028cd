//! A kernel that prints, reads a file of the host, and panics on demand.
#![no_std]
#![cfg_attr(
    any(target_arch = "nvptx64", target_arch = "amdgpu"),
    feature(abi_gpu_kernel)
)]

use gpurpc_device::fs::File;
use gpurpc_device::io::{self, Write};
use gpurpc_device::{println, thread};

/// Entry of the image: gpurpc-loader starts a kernel of this name with these arguments.
///
/// # Safety
///
/// `argv` points to `argc` strings, and `result` to the exit code.
#[cfg(any(target_arch = "nvptx64", target_arch = "amdgpu"))]
#[unsafe(no_mangle)]
pub unsafe extern "gpu-kernel" fn _start(
    argc: i32,
    argv: *const *const core::ffi::c_char,
    _envp: *const *const core::ffi::c_char,
    result: *mut i32,
) {
    // The first argument follows the program's name.
    let argument = (argc > 1).then(|| {
        // SAFETY: the loader's strings are valid until the kernel has ended.
        unsafe { core::ffi::CStr::from_ptr(*argv.add(1)) }
    });
    if let Err(error) = run(argument.and_then(|text| text.to_str().ok())) {
        gpurpc_device::eprintln!("error: {error}");
        // SAFETY: any thread may set the exit code.
        unsafe { *result = 1 };
    }
}

/// The kernel, which also runs on hosts: `tests/host.rs`.
///
/// # Errors
///
/// If the file of this name cannot be printed.
pub fn run(argument: Option<&str>) -> io::Result<()> {
    let ([block, ..], [index, ..]) = (thread::block(), thread::index());
    println!("hello from thread {index} of block {block}");
    match argument {
        Some("panic") => {
            let squares = [0, 1, 4];
            println!("the square of {index} is {}", squares[index as usize]);
            Ok(())
        }
        Some(path) if (block, index) == (0, 0) => print_file(path),
        _ => Ok(()),
    }
}

fn print_file(path: &str) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mut line = [0; 80];
    while let size @ 1.. = file.read_line(&mut line)? {
        io::stdout().write_all(&line[..size])?;
    }
    Ok(())
}
