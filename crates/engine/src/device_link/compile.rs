//! RDC libraries: sources → objects → an archive of the objects only.
//!
//! The archive contains no device link. nvlink silently skips a whole archive that contains one, and a
//! process can register an object's kernels only once.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::closure::inherited;
use super::compiler::{Compiler, Compilers};
use super::context::{BuildContext, Context};
use super::cuda_clang::CudaClang;
use super::hip::Clang;
use super::jobs::Tokens;
use super::metadata::{DeviceLibrary, Object};
use super::nvcc::Nvcc;
use super::{nvcc_report, sources, visibility};
use crate::error::Error;
use crate::files;
use crate::fingerprint::{self, InputStates, Started};
use crate::store::{Fetched, Step};
use crate::toolchain::{Index, Toolchain};
use gpustub_core::diag::IO_ERROR;
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::{Arch, ArchKind, Vendor};
use gpustub_core::manifest::{CudaCompiler, DeviceLink, ModuleFormat, Spanned};
use gpustub_core::text::join;

fn compile_error(build: &BuildContext, unit: &Unit, command: &str, output: &Output) -> Error {
    let mut visible = Vec::new();
    for library in build.libraries {
        // No table can require a module.
        if build.modules.iter().all(|m| m.name() != library.name) {
            visible.push(library);
        }
    }
    visible.extend(build.dependencies);
    let inherited = inherited(
        &unit.library.name.value,
        build.libraries,
        build.dependencies,
    );
    let error = nvcc_report::CompileError {
        compiler: unit.compiler,
        manifest: build.context.manifest,
        library: unit.library,
        source: &unit.source,
        visible: &visible,
        inherited: &inherited,
    };
    error.into_error(command, output)
}

/// The compilers of a library's code: that of CUDA first.
pub(super) fn compilers<'a>(compilers: &'a Compilers, library: &DeviceLink) -> Vec<Compiler<'a>> {
    let for_cuda = match library.compiler {
        CudaCompiler::Nvcc => compilers.nvcc.as_ref().map(Compiler::Nvcc),
        CudaCompiler::Clang => compilers.cuda_clang.as_ref().map(Compiler::CudaClang),
    };
    let for_amd = compilers.clang.as_ref().map(Compiler::Clang);
    let mut compilers = Vec::from_iter(for_cuda.into_iter().chain(for_amd));
    compilers.retain(|compiler| has_vendor(library, compiler.vendor()));
    compilers
}

/// Whether a library has code for GPUs of a vendor.
pub(super) fn has_vendor(library: &DeviceLink, vendor: Vendor) -> bool {
    vendor.is_in(library.archs.iter().map(|arch| arch.value))
}

/// One source to be compiled.
pub(super) struct Unit<'a> {
    compiler: Compiler<'a>,
    library: &'a DeviceLink,
    command: Command,
    /// Relative to the package; absolute for a file that the build script wrote.
    pub(super) source: PathBuf,
    /// The output: a relocatable object, or a module.
    pub(super) object: PathBuf,
    /// Lists of the files that the compiler read.
    dependencies: Vec<PathBuf>,
}

impl Unit<'_> {
    /// Vendor of the code.
    pub(super) fn vendor(&self) -> Vendor {
        self.compiler.vendor()
    }

    /// The object in the archive of its library.
    pub(super) fn member(&self, context: &Context) -> Object {
        let name = self.object.file_name().unwrap_or_default();
        Object {
            member: name.to_string_lossy().into_owned(),
            source: context.package.join(&self.source),
        }
    }

    /// Makes the output: by the store, or by the command.
    fn make(
        &self,
        mut command: Command,
        mut step: Option<Step>,
        package: &Path,
        started: Started,
    ) -> io::Result<Made> {
        let outputs = [self.object.as_path()];
        let fetched = step.as_mut().and_then(|step| step.fetch(&outputs));
        if let Some(fetched) = fetched {
            return Ok(Made::Fetched(fetched));
        }
        // It may be a file of the store, into which the compiler would write.
        let _ = fs::remove_file(&self.object);
        let output = command.stdin(Stdio::null()).output()?;
        if let (Some(step), true) = (step, output.status.success()) {
            let inputs = self.read_inputs(package);
            if let Some(inputs) = inputs.ok().filter(|inputs| started.is_after(inputs)) {
                step.keep(&inputs, &outputs, &nvcc_report::printed(&output));
            }
        }
        Ok(Made::Compiled(output))
    }

    /// Files that the compiler read.
    fn read_inputs(&self, package: &Path) -> Result<Vec<PathBuf>, Error> {
        let mut inputs = Vec::new();
        for list in &self.dependencies {
            let rule = fs::read_to_string(list).map_err(|e| Error::io("read", list, &e))?;
            let paths = fingerprint::read_dependencies(&rule);
            inputs.extend(paths.iter().map(|path| package.join(path)));
        }
        inputs.sort();
        inputs.dedup();
        Ok(inputs)
    }
}

