#![no_main]

#[allow(dead_code, reason = "what seeds and results are for is for the tests")]
#[path = "../../../rpc/server/tests/hostile/play/mod.rs"]
mod play;

use std::path::PathBuf;
use std::sync::LazyLock;

/// One folder of this process; what a run leaves there is removed before the next.
static ROOT: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("gpustub-fuzz-rpc-{}", std::process::id())));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = std::fs::remove_dir_all(&*ROOT);
    std::fs::create_dir(&*ROOT).expect("there is a place for files");
    play::hostile(data, Some(&ROOT), false);
});
