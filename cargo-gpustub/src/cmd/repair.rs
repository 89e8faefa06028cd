//! `cargo gpustub repair`: finished wheels, libraries, programs and directories that load GPU libraries
//! lazily.
//!
//! The inputs are read ([`input`]) and planned ([`plan`]); only then files are written ([`output`]), by the same
//! values that `--dry-run` prints.

mod input;
mod libraries;
mod output;
mod plan;

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::thread;

use gpustub_check::gpu_file::{gpu_file, is_system};
use gpustub_check::{ContainerKind, FlawKind};
use gpustub_core::diag::{has_errors, listing};
use gpustub_repair::StubPlan;
use gpustub_repair::libraries::has_data;
use gpustub_repair::names::is_stub_file;
use gpustub_workspace::error::Result;
use gpustub_workspace::output::number;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;

use crate::cli;
use input::Source;
use libraries::UserLibraries;
use plan::PlannedRepair;

/// Runs the command. Returns whether everything was repaired.
pub fn run(options: &cli::Repair, shell: &mut Shell) -> Result<bool> {
    let Some(user) = UserLibraries::read(options, shell)? else {
        return Ok(false);
    };
    let jobs = options
        .jobs
        .or_else(|| thread::available_parallelism().ok())
        .unwrap_or(NonZeroUsize::MIN);
    let mut repairs = Vec::new();
    let mut not_written = Vec::new();
    let mut needed = BTreeSet::new();
    let mut diagnostics = Vec::new();
    let mut texts = Sources::new();
    {
        let status = shell.status_line("Reading");
        for input in input::read(options, jobs, &user.known, &status, &mut diagnostics)? {
            let output = input.output();
            needed.extend(user.needed_by(&input.package));
            match plan::plan(input, options, &user, &status, &mut diagnostics, &mut texts)? {
                Some(repair) => repairs.push(repair),
                None => not_written.push(output),
            }
        }
    }
    shell.diagnostics(&diagnostics, &texts)?;
    for (id, names) in user.ids_and_names() {
        if !needed.contains(id) {
            shell.note(format!("no file needs `{id}` ({})", names.join(", ")));
        }
    }
    output::refuse_to_replace(&repairs, options)?;
    for repair in &repairs {
        show_plan(repair, options, shell);
        if !options.dry_run {
            let mut stubs = Vec::new();
            for stub in &repair.stubs {
                let status = shell.status_line("Compiling");
                status.show(|| stub.file.clone());
                stubs.push(stub.compile()?);
            }
            output::write(repair, &stubs, jobs, &shell.status_line("Writing"))?;
            show_written(repair, shell);
        }
    }
    for output in not_written {
        let verb = if options.dry_run {
            "Skipping"
        } else {
            "Not written"
        };
        shell.status(verb, format!("{output}: no image could be edited"));
    }
    let is_complete = !has_errors(&diagnostics);
    if !is_complete && !repairs.is_empty() {
        shell.note("the errors above are about images that stay as they are: exit code 1");
    }
    Ok(is_complete)
}

/// Prints the edits: as status lines, which `--dry-run` shows and a repair shows with `-v`.
fn show_plan(repair: &PlannedRepair, options: &cli::Repair, shell: &mut Shell) {
    let package = &repair.input.package;
    let mut lines = Vec::new();
    for stub in &repair.plan.stubs {
        for path in &stub.paths {
            let location = if package.kind == ContainerKind::Wheel {
                path
            } else {
                path.rsplit('/').next().unwrap_or(path)
            };
            lines.push(("Adding", format!("{location}: {}", functions(stub))));
        }
    }
    for image in &repair.plan.images {
        let libraries: Vec<&str> = image
            .request
            .libraries
            .iter()
            .flat_map(|library| &library.needed)
            .map(String::as_str)
            .collect();
        // An image may use libraries that only others need.
        let mut change = if libraries.is_empty() {
            format!("with {}", image.request.stub)
        } else {
            format!("without {}", libraries.join(", "))
        };
        if !image.request.removed_runpath.is_empty() {
            change += "; runpath without ";
            change += &image.request.removed_runpath.join(", ");
        }
        let path = package.display_path_of(&image.path);
        lines.push(("Editing", format!("{path}: {change}")));
    }
    for (path, libraries) in &repair.plan.kept {
        let path = package.display_path_of(path);
        let libraries = libraries.join(", ");
        lines.push((
            "Keeping",
            format!("{path}: with {libraries} of the package"),
        ));
    }
    for path in &repair.plan.removed {
        lines.push(("Removing", package.display_path_of(path)));
    }
    for path in repair.lists.keys() {
        let path = package.display_path_of(path);
        lines.push(("Editing", format!("{path}: without removed copies")));
    }
    if repair.plan.images.is_empty() {
        let reason = reason_to_copy(repair);
        lines.push(("Copying", format!("{}: {reason}", package.name)));
        note_unknown_libraries(repair, options, shell);
    }
    note_special_files(repair, shell);
    for (verb, text) in lines {
        if options.dry_run {
            shell.status(verb, text);
        } else {
            shell.detail(verb, text);
        }
    }
}

