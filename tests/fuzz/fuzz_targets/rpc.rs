#![no_main]

use std::path::PathBuf;
use std::sync::LazyLock;

/// One folder of this process; what a run leaves there is removed before the next.
static ROOT: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("gpustub-fuzz-rpc-{}", std::process::id())));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = std::fs::remove_dir_all(&*ROOT);
    std::fs::create_dir(&*ROOT).expect("there is a place for files");
    gpustub_rpc::fuzz::hostile(data, Some(&ROOT), false);
});
