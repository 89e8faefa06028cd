#![no_main]

#[path = "../../../crates/rpc/tests/printf_hostile/play.rs"]
mod play;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    play::printf(data);
});
