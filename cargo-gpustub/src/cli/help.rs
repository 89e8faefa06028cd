//! Help of the tool, with commands in groups: clap has no headings for subcommands
//! (clap-rs/clap#1553).

use std::fmt::Write;

use clap::Command;

/// Groups of commands: heading and commands, in order.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Project", &["init", "add", "remove", "sync", "plan"]),
    ("Checks", &["check", "repair", "doctor"]),
    ("Libraries", &["symbols", "diff", "abi"]),
    ("Build outputs", &["export", "archive"]),
    ("Help", &["explain", "schema", "completions", "man", "help"]),
];

const EXIT_CODES: &str =
    "Exit codes: 0 success, 1 findings, 2 usage error, 101 internal or system error.";

/// Lists the commands in groups in the help of a definition.
pub fn with_groups(command: Command) -> Command {
    let styles = command.get_styles().clone();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let width = GROUPS
        .iter()
        .flat_map(|(_, names)| names.iter())
        .map(|name| name.len())
        .max()
        .unwrap_or(0);
    let mut listing = String::new();
    for (title, names) in GROUPS {
        let _ = writeln!(listing, "{header}{title}:{header:#}");
        for name in names {
            let about = help_line(&command, name);
            let _ = writeln!(listing, "  {literal}{name:width$}{literal:#}  {about}");
        }
        listing.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{listing}\
         {header}Options:{header:#}\n{{options}}{{after-help}}"
    );
    let examples = command
        .get_after_long_help()
        .map_or_else(String::new, |text| text.ansi().to_string());
    command
        .help_template(template)
        .after_help(EXIT_CODES)
        .after_long_help(format!("{examples}\n\n{EXIT_CODES}"))
}

/// Hides the options that select several packages in a command for one package.
pub fn without_several(command: Command, path: &[&str]) -> Command {
    match path.split_first() {
        Some((name, rest)) => {
            command.mut_subcommand(name, |subcommand| without_several(subcommand, rest))
        }
        None => command
            .mut_arg("workspace", |arg| arg.hide(true))
            .mut_arg("exclude", |arg| arg.hide(true)),
    }
}

/// The line of help of a subcommand.
fn help_line(command: &Command, name: &str) -> String {
    if name == "help" {
        return "Print help for a command".to_owned();
    }
    command
        .get_subcommands()
        .find(|subcommand| subcommand.get_name() == name)
        .and_then(Command::get_about)
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli;

    #[test]
    fn each_command_is_in_one_group() {
        let command = cli::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            .filter(|subcommand| !subcommand.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(commands, grouped);
        for name in grouped {
            assert!(!help_line(&command, name).is_empty(), "{name}");
        }
    }
}
