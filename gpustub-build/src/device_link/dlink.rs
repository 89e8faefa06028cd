//! One device link: nvcc over the archives of some libraries.

use std::path::{Path, PathBuf};

use gpustub_core::arch::ArchKind;
use gpustub_core::device_link::Planned;
use gpustub_core::diag::{DEVICE_LINK_FAILED, FILE_ERROR, PRELINKED_ARCHIVE};

use super::index::Unfit;
use super::nvcc::Nvcc;
use super::published::Library;
use super::stamp::{self, Inputs};
use super::{compile, index};
use crate::Error;

/// Runs nvcc, unless the object is what it would make.
pub(super) fn run(
    nvcc: &Nvcc,
    link: &Planned,
    members: &[&Library],
    dir: &Path,
    object: &Path,
) -> Result<(), Error> {
    let keep = dir.join("kept");
    std::fs::create_dir_all(&keep).map_err(|e| Error::io("create the folder", &keep, &e))?;
    let archives: Vec<PathBuf> = members.iter().map(|m| m.archive.clone()).collect();
    let mut expected = Vec::new();
    for member in members {
        expected.extend(objects(member)?);
    }
    expected.sort();
    let mut command = nvcc.link();
    command.current_dir(dir);
    command.args(["-dlink", "-Xcompiler", "-fPIC"]);
    // Code that is missing for an architecture is a mere warning otherwise, and a kernel that
    // cannot be launched.
    command.args(["-Xnvlink", "-Werror"]);
    // For the list of what is registered.
    command.arg("--keep").arg("--keep-dir").arg(&keep);
    for arch in &link.archs {
        let real = arch.as_kind(ArchKind::Real);
        command.arg("-gencode").arg(compile::gencode(real));
    }
    if link.lto {
        command.arg("-dlto");
    }
    command.args(&archives).arg("-o").arg(object);
    let line = stamp::line(&command);
    if stamp::fresh(object, &line).is_some() {
        return Ok(());
    }
    stamp::forget(object)?;
    let before = Inputs::of(&archives);
    let output = command
        .output()
        .map_err(|e| Error::io("run", Path::new(command.get_program()), &e))?;
    if !output.status.success() {
        let mut printed = output.stdout.clone();
        printed.extend(&output.stderr);
        return Err(Error::new(
            &DEVICE_LINK_FAILED,
            format!(
                "nvcc cannot link the device code ({}): {line}",
                output.status
            ),
        )
        .output(&printed));
    }
    let list = keep.join("device_link.reg.c");
    let text = std::fs::read_to_string(&list).map_err(|e| Error::io("read", &list, &e))?;
    let registered = index::registered(&text);
    if registered != expected {
        let missing: Vec<_> = expected
            .iter()
            .filter(|id| !registered.contains(id))
            .map(String::as_str)
            .collect();
        return Err(Error::new(
            &DEVICE_LINK_FAILED,
            format!(
                "the device link registers {} objects of {}; not {}",
                registered.len(),
                expected.len(),
                missing.join(", ")
            ),
        ));
    }
    stamp::write_known(object, &line, &archives, &before)
}

/// The ids of a library's objects.
pub(super) fn objects(member: &Library) -> Result<Vec<String>, Error> {
    let path = &member.archive;
    let found = index::modules(path).map_err(|e| Error::io("read", path, &e))?;
    let modules = found.map_err(|why| {
        let (what, help) = match why {
            Unfit::NoArchive => (
                "is no archive",
                "`archive` names the .a file of objects that nvcc compiled with -rdc=true"
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
        Error::new(&FILE_ERROR, text).help(help)
    })?;
    if !modules.linked.is_empty() {
        return Err(Error::new(
            &PRELINKED_ARCHIVE,
            format!(
                "device-link.{}: {} was archived with a device link; nvlink would skip all of it",
                member.name,
                path.display()
            ),
        )
        .help(
            "build it without: CUDA_RESOLVE_DEVICE_SYMBOLS OFF with CMake; the cc crate cannot, \
             `[device-link.*]` with `sources` does it in its place",
        ));
    }
    Ok(modules.objects)
}
