//! Every rule of `cargo gpustub check`, broken and kept: `tests/check/<rule>/{bad,good}*.toml`.
//!
//! A case lists its files and compiles images, because rules are about the real output of linkers.
//! The test then runs the check as a user would, and compares its output.
//! `BLESS=1` rewrites `expect`.

#[path = "support/pack.rs"]
mod pack;
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
    trials.push(Trial::test(
        "a_file_that_cannot_be_read_is_reported",
        || unreadable().map_err(|e| Failed::from(e.to_string())),
    ));
    for path in cases(&root) {
        let name = path.strip_prefix(&root).unwrap_or(&path).with_extension("");
        trials.push(Trial::test(name.display().to_string(), move || {
            run(&path).map_err(|e| Failed::from(e.to_string()))
        }));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

fn cases(root: &Path) -> Vec<PathBuf> {
    let list = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let directories = list(root).into_iter().filter(|path| path.is_dir());
    directories.flat_map(|directory| list(&directory)).collect()
}

fn every_rule_has_its_cases(root: &Path) -> std::result::Result<(), Failed> {
    let mut expected = BTreeSet::new();
    for rule in RULES {
        expected.extend(["bad", "good"].map(|kind| format!("{}/{kind}", rule.code.id)));
    }
    // `bad-version.toml` is a further case of `bad`.
    let found: BTreeSet<String> = cases(root)
        .iter()
        .filter_map(|path| {
            let file = path.file_stem()?.to_str()?;
            let kind = file.split('-').next()?;
            Some(format!("{}/{kind}", path.parent()?.file_name()?.to_str()?))
        })
        .collect();
    if found == expected {
        return Ok(());
    }
    let differ: Vec<&String> = found.symmetric_difference(&expected).collect();
    Err(format!("without a rule, or without a case: {differ:?}").into())
}

#[expect(clippy::disallowed_methods, reason = "a test's own switch")]
fn run(path: &Path) -> Result<()> {
    let case: Case = toml::from_str(&fs::read_to_string(path)?)?;
    let bad = path
        .file_stem()
        .is_some_and(|stem| stem.to_string_lossy().starts_with("bad"));
    let work = tempfile::tempdir()?;
    let content = work.path().join("content");
    for (name, text) in &case.files {
        fs::create_dir_all(content.join(name).parent().ok_or("no parent directory")?)?;
        fs::write(content.join(name), text)?;
    }
    for (name, recipe) in &case.images {
        compile(recipe, &content.join(name), work.path())?;
    }
    let whole = work.path().join(&case.name);
    let raw = case.raw.iter();
    let mut raw: Vec<pack::Member> = raw
        .map(|member| (member.name.clone(), member.text.clone().into_bytes()))
        .collect();
    fs::create_dir_all(&content)?;
    raw.extend(case.padding.map(|size| ("padding".into(), noise(size))));
    pack::pack(&content, &raw, &whole)?;

    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpustub"));
    command.args(["gpustub", "check", "--message-format", "short"]);
    command.args(&case.options);
    match &case.workspace {
        Some(workspace) => {
            workspace.prepare(&work.path().join(&case.name))?;
            workspace.run_in(&mut command, &work.path().join(&case.name));
        }
        None if case.paths.is_empty() => drop(command.arg(&case.name).current_dir(work.path())),
        None => drop(command.args(&case.paths).current_dir(work.path())),
    }
    let output = command.output()?;
    let printed = String::from_utf8(output.stderr)?;
    let printed: Vec<&str> = printed.lines().collect();
    if printed != case.expect && std::env::var_os("BLESS").is_some() {
        bless(path, &printed)?;
    } else if printed != case.expect {
        return Err(format!("printed {printed:#?}, expected {:#?}", case.expect).into());
    }
    if bad == printed.is_empty() {
        return Err(format!("printed {printed:#?}, which is not {path:?}").into());
    }
    let denied = printed.iter().any(|line| line.contains(": error["));
    if output.status.code() != Some(i32::from(denied)) {
        return Err(format!("ended with {}", output.status).into());
    }
    Ok(())
}

/// Writes the lines that were printed into a case.
fn bless(path: &Path, printed: &[&str]) -> Result<()> {
    let mut case: toml_edit::DocumentMut = fs::read_to_string(path)?.parse()?;
    let mut lines = toml_edit::Array::from_iter(printed.iter().copied());
    for line in lines.iter_mut() {
        line.decor_mut().set_prefix("\n    ");
    }
    lines.set_trailing_comma(true);
    lines.set_trailing("\n");
    case.insert("expect", toml_edit::value(lines));
    Ok(fs::write(path, case.to_string())?)
}

/// Runs as a user who does not own the files, since root can read all.
fn unreadable() -> Result<()> {
    let work = tempfile::tempdir()?;
    let at = |name: &str| work.path().join(name);
    let program = at("program");
    fs::copy(env!("CARGO_BIN_EXE_cargo-gpustub"), &program)?;
    fs::create_dir(at("d"))?;
    fs::create_dir(at("d/closed"))?;
    for name in ["d/a.so", "d/b.so"] {
        fs::write(at(name), "\x7fELF")?;
    }
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
    mode(work.path(), 0o755)?;
    mode(&at("d/a.so"), 0o000)?;
    mode(&at("d/closed"), 0o000)?;
    let mut command = Command::new(&program);
    if fs::metadata(work.path())?.uid() == 0 {
        command.uid(65534);
    }
    let output = command
        .args(["gpustub", "check", "--message-format", "short", "d"])
        .current_dir(work.path())
        .output()?;
    let printed = String::from_utf8(output.stderr)?;
    let printed: Vec<&str> = printed.lines().collect();
    let expected = [
        "d/a.so: error[io-error]: unreadable file or directory: Permission denied (os error 13)",
        "d/b.so: error[malformed-image]: the file is truncated: incomplete ELF header",
        "d/closed: error[io-error]: unreadable file or directory: Permission denied (os error 13)",
    ];
    if printed != expected || output.status.code() != Some(1) {
        return Err(format!("{} and printed {printed:#?}", output.status).into());
    }
    mode(&at("d/closed"), 0o755)?;
    Ok(())
}

/// Reproducible bytes without a pattern (xorshift).
fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(size).collect()
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
        let mut own = vec!["-shared".into(), format!("-Wl,-soname,{soname}")];
        if !script.is_empty() {
            let path = fakes.join(format!("{soname}.map"));
            fs::write(&path, script)?;
            own.push(format!("-Wl,--version-script={}", path.display()));
        }
        cc(&fake, &own, &library)?;
        flags.push("-Wl,--no-as-needed".into());
        flags.push(library.display().to_string());
    }
    let other = |flag: &String| flag == "-pie" || flag == "-c" || flag.starts_with("-static");
    if !flags.iter().any(other) {
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
    const DT_NEEDED: u64 = 1;
    const DT_STRTAB: u64 = 5;
    let mut bytes = fs::read(path)?;
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
        u64::from_le_bytes(bytes.unwrap_or_default())
    };
    let with = |tag| {
        (0..bytes.len())
            .step_by(8)
            .filter(move |&at| word(at) == tag)
    };
    // Addresses in the first segment are offsets in the file.
    let is_name = |table: usize, entry: usize| {
        let start = word(table + 8).checked_add(word(entry + 8));
        let text = start.and_then(|start| bytes.get(usize::try_from(start).ok()?..));
        text.is_some_and(|text| text.starts_with(format!("{name}\0").as_bytes()))
    };
    let mut pairs = with(DT_STRTAB).flat_map(|t| with(DT_NEEDED).map(move |n| (t, n)));
    let (_, entry) = pairs.find(|&(t, n)| is_name(t, n)).ok_or("not needed")?;
    let cut = word(entry + 8) + "lib".len() as u64;
    bytes[entry + 8..entry + 16].copy_from_slice(&cut.to_le_bytes());
    Ok(fs::write(path, bytes)?)
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
