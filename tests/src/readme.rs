//! What READMEs promise.

use std::fs;

use crate::{Result, repository};

/// The commands in the `console` blocks of a page of this repository, with the lines that it promises of
/// each.
pub fn commands(page: &str) -> Result<Vec<(String, Vec<String>)>> {
    let text = fs::read_to_string(repository().join(page)).map_err(|e| format!("{page}: {e}"))?;
    let blocks = text.split("```console\n").skip(1);
    let lines = blocks
        .filter_map(|rest| rest.split("```").next())
        .flat_map(str::lines);
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    for line in lines {
        match (line.strip_prefix("$ "), found.last_mut()) {
            (Some(command), _) => found.push((command.to_owned(), Vec::new())),
            (None, Some((_, output))) => output.push(line.to_owned()),
            (None, None) => return Err(format!("no command has printed {line:?}").into()),
        }
    }
    Ok(found)
}
