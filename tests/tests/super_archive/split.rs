//! Modules of bitcode that are split into members, linked again and compared with the whole.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_archive::{Closure, SuperArchive, View};
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, repository};

use crate::module_text::ModuleText;

/// Symbol of the member with constructors, and list by which other members refer to it.
const ADDED: [&str; 2] = ["__gpustub_constructors_", "llvm.compiler.used"];

/// Builds a super-archive whose views are modules that are split.
fn build(directory: &Path, words: &[&str], modules: &[(String, PathBuf)]) -> Result<Vec<u8>> {
    let file = directory.join("split.a");
    let mut command = gpustub(&["archive", "build", "-q", "--no-default-view", "--split"])?;
    command.args(words).arg("-o").arg(&file);
    for (name, module) in modules {
        command
            .arg("--view")
            .arg(format!("{name}={}", module.display()));
    }
    let ran = succeed(&mut command)?;
    if ran.stderr.contains("warning") {
        return Err(ran.error("a module is not split"));
    }
    Ok(fs::read(file)?)
}

/// Writes the members of a view, and links them.
fn link_all(directory: &Path, view: View<'_>, release: &str) -> Result<String> {
    let mut link = Command::new(format!("llvm-link-{release}"));
    for member in view.members() {
        let member = member.map_err(|e| e.to_string())?;
        let file = directory.join(format!("{}.bc", member.position()));
        fs::write(&file, member.data().map_err(|e| e.to_string())?)?;
        link.arg(file);
    }
    let linked = directory.join("linked.bc");
    succeed(link.arg("-o").arg(&linked))?;
    Ok(linked.display().to_string())
}

/// Symbols that a file defines, or that it needs.
fn symbols(file: &Path, release: &str, which: &str) -> Result<Vec<String>> {
    let mut nm = Command::new(format!("llvm-nm-{release}"));
    let ran = succeed(
        nm.args([which, "--extern-only", "--format=just-symbols"])
            .arg(file),
    )?;
    let mut symbols = Vec::from_iter(ran.stdout.lines().map(str::to_owned));
    symbols.sort();
    symbols.dedup();
    Ok(symbols)
}

fn symbols_of_view(view: View<'_>) -> Result<Vec<String>> {
    let mut symbols = Vec::new();
    for symbol in view.symbols() {
        let symbol = symbol.map_err(|e| e.to_string())?;
        symbols.push(String::from_utf8(symbol.name.to_vec())?);
    }
    symbols.sort();
    Ok(symbols)
}

/// Members that a module needs, as files.
fn closure(directory: &Path, view: View<'_>, root: &Path, release: &str) -> Result<Vec<PathBuf>> {
    let mut memory = vec![0; view.member_count()];
    let mut closure = Closure::new(view, &mut memory).ok_or("too little memory")?;
    let mut files = vec![root.to_owned()];
    let mut position = 0;
    while let Some(file) = files.get(position) {
        for symbol in symbols(file, release, "--undefined-only")? {
            closure.add(&symbol).map_err(|e| e.to_string())?;
        }
        position += 1;
        while let Some(member) = closure.next_member().map_err(|e| e.to_string())? {
            let file = directory.join(format!("{}.bc", member.position()));
            fs::write(&file, member.data().map_err(|e| e.to_string())?)?;
            files.push(file);
        }
    }
    Ok(files)
}

/// A program of modules, optimized as a whole.
fn program(files: &[PathBuf], output: &Path, release: &str) -> Result<ModuleText> {
    let mut link = Command::new(format!("llvm-link-{release}"));
    succeed(link.args(files).arg("-o").arg(output))?;
    let mut opt = Command::new(format!("opt-{release}"));
    let internal = [
        "-internalize-public-api-list=main",
        "-passes=internalize,globaldce",
    ];
    succeed(opt.args(internal).arg(output).arg("-o").arg(output))?;
    ModuleText::read(&output.display().to_string(), release)
}

