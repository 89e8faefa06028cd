//! A library for C over another final than that of `plugin`.

#[unsafe(no_mangle)]
pub extern "C" fn solid_status() -> i32 {
    volume::run()
}
