#![no_main]

#[path = "../../../server/tests/printf_hostile/play.rs"]
mod play;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    play::printf(data);
});