/// Way in which an output was made.
enum Made {
    Compiled(Output),
    Fetched(Fetched),
}

impl Made {
    fn is_success(&self) -> bool {
        match self {
            Self::Compiled(output) => output.status.success(),
            Self::Fetched(_) => true,
        }
    }
}

/// The outputs of the units.
pub(super) fn objects(units: &[Unit]) -> Vec<PathBuf> {
    units.iter().map(|unit| unit.object.clone()).collect()
}

/// The units of one library. `inherited` are the libraries that it requires, itself included. Without a
/// format of modules the outputs are relocatable objects.
pub(super) fn units<'a>(
    build: &BuildContext,
    compiler: Compiler<'a>,
    library: &'a DeviceLink,
    patterns: &[Spanned<String>],
    inherited: &[&DeviceLibrary],
    format: Option<ModuleFormat>,
) -> Result<Vec<Unit<'a>>, Error> {
    let dir = build.out.join("objects").join(&library.name.value);
    fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
    if let Compiler::Nvcc(_) = compiler {
        for include_dir in inherited.iter().flat_map(|required| &required.include_dirs) {
            check_path(include_dir, SPECIAL_IN_LISTS)?;
        }
    }
    // Of one source, and of another that has `.hip` after its name.
    let suffix = match (format, compiler) {
        (Some(_), Compiler::Clang(_)) => ".hipfb".to_owned(),
        (Some(format), _) => format!(".{}", format.word()),
        (None, Compiler::Nvcc(_) | Compiler::CudaClang(_)) => ".o".to_owned(),
        (None, Compiler::Clang(_)) => "-hip.o".to_owned(),
    };
    let mut units: Vec<Unit> = Vec::new();
    for source in sources::matching_files(build.context, &library.name.value, patterns)? {
        if let Compiler::Nvcc(_) = compiler {
            check_path(&source, SPECIAL_IN_NAMES)?;
        }
        let relative = source
            .strip_prefix(build.context.out_dir())
            .unwrap_or(&source);
        // Two directories may have files of one name, and `a/b-c.cu` must differ from `a-b/c.cu`.
        let flat = files::text(relative)?.replace(['/', '\\'], "-");
        let mut stem = flat.clone();
        let mut number = 1;
        let object = loop {
            let object = dir.join(format!("{stem}{suffix}"));
            if units.iter().all(|unit| unit.object != object) {
                break object;
            }
            number += 1;
            stem = format!("{flat}.{number}");
        };
        let list = object.with_extension("d");
        // A module has no host code, whose compilation writes the list without an architecture.
        let is_hip_module = format.is_some() && matches!(compiler, Compiler::Clang(_));
        let mut dependencies = if is_hip_module {
            Vec::new()
        } else {
            vec![list.clone()]
        };
        let mut command = match compiler {
            Compiler::Nvcc(nvcc) => nvcc_command(build, nvcc, library, inherited, format),
            Compiler::CudaClang(clang) => cuda_clang_command(build, clang, library, inherited),
            Compiler::Clang(clang) => clang_command(build, clang, library, inherited, format),
        };
        command.arg("-MD").arg("-MF").arg(list);
        if !matches!(compiler, Compiler::Nvcc(_)) {
            // Each of clang's compilations writes the list of its own, the last one that for the host.
            for arch in archs(library, compiler.vendor()) {
                if arch.kind() == ArchKind::Real {
                    let list = object.with_extension(format!("{arch}.d"));
                    let mut option = OsString::from("-MF");
                    option.push(&list);
                    command.arg(format!("-Xarch_{arch}")).arg(option);
                    dependencies.push(list);
                }
            }
        }
        let is_cuda = source
            .extension()
            .is_some_and(|extension| extension == "cu");
        if let (Compiler::Nvcc(_), false) = (compiler, is_cuda) {
            // nvcc takes other extensions for host code.
            command.args(["-x", "cu"]);
        }
        match compiler {
            // clang makes the object's id of this path alone, which two packages may have in common.
            Compiler::CudaClang(_) => command.arg(build.context.package.join(&source)),
            _ => command.arg(&source),
        };
        command.arg("-o").arg(&object);
        units.push(Unit {
            compiler,
            library,
            command,
            source,
            object,
            dependencies,
        });
    }
    Ok(units)
}

