//! Commands of READMEs, and the outputs that they show.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::cargo::{program, without_own_cargo};
use crate::command::{path_with, succeed};
use crate::components::target_dir;
use crate::recipes::spans;
use crate::{Result, repository};

/// A command, with the output lines shown for it.
pub type Shown = (String, Vec<String>);

/// Commands in the `console` blocks of a page of this repository, with the output lines shown for
/// each.
pub fn commands(page: &str) -> Result<Vec<Shown>> {
    let text: String = blocks(page)?
        .into_iter()
        .filter(|block| block.kind == "console")
        .map(|block| block.text)
        .collect();
    commands_of(&text)
}

/// Commands of the first block of a page that contains a text, with the output lines shown for each. In a block of the kind
/// `sh` each line is one; for a block with the contents of a file, it is the command that writes it.
pub fn block_commands(page: &str, text: &str) -> Result<Vec<Shown>> {
    let block = (blocks(page)?.into_iter())
        .find(|block| block.text.contains(text))
        .ok_or(format!("{page} has no block with `{text}`"))?;
    if block.kind == "console" {
        return commands_of(&block.text);
    }
    if block.kind == "sh" {
        let lines = block.text.lines();
        return Ok(lines.map(|line| (line.to_owned(), Vec::new())).collect());
    }
    let (file, appends) = block.file.ok_or("no file is named before a block")?;
    let redirection = if appends { ">>" } else { ">" };
    let command = format!("cat {redirection} {file} <<'EOF'\n{}EOF", block.text);
    Ok(vec![(command, Vec::new())])
}

fn commands_of(text: &str) -> Result<Vec<Shown>> {
    let mut commands: Vec<Shown> = Vec::new();
    let mut is_here_document = false;
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (_, Some((command, _))) if is_here_document => {
                *command += &format!("\n{line}");
                is_here_document = line != "EOF";
            }
            (Some(command), _) => {
                is_here_document = command.contains("<<'EOF'");
                commands.push((command.to_owned(), Vec::new()));
            }
            (None, Some((_, output))) => output.push(line.to_owned()),
            (None, None) => return Err(format!("no command printed {line:?}").into()),
        }
    }
    Ok(commands)
}

/// A fenced block of a page.
#[derive(Debug)]
pub struct Block {
    /// Word after the fence: `console`, `c`.
    pub kind: String,
    /// Text.
    pub text: String,
    /// File that the sentence before it names last, and whether it says to append.
    file: Option<(String, bool)>,
}

/// Fenced blocks of a page of this repository.
pub fn blocks(page: &str) -> Result<Vec<Block>> {
    let text = fs::read_to_string(repository().join(page)).map_err(|e| format!("{page}: {e}"))?;
    let mut blocks = Vec::new();
    // Text and blocks alternate.
    let mut sentence = "";
    for (index, part) in text.split("```").enumerate() {
        if index % 2 == 0 {
            sentence = part.trim_end().rsplit("\n\n").next().unwrap_or_default();
            continue;
        }
        let (kind, text) = part.split_once('\n').ok_or("a fence without a block")?;
        let file = spans(sentence).rfind(|span| span.contains('.') && !span.contains(' '));
        // That of the closing fence: a block in a list is indented.
        let (text, indentation) = text.rsplit_once('\n').unwrap_or(("", text));
        let lines = text
            .lines()
            .map(|line| line.strip_prefix(indentation).unwrap_or(line));
        blocks.push(Block {
            kind: kind.to_owned(),
            text: lines.map(|line| format!("{line}\n")).collect(),
            file: file.map(|file| (file.to_owned(), sentence.starts_with("Append "))),
        });
    }
    Ok(blocks)
}

/// Follows a page in a directory: writes the files that it shows, and runs its commands as [`shows`] does.
/// Blocks of the kinds `omitted` are left out. Returns the number of commands.
pub fn follow(
    page: &str,
    omitted: &[&str],
    directory: &Path,
    variables: &[(&str, &str)],
) -> Result<usize> {
    let mut exports = String::new();
    let mut count = 0;
    for block in blocks(page)? {
        if block.kind == "console" {
            let commands = commands_of(&block.text)?;
            count += commands.len();
            run_all(&commands, &mut exports, directory, variables)?;
        } else if !omitted.contains(&&*block.kind) {
            let (file, appends) = block.file.ok_or("no file is named before a block")?;
            let path = directory.join(&file);
            let old = if appends {
                fs::read_to_string(&path)?
            } else {
                String::new()
            };
            fs::write(&path, old + &block.text).map_err(|e| format!("{file}: {e}"))?;
        }
    }
    Ok(count)
}

/// Copies an example below a directory whose name has a space, with `links` relative paths out of it. Its
/// dependencies are compiled once.
pub fn copy_example(name: &str, links: usize, directory: &Path) -> Result<PathBuf> {
    let root = directory.join("the example");
    let mut copy = Command::new("cp");
    copy.arg("-r").arg(repository().join("examples").join(name));
    succeed(copy.arg(&root))?;
    // Without outputs of an earlier build in the source directory.
    let _ = fs::remove_dir_all(root.join("target"));
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let prefix = format!("{}/", repository().display());
    assert_eq!(manifest.matches("../../").count(), links);
    fs::write(root.join("Cargo.toml"), manifest.replace("../../", &prefix))?;
    let target = target_dir().join(format!("example-{name}"));
    let _ = fs::remove_dir_all(target.join("debug/build"));
    fs::create_dir_all(&target)?;
    symlink(&target, root.join("target"))?;
    Ok(root)
}

/// A directory in which cargo uses gpustub's packages from this tree.
pub fn patched_directory() -> Result<TempDir> {
    let dir = tempfile::tempdir()?;
    let mut config = String::from("[patch.crates-io]\n");
    for (name, path) in [
        ("gpustub-build", "gpustub-build"),
        ("gpustub-core", "crates/core"),
        ("gpustub-archive", "crates/archive"),
        ("gpustub-engine", "crates/engine"),
        ("gpustub-manifests", "manifests"),
        ("gpustub-superarchive", "crates/superarchive"),
        ("gpustub-templates", "templates"),
    ] {
        let path = repository().join(path);
        config += &format!("{name} = {{ path = {path:?} }}\n");
    }
    fs::create_dir(dir.path().join(".cargo"))?;
    fs::write(dir.path().join(".cargo/config.toml"), config)?;
    Ok(dir)
}

/// Runs commands one after another in a directory: each prints exactly the lines shown. Exported
/// variables are set for the commands that follow.
pub fn shows(commands: &[Shown], directory: &Path, variables: &[(&str, &str)]) -> Result<()> {
    run_all(commands, &mut String::new(), directory, variables)
}

fn run_all(
    commands: &[Shown],
    exports: &mut String,
    directory: &Path,
    variables: &[(&str, &str)],
) -> Result<()> {
    let subcommand = program("cargo-gpustub")?;
    let path = path_with(subcommand.parent().unwrap_or(&subcommand))?;
    for (command, expected) in commands {
        let line = command.replace("cargo gpustub", "cargo-gpustub gpustub");
        let mut bash = Command::new("bash");
        without_own_cargo(bash.current_dir(directory));
        bash.args(["-c", &format!("exec 2>&1; {exports}{line}")]);
        bash.env("PATH", &path).envs(variables.iter().copied());
        let output = succeed(&mut bash)?.stdout;
        let lines: Vec<&str> = output.lines().collect();
        assert_eq!(&lines, expected, "{command}");
        if line.starts_with("export ") {
            *exports += &format!("{line}; ");
        }
    }
    Ok(())
}
