//! Lines about the plan of a repair, and about what was written.

use gpustub_check::Kind;
use gpustub_repair::StubPlan;
use gpustub_workspace::output::number;
use gpustub_workspace::shell::Shell;

use super::input::Form;
use super::job::Job;
use crate::cli;

/// Prints the edits: as status lines, which `--dry-run` shows and a repair shows with `-v`.
pub fn plan(job: &Job, options: &cli::Repair, shell: &mut Shell) {
    let package = &job.input.package;
    let mut line = |verb: &str, text: String| {
        if options.dry_run {
            shell.status(verb, text);
        } else {
            shell.detail(verb, text);
        }
    };
    for stub in &job.plan.stubs {
        let place = if package.kind == Kind::Wheel {
            &stub.path
        } else {
            &stub.file
        };
        line("Adding", format!("{place}: {}", functions(stub)));
    }
    for image in &job.plan.images {
        let libraries = image.request.libraries.iter().flat_map(|one| &one.needed);
        let libraries: Vec<&str> = libraries.map(String::as_str).collect();
        let shown = package.display_path_of(&image.path);
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
        line("Editing", format!("{shown}: {change}"));
    }
    for path in &job.plan.removed {
        line("Removing", package.display_path_of(path));
    }
    if job.plan.images.is_empty() {
        line(
            "Copying",
            format!("{}: no GPU library to replace", package.name),
        );
    }
}

/// `cudart 41 functions (headers 12), cublas 8 functions (headers 12)`.
fn functions(stub: &StubPlan) -> String {
    let library = stub.libraries.iter().map(|one| {
        let headers = match one.header.as_deref() {
            Some(version) if version != "none" => format!(" (headers {version})"),
            _ => String::new(),
        };
        format!(
            "{} {}{headers}",
            number(one.exports.len(), "function"),
            one.library.id
        )
    });
    library.collect::<Vec<_>>().join(", ")
}

/// Prints what was written.
pub fn written(job: &Job, shell: &mut Shell) {
    let images = job.plan.images.len();
    let target = job.input.target.display();
    if images == 0 {
        shell.status("Copied", format!("{target}: no GPU library to replace"));
        return;
    }
    let stubs: Vec<&str> = job
        .plan
        .stubs
        .iter()
        .map(|stub| stub.file.as_str())
        .collect();
    let removed = match job.plan.removed.len() {
        0 => String::new(),
        n => format!(", {} removed", number(n, "copy").replace("copys", "copies")),
    };
    let what = match &job.input.form {
        Form::Files(files) if files.len() == 1 => {
            job.input.target.join(&files[0].0).display().to_string()
        }
        _ => target.to_string(),
    };
    shell.status(
        "Repaired",
        format!(
            "{what}: {} with {}{removed}",
            number(images, "image"),
            stubs.join(", ")
        ),
    );
}
