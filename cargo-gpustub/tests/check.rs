//! Every rule of `cargo gpustub check`, broken and kept: `tests/check/<rule>/{bad,good}*.toml`.
//!
//! A case lists its files and compiles images, because rules are about the real output of linkers.
//! The test then runs the check as a user would, and compares its output.
//! `BLESS=1` rewrites `expect`.

#[path = "support/pack.rs"]
mod pack;
#[path = "support/pe.rs"]
mod pe;
#[path = "check/workspace.rs"]
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_check::RULES;
use libtest_mimic::{Arguments, Failed, Trial};
use serde::Deserialize;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Case file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    /// Name of the checked directory or archive (`*.whl`, `*.zip`, `*.crate`, `*.a`, `*.rlib`).
    #[serde(default = "directory")]
    name: String,
    /// Checks these paths instead, which begin with `name`.
    #[serde(default)]
    paths: Vec<String>,
    /// Options of the command, for rules that are off by default.
    #[serde(default)]
    options: Vec<String>,
    /// Output with `--message-format short`.
    #[serde(default)]
    expect: Vec<String>,
    /// Text files, by path in the package.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// Adds an incompressible member of this many bytes to the archive.
    padding: Option<usize>,
    /// Programs and libraries, by path in the package.
    #[serde(default)]
    images: BTreeMap<String, Recipe>,
    /// Programs and DLLs of Windows, by path in the package.
    #[serde(default)]
    dlls: BTreeMap<String, pe::Recipe>,
    /// Checks the workspace of these files, see `workspace.rs`.
    #[serde(default)]
    workspace: Option<workspace::Workspace>,
    /// Further members of the archive, in this order, with arbitrary names.
    #[serde(default)]
    raw: Vec<Raw>,
}

/// Unmodified member of an archive.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    name: String,
    text: String,
}

/// Source and compiler flags of an image.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Recipe {
    /// C code in addition to that of the other keys.
    #[serde(default)]
    code: String,
    /// `DT_NEEDED`, and the functions that are called of each library: `name` or `name@VERSION`.
    #[serde(default)]
    needs: BTreeMap<String, Vec<String>>,
    /// Name in `DT_NEEDED` that afterwards loses its `lib`, but keeps it in the version needs, as
    /// after tools that rename in one section only.
    renamed: Option<String>,
    /// Flags for the compiler, unchanged.
    #[serde(default)]
    flags: Vec<String>,
}

