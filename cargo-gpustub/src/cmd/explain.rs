//! `cargo gpustub explain`: what a code means and how to mend it.

use gpustub_core::suggest::nearest;

use crate::cli;
use crate::codes;
use crate::error::{Error, Result};
use crate::shell::Shell;

/// Runs the command.
pub fn run(options: &cli::Explain, shell: &mut Shell) -> Result<bool> {
    let all = codes::all();
    let Some(id) = &options.code else {
        let width = all.iter().map(|code| code.id.len()).max().unwrap_or(0);
        for code in &all {
            shell.data(format!("{:width$}  {}\n", code.id, code.summary))?;
        }
        return Ok(true);
    };
    match all.iter().find(|code| code.id == id) {
        Some(code) => {
            shell.data(format!(
                "{}: {}\n\n{}\n",
                code.id, code.summary, code.explanation
            ))?;
            Ok(true)
        }
        None => {
            let error = Error::new(format!("there is no code `{id}`"));
            Err(
                error.help(match nearest(id, all.iter().map(|code| code.id)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`cargo gpustub explain --list` lists them".to_owned(),
                }),
            )
        }
    }
}
