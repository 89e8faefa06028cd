//! NVRTC, which needs neither a driver nor a GPU.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

type Program = *mut c_void;

// SAFETY: the declarations are those of nvrtc.h.
unsafe extern "C" {
    fn nvrtcCreateProgram(
        program: *mut Program,
        source: *const c_char,
        name: *const c_char,
        header_count: c_int,
        headers: *const *const c_char,
        include_names: *const *const c_char,
    ) -> c_int;
    fn nvrtcCompileProgram(program: Program, count: c_int, options: *const *const c_char) -> c_int;
    fn nvrtcGetProgramLogSize(program: Program, size: *mut usize) -> c_int;
    fn nvrtcGetProgramLog(program: Program, log: *mut c_char) -> c_int;
    fn nvrtcGetPTXSize(program: Program, size: *mut usize) -> c_int;
    fn nvrtcGetPTX(program: Program, ptx: *mut c_char) -> c_int;
    fn nvrtcDestroyProgram(program: *mut Program) -> c_int;
    safe fn nvrtcGetErrorString(result: c_int) -> *const c_char;
}

/// Compiles CUDA C++ to PTX. Without NVRTC the error names the files that were searched for.
pub fn compile(source: &str, architecture: &str) -> Result<String, String> {
    gpustub::load("nvrtc").map_err(|why| format!("no NVRTC: {why}"))?;
    let text = |text: &str| CString::new(text).map_err(|e| e.to_string());
    let (source, option) = (
        text(source)?,
        text(&format!("--gpu-architecture={architecture}"))?,
    );
    let mut program = null_mut();
    // SAFETY: both texts are C strings, and there are no headers.
    check("nvrtcCreateProgram", unsafe {
        nvrtcCreateProgram(&mut program, source.as_ptr(), null(), 0, null(), null())
    })?;
    // SAFETY: the program is alive, and there is one option.
    let status = unsafe { nvrtcCompileProgram(program, 1, [option.as_ptr()].as_ptr()) };
    let result = match check("nvrtcCompileProgram", status) {
        // SAFETY: the program is alive.
        Ok(()) => unsafe { text_of(program, nvrtcGetPTXSize, nvrtcGetPTX) },
        // SAFETY: as above.
        Err(error) => unsafe { text_of(program, nvrtcGetProgramLogSize, nvrtcGetProgramLog) }
            .and_then(|log| Err(format!("{error}\n{log}"))),
    };
    // SAFETY: the program was created above and is not used again.
    unsafe { nvrtcDestroyProgram(&mut program) };
    result
}

/// Text of a program, in NVRTC's two steps, without the final NUL.
///
/// # Safety
///
/// The program is alive; `get` writes at most the number of bytes that `size` returns.
unsafe fn text_of(
    program: Program,
    size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
    get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
) -> Result<String, String> {
    let mut length = 0;
    // SAFETY: guaranteed by the caller.
    check("asking for a size", unsafe { size(program, &mut length) })?;
    let mut text = vec![0; length];
    // SAFETY: guaranteed by the caller; the buffer has the requested length.
    check("asking for a text", unsafe {
        get(program, text.as_mut_ptr().cast())
    })?;
    text.pop();
    Ok(String::from_utf8_lossy(&text).into_owned())
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