/// `tests/programs/split-module.cc` with many more functions: members have a size of some kilobytes.
fn source() -> Result<String> {
    let text = fs::read_to_string(repository().join("tests/programs/split-module.cc"))?;
    let mut text = text.trim_end().trim_end_matches('}').to_owned();
    for number in 0..150 {
        writeln!(
            text,
            "int filler{number}(int x) {{ int s = {number}; for (int k = 0; k < x; k++) \
             s += second(k + s) * table[(k + {number}) & 3] + printf(\"text {}\\n\"); return s; }}\n\
             struct S{number} {{ int a; S{number} *next; }};\n\
             int sum{number}(S{number} *s) {{ int t = 0; for (; s; s = s->next) t += s->a; return t; }}",
            number % 50
        )?;
    }
    Ok(text + "}\n")
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_members_of_a_module_link_to_the_module() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let (file, module) = (directory.join("module.cc"), directory.join("module.bc"));
    fs::write(&file, source()?)?;
    let (main, main_module) = (directory.join("main.c"), directory.join("main.bc"));
    fs::write(
        &main,
        "int fifth(int), filler7(int); int main(int n, char **v) { return fifth(n) + filler7(n); }",
    )?;
    for (release, flags) in [
        ("14", &["-O1"][..]),
        ("15", &["-O0", "-g"]),
        ("19", &["-O2", "-g"]),
    ] {
        let clang = format!("clang-{release}");
        for (source, module) in [(&file, &module), (&main, &main_module)] {
            let mut clang = Command::new(&clang);
            succeed(
                clang
                    .args(flags)
                    .args(["-c", "-emit-llvm"])
                    .arg(source)
                    .arg("-o")
                    .arg(module),
            )?;
        }
        let modules = [("v".to_owned(), module.clone())];
        let bytes = build(directory, &[], &modules)?;
        let archive = SuperArchive::parse(&bytes).map_err(|e| e.to_string())?;
        let view = archive
            .view("v")
            .map_err(|e| e.to_string())?
            .ok_or("no view")?;
        assert!(view.member_count() > 5, "{} members", view.member_count());

        assert!(symbols_of_view(view)?.len() > 200);
        let is_added = |name: &&str| ADDED.iter().any(|added| name.starts_with(added));
        let whole = ModuleText::read(&module.display().to_string(), release)?;
        let linked = ModuleText::read(&link_all(directory, view, release)?, release)?;
        for differences in [whole.differences(&linked), linked.differences(&whole)] {
            let differences =
                Vec::from_iter(differences.into_iter().filter(|name| !is_added(name)));
            assert_eq!(differences, [""; 0], "LLVM {release} {flags:?}");
        }
        let kept = ["llvm.compiler.used", "llvm.used"]
            .map(|name| linked.definition(name).unwrap_or_default());
        let kept = kept.concat();
        assert!(kept.contains("section \"registry\""), "{kept}");

        let mut names = symbols_of_view(view)?;
        names.retain(|name| !is_added(&&name[..]));
        assert_eq!(
            names,
            symbols(&module, release, "--defined-only")?,
            "LLVM {release} {flags:?}"
        );

        // What a program needs, with the constructors.
        let needed = closure(directory, view, &main_module, release)?;
        assert!(
            needed.len() < view.member_count(),
            "{} members",
            needed.len()
        );
        let small = program(&needed, &directory.join("small.bc"), release)?;
        let full = [main_module.clone(), module.clone()];
        let full = program(&full, &directory.join("full.bc"), release)?;
        for differences in [small.differences(&full), full.differences(&small)] {
            let differences =
                Vec::from_iter(differences.into_iter().filter(|name| !is_added(name)));
            assert_eq!(differences, [""; 0], "LLVM {release} {flags:?}");
        }
        assert!(
            small.definition("llvm.global_ctors").is_some(),
            "LLVM {release}"
        );
    }
    Ok(())
}

/// The nine CPUs of PoCL 3.1, a finished module for each.
#[test]
#[ignore = "needs pocl-opencl-icd and llvm-15: ./tests/run"]
fn heavy_modules_of_pocl_share_their_functions() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let directory = directory.path();
    let mut modules = Vec::new();
    for entry in fs::read_dir("/usr/share/pocl")? {
        let path = entry?.path();
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if let Some(cpu) = name.strip_prefix("kernel-x86_64-pc-linux-gnu-") {
            modules.push((cpu.to_owned(), path.clone()));
        }
    }
    modules.sort();
    assert_eq!(modules.len(), 9);
    let bytes = build(directory, &["--canonical-bitcode"], &modules)?;
    let mut size = 0;
    for (_, module) in &modules {
        size += fs::metadata(module)?.len();
    }
    let ratio = bytes.len() as f64 / size as f64;
    assert!(ratio <= 0.45, "{} of {size} bytes: {ratio:.3}", bytes.len());
    let archive = SuperArchive::parse(&bytes).map_err(|e| e.to_string())?;
    archive.verify().map_err(|e| e.to_string())?;
    let mut count = 0;
    for (cpu, module) in &modules {
        let view = archive
            .view(cpu)
            .map_err(|e| e.to_string())?
            .ok_or("no view")?;
        let names = symbols_of_view(view)?;
        assert_eq!(names, symbols(module, "15", "--defined-only")?, "{cpu}");
        count += names.len();
        let whole = ModuleText::read(&module.display().to_string(), "15")?;
        let linked = ModuleText::read(&link_all(directory, view, "15")?, "15")?;
        assert_eq!(whole.differences(&linked), [""; 0], "{cpu}");
        assert_eq!(linked.differences(&whole), [""; 0], "{cpu}");
        println!(
            "{cpu}: {} members, {} definitions",
            view.member_count(),
            names.len()
        );
    }
    println!(
        "{} of {size} bytes: {ratio:.3}; {count} symbols",
        bytes.len()
    );
    assert!(count > 200_000, "{count} symbols");
    Ok(())
}
