//! `cargo gpustub doctor`: GPU libraries on this machine, and the library that each stub would bind.
//!
//! The run time itself reports them: the command builds and runs a program with the stubs.

use std::env;
use std::fmt::Write;
use std::path::PathBuf;

use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::library::Library;
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::Inputs;
use gpustub_core::planner::plan;
use gpustub_core::sources::render;
use gpustub_core::target::Target;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::edit::templates;
use gpustub_workspace::environment::variable;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::output::MessageFormat;
use gpustub_workspace::report::{Sources, json::FORMAT_VERSION};
use gpustub_workspace::shell::Shell;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::{Depth, Workspace, target};
use serde_json::{Value, json};

use crate::cli;
use crate::compile;
use crate::scratch::scratch;
use crate::shipped;

/// Libraries to examine: those of a package's manifest, or all that gpustub knows.
struct Subject {
    title: String,
    manifest: Manifest,
    inputs: Inputs,
    diagnostics: Vec<Diagnostic>,
    sources: Sources,
}

/// Runs the command.
pub fn run(options: &cli::Doctor, shell: &mut Shell) -> Result<bool> {
    let host = target(None)?;
    let machine = describe_machine(&host)?;
    print_machine(&machine, shell)?;

    let mut clean = true;
    for mut subject in subjects(options, &host, shell)? {
        subject.inputs.require_header_versions = false;
        // Stubs that another package provides are examined as well.
        for stub in &mut subject.manifest.stubs {
            stub.provide = true;
        }
        let (plan, diagnostics) = plan(&subject.manifest, &host, &subject.inputs);
        subject.diagnostics.extend(diagnostics);
        shell.diagnostics(&subject.diagnostics, &subject.sources)?;
        if has_errors(&subject.diagnostics) {
            clean = false;
            continue;
        }
        let ids: Vec<&str> = plan
            .libraries
            .iter()
            .filter(|library| library.stubbed)
            .map(|library| library.library.id.as_str())
            .collect();
        shell.detail("Building", format!("the stubs of {}", ids.join(", ")));
        let main = templates::render("doctor.c", &json!({ "libraries": ids }));
        let output = compile::run_with_stubs(&main, &render(&plan), &host, &[])?;
        if !output.status.success() {
            let mut message = format!(
                "the probe program, which only loads the libraries, ended with {}",
                output.status
            );
            let stderr = String::from_utf8_lossy(&output.stderr);
            if !stderr.trim().is_empty() {
                let _ = write!(message, "\n{}", stderr.trim());
            }
            return Err(Error::new(message)
                .help("one of the libraries fails to load; find it with `LD_DEBUG=files`"));
        }
        print_reports(
            &subject.title,
            &String::from_utf8_lossy(&output.stdout),
            shell,
        )?;
    }
    Ok(clean)
}

/// The declared libraries of each package, or all libraries of this system if nothing is declared.
fn subjects(options: &cli::Doctor, host: &Target, shell: &mut Shell) -> Result<Vec<Subject>> {
    let workspace = match Workspace::load(&options.cargo, Depth::Members) {
        Ok(workspace) => Some(workspace),
        Err(error) if options.cargo.manifest.manifest_path.is_some() => return Err(error),
        Err(error) => {
            shell.detail("Skipped", format!("the workspace: {error}"));
            None
        }
    };
    let mut subjects = Vec::new();
    if let Some(workspace) = &workspace {
        for package in workspace.selected()? {
            let Some(declared) = Declared::read(workspace, package)? else {
                continue;
            };
            if declared.manifest.stubs.is_empty() && !has_errors(&declared.diagnostics) {
                continue;
            }
            subjects.push(Subject {
                title: declared.display_path.clone(),
                sources: declared.sources(),
                manifest: declared.manifest,
                inputs: declared.inputs,
                diagnostics: declared.diagnostics,
            });
        }
    }
    if subjects.is_empty() {
        // RCCL has functions with NCCL's names, and one program cannot have both.
        let is_of_rocm = |library: &&Library| library.family == "rocm";
        let (rocm, others): (Vec<&Library>, Vec<&Library>) = Library::builtin_ids()
            .filter_map(Library::builtin)
            .filter(|library| {
                let names = library.load_names.get(&host.os);
                names.is_some_and(|names| !names.is_empty())
            })
            .partition(is_of_rocm);
        for (title, libraries) in [
            ("known libraries", others),
            ("known libraries of ROCm", rocm),
        ] {
            let ids = libraries.iter().map(|library| library.id.as_str());
            let (manifest, diagnostics) = shipped::manifest(ids.map(|id| (id, Some("none"))));
            subjects.push(Subject {
                title: title.to_owned(),
                manifest,
                inputs: Inputs::default(),
                diagnostics,
                sources: Sources::new(),
            });
        }
        subjects.retain(|subject| !subject.manifest.stubs.is_empty());
    }
    Ok(subjects)
}

