//! Rules that the source tree itself shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::cargo;
use gpustub_tests::command::succeed;
use gpustub_tests::{Result, repository};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;

/// `cargo metadata` of the workspace itself.
fn packages() -> Result<Vec<Value>> {
    let mut command = cargo(&repository());
    command.args(["metadata", "--format-version=1", "--no-deps", "--offline"]);
    let metadata: Value = serde_json::from_str(&succeed(&mut command)?.stdout)?;
    Ok(metadata["packages"]
        .as_array()
        .ok_or("no packages")?
        .clone())
}

fn name(package: &Value) -> &str {
    package["name"].as_str().unwrap_or_default()
}

/// The dependencies of a package, without those for its tests.
fn dependencies(package: &Value) -> BTreeSet<&str> {
    let all = package["dependencies"].as_array().into_iter().flatten();
    all.filter(|dependency| dependency["kind"] != "dev")
        .map(name)
        .collect()
}

/// Dependencies point downwards: cargo-gpustub, gpustub-build → engine; cargo-gpustub → check; engine → superarchive;
/// check → image; all of these → core → manifests, templates; cdecl has none. What is linked into users'
/// programs depends on nothing of ours.
#[test]
fn dependencies_point_downwards() -> Result<()> {
    let core = ["gpustub-manifests", "gpustub-templates"];
    let mut allowed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    allowed.insert("gpustub-manifests", vec![]);
    allowed.insert("gpustub-templates", vec![]);
    allowed.insert("gpustub", vec![]);
    allowed.insert("gpustub-cdecl", vec![]);
    allowed.insert("gpustub-core", core.to_vec());
    allowed.insert("gpustub-archive", vec![]);
    allowed.insert("gpustub-image", vec!["gpustub-core"]);
    allowed.insert("gpustub-superarchive", vec!["gpustub-archive"]);
    allowed.insert("gpustub-check", vec!["gpustub-core", "gpustub-image"]);
    allowed.insert(
        "gpustub-engine",
        vec!["gpustub-core", "gpustub-superarchive"],
    );
    allowed.insert("gpustub-build", vec!["gpustub-core", "gpustub-engine"]);
    allowed.insert(
        "gpustub-repair",
        [&["gpustub-check"][..], &["gpustub-core", "gpustub-image"]].concat(),
    );
    let readers = [
        "gpustub-check",
        "gpustub-core",
        "gpustub-engine",
        "gpustub-image",
    ];
    let workspace = [&readers[..], &core].concat();
    allowed.insert("gpustub-workspace", workspace);
    let below = [
        "gpustub-archive",
        "gpustub-check",
        "gpustub-engine",
        "gpustub-cdecl",
        "gpustub-image",
        "gpustub-superarchive",
        "gpustub-core",
        "gpustub-repair",
        "gpustub-workspace",
    ];
    allowed.insert("cargo-gpustub", [&below[..], &core].concat());

    let packages = packages()?;
    let members: BTreeSet<&str> = packages.iter().map(name).collect();
    for package in &packages {
        let is_published = package["publish"].is_null();
        let Some(allowed) = allowed.get(name(package)) else {
            // Tests and maintenance may use every package; no package uses them.
            assert!(
                !is_published,
                "{}: say here what it may depend on",
                name(package)
            );
            continue;
        };
        for dependency in dependencies(package).intersection(&members) {
            assert!(
                allowed.contains(dependency),
                "{} -> {dependency}",
                name(package)
            );
        }
    }
    for name in allowed.keys() {
        assert!(members.contains(name), "{name} is no member any more");
    }
    Ok(())
}

/// The stable interface of build scripts is small, and hides nothing. Engine and core have no stable
/// interface: their users require the version that they were released with.
#[test]
fn build_helper_has_a_small_interface() -> Result<()> {
    let source = fs::read_to_string(repository().join("gpustub-build/src/lib.rs"))?;
    assert!(!source.contains("doc(hidden)"));
    let public = source.lines().filter(|line| line.starts_with("pub "));
    let public: Vec<&str> = public.collect();
    let expected = [
        "pub use error::Error;",
        "pub use gpustub_core::directives::Directive;",
        "pub use gpustub_engine::{Env, Output};",
        "pub fn build() {",
        "pub fn finalize() {",
        "pub fn build_finalizer() {",
        "pub struct Build {",
    ];
    assert_eq!(public, expected);

    for package in &packages()? {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // Own tests enable features of the package itself.
            let other = name(dependency) != name(package);
            if other
                && ["gpustub-build", "gpustub-core", "gpustub-engine"].contains(&name(dependency))
            {
                let version = package["version"].as_str().unwrap_or_default();
                let pair = format!("{} -> {}", name(package), name(dependency));
                assert_eq!(dependency["req"], format!("={version}"), "{pair}");
            }
        }
    }
    Ok(())
}

