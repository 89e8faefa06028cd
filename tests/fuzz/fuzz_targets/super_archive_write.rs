#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| {
    gpustub_object::fuzz::super_archive_write(text);
});
