//! One device link: nvcc over the archives of some libraries, which runs nvlink.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::metadata::Library;
use super::nvcc::Nvcc;
use super::symbol_index::Unfit;
use super::{compile, external, lto, nvcc_report, runtime, symbol_index};
use crate::error::Error;
use crate::fingerprint;
use gpustub_core::device_link::Planned;
use gpustub_core::diag::{DEVICE_LINK_ERROR, DEVICE_LINKED_ARCHIVE, IO_ERROR};
use gpustub_core::gpu_arch::{Arch, ArchKind};
use gpustub_core::manifest::ModuleFormat;
use gpustub_core::text::join;

/// Inputs of a device link.
pub(super) struct Inputs<'a> {
    pub(super) nvcc: &'a Nvcc,
    /// Real architectures.
    pub(super) archs: &'a [Arch],
    /// Whether a library has code that is finished here.
    pub(super) lto: bool,
    pub(super) members: &'a [&'a Library],
    /// Directory of outputs.
    pub(super) dir: &'a Path,
    /// Header in this directory that renames functions of the host code.
    pub(super) renamed: Option<&'a Path>,
}

/// Makes the object of a program's device link, unless it is up to date. Returns nvcc's warnings.
pub(super) fn link(
    nvcc: &Nvcc,
    link: &Planned,
    members: &[&Library],
    dir: &Path,
    object: &Path,
    renamed: Option<&Path>,
) -> Result<Vec<String>, Error> {
    let inputs = Inputs {
        nvcc,
        archs: &link.archs,
        lto: link.lto,
        members,
        dir,
        renamed,
    };
    let keep = dir.join("kept");
    std::fs::create_dir_all(&keep).map_err(|e| Error::io("create the directory", &keep, &e))?;
    // Keeps the list of registered objects.
    let words = ["-Xcompiler", "-fPIC", "--keep", "--keep-dir"].map(OsStr::new);
    let words = words.into_iter().chain([keep.as_os_str()]);
    let list = keep.join("device_link.reg.c");
    run(&inputs, words, object, |expected| {
        all_registered(&inputs, expected, &list)
    })
}

/// Makes a module's file, unless it is up to date. Returns nvcc's warnings.
pub(super) fn link_module(
    inputs: &Inputs,
    format: ModuleFormat,
    file: &Path,
) -> Result<Vec<String>, Error> {
    let option = format!("-{}", format.word());
    // Without it nvlink drops kernels that no host code launches, if host code launches others
    // (11.8 to 13.5).
    let words = [option.as_str(), "-Xnvlink", "-ignore-host-info"];
    run(inputs, words.into_iter().map(OsStr::new), file, |_| Ok(()))
}

/// An object's id, and its library.
type Expected<'a> = (String, &'a Library);

/// Runs nvcc, unless the output is up to date. `check` gets the objects that it is made of.
fn run<'a>(
    inputs: &Inputs<'a>,
    words: impl Iterator<Item = &'a OsStr>,
    output: &Path,
    check: impl FnOnce(&[Expected]) -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let Inputs {
        nvcc,
        archs,
        members,
        dir,
        renamed,
        ..
    } = *inputs;
    let mut archives: Vec<PathBuf> = members.iter().map(|m| m.archive.clone()).collect();
    let mut expected = Vec::new();
    for member in members {
        let ids = objects(member)?;
        expected.extend(ids.into_iter().map(|id| (id, *member)));
    }
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut command = if inputs.lto {
        lto::command(nvcc, dir)?
    } else {
        nvcc.link()
    };
    command.current_dir(dir).arg("-dlink");
    let has_devrt = has_devrt(members);
    if has_devrt || inputs.lto {
        // With -dlto nvlink needs its library for kernels that launch kernels, and takes no code of it
        // that nothing calls. nvcc 13.0 of wheels does not search in its own `lib`.
        for dir in nvcc.library_dirs(nvcc.arch()) {
            command.arg("-L").arg(dir);
        }
    } else {
        // nvlink would add that library, if a function is undefined that no used kernel calls; and
        // the program does not contain it.
        command.args(["-cudadevrt", "none"]);
    }
    let devrt = has_devrt.then(|| runtime::cudadevrt(nvcc)).transpose()?;
    command.args(words);
    for arch in archs {
        let real = arch.as_kind(ArchKind::Real);
        command.arg("-gencode").arg(compile::gencode(real));
    }
    if inputs.lto {
        command.arg("-dlto");
    }
    if let Some(name) = renamed.and_then(Path::file_name) {
        // In the directory of the command: commas of a path would separate flags.
        command.arg("-Xcompiler");
        command.arg(format!("-include,{}", name.to_string_lossy()));
    }
    command.args(&archives).arg("-o").arg(output);
    let line = nvcc.key(&command);
    if fingerprint::fresh(output, &line).is_some() {
        return Ok(Vec::new());
    }
    fingerprint::invalidate(output)?;
    external::check(nvcc, archs, inputs.lto, members)?;
    archives.extend(devrt);
    archives.extend(renamed.map(Path::to_owned));
    let before = fingerprint::Inputs::read(&archives);
    let ran = command
        .output()
        .map_err(|e| nvcc.cannot_run(&command, &e))?;
    let printed = nvcc_report::printed(&ran);
    // Code missing for an architecture is a mere warning, and a kernel that cannot be launched. Not
    // -Werror: recursion and calls by pointer are warnings as well: their stacks have no bound.
    if !ran.status.success() || printed.contains(NO_ARCH) {
        return Err(nvcc_report::link_error(nvcc, members, dir, &command, &ran));
    }
    check(&expected)?;
    fingerprint::record_known(output, &line, &archives, &before)?;
    // With -dlto: of objects and architectures that have no LTO code.
    let is_info = |line: &&str| line.starts_with("nvlink info") || line.contains(NO_LTO);
    let lines = printed
        .lines()
        .filter(|line| !line.trim().is_empty() && !is_info(line));
    Ok(lines.map(str::to_owned).collect())
}

