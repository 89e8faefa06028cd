//! `cargo gpustub init`: creates a `GpuStub.toml`, and a job for a CI service.

use std::path::Path;

use cargo_metadata::Package;
use gpustub_workspace::display_path::{display_path, slashes};
use gpustub_workspace::edit::gpustub_toml;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::{Declared, FILE};
use gpustub_workspace::workspace::{Depth, NO_PACKAGE, Workspace, directory};

use crate::cli::{self, CiService};

/// Runs the command.
pub fn run(options: &cli::Init, shell: &mut Shell) -> Result<bool> {
    if let Some(file) = Declared::without_package(&options.cargo)? {
        return run_without_package(options, &file, shell);
    }
    let workspace = Workspace::load(&options.cargo, Depth::Members).map_err(|error| {
        if error.help.as_deref() != Some(NO_PACKAGE) {
            return error;
        }
        error.help(format!(
            "{NO_PACKAGE}; in a project without cargo, write the line `schema = 1` to {FILE} first"
        ))
    })?;
    let mut operations = Vec::new();
    let has_file = |package: &Package| exists(&directory(package).join(FILE));
    // A job serves all packages of the workspace, of which `-p` selects one for a new file.
    let is_new = match options.ci {
        None => true,
        Some(_) if options.cargo.workspace.package.is_empty() => {
            !workspace.members().into_iter().any(has_file)
        }
        Some(_) => !has_file(workspace.selected_package(|_| true)?),
    };
    let mut add = "cargo gpustub add".to_owned();
    if is_new {
        let package = workspace.selected_package(|_| true)?;
        if workspace.members().len() > 1 {
            add = format!("{add} -p {}", package.name);
        }
        let path = directory(package).join(FILE);
        let display_path = display_path(&path);
        if exists(&path) {
            return Err(already_exists(&display_path));
        }
        operations.push(Operation::write(path, display_path, gpustub_toml::new())?);
    }
    if let Some(service) = options.ci {
        operations.push(job(job_of_workspace(service), workspace.root())?);
    }
    apply(&operations, shell)?;
    if is_new {
        shell.note(format!("next: `{add} <library>`"));
    }
    Ok(true)
}

/// As [`run`], beside a file without a package, as projects in C have it.
fn run_without_package(options: &cli::Init, file: &Declared, shell: &mut Shell) -> Result<bool> {
    let Some(service) = options.ci else {
        return Err(already_exists(&file.display_path));
    };
    apply(&[job(job_without_cargo(service), &file.directory)?], shell)?;
    shell.note("next: build the project in the job, and name its programs there");
    Ok(true)
}

fn already_exists(path: &str) -> Error {
    Error::new(format!("`{path}` already exists"))
        .help("add libraries to it with `cargo gpustub add <library>`")
}

fn apply(operations: &[Operation], shell: &mut Shell) -> Result<()> {
    ops::apply(operations, |operation| {
        shell.status(operation.verb(), &operation.display_path)
    })
}

/// Path and text of a service's job.
type Job = (&'static str, &'static str);

const GITHUB: &str = ".github/workflows/gpustub.yml";
const GITLAB: &str = ".gitlab-ci.yml";

fn job_of_workspace(service: CiService) -> Job {
    match service {
        CiService::Github => (GITHUB, include_str!("init/github.yml")),
        CiService::Gitlab => (GITLAB, include_str!("init/gitlab.yml")),
    }
}

fn job_without_cargo(service: CiService) -> Job {
    match service {
        CiService::Github => (GITHUB, include_str!("init/github-without-cargo.yml")),
        CiService::Gitlab => (GITLAB, include_str!("init/gitlab-without-cargo.yml")),
    }
}

/// The file of a job that runs in a directory. Services read it from the root of the repository.
fn job((file, text): Job, directory: &Path) -> Result<Operation> {
    let repository = directory
        .ancestors()
        .find(|path| path.join(".git").exists());
    let repository = repository.unwrap_or(directory);
    let inner = directory.strip_prefix(repository).unwrap_or(directory);
    let inner = slashes(inner);
    let text = if inner.is_empty() {
        // The lines that change to the directory.
        text.replace("defaults:\n  run:\n    working-directory: .\n", "")
            .replace("    - cd .\n", "")
    } else {
        // GitHub evaluates what is in `${{ }}`.
        let literal = inner.replace("${{", "${{ '${{' }}");
        let change = format!("cd -- '{}'", inner.replace('\'', r"'\''"));
        text.replace(
            "working-directory: .",
            &format!("working-directory: {}", yaml_string(&literal)),
        )
        .replace("- cd .", &format!("- {}", yaml_string(&change)))
    };
    let path = repository.join(file);
    let display_path = display_path(&path);
    if exists(&path) {
        return Err(Error::new(format!("`{display_path}` already exists"))
            .help(format!("add this job by hand:\n\n{text}")));
    }
    Operation::write(path, display_path, text)
}

/// A scalar in double quotes. YAML reads strings of JSON (YAML 1.2.2, 7.3.1).
fn yaml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether a file or a link is there, also one that leads nowhere.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
