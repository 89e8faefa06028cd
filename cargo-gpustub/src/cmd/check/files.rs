//! Checks of files on the command line: programs, libraries, wheels and directories.

use std::collections::BTreeMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gpustub_check::{
    Check, ContainerKind, FlawKind, Package, check, check_process, gpu_images,
    read::{self, ReadOptions},
};
use gpustub_core::diag::{Diagnostic, IO_ERROR};
use gpustub_core::library::Library;
use gpustub_core::manifest::Policy;
use gpustub_core::version::HeaderVersion;
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::imports::header_mismatches;
use gpustub_workspace::output::number;
use gpustub_workspace::status_line::StatusLine;

use super::policies::Policies;
use super::report::{Report, rule_ids};
use crate::scratch::scratch_error;

/// Checks the named files and directories.
pub fn check_paths(paths: &[PathBuf], policies: &Policies, status: &StatusLine) -> Result<Report> {
    let policy = policies.root_policy();
    let headers = policies.header_versions();
    let results = on_two_threads(paths, |path| check_path(path, &policy, &headers, status));
    let mut report = Report::default();
    let mut files = Vec::new();
    for (path, result) in paths.iter().zip(results) {
        let (path_report, file) = result?;
        report.findings.extend(path_report.findings);
        report.details.extend(path_report.details);
        report.skipped.extend(path_report.skipped);
        report.scope.files.extend(path_report.scope.files);
        files.extend(file.map(|file| (path.as_path(), file)));
    }
    if let Some(process) = read::process::process(files) {
        report.findings.extend(check_process(&process));
        let images = number(process.members.len(), "image");
        let ids = rule_ids(|check| matches!(check, Check::Process(_)));
        report
            .details
            .push(format!("{images} as one process: {ids}"));
    }
    report.subject = number(report.scope.files.len(), "file");
    Ok(report)
}

/// Checks a named file or directory. The package is set if the path names a program or library.
fn check_path(
    path: &Path,
    policy: &Policy,
    headers: &[(&'static Library, HeaderVersion)],
    status: &StatusLine,
) -> Result<(Report, Option<Package>)> {
    let mut report = Report::default();
    let show_file = |file: &str, size: u64| status.show(|| current_file(file, size));
    let options = ReadOptions {
        begin: &show_file,
        ..ReadOptions::default()
    };
    let packages = match read::read_with(path, &slashes(path), &options) {
        Ok(packages) => packages,
        Err(error) => {
            if let Some(error) = scratch_error(&slashes(path), &error) {
                return Err(error);
            }
            report.findings.push(unreadable(path, &error));
            return Ok((report, None));
        }
    };
    let mut file = None;
    for package in packages {
        report.details.extend(details(&package));
        report.skipped.extend(skipped(&package));
        report.findings.extend(check(&package, policy));
        for (library, header) in headers {
            report
                .findings
                .extend(header_mismatches(&package, library, *header));
        }
        report.scope.files.extend(
            package
                .members
                .iter()
                .map(|member| package.display_path(member)),
        );
        if package.kind == ContainerKind::File {
            file = Some(package);
        }
    }
    Ok((report, file))
}

/// Text of the status line: `big.whl: nvidia/cublas/lib/libcublasLt.so.12 412 MB`.
fn current_file(file: &str, size: u64) -> String {
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
const STACK_SIZE: usize = 8 << 20;

/// Results of `work` for each item, in order. Compressed wheels are limited by the processor, not the
/// disk; more than two at a time would exceed the 64 MB of memory that BENCHMARKS.md promises.
fn on_two_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let mut results = thread::scope(|scope| {
        // If the system cannot start another thread, this one processes all items.
        let second = if items.len() > 1 {
            thread::Builder::new()
                .stack_size(STACK_SIZE)
                .spawn_scoped(scope, || process_rest(items, &next, &work))
                .ok()
        } else {
            None
        };
        let mut results = process_rest(items, &next, &work);
        if let Some(second) = second {
            results.extend(second.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_by_key(|(index, _)| *index);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Results of the items that this thread takes, with their indices. Each thread takes the next item that no
/// thread has taken.
fn process_rest<T, R>(items: &[T], next: &AtomicUsize, work: impl Fn(&T) -> R) -> Vec<(usize, R)> {
    let mut results = Vec::new();
    loop {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let Some(item) = items.get(index) else {
            return results;
        };
        results.push((index, work(item)));
    }
}

/// Skipped files that a user may expect to be checked, a line for each reason.
fn skipped(package: &Package) -> Vec<String> {
    let mut reasons = BTreeMap::<&str, Vec<&str>>::new();
    for flaw in &package.flaws {
        if flaw.kind == FlawKind::Skipped {
            reasons.entry(&flaw.message).or_default().push(&flaw.path);
        }
    }
    reasons
        .into_iter()
        .filter_map(|(reason, paths)| {
            let first = package.display_path_of(paths.iter().min()?);
            Some(match paths.len() - 1 {
                0 => format!("{first}: {reason}"),
                more => format!("{first} and {more} more: {reason}"),
            })
        })
        .collect()
}

/// Rules that apply to each image and to the package.
fn details(package: &Package) -> Vec<String> {
    let elf_rules = rule_ids(|check| matches!(check, Check::Image(_) | Check::AnyImage(_)));
    let pe_rules = rule_ids(|check| matches!(check, Check::AnyImage(_)));
    let package_rules = match package.kind {
        ContainerKind::File => {
            rule_ids(|check| matches!(check, Check::Package(_) | Check::Policy(_)))
        }
        _ => rule_ids(|check| {
            matches!(
                check,
                Check::Package(_) | Check::Process(_) | Check::Policy(_)
            )
        }),
    };
    let mut details: Vec<String> = gpu_images(package)
        .map(|image| {
            let rules = if image.is_pe() { &pe_rules } else { &elf_rules };
            format!("{}: {rules}", image.display_path())
        })
        .collect();
    if !package_rules.is_empty() {
        details.push(format!("{}: {package_rules}", package.name));
    }
    details
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::on_two_threads;

    #[test]
    fn on_two_threads_keeps_the_order_of_items() {
        // Each thread processes one of two consecutive items.
        let barrier = Barrier::new(2);
        let products = on_two_threads(&[1, 2, 3, 4, 5, 6], |item| {
            barrier.wait();
            item * 10
        });
        assert_eq!(products, [10, 20, 30, 40, 50, 60]);
        assert_eq!(on_two_threads(&[7], |item| item + 1), [8]);
        assert_eq!(on_two_threads(&[], |item: &u8| *item), [0; 0]);
    }
}