#[test]
fn only_commands_depend_on_json_and_terminals() -> Result<()> {
    let theirs = [
        "serde",
        "serde_json",
        "clap",
        "handlebars",
        "anstyle",
        "annotate-snippets",
    ];
    // The subcommand and its parts.
    let command = ["cargo-gpustub", "gpustub-workspace"];
    for package in packages()?
        .iter()
        .filter(|package| package["publish"].is_null())
    {
        for foreign in theirs {
            let uses = dependencies(package).contains(foreign);
            // The rules' data are rows of TOML, ELF notes are JSON; a derive reads both, and nothing is written.
            let reads_rows = (name(package), foreign) == ("gpustub-check", "serde");
            let reads_notes = (name(package), foreign) == ("gpustub-check", "serde_json");
            assert!(
                !uses || reads_rows || reads_notes || command.contains(&name(package)),
                "{} -> {foreign}",
                name(package)
            );
        }
    }
    Ok(())
}

/// Budget of a build-dependency that delays every user's build.
#[test]
fn build_helper_is_light() -> Result<()> {
    let mut command = cargo(&repository());
    command.args([
        "tree",
        "--package",
        "gpustub-build",
        "--edges",
        "normal,build",
        "--offline",
    ]);
    command.args(["--prefix", "none", "--no-dedupe", "--format", "{p}|{lib}"]);
    let tree = succeed(&mut command)?.stdout;
    let all: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let foreign: Vec<_> = all
        .iter()
        .filter(|name| !name.starts_with("gpustub-"))
        .collect();
    assert!(all.contains("gpustub-core") && all.contains("cc"), "{tree}");
    assert!(
        foreign.len() <= 8,
        "{} foreign crates: {foreign:?}",
        foreign.len()
    );
    for heavy in ["serde", "serde_core", "syn", "proc-macro2", "quote"] {
        assert!(!all.contains(heavy), "{heavy} is in the tree:\n{tree}");
    }
    Ok(())
}

/// Values in, values out: what core is given is all that it knows.
#[test]
fn core_reads_no_environment_file_or_clock() -> Result<()> {
    let outside = ["env", "fs", "process", "time", "net", "thread"];
    let files = tracked(&["crates/core/src"])?;
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let text = fs::read_to_string(&file)?;
        for (index, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let mut words = code.split(|c: char| !c.is_alphanumeric() && c != '_');
            let reaches = code.contains("std::") && words.any(|word| outside.contains(&word));
            assert!(!reaches, "{}:{}: {line}", file.display(), index + 1);
        }
    }
    Ok(())
}

/// The files of the tree, below these places (all: none given).
fn tracked(places: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = Command::new("git");
    command.current_dir(repository());
    command
        .args([
            "ls-files",
            "--cached",
            "--others",
            "--exclude-standard",
            "--",
        ])
        .args(places);
    let listed = succeed(&mut command)?.stdout;
    // `rpc/` is a workspace of its own.
    let paths = listed.lines().filter(|line| !line.starts_with("rpc/"));
    let paths = paths.map(|line| repository().join(line));
    Ok(paths.filter(|path| path.is_file()).collect())
}

