//! One device link: nvcc over the archives of some libraries, which runs nvlink.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::metadata::DeviceLibrary;
use super::nvcc::Nvcc;
use super::{compile, cuda_clang, external, lto, nvcc_report, runtime, symbol_index};
use crate::error::Error;
use crate::files;
use crate::fingerprint;
use crate::store::Store;
use gpustub_core::device_link::NodePlan;
use gpustub_core::diag::{DEVICE_LINK_ERROR, DEVICE_LINKED_ARCHIVE};
use gpustub_core::gpu_arch::{Arch, ArchKind, Vendor};
use gpustub_core::manifest::ModuleFormat;
use gpustub_core::text::join;

/// Inputs of a device link.
pub(super) struct LinkInputs<'a> {
    pub(super) nvcc: &'a Nvcc,
    pub(super) store: Option<&'a Store>,
    /// Real architectures.
    pub(super) archs: &'a [Arch],
    /// Whether a library has code that is finished here.
    pub(super) lto: bool,
    pub(super) members: &'a [&'a DeviceLibrary],
    /// Directory of outputs.
    pub(super) dir: &'a Path,
    /// Header in this directory that renames functions of the host code.
    pub(super) renames: Option<&'a Path>,
}

/// Makes the object of a program's device link, unless it is up to date. Returns nvcc's warnings.
pub(super) fn link(
    (nvcc, store): (&Nvcc, Option<&Store>),
    link: &NodePlan,
    members: &[&DeviceLibrary],
    dir: &Path,
    object: &Path,
    renames: Option<&Path>,
) -> Result<Vec<String>, Error> {
    let inputs = LinkInputs {
        nvcc,
        store,
        archs: &Vendor::Nvidia.select(link.archs.iter().copied()),
        lto: link.lto,
        members,
        dir,
        renames,
    };
    let kept = dir.join("kept");
    std::fs::create_dir_all(&kept).map_err(|e| Error::io("create the directory", &kept, &e))?;
    // Keeps the list of registered objects.
    let options = [
        OsStr::new("-Xcompiler"),
        OsStr::new("-fPIC"),
        OsStr::new("--keep"),
        OsStr::new("--keep-dir"),
        kept.as_os_str(),
    ];
    let list = kept.join("device_link.reg.c");
    run(&inputs, &options, object, &|expected| {
        check_registered(&inputs, expected, &list)
    })
}

/// Makes a module's file, unless it is up to date. Returns nvcc's warnings.
pub(super) fn link_module(
    inputs: &LinkInputs,
    format: ModuleFormat,
    file: &Path,
) -> Result<Vec<String>, Error> {
    let option = format!("-{}", format.word());
    // Without it nvlink drops kernels that no host code launches, if host code launches others
    // (11.8 to 13.5).
    let options = [option.as_str(), "-Xnvlink", "-ignore-host-info"].map(OsStr::new);
    run(inputs, &options, file, &|_| Ok(()))
}

/// An object's id, and its library.
type Expected<'a> = (String, &'a DeviceLibrary);

/// Runs nvcc, unless the output is up to date. `check` gets the objects that it is made of.
fn run(
    inputs: &LinkInputs,
    options: &[&OsStr],
    output: &Path,
    check: &dyn Fn(&[Expected]) -> Result<(), Error>,
) -> Result<Vec<String>, Error> {
    let LinkInputs {
        nvcc,
        archs,
        members,
        dir,
        renames,
        ..
    } = *inputs;
    let mut expected = Vec::new();
    for member in members {
        let ids = objects(member)?;
        expected.extend(ids.into_iter().map(|id| (id, *member)));
    }
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    check_distinct(&expected)?;
    let mut files: Vec<PathBuf> = members.iter().map(|m| m.archive.clone()).collect();
    let mut command = command(inputs, options)?;
    command.args(&files).arg("-o").arg(output);
    let key = nvcc.key(&command);
    if has_devrt(members) {
        files.push(runtime::cudadevrt(nvcc)?);
    }
    if fingerprint::fresh(output, &key).is_some() {
        return Ok(Vec::new());
    }
    fingerprint::invalidate(output)?;
    files.extend(renames.map(Path::to_owned));
    let before = fingerprint::InputStates::read(&files);
    let mut step = inputs.store.map(|store| store.step(&command, &key, &[]));
    let fetched = step.as_mut().and_then(|step| step.fetch(&[output]));
    if let Some(fetched) = fetched {
        fingerprint::record_known(output, &key, &files, &before)?;
        return Ok(warnings(&fetched.printed));
    }
    external::check(nvcc, archs, inputs.lto, members)?;
    // It may be a file of the store, into which nvcc would write.
    files::remove(output)?;
    let result = command
        .output()
        .map_err(|e| nvcc.cannot_run(&command, &e))?;
    let printed = nvcc_report::printed(&result);
    // Code missing for an architecture is a mere warning, and a kernel that cannot be launched. Not
    // -Werror: recursion and calls by pointer are warnings as well: their stacks have no bound.
    if !result.status.success() || printed.contains(NO_ARCH) {
        return Err(nvcc_report::link_error(
            nvcc, archs, members, dir, &command, &result,
        ));
    }
    external::check_added(nvcc, archs, inputs.lto, members, output)?;
    check(&expected)?;
    fingerprint::record_known(output, &key, &files, &before)?;
    if let (Some(step), true) = (step, fingerprint::fresh(output, &key).is_some()) {
        step.keep(&files, &[output], &printed);
    }
    Ok(warnings(&printed))
}

