//! Changes to one package: `Cargo.toml`, build script, and `use … as _` lines.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use cargo_metadata::{Dependency, DependencyKind, Edition, Package, TargetKind};
use gpustub_core::diag::{Diagnostic, OUT_OF_SYNC};
use gpustub_workspace::codes::{MISSING_RLIB, UNEDITABLE_BUILD_SCRIPT};
use gpustub_workspace::display_path::display_path;
use gpustub_workspace::edit::{Edit, build_rs, cargo_toml, use_line};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::finalizer;
use gpustub_workspace::helper_source::HelperSource;
use gpustub_workspace::ops::Pending;
use gpustub_workspace::shared_root;
use gpustub_workspace::tables::{Declared, Members};
use gpustub_workspace::workspace::{Workspace, directory, library};
use toml_edit::TomlError;

/// Adds the changes to one package, in an order in which each intermediate state builds.
pub(super) fn edits(
    workspace: &Workspace,
    members: &Members,
    package: &Package,
    declared: &Declared,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    let manifest_path = package.manifest_path.as_std_path();
    let manifest = pending.read(manifest_path)?;
    let root_manifest = pending.read(&workspace.root().join("Cargo.toml"))?;
    let text = edit_manifest(workspace, package, declared, &manifest, &root_manifest).map_err(
        |error| {
            Error::new(format!(
                "could not edit `{}`: {error}",
                display_path(manifest_path)
            ))
        },
    )?;
    pending.write(manifest_path, text)?;
    let helper = helper(package).map_or_else(|| crate_name(cargo_toml::HELPER), dependency_crate);
    build_script(package, declared, &manifest, &helper, pending, diagnostics)?;
    // Packages with super-archives or modules only need no line: their code names the files.
    if declared.provides() || declared.has_rdc() {
        use_lines(workspace, package, pending, diagnostics)?;
    }
    if declared.has_rdc() {
        dependency_lines(workspace, members, package, pending, diagnostics)?;
    }
    Ok(())
}

/// Text of a package's `Cargo.toml` with the helper, its features and `links`.
fn edit_manifest(
    workspace: &Workspace,
    package: &Package,
    declared: &Declared,
    manifest: &str,
    root_manifest: &str,
) -> std::result::Result<String, TomlError> {
    let helper = helper(package);
    let mut text = manifest.to_owned();
    if helper.is_none() {
        let members = workspace.members().into_iter();
        let source = HelperSource::choose(workspace.root(), root_manifest, members)?;
        text = cargo_toml::add_helper(&text, source.dependency(directory(package)))?;
    }
    let key = helper
        .and_then(|helper| helper.rename.as_deref())
        .unwrap_or(cargo_toml::HELPER);
    let mut features = Vec::new();
    if declared.has_rdc() || declared.has_modules() {
        features.push(finalizer::DEVICE_LINK_FEATURE);
    }
    let has_feature = |feature: &str| {
        helper.is_some_and(|helper| helper.features.iter().any(|name| name == feature))
    };
    // Each of the two has the feature for archives.
    let mut has_archive_feature = false;
    for (feature, is_needed) in [
        (cargo_toml::SPLIT_FEATURE, declared.has_split_archives()),
        (cargo_toml::ZSTD_FEATURE, declared.has_compressed_archives()),
    ] {
        has_archive_feature |= is_needed || has_feature(feature);
        if is_needed {
            features.push(feature);
        }
    }
    if declared.has_archives() && !has_archive_feature {
        features.push(cargo_toml::ARCHIVE_FEATURE);
    }
    for feature in features {
        if !has_feature(feature) {
            text = cargo_toml::add_helper_feature(&text, key, feature)?;
        }
    }
    if declared.has_rdc() && package.links.is_none() {
        text = cargo_toml::add_links(&text, &format!("gpustub-{}", package.name))?;
    }
    Ok(text)
}

/// The package's build-dependency on `gpustub-build`.
pub(super) fn helper(package: &Package) -> Option<&Dependency> {
    package.dependencies.iter().find(|dependency| {
        dependency.kind == DependencyKind::Build && dependency.name == cargo_toml::HELPER
    })
}

