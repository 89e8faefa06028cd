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
use gpustub_workspace::tables::{Declared, FILE, Members};
use gpustub_workspace::workspace::{Workspace, directory, library};

/// Adds the changes to one package, in an order in which each intermediate state builds.
pub(super) fn edits(
    workspace: &Workspace,
    members: &Members,
    package: &Package,
    declared: &Declared,
    pending: &mut Pending,
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    let manifest_path = package.manifest_path.as_std_path();
    let manifest = pending.read(manifest_path)?;
    let helper = package
        .dependencies
        .iter()
        .find(|d| d.kind == DependencyKind::Build && d.name == cargo_toml::HELPER);
    let root = pending.read(&workspace.root().join("Cargo.toml"))?;
    let name = helper
        .and_then(|dependency| dependency.rename.as_deref())
        .unwrap_or(cargo_toml::HELPER);
    let edit = || {
        let mut text = manifest.clone();
        if helper.is_none() {
            let members = workspace.members().into_iter();
            let source = HelperSource::choose(workspace, &root, members)?;
            text = cargo_toml::add_helper(&text, source.dependency(directory(package)))?;
        }
        let features = [
            (
                declared.has_rdc() || declared.has_modules(),
                finalizer::DEVICE_LINK_FEATURE,
            ),
            (declared.has_archives(), cargo_toml::ARCHIVE_FEATURE),
        ];
        for (_, feature) in features.into_iter().filter(|(needed, _)| *needed) {
            let has = helper.is_some_and(|d| d.features.iter().any(|f| f == feature));
            if !has {
                text = cargo_toml::add_helper_feature(&text, name, feature)?;
            }
        }
        if declared.has_rdc() && package.links.is_none() {
            text = cargo_toml::add_links(&text, &format!("gpustub-{}", package.name))?;
        }
        Ok::<_, toml_edit::TomlError>(text)
    };
    let text = edit().map_err(|e| {
        Error::new(format!(
            "could not edit `{}`: {e}",
            display_path(manifest_path)
        ))
    })?;
    pending.write(manifest_path, text)?;
    let name = name.replace('-', "_");
    build_script(package, declared, &manifest, &name, pending, found)?;
    // Packages with super-archives or modules only need no line: their code names the files.
    if declared.provides() || declared.has_rdc() {
        use_lines(workspace, package, pending, found)?;
    }
    if declared.has_rdc() {
        dependency_lines(workspace, members, package, pending, found)?;
    }
    Ok(())
}

