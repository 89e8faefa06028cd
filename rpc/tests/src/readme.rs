//! Commands of READMEs, and the outputs that they show.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::cargo::without_own_cargo;
use crate::command::succeed;
use crate::{Result, workspace};

/// A command, with the output lines shown for it.
pub type Shown = (String, Vec<String>);

/// Commands in the `console` blocks of a page of this workspace, with the output lines shown for
/// each.
pub fn commands(page: &str) -> Result<Vec<Shown>> {
    let text: String = blocks(page)?
        .into_iter()
        .filter(|block| block.kind == "console")
        .map(|block| block.text)
        .collect();
    let mut commands: Vec<Shown> = Vec::new();
    for line in text.lines() {
        match (line.strip_prefix("$ "), commands.last_mut()) {
            (Some(command), _) => commands.push((command.to_owned(), Vec::new())),
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
}

/// Fenced blocks of a page of this workspace.
pub fn blocks(page: &str) -> Result<Vec<Block>> {
    let text = fs::read_to_string(workspace().join(page)).map_err(|e| format!("{page}: {e}"))?;
    // Text and blocks alternate.
    text.split("```")
        .skip(1)
        .step_by(2)
        .map(|part| {
            let (kind, text) = part.split_once('\n').ok_or("a fence without a block")?;
            Ok(Block {
                kind: kind.to_owned(),
                text: text.to_owned(),
            })
        })
        .collect()
}

/// Runs commands one after another in a directory: each prints exactly the lines shown. Exported
/// variables are set for the commands that follow.
pub fn shows(commands: &[Shown], directory: &Path, variables: &[(&str, &str)]) -> Result<()> {
    let mut exports = String::new();
    for (command, expected) in commands {
        let mut bash = Command::new("bash");
        without_own_cargo(bash.current_dir(directory));
        bash.args(["-c", &format!("exec 2>&1; {exports}{command}")]);
        let ran = succeed(bash.envs(variables.iter().copied()))?;
        let printed: Vec<&str> = ran.stdout.lines().collect();
        assert_eq!(&printed, expected, "{command}");
        if command.starts_with("export ") {
            exports += &format!("{command}; ");
        }
    }
    Ok(())
}