/// Code linked into users' programs: unloading a library that may have started threads ends the
/// process, and so does `abort`.
#[test]
fn run_time_unloads_nothing_and_never_ends_the_process() -> Result<()> {
    let sources = tracked(&["templates/runtime"])?;
    assert!(sources.len() > 10);
    for path in sources {
        let text = fs::read_to_string(&path)?;
        for call in ["dlclose(", "abort(", "exit(", "assert(", "raise("] {
            let calls = text.match_indices(call).filter(|(at, _)| {
                !text[..*at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            });
            assert_eq!(calls.count(), 0, "{} has {call}", path.display());
        }
    }
    Ok(())
}

#[test]
fn no_source_file_is_too_long() -> Result<()> {
    // Copied into other projects as one file.
    let long = [repository().join("crates/archive/c/gpustub_archive.h")];
    let files = tracked(&["*.rs", "*.c", "*.h", "*.S", "*.sh"])?;
    for file in files.iter().filter(|file| !long.contains(file)) {
        let lines = fs::read_to_string(file)?.lines().count();
        assert!(lines <= 500, "{}: {lines} lines", file.display());
    }
    Ok(())
}

/// Generated or recorded files contain no path of the machine that created them.
#[test]
fn no_file_contains_the_path_of_this_checkout() -> Result<()> {
    let here = repository().to_string_lossy().into_owned();
    for file in tracked(&[])? {
        let text = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
        assert!(!text.contains(&here), "{} holds {here}", file.display());
    }
    Ok(())
}

#[test]
fn every_package_follows_the_workspace() -> Result<()> {
    for package in packages()? {
        let manifest = package["manifest_path"].as_str().ok_or("no path")?;
        let text = fs::read_to_string(manifest)?;
        assert!(
            text.contains("[lints]\nworkspace = true"),
            "{manifest}: lints of the workspace"
        );
        for field in ["description", "license", "repository", "rust_version"] {
            assert!(package[field].is_string(), "{manifest}: no {field}");
        }
    }
    Ok(())
}

/// Whether source code has a condition with `let` and `&&`: `if let Some(a) = b && c {`.
fn has_let_chain(code: TokenStream) -> bool {
    let (mut has_let, mut is_chain, mut last) = (false, false, String::new());
    for token in code {
        let text = token.to_string();
        match token {
            TokenTree::Group(group) => {
                if group.delimiter() == Delimiter::Brace {
                    has_let = false;
                }
                is_chain |= has_let_chain(group.stream());
            }
            _ if text == ";" => has_let = false,
            _ if text == "let" && matches!(last.as_str(), "if" | "while" | "&") => {
                is_chain |= last == "&";
                has_let = true;
            }
            _ => is_chain |= has_let && text == "&" && last == "&",
        }
        last = text;
    }
    is_chain
}

/// Conditions with `let` and `&&` came with Rust 1.88. `tests/minimum-rust` compiles with each declared version.
#[test]
fn packages_for_older_rust_have_no_let_chains() -> Result<()> {
    for (code, expected) in [
        ("if let A(b) = c && d {}", true),
        ("while a && let Some(b) = c {}", true),
        ("if let Some(&&a) = b(c && d) { e && f }", false),
    ] {
        assert_eq!(has_let_chain(code.parse()?), expected, "{code}");
    }
    for package in packages()? {
        let version = package["rust_version"].as_str().unwrap_or_default();
        if !matches!(version.split_once('.'), Some(("1", minor)) if minor.parse::<u32>()? < 88) {
            continue;
        }
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        let directory = manifest.parent().unwrap_or(manifest).display().to_string();
        for file in tracked(&[&directory])? {
            if file.extension().is_some_and(|extension| extension == "rs") {
                let has_chain = has_let_chain(fs::read_to_string(&file)?.parse()?);
                assert!(!has_chain, "{}", file.display());
            }
        }
    }
    Ok(())
}

#[test]
fn scripts_are_bash_and_executable() -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for script in [
        ".ci/run",
        "tests/components/install",
        "tests/minimum-rust",
        "tests/other-hosts",
        "tests/run",
    ] {
        let script = repository().join(script);
        succeed(Command::new("bash").arg("-n").arg(&script))?;
        let mode = fs::metadata(&script)?.permissions().mode();
        assert_eq!(mode & 0o111, 0o111, "{}", script.display());
    }
    Ok(())
}

/// Code that several commands use is below them, in `cargo-gpustub/src/state.rs`.
#[test]
fn no_command_imports_another() -> Result<()> {
    let directory = repository().join("cargo-gpustub/src/cmd");
    let files = tracked(&["cargo-gpustub/src/cmd"])?;
    assert!(files.len() > 40, "{files:?}");
    for file in files {
        let relative = file.strip_prefix(&directory)?.with_extension("");
        let command = relative.iter().next().unwrap_or_default().to_string_lossy();
        for line in fs::read_to_string(&file)?.lines() {
            for (_, path) in line
                .match_indices("cmd::")
                .map(|(at, _)| line.split_at(at + 5))
            {
                assert!(path.starts_with(&*command), "{}: {line}", file.display());
            }
        }
    }
    Ok(())
}