/// nvcc with the options that the units of a library share.
fn nvcc_command(
    build: &BuildContext,
    nvcc: &Nvcc,
    library: &DeviceLink,
    inherited: &[&DeviceLibrary],
    format: Option<ModuleFormat>,
) -> Command {
    let mut command = nvcc.compile();
    command.current_dir(build.context.package);
    match format {
        None => command.args(["-rdc=true", "-c", "-Xcompiler", "-fPIC"]),
        Some(format) => command.arg(format!("-{}", format.word())),
    };
    command.args(optimisation(build.opt_level));
    if build.debug {
        // Not -G: it switches optimisation of device code off.
        command.args(["-g", "-lineinfo"]);
    }
    for arch in archs(library, Vendor::Nvidia) {
        command.arg("-gencode").arg(gencode(arch));
    }
    if format.is_none() {
        // Modules have no host code.
        command.args(visibility::option(nvcc, inherited));
    }
    // A comma ends a value of nvcc, unless a backslash precedes it.
    add_inherited(&mut command, inherited, &|define| {
        define.replace(',', "\\,")
    });
    command
}

/// clang for CUDA with the options that the units of a library share.
fn cuda_clang_command(
    build: &BuildContext,
    clang: &CudaClang,
    library: &DeviceLink,
    inherited: &[&DeviceLibrary],
) -> Command {
    let archs = archs(library, Vendor::Nvidia);
    let mut command = clang.compile(&archs, build.opt_level, build.debug);
    command.current_dir(build.context.package);
    add_inherited(&mut command, inherited, &str::to_owned);
    command
}

/// clang for AMD with the options that the units of a library share.
fn clang_command(
    build: &BuildContext,
    clang: &Clang,
    library: &DeviceLink,
    inherited: &[&DeviceLibrary],
    format: Option<ModuleFormat>,
) -> Command {
    let mut command = match format {
        None => clang.compile(),
        Some(_) => clang.compile_module(),
    };
    command.current_dir(build.context.package);
    command.arg(format!("-O{}", build.opt_level));
    if build.debug {
        command.arg("-g");
    }
    for arch in archs(library, Vendor::Amd) {
        command.arg(format!("--offload-arch={arch}"));
    }
    add_inherited(&mut command, inherited, &str::to_owned);
    command
}

/// Architectures of one vendor.
fn archs(library: &DeviceLink, vendor: Vendor) -> Vec<Arch> {
    vendor.select(library.archs.iter().map(|arch| arch.value))
}

/// Adds the directories, macros and options of required libraries.
fn add_inherited(
    command: &mut Command,
    inherited: &[&DeviceLibrary],
    escaped: &dyn Fn(&str) -> String,
) {
    for dir in inherited.iter().flat_map(|required| &required.include_dirs) {
        command.arg("-I").arg(dir);
    }
    // Of several values the last is used: that of the library itself.
    for required in inherited.iter().rev() {
        for define in &required.defines {
            command.arg(format!("-D{}", escaped(define)));
        }
        command.args(&required.compile_options);
    }
}

