//! `cargo gpustub sync`: the tree agrees with `GpuStub.toml`.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use cargo_metadata::{DependencyKind, Package, TargetKind};
use gpustub_core::diag::{DATA_SYMBOL, Diagnostic, OUT_OF_SYNC, has_errors, listing};
use gpustub_core::suggest::nearest;

use crate::cli::{self, MessageFormat};
use crate::codes::{BUILD_SCRIPT, UNLINKABLE_LIB};
use crate::declared::{self, Declared};
use crate::error::{Error, Result};
use crate::finalizer;
use crate::ops::{self, Operation};
use crate::report::{self, Sources};
use crate::shell::Shell;
use crate::toolkit::headers::Headers;
use crate::toolkit::{self, Told};
use crate::tree::{Edit, build_rs, cargo_toml, lock, use_line};
use crate::workspace::{Depth, Workspace, folder, library, shown, target};

/// Runs the command.
pub fn run(options: &cli::Sync, shell: &mut Shell) -> Result<bool> {
    let workspace = Workspace::load(&options.cargo, Depth::Members)?;
    let mut declared = match Declared::read_all(&workspace, &workspace.selected()?) {
        // A program declares nothing of the CUDA code that it links.
        Err(_) if finalizer::may_be_needed(&workspace)? => Vec::new(),
        declared => declared?,
    };
    let root = Declared::read_root(&workspace)?;
    let mut operations = Vec::new();
    // What cannot be read may be the very table that `--from` names; that is said below.
    let readable = declared
        .iter()
        .all(|(_, one)| !has_errors(&one.diagnostics));
    for (name, file) in options.from.iter().filter(|_| readable) {
        let (written, found) = extract(name, file, &mut declared)?;
        shell.diagnostics(&found, &Sources::new())?;
        if has_errors(&found) {
            return Ok(false);
        }
        operations.extend(written);
    }

    let host = target(None)?;
    let mut clean = true;
    for one in declared.iter().map(|(_, one)| one).chain(&root) {
        let (_, found) = one.plan(&host, &one.inputs);
        shell.diagnostics(&found, &one.sources())?;
        clean &= !has_errors(&found);
    }
    if !clean {
        return Ok(false);
    }

    for (package, one) in &declared {
        shell.detail("Checking", format!("{} ({})", package.name, one.shown));
    }
    let all: Vec<_> = declared
        .iter()
        .map(|(package, one)| (*package, one))
        .collect();
    let (more, mut found) = pending(&workspace, &options.cargo, &all)?;
    let mut sources = Sources::new();
    let shared = Declared::read_shared(&workspace)?;
    if let Some(shared) = &shared {
        // The file may be that of a package which is not selected, and not have been looked at.
        let seen = declared.iter().map(|(_, one)| one).chain(&root);
        if !seen.into_iter().any(|one| one.folder == shared.folder) {
            found.extend(shared.diagnostics.clone());
        }
        sources = shared.sources();
    }
    operations.retain(|operation| !operation.is_done());
    operations.extend(more);

    shell.diagnostics(&found, &sources)?;
    let clean = !has_errors(&found);
    if options.check || options.dry_run {
        show(&operations, options.check, shell)?;
        return Ok(clean && (operations.is_empty() || options.dry_run));
    }
    let mut told = Told::new(&workspace, shared.as_ref(), shell);
    ops::apply(&operations, |operation| told.tell(operation))?;
    told.end();
    if operations.is_empty() && clean {
        shell.status("Fresh", "everything agrees with GpuStub.toml");
    }
    Ok(clean)
}

/// What is still to be done for the tree to agree with these declarations, and what stands against
/// it.
pub fn pending(
    workspace: &Workspace,
    options: &cli::Cargo,
    declared: &[(&Package, &Declared)],
) -> Result<(Vec<Operation>, Vec<Diagnostic>)> {
    let mut operations = Vec::new();
    let mut found = Vec::new();
    for (package, one) in declared {
        if one.provides() || one.has_rdc() || one.has_archives() {
            operations.extend(edits(workspace, package, one, &mut found)?);
        }
    }
    let selected = workspace.selected()?;
    operations.extend(finalizer::operations(
        workspace, options, &selected, &mut found,
    )?);
    operations.push(lock_file(workspace, declared)?);
    if let Some(shared) = Declared::read_shared(workspace)? {
        let made = toolkit::operations(workspace, &shared, &Headers::new(), &mut found)?;
        operations.extend(made);
    }
    operations.retain(|operation| !operation.is_done());
    Ok((operations, found))
}

