#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gpustub_superarchive::fuzz::super_archive(data);
});