/// Removes `use … as _` lines of former runs for crates that the package no longer depends on, which
/// would not compile.
pub(super) fn remove_stale_lines(
    workspace: &Workspace,
    members: &Members,
    package: &Package,
    pending: &mut Pending,
) -> Result<()> {
    let mut all = members.all();
    let declared = all.find_map(|(one, declared)| (one.id == package.id).then_some(declared));
    let mut called = BTreeSet::new();
    if declared.is_some_and(Declared::has_rdc) {
        for (name, _) in called_crates(members, package) {
            called.insert(name);
        }
        let is_member = |name: &str| workspace.members().iter().any(|one| one.name == name);
        let mut others = Vec::from_iter(&package.dependencies);
        others.retain(|one| !is_member(&one.name));
        // Crates outside of the workspace are kept: their tables are unknown.
        called.extend(others.into_iter().map(crate_name));
    }
    let packages = workspace.members();
    let crate_of = |package: &Package| library(package).map(|one| one.name.replace('-', "_"));
    for (path, _) in roots(package, |path| path.starts_with(workspace.root())) {
        // Cargo reports unreadable files.
        let Ok(text) = pending.read(path) else {
            continue;
        };
        let code = use_line::device_code(String::new());
        let new = use_line::retain(&text, &code, |name| called.contains(name));
        let others = shared_root::sharing_packages(&packages, package, path);
        let owners: Vec<_> = others.chain([package]).filter_map(crate_of).collect();
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
fn crate_name(dependency: &Dependency) -> String {
    let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
    name.replace('-', "_")
}

/// Diagnostic for lines of former runs in a package that no longer has a `GpuStub.toml`.
pub fn remains(package: &Package) -> Option<Diagnostic> {
    let is_helper =
        |one: &&Dependency| one.kind == DependencyKind::Build && one.name == cargo_toml::HELPER;
    let helper = package.dependencies.iter().find(is_helper)?;
    let scripts = package.targets.iter();
    let script = scripts.filter(|target| target.is_kind(TargetKind::CustomBuild));
    let script = script.map(|target| fs::read_to_string(&target.src_path));
    let script: String = script.flatten().collect();
    let name = crate_name(helper);
    let calls = |call| script.contains(&build_rs::line(&name, call));
    let links = package.links.as_deref();
    let links = links.filter(|links| links.starts_with("gpustub-"));
    // Without `links`, a package that finalizes may link its programs itself.
    if links.is_none() && !calls(build_rs::BUILD) {
        return None;
    }
    let mut all: Vec<String> = links
        .map(|links| format!("`links = \"{links}\"`"))
        .into_iter()
        .collect();
    all.push(format!("the build-dependency `{}`", cargo_toml::HELPER));
    if calls(build_rs::BUILD) || calls(build_rs::FINALIZE) {
        all.push("the call in its build script".to_owned());
    }
    let message = format!(
        "package `{}` has no {FILE}, but still has {}",
        package.name,
        all.join(", ")
    );
    let help = "remove these, or create the file with `cargo gpustub init`";
    let file = display_path(package.manifest_path.as_std_path());
    Some(
        Diagnostic::warning(&OUT_OF_SYNC, message)
            .with_origin(&file, 0..0)
            .help(help),
    )
}

/// Crates whose device code a package's own may call, with the condition of the dependency for
/// `cfg(…)`; `None`: not expressible in a source file.
fn called_crates(members: &Members, package: &Package) -> Vec<(String, Option<String>)> {
    let mut crates = Vec::new();
    for (member, declared) in members.all() {
        if !(declared.has_rdc() || declared.provides()) {
            continue;
        }
        let all = package.dependencies.iter();
        let entries: Vec<&Dependency> = all
            .filter(|dependency| {
                dependency.name == member.name.as_str()
                    && dependency.path.is_some()
                    && dependency.kind == DependencyKind::Normal
            })
            .collect();
        let (Some(_), Some(crate_of)) = (entries.first(), library(member)) else {
            continue;
        };
        let renamed = entries.iter().find_map(|entry| entry.rename.as_ref());
        let name = renamed.unwrap_or(&crate_of.name).replace('-', "_");
        crates.push((name, condition(package, &entries)));
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
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    let crates = called_crates(members, package).into_iter();
    let lines =
        crates.filter_map(|(name, condition)| Some((name, use_line::device_code(condition?))));
    let lines: Vec<_> = lines.collect();
    let own = library(package).map(|library| &library.src_path);
    for (path, edition) in roots(package, |path| own.is_none_or(|own| own == path)) {
        for (name, line) in lines.iter().filter(|_| path.exists()) {
            let line = (name.as_str(), line);
            name_crate(workspace, package, (path, edition), line, pending, found)?;
        }
    }
    Ok(())
}

/// Condition of a dependency for `cfg(…)`; empty: always. `None`: no entry, or an entry for a target
/// triple, which a source file cannot test.
fn condition(package: &Package, entries: &[&Dependency]) -> Option<String> {
    let mut any = BTreeSet::new();
    for entry in entries {
        let mut all = Vec::new();
        if entry.optional {
            let key = entry.rename.as_deref().unwrap_or(&entry.name);
            all.push(either(activating(package, key))?);
        }
        if let Some(target) = &entry.target {
            let target = target.to_string();
            let inner = target.strip_prefix("cfg(")?.strip_suffix(')')?;
            all.push(inner.to_owned());
        }
        any.insert(match all.as_slice() {
            [] => return Some(String::new()),
            [one] => one.clone(),
            several => format!("all({})", several.join(", ")),
        });
    }
    either(any)
}

/// Disjunction of conditions; `None` if empty.
fn either(conditions: BTreeSet<String>) -> Option<String> {
    let all: Vec<String> = conditions.into_iter().collect();
    match all.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("any({})", several.join(", "))),
    }
}

/// Features that directly activate an optional dependency: `dep:x` and `x/…`, but not `x?/…`. Features
/// that activate one of these also enable it.
fn activating(package: &Package, key: &str) -> BTreeSet<String> {
    let brings = |word: &String| {
        word.strip_prefix("dep:") == Some(key)
            || word.split_once('/').is_some_and(|(x, _)| x == key)
    };
    let features = package.features.iter();
    features
        .filter(|(_, words)| words.iter().any(brings))
        .map(|(name, _)| format!("feature = {name:?}"))
        .collect()
}

/// The root files of a package's targets, apart from its build script.
fn roots(package: &Package, wanted: impl Fn(&Path) -> bool) -> BTreeSet<(&Path, Edition)> {
    let targets = package.targets.iter();
    targets
        .filter(|target| !target.is_kind(TargetKind::CustomBuild))
        .map(|target| (target.src_path.as_std_path(), target.edition))
        .filter(|(path, _)| wanted(path))
        .collect()
}

/// Adds a `use … as _` line to a file.
fn name_crate(
    workspace: &Workspace,
    package: &Package,
    (path, edition): (&Path, Edition),
    (name, line): (&str, &use_line::Line),
    pending: &mut Pending,
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    match use_line::add(&pending.read(path)?, name, edition, line) {
        Edit::Same => {}
        Edit::Changed(text) => {
            match shared_root::unknown_crate(&workspace.members(), package, path, name) {
                Some(refused) => found.push(refused),
                None => pending.write(path, text)?,
            }
        }
        Edit::Impossible(why) => found.push(no_place(path, why, name)),
    }
    Ok(())
}

fn no_place(path: &Path, why: &str, name: &str) -> Diagnostic {
    let message = format!("`{}` cannot be edited: {why}", display_path(path));
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
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    // Tests have a finalizer: without programs, a build of the package needs no device link.
    let (call, other) = if declared.has_rdc() && finalizer::has_programs(package) {
        (build_rs::FINALIZE, build_rs::BUILD)
    } else {
        (build_rs::BUILD, build_rs::FINALIZE)
    };
    let line = build_rs::line(helper, call);
    let target = package
        .targets
        .iter()
        .find(|t| t.is_kind(TargetKind::CustomBuild));
    let path = match target {
        Some(target) => target.src_path.clone().into_std_path_buf(),
        None if cargo_toml::build_is_off(manifest).unwrap_or(false) => {
            let message = format!("package `{}` disables its build script", package.name);
            found.push(Diagnostic::error(&UNEDITABLE_BUILD_SCRIPT, message).help(format!(
                "remove `build = false` from its Cargo.toml; the build script must call `{line}`"
            )));
            return Ok(());
        }
        None => directory(package).join("build.rs"),
    };
    let new = match fs::read_to_string(&path) {
        Ok(text) => match build_rs::add_call(&text, helper, call) {
            Edit::Same if declared.has_rdc() => {
                match build_rs::replace_call(&text, helper, other, call) {
                    Edit::Changed(text) => text,
                    _ => return Ok(()),
                }
            }
            Edit::Same => return Ok(()),
            Edit::Changed(text) => text,
            Edit::Impossible(why) => {
                let message = format!("`{}` cannot be edited: {why}", display_path(&path));
                let help = format!("add this line at the start of the build script: `{line}`");
                found.push(Diagnostic::error(&UNEDITABLE_BUILD_SCRIPT, message).help(help));
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
    found: &mut Vec<Diagnostic>,
) -> Result<()> {
    let Some(library) = library(package) else {
        return Ok(());
    };
    let roots = roots(package, |path| path != library.src_path.as_std_path());
    let linkable = [TargetKind::Lib, TargetKind::RLib, TargetKind::DyLib];
    if !linkable.into_iter().any(|kind| library.is_kind(kind)) {
        if !roots.is_empty() {
            let message = format!(
                "the programs and tests of package `{}` get no stubs, because Rust code cannot \
                 link its library target",
                package.name
            );
            let help = "add \"rlib\" to `crate-type` in its Cargo.toml";
            found.push(Diagnostic::warning(&MISSING_RLIB, message).help(help));
        }
        return Ok(());
    }
    let name = library.name.replace('-', "_");
    for (path, edition) in roots {
        // Cargo reports a missing file; files outside of the workspace are not edited.
        if path.starts_with(workspace.root()) && path.exists() {
            let line = (name.as_str(), &use_line::STUBS);
            name_crate(workspace, package, (path, edition), line, pending, found)?;
        }
    }
    Ok(())
}