/// Removes `use … as _` lines of former runs for crates that the package no longer depends on, which
/// would not compile.
pub(super) fn remove_stale_lines(
    workspace: &Workspace,
    members: &Members,
    package: &Package,
    pending: &mut Pending,
) -> Result<()> {
    let declared = members
        .all()
        .find(|(member, _)| member.id == package.id)
        .map(|(_, declared)| declared);
    let packages = workspace.members();
    let mut called = BTreeSet::new();
    if declared.is_some_and(Declared::has_rdc) {
        for (name, _) in called_crates(members, package) {
            called.insert(name);
        }
        // Crates outside of the workspace are kept: their tables are unknown.
        for dependency in &package.dependencies {
            if !packages.iter().any(|member| member.name == dependency.name) {
                called.insert(dependency_crate(dependency));
            }
        }
    }
    for (path, _) in roots(package, |path| path.starts_with(workspace.root())) {
        // Cargo reports unreadable files.
        let Ok(text) = pending.read(path) else {
            continue;
        };
        let code = use_line::device_code(String::new());
        let new = use_line::retain(&text, &code, |name| called.contains(name));
        let owners: Vec<String> = shared_root::sharing_packages(&packages, package, path)
            .chain([package])
            .filter_map(library)
            .map(|library| crate_name(&library.name))
            .collect();
        let new = use_line::retain(&new, &use_line::STUBS, |name| {
            owners.iter().any(|owner| owner == name)
        });
        if new != text {
            pending.write(path, new)?;
        }
    }
    Ok(())
}

/// Crate name of a dependency in Rust code, if its library has the name of its package.
pub(super) fn dependency_crate(dependency: &Dependency) -> String {
    crate_name(dependency.rename.as_ref().unwrap_or(&dependency.name))
}

/// Name of a package or target as an identifier.
pub(super) fn crate_name(name: &str) -> String {
    name.replace('-', "_")
}

/// Crates whose device code a package's own may call, with the condition of the dependency for
/// `cfg(…)`; `None`: not expressible in a source file.
fn called_crates(members: &Members, package: &Package) -> Vec<(String, Option<String>)> {
    let mut crates = Vec::new();
    for (member, declared) in members.all() {
        if !(declared.has_rdc() || declared.provides()) {
            continue;
        }
        let entries: Vec<&Dependency> = package
            .dependencies
            .iter()
            .filter(|dependency| {
                dependency.name == member.name.as_str()
                    && dependency.path.is_some()
                    && dependency.kind == DependencyKind::Normal
            })
            .collect();
        let Some(library) = library(member).filter(|_| !entries.is_empty()) else {
            continue;
        };
        let name = entries
            .iter()
            .find_map(|entry| entry.rename.as_ref())
            .unwrap_or(&library.name);
        crates.push((crate_name(name), condition(package, &entries)));
    }
    crates
}

/// Adds `use … as _` lines for crates whose device code the package's calls, to its library or, without
/// one, to its programs. rustc would omit a crate that only device code calls, together with the stubs
/// that its build script links.
fn dependency_lines(
    workspace: &Workspace,
    members: &Members,
    package: &Package,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    let library_root = library(package).map(|library| library.src_path.as_std_path());
    let mut lines = Vec::new();
    for (name, condition) in called_crates(members, package) {
        if let Some(condition) = condition {
            lines.push((name, use_line::device_code(condition)));
        }
    }
    for root in roots(package, |path| library_root.is_none_or(|root| root == path)) {
        for (name, line) in lines.iter().filter(|_| root.0.exists()) {
            let line = (name.as_str(), line);
            name_crate(workspace, package, root, line, pending, diagnostics)?;
        }
    }
    Ok(())
}

/// Condition of a dependency for `cfg(…)`; empty: always. `None`: no entry, or an entry for a target
/// triple, which a source file cannot test.
fn condition(package: &Package, entries: &[&Dependency]) -> Option<String> {
    let mut alternatives = BTreeSet::new();
    for entry in entries {
        let mut conditions = Vec::new();
        if entry.optional {
            let key = entry.rename.as_deref().unwrap_or(&entry.name);
            conditions.push(either(activating(package, key))?);
        }
        if let Some(target) = &entry.target {
            let target = target.to_string();
            let inner = target.strip_prefix("cfg(")?.strip_suffix(')')?;
            conditions.push(inner.to_owned());
        }
        alternatives.insert(match conditions.as_slice() {
            [] => return Some(String::new()),
            [condition] => condition.clone(),
            several => format!("all({})", several.join(", ")),
        });
    }
    either(alternatives)
}

/// Disjunction of conditions; `None` if empty.
fn either(conditions: BTreeSet<String>) -> Option<String> {
    let conditions: Vec<String> = conditions.into_iter().collect();
    match conditions.as_slice() {
        [] => None,
        [condition] => Some(condition.clone()),
        several => Some(format!("any({})", several.join(", "))),
    }
}

/// Features that directly activate an optional dependency: `dep:x` and `x/…`, but not `x?/…`. Features
/// that activate one of these also enable it.
fn activating(package: &Package, key: &str) -> BTreeSet<String> {
    let mut conditions = BTreeSet::new();
    for (feature, entries) in &package.features {
        let activates = entries.iter().any(|entry| {
            entry.strip_prefix("dep:") == Some(key)
                || entry
                    .split_once('/')
                    .is_some_and(|(dependency, _)| dependency == key)
        });
        if activates {
            conditions.insert(format!("feature = {feature:?}"));
        }
    }
    conditions
}

