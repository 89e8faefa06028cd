#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    gpustub_image::fuzz::offload(data);
});