/// Rejects a device link that registers other objects than those of its libraries.
fn all_registered(inputs: &Inputs, expected: &[Expected], list: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(list).map_err(|e| Error::io("read", list, &e))?;
    let mut registered = symbol_index::registered(&text);
    let is_own = |id: &String| expected.iter().any(|(known, _)| known == id);
    let is_devrt = |id: &String| !is_own(id) && id.contains(DEVRT);
    if has_devrt(inputs.members) {
        registered.retain(|id| !is_devrt(id));
    } else if registered.iter().any(is_devrt) {
        let message = "the device link contains libcudadevrt, which the program does not";
        return Err(Error::new(&DEVICE_LINK_ERROR, message).help(nvcc_report::DEVRT_HELP));
    }
    if expected.iter().map(|(id, _)| id).eq(&registered) {
        return Ok(());
    }
    let missing: Vec<_> = expected
        .iter()
        .filter(|(id, _)| !registered.contains(id))
        .map(|(id, member)| format!("{id} of device-link.{} ({})", member.name, member.package))
        .collect();
    Err(Error::new(
        &DEVICE_LINK_ERROR,
        format!(
            "the device link registers {} objects of {}; not {}",
            registered.len(),
            expected.len(),
            join(&missing, ", ")
        ),
    )
    .help(format!(
        "nvlink accepts objects compiled with -rdc=true by a toolkit that is not newer than the one at {}",
        inputs.nvcc.root.display()
    )))
}

/// nvlink, for an architecture whose code is all machine code or PTX.
const NO_LTO: &str = "Ignoring -dlto option because no LTO objects found";

/// nvlink: `SM Arch ('sm_90') not found in 'waves.o'`. Not printed by 13.5 for objects in archives:
/// the plan compares the declared architectures, and `external` checks other archives.
const NO_ARCH: &str = "SM Arch ('";

/// Part of the id of libcudadevrt's object (13.5: `_0afad4c0_22_cuda_device_runtime_cu_f78b5b52_735892`).
const DEVRT: &str = "_cuda_device_runtime_cu_";

/// Whether kernels of the libraries launch kernels.
pub(super) fn has_devrt(members: &[&Library]) -> bool {
    members.iter().any(|member| member.cudadevrt)
}

/// Ids of a library's objects.
pub(super) fn objects(member: &Library) -> Result<Vec<String>, Error> {
    let path = &member.archive;
    let found = symbol_index::modules(path).map_err(|e| Error::io("read", path, &e))?;
    let modules = found.map_err(|why| {
        let (what, help) = match why {
            Unfit::NoArchive => (
                "is not an archive",
                "`prebuilt` names the .a file of objects that nvcc compiled with -rdc=true"
                    .to_owned(),
            ),
            Unfit::Thin => (
                "is a thin archive, which only names its objects",
                "`ar` without `T` puts them in".to_owned(),
            ),
            Unfit::NoIndex => (
                "has no symbol index",
                format!("`ranlib {}` writes one", path.display()),
            ),
        };
        let text = format!("device-link.{}: {} {what}", member.name, path.display());
        Error::new(&IO_ERROR, text).help(help)
    })?;
    if !modules.linked.is_empty() {
        return Err(Error::new(
            &DEVICE_LINKED_ARCHIVE,
            format!(
                "device-link.{}: {} was archived with a device link; nvlink would skip all of it",
                member.name,
                path.display()
            ),
        )
        .help(
            "build it without: CUDA_RESOLVE_DEVICE_SYMBOLS OFF with CMake; `[device-link.*]` with \
             `sources` instead of the cc crate",
        ));
    }
    Ok(modules.objects)
}
