//! Ctrl-C in a console.

use std::fs;
use std::io::Write;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use gpustub_tests::Result;
use gpustub_tests::wine::{PROGRAM, variables, windows_path};

use crate::host::Host;

/// End of text, which consoles take for Ctrl-C.
const CTRL_C: &[u8] = b"\x03";

/// Maximum waits, for the compiler and for the end of the run. The compiler waits longer than the second.
const MAX_START: Duration = Duration::from_secs(300);
const MAX_END: Duration = Duration::from_secs(60);

#[test]
#[ignore = "downloads a standard library: tests/run --all"]
fn heavy_interrupted_runs_remove_their_temporary_directories() -> Result<()> {
    let host = Host::new()?;
    let compiler = host.program("waiting.exe");
    host.compile("programs/windows/waiting-compiler.c", &compiler)?;
    let temporary = host.dir().join("temporary");
    fs::create_dir(&temporary)?;
    let launch = host.program("launch.exe");
    host.compile("programs/windows/launch.c", &launch)?;
    let temporary_name = windows_path(&temporary);
    let program = windows_path(&host.program("cargo-gpustub.exe"));
    let launch = launch.display();
    let line = format!("exec {PROGRAM} {launch} '{temporary_name}' '{program} gpustub doctor'");
    // A terminal, in which wine makes a console.
    let mut script = Command::new("script");
    script.env_clear().envs(variables()?).env("TERM", "xterm");
    script
        .env("CC", windows_path(&compiler))
        .env("SHELL", "/bin/sh");
    script
        .current_dir(host.dir())
        .args(["-qec", &line, "/dev/null"]);
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut keys = child.stdin.take().ok_or("no input")?;
    let started = host.dir().join("started");
    let begin = Instant::now();
    while !started.exists() && begin.elapsed() < MAX_START && child.try_wait()?.is_none() {
        sleep(Duration::from_millis(20));
    }
    let entries = || -> Result<usize> { Ok(fs::read_dir(&temporary)?.count()) };
    assert!(
        started.exists() && entries()? == 1,
        "the compiler was not started"
    );
    keys.write_all(CTRL_C)?;
    keys.flush()?;
    let begin = Instant::now();
    let ended = host.dir().join("ended");
    while !ended.exists() && begin.elapsed() < MAX_END {
        sleep(Duration::from_millis(20));
    }
    let is_ended = ended.exists();
    drop(keys);
    child.wait()?;
    assert!(is_ended, "the run was not interrupted");
    assert_eq!(entries()?, 0, "a temporary directory stays");
    Ok(())
}
