//! The examples at the end of each `--help`. A test runs each of them.

use clap::Command;

/// Command lines by command; the first is the tool itself.
pub const EXAMPLES: &[(&[&str], &[&str])] = &[
    (
        &[],
        &[
            "cargo gpustub add cudart nvrtc --header-version 12.8",
            "cargo gpustub check dist/*.whl",
            "cargo gpustub export stubs cudart --header-version 13 --out-dir stubs",
        ],
    ),
    (
        &["init"],
        &["cargo gpustub init", "cargo gpustub init -p kernels"],
    ),
    (
        &["add"],
        &[
            "cargo gpustub add",
            "cargo gpustub add cudart hip --header-version cuda=12.8 --header-version rocm=6.4",
            "cargo gpustub add acme --from /opt/acme/lib/libacme.so",
            "cargo gpustub add --toolkit cuda=12.8",
        ],
    ),
    (
        &["remove"],
        &[
            "cargo gpustub remove nvrtc",
            "cargo gpustub remove -p kernels cudart nvrtc",
        ],
    ),
    (
        &["sync"],
        &[
            "cargo gpustub sync",
            "cargo gpustub sync --check",
            "cargo gpustub sync --print-use-lines",
        ],
    ),
    (
        &["plan"],
        &[
            "cargo gpustub plan",
            "cargo gpustub plan --workspace --format json",
            "cargo gpustub plan --target aarch64-unknown-linux-gnu",
        ],
    ),
    (
        &["check"],
        &[
            "cargo gpustub check --workspace",
            "cargo gpustub check dist/*.whl --message-format github",
            "cargo gpustub check target/release/app -D all -A oversized-file",
            "cargo gpustub check --fix --allow-dirty",
        ],
    ),
    (
        &["repair"],
        &[
            "cargo gpustub repair dist/*.whl --out-dir repaired",
            "cargo gpustub repair target/release/app --out-dir repaired --dry-run",
        ],
    ),
    (
        &["doctor"],
        &[
            "cargo gpustub doctor",
            "cargo gpustub doctor -p kernels --message-format json",
        ],
    ),
    (
        &["symbols"],
        &[
            "cargo gpustub symbols /opt/acme/lib/libacme.so",
            "cargo gpustub symbols /opt/acme/lib/libacme.so --format json --require acmeOpen",
        ],
    ),
    (
        &["abi"],
        &[
            "cargo gpustub abi cudaGraphAddDependencies",
            "cargo gpustub abi --all --format jsonl",
        ],
    ),
    (
        &["diff"],
        &[
            "cargo gpustub diff cudart@12.9 cudart@13.0",
            "cargo gpustub diff symbols/acme.symbols /opt/acme/lib/libacme.so",
        ],
    ),
    (
        &["export"],
        &[
            "cargo gpustub export stubs cuda cudart --header-version 13 --out-dir stubs",
            "cargo gpustub export device-link -p physics --prefix dist",
            "cargo gpustub export archive-header --prefix dist",
        ],
    ),
    (
        &["export", "stubs"],
        &[
            "cargo gpustub export stubs cuda cudart --header-version 13 --out-dir stubs",
            "cargo gpustub export stubs --soname libcudart.so.12 --out-dir stubs",
            "cargo gpustub export stubs --for program --type shared --out-dir stubs",
            "cargo gpustub export stubs cudart --header-version 12 --sources-only --out-dir third-party/stubs",
        ],
    ),
    (
        &["export", "device-link"],
        &[
            "cargo gpustub export device-link -p physics --release --prefix dist",
            "cargo gpustub export device-link -p physics --list",
        ],
    ),
    (
        &["export", "archive-header"],
        &[
            "cargo gpustub export archive-header --prefix dist",
            "cargo gpustub export archive-header --list",
        ],
    ),
    (
        &["archive"],
        &[
            "cargo gpustub archive build -o all.a gfx900.a gfx1100.a",
            "cargo gpustub archive list kernels.a",
        ],
    ),
    (
        &["archive", "build"],
        &[
            "cargo gpustub archive build -o all.a gfx900.a gfx1100.a",
            "cargo gpustub archive build -o all.a --view gfx900=gfx900.a,common.a --no-default-view",
            "cargo gpustub archive build -o all.a --manifest-archive builtins",
        ],
    ),
    (
        &["archive", "list"],
        &[
            "cargo gpustub archive list kernels.a",
            "cargo gpustub archive list kernels.a --view gfx900 --format json",
        ],
    ),
    (
        &["archive", "find"],
        &[
            "cargo gpustub archive find kernels.a scale",
            "cargo gpustub archive find kernels.a scale --view gfx900",
        ],
    ),
    (
        &["archive", "nm"],
        &[
            "cargo gpustub archive nm kernels.a",
            "cargo gpustub archive nm kernels.a --view gfx900",
        ],
    ),
    (
        &["archive", "extract"],
        &[
            "cargo gpustub archive extract kernels.a --view gfx900 -o view.a",
            "cargo gpustub archive extract kernels.a --view gfx900 --members --out-dir members",
        ],
    ),
    (
        &["archive", "verify"],
        &[
            "cargo gpustub archive verify kernels.a",
            "cargo gpustub archive verify kernels.a --quiet",
        ],
    ),
    (
        &["archive", "refresh"],
        &[
            "cargo gpustub archive refresh kernels.a",
            "cargo gpustub archive refresh kernels.a --quiet",
        ],
    ),
    (
        &["archive", "stats"],
        &[
            "cargo gpustub archive stats kernels.a",
            "cargo gpustub archive stats kernels.a --format json",
        ],
    ),
    (
        &["explain"],
        &[
            "cargo gpustub explain unknown-key",
            "cargo gpustub explain --list",
            "cargo gpustub explain unknown-key --message-format json",
        ],
    ),
    (
        &["schema"],
        &[
            "cargo gpustub schema",
            "cargo gpustub schema > gpustub.schema.json",
        ],
    ),
    (
        &["completions"],
        &[
            "source <(cargo gpustub completions bash)",
            "cargo gpustub completions zsh > _cargo-gpustub",
            "cargo gpustub completions fish > cargo-gpustub.fish",
        ],
    ),
    (
        &["man"],
        &[
            "cargo gpustub man > cargo-gpustub.1",
            "cargo gpustub man export stubs > cargo-gpustub-export-stubs.1",
        ],
    ),
];

