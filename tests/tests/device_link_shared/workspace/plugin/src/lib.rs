//! A library for C.

#[unsafe(no_mangle)]
pub extern "C" fn plugin_run() -> i32 {
    plain::run()
}
