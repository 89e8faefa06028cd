//! LLVM's disassembler and assembler, each run in a process of its own: damaged bitcode may end it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use gpustub_core::diag::{Diagnostic, MISSING_LLVM};

use crate::env::Env;

/// The tools of a release of LLVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Llvm {
    disassembler: PathBuf,
    assembler: PathBuf,
}

impl Llvm {
    /// Finds the tools of the oldest release that reads bitcode of `release`: `llvm-dis-15` and `llvm-dis` in PATH, and
    /// those in Debian's `/usr/lib/llvm-*`.
    pub fn find(env: &Env, release: u32) -> Result<Self, Box<Diagnostic>> {
        let mut releases = Vec::new();
        let path = env.peek("PATH").unwrap_or_default();
        let libraries = Path::new("/usr/lib");
        let debian = names(libraries, "llvm-").into_iter();
        let debian = debian.map(|name| libraries.join(name).join("bin"));
        for directory in std::env::split_paths(&path).chain(debian) {
            let suffixes = names(&directory, "llvm-dis")
                .into_iter()
                .filter_map(|name| {
                    let suffix = name.strip_prefix("llvm-dis")?.to_owned();
                    let executable = suffix.strip_suffix(".exe").unwrap_or(&suffix);
                    let is_release = executable.strip_prefix('-').is_some_and(is_number);
                    (executable.is_empty() || is_release).then_some(suffix)
                });
            for suffix in suffixes {
                let llvm = Self {
                    disassembler: directory.join(format!("llvm-dis{suffix}")),
                    assembler: directory.join(format!("llvm-as{suffix}")),
                };
                if llvm.assembler.is_file() {
                    releases.extend(llvm.release().map(|release| (release, llvm)));
                }
            }
        }
        // Stable: of equal releases the first in PATH.
        releases.sort_by_key(|(release, _)| *release);
        let newest = releases.last().map(|(newest, _)| *newest);
        let suitable = releases
            .into_iter()
            .find(|(candidate, _)| *candidate >= release);
        suitable.map(|(_, llvm)| llvm).ok_or_else(|| {
            let message = match newest {
                None => "`split` needs llvm-dis and llvm-as, which are not found".to_owned(),
                Some(newest) => format!(
                    "`split` needs llvm-dis and llvm-as of LLVM {release} or newer for bitcode of LLVM {release}, and the \
                     newest found is {newest}"
                ),
            };
            Box::new(Diagnostic::error(&MISSING_LLVM, message).help(format!(
                "install LLVM (Debian, Ubuntu: apt install llvm-{}; Fedora: dnf install llvm; macOS: brew install llvm), \
                 with its directory in PATH; or remove `split`",
                release.max(OLDEST_HELPED)
            )))
        })
    }

    /// The release that the disassembler states.
    fn release(&self) -> Option<u32> {
        let output = Command::new(&self.disassembler).arg("--version").output();
        let text = String::from_utf8_lossy(&output.ok()?.stdout).into_owned();
        release_in(text.split_once("version ")?.1)
    }

    /// The textual form of a module.
    pub fn disassemble(&self, module: &[u8]) -> Result<String, String> {
        let output = run(Command::new(&self.disassembler).args(["-o", "-"]), module);
        let bytes = self.output(&self.disassembler, output)?;
        String::from_utf8(bytes).map_err(|_| "its names are not text".to_owned())
    }

    /// Modules for texts, by several processes at a time. `progress` is called with the position of a text, not of each.
    pub fn assemble(
        &self,
        texts: &[&str],
        jobs: usize,
        progress: &dyn Fn(usize),
    ) -> Vec<Result<Vec<u8>, String>> {
        let (next, results) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = |progress: &dyn Fn(usize)| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(text) = texts.get(index) else { return };
                progress(index);
                let output = run(
                    Command::new(&self.assembler).args(["-o", "-"]),
                    text.as_bytes(),
                );
                let module = self.output(&self.assembler, output);
                if let Ok(mut results) = results.lock() {
                    results.push((index, module));
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..jobs.min(texts.len()) {
                scope.spawn(|| work(&|_| ()));
            }
            work(progress);
        });
        let mut results = results.into_inner().unwrap_or_default();
        results.sort_by_key(|(index, _)| *index);
        results.into_iter().map(|(_, module)| module).collect()
    }

    /// Output of a tool, or the first line of what it reports.
    fn output(&self, program: &Path, output: io::Result<Output>) -> Result<Vec<u8>, String> {
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let output = output.map_err(|error| format!("{name} cannot be run: {error}"))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let report = String::from_utf8_lossy(&output.stderr);
        let line = report.lines().find(|line| line.contains("error: "));
        match line.and_then(|line| line.split_once("error: ")) {
            Some((_, line)) => Err(format!("{name} reports: {line}")),
            None => Err(format!("{name} ended with {}", output.status)),
        }
    }
}

/// Release that the help names where the bitcode has none, or an older one than distributions have.
const OLDEST_HELPED: u32 = 15;

/// The release of LLVM in a producer or version: `LLVM15.0.6`, `19.1.7`.
pub fn release_in(text: &str) -> Option<u32> {
    let digits = text.trim_start_matches("LLVM").trim_start();
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..length].parse().ok()
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Names in a directory that begin with a text, sorted.
fn names(directory: &Path, start: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut names = Vec::from_iter(names.filter(|name| name.starts_with(start)));
    names.sort();
    names
}

/// Runs a command with an input.
fn run(command: &mut Command, input: &[u8]) -> io::Result<Output> {
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn()?;
    let stdin = child.stdin.take();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A tool that ends before it has read everything reports why.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        child.wait_with_output()
    })
}
