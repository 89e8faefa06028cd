//! RDC libraries: sources → objects → an archive that holds nothing else.
//!
//! No device link goes into the archive. nvlink skips, without a word, all of an archive that holds
//! one already (rdc, N6), and a process can register an object's kernels only once.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpustub_core::arch::{Arch, ArchKind};
use gpustub_core::diag::NVCC_FAILED;
use gpustub_core::manifest::DeviceLink;

use super::jobs::Tokens;
use super::nvcc::Nvcc;
use super::published::{self, Library};
use super::sources;
use super::stamp::{self, Inputs, Started};
use crate::Error;
use crate::toolchain::{Index, Toolchain};

/// Where a build is: what commands run in, and what they are given.
pub(super) struct Place<'a> {
    /// The folder of `GpuStub.toml`; commands run there, so that messages name files as people do.
    pub(super) package: &'a Path,
    /// For what is made.
    pub(super) out: &'a Path,
    pub(super) nvcc: &'a Nvcc,
    /// `OPT_LEVEL` and `DEBUG` of cargo.
    pub(super) opt_level: &'a str,
    pub(super) debug: bool,
}

/// One object to be made.
pub(super) struct Unit {
    command: Command,
    source: PathBuf,
    pub(super) object: PathBuf,
    dependencies: PathBuf,
}

/// The units of one library. `inherited` are the libraries that it requires, itself included.
pub(super) fn units(
    place: &Place,
    library: &DeviceLink,
    patterns: &[String],
    inherited: &[&Library],
) -> Result<Vec<Unit>, Error> {
    let dir = place.out.join("objects").join(&library.name.value);
    std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the folder", &dir, &e))?;
    let mut units = Vec::new();
    for source in sources::all(place.package, &library.name.value, patterns)? {
        // Two folders may have files of one name.
        let flat = published::text(&source)?.replace(['/', '\\'], "-");
        let object = dir.join(format!("{flat}.o"));
        let dependencies = dir.join(format!("{flat}.d"));
        let mut command = place.nvcc.compile();
        command.current_dir(place.package);
        command.args(["-rdc=true", "-c", "-Xcompiler", "-fPIC"]);
        command.args(optimisation(place.opt_level));
        if place.debug {
            // Not -G: it switches optimisation of device code off.
            command.args(["-g", "-lineinfo"]);
        }
        for arch in &library.archs {
            command.arg("-gencode").arg(gencode(arch.value));
        }
        for used in inherited {
            for dir in &used.include {
                command.arg("-I").arg(dir);
            }
            command.args(used.defines.iter().map(|define| format!("-D{define}")));
            command.args(&used.flags);
        }
        command.arg("-MD").arg("-MF").arg(&dependencies);
        command.arg(&source).arg("-o").arg(&object);
        units.push(Unit {
            command,
            source,
            object,
            dependencies,
        });
    }
    Ok(units)
}

/// What compiling came to.
#[derive(Default)]
pub(super) struct Compiled {
    /// The files that the units were made from, sorted.
    pub(super) read: Vec<PathBuf>,
    /// What nvcc said of those that it compiled now: warnings.
    pub(super) said: Vec<String>,
}

/// Compiles what is not fresh.
pub(super) fn run(place: &Place, units: Vec<Unit>, tokens: Tokens) -> Result<Compiled, Error> {
    let started = Started::now(place.out)?;
    let Compiled { mut read, mut said } = Compiled::default();
    let mut stale = Vec::new();
    for unit in units {
        match stamp::fresh(&unit.object, &stamp::line(&unit.command)) {
            Some(inputs) => read.extend(inputs),
            None => {
                stamp::forget(&unit.object)?;
                stale.push(unit);
            }
        }
    }
    let (commands, units): (Vec<_>, Vec<_>) = stale
        .into_iter()
        .map(|unit| {
            let line = stamp::line(&unit.command);
            let Unit {
                command,
                source,
                object,
                dependencies,
            } = unit;
            (command, (line, source, object, dependencies))
        })
        .unzip();
    if !units.is_empty() {
        let outputs = tokens.run(commands).map_err(|e| {
            let program = place.nvcc.compile();
            Error::io("run", Path::new(program.get_program()), &e)
        })?;
        for ((line, source, object, dependencies), output) in units.into_iter().zip(outputs) {
            let Some(output) = output else { continue };
            if !output.status.success() {
                return Err(failed(&source, &line, &output));
            }
            for printed in [&output.stdout, &output.stderr] {
                let text = String::from_utf8_lossy(printed);
                said.extend(text.lines().map(str::to_owned));
            }
            let text = std::fs::read_to_string(&dependencies)
                .map_err(|e| Error::io("read", &dependencies, &e))?;
            let inputs = stamp::read_dependencies(&text);
            let inputs: Vec<_> = inputs.iter().map(|p| place.package.join(p)).collect();
            stamp::write(&object, &line, &inputs, started)?;
            read.extend(inputs);
        }
    }
    read.sort();
    read.dedup();
    Ok(Compiled { read, said })
}

/// Puts the objects into `archive`, unless it holds just these already: its time is what the
/// packages that link it look at.
pub(super) fn archive(
    tools: &Toolchain,
    archive: &Path,
    objects: &[PathBuf],
    index: Index,
) -> Result<(), Error> {
    let names: Vec<_> = objects.iter().map(|object| format!("{object:?}")).collect();
    let line = names.join(" ");
    if stamp::fresh(archive, &line).is_some() {
        return Ok(());
    }
    let dir = archive.parent().unwrap_or(Path::new("."));
    let before = Inputs::of(objects);
    stamp::forget(archive)?;
    tools.archive(dir, objects, archive, index)?;
    stamp::write_known(archive, &line, objects, &before)
}

/// The folders in which a new file could match, for cargo to look at. Not the package itself,
/// which may hold the target directory.
pub(super) fn watched(patterns: &[String]) -> Vec<String> {
    let fixed = |pattern: &String| {
        let end = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
        let (folder, _) = pattern[..end].rsplit_once('/')?;
        Some(folder.to_owned())
    };
    let mut folders: Vec<_> = patterns
        .iter()
        .filter(|pattern| pattern.contains(['*', '?', '[']))
        .filter_map(fixed)
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// nvcc knows no `s` and `z`.
fn optimisation(level: &str) -> &'static [&'static str] {
    match level {
        "0" => &["-O0"],
        "1" => &["-O1"],
        "3" => &["-O3"],
        _ => &["-O2"],
    }
}

/// The word after `-gencode` that compiles for one architecture.
pub(super) fn gencode(arch: Arch) -> String {
    format!("arch={},code={arch}", arch.as_kind(ArchKind::Virtual))
}

fn failed(source: &Path, line: &str, output: &Output) -> Error {
    let mut printed = output.stdout.clone();
    printed.extend(&output.stderr);
    Error::new(
        &NVCC_FAILED,
        format!(
            "nvcc cannot compile {} ({}): {line}",
            source.display(),
            output.status
        ),
    )
    .output(&printed)
}
