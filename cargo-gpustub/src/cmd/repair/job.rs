//! The repair of one input, planned: everything that is written, apart from the code of stub libraries.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use gpustub_check::wheel::Wheel as Metadata;
use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_image::edit::{self, Patch};
use gpustub_repair::{Found, Options, PackagePlan, candidates, followers, loaders, names};
use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::status_line::StatusLine;

use super::input::{Form, Input};
use super::stub;
use crate::cli;

/// A planned repair.
pub struct Job {
    /// The files.
    pub input: Input,
    /// The edits.
    pub plan: PackagePlan,
    /// Edited images by path in the package, with their originals.
    pub patches: BTreeMap<String, (File, Patch)>,
    /// Stub libraries, ready to be compiled, in the order of the plan.
    pub stubs: Vec<stub::Sources>,
}

/// Plans a repair. `None`: nothing is written, because nothing of what needs a repair could be repaired.
pub fn plan(
    input: Input,
    options: &cli::Repair,
    status: &StatusLine,
    found: &mut Vec<Diagnostic>,
    sources: &mut Sources,
) -> Result<Option<Job>> {
    let mut images = BTreeMap::new();
    let mut inspected = Vec::new();
    let mut paths = candidates(&input.package);
    paths.extend(followers(&input.package));
    for path in paths {
        status.show(|| input.package.display_path_of(path));
        let image = input.image(path)?;
        inspected.push(Found {
            path: path.to_owned(),
            inspection: edit::inspect(&image.bytes),
        });
        images.insert(path.to_owned(), image);
    }
    let mut wanted = naming(&input);
    wanted.headers = options
        .header_version
        .iter()
        .map(|one| (one.family.clone(), one.version.clone()))
        .collect();
    // An image that turns out not to be editable keeps the libraries that it needs.
    let (plan, diagnostics, patches, stubs) = loop {
        let (plan, mut diagnostics) = gpustub_repair::plan(&input.package, &inspected, &wanted);
        let excluded = wanted.excluded.len();
        let mut stubs = Vec::new();
        for one in &plan.stubs {
            match stub::sources(one)? {
                Ok(sources) => stubs.push(sources),
                Err(reason) => {
                    let index = stubs.len();
                    let users = plan.images.iter().filter(|image| image.stub == index);
                    wanted
                        .excluded
                        .extend(users.map(|image| (image.path.clone(), reason.clone())));
                    break;
                }
            }
        }
        let mut patches = BTreeMap::new();
        for image in &plan.images {
            let Some(original) = images.get(&image.path) else {
                continue;
            };
            match edit::plan(&original.bytes, &image.request) {
                Ok(patch) => {
                    patches.insert(image.path.clone(), patch);
                }
                Err(problem) => {
                    wanted
                        .excluded
                        .insert(image.path.clone(), problem.to_string());
                }
            }
        }
        if wanted.excluded.len() == excluded {
            diagnostics.extend(loaders::opened_by_images(&input.package, &plan));
            break (plan, diagnostics, patches, stubs);
        }
    };
    let nothing_repaired = plan.images.is_empty() && has_errors(&diagnostics);
    found.extend(diagnostics);
    if nothing_repaired {
        return Ok(None);
    }
    if !plan.images.is_empty() {
        texts(&input, found, sources);
    }
    let mut files = images;
    let patches = patches.into_iter().filter_map(|(path, patch)| {
        let file = files.remove(&path)?.file;
        Some((path, (file, patch)))
    });
    let patches = patches.collect();
    Ok(Some(Job {
        input,
        plan,
        patches,
        stubs,
    }))
}

/// Names and directory of the stub library.
fn naming(input: &Input) -> Options {
    let mut options = Options::default();
    match &input.form {
        Form::Wheel { path, .. } => {
            let metadata = Metadata::from_package(&input.package).unwrap_or_default();
            let file = path.file_name().unwrap_or_default().to_string_lossy();
            let mut parts = file.split('-');
            let (name, version) = (parts.next(), parts.next());
            options.name = names::package_name(&[&metadata.name, &metadata.version]);
            if let (Some(name), Some(_)) = (name, version) {
                // auditwheel's directory.
                options.directory = format!("{name}.libs");
            } else {
                options.directory = format!("{}.libs", metadata.name.replace('-', "_"));
            }
            options.removes_copies = true;
        }
        Form::Files(files) => {
            let stem = files.first().map_or("", |(name, _)| name.as_str());
            options.prefix = prefix(stem);
        }
        Form::Directory(path) => {
            let name = path.canonicalize().ok();
            let name = name
                .as_deref()
                .and_then(Path::file_name)
                .unwrap_or_default();
            options.prefix = prefix(&name.to_string_lossy());
            options.directory = common_directory(&candidates(&input.package));
            options.removes_copies = true;
        }
    }
    options
}

/// Readable beginning of a name that ends in a hash.
fn prefix(file: &str) -> String {
    let stem = file.split(".so").next().unwrap_or_default();
    let stem = stem.strip_prefix("lib").unwrap_or(stem);
    match names::package_name(&[stem]) {
        name if name.is_empty() => name,
        name => format!("{name}_"),
    }
}

/// The deepest directory that contains all of the paths.
fn common_directory(paths: &[&str]) -> String {
    let directory = |path: &&str| -> Vec<String> {
        let (directory, _) = path.rsplit_once('/').unwrap_or_default();
        directory.split('/').map(str::to_owned).collect()
    };
    let mut directories = paths.iter().map(directory);
    let mut common = directories.next().unwrap_or_default();
    for other in directories {
        let same = common
            .iter()
            .zip(&other)
            .take_while(|(a, b)| a == b)
            .count();
        common.truncate(same);
    }
    common.join("/")
}

/// Reports texts that load GPU libraries.
fn texts(input: &Input, found: &mut Vec<Diagnostic>, sources: &mut Sources) {
    let mut add = |path: &str, bytes: Vec<u8>| {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let shown = input.package.display_path_of(path);
        if let Some(diagnostic) = loaders::loaded_by_text(&shown, &text) {
            found.push(diagnostic);
            sources.insert(shown, text);
        }
    };
    match &input.form {
        Form::Wheel { wheel, .. } => {
            let mut files: Vec<_> = wheel.files().collect();
            files.sort_unstable();
            for (path, size) in files {
                let mut bytes = Vec::new();
                if loaders::is_text(path)
                    && size <= loaders::LARGEST
                    && wheel.unpack(path, &mut bytes).is_ok()
                {
                    add(path, bytes);
                }
            }
        }
        Form::Files(_) => {}
        Form::Directory(directory) => {
            let members = input.package.members.iter();
            for member in
                members.filter(|m| loaders::is_text(&m.path) && m.size <= loaders::LARGEST)
            {
                if let Ok(bytes) = fs::read(directory.join(&member.path)) {
                    add(&member.path, bytes);
                }
            }
        }
    }
}
