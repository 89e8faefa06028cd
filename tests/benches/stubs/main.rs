//! Cost budgets of a stub, compared with its alternatives. `BENCHMARKS.md` has the last results of
//! `cargo bench -p gpustub-tests --bench stubs`, which prints figures and asserts no time. Words after `--`
//! choose parts: `call`, `size`, `bind`, `start`, `linked`.

mod linked;
mod size;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::by_name::ByName;
use gpustub_core::diag::has_errors;
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::Inputs;
use gpustub_core::planner::plan;
use gpustub_core::sources::render;
use gpustub_core::target::Target;
use gpustub_engine::toolchain::{Index, Toolchain};
use gpustub_tests::components;
use gpustub_tests::measure::{least, median};

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

fn main() {
    let work = components::target_dir().join("bench-stubs");
    fs::create_dir_all(&work).expect("a directory below target/");
    let bench = Bench {
        sources: Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/c"),
        work,
    };
    type Part = (&'static str, fn(&Bench));
    let parts: [Part; 5] = [
        ("call", Bench::call),
        ("size", Bench::size),
        ("bind", Bench::bind),
        ("start", Bench::start),
        ("linked", Bench::linked),
    ];
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_any_named = parts
        .iter()
        .any(|(name, _)| words.iter().any(|word| word == name));
    for (name, measure) in parts {
        if !is_any_named || words.iter().any(|word| word == name) {
            measure(&bench);
        }
    }
}

struct Bench {
    sources: PathBuf,
    work: PathBuf,
}

/// Runs a command and returns its standard output.
fn output(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{command:?}\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    text
}

/// Number of instructions that a run under callgrind reports; `None` without valgrind.
fn collected(callgrind: &mut Command) -> Option<f64> {
    let run = callgrind.output().ok()?;
    let text = String::from_utf8_lossy(&run.stderr).into_owned();
    text.lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
}

fn numbers(line: &str) -> Vec<f64> {
    line.split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

/// Records figures of a row of `budgets.toml`.
fn record(row: &str, figures: &[(&str, f64)]) {
    gpustub_tests::measure::record(row, figures).expect("figures are written");
}

/// A manifest with every shipped library, and the names of all its functions. RCCL has NCCL's names.
fn shipped() -> (String, Vec<String>) {
    let mut manifest = String::from("schema = 1\n");
    let mut names = Vec::new();
    for id in Library::builtin_ids().filter(|id| *id != "rccl") {
        writeln!(manifest, "[stub.{id}]\nheader-version = \"none\"").expect("a string");
        let library = Library::builtin(id).expect("a shipped library");
        names.extend(
            library
                .symbols
                .functions_on("linux")
                .map(|s| s.name.clone()),
        );
    }
    names.sort();
    (manifest, names)
}

/// Source of a program with calls of these functions, none of which run.
fn calls(functions: &[String], result: &str) -> String {
    let mut text = String::from("int gpustub_load(const char *);\n");
    for name in functions {
        writeln!(text, "void {name}(void);").expect("a string");
    }
    text.push_str("int main(int argc, char **argv) { (void)argv; switch (argc) {\n");
    for (i, name) in functions.iter().enumerate() {
        writeln!(text, "case {}: {name}(); break;", i + 1000).expect("a string");
    }
    writeln!(text, "}} return {result}; }}").expect("a string");
    text
}

impl Bench {
    /// Stubs of one library of these functions, as an archive. Returns its directory.
    fn own_library(&self, name: &str, functions: &[String]) -> PathBuf {
        let manifest = "schema = 1\n[stub.bench]\nload-names = { linux = [\"libbench.so.1\"] }\n\
                        symbols = \"bench.symbols\"\nfallback = { status = 1 }\n";
        let mut sorted = functions.to_vec();
        sorted.sort();
        let mut symbols = String::from("@gpustub-symbols 1\n");
        for function in &sorted {
            writeln!(symbols, "{function} returns=status").expect("a string");
        }
        self.archive(
            name,
            manifest,
            [("bench.symbols".to_owned(), symbols)]
                .into_iter()
                .collect(),
        )
    }

    fn archive(&self, name: &str, manifest: &str, symbol_files: ByName<String>) -> PathBuf {
        let dir = self.work.join(name);
        fs::create_dir_all(&dir).expect("no parent directory");
        let target = Target::from_triple(TRIPLE).expect("a known triple");
        let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", manifest);
        assert!(!has_errors(&diagnostics), "{diagnostics:?}");
        let inputs = Inputs {
            symbol_files,
            ..Inputs::default()
        };
        let (plan, diagnostics) = plan(&manifest, &target, &inputs);
        assert!(!has_errors(&diagnostics), "{diagnostics:?}");
        gpustub_engine::write_sources(&dir, &render(&plan)).expect("sources are written");
        // As in the profiles of programs that are shipped.
        let tools = Toolchain::find(&target, TRIPLE, &dir, None, None)
            .expect("a C compiler")
            .optimised();
        tools
            .static_library(&dir, &dir.join("libgpustub_stubs.a"), Index::Write)
            .expect("the sources compile");
        dir
    }

    /// Compiles a C file of `benches/c` against the stubs of `stubs`.
    fn program(&self, name: &str, source: &Path, stubs: &Path, args: &[&str]) -> PathBuf {
        let program = self.work.join(name);
        output(
            Command::new("cc")
                .args(["-O2", "-fPIE", "-pie", "-o"])
                .arg(&program)
                .arg(source)
                .arg("-I")
                .arg(stubs)
                .arg(stubs.join("libgpustub_stubs.a"))
                .args(args),
        );
        program
    }

    /// One warm call.
    fn call(&self) {
        let functions = ["benchStub", "benchMissing"].map(str::to_owned);
        let stubs = self.own_library("call", &functions);
        let library = self.work.join("libbenchcallee.so");
        output(
            Command::new("cc")
                .args(["-O2", "-shared", "-fPIC", "-o"])
                .arg(&library)
                .arg(self.sources.join("callee.c")),
        );
        let program = self.program(
            "percall",
            &self.sources.join("percall.c"),
            &stubs,
            &[library.to_str().expect("UTF-8")],
        );
        // The addresses of the images change a call by a cycle or two: many processes.
        let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for _ in 0..21 {
            let lines = output(Command::new(&program).arg(&library));
            for (road, time) in lines.lines().filter_map(|line| line.split_once(' ')) {
                let time = time.parse().expect("a number");
                times.entry(road.to_owned()).or_default().push(time);
            }
        }
        println!("## A warm call\n");
        println!("| path | ns, median | ns, least | median against the PLT | instructions |");
        println!("|---|---|---|---|---|");
        let plt = median(times["plt"].clone());
        for road in ["plt", "stub", "pointer", "missing"] {
            let middle = median(times[road].clone());
            let least = least(&times[road]);
            let instructions = self.instructions(&program, &library, road);
            println!(
                "| {road} | {middle:.2} | {least:.2} | {:.3} | {instructions:.2} |",
                middle / plt
            );
        }
        let instructions = |path| self.instructions(&program, &library, path);
        println!("| absent | | | | {:.2} |", instructions("absent"));
        let ratio = median(times["stub"].clone()) / plt;
        let stub = instructions("stub");
        let more = stub - instructions("plt");
        record("warm-call", &[("ratio", ratio), ("instructions", more)]);
        let figures = ["missing", "absent"].map(|path| (path, instructions(path) - stub));
        record("missing-call", &figures);
    }

    /// Instructions of one call with its loop and callee, by callgrind. Not a number without valgrind.
    fn instructions(&self, program: &Path, library: &Path, road: &str) -> f64 {
        let count = |calls: &str| -> Option<f64> {
            collected(
                Command::new("valgrind")
                    .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                    .arg(program)
                    .arg(library)
                    .args([road, calls]),
            )
        };
        match (count("100000"), count("200000")) {
            (Some(one), Some(two)) => (two - one) / 100_000.0,
            _ => f64::NAN,
        }
    }

    /// Binding every function of a library that is already loaded.
    fn bind(&self) {
        println!("\n## Binding all functions of a loaded library\n");
        let library = match components::wheel_libraries("cublas") {
            Ok(directory) => directory.join("libcublas.so.12"),
            Err(error) => return println!("not measured: {error:?}"),
        };
        let list =
            gpustub_image::read_symbols_file(&library, Default::default()).expect("a symbol list");
        let names: Vec<String> = list.functions().map(|s| s.name.clone()).collect();
        let stubs = self.own_library("bind", &names);
        let mut used = String::new();
        for name in &names {
            writeln!(used, "void {name}(void);").expect("a string");
        }
        writeln!(
            used,
            "void (*volatile bench_used[])(void) = {{ {} }};",
            names.join(", ")
        )
        .expect("a string");
        writeln!(
            used,
            "const char *const bench_names[] = {{ \"{}\", 0 }};",
            names.join("\", \"")
        )
        .expect("a string");
        let source = self.work.join("bind-used.c");
        fs::write(&source, used).expect("a file");
        let list = self.work.join("bind-names");
        fs::write(&list, names.join("\n")).expect("a file");
        let main = self.sources.join("bind.c");
        let program = self.program(
            "bind-all",
            &source,
            &stubs,
            // As rustc links.
            &[main.to_str().expect("UTF-8"), "-Wl,-z,now"],
        );
        let modes = [None, Some("plain-first"), Some("sealed")];
        let mut runs = [const { Vec::new() }; 3];
        for i in 0..60 {
            let mut run = Command::new(&program);
            run.arg(&library).arg(&list).args(modes[i % 3]);
            runs[i % 3].push(numbers(&output(&mut run)));
        }
        let of = |runs: &[&Vec<Vec<f64>>], k: usize| -> (f64, f64) {
            let runs = runs.iter().flat_map(|runs| runs.iter());
            let values: Vec<f64> = runs.map(|run| run[k] / 1000.0).collect();
            let least = least(&values);
            (median(values), least)
        };
        let [first, second, third] = &runs;
        println!(
            "| {} functions of cublas | µs, median | µs, least |\n|---|---|---|",
            first[0][2]
        );
        let row = |what: &str, (median, least): (f64, f64)| {
            println!("| {what} | {median:.0} | {least:.0} |");
        };
        let ratio = |what: &str, a: (f64, f64), b: (f64, f64)| {
            println!("| {what} | {:.2} | {:.2} |", a.0 / b.0, a.1 / b.1);
        };
        let (stub, plain) = (of(&[first, second], 0), of(&[first, second], 1));
        row("gpustub_load: search, bind, seal", stub);
        row("plain dlsym of the same names", plain);
        ratio("ratio", stub, plain);
        let (stub, plain, sealed) = (of(&[first], 0), of(&[second], 1), of(&[third], 1));
        row("gpustub_load, first in its process", stub);
        row("plain dlsym, first in its process", plain);
        row("the same into a table that becomes read-only", sealed);
        ratio("ratio to plain dlsym", stub, plain);
        ratio("ratio to the read-only table", stub, sealed);
        let mut counts = Vec::new();
        for (what, function) in [("gpustub_load", "gpustub_load"), ("plain dlsym", "plain")] {
            let count = collected(
                Command::new("valgrind")
                    .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
                    .arg(format!("--toggle-collect={function}"))
                    .arg(&program)
                    .args([&library, &list]),
            );
            let count = count.unwrap_or(f64::NAN);
            println!("| {what}, instructions | {count} | |");
            counts.push(count);
        }
        let all = [of(&[first, second], 0), of(&[first, second], 1)];
        let figures = [
            ("median", all[0].0 / all[1].0),
            ("least", all[0].1 / all[1].1),
            ("first-median", stub.0 / plain.0),
            ("first-least", stub.1 / plain.1),
            ("instructions", counts[0] / counts[1]),
        ];
        record("binding", &figures);
    }

    /// Starting a program with stubs, compared with an empty one.
    fn start(&self) {
        let (manifest, names) = shipped();
        let stubs = self.archive("start", &manifest, ByName::new());
        let program = |name: &str, functions: &[String]| {
            let source = self.work.join(format!("{name}.c"));
            fs::write(&source, calls(functions, "0")).expect("a file");
            let args = ["-s", "-fuse-ld=lld", "-Wl,--gc-sections"];
            self.program(&format!("{name}-program"), &source, &stubs, &args)
        };
        let empty = program("start-empty", &[]);
        let spawn = self.program("spawn", &self.sources.join("spawn.c"), &stubs, &[]);
        println!("\n## Start-up, in turn with an empty program\n");
        println!("| stubs | µs, least | empty | ratio | ratio of medians |");
        println!("|---|---|---|---|---|");
        for used in [0, 1, 100, names.len()] {
            let full = program(&format!("start-{used}"), &names[..used]);
            let lines = output(Command::new(&spawn).arg(&full).arg(&empty).arg("2000"));
            let rows: Vec<Vec<f64>> = lines.lines().map(numbers).collect();
            let [(median, least), (empty_median, empty_least)] =
                [(rows[0][0], rows[0][1]), (rows[1][0], rows[1][1])];
            println!(
                "| {used} | {least} | {empty_least} | {:.3} | {:.3} |",
                least / empty_least,
                median / empty_median
            );
            if used == 0 {
                let ratios = [
                    ("least", least / empty_least),
                    ("median", median / empty_median),
                ];
                record("start", &ratios);
            }
        }
    }
}
