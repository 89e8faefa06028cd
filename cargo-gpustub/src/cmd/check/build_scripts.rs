//! Libraries that build scripts pass to the linker, as `cargo check` reports them.

use std::ops::Range;
use std::path::Path;

use cargo_metadata::{BuildScript, Message, Package, PackageId, TargetKind};
use gpustub_check::workspace::LinkLibrary;
use gpustub_core::diag::Origin;
use gpustub_workspace::cargo;
use gpustub_workspace::display_path::display_path;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::number;
use gpustub_workspace::shell::Shell;
use gpustub_workspace::workspace::Workspace;

use crate::cli;

/// Libraries that the build script of a package passes to the linker.
pub struct ScriptLibraries {
    pub package: PackageId,
    pub libraries: Vec<LinkLibrary>,
    /// Display path and text of the build script, of a package that is checked.
    pub source: Option<(String, String)>,
}

/// Runs the build scripts of the selected packages and their dependencies.
pub fn run(
    options: &cli::Check,
    workspace: &Workspace,
    selected: &[&Package],
    shell: &Shell,
) -> Result<Vec<ScriptLibraries>> {
    // `cargo build` would link programs, which fails without the libraries that this check is to find.
    let mut command = cargo::check(&workspace.root().join("Cargo.toml"));
    command.args(options.cargo.cargo_arguments());
    for package in selected {
        command.args(["--package", &package.id.repr]);
    }
    command.args(
        options
            .target
            .iter()
            .flat_map(|target| ["--target", target]),
    );
    options.cargo.add_features(&mut command);
    let status = shell.status_line("Building");
    status.show(|| match selected {
        [package] => package.name.to_string(),
        packages => number(packages.len(), "package"),
    });
    if status.is_enabled() && shell.is_styled() {
        // Cargo does not see the terminal.
        command.args(["--color", "always"]);
    }
    let output = cargo::output_with_status(&mut command, &status)?;
    drop(status);
    if !output.status.success() {
        let message = "could not run the build scripts: `cargo check` failed";
        return Err(Error::new(message).help("see its errors above, or check without `--build`"));
    }
    let target_directory = workspace.metadata.target_directory.as_std_path();
    let mut scripts = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Ok(Message::BuildScriptExecuted(script)) = message {
            scripts.push(script_libraries(&script, selected, target_directory));
        }
    }
    Ok(scripts)
}

fn script_libraries(
    script: &BuildScript,
    selected: &[&Package],
    target_directory: &Path,
) -> ScriptLibraries {
    let source = selected
        .iter()
        .find(|package| package.id == script.package_id)
        .and_then(|package| read_build_script(package));
    let mut directories = Vec::new();
    for path in &script.linked_paths {
        // `native=/usr/lib`
        let path = path.as_str();
        let directory = path.split_once('=').map_or(path, |(_, path)| path);
        if !Path::new(directory).starts_with(target_directory) {
            directories.push(directory.to_owned());
        }
    }
    let mut libraries = Vec::new();
    for library in &script.linked_libs {
        let Some(name) = shared_name(library.as_str()) else {
            continue;
        };
        libraries.push(LinkLibrary {
            name: name.to_owned(),
            directories: directories.clone(),
            origin: source
                .as_ref()
                .map(|(file, text)| Origin::new(file, link_line_span(text, name))),
        });
    }
    ScriptLibraries {
        package: script.package_id.clone(),
        libraries,
        source,
    }
}

/// Display path and text of a package's build script, if it can be read.
fn read_build_script(package: &Package) -> Option<(String, String)> {
    let script = package
        .targets
        .iter()
        .find(|target| target.is_kind(TargetKind::CustomBuild))?;
    let text = std::fs::read_to_string(&script.src_path).ok()?;
    Some((display_path(script.src_path.as_std_path()), text))
}

/// Span of a library's name behind the first `rustc-link-lib`; empty if the text does not contain it.
fn link_line_span(text: &str, name: &str) -> Range<usize> {
    text.find("rustc-link-lib")
        .and_then(|line| Some(line + text[line..].find(name)?))
        .map_or(0..0, |start| start..start + name.len())
}

/// Name of a library that is not linked statically: `cublas` of `dylib=cublas`.
fn shared_name(library: &str) -> Option<&str> {
    let (kind, name) = library.split_once('=').unwrap_or(("dylib", library));
    let kind = kind.split(':').next();
    // `name:rename`
    let name = name.split(':').next()?;
    (kind == Some("dylib")).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::shared_name;

    #[test]
    fn shared_name_excludes_static_libraries() {
        assert_eq!(shared_name("cublas"), Some("cublas"));
        assert_eq!(shared_name("dylib=cudart"), Some("cudart"));
        assert_eq!(shared_name("dylib:+as-needed=cuda:driver"), Some("cuda"));
        assert_eq!(shared_name("static=cudart_static"), None);
        assert_eq!(shared_name("static:+whole-archive=cuda"), None);
    }
}
