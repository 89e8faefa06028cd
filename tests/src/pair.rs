//! Two programs of the same objects, one with stubs and one linked with the library, and a library
//! that records the calls of both.

use std::path::{Path, PathBuf};

use crate::Result;
use crate::command::Ran;
use crate::elf::{Row, needed, symbols};
use crate::isolated::Isolated;
use crate::nvcc::{Toolkit, With, recorder};
use crate::scratch::scratch;

/// Directory of the libraries on a machine.
const LIBRARIES: &str = "/libraries";

const LIBRARY_PATH: (&str, &str) = ("LD_LIBRARY_PATH", LIBRARIES);

/// A machine with these CUDA libraries only.
pub fn machine(libraries: &[&Path]) -> Result<Isolated> {
    let machine = Isolated::new()?;
    for library in libraries {
        let name = library.file_name().unwrap_or_default().to_string_lossy();
        machine.install(library, &format!("{LIBRARIES}/{name}"))?;
    }
    Ok(machine)
}

/// Major of a version.
pub fn major(version: &str) -> Result<u32> {
    Ok(version.split('.').next().unwrap_or(version).parse()?)
}

/// Runs a program, which finds the machine's libraries and must succeed.
pub fn run(machine: &Isolated, program: &str, variables: &[(&str, &str)]) -> Result<Ran> {
    machine
        .run(program, &[&[LIBRARY_PATH], variables].concat())?
        .success()
}

// ---- recorded calls ---------------------------------------------------------------------------

/// Calls that a recording library printed, with each address in `image` replaced by its symbol: two
/// programs of the same objects differ only in their addresses.
pub fn recorded(text: &str, image: &Path) -> Result<Vec<String>> {
    let mut rows = symbols("--symbols", image)?;
    rows.retain(|row| row.section != "UND" && ["FUNC", "OBJECT"].contains(&&row.kind[..]));
    let mut calls = Vec::new();
    for line in text.lines() {
        let Some(call) = line.strip_prefix("record ") else {
            continue;
        };
        let mut words = Vec::new();
        for word in call.split(' ') {
            words.push(match word.split_once("+0x") {
                Some((_, offset)) => symbolic(&rows, offset)?,
                None => word.to_owned(),
            });
        }
        calls.push(words.join(" "));
    }
    Ok(calls)
}

/// Symbol at an offset, and the offset within it. Objects may each have a local symbol of the same
/// name: these are numbered by address, which is the order of linking.
fn symbolic(rows: &[Row], offset: &str) -> Result<String> {
    let address = u64::from_str_radix(offset, 16)?;
    let Row { name, value, .. } = rows
        .iter()
        .find(|row| (row.value..row.value + row.size).contains(&address))
        .ok_or(format!("no symbol at {offset}"))?;
    let number = rows
        .iter()
        .filter(|row| row.name == *name && row.value < *value)
        .count();
    Ok(format!("{name}#{number}+{}", address - value))
}

/// Number of lines that start with a word.
pub fn count(lines: &[String], word: &str) -> usize {
    lines
        .iter()
        .filter(|line| line.split(' ').next() == Some(word))
        .count()
}

/// Programs of a toolkit, with stubs and with a recording library of its major.
#[derive(Debug)]
pub struct Pair {
    /// Directory of the programs.
    pub dir: tempfile::TempDir,
    /// Path of the library.
    pub library: PathBuf,
    /// Path of the program with stubs.
    pub stubbed: PathBuf,
    /// Path of the program linked with the library.
    pub direct: PathBuf,
}

impl Pair {
    /// Links the program of a toolkit.
    pub fn new(toolkit: Toolkit) -> Result<Self> {
        let dir = scratch()?;
        let compiled = toolkit.compiled()?;
        let library = recorder(dir.path(), major(toolkit.version)?)?;
        let (stubbed, direct) = (dir.path().join("stubbed"), dir.path().join("direct"));
        compiled.program(&stubbed, With::Stubs)?;
        compiled.program(&direct, With::Library(&library))?;
        // Otherwise the comparison would be of a program with itself.
        assert!(
            needed(&direct)?
                .iter()
                .any(|name| name.starts_with("libcudart"))
        );
        assert!(!needed(&stubbed)?.iter().any(|name| name.contains("cud")));
        Ok(Self {
            dir,
            library,
            stubbed,
            direct,
        })
    }

    /// As [`Self::new`], for a program that [`crate::nvcc`] links in both ways.
    pub fn other(
        make: impl Fn(&Path, &Path) -> Result<[PathBuf; 2]>,
        library: impl Fn(&Path) -> Result<PathBuf>,
    ) -> Result<Self> {
        let dir = scratch()?;
        let library = library(dir.path())?;
        let [stubbed, direct] = make(dir.path(), &library)?;
        Ok(Self {
            dir,
            library,
            stubbed,
            direct,
        })
    }

    /// Runs both programs; their output and their calls of the library must be equal.
    pub fn same(&self, variables: &[(&str, &str)]) -> Result<(Ran, Vec<String>)> {
        let direct = self.run(&self.direct, variables)?;
        let stubbed = self.run(&self.stubbed, variables)?;
        let expected = recorded(&direct.stderr, &self.direct)?;
        let calls = recorded(&stubbed.stderr, &self.stubbed)?;
        if calls != expected || stubbed.stdout != direct.stdout {
            return Err(stubbed.error(&format!(
                "not as linked directly; expected:\n{}\n{}\nfound:\n{}\n",
                expected.join("\n"),
                direct.stdout,
                calls.join("\n")
            )));
        }
        Ok((stubbed, calls))
    }

    /// Runs a program on a machine whose only CUDA library is this one.
    pub fn run(&self, program: &Path, variables: &[(&str, &str)]) -> Result<Ran> {
        let machine = machine(&[&self.library])?;
        machine.install(program, "/app")?;
        run(&machine, "/app", variables)
    }
}
