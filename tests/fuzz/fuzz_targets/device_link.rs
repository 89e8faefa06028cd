#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| gpustub_core::fuzz::device_link(text));
