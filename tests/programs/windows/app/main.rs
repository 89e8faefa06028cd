//! Calls the CUDA runtime, as direct.c does, with `compile` NVRTC, and with `query` the run time of the stubs.

use std::ffi::{CStr, c_char, c_int, c_void};

unsafe extern "C" {
    fn cudaGetDeviceCount(count: *mut c_int) -> c_int;
    fn cudaGetErrorString(code: c_int) -> *const c_char;
    fn cudaGetErrorName(code: c_int) -> *const c_char;
    fn cudaRuntimeGetVersion(version: *mut c_int) -> c_int;
    fn nvrtcCreateProgram(
        program: *mut *mut c_void,
        source: *const c_char,
        name: *const c_char,
        count: c_int,
        headers: *const *const c_char,
        names: *const *const c_char,
    ) -> c_int;
    fn nvrtcCompileProgram(
        program: *mut c_void,
        count: c_int,
        options: *const *const c_char,
    ) -> c_int;
    fn nvrtcGetPTXSize(program: *mut c_void, size: *mut usize) -> c_int;
    fn nvrtcGetPTX(program: *mut c_void, ptx: *mut c_char) -> c_int;
}

unsafe fn text(string: *const c_char) -> String {
    if string.is_null() {
        return "null".to_owned();
    }
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

unsafe fn compile() {
    let source = c"extern \"C\" __global__ void add(float *x) { *x += 1; }";
    let mut program = std::ptr::null_mut();
    let none = std::ptr::null();
    let mut size = 0;
    unsafe {
        let created =
            nvrtcCreateProgram(&mut program, source.as_ptr(), c"k.cu".as_ptr(), 0, none, none);
        let compiled = nvrtcCompileProgram(program, 0, none);
        nvrtcGetPTXSize(program, &mut size);
        let mut ptx = vec![0; size.max(1)];
        nvrtcGetPTX(program, ptx.as_mut_ptr());
        let ptx = text(ptx.as_ptr());
        let entry = ptx.lines().find(|line| line.contains(".entry"));
        println!("create {created}, compile {compiled}, {}", entry.unwrap_or("no PTX"));
    }
}

fn query() {
    let reason = !gpustub::reason("cudart").is_empty();
    println!("available {}, reason {reason}", gpustub::is_available("cudart"));
}

fn main() {
    if std::env::args().any(|argument| argument == "query") {
        return query();
    }
    if std::env::args().any(|argument| argument == "compile") {
        return unsafe { compile() };
    }
    let mut count = -7;
    let mut version = -7;
    unsafe {
        let status = cudaGetDeviceCount(&mut count);
        println!("status {status}, {count} devices");
        println!("{}, {}", text(cudaGetErrorName(status)), text(cudaGetErrorString(status)));
        let status = cudaRuntimeGetVersion(&mut version);
        println!("status {status}, version {version}");
    }
}
