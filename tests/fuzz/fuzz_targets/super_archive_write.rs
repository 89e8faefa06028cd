#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    gpustub_superarchive::fuzz::super_archive_write(text);
});
