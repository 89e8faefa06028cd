//! One device link: nvcc over the archives of some libraries, which runs nvlink.

use std::path::{Path, PathBuf};

use gpustub_core::device_link::Planned;
use gpustub_core::diag::{DEVICE_LINK_ERROR, DEVICE_LINKED_ARCHIVE, IO_ERROR};
use gpustub_core::gpu_arch::ArchKind;
use gpustub_core::text::join;

use super::fingerprint::{self, Inputs};
use super::metadata::Library;
use super::nvcc::Nvcc;
use super::symbol_index::Unfit;
use super::{compile, external, nvcc_report, symbol_index};
use crate::error::Error;

/// Runs nvcc, unless the object is up to date. Returns its warnings.
pub(super) fn link(
    nvcc: &Nvcc,
    link: &Planned,
    members: &[&Library],
    dir: &Path,
    object: &Path,
) -> Result<Vec<String>, Error> {
    let keep = dir.join("kept");
    std::fs::create_dir_all(&keep).map_err(|e| Error::io("create the directory", &keep, &e))?;
    let archives: Vec<PathBuf> = members.iter().map(|m| m.archive.clone()).collect();
    let mut expected = Vec::new();
    for member in members {
        let ids = objects(member)?;
        expected.extend(ids.into_iter().map(|id| (id, *member)));
    }
    expected.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut command = nvcc.link();
    command.current_dir(dir);
    command.args(["-dlink", "-Xcompiler", "-fPIC"]);
    // nvlink would add its library for kernels that launch kernels, if a function is undefined that
    // no used kernel calls; and the program does not contain that library.
    command.args(["-cudadevrt", "none"]);
    // Keeps the list of registered objects.
    command.arg("--keep").arg("--keep-dir").arg(&keep);
    for arch in &link.archs {
        let real = arch.as_kind(ArchKind::Real);
        command.arg("-gencode").arg(compile::gencode(real));
    }
    if link.lto {
        command.arg("-dlto");
    }
    command.args(&archives).arg("-o").arg(object);
    let line = nvcc.key(&command);
    if fingerprint::fresh(object, &line).is_some() {
        return Ok(Vec::new());
    }
    fingerprint::invalidate(object)?;
    external::check(nvcc, link, members)?;
    let before = Inputs::read(&archives);
    let output = command
        .output()
        .map_err(|e| nvcc.cannot_run(&command, &e))?;
    let printed = nvcc_report::printed(&output);
    // Code missing for an architecture is a mere warning, and a kernel that cannot be launched. Not
    // -Werror: recursion and calls by pointer are warnings as well: their stacks have no bound.
    if !output.status.success() || printed.contains(NO_ARCH) {
        return Err(nvcc_report::link_error(
            nvcc, members, dir, &command, &output,
        ));
    }
    let list = keep.join("device_link.reg.c");
    let text = std::fs::read_to_string(&list).map_err(|e| Error::io("read", &list, &e))?;
    let registered = symbol_index::registered(&text);
    if !expected.iter().map(|(id, _)| id).eq(&registered) {
        let missing: Vec<_> = expected
            .iter()
            .filter(|(id, _)| !registered.contains(id))
            .map(|(id, member)| format!("{id} of device-link.{} ({})", member.name, member.package))
            .collect();
        return Err(Error::new(
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
            nvcc.root.display()
        )));
    }
    fingerprint::record_known(object, &line, &archives, &before)?;
    let lines = printed.lines().filter(|line| !line.trim().is_empty());
    Ok(lines.map(str::to_owned).collect())
}

/// nvlink: `SM Arch ('sm_90') not found in 'waves.o'`. Not printed by 13.5 for objects in archives:
/// the plan compares the declared architectures, and `external` checks other archives.
const NO_ARCH: &str = "SM Arch ('";

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