/// That a file is not as `sync` would leave it.
pub fn drift(operation: &Operation) -> Diagnostic {
    let what = format!(
        "`{}` does not agree with {}",
        operation.shown,
        declared::FILE
    );
    let one = Diagnostic::error(&OUT_OF_SYNC, what).at(&operation.shown, 0..0);
    one.help("run `cargo gpustub sync`")
}

/// The symbol list of a library of one's own, read from the library, for each package that
/// declares it.
fn extract(
    name: &str,
    file: &Path,
    declared: &mut [(&Package, Declared)],
) -> Result<(Vec<Operation>, Vec<Diagnostic>)> {
    let stubs = || declared.iter().flat_map(|(_, one)| &one.manifest.stubs);
    let own: Vec<&str> = stubs()
        .filter(|stub| stub.custom.symbols.is_some())
        .map(|stub| stub.id.value.as_str())
        .collect();
    if !own.contains(&name) {
        let why = if stubs().any(|stub| stub.id.value == name) {
            format!("`stub.{name}` names no file with `symbols` to write its list to")
        } else {
            format!("there is no `[stub.{name}]` to take symbols for")
        };
        return Err(Error::new(why).help(match nearest(name, own) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "a library of your own is declared with `load-names` and \
                 `symbols = \"symbols/{name}.symbols\"`"
            ),
        }));
    }
    let mut list = match gpustub_object::read_symbols_file(file, Default::default()) {
        Ok(list) => list,
        Err(error) => return Ok((Vec::new(), vec![error.diagnostic()])),
    };
    // Stubs stand in for functions. With data in it the list would be refused, and would have to
    // be edited by hand after each extraction.
    let data: Vec<String> = (list.symbols.iter().filter(|symbol| symbol.kind.is_data()))
        .map(|symbol| symbol.name.clone())
        .collect();
    let mut found = Vec::new();
    if !data.is_empty() {
        let message = format!(
            "data of `{}` gets no stub: {}",
            file.display(),
            listing(&data)
        );
        let help = "a program that uses it does not link without the library itself";
        found.push(Diagnostic::warning(&DATA_SYMBOL, message).help(help));
        list.symbols.retain(|symbol| !symbol.kind.is_data());
    }
    let text = list.to_text();
    let mut operations = Vec::new();
    for (_, one) in declared {
        let stub = one.manifest.stubs.iter().find(|stub| stub.id.value == name);
        let Some(symbols) = stub.and_then(|stub| stub.custom.symbols.as_ref()) else {
            continue;
        };
        let path = one.folder.join(&symbols.value);
        one.inputs.symbol_files.insert(&symbols.value, text.clone());
        operations.push(Operation::write(path.clone(), shown(&path), text.clone())?);
    }
    Ok((operations, found))
}