fn directory() -> String {
    "demo".into()
}

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check");
    let mut trials = vec![Trial::test("every_rule_has_its_cases", {
        let root = root.clone();
        move || every_rule_has_its_cases(&root)
    })];
    trials.push(Trial::test("unreadable_files_are_reported", || {
        unreadable_files_are_reported().map_err(|e| Failed::from(e.to_string()))
    }));
    for path in cases(&root) {
        let name = path.strip_prefix(&root).unwrap_or(&path).with_extension("");
        trials.push(Trial::test(name.display().to_string(), move || {
            run(&path).map_err(|e| Failed::from(e.to_string()))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn cases(root: &Path) -> Vec<PathBuf> {
    fn list(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    }
    list(root)
        .into_iter()
        .filter(|path| path.is_dir())
        .flat_map(|directory| list(&directory))
        .collect()
}

fn every_rule_has_its_cases(root: &Path) -> std::result::Result<(), Failed> {
    let mut expected = BTreeSet::new();
    for rule in RULES {
        expected.extend(["bad", "good"].map(|kind| format!("{}/{kind}", rule.code.id)));
    }
    // `bad-version.toml` is a further case of `bad`.
    let kinds: BTreeSet<String> = cases(root)
        .iter()
        .filter_map(|path| {
            let file = path.file_stem()?.to_str()?;
            let kind = file.split('-').next()?;
            Some(format!("{}/{kind}", path.parent()?.file_name()?.to_str()?))
        })
        .collect();
    if kinds == expected {
        return Ok(());
    }
    let differences: Vec<&String> = kinds.symmetric_difference(&expected).collect();
    Err(format!("without a rule, or without a case: {differences:?}").into())
}

#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn run(path: &Path) -> Result<()> {
    let case: Case = toml::from_str(&fs::read_to_string(path)?)?;
    let is_bad = path
        .file_stem()
        .is_some_and(|stem| stem.to_string_lossy().starts_with("bad"));
    let work = tempfile::tempdir()?;
    let content = work.path().join("content");
    let package = work.path().join(&case.name);
    for (name, text) in &case.files {
        fs::create_dir_all(content.join(name).parent().ok_or("no parent directory")?)?;
        fs::write(content.join(name), text)?;
    }
    for (name, recipe) in &case.images {
        compile(recipe, &content.join(name), work.path())?;
    }
    for (name, recipe) in &case.dlls {
        fs::create_dir_all(content.join(name).parent().ok_or("no parent directory")?)?;
        fs::write(content.join(name), recipe.write())?;
    }
    let mut members: Vec<pack::Member> = case
        .raw
        .iter()
        .map(|member| (member.name.clone(), member.text.clone().into_bytes()))
        .collect();
    fs::create_dir_all(&content)?;
    members.extend(case.padding.map(|size| ("padding".into(), noise(size))));
    pack::pack(&content, &members, &package)?;

    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpustub"));
    command.args(["gpustub", "check", "--message-format", "short"]);
    command.args(&case.options);
    match &case.workspace {
        Some(workspace) => {
            workspace.prepare(&package)?;
            workspace.run_in(&mut command, &package);
        }
        None if case.paths.is_empty() => drop(command.arg(&case.name).current_dir(work.path())),
        None => drop(command.args(&case.paths).current_dir(work.path())),
    }
    let output = command.output()?;
    let err = String::from_utf8(output.stderr)?;
    let lines: Vec<&str> = err.lines().collect();
    if lines != case.expect && std::env::var_os("BLESS").is_some() {
        bless(path, &lines)?;
    } else if lines != case.expect {
        return Err(format!("printed {lines:#?}, expected {:#?}", case.expect).into());
    }
    if is_bad == lines.is_empty() {
        return Err(format!("printed {lines:#?}, which is not {path:?}").into());
    }
    let has_errors = lines.iter().any(|line| line.contains(": error["));
    if output.status.code() != Some(i32::from(has_errors)) {
        return Err(format!("ended with {}", output.status).into());
    }
    Ok(())
}

/// Writes the lines that were printed into a case.
fn bless(path: &Path, lines: &[&str]) -> Result<()> {
    let mut case: toml_edit::DocumentMut = fs::read_to_string(path)?.parse()?;
    let mut expect = toml_edit::Array::from_iter(lines.iter().copied());
    for line in expect.iter_mut() {
        line.decor_mut().set_prefix("\n    ");
    }
    expect.set_trailing_comma(true);
    expect.set_trailing("\n");
    case.insert("expect", toml_edit::value(expect));
    Ok(fs::write(path, case.to_string())?)
}

/// Runs as a user who does not own the files, since root can read all.
fn unreadable_files_are_reported() -> Result<()> {
    fn set_mode(path: &Path, mode: u32) -> Result<()> {
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
    }
    let work = tempfile::tempdir()?;
    let directory = work.path();
    let program = directory.join("program");
    fs::copy(env!("CARGO_BIN_EXE_cargo-gpustub"), &program)?;
    fs::create_dir(directory.join("d"))?;
    fs::create_dir(directory.join("d/closed"))?;
    for name in ["d/a.so", "d/b.so"] {
        fs::write(directory.join(name), "\x7fELF")?;
    }
    set_mode(directory, 0o755)?;
    set_mode(&directory.join("d/a.so"), 0o000)?;
    set_mode(&directory.join("d/closed"), 0o000)?;
    let mut command = Command::new(&program);
    if fs::metadata(directory)?.uid() == 0 {
        command.uid(65534);
    }
    let output = command
        .args(["gpustub", "check", "--message-format", "short", "d"])
        .current_dir(directory)
        .output()?;
    let err = String::from_utf8(output.stderr)?;
    let lines: Vec<&str> = err.lines().collect();
    let expected = [
        "d/a.so: error[io-error]: unreadable file or directory: Permission denied (os error 13)",
        "d/b.so: error[malformed-image]: the file is truncated: incomplete ELF header",
        "d/closed: error[io-error]: unreadable file or directory: Permission denied (os error 13)",
    ];
    if lines != expected || output.status.code() != Some(1) {
        return Err(format!("{} and printed {lines:#?}", output.status).into());
    }
    set_mode(&directory.join("d/closed"), 0o755)
}

/// Reproducible bytes without a pattern (xorshift).
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let bytes = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    });
    bytes.take(size).collect()
}

