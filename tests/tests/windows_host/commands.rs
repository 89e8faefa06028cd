//! Commands that print the same as on this machine, and write the same files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::cargo::program;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::{component, only_entry};
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{compiler, windows_path};
use gpustub_tests::{Result, repository};

use crate::host::Host;

/// Words here and on Windows.
const COMMANDS: [(&str, &str); 25] = [
    ("--version", "--version"),
    ("help check", "help check"),
    ("explain tag-denied-symbol", "explain tag-denied-symbol"),
    ("schema", "schema"),
    ("man", "man"),
    ("completions powershell", "completions powershell"),
    ("check wheels", "check wheels"),
    ("check ./wheels/../wheels", r"check .\wheels\..\wheels"),
    (
        "check --message-format json wheels",
        "check --message-format json wheels",
    ),
    (
        "check --message-format sarif wheels",
        "check --message-format sarif wheels",
    ),
    ("check bin/user.dll", r"check bin\user.dll"),
    ("check bin/allowed.dll", r"check bin\allowed.dll"),
    (
        "check --message-format json {dir}/bin",
        r"check --message-format json {dir}\bin",
    ),
    ("symbols cudart.dll", "symbols cudart.dll"),
    ("symbols bin/user.dll", r"symbols bin\user.dll"),
    (
        "diff bin/user.dll cudart.dll",
        r"diff bin\user.dll cudart.dll",
    ),
    ("archive list sample.a", "archive list sample.a"),
    ("archive nm sample.a", "archive nm sample.a"),
    ("archive stats sample.a", "archive stats sample.a"),
    (
        "archive build -o all.a --view one=layers/one.a --view two=layers/two.o,layers/one.a",
        r"archive build -o all.a --view one=layers\one.a --view two=layers\two.o,layers\one.a",
    ),
    ("archive find all.a one", "archive find all.a one"),
    (
        "archive extract all.a --view two --members --out-dir out/members",
        r"archive extract all.a --view two --members --out-dir out\members",
    ),
    (
        "archive extract all.a --view two -o out/two.a",
        r"archive extract all.a --view two -o out\two.a",
    ),
    (
        "repair wheels/nvidia_cuda_runtime_cu12-12.9.79-py3-none-win_amd64.whl --out-dir out/repaired",
        r"repair wheels\nvidia_cuda_runtime_cu12-12.9.79-py3-none-win_amd64.whl --out-dir out\repaired",
    ),
    (
        "repair --partial wheels/bitsandbytes-0.50.2-py3-none-win_amd64.whl --out-dir out/repaired",
        r"repair --partial wheels\bitsandbytes-0.50.2-py3-none-win_amd64.whl --out-dir out\repaired",
    ),
];

/// The same words, after `strip -g all.a`.
const AFTER_STRIP: [(&str, &str); 3] = [
    ("archive verify all.a", "archive verify all.a"),
    ("archive refresh all.a", "archive refresh all.a"),
    ("archive verify ./all.a", r"archive verify .\all.a"),
];

/// A policy of files in the directory. A driver's DLL in the import table is `needed-driver`.
const POLICY: &str = "schema = 1\n[[policy.allow]]\nrule = \"needed-driver\"\npath = \"bin/allowed.dll\"\n\
                      reason = \"started where a driver is\"\n";

/// Files that the commands read.
fn write_inputs(dir: &Path) -> Result<()> {
    for name in ["wheels", "bin", "layers"] {
        fs::create_dir(dir.join(name))?;
    }
    for name in ["windows-cudart", "windows-bitsandbytes", "cudart"] {
        let wheel = only_entry(&component(&format!("wheels-check/{name}"))?)?;
        fs::copy(
            &wheel,
            dir.join("wheels").join(wheel.file_name().ok_or("no name")?),
        )?;
    }
    let runtime = "wheels/cudart-windows/nvidia/cu13/bin/x86_64/cudart64_13.dll";
    fs::copy(component(runtime)?, dir.join("cudart.dll"))?;
    fs::copy(
        repository().join("crates/archive/tests/sample.a"),
        dir.join("sample.a"),
    )?;
    fs::write(dir.join("GpuStub.toml"), POLICY)?;
    fs::write(
        dir.join("nvcuda.def"),
        "LIBRARY nvcuda.dll\nEXPORTS\ncuInit\n",
    )?;
    fs::write(
        dir.join("user.c"),
        "int cuInit(unsigned); __declspec(dllexport) int use(void) { return cuInit(0); }\n",
    )?;
    fs::write(dir.join("one.c"), "int one(void) { return 1; }\n")?;
    fs::write(dir.join("two.c"), "int two(void) { return 2; }\n")?;
    let tool = |program: &str, words: &str| {
        let mut command = Command::new(program);
        succeed(command.current_dir(dir).args(words.split(' ')))
    };
    tool("x86_64-w64-mingw32-dlltool", "-d nvcuda.def -l libnvcuda.a")?;
    tool(compiler("c"), "-shared -o bin/user.dll user.c libnvcuda.a")?;
    fs::copy(dir.join("bin/user.dll"), dir.join("bin/allowed.dll"))?;
    for name in ["one", "two"] {
        tool(
            "gcc",
            &format!(
                "-g -ffile-prefix-map={}=. -c {name}.c -o layers/{name}.o",
                dir.display()
            ),
        )?;
    }
    tool("ar", "rcsD layers/one.a layers/one.o layers/two.o")?;
    Ok(())
}

