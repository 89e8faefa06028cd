//! Programs that are linked with libraries, or with their stubs.

use std::fs;
use std::process::Command;

use gpustub_core::by_name::ByName;
use gpustub_tests::components;

use super::{Bench, calls, numbers, output, record};

impl Bench {
    /// A program that is linked with six libraries of CUDA 12, and calls none of them.
    pub fn linked(&self) {
        println!("\n## Start-up of a program linked with six libraries of CUDA, in turn\n");
        let libraries = [
            (
                "cudart",
                "cudart-12.9",
                "libcudart.so.12",
                "cudaGetDeviceCount",
            ),
            ("cublas", "cublas", "libcublas.so.12", "cublasCreate_v2"),
            ("cufft", "cufft-12.9", "libcufft.so.11", "cufftPlan1d"),
            (
                "cusolver",
                "cusolver-12.9",
                "libcusolver.so.11",
                "cusolverDnCreate",
            ),
            ("nvrtc", "nvrtc-12.9", "libnvrtc.so.12", "nvrtcVersion"),
            (
                "cusparse",
                "cusparse-12.9",
                "libcusparse.so.12",
                "cusparseCreate",
            ),
        ];
        let names = libraries.map(|(.., function)| function.to_owned());
        let source = self.work.join("linked.c");
        fs::write(&source, calls(&names, "0")).expect("a file");
        let tables = libraries.map(|(id, ..)| format!("[stub.{id}]\nheader-version = \"12.9\"\n"));
        let manifest = format!("schema = 1\n{}", tables.concat());
        let stubs = self.archive("linked", &manifest, ByName::new());
        let args = ["-s", "-fuse-ld=lld", "-Wl,--gc-sections"];
        let stubbed = self.program("linked-stubs", &source, &stubs, &args);
        let direct = self.work.join("linked-direct");
        let mut cc = Command::new("cc");
        // lld would report what the libraries need of others.
        cc.args(["-O2", "-s", "-Wl,--allow-shlib-undefined", "-o"])
            .arg(&direct)
            .arg(&source);
        for (_, component, file, _) in libraries {
            match components::wheel_libraries(component) {
                Ok(directory) => cc.arg(directory.join(file)),
                Err(error) => return println!("not measured: {error:?}"),
            };
        }
        // cusolver and cusparse need nvjitlink, too; an rpath is not for what libraries need.
        let components = libraries.map(|(_, component, ..)| component);
        let directories = (components.into_iter().chain(["nvjitlink-12.9"]))
            .map(|component| components::wheel_libraries(component).expect("a component"));
        let path = std::env::join_paths(directories).expect("directories without colons");
        output(&mut cc);
        let spawn = self.program("spawn", &self.sources.join("spawn.c"), &stubs, &[]);
        let mut spawn = Command::new(spawn);
        spawn
            .arg(&stubbed)
            .arg(&direct)
            .arg("20")
            .env("LD_LIBRARY_PATH", path);
        let lines = output(&mut spawn);
        println!("| path | ms, median | ms, least | MB in memory |\n|---|---|---|---|");
        let mut rows = Vec::new();
        for (path, line) in ["stubs", "linked directly"].iter().zip(lines.lines()) {
            let [median, least, memory] = numbers(line)[..] else {
                panic!("{line}");
            };
            println!(
                "| {path} | {:.2} | {:.2} | {:.1} |",
                median / 1000.0,
                least / 1000.0,
                memory * 1024.0 / 1e6
            );
            rows.push([median, least, memory]);
        }
        let ratio = |figure: usize| rows[0][figure] / rows[1][figure];
        let figures = [
            ("median", ratio(0)),
            ("least", ratio(1)),
            ("memory", ratio(2)),
        ];
        record("linked", &figures);
    }
}
