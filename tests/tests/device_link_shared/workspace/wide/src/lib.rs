//! A library for C over two finals.

#[unsafe(no_mangle)]
pub extern "C" fn wide_status() -> i32 {
    plain::run() | volume::run()
}