/// Lines of nvcc that are warnings.
fn warnings(printed: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for line in printed.lines() {
        // With -dlto: of objects and architectures that have no LTO code.
        let is_info = line.starts_with("nvlink info") || line.contains(NO_LTO);
        if !is_info && !line.trim().is_empty() {
            warnings.push(line.to_owned());
        }
    }
    warnings
}

/// The command of a device link, without its archives and its output.
fn command(inputs: &LinkInputs, options: &[&OsStr]) -> Result<Command, Error> {
    let nvcc = inputs.nvcc;
    let mut command = if inputs.lto {
        lto::command(nvcc, inputs.dir)?
    } else {
        nvcc.link()
    };
    command.current_dir(inputs.dir).arg("-dlink");
    if has_devrt(inputs.members) || inputs.lto {
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
    command.args(options);
    for arch in inputs.archs {
        let real = arch.as_kind(ArchKind::Real);
        command.arg("-gencode").arg(compile::gencode(real));
    }
    if inputs.lto {
        command.arg("-dlto");
    }
    if let Some(name) = inputs.renames.and_then(Path::file_name) {
        // In the directory of the command: commas of a path would separate flags.
        command.arg("-Xcompiler");
        command.arg(format!("-include,{}", name.to_string_lossy()));
    }
    Ok(command)
}

/// Rejects two objects of one id: the host code of the device link would define its name twice.
fn check_distinct(expected: &[Expected]) -> Result<(), Error> {
    let Some([(id, first), (_, second)]) = expected.windows(2).find_map(|pair| match pair {
        [a, b] if a.0 == b.0 => Some([a, b]),
        _ => None,
    }) else {
        return Ok(());
    };
    let message = format!(
        "two objects have the id {id}, in device-link.{} ({}) and device-link.{} ({})",
        first.name, first.package, second.name, second.package
    );
    let help = if id == cuda_clang::CONSTANT_ID {
        "clang 23.1 gives this id to every object: set CUDACXX to another release (22 or before), or write \
         compiler = \"nvcc\""
    } else {
        "compilers derive the id from the path of the source: compile each source once, and with clang by its absolute path"
    };
    Err(Error::new(&DEVICE_LINK_ERROR, message).help(help))
}

/// Rejects a device link that registers other objects than those of its libraries.
fn check_registered(inputs: &LinkInputs, expected: &[Expected], list: &Path) -> Result<(), Error> {
    let text = std::fs::read_to_string(list).map_err(|e| Error::io("read", list, &e))?;
    let (devrt, registered): (Vec<String>, Vec<String>) = symbol_index::registered(&text)
        .into_iter()
        .partition(|id| id.contains(DEVRT) && expected.iter().all(|(known, _)| known != id));
    if !devrt.is_empty() && !has_devrt(inputs.members) {
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
pub(super) fn has_devrt(members: &[&DeviceLibrary]) -> bool {
    members.iter().any(|member| member.cudadevrt)
}

/// Ids of a library's objects.
pub(super) fn objects(member: &DeviceLibrary) -> Result<Vec<String>, Error> {
    let path = &member.archive;
    let ids = external::object_ids(&member.name, path)?;
    if !ids.linked.is_empty() {
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
    Ok(ids.objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_objects_of_one_id_are_rejected() {
        let [first, second] = ["base", "top"].map(|name| DeviceLibrary {
            name: name.to_owned(),
            package: format!("{name} 0.1.0"),
            ..DeviceLibrary::default()
        });
        for (ids, help) in [
            (["_1_a_cu_f", "_2_a_cu_f"], None),
            (["__nv_1", "__nv_1"], Some("compile each source once")),
            (
                [cuda_clang::CONSTANT_ID; 2],
                Some("clang 23.1 gives this id"),
            ),
        ] {
            let expected = [(ids[0].to_owned(), &first), (ids[1].to_owned(), &second)];
            let message = check_distinct(&expected)
                .err()
                .map(|error| error.to_string());
            let Some(help) = help else {
                assert_eq!(message, None);
                continue;
            };
            let message = message.unwrap_or_default();
            let libraries = "in device-link.base (base 0.1.0) and device-link.top (top 0.1.0)";
            assert!(
                message.contains(libraries) && message.contains(help),
                "{message}"
            );
        }
    }
}