fn describe_machine(host: &Target) -> Result<Value> {
    let scratch = scratch()?;
    let compiler = compile::compiler(host, scratch.path()).map(|(_, name)| name);
    let linkers: Vec<String> = ["ld", "ld.lld", "ld.mold", "ld.gold"]
        .into_iter()
        .filter_map(find_in_path)
        .map(|path| slashes(&path))
        .collect();
    Ok(json!({
        "reason": "machine",
        "format_version": FORMAT_VERSION,
        "gpustub_version": env!("CARGO_PKG_VERSION"),
        "host": host.triple,
        "compiler": compiler.ok(),
        "linkers": linkers,
    }))
}

fn print_machine(machine: &Value, shell: &mut Shell) -> Result<()> {
    if shell.format() == MessageFormat::Json {
        return shell.json(machine);
    }
    let linkers: Vec<&str> = machine["linkers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut text = concat!("gpustub     ", env!("CARGO_PKG_VERSION"), "\n").to_owned();
    let _ = writeln!(
        text,
        "host        {}",
        machine["host"].as_str().unwrap_or("unknown")
    );
    let _ = writeln!(
        text,
        "C compiler  {}",
        machine["compiler"].as_str().unwrap_or("none")
    );
    let linkers = if linkers.is_empty() {
        "none".into()
    } else {
        linkers.join(", ")
    };
    let _ = writeln!(text, "linkers     {linkers}");
    shell.data(text)
}

/// Parses the output of `doctor.c.hbs`: records end with RS, fields are separated by US.
fn print_reports(title: &str, output: &str, shell: &mut Shell) -> Result<()> {
    let mut text = format!("\n{title}\n");
    for record in output.split_terminator('\u{1e}') {
        let fields: Vec<&str> = record.split('\u{1f}').collect();
        let [id, available, path, version, reason, report] = fields[..] else {
            return Err(Error::new("unexpected output from the probe program"));
        };
        if shell.format() == MessageFormat::Json {
            shell.json(&json!({
                "reason": "library",
                "format_version": FORMAT_VERSION,
                "manifest": title,
                "library": id,
                "available": available == "1",
                "path": Some(path).filter(|path| !path.is_empty()),
                "version": version.parse::<u32>().ok().filter(|version| *version > 0),
                "unavailable_reason": Some(reason).filter(|reason| !reason.is_empty()),
                "report": report,
            }))?;
        } else {
            for line in report.trim_end().lines() {
                let _ = writeln!(text, "  {line}");
            }
        }
    }
    if shell.format() == MessageFormat::Json {
        Ok(())
    } else {
        shell.data(text)
    }
}

/// Path of a program in a directory of `PATH`.
fn find_in_path(name: &str) -> Option<PathBuf> {
    let path = variable("PATH")?;
    let file = format!("{name}{}", env::consts::EXE_SUFFIX);
    env::split_paths(&path)
        .map(|directory| directory.join(&file))
        .find(|file| file.is_file())
}