/// The changes to one package, in an order in which each state on the way still builds.
fn edits(
    workspace: &Workspace,
    package: &Package,
    declared: &Declared,
    found: &mut Vec<Diagnostic>,
) -> Result<Vec<Operation>> {
    let mut operations = Vec::new();
    let manifest_path = package.manifest_path.as_std_path();
    let manifest = read(manifest_path)?;
    let helper = package
        .dependencies
        .iter()
        .find(|d| d.kind == DependencyKind::Build && d.name == cargo_toml::HELPER);
    let root = read(&workspace.root().join("Cargo.toml"))?;
    let name = helper
        .and_then(|dependency| dependency.rename.as_deref())
        .unwrap_or(cargo_toml::HELPER);
    let edit = || {
        let mut text = manifest.clone();
        if helper.is_none() {
            text = cargo_toml::add_helper(&text, cargo_toml::workspace_declares(&root)?)?;
        }
        let features = [
            (declared.has_rdc(), finalizer::FEATURE),
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
    let text = edit()
        .map_err(|e| Error::new(format!("could not edit `{}`: {e}", shown(manifest_path))))?;
    if text != manifest {
        operations.push(Operation::write(
            manifest_path.into(),
            shown(manifest_path),
            text,
        )?);
    }
    let name = name.replace('-', "_");
    let call = match declared.has_rdc() {
        true => build_rs::FINALIZE,
        false => build_rs::BUILD,
    };
    operations.extend(build_script(package, &manifest, &name, call, found)?);
    // The code of a package that has super-archives alone names what it embeds.
    if declared.provides() || declared.has_rdc() {
        operations.extend(use_lines(workspace, package, found)?);
    }
    if declared.has_rdc() {
        operations.extend(dependency_lines(workspace, package, found)?);
    }
    Ok(operations)
}

/// The `use … as _` lines of a package whose device code calls that of others, in its library, or, if
/// there is none, in its programs. Where device code alone calls a crate, rustc would leave the crate
/// out, and the stubs with it that its build script links.
fn dependency_lines(
    workspace: &Workspace,
    package: &Package,
    found: &mut Vec<Diagnostic>,
) -> Result<Vec<Operation>> {
    let mut names = Vec::new();
    for member in workspace.members() {
        let mut all = package.dependencies.iter();
        let plain = all.find(|dependency| {
            dependency.name == member.name.as_str()
                && dependency.path.is_some()
                && dependency.kind == DependencyKind::Normal
                && !dependency.optional
                && dependency.target.is_none()
        });
        let (Some(dependency), Some(crate_of)) = (plain, library(member)) else {
            continue;
        };
        let declared = Declared::read(workspace, member)?;
        if declared.is_some_and(|one| one.has_rdc() || one.provides()) {
            let name = dependency.rename.as_ref().unwrap_or(&crate_of.name);
            names.push(name.replace('-', "_"));
        }
    }
    let own = library(package).map(|library| &library.src_path);
    let roots: BTreeSet<_> = package
        .targets
        .iter()
        .filter(|target| !target.is_kind(TargetKind::CustomBuild))
        .filter(|target| own.is_none_or(|own| *own == target.src_path))
        .map(|target| (target.src_path.as_std_path(), target.edition))
        .collect();
    let mut operations = Vec::new();
    for (path, edition) in roots.into_iter().filter(|(path, _)| path.exists()) {
        let mut text = read(path)?;
        for name in &names {
            match use_line::add(&text, name, edition, use_line::DEVICE_CODE) {
                Edit::Same => {}
                Edit::Changed(new) => text = new,
                Edit::Impossible(why) => found.push(no_place(path, why, name)),
            }
        }
        operations.push(Operation::write(path.to_owned(), shown(path), text)?);
    }
    Ok(operations)
}

fn no_place(path: &Path, why: &str, name: &str) -> Diagnostic {
    let message = format!("`{}` cannot be edited: {why}", shown(path));
    let help = format!("add this line before its first item: `use {name} as _;`");
    Diagnostic::error(&OUT_OF_SYNC, message).help(help)
}

/// The call in the build script.
fn build_script(
    package: &Package,
    manifest: &str,
    helper: &str,
    call: &str,
    found: &mut Vec<Diagnostic>,
) -> Result<Option<Operation>> {
    let line = build_rs::line(helper, call);
    let target = package
        .targets
        .iter()
        .find(|t| t.is_kind(TargetKind::CustomBuild));
    let path = match target {
        Some(target) => target.src_path.clone().into_std_path_buf(),
        None if cargo_toml::build_is_off(manifest).unwrap_or(false) => {
            let message = format!(
                "package `{}` has switched its build script off",
                package.name
            );
            found.push(Diagnostic::error(&BUILD_SCRIPT, message).help(format!(
                "remove `build = false` from its Cargo.toml; the build script has to call `{line}`"
            )));
            return Ok(None);
        }
        None => folder(package).join("build.rs"),
    };
    let new = match fs::read_to_string(&path) {
        Ok(text) => match build_rs::add_call(&text, helper, call) {
            Edit::Same => return Ok(None),
            Edit::Changed(text) => text,
            Edit::Impossible(why) => {
                let message = format!("`{}` cannot be edited: {why}", shown(&path));
                let help = format!("add this line where the build script begins: `{line}`");
                found.push(Diagnostic::error(&BUILD_SCRIPT, message).help(help));
                return Ok(None);
            }
        },
        Err(e) if e.kind() == io::ErrorKind::NotFound => build_rs::new(helper, call),
        Err(e) => return Err(Error::io("read", &path, &e)),
    };
    Operation::write(path.clone(), shown(&path), new).map(Some)
}

/// The `use … as _` lines of a package that has a library.
fn use_lines(
    workspace: &Workspace,
    package: &Package,
    found: &mut Vec<Diagnostic>,
) -> Result<Vec<Operation>> {
    let Some(library) = library(package) else {
        return Ok(Vec::new());
    };
    let roots: BTreeSet<_> = package
        .targets
        .iter()
        .filter(|target| !target.is_kind(TargetKind::CustomBuild))
        .filter(|target| target.src_path != library.src_path)
        .map(|target| (target.src_path.as_std_path(), target.edition))
        .collect();
    let linkable = [TargetKind::Lib, TargetKind::RLib, TargetKind::DyLib];
    if !linkable.into_iter().any(|kind| library.is_kind(kind)) {
        if !roots.is_empty() {
            let message = format!(
                "the programs and tests of package `{}` get no stubs, because Rust code cannot \
                 link its library target",
                package.name
            );
            let help = "add \"rlib\" to `crate-type` in its Cargo.toml";
            found.push(Diagnostic::warning(&UNLINKABLE_LIB, message).help(help));
        }
        return Ok(Vec::new());
    }
    let name = library.name.replace('-', "_");
    let mut operations = Vec::new();
    for (path, edition) in roots {
        // Cargo complains of a missing one by itself; one outside the workspace is not ours.
        if !path.starts_with(workspace.root()) || !path.exists() {
            continue;
        }
        match use_line::add(&read(path)?, &name, edition, use_line::STUBS) {
            Edit::Same => {}
            Edit::Changed(text) => {
                operations.push(Operation::write(path.to_owned(), shown(path), text)?);
            }
            Edit::Impossible(why) => found.push(no_place(path, why, &name)),
        }
    }
    Ok(operations)
}

/// The lock file speaks of the whole workspace, whatever is selected.
fn lock_file(workspace: &Workspace, selected: &[(&Package, &Declared)]) -> Result<Operation> {
    let mut others = Vec::new();
    for package in workspace.members() {
        if !selected.iter().any(|(chosen, _)| chosen.id == package.id) {
            others.extend(Declared::read(workspace, package)?);
        }
    }
    let text = lock::text(selected.iter().map(|(_, one)| *one).chain(&others));
    let path = workspace.root().join(lock::FILE);
    Operation::write(path.clone(), shown(&path), text)
}

/// Shows what would be done instead of doing it.
fn show(operations: &[Operation], check: bool, shell: &mut Shell) -> Result<()> {
    for operation in operations {
        match shell.format() {
            MessageFormat::Human | MessageFormat::Short => shell.diff(&operation.diff())?,
            MessageFormat::Json => shell.json(&report::json::change(operation, "planned"))?,
            MessageFormat::Github | MessageFormat::Sarif => {
                shell.diagnostics(&[drift(operation)], &Sources::new())?;
            }
        }
    }
    match operations {
        [] => shell.status("Fresh", "everything agrees with GpuStub.toml"),
        _ if check => {
            let what = match operations {
                [one] => format!("`{}` does not agree with {}", one.shown, declared::FILE),
                many => format!("{} files do not agree with {}", many.len(), declared::FILE),
            };
            let one = Diagnostic::error(&OUT_OF_SYNC, what).help("run `cargo gpustub sync`");
            if ![MessageFormat::Github, MessageFormat::Sarif].contains(&shell.format()) {
                shell.diagnostics(&[one], &Sources::new())?;
            }
        }
        _ => shell.note("nothing was written (--dry-run)"),
    }
    Ok(())
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|e| Error::io("read", path, &e))
}
