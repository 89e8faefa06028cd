//! `cargo gpustub explain`: meaning of a diagnostic code, and its fix.

use gpustub_core::diag::Code;
use gpustub_core::suggest::nearest;
use gpustub_workspace::codes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::MessageFormat;
use gpustub_workspace::report::json::FORMAT_VERSION;
use gpustub_workspace::shell::Shell;
use serde_json::json;

use crate::cli;

/// Runs the command.
pub fn run(options: &cli::Explain, shell: &mut Shell) -> Result<bool> {
    let all = codes::all_codes();
    let chosen: Vec<&Code> = match &options.code {
        None => all,
        Some(id) => {
            let code = all.iter().find(|code| code.id == id).copied();
            vec![code.ok_or_else(|| unknown(id, &all))?]
        }
    };
    if shell.format() == MessageFormat::Json {
        for code in chosen {
            shell.json(&json!({
                "reason": "code",
                "format_version": FORMAT_VERSION,
                "code": code.id,
                "summary": code.summary,
                "explanation": code.explanation,
                "url": codes::url(code),
            }))?;
        }
    } else if options.list {
        let width = chosen.iter().map(|code| code.id.len()).max().unwrap_or(0);
        for code in chosen {
            shell.data(format!("{:width$}  {}\n", code.id, code.summary))?;
        }
    } else {
        for code in chosen {
            let Code {
                id,
                summary,
                explanation,
            } = code;
            let url = codes::url(code);
            shell.data(format!("{id}: {summary}\n\n{explanation}\n\n{url}\n"))?;
        }
    }
    Ok(true)
}

fn unknown(id: &str, all: &[&Code]) -> Error {
    let error = Error::new(format!("unknown code `{id}`"));
    error.help(match nearest(id, all.iter().map(|code| code.id)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`cargo gpustub explain --list` lists all codes".to_owned(),
    })
}
