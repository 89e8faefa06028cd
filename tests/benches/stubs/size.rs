//! Bytes of stubs in a program.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::abi_table::Adapter;
use gpustub_core::by_name::ByName;
use gpustub_core::library::Library;

use super::{Bench, calls, output, record, shipped};

/// A function of each shipped library.
fn first_functions() -> Vec<String> {
    let ids = Library::builtin_ids().filter(|id| *id != "rccl");
    ids.filter_map(Library::builtin)
        .filter_map(|library| Some(library.symbols.functions_on("linux").next()?.name.clone()))
        .collect()
}

/// Functions that describe a status code: with any of them the names of the library's codes are in a program.
fn describing_functions() -> Vec<String> {
    let ids = Library::builtin_ids().filter(|id| *id != "rccl");
    let libraries = ids.filter_map(Library::builtin);
    let names = libraries.flat_map(|library| {
        let fallbacks = library.fallbacks.iter();
        let describing = fallbacks.filter(|(_, fallback)| fallback.names_error());
        let names = describing.map(|(name, _)| name.clone());
        names.collect::<Vec<_>>()
    });
    names.collect()
}

/// Functions that an adapter in C calls in some version of their library, without a version of the headers.
fn adapted() -> BTreeSet<String> {
    let libraries = Library::builtin_ids().filter_map(Library::builtin);
    let names = libraries.flat_map(|library| {
        let functions = library
            .symbols
            .functions_on("linux")
            .map(|symbol| &symbol.name);
        functions.filter(|name| {
            let mut entries = library.abi.entries(name, None).into_iter();
            entries.any(|entry| matches!(entry.adapter, Some(Adapter::Code(_))))
        })
    });
    names.cloned().collect()
}

impl Bench {
    /// Bytes per stub in a stripped program, with rustc's linker. A library's tables are in the program if one
    /// of its functions is used, and the names of its status codes if one that describes them is: stubs are counted beyond
    /// these functions.
    pub fn size(&self) {
        let (manifest, names) = shipped();
        let libraries = first_functions().len();
        let mut firsts = [first_functions(), describing_functions()].concat();
        firsts.retain(|name| names.contains(name));
        firsts.sort();
        firsts.dedup();
        let adapted = adapted();
        let simple: Vec<String> = (names.iter())
            .filter(|name| firsts.contains(name) || !adapted.contains(*name))
            .cloned()
            .collect();
        let all = self.archive("size-all", &manifest, ByName::new());
        let own = self.own_library("size-own", &names);
        let single = self.own_library("size-one", &names[..1]);
        // The calls also have a size: the same calls of functions that share one body.
        let plain = self.plain(&names);
        let used = self.weigh("size-used", &all, &names, &names);
        let most = self.weigh("size-most", &all, &names, &simple);
        let some = self.weigh("size-some", &all, &names, &firsts);
        let unused = self.weigh("size-unused", &all, &names, &[]);
        let calls = self.weigh("size-calls", &plain, &names, &names);
        let rest = self.weigh("size-rest", &plain, &names, &simple);
        let few = self.weigh("size-few", &plain, &names, &firsts);
        let none = self.weigh("size-none", &plain, &names, &[]);
        let many = self.weigh("size-many", &own, &names, &[]);
        let alone = self.weigh("size-alone", &single, &names, &[]);
        let (n, counted) = (names.len() as f64, firsts.len() as f64);
        let each = ((most - some) - (rest - few)) / (simple.len() as f64 - counted);
        let with = (names.len() - simple.len()) as f64;
        let each_adapted = ((used - most) - (calls - rest)) / with;
        println!("\n## Bytes in a stripped, position-independent program (lld, --gc-sections)\n");
        println!("| what | bytes |\n|---|---|");
        println!(
            "| a used stub, with its name of {:.1} bytes: mean of {} | {:.1} |",
            simple.iter().map(String::len).sum::<usize>() as f64 / simple.len() as f64,
            simple.len() - firsts.len(),
            each
        );
        println!("| a used stub with adapters in C: mean of {with} | {each_adapted:.0} |");
        println!("| an unused stub | {:.2} |", (many - alone) / n);
        println!(
            "| tables of {libraries} libraries that `gpustub_load` alone does not keep, with the names of all status codes | {:.0} |",
            (some - few) - (unused - none) - counted * each
        );
        println!("| the run time | {} |", alone - none);
        record("used-stub", &[("bytes", each), ("adapted", each_adapted)]);
        record("unused-stub", &[("bytes", (many - alone) / n)]);
    }

    /// Size of a program that refers to `used` of `names`; `stubs` may define all of them.
    fn weigh(&self, label: &str, stubs: &Path, names: &[String], used: &[String]) -> f64 {
        let mut text = calls(used, "gpustub_load(\"bench\")");
        // In every program, so that the difference excludes it.
        writeln!(text, "void (*volatile table[{}])(void);", names.len()).expect("a string");
        let source = self.work.join(format!("{label}.c"));
        fs::write(&source, text).expect("a file");
        let args = ["-s", "-fuse-ld=lld", "-Wl,--gc-sections"];
        let program = self.program(&format!("{label}-program"), &source, stubs, &args);
        fs::metadata(program).expect("a program").len() as f64
    }

    /// An archive of the same functions with one empty body, to measure the calls.
    fn plain(&self, names: &[String]) -> PathBuf {
        let dir = self.work.join("size-plain");
        fs::create_dir_all(&dir).expect("no parent directory");
        let mut text = String::from(
            "int gpustub_load(const char *s) { return !s; }\nstatic void body(void) {}\n",
        );
        for name in names {
            writeln!(text, "void {name}(void) __attribute__((alias(\"body\")));")
                .expect("a string");
        }
        fs::write(dir.join("plain.c"), text).expect("a file");
        output(
            Command::new("cc")
                .current_dir(&dir)
                .args(["-O2", "-fPIC", "-c", "plain.c"]),
        );
        output(Command::new("ar").current_dir(&dir).args([
            "crsD",
            "libgpustub_stubs.a",
            "plain.o",
        ]));
        dir
    }
}
