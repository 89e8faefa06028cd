//! Tables of the libraries in wheels, compared with the file lists of the newest published wheels: `wheels.toml` and
//! `libraries.toml` of `check`, and `wheel-dirs` of the library manifests. `cases/wheel_tables.toml` names the wheels.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use gpustub_check::gpu_file::gpu_file;
use gpustub_check::wheel::NvidiaWheel;
use gpustub_core::library::Library;
use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::{Result, repository};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// Stems of libraries, by project.
#[derive(Deserialize)]
struct Table {
    libraries: BTreeMap<String, BTreeSet<String>>,
    nvidia: BTreeMap<String, BTreeSet<String>>,
    #[serde(rename = "nvidia-windows")]
    nvidia_windows: BTreeMap<String, BTreeSet<String>>,
}

/// Published wheels of NVIDIA by project, and reasons by stem.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Cases {
    nvidia: BTreeMap<String, Vec<String>>,
    absent: BTreeMap<String, String>,
    unlisted: BTreeMap<String, String>,
    not_for_gpus: BTreeMap<String, String>,
    other_directories: BTreeMap<String, String>,
    other_wheels: BTreeMap<String, String>,
}

/// A shared library in a wheel.
struct WheelLibrary {
    /// Project in the table.
    project: String,
    /// Name and version of the wheel.
    wheel: String,
    directory: String,
    file: String,
}

impl WheelLibrary {
    fn stem(&self) -> &str {
        self.file.split(".so").next().unwrap_or_default()
    }
}

fn read<T: DeserializeOwned>(path: &str) -> Result<T> {
    let text = std::fs::read_to_string(repository().join(path))?;
    Ok(toml::from_str(&text).map_err(|error| format!("{path}: {error}"))?)
}

/// Files of the newest wheels of projects, by an option of the lister.
fn listed<'a>(option: &str, projects: impl Iterator<Item = &'a &'a str>) -> Result<String> {
    let mut lister = Command::new("python3");
    lister
        .arg(repository().join("tests/components/wheel-headers"))
        .arg(option)
        .args(projects)
        .env("PYTHONPATH", component("pip")?);
    Ok(succeed(&mut lister)?.stdout)
}

/// Shared libraries of the newest wheels, without extension modules of Python. Of the wheels only the directories are
/// downloaded.
fn wheel_libraries(projects: &BTreeMap<&str, &str>) -> Result<Vec<WheelLibrary>> {
    let mut libraries = Vec::new();
    for line in listed("--files", projects.keys())?.lines() {
        let [wheel, version, path] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("no file of a wheel: {line}").into());
        };
        let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
        let is_library = file.ends_with(".so") || file.contains(".so.");
        if is_library && !file.contains(".cpython-") && !file.contains(".abi3.") {
            libraries.push(WheelLibrary {
                project: projects[wheel].to_owned(),
                wheel: format!("{wheel} {version}"),
                directory: directory.to_owned(),
                file: file.to_owned(),
            });
        }
    }
    Ok(libraries)
}

/// The row that has a stem, or a pattern with one `*` that matches it.
fn row<'a>(reasons: &'a BTreeMap<String, String>, stem: &str) -> Option<&'a str> {
    let matches = |pattern: &str| match pattern.split_once('*') {
        Some((start, end)) => stem.starts_with(start) && stem.ends_with(end),
        None => pattern == stem,
    };
    reasons.keys().map(String::as_str).find(|row| matches(row))
}

/// Differences between the tables and the wheels.
struct Comparison<'a> {
    cases: &'a Cases,
    table: &'a Table,
    wheels: &'a [WheelLibrary],
    /// Rows of `cases` that explain a difference.
    explaining: BTreeSet<&'a str>,
    unexplained: Vec<String>,
}

impl<'a> Comparison<'a> {
    /// A difference, unless a row of `reasons` has the stem.
    fn differs(&mut self, reasons: &'a BTreeMap<String, String>, stem: &str, message: String) {
        match row(reasons, stem) {
            Some(row) => drop(self.explaining.insert(row)),
            None => self.unexplained.push(message),
        }
    }

    /// Libraries of the table that no wheel of the project has.
    fn absent(&mut self) {
        for (project, stems) in self.table.libraries.iter().chain(&self.table.nvidia) {
            for stem in stems {
                let mut files = self.wheels.iter().filter(|file| file.project == *project);
                if !files.any(|file| file.stem() == stem) {
                    let message = format!("wheels.toml: no newest wheel of {project} has {stem}");
                    self.differs(&self.cases.absent, stem, message);
                }
            }
        }
    }

    /// Libraries of the wheels that the tables lack.
    fn unlisted(&mut self) {
        for library in self.wheels {
            let WheelLibrary {
                project,
                wheel,
                file,
                ..
            } = library;
            let nvidia = self.table.nvidia.get(project);
            let stems = nvidia.or_else(|| self.table.libraries.get(project));
            if !stems.is_some_and(|stems| stems.contains(library.stem())) {
                let message = format!("wheels.toml: {project} lacks {file} of {wheel}");
                self.differs(&self.cases.unlisted, library.stem(), message);
            } else if nvidia.is_some() {
                self.nvidia_library(library);
            }
        }
    }

