//! Relocatable CUDA code in packages, built by cargo and the real nvcc: registrations at program
//! start, incremental builds, and refused graphs.

mod clang;
mod counts;
mod example;
mod forms;
mod fresh;
mod graphs;
mod install;
mod later_gpus;
mod launches;
mod lto;
mod modules;
mod recipes;
mod requested;
mod sources;
mod store;
mod variables;
mod visibility;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, succeed};

/// Calls of a recording runtime by a program of this machine.
struct Record {
    ran: Ran,
    lines: Vec<String>,
}

impl Record {
    /// Runs a command with the runtime of this file.
    fn run(command: &mut Command, runtime: &Path) -> Result<Self> {
        let directory = runtime.parent().unwrap_or(runtime);
        command.env("GPUSTUB_CUDART_PATH", runtime);
        command.env("LD_LIBRARY_PATH", directory);
        let ran = succeed(command)?;
        let lines = (ran.stderr.lines())
            .filter_map(|line| Some(line.strip_prefix("record ")?.to_owned()))
            .collect();
        Ok(Self { ran, lines })
    }

    /// Words after `kind` of each line that starts with it.
    fn words(&self, kind: &str) -> Vec<Vec<&str>> {
        let mut records = Vec::new();
        for line in &self.lines {
            let mut words = line.split(' ');
            if words.next() == Some(kind) {
                records.push(words.collect());
            }
        }
        records
    }

    /// Checks that each image has one device link: it opens one fat binary and registers each of
    /// its kernels once; no unregistered object is used, and `launched` of the kernels are
    /// launched. `images` are files' names, each with its kernels.
    fn expect(&self, images: &[(&str, &[&str])], launched: usize) -> Result<()> {
        let mut opened: Vec<_> = self.words("open").iter().map(|w| image(w[1])).collect();
        let mut functions: Vec<_> = self
            .words("function")
            .iter()
            // libcudadevrt has 32 kernels of its own.
            .filter(|words| !words[2].contains("_cuda_device_runtime_cu_"))
            .map(|words| (image(words[1]), plain(words[2])))
            .collect();
        let mut expected = Vec::new();
        for (image, kernels) in images {
            for kernel in *kernels {
                expected.push(((*image).to_owned(), (*kernel).to_owned()));
            }
        }
        let mut names: Vec<_> = images.iter().map(|(name, _)| (*name).to_owned()).collect();
        opened.sort();
        names.sort();
        functions.sort();
        expected.sort();
        let launches: BTreeSet<_> = self
            .words("launch")
            .iter()
            .map(|w| w[0].to_owned())
            .collect();
        let unknown = self.words("UNKNOWN");
        if opened == names
            && functions == expected
            && launches.len() == launched
            && unknown.is_empty()
        {
            return Ok(());
        }
        Err(self.ran.error(&format!(
            "expected {expected:?}, each once, {launched} launched\n\
             opened {opened:?}, functions {functions:?}, launched {launches:?}, unknown {unknown:?}"
        )))
    }
}

/// Image of an address, `IMAGE+OFFSET`.
fn image(address: &str) -> String {
    address.split('+').next().unwrap_or(address).to_owned()
}

/// Name of a kernel in C++ without its namespace and types: `_Z4areajPd` is `area`.
fn plain(mangled: &str) -> String {
    let rest = mangled.strip_prefix("_Z").unwrap_or(mangled);
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length: usize = rest[..digits].parse().unwrap_or(0);
    rest.get(digits..digits + length).unwrap_or(rest).to_owned()
}
