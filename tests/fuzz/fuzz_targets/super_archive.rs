#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = gpustub_object::fuzz::super_archive(data);
});