/// `cudart 41 functions (headers 12), cublas 8 functions (headers 12)`.
fn functions(stub: &StubPlan) -> String {
    let libraries: Vec<String> = stub
        .libraries
        .iter()
        .map(|stubbed| {
            let headers = match stubbed.header.as_deref() {
                Some(version) if version != "none" => format!(" (headers {version})"),
                _ => String::new(),
            };
            let names = stubbed.exports.iter();
            let copies = names
                .filter(|(name, _)| has_data(stubbed.library, name))
                .count();
            let copies_of_data = match copies {
                0 => String::new(),
                1 => ", 1 copy of data".to_owned(),
                count => format!(", {count} copies of data"),
            };
            format!(
                "{} {}{copies_of_data}{headers}",
                number(stubbed.exports.len() - copies, "function"),
                stubbed.library.id
            )
        })
        .collect();
    libraries.join(", ")
}

/// Reason why nothing is edited.
fn reason_to_copy(repair: &PlannedRepair) -> String {
    if !repair.plan.kept.is_empty() {
        return "it brings its GPU libraries".to_owned();
    }
    // A program is repaired without the stub library that an earlier repair put beside it.
    let images = repair.input.package.all_images();
    let needed = images.flat_map(|image| image.needed());
    let stubs: BTreeSet<&str> = needed
        .map(String::as_str)
        .filter(|name| is_stub_file(name))
        .collect();
    if stubs.is_empty() {
        return "no GPU library to replace".to_owned();
    }
    format!(
        "repaired before, with {}; other options are for the original",
        listing(&Vec::from_iter(stubs))
    )
}

/// Notes the files of a directory that the output does not have.
fn note_special_files(repair: &PlannedRepair, shell: &mut Shell) {
    let package = &repair.input.package;
    let flaws = package.flaws.iter();
    let special: BTreeSet<String> = flaws
        .filter(|flaw| flaw.kind == FlawKind::Special)
        .map(|flaw| package.display_path_of(&flaw.path))
        .collect();
    if !special.is_empty() {
        shell.note(format!(
            "pipes, sockets and devices are not copied: {}",
            listing(&Vec::from_iter(special))
        ));
    }
}

/// Notes the libraries that named files need, and that `--library` could replace.
fn note_unknown_libraries(repair: &PlannedRepair, options: &cli::Repair, shell: &mut Shell) {
    let Source::Files(files) = &repair.input.source else {
        return;
    };
    if !options.user_defined.library.is_empty() {
        return;
    }
    let images = repair.input.package.all_images();
    let unknown: BTreeSet<&str> = images
        .flat_map(|image| image.needed())
        .map(String::as_str)
        .filter(|name| name.contains(".so") && !is_system(name))
        .filter(|name| !is_stub_file(name) && gpu_file(name).is_none())
        .filter(|name| files.iter().all(|(file, _)| file != name))
        .collect();
    if let Some(first) = unknown.first() {
        let names = listing(&Vec::from_iter(&unknown));
        shell.note(format!(
            "gpustub does not know {names}: `--library NAME=path/to/{first}` makes stubs of a library's functions"
        ));
    }
}

/// Prints what was written.
fn show_written(repair: &PlannedRepair, shell: &mut Shell) {
    let images = repair.plan.images.len();
    if images == 0 {
        let output = repair.input.output();
        let reason = reason_to_copy(repair);
        shell.status("Copied", format!("{output}: {reason}"));
        return;
    }
    let stubs: Vec<&str> = repair
        .plan
        .stubs
        .iter()
        .map(|stub| stub.file.as_str())
        .collect();
    let removed = match repair.plan.removed.len() {
        0 => String::new(),
        count => format!(
            ", {} removed",
            number(count, "copy").replace("copys", "copies")
        ),
    };
    shell.status(
        "Repaired",
        format!(
            "{}: {} with {}{removed}",
            repair.input.output(),
            number(images, "image"),
            stubs.join(", ")
        ),
    );
}