/// Compiles an image, after the libraries that it needs, which only the linker uses.
fn compile(recipe: &Recipe, output: &Path, work: &Path) -> Result<()> {
    let fakes = work.join("fakes");
    fs::create_dir_all(&fakes)?;
    fs::create_dir_all(output.parent().ok_or("no parent directory")?)?;
    let mut code = recipe.code.clone();
    let mut flags = recipe.flags.clone();
    for (soname, functions) in &recipe.needs {
        let (mut fake, mut script) = (String::from("int gpustub_case_none;\n"), String::new());
        for function in functions {
            let (name, node) = function.split_once('@').unwrap_or((function, ""));
            fake += &format!("int {name}(void) {{ return 0; }}\n");
            code += &format!("int {name}(void); int call_{name}(void) {{ return {name}(); }}\n");
            if !node.is_empty() {
                script += &format!("{node} {{ global: {name}; }};\n");
            }
        }
        let library = fakes.join(soname);
        let mut fake_flags = vec!["-shared".into(), format!("-Wl,-soname,{soname}")];
        if !script.is_empty() {
            let path = fakes.join(format!("{soname}.map"));
            fs::write(&path, script)?;
            fake_flags.push(format!("-Wl,--version-script={}", path.display()));
        }
        cc(&fake, &fake_flags, &library)?;
        flags.push("-Wl,--no-as-needed".into());
        flags.push(library.display().to_string());
    }
    let is_shared = flags
        .iter()
        .all(|flag| flag != "-pie" && flag != "-c" && !flag.starts_with("-static"));
    if is_shared {
        flags.insert(0, "-shared".into());
    }
    cc(&code, &flags, output)?;
    match &recipe.renamed {
        Some(name) => rename(output, name),
        None => Ok(()),
    }
}

/// Makes the `DT_NEEDED` entry of `name` begin after its `lib`, in a 64-bit file of this byte order.
fn rename(path: &Path, name: &str) -> Result<()> {
    let mut bytes = fs::read(path)?;
    let entry = needed_entry(&bytes, name).ok_or("not needed")?;
    let offset = read_u64(&bytes, entry + 8) + "lib".len() as u64;
    bytes[entry + 8..entry + 16].copy_from_slice(&offset.to_le_bytes());
    Ok(fs::write(path, bytes)?)
}

/// Offset of the `DT_NEEDED` entry of `name`.
fn needed_entry(bytes: &[u8], name: &str) -> Option<usize> {
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    let name = format!("{name}\0").into_bytes();
    for table in words(bytes, DT_STRTAB) {
        for entry in words(bytes, DT_NEEDED) {
            // Addresses in the first segment are offsets in the file.
            let start = read_u64(bytes, table + 8).checked_add(read_u64(bytes, entry + 8));
            let string = start.and_then(|start| bytes.get(usize::try_from(start).ok()?..));
            if string.is_some_and(|string| string.starts_with(&name)) {
                return Some(entry);
            }
        }
    }
    None
}

/// Offsets of the aligned words with this value.
fn words(bytes: &[u8], word: u64) -> impl Iterator<Item = usize> {
    let offsets = (0..bytes.len()).step_by(8);
    offsets.filter(move |&offset| read_u64(bytes, offset) == word)
}

fn read_u64(bytes: &[u8], offset: usize) -> u64 {
    let word = bytes.get(offset..offset + 8);
    word.map_or(0, |word| u64::from_le_bytes(word.try_into().unwrap()))
}

fn cc(code: &str, flags: &[String], output: &Path) -> Result<()> {
    let source = output.with_extension("case.c");
    fs::write(&source, code)?;
    let result = Command::new("cc")
        .args(["-w", "-fPIC", "-I"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check"))
        .arg(&source)
        .args(flags)
        .arg("-o")
        .arg(output)
        .output()?;
    fs::remove_file(source)?;
    if result.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&result.stderr).into_owned().into())
    }
}