/// The root files of a package's targets that a filter keeps, apart from its build script.
pub(super) fn roots(
    package: &Package,
    keeps: impl Fn(&Path) -> bool,
) -> BTreeSet<(&Path, Edition)> {
    package
        .targets
        .iter()
        .filter(|target| !target.is_kind(TargetKind::CustomBuild))
        .map(|target| (target.src_path.as_std_path(), target.edition))
        .filter(|(path, _)| keeps(path))
        .collect()
}

/// Adds a `use … as _` line to a file.
fn name_crate(
    workspace: &Workspace,
    package: &Package,
    (path, edition): (&Path, Edition),
    (name, line): (&str, &use_line::Line),
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    match use_line::add(&pending.read(path)?, name, edition, line) {
        Edit::Same => {}
        Edit::Changed(text) => {
            match shared_root::unknown_crate(&workspace.members(), package, path, name) {
                Some(diagnostic) => diagnostics.push(diagnostic),
                None => pending.write(path, text)?,
            }
        }
        Edit::Impossible(reason) => diagnostics.push(uneditable(path, reason, name)),
    }
    Ok(())
}

fn uneditable(path: &Path, reason: &str, name: &str) -> Diagnostic {
    let message = format!("`{}` cannot be edited: {reason}", display_path(path));
    let help = format!("add this line before its first item: `use {name} as _;`");
    Diagnostic::error(&OUT_OF_SYNC, message).help(help)
}

/// Adds the call to the build script.
fn build_script(
    package: &Package,
    declared: &Declared,
    manifest: &str,
    helper: &str,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    // Tests have a finalizer: without programs, a build of the package needs no device link.
    let (call, replaced_call) = if declared.has_rdc() && finalizer::has_programs(package) {
        (build_rs::FINALIZE, build_rs::BUILD)
    } else {
        (build_rs::BUILD, build_rs::FINALIZE)
    };
    let line = build_rs::line(helper, call);
    let target = package
        .targets
        .iter()
        .find(|target| target.is_kind(TargetKind::CustomBuild));
    let path = match target {
        Some(target) => target.src_path.clone().into_std_path_buf(),
        None if cargo_toml::build_is_off(manifest).unwrap_or(false) => {
            let message = format!("package `{}` disables its build script", package.name);
            diagnostics.push(Diagnostic::error(&UNEDITABLE_BUILD_SCRIPT, message).help(format!(
                "remove `build = false` from its Cargo.toml; the build script must call `{line}`"
            )));
            return Ok(());
        }
        None => directory(package).join("build.rs"),
    };
    let new = match fs::read_to_string(&path) {
        Ok(text) => match build_rs::add_call(&text, helper, call) {
            Edit::Same if declared.has_rdc() => {
                match build_rs::replace_call(&text, helper, replaced_call, call) {
                    Edit::Changed(text) => text,
                    _ => return Ok(()),
                }
            }
            Edit::Same => return Ok(()),
            Edit::Changed(text) => text,
            Edit::Impossible(reason) => {
                let message = format!("`{}` cannot be edited: {reason}", display_path(&path));
                let help = format!("add this line at the start of the build script: `{line}`");
                diagnostics.push(Diagnostic::error(&UNEDITABLE_BUILD_SCRIPT, message).help(help));
                return Ok(());
            }
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => build_rs::new(helper, call),
        Err(e) => return Err(Error::io("read", &path, &e)),
    };
    pending.write(&path, new)
}

/// Adds the `use … as _` lines of a package that has a library.
fn use_lines(
    workspace: &Workspace,
    package: &Package,
    pending: &mut Pending,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<()> {
    let Some(library) = library(package) else {
        return Ok(());
    };
    let roots = roots(package, |path| path != library.src_path.as_std_path());
    let is_linkable = [TargetKind::Lib, TargetKind::RLib, TargetKind::DyLib]
        .into_iter()
        .any(|kind| library.is_kind(kind));
    if !is_linkable {
        if !roots.is_empty() {
            let message = format!(
                "the programs and tests of package `{}` get no stubs, because Rust code cannot \
                 link its library target",
                package.name
            );
            let help = "add \"rlib\" to `crate-type` in its Cargo.toml";
            diagnostics.push(Diagnostic::warning(&MISSING_RLIB, message).help(help));
        }
        return Ok(());
    }
    let name = crate_name(&library.name);
    for (path, edition) in roots {
        // Cargo reports a missing file; files outside of the workspace are not edited.
        if path.starts_with(workspace.root()) && path.exists() {
            let line = (name.as_str(), &use_line::STUBS);
            name_crate(
                workspace,
                package,
                (path, edition),
                line,
                pending,
                diagnostics,
            )?;
        }
    }
    Ok(())
}
