#![no_main]

#[allow(dead_code, reason = "only the tests use seeds and results")]
#[path = "../../../server/tests/hostile/play/mod.rs"]
mod play;

use std::path::PathBuf;
use std::sync::LazyLock;

/// Directory of this process; the files of a run are removed before the next.
static ROOT: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("gpustub-fuzz-rpc-{}", std::process::id())));

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = std::fs::remove_dir_all(&*ROOT);
    std::fs::create_dir(&*ROOT).expect("the temporary directory is writable");
    play::hostile(data, Some(&ROOT), false);
});