    /// The directory of a library below `nvidia`, and its rows in `libraries.toml` and in a manifest.
    fn nvidia_library(&mut self, library: &WheelLibrary) {
        let WheelLibrary {
            project,
            wheel,
            directory,
            file,
        } = library;
        if !NvidiaWheel::providing(file).any(|wheel| wheel.is_directory(directory)) {
            let message = format!("{wheel}: {directory} is no directory of {project}");
            self.unexplained.push(message);
        }
        let Some(gpu) = gpu_file(file) else {
            let message = format!("libraries.toml lacks {file} of {wheel}");
            return self.differs(&self.cases.not_for_gpus, library.stem(), message);
        };
        let Some(stubbed) = gpu.library else { return };
        let mut names = stubbed.load_names.get("linux").into_iter().flatten();
        if !stubbed.wheel_dirs.contains(directory) || !names.any(|name| name.name == *file) {
            let message = format!(
                "manifests/{}.toml: {directory}/{file} of {wheel} is not searched",
                stubbed.id
            );
            self.differs(&self.cases.other_directories, library.stem(), message);
        }
    }

    /// Directories of manifests that have none of the library's files.
    fn empty_directories(&mut self) {
        for library in Library::builtin_ids().filter_map(Library::builtin) {
            let directories = library.wheel_dirs.iter();
            for directory in directories.filter(|directory| directory.starts_with("nvidia/")) {
                let is_there = self.wheels.iter().any(|file| {
                    let stubbed = gpu_file(&file.file).and_then(|gpu| gpu.library);
                    file.directory == *directory && stubbed == Some(library)
                });
                if !is_there {
                    let id = &library.id;
                    let message =
                        format!("manifests/{id}.toml: no newest wheel has it in {directory}");
                    self.differs(&self.cases.other_wheels, directory, message);
                }
            }
        }
    }

    /// Rows of reasons without a difference.
    fn stale_reasons(&mut self) {
        let cases = self.cases;
        for reasons in [
            &cases.absent,
            &cases.unlisted,
            &cases.not_for_gpus,
            &cases.other_directories,
            &cases.other_wheels,
        ] {
            let rows = reasons.keys().map(String::as_str);
            let stale = rows.filter(|row| !self.explaining.contains(row));
            let messages = stale.map(|row| format!("wheel_tables.toml: `{row}` explains nothing"));
            self.unexplained.extend(messages);
        }
    }
}

#[test]
#[ignore = "needs pip of the components and its index: ./tests/run --all"]
fn heavy_tables_have_the_libraries_of_the_newest_wheels() -> Result<()> {
    let table: Table = read("crates/check/data/wheels.toml")?;
    let cases: Cases = read("tests/cases/wheel_tables.toml")?;
    assert!(
        cases.nvidia.keys().eq(table.nvidia.keys()),
        "wheel_tables.toml has other projects than wheels.toml"
    );
    let mut projects: BTreeMap<&str, &str> = table
        .libraries
        .keys()
        .map(|project| (&**project, &**project))
        .collect();
    for (project, wheels) in &cases.nvidia {
        projects.extend(wheels.iter().map(|wheel| (&**wheel, &**project)));
    }
    let wheels = wheel_libraries(&projects)?;
    let mut comparison = Comparison {
        cases: &cases,
        table: &table,
        wheels: &wheels,
        explaining: BTreeSet::new(),
        unexplained: Vec::new(),
    };
    comparison.absent();
    comparison.unlisted();
    comparison.empty_directories();
    comparison.stale_reasons();
    let differences = comparison.unexplained;
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    Ok(())
}

/// Names up to the version of the DLLs that `check` counts as provided: neither variants that nvrtc opens, nor extensions of
/// nvimgcodec.
fn dll_name(path: &str) -> Option<&str> {
    let (directory, file) = path.rsplit_once('/')?;
    let stem = file.strip_suffix(".dll")?;
    if stem.ends_with(".alt") || directory.ends_with("/extensions") {
        return None;
    }
    let is_version = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(char::is_alphabetic)
    };
    let (end, _) = stem
        .match_indices('_')
        .find(|(end, _)| is_version(&stem[end + 1..]))
        .unwrap_or((stem.len(), ""));
    Some(&stem[..end])
}

#[test]
#[ignore = "needs pip of the components and its index: ./tests/run --all"]
fn heavy_tables_have_the_dlls_of_the_newest_wheels() -> Result<()> {
    let table: Table = read("crates/check/data/wheels.toml")?;
    let cases: Cases = read("tests/cases/wheel_tables.toml")?;
    let mut projects: BTreeMap<&str, &str> = BTreeMap::new();
    for (project, wheels) in &cases.nvidia {
        projects.extend(wheels.iter().map(|wheel| (&**wheel, &**project)));
    }
    let mut dlls: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for line in listed("--windows-files", projects.keys())?.lines() {
        let [wheel, _, path] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("no file of a wheel: {line}").into());
        };
        let Some(name) = dll_name(path) else { continue };
        let file = path.rsplit('/').next().unwrap_or_default();
        assert!(
            NvidiaWheel::providing(file).any(|nvidia| nvidia.is_project(wheel)),
            "{line}"
        );
        if gpu_file(file).is_none() {
            unknown.insert(name.to_owned());
        }
        dlls.entry(projects[wheel].to_owned())
            .or_default()
            .insert(name.to_owned());
    }
    assert_eq!(dlls, table.nvidia_windows);
    // Of libraries that run on the CPU.
    assert_eq!(
        Vec::from_iter(unknown),
        ["cudss_mtlayer_vcomp14064", "nvcomp_cpu64"]
    );
    Ok(())
}
