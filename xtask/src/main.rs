//! Maintenance of this repository: `cargo xtask <task>`.

mod abi;
mod book;
mod c_runtime;
mod components;
mod errors;
mod fallbacks;
mod library;
mod manifests;
mod recipes;
mod reference;
mod release;
mod repository;

use std::process::ExitCode;

/// A task.
struct Task {
    name: &'static str,
    /// Description, in one line.
    about: &'static str,
    /// Arguments, as shown by the usage.
    usage: &'static str,
    /// Runs the task. `Ok(false)`: a check failed.
    run: fn(&[String]) -> Result<bool, String>,
}

const TASKS: &[Task] = &[
    Task {
        name: "library",
        about: "install the packages of one library, and write all that is generated for it",
        usage: "[--components DIR] [--rewrite-manifest] LIBRARY",
        run: library::run,
    },
    Task {
        name: "manifests",
        about: "regenerate manifests/*.symbols from the real packages, or compare them",
        usage: "[--check] [--components DIR] [LIBRARY...]",
        run: manifests::run,
    },
    Task {
        name: "fallbacks",
        about: "compare [fallback] and [zero-out] of manifests/*.toml with the real C headers",
        usage: "[--components DIR] [LIBRARY...]",
        run: fallbacks::run,
    },
    Task {
        name: "abi",
        about: "regenerate manifests/*.abi and prototypes from the real headers, or compare them",
        usage: "[--check] [--components DIR] [LIBRARY...]",
        run: abi::run,
    },
    Task {
        name: "adapters",
        about: "regenerate templates/adapters/*.h from the real headers, or compare them",
        usage: "[--check] [--components DIR]",
        run: abi::layouts::run,
    },
    Task {
        name: "errors",
        about: "regenerate manifests/*.errors from the real headers, or compare them",
        usage: "[--check] [--components DIR] [LIBRARY...]",
        run: errors::run,
    },
    Task {
        name: "abi-programs",
        about: "write fake libraries, and callers that detect ABI mismatches, as C",
        usage: "OUT [--components DIR] [LIBRARY...]",
        run: abi::programs::run,
    },
    Task {
        name: "c-runtime",
        about: "regenerate manifests/c-runtime.names from the platform's libraries, or compare it",
        usage: "[--check]",
        run: c_runtime::run,
    },
    Task {
        name: "reference",
        about: "regenerate the schema and the reference pages of docs/, or compare them",
        usage: "[--check]",
        run: reference::run,
    },
    Task {
        name: "figures",
        about: "take over the figures of benches; called by tests/bench",
        usage: "DIR COMMIT",
        run: reference::budgets::collect,
    },
    Task {
        name: "release",
        about: "check that the tree can be released, and publish its packages",
        usage: "[--dry-run]",
        run: release::run,
    },
    Task {
        name: "book",
        about: "build the book of docs/ with mdBook, or check its links only",
        usage: "[--check]",
        run: book::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, arguments)) = arguments.split_first() else {
        eprint!("{}", usage());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprint!("error: unknown task `{name}`\n\n{}", usage());
        return ExitCode::from(2);
    };
    match (task.run)(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(101)
        }
    }
}

fn usage() -> String {
    let mut text = String::from("Usage: cargo xtask <task>\n");
    for task in TASKS {
        text += &format!("\n  {} {}\n      {}\n", task.name, task.usage, task.about);
    }
    text
}
