//! `cargo gpustub init`: creates a `GpuStub.toml`, and a job for a CI service.

use std::path::Path;

use cargo_metadata::Package;
use gpustub_workspace::display_path::{display_path, slashes};
use gpustub_workspace::edit::gpustub_toml;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::ops::{self, Operation};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::FILE;
use gpustub_workspace::workspace::{Depth, Workspace, directory};

use crate::cli::{self, CiService};

/// Runs the command.
pub fn run(options: &cli::Init, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let mut operations = Vec::new();
    let has_table = |package: &&Package| directory(package).join(FILE).exists();
    // A job serves all packages of the workspace.
    let is_new = options.ci.is_none() || !workspace.members().iter().any(has_table);
    if is_new {
        let package = workspace.selected_package(|_| true)?;
        let path = directory(package).join(FILE);
        let display_path = display_path(&path);
        if path.exists() {
            return Err(Error::new(format!("`{display_path}` already exists"))
                .help("add libraries to it with `cargo gpustub add <library>`"));
        }
        operations.push(Operation::write(path, display_path, gpustub_toml::new())?);
    }
    operations.extend(
        options
            .ci
            .map(|service| job(service, workspace.root()))
            .transpose()?,
    );
    ops::apply(&operations, |operation| {
        shell.status(operation.verb(), &operation.display_path)
    })?;
    if is_new {
        shell.note("next: `cargo gpustub add <library>`");
    }
    Ok(true)
}

/// The file of a job that checks the workspace in a directory. Services read it from the root of the repository.
fn job(service: CiService, workspace: &Path) -> Result<Operation> {
    let repository = workspace
        .ancestors()
        .find(|path| path.join(".git").exists());
    let repository = repository.unwrap_or(workspace);
    let (file, text) = match service {
        CiService::Github => (
            ".github/workflows/gpustub.yml",
            include_str!("init/github.yml"),
        ),
        CiService::Gitlab => (".gitlab-ci.yml", include_str!("init/gitlab.yml")),
    };
    let inner = workspace.strip_prefix(repository).unwrap_or(workspace);
    let inner = slashes(inner);
    let text = if inner.is_empty() {
        // The lines that change to the workspace.
        text.replace("defaults:\n  run:\n    working-directory: .\n", "")
            .replace("    - cd .\n", "")
    } else {
        text.replace(
            "working-directory: .",
            &format!("working-directory: {inner}"),
        )
        .replace("- cd .", &format!("- cd {inner}"))
    };
    let path = repository.join(file);
    let display_path = display_path(&path);
    if path.exists() {
        return Err(Error::new(format!("`{display_path}` already exists")).help(
            "add the job by hand: https://github.com/gpustub/gpustub/blob/main/docs/check.md#in-ci",
        ));
    }
    Operation::write(path, display_path, text)
}
