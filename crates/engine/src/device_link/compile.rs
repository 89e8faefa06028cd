//! RDC libraries: sources → objects → an archive of the objects only.
//!
//! The archive contains no device link. nvlink silently skips a whole archive that contains one, and a
//! process can register an object's kernels only once.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use super::closure::inherited;
use super::context::BuildContext;
use super::jobs::Tokens;
use super::metadata::Library;
use super::{nvcc_report, sources};
use crate::error::Error;
use crate::files;
use crate::fingerprint::{self, Inputs, Started};
use crate::toolchain::{Index, Toolchain};
use gpustub_core::diag::IO_ERROR;
use gpustub_core::gpu_arch::{Arch, ArchKind};
use gpustub_core::manifest::{DeviceLink, ModuleFormat, Spanned};
use gpustub_core::text::join;

fn compile_error(build: &BuildContext, unit: &Unit, command: &str, output: &Output) -> Error {
    // No table can require a module.
    let is_module = |library: &&Library| build.modules.iter().any(|m| m.name() == library.name);
    let own = build.own.iter().filter(|library| !is_module(library));
    let all: Vec<_> = own.chain(build.foreign).collect();
    let inherited = inherited(&unit.library.name.value, build.own, build.foreign);
    let failed = nvcc_report::CompileError {
        nvcc: build.nvcc,
        manifest: build.context.manifest,
        library: unit.library,
        source: &unit.source,
        all: &all,
        inherited: &inherited,
    };
    failed.into_error(command, output)
}

/// Output of a compile step.
#[derive(Clone, Copy)]
pub(super) enum Made {
    /// A relocatable object.
    Object,
    /// A module.
    Module(ModuleFormat),
}

impl Made {
    fn extension(self) -> &'static str {
        match self {
            Self::Object => "o",
            Self::Module(format) => format.word(),
        }
    }
}

/// A source, and the file that is made of it.
pub(super) struct Compilation {
    /// As [`Unit::source`].
    pub(super) source: PathBuf,
    pub(super) file: PathBuf,
}

/// One object to be made.
pub(super) struct Unit<'a> {
    library: &'a DeviceLink,
    command: Command,
    /// Relative to the package; absolute for a file that the build script wrote.
    pub(super) source: PathBuf,
    pub(super) object: PathBuf,
    dependencies: PathBuf,
}

impl Unit<'_> {
    /// Source and output.
    pub(super) fn output(&self) -> Compilation {
        Compilation {
            source: self.source.clone(),
            file: self.object.clone(),
        }
    }

    /// The object's name in the archive, and its source.
    pub(super) fn names(&self) -> (String, PathBuf) {
        let name = self.object.file_name().unwrap_or_default();
        (name.to_string_lossy().into_owned(), self.source.clone())
    }
}

/// The units of one library. `inherited` are the libraries that it requires, itself included.
pub(super) fn units<'a>(
    build: &BuildContext,
    library: &'a DeviceLink,
    patterns: &[Spanned<String>],
    inherited: &[&Library],
    made: Made,
) -> Result<Vec<Unit<'a>>, Error> {
    let dir = build.out.join("objects").join(&library.name.value);
    std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
    for dir in inherited.iter().flat_map(|used| &used.include_dirs) {
        if let Some(bad) = files::text(dir)?.chars().find(|c| IN_LISTS.contains(*c)) {
            return Err(unfit(dir, bad));
        }
    }
    let extension = made.extension();
    let mut units: Vec<Unit> = Vec::new();
    for source in sources::matching_files(build.context, &library.name.value, patterns)? {
        let text = files::text(&source)?;
        if let Some(bad) = text.chars().find(|c| IN_NAMES.contains(*c)) {
            return Err(unfit(&source, bad));
        }
        // Two directories may have files of one name, and `a/b-c.cu` must differ from `a-b/c.cu`.
        let short = source
            .strip_prefix(build.context.out_dir())
            .unwrap_or(&source);
        let flat = files::text(short)?.replace(['/', '\\'], "-");
        let names = (1..).map(|number| match number {
            1 => flat.clone(),
            number => format!("{flat}.{number}"),
        });
        let mut paths = names.map(|name| {
            (
                dir.join(format!("{name}.{extension}")),
                dir.join(format!("{name}.d")),
            )
        });
        let is_new = |(object, _): &(PathBuf, PathBuf)| units.iter().all(|u| u.object != *object);
        let Some((object, dependencies)) = paths.find(is_new) else {
            continue;
        };
        let mut command = build.nvcc.compile();
        command.current_dir(build.context.package);
        match made {
            Made::Object => command.args(["-rdc=true", "-c", "-Xcompiler", "-fPIC"]),
            Made::Module(format) => command.arg(format!("-{}", format.word())),
        };
        command.args(optimisation(build.opt_level));
        if build.debug {
            // Not -G: it switches optimisation of device code off.
            command.args(["-g", "-lineinfo"]);
        }
        for arch in &library.archs {
            command.arg("-gencode").arg(gencode(arch.value));
        }
        for used in inherited {
            for dir in &used.include_dirs {
                command.arg("-I").arg(dir);
            }
            // A comma ends a value of nvcc, unless a backslash precedes it.
            let defines = used.defines.iter().map(|define| define.replace(',', "\\,"));
            command.args(defines.map(|define| format!("-D{define}")));
            command.args(&used.compile_options);
        }
        command.arg("-MD").arg("-MF").arg(&dependencies);
        command.arg(&source).arg("-o").arg(&object);
        units.push(Unit {
            library,
            command,
            source,
            object,
            dependencies,
        });
    }
    Ok(units)
}

