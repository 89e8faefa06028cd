//! `tests/programs/archive-walk.c`, which reads with the C header.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, Weak};

use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::wine;
use gpustub_tests::{Result, repository};
use tempfile::TempDir;

/// Directory of the header.
pub fn include() -> PathBuf {
    repository().join("crates/archive/c")
}

/// The compiled program.
pub struct Walker {
    dir: TempDir,
    machine: Machine,
}

/// Machine of a program.
#[derive(Clone, Copy)]
pub enum Machine {
    Native,
    /// The program that emulates it.
    Emulated(&'static str),
    Windows,
}

impl Walker {
    /// Checked by sanitizers: of addresses, of undefined behaviour. Tests that run at the same time share it.
    pub fn checked() -> Result<Arc<Self>> {
        static SHARED: Mutex<Weak<Walker>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().map_err(|_| "another test panicked")?;
        if let Some(walker) = shared.upgrade() {
            return Ok(walker);
        }
        let walker = Arc::new(Self::compile(&[
            "gcc",
            "-std=c99",
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
        ])?);
        *shared = Arc::downgrade(&walker);
        Ok(walker)
    }

    /// `compiler`: a command with its options.
    pub fn compile(compiler: &[&str]) -> Result<Self> {
        Self::compile_with(compiler, &[])
    }

    /// `libraries`: words after the source.
    pub fn compile_with(compiler: &[&str], libraries: &[&str]) -> Result<Self> {
        let dir = scratch()?;
        let walker = Self {
            dir,
            machine: Machine::Native,
        };
        let mut compile = Command::new(compiler[0]);
        compile.args(&compiler[1..]).arg("-I").arg(include());
        compile.arg("-o").arg(walker.program());
        compile.arg(repository().join("tests/programs/archive-walk.c"));
        succeed(compile.args(libraries))?;
        Ok(walker)
    }

    /// The program on its machine.
    pub fn on(self, machine: Machine) -> Self {
        Self { machine, ..self }
    }

    fn program(&self) -> PathBuf {
        self.dir.path().join("walk")
    }

    /// Runs it with these words and this input.
    pub fn run(&self, words: &[&Path], input: Vec<u8>) -> Result<String> {
        let mut command = match self.machine {
            Machine::Native => Command::new(self.program()),
            Machine::Emulated(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(self.program());
                command
            }
            // GCC for Windows adds the extension.
            Machine::Windows => wine(&self.program().with_extension("exe"))?,
        };
        command.args(words).stdin(Stdio::piped());
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("no input")?;
        let writer = std::thread::spawn(move || stdin.write_all(&input));
        let output = child.wait_with_output()?;
        writer.join().map_err(|_| "the writer panicked")??;
        let text = String::from_utf8(output.stdout)?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let end = text.lines().rev().take(3).collect::<Vec<_>>();
            return Err(format!(
                "{:?} ended with {}: {errors}\nafter {end:?}",
                command, output.status
            )
            .into());
        }
        Ok(text)
    }

    /// Answers about each file.
    pub fn walk<'f>(&self, files: impl IntoIterator<Item = &'f [u8]>) -> Result<Vec<String>> {
        let mut input = Vec::new();
        for file in files {
            input.extend((file.len() as u64).to_le_bytes());
            input.extend(file);
        }
        let text = self.run(&[], input)?;
        let mut answers: Vec<_> = text.split("\n.\n").map(|one| format!("{one}\n")).collect();
        answers.pop();
        Ok(answers)
    }
}
