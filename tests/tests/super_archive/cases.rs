//! `tests/cases/super_archive.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use gpustub_tests::{Result, repository};
use serde::Deserialize;

/// Tested releases of LLVM's tools, which replace `{release}`.
pub const RELEASES: [&str; 3] = ["14", "15", "19"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cases {
    pub reads: Vec<Case>,
    pub linkers: Linkers,
    pub changes: Vec<Case>,
    pub machines: Vec<Machine>,
    pub bitcode: Vec<Vec<String>>,
}

/// Tool, and its output about archives or its effect on them, by archive name.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    pub command: Vec<String>,
    #[serde(default)]
    pub everywhere: bool,
    #[serde(default)]
    pub shows: BTreeMap<String, Vec<String>>,
    pub says: Option<String>,
    #[serde(default)]
    pub comes_to: BTreeMap<String, Level>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Linkers {
    pub everywhere: Vec<String>,
    pub others: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub name: String,
    pub compiler: Vec<String>,
    #[serde(default)]
    pub hidden: Vec<String>,
    pub linkers: Vec<Vec<String>>,
}

/// Time at which a change is detected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Correct answers: no error to detect.
    Right,
    Open,
    Take,
    Verify,
}

impl Cases {
    pub fn read() -> Result<Self> {
        let file = repository().join("tests/cases/super_archive.toml");
        let text =
            std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(toml::from_str(&text)?)
    }
}

impl Case {
    /// One case for each release of the tool.
    pub fn releases(&self) -> Vec<Self> {
        if !self.command[0].contains("{release}") {
            return vec![self.clone()];
        }
        RELEASES
            .map(|release| Self {
                command: (self.command.iter())
                    .map(|word| word.replace("{release}", release))
                    .collect(),
                ..self.clone()
            })
            .to_vec()
    }

    /// Command of the case in a directory, with paths in place of the words in braces.
    pub fn command(&self, dir: &Path, words: &[(&str, &Path)]) -> Command {
        let mut command = Command::new(&self.command[0]);
        for word in &self.command[1..] {
            match words.iter().find(|(name, _)| name == word) {
                Some((_, path)) => command.arg(path),
                None => command.arg(word),
            };
        }
        command.current_dir(dir);
        command
    }
}
