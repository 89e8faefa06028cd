//! Signals that end the process: temporary files are removed first.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use gpustub_workspace::temporary;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Removes temporary files when a signal ends the process, which then ends by the signal: shells report 130 for Ctrl-C and
/// 143 for SIGTERM. A write beyond the limit of the file size returns an error.
pub fn handle_signals() {
    // Without a handler the temporary files stay until the next run.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let ignored = ignored_signals();
    let ending = [SIGHUP, SIGINT, SIGTERM].into_iter();
    let Ok(mut signals) = Signals::new(ending.filter(|signal| ignored >> (signal - 1) & 1 == 0))
    else {
        return;
    };
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            temporary::remove_all();
            let _ = emulate_default_handler(signal);
        }
    });
}

/// Signals that the parent ignores, as a bit set: `nohup` ignores SIGHUP, and shells SIGINT of a background job
/// (proc_pid_status(5), `SigIgn`). 0 where the system does not say.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
