//! Recipes of a page: its sections with edits of files and commands, which a test carries out.
//!
//! A fenced block is one of:
//!
//! * `console`: the lines after `$ ` are commands, run in the root by one shell;
//! * `diff`: an edit of the file that the sentence before it names; the lines with ` ` or `-` are there
//!   exactly once, and those with ` ` or `+` replace them;
//! * anything else: text that is appended to the file that the sentence names (`Append …`), or
//!   becomes that file.
//!
//! A sentence "Add `line` to `file`" appends a line.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{Ran, succeed};
use crate::{Result, repository};

/// One step of a recipe.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Commands of one block.
    Run(Vec<String>),
    /// Replaces lines of a file.
    Edit {
        /// Path from the root.
        file: String,
        /// Lines that are there.
        old: String,
        /// Lines that replace them.
        new: String,
    },
    /// Appends lines to a file.
    Append {
        /// Path from the root.
        file: String,
        /// Lines to append.
        text: String,
    },
    /// Writes a file.
    Write {
        /// Path from the root.
        file: String,
        /// Contents.
        text: String,
    },
}

/// A section of a page.
#[derive(Debug)]
pub struct Recipe {
    /// Heading.
    pub title: String,
    /// Lines of text and of blocks, without blank lines and the fences themselves.
    pub lines: usize,
    /// Edits and commands, in order.
    pub steps: Vec<Step>,
}

/// The sections of a page whose headings begin with `heading`, such as `### `.
pub fn recipes(page: &str, heading: &str) -> Result<Vec<Recipe>> {
    let text = fs::read_to_string(repository().join(page)).map_err(|e| format!("{page}: {e}"))?;
    let level = heading.trim_end().len();
    // Titles and texts; a section of a higher level has no title.
    let mut sections = Vec::new();
    let mut is_fenced = false;
    for line in text.lines() {
        is_fenced ^= line.starts_with("```");
        let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
        if !is_fenced && hashes == level {
            sections.push((line[level..].trim().to_owned(), String::new()));
        } else if !is_fenced && (1..level).contains(&hashes) {
            sections.push((String::new(), String::new()));
        } else if let Some((_, body)) = sections.last_mut() {
            *body += line;
            body.push('\n');
        }
    }
    let mut recipes = Vec::new();
    for (title, body) in sections {
        if title.is_empty() {
            continue;
        }
        let lines = body
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("```"))
            .count();
        let steps = steps(&body).map_err(|e| format!("{page}: {title}: {}", e.0))?;
        recipes.push(Recipe {
            title,
            lines,
            steps,
        });
    }
    Ok(recipes)
}

fn steps(body: &str) -> Result<Vec<Step>> {
    let mut steps = Vec::new();
    // Text and blocks alternate.
    let mut sentence = "";
    for (index, part) in body.split("```").enumerate() {
        if index % 2 == 0 {
            sentence = part;
            steps.extend(additions(sentence));
            continue;
        }
        let (kind, text) = part.split_once('\n').ok_or("a fence without a block")?;
        steps.push(block(kind, text, sentence)?);
    }
    Ok(steps)
}

fn block(kind: &str, text: &str, sentence: &str) -> Result<Step> {
    if kind == "console" {
        let mut commands = Vec::new();
        for line in text.lines() {
            let command = line.strip_prefix("$ ");
            commands.push(command.ok_or("output in a block of commands")?.to_owned());
        }
        return Ok(Step::Run(commands));
    }
    let file = spans(sentence)
        .rfind(|span| span.contains('.'))
        .ok_or("no file is named before a block")?
        .to_owned();
    if kind != "diff" {
        let text = text.to_owned();
        return Ok(if sentence.contains("Append") {
            Step::Append { file, text }
        } else {
            Step::Write { file, text }
        });
    }
    let (mut old, mut new) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(line) = line.strip_prefix([' ', '-']) {
            old += &format!("{line}\n");
        }
        if let Some(line) = line.strip_prefix([' ', '+']) {
            new += &format!("{line}\n");
        }
    }
    Ok(Step::Edit { file, old, new })
}

/// Code spans of a text.
pub(crate) fn spans(text: &str) -> impl DoubleEndedIterator<Item = &str> {
    let parts: Vec<&str> = text.split('`').collect();
    (parts.into_iter().enumerate()).filter_map(|(index, part)| (index % 2 == 1).then_some(part))
}

/// Lines that a text says to add: "Add `line` to `file`".
fn additions(text: &str) -> impl Iterator<Item = Step> {
    text.split("Add `").skip(1).filter_map(|rest| {
        let (line, rest) = rest.split_once("` to `")?;
        let (file, _) = rest.split_once('`')?;
        Some(Step::Append {
            file: file.to_owned(),
            text: format!("{line}\n"),
        })
    })
}

impl Recipe {
    /// Carries out all steps in a tree, with these variables.
    pub fn carry_out(&self, tree: &Path, variables: &[(&str, &Path)]) -> Result<Vec<Ran>> {
        let mut runs = Vec::new();
        for step in &self.steps {
            let run = step
                .carry_out(tree, variables)
                .map_err(|failure| format!("{}: {step:?}: {}", self.title, failure.0))?;
            runs.extend(run);
        }
        Ok(runs)
    }
}

impl Step {
    /// Returns the run of commands.
    fn carry_out(&self, tree: &Path, variables: &[(&str, &Path)]) -> Result<Option<Ran>> {
        match self {
            Self::Run(commands) => {
                let mut bash = Command::new("bash");
                // `-e` overlooks a failure before `&&`.
                let script = format!("{} || exit 1", commands.join(" || exit 1\n"));
                bash.current_dir(tree).args(["-euc", &script]);
                crate::cargo::without_own_cargo(&mut bash);
                bash.envs(variables.iter().copied());
                return Ok(Some(succeed(&mut bash)?));
            }
            Self::Edit { file, old, new } => {
                let path = tree.join(file);
                let text = fs::read_to_string(&path)?;
                if text.matches(old).count() != 1 {
                    return Err("the lines are not in the file once".into());
                }
                fs::write(&path, text.replace(old, new))?;
            }
            Self::Append { file, text } => {
                let path = tree.join(file);
                fs::write(&path, fs::read_to_string(&path)? + text)?;
            }
            Self::Write { file, text } => {
                let path = tree.join(file);
                if path.exists() {
                    return Err("the file exists".into());
                }
                fs::write(&path, text)?;
            }
        }
        Ok(None)
    }
}
