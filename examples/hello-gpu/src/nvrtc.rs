//! NVRTC: compiles a kernel to PTX. Needs neither a driver nor a GPU.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::null;

/// Source of the kernel, with its name in PTX.
const SOURCE: &CStr =
    c"extern \"C\" __global__ void add(const float *a, const float *b, float *sum, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        sum[i] = a[i] + b[i];
}
";

/// Oldest architecture that all NVRTC versions from 11.8 to 13.5 support. The driver compiles its
/// PTX for newer GPUs.
const ARCHITECTURE: &CStr = c"--gpu-architecture=compute_75";

/// Opaque program under compilation.
#[repr(C)]
struct Program {
    _private: [u8; 0],
}

// SAFETY: the declarations are those of nvrtc.h.
unsafe extern "C" {
    fn nvrtcCreateProgram(
        program: *mut *mut Program,
        source: *const c_char,
        name: *const c_char,
        header_count: c_int,
        headers: *const *const c_char,
        include_names: *const *const c_char,
    ) -> c_int;
    fn nvrtcCompileProgram(
        program: *mut Program,
        count: c_int,
        options: *const *const c_char,
    ) -> c_int;
    fn nvrtcGetProgramLogSize(program: *mut Program, size: *mut usize) -> c_int;
    fn nvrtcGetProgramLog(program: *mut Program, log: *mut c_char) -> c_int;
    fn nvrtcGetPTXSize(program: *mut Program, size: *mut usize) -> c_int;
    fn nvrtcGetPTX(program: *mut Program, ptx: *mut c_char) -> c_int;
    fn nvrtcDestroyProgram(program: *mut *mut Program) -> c_int;
    safe fn nvrtcGetErrorString(result: c_int) -> *const c_char;
}

/// Compiles the kernel. The PTX is NUL-terminated, as the driver requires.
pub fn compile() -> Result<Vec<u8>, String> {
    let mut program = std::ptr::null_mut();
    // SAFETY: all strings are C strings, and there are no headers.
    check("nvrtcCreateProgram", unsafe {
        nvrtcCreateProgram(
            &mut program,
            SOURCE.as_ptr(),
            c"add.cu".as_ptr(),
            0,
            null(),
            null(),
        )
    })?;
    let ptx = compile_program(program);
    // SAFETY: the program was created above and is not used again.
    let destroyed = check("nvrtcDestroyProgram", unsafe {
        nvrtcDestroyProgram(&mut program)
    });
    let ptx = ptx?;
    destroyed.map(|()| ptx)
}

fn compile_program(program: *mut Program) -> Result<Vec<u8>, String> {
    let options = [ARCHITECTURE.as_ptr()];
    // SAFETY: the program is alive, and there is one option.
    let status = unsafe { nvrtcCompileProgram(program, 1, options.as_ptr()) };
    if let Err(error) = check("nvrtcCompileProgram", status) {
        // SAFETY: the program is alive; the buffer has the requested length.
        let log = unsafe { text_of(program, nvrtcGetProgramLogSize, nvrtcGetProgramLog) };
        return Err(format!("{error}: {}", String::from_utf8_lossy(&log?)));
    }
    // SAFETY: as above.
    unsafe { text_of(program, nvrtcGetPTXSize, nvrtcGetPTX) }
}

/// Text of a program, in NVRTC's two steps.
///
/// # Safety
///
/// The program is alive; `get` writes at most the number of bytes that `size` returns.
unsafe fn text_of(
    program: *mut Program,
    size: unsafe extern "C" fn(*mut Program, *mut usize) -> c_int,
    get: unsafe extern "C" fn(*mut Program, *mut c_char) -> c_int,
) -> Result<Vec<u8>, String> {
    let mut length = 0;
    // SAFETY: guaranteed by the caller.
    check("asking for a size", unsafe { size(program, &mut length) })?;
    let mut text = vec![0; length];
    // SAFETY: guaranteed by the caller.
    check("asking for a text", unsafe {
        get(program, text.as_mut_ptr().cast())
    })?;
    Ok(text)
}

/// Size and target of the compiled kernel.
pub fn describe(ptx: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(ptx);
    let target = text
        .lines()
        .find(|line| line.starts_with(".target"))
        .unwrap_or("no .target");
    vec![format!(
        "compiled the kernel to {} bytes of PTX, {target}",
        ptx.len()
    )]
}

fn check(call: &str, result: c_int) -> Result<(), String> {
    if result == 0 {
        return Ok(());
    }
    // SAFETY: NVRTC's error strings are constants.
    let text = unsafe { CStr::from_ptr(nvrtcGetErrorString(result)) };
    Err(format!(
        "{call}: error {result} ({})",
        text.to_string_lossy()
    ))
}