/// Characters that nvcc, which runs its steps in a shell, does not pass unchanged: in names of
/// sources, and in directories after `-I`, which is a list (13.5).
const IN_NAMES: &str = "$`";
const IN_LISTS: &str = ",\"'`";

fn unfit(path: &Path, bad: char) -> Error {
    let text = format!(
        "nvcc does not accept the path {}, which contains `{bad}`",
        path.display()
    );
    Error::new(&IO_ERROR, text).help("rename the file or directory, or build in another directory")
}

/// Result of compiling.
#[derive(Default)]
pub(super) struct Compiled {
    /// Files that the units were made from, sorted.
    pub(super) read: Vec<PathBuf>,
    /// Warnings of nvcc for the units compiled in this run.
    pub(super) said: Vec<String>,
}

/// Compiles the units that are not fresh. If one source has an error, the objects of the others are
/// kept, so that only that source is compiled again.
pub(super) fn run(
    build: &BuildContext,
    units: Vec<Unit>,
    tokens: Tokens,
) -> Result<Compiled, Error> {
    let started = Started::now(build.out)?;
    let Compiled { mut read, mut said } = Compiled::default();
    let mut stale = Vec::new();
    for mut unit in units {
        let key = build.nvcc.key(&unit.command);
        match fingerprint::fresh(&unit.object, &key) {
            Some(inputs) => read.extend(inputs),
            None => {
                fingerprint::invalidate(&unit.object)?;
                let line = nvcc_report::shell(&unit.command);
                let command = std::mem::replace(&mut unit.command, Command::new(""));
                stale.push((command, (unit, key, line)));
            }
        }
    }
    if !stale.is_empty() {
        let (commands, units): (Vec<_>, Vec<_>) = stale.into_iter().unzip();
        let outputs = tokens
            .run(commands)
            .map_err(|e| build.nvcc.cannot_run(&build.nvcc.compile(), &e))?;
        let mut failed = None;
        for ((unit, key, line), output) in units.into_iter().zip(outputs) {
            let Some(output) = output else { continue };
            if !output.status.success() {
                failed = failed.or(Some(compile_error(build, &unit, &line, &output)));
                continue;
            }
            let lines = nvcc_report::printed(&output);
            said.extend(lines.lines().map(str::to_owned));
            let text = std::fs::read_to_string(&unit.dependencies)
                .map_err(|e| Error::io("read", &unit.dependencies, &e))?;
            let inputs = fingerprint::read_dependencies(&text);
            let inputs: Vec<_> = inputs
                .iter()
                .map(|p| build.context.package.join(p))
                .collect();
            fingerprint::record(&unit.object, &key, &inputs, started)?;
            read.extend(inputs);
        }
        if let Some(error) = failed {
            return Err(error);
        }
    }
    read.sort();
    read.dedup();
    Ok(Compiled { read, said })
}

/// Puts the objects into `archive`, unless it already has just these: packages that link it compare
/// its modification time.
pub(super) fn archive(
    tools: &Toolchain,
    archive: &Path,
    objects: &[PathBuf],
    index: Index,
) -> Result<(), Error> {
    let names: Vec<_> = objects.iter().map(|object| format!("{object:?}")).collect();
    let line = join(&names, " ");
    if fingerprint::fresh(archive, &line).is_some() {
        return Ok(());
    }
    let dir = archive.parent().unwrap_or(Path::new("."));
    let before = Inputs::read(objects);
    fingerprint::invalidate(archive)?;
    tools.archive(dir, objects, archive, index)?;
    fingerprint::record_known(archive, &line, objects, &before)
}

/// nvcc has no levels `s` and `z`.
fn optimisation(level: &str) -> &'static [&'static str] {
    match level {
        "0" => &["-O0"],
        "1" => &["-O1"],
        "3" => &["-O3"],
        _ => &["-O2"],
    }
}

/// Argument of `-gencode` that compiles for one architecture.
pub(super) fn gencode(arch: Arch) -> String {
    format!("arch={},code={arch}", arch.as_kind(ArchKind::Virtual))
}
