//! Checks of files on the command line: programs, libraries, wheels and directories.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gpustub_check::{
    Check, ContainerKind, FlawKind, Package, RULES, check, check_process, gpu_images, read,
};
use gpustub_core::diag::{Diagnostic, IO_ERROR};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::imports::header_mismatches;
use gpustub_workspace::output::number;
use gpustub_workspace::status_line::StatusLine;

use super::policies::Policies;
use super::report::Report;

/// Checks the named files and directories.
pub fn check_paths(paths: &[PathBuf], policies: &Policies, status: &StatusLine) -> Result<Report> {
    let policy = policies.root();
    let headers = policies.headers();
    let one = |path: &PathBuf| -> Result<(Report, Option<Package>)> {
        let mut report = Report::default();
        let mut file = None;
        let begin = |file: &str, size: u64| status.show(|| current(file, size));
        let packages = match read::read_reporting(path, &slashes(path), &begin) {
            Ok(packages) => packages,
            Err(error) if read::is_scratch_error(&error) => {
                let help = "free space in the temporary directory, or name another one with TMPDIR";
                return Err(Error::io("read", path, &error).help(help));
            }
            Err(error) => {
                report.findings.push(unreadable(path, &error));
                return Ok((report, None));
            }
        };
        for package in packages {
            report.details.extend(details(&package));
            report.skipped.extend(skipped(&package));
            report.findings.extend(check(&package, &policy));
            for (library, header) in &headers {
                report
                    .findings
                    .extend(header_mismatches(&package, library, *header));
            }
            let members = package.members.iter();
            let files = members.map(|member| package.display_path(member));
            report.scope.files.extend(files);
            if package.kind == ContainerKind::File {
                file = Some(package);
            }
        }
        Ok((report, file))
    };
    let mut report = Report::default();
    let mut files = Vec::new();
    for (path, one) in paths.iter().zip(on_two_threads(paths, one)) {
        let (one, file) = one?;
        report.findings.extend(one.findings);
        report.details.extend(one.details);
        report.skipped.extend(one.skipped);
        report.scope.files.extend(one.scope.files);
        files.extend(file.map(|file| (path.as_path(), file)));
    }
    if let Some(process) = read::process::process(files) {
        report.findings.extend(check_process(&process));
        let ids = ids(|check| matches!(check, Check::Process(_)));
        let images = number(process.members.len(), "image");
        report
            .details
            .push(format!("{images} as one process: {ids}"));
    }
    report.what = number(report.scope.files.len(), "file");
    Ok(report)
}

/// Text of the status line: `big.whl: nvidia/cublas/lib/libcublasLt.so.12 412 MB`.
fn current(file: &str, size: u64) -> String {
    let file = match file.rsplit_once(".whl!") {
        Some((wheel, member)) => {
            let wheel = wheel.rsplit('/').next().unwrap_or_default();
            format!("{wheel}.whl: {member}")
        }
        None => file.to_owned(),
    };
    match size / 1_000_000 {
        0 => file,
        megabytes => format!("{file} {megabytes} MB"),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> Diagnostic {
    Diagnostic::error(&IO_ERROR, Error::io("read", path, error).to_string())
}

/// Stack size of a main thread: nested directories are read recursively.
const STACK: usize = 8 << 20;

/// Results of `work` for each item, in order. Compressed wheels are limited by the processor, not the
/// disk; more than two at a time would exceed the 64 MB of memory that BENCHMARKS.md promises.
fn on_two_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let share = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else {
                return done;
            };
            done.push((at, work(item)));
        }
    };
    let mut done = thread::scope(|scope| {
        // If the system cannot start another thread, this one processes all items.
        let other = (items.len() > 1).then(|| {
            let builder = thread::Builder::new().stack_size(STACK);
            builder.spawn_scoped(scope, share).ok()
        });
        let mut done = share();
        if let Some(other) = other.flatten() {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Skipped files that a user may expect to be checked, a line for each reason.
fn skipped(package: &Package) -> Vec<String> {
    let flaws = package.flaws.iter();
    let mut reasons = BTreeMap::<&str, Vec<&str>>::new();
    for flaw in flaws.filter(|flaw| flaw.kind == FlawKind::Skipped) {
        reasons.entry(&flaw.message).or_default().push(&flaw.path);
    }
    let line = |(reason, paths): (&str, Vec<&str>)| {
        let first = package.display_path_of(paths.iter().min()?);
        Some(match paths.len() - 1 {
            0 => format!("{first}: {reason}"),
            more => format!("{first} and {more} more: {reason}"),
        })
    };
    reasons.into_iter().filter_map(line).collect()
}

/// Rules that apply to each image and to the package.
fn details(package: &Package) -> Vec<String> {
    let of_images = ids(|check| matches!(check, Check::Image(_)));
    let of_packages = match package.kind {
        ContainerKind::File => ids(|check| matches!(check, Check::Package(_) | Check::Policy(_))),
        _ => ids(|check| {
            matches!(
                check,
                Check::Package(_) | Check::Process(_) | Check::Policy(_)
            )
        }),
    };
    let images = gpu_images(package);
    let mut details: Vec<String> = images
        .map(|image| format!("{}: {of_images}", image.display_path()))
        .collect();
    if !of_packages.is_empty() {
        details.push(format!("{}: {of_packages}", package.name));
    }
    details
}

/// Ids of the rules of some scopes.
fn ids(wanted: fn(&Check) -> bool) -> String {
    let rules = RULES.iter().filter(|rule| wanted(&rule.check));
    let ids: Vec<&str> = rules.map(|rule| rule.code.id).collect();
    ids.join(", ")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::on_two_threads;

    #[test]
    fn on_two_threads_keeps_the_order_of_items() {
        // Each thread processes one of two consecutive items.
        let both = Barrier::new(2);
        let made = on_two_threads(&[1, 2, 3, 4, 5, 6], |item| {
            both.wait();
            item * 10
        });
        assert_eq!(made, [10, 20, 30, 40, 50, 60]);
        assert_eq!(on_two_threads(&[7], |item| item + 1), [8]);
        assert_eq!(on_two_threads(&[], |item: &u8| *item), [0; 0]);
    }
}
