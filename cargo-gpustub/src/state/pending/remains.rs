//! Parts of a package that only serve a `GpuStub.toml`.

use std::fs;

use cargo_metadata::{Package, TargetKind};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use gpustub_workspace::display_path::display_path;
use gpustub_workspace::edit::{build_rs, cargo_toml, use_line};
use gpustub_workspace::tables::FILE;
use gpustub_workspace::workspace::library;

use super::package::{crate_name, dependency_crate, helper, roots};

/// Diagnostic for a package that has lost its `GpuStub.toml`: an error if its build script still builds from the file,
/// which then fails.
pub fn remains(package: &Package) -> Option<Diagnostic> {
    helper(package)?;
    let builds = build_script(package).is_some_and(|script| script.function == build_rs::BUILD);
    // Without `links`, a package that finalizes may link its programs itself.
    if !builds && links(package).is_none() {
        return None;
    }
    let message = format!(
        "package `{}` has no {FILE}, but still has {}",
        package.name,
        sentence(&parts(package))
    );
    let diagnostic = if builds {
        Diagnostic::error(&OUT_OF_SYNC, message)
    } else {
        Diagnostic::warning(&OUT_OF_SYNC, message)
    };
    let file = display_path(package.manifest_path.as_std_path());
    Some(diagnostic.with_origin(&file, 0..0).help(
        "to stop using gpustub, remove these; to use it, declare a library with `cargo gpustub add`",
    ))
}

/// The parts with their files, in the order in which they can be removed.
pub fn parts(package: &Package) -> Vec<String> {
    let manifest = display_path(package.manifest_path.as_std_path());
    let mut parts = Vec::new();
    if let Some(library) = library(package) {
        let name = crate_name(&library.name);
        for (path, _) in roots(package, |path| path != library.src_path.as_std_path()) {
            let text = fs::read_to_string(path).unwrap_or_default();
            if use_line::retain(&text, &use_line::STUBS, |owner| owner != name) != text {
                let file = display_path(path);
                parts.push(format!("the line `use {name} as _;` in `{file}`"));
            }
        }
    }
    if let Some(script) = build_script(package) {
        parts.push(if script.is_generated {
            format!("the build script `{}`", script.file)
        } else {
            format!("the line `{}` in `{}`", script.line, script.file)
        });
    }
    if let Some(links) = links(package) {
        parts.push(format!("`links = \"{links}\"` in `{manifest}`"));
    }
    if helper(package).is_some() {
        parts.push(format!(
            "the build-dependency `{}` in `{manifest}`",
            cargo_toml::HELPER
        ));
    }
    parts
}

/// A build script that calls the helper.
struct BuildScript {
    file: String,
    /// Called function.
    function: &'static str,
    /// The call.
    line: String,
    /// Whether `sync` wrote the whole file.
    is_generated: bool,
}

fn build_script(package: &Package) -> Option<BuildScript> {
    let helper = dependency_crate(helper(package)?);
    let target = package
        .targets
        .iter()
        .find(|target| target.is_kind(TargetKind::CustomBuild))?;
    let text = fs::read_to_string(&target.src_path).ok()?;
    [build_rs::BUILD, build_rs::FINALIZE]
        .into_iter()
        .map(|function| BuildScript {
            file: display_path(target.src_path.as_std_path()),
            function,
            line: build_rs::line(&helper, function),
            is_generated: text == build_rs::new(&helper, function),
        })
        .find(|script| text.contains(&script.line))
}

/// `links` that `sync` wrote.
fn links(package: &Package) -> Option<&str> {
    let links = package.links.as_deref()?;
    links.starts_with("gpustub-").then_some(links)
}

/// `a, b and c`.
pub fn sentence(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [part] => part.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}