/// Characters that nvcc, which runs its steps in a shell, does not pass unchanged: in names of
/// sources, and in directories after `-I`, which is a list (13.5).
const SPECIAL_IN_NAMES: &str = "$`";
const SPECIAL_IN_LISTS: &str = ",\"'`";

/// Rejects a path with one of the characters in `special`.
fn check_path(path: &Path, special: &str) -> Result<(), Error> {
    let text = files::text(path)?;
    let Some(character) = text.chars().find(|c| special.contains(*c)) else {
        return Ok(());
    };
    let message = format!(
        "nvcc does not accept the path {}, which contains `{character}`",
        path.display()
    );
    Err(Error::new(&IO_ERROR, message)
        .help("rename the file or directory, or build in another directory"))
}

/// Compiles the units that are not fresh. If one source has an error, the objects of the others are
/// kept, so that only that source is compiled again. The directives are the compilers' warnings about the units
/// compiled in this run, and the files that all units were made from.
pub(super) fn run(
    build: &BuildContext,
    units: Vec<&mut Unit>,
    tokens: Tokens,
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    let started = Started::now(build.out)?;
    let package = build.context.package;
    let mut inputs = Vec::new();
    let mut stale = Vec::new();
    for unit in units {
        let key = unit.compiler.key(&unit.command);
        match fingerprint::fresh(&unit.object, &key) {
            Some(recorded) => inputs.extend(recorded),
            None => {
                fingerprint::invalidate(&unit.object)?;
                let line = nvcc_report::shell(&unit.command);
                let store = build.context.store.as_ref();
                let step = store.map(|store| store.step(&unit.command, &key, &[]));
                let command = std::mem::replace(&mut unit.command, Command::new(""));
                let unit: &Unit = unit;
                let job = move || unit.make(command, step, package, started);
                stale.push((unit, key, line, job));
            }
        }
    }
    if let Some((first, ..)) = stale.first() {
        let compiler = first.compiler;
        let mut jobs = Vec::new();
        let mut compiled = Vec::new();
        for (unit, key, line, job) in stale {
            jobs.push(job);
            compiled.push((unit, key, line));
        }
        let results = tokens
            .run(jobs, &Made::is_success)
            .map_err(|e| compiler.cannot_run(&e))?;
        let mut first_error = None;
        for ((unit, key, line), result) in compiled.into_iter().zip(results) {
            let (printed, unit_inputs) = match result {
                None => continue,
                Some(Made::Compiled(output)) if !output.status.success() => {
                    first_error = first_error.or(Some(compile_error(build, unit, &line, &output)));
                    continue;
                }
                Some(Made::Compiled(output)) => {
                    let unit_inputs = unit.read_inputs(package)?;
                    (nvcc_report::printed(&output), unit_inputs)
                }
                Some(Made::Fetched(fetched)) => (fetched.printed, fetched.inputs),
            };
            for warning in printed.lines().filter(|line| !line.trim().is_empty()) {
                directives.push(Directive::Warning(warning.to_owned()));
            }
            fingerprint::record(&unit.object, &key, &unit_inputs, started)?;
            inputs.extend(unit_inputs);
        }
        if let Some(error) = first_error {
            return Err(error);
        }
    }
    inputs.sort();
    inputs.dedup();
    watch(build.context, &inputs, directives)
}

/// Makes cargo watch the files that the units were made from.
fn watch(
    context: &Context,
    inputs: &[PathBuf],
    directives: &mut Vec<Directive>,
) -> Result<(), Error> {
    for path in inputs {
        // The script's own files are newer than its start, which cargo compares with.
        if path.starts_with(context.out_dir()) {
            continue;
        }
        // Files of the package are named as in GpuStub.toml, so that the directory can be moved.
        let path = path.strip_prefix(context.package).unwrap_or(path);
        directives.push(Directive::RerunIfChanged(files::text(path)?));
    }
    Ok(())
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
    let before = InputStates::read(objects);
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
