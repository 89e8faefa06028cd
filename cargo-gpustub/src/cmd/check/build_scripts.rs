//! Libraries that build scripts pass to the linker, as `cargo check` reports them.

use std::path::Path;

use cargo_metadata::{BuildScript, Message, Package, PackageId, TargetKind};
use gpustub_check::workspace::LinkLibrary;
use gpustub_core::diag::Origin;
use gpustub_workspace::cargo;
use gpustub_workspace::display_path::display_path;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::workspace::Workspace;

use crate::cli;

/// Libraries of one package's build script.
pub struct Linked {
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
) -> Result<Vec<Linked>> {
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
    let output = cargo::output(&mut command)?;
    if !output.status.success() {
        let message = "could not run the build scripts: `cargo check` failed";
        return Err(Error::new(message).help("see its errors above, or check without `--build`"));
    }
    let messages = Message::parse_stream(output.stdout.as_slice());
    let scripts = messages.filter_map(|message| match message {
        Ok(Message::BuildScriptExecuted(script)) => Some(script),
        _ => None,
    });
    let target = workspace.metadata.target_directory.as_std_path();
    Ok(scripts
        .map(|script| linked(&script, selected, target))
        .collect())
}

fn linked(script: &BuildScript, selected: &[&Package], target: &Path) -> Linked {
    let package = selected
        .iter()
        .find(|package| package.id == script.package_id);
    let source = package.and_then(|package| {
        let mut targets = package.targets.iter();
        let file = targets.find(|target| target.is_kind(TargetKind::CustomBuild))?;
        let text = std::fs::read_to_string(&file.src_path).ok()?;
        Some((display_path(file.src_path.as_std_path()), text))
    });
    // `native=/usr/lib`
    let paths = script.linked_paths.iter().map(|path| path.as_str());
    let paths = paths.map(|path| path.split_once('=').map_or(path, |(_, path)| path));
    let directories = paths.filter(|path| !Path::new(path).starts_with(target));
    let directories: Vec<String> = directories.map(str::to_owned).collect();
    let libraries = script.linked_libs.iter().filter_map(|library| {
        let name = shared_name(library.as_str())?;
        let origin = source.as_ref().map(|(file, text)| {
            let start = text.find("rustc-link-lib");
            let at = start.and_then(|start| Some(start + text[start..].find(name)?));
            Origin::new(file, at.map_or(0..0, |at| at..at + name.len()))
        });
        Some(LinkLibrary {
            name: name.to_owned(),
            directories: directories.clone(),
            origin,
        })
    });
    Linked {
        package: script.package_id.clone(),
        libraries: libraries.collect(),
        source: source.clone(),
    }
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