/// Appends the examples to the long help of each command.
pub fn with_examples(mut command: Command) -> Command {
    for (path, lines) in EXAMPLES {
        command = with_example(command, path, lines);
    }
    command
}

fn with_example(command: Command, path: &[&str], lines: &[&str]) -> Command {
    let Some((name, rest)) = path.split_first() else {
        let header = *command.get_styles().get_header();
        let mut text = format!("{header}Examples:{header:#}");
        for line in lines {
            text.push_str("\n  ");
            text.push_str(line);
        }
        return command.after_long_help(text);
    };
    // Subcommands inherit the styles of the tool only when they are built.
    let styles = command.get_styles().clone();
    command.mut_subcommand(name, |subcommand| {
        with_example(subcommand.styles(styles), rest, lines)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Cli, arguments};
    use clap::CommandFactory;

    /// Paths of all commands, without `help`.
    fn collect_paths(command: &Command, path: &[String], paths: &mut Vec<Vec<String>>) {
        paths.push(path.to_vec());
        for subcommand in command.get_subcommands() {
            let path = [path, &[subcommand.get_name().to_owned()]].concat();
            collect_paths(subcommand, &path, paths);
        }
    }

    #[test]
    fn each_command_has_two_to_four_examples() {
        let mut paths = Vec::new();
        collect_paths(&Cli::command(), &[], &mut paths);
        let mut example_paths: Vec<Vec<String>> = Vec::new();
        for (path, lines) in EXAMPLES {
            assert!((2..=4).contains(&lines.len()), "{path:?}");
            example_paths.push(path.iter().map(|name| (*name).to_owned()).collect());
        }
        paths.sort();
        example_paths.sort();
        assert_eq!(paths, example_paths);
    }

    #[test]
    fn examples_are_about_their_command() {
        for (path, lines) in EXAMPLES {
            let start = format!("cargo gpustub {}", path.join(" "));
            for line in *lines {
                assert!(line.contains(start.trim_end()), "{line}");
                let mut commands = line
                    .trim_start_matches("source <(")
                    .trim_end_matches(')')
                    .split([';', '>', '&']);
                let mut words = vec!["cargo-gpustub".into()];
                let first = commands.next().unwrap_or_default();
                words.extend(first.split_whitespace().skip(1).map(Into::into));
                let matches = crate::cli::command().try_get_matches_from(arguments(words));
                assert!(matches.is_ok(), "{line}: {matches:?}");
            }
        }
    }
}