/// Files below a directory.
fn files(dir: &Path, prefix: &str, all: &mut BTreeMap<String, Vec<u8>>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            files(&entry.path(), &format!("{name}/"), all)?;
        } else {
            all.insert(name, fs::read(entry.path())?);
        }
    }
    Ok(())
}

/// Output without the name of the directory, and the exit code.
fn output(ran: &Ran, dir: &str) -> (String, Option<i32>) {
    let text = format!("{}\n{}", ran.stdout, ran.stderr);
    (text.replace(dir, "{dir}"), ran.status.code())
}

fn compare(host: &Host, here: &Path, commands: &[(&str, &str)]) -> Result<()> {
    let program = program("cargo-gpustub")?;
    for (words, windows_words) in commands {
        let here_name = here.display().to_string();
        let there_name = windows_path(host.dir());
        let words = words.replace("{dir}", &here_name);
        let mut native = Command::new(&program);
        native
            .current_dir(here)
            .arg("gpustub")
            .args(words.split(' '));
        let native = run(&mut native)?;
        let windows_words = windows_words.replace("{dir}", &there_name);
        let windows = host.gpustub(&windows_words.split(' ').collect::<Vec<_>>())?;
        let expected = output(&native, &here_name);
        // Names in messages have `/`.
        if output(&windows, &there_name.replace('\\', "/")) != expected {
            return Err(windows.error(&format!("not as on this machine: {expected:?}")));
        }
    }
    Ok(())
}

/// A machine without Rust and without a C compiler.
#[test]
#[ignore = "downloads a standard library: tests/run --all"]
fn heavy_missing_tools_are_named() -> Result<()> {
    let host = Host::new()?;
    fs::create_dir(host.dir().join("wheels"))?;
    let name = "bitsandbytes-0.50.2-py3-none-win_amd64.whl";
    let wheel = format!("wheels/{name}");
    let component = component("wheels-check/windows-bitsandbytes")?;
    fs::copy(component.join(name), host.dir().join(&wheel))?;
    let repair = ["repair", "--partial", &wheel, "--out-dir", "out"];
    for (words, message, help) in [
        (
            &["sync"][..],
            "could not run `cargo metadata`: program not found",
            "install Rust",
        ),
        (
            &["init"],
            "could not run `cargo metadata`: program not found",
            "install Rust",
        ),
        (
            &repair,
            "no C compiler for x86_64-pc-windows-gnu",
            "install one: MSYS2",
        ),
    ] {
        let ran = host.gpustub(words)?;
        let expected = [format!("error: {message}"), format!("help: {help}")];
        let is_named = expected.iter().all(|text| ran.stderr.contains(text));
        if ran.status.code() != Some(101) || !is_named {
            return Err(ran.error(&format!("not {expected:?}")));
        }
    }
    Ok(())
}

#[test]
#[ignore = "downloads a standard library: tests/run --all"]
fn heavy_commands_print_and_write_the_same() -> Result<()> {
    let (host, here) = (Host::new()?.with_c_compiler()?, scratch()?);
    let dirs = [host.dir(), here.path()];
    for dir in dirs {
        write_inputs(dir)?;
    }
    compare(&host, here.path(), &COMMANDS)?;
    for dir in dirs {
        succeed(Command::new("strip").current_dir(dir).args(["-g", "all.a"]))?;
    }
    compare(&host, here.path(), &AFTER_STRIP)?;
    let mut trees = [BTreeMap::new(), BTreeMap::new()];
    for (dir, tree) in dirs.into_iter().zip(&mut trees) {
        files(dir, "", tree)?;
    }
    let names = |tree: &BTreeMap<String, Vec<u8>>| tree.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&trees[0]), names(&trees[1]));
    for (name, bytes) in &trees[0] {
        // Linkers write the time into DLLs.
        assert!(name.ends_with(".dll") || *bytes == trees[1][name], "{name}");
    }
    assert!(
        trees[0].contains_key("out/members/two.o"),
        "{:?}",
        trees[0].keys()
    );
    Ok(())
}
