//! A library for C over the final of `plugin`.

#[unsafe(no_mangle)]
pub extern "C" fn flat_status() -> i32 {
    plain::run()
}
