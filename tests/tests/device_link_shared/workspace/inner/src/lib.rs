//! A library for C whose static library requires a shared one.

#[unsafe(no_mangle)]
pub extern "C" fn inner_status() -> i32 {
    detail::run()
}
