//! Device code in archives that were built elsewhere.
//!
//! nvlink (13.5) does not report that an object in an archive lacks an architecture: the kernels
//! are registered, and cannot be launched. The toolkit's cuobjdump, if installed, lists the code of
//! each object. Its list omits LTO code, so device links with such code are not checked. If a file has no
//! device code, it exits with 255: the archive has no list, as without the tool.

use std::io;
use std::path::Path;
use std::process::Command;

use gpustub_core::diag::{DEVICE_LINK_ERROR, Diagnostic, IO_ERROR, MISSING_ARCH};
use gpustub_core::gpu_arch::{Arch, ArchKind, Vendor, chooses_archs};
use gpustub_core::manifest::DeviceLink;
use gpustub_core::offload::{CodeKind, ContainerFormat, OffloadCode};
use gpustub_core::text::join;

use super::metadata::DeviceLibrary;
use super::nvcc::Nvcc;
use super::symbol_index::{self, IndexError, ObjectIds};
use super::{compile, hip, nvcc_report};
use crate::error::Error;
use crate::files;

/// Maximum number of bytes of an archive that are searched for objects of clang, each of which has such code.
const MAX_SEARCH: u64 = 64 << 20;

/// Ids of the objects in the archive of a library. An archive that rustc or nvlink cannot read is an error.
pub(super) fn object_ids(library: &str, archive: &Path) -> Result<ObjectIds, Box<Diagnostic>> {
    let error = match symbol_index::object_ids(archive).map_err(|e| files::unread(archive, &e))? {
        Ok(ids) => return Ok(ids),
        Err(error) => error,
    };
    let (problem, help) = match error {
        IndexError::NoArchive => (
            "is not an archive",
            "`prebuilt` names the .a file of objects that nvcc compiled with -rdc=true, or clang with -fgpu-rdc".to_owned(),
        ),
        IndexError::Thin => (
            "is a thin archive, which only names its objects",
            "archive the objects themselves: `ar` without `--thin`; for Meson, which makes thin archives of libraries \
             that it does not install, `install: true`"
                .to_owned(),
        ),
        IndexError::Empty => (
            "has no objects",
            "add those that nvcc compiled with -rdc=true or clang with -fgpu-rdc, or remove the table".to_owned(),
        ),
        IndexError::NoIndex => (
            "has no symbol index",
            format!("`ranlib {}` writes one", archive.display()),
        ),
    };
    let message = format!("device-link.{library}: {} {problem}", archive.display());
    Err(Box::new(Diagnostic::error(&IO_ERROR, message).help(help)))
}

/// Description of the first object of an archive that has device code in another form than that of nvcc's objects.
fn foreign_object(archive: &Path) -> io::Result<Option<String>> {
    let mut description = None;
    symbol_index::visit_members(archive, MAX_SEARCH, &mut |name, member| {
        description = foreign_form(member).map(|form| {
            format!(
                "{name} in {} {form}, which nvlink cannot read",
                archive.display()
            )
        });
        description.is_none()
    })?;
    Ok(description)
}

fn foreign_form(member: &[u8]) -> Option<String> {
    if let Some(code) = OffloadCode::read(member) {
        let archs = match &Vec::from_iter(&code.archs)[..] {
            [] => String::new(),
            archs => format!(" for {}", join(archs, ", ")),
        };
        return Some(format!("has device code{archs} in {}", code.container));
    }
    match (ContainerFormat::of_file(member), CodeKind::of(member)) {
        (Some(format), _) => Some(format!("is {format}")),
        (None, kind @ (CodeKind::Ptx | CodeKind::SpirV | CodeKind::CodeObject)) => {
            Some(format!("is {kind}"))
        }
        _ => None,
    }
}

/// Checks that an archive built elsewhere can be linked, for AMD that it has code for the architectures of its table.
pub fn check_archive(table: &DeviceLink, archive: &Path) -> Result<(), Box<Diagnostic>> {
    let library = &table.name.value;
    let ids = object_ids(library, archive);
    // First, since containers that are members have no symbols, and no `ranlib` helps.
    if compile::has_vendor(table, Vendor::Amd) {
        hip::check_archive(table, archive, &ids)?;
    } else if let Ok(Some(description)) = foreign_object(archive) {
        let message = format!("device-link.{library}: {description}");
        let help = "compile its sources as `sources` of the library, with nvcc or, for AMD, clang; `prebuilt` takes objects of \
                    nvcc -rdc=true, and of clang --no-offload-new-driver -fgpu-rdc for the vendors of `archs`";
        return Err(Box::new(
            Diagnostic::error(&DEVICE_LINK_ERROR, message).help(help),
        ));
    }
    let ids = ids?;
    let has_cuda = compile::has_vendor(table, Vendor::Nvidia);
    if has_cuda && ids.objects.is_empty() && ids.linked.is_empty() {
        let message = format!(
            "device-link.{library}: {} has no relocatable device code of CUDA",
            archive.display()
        );
        let help = "compile its objects with nvcc -rdc=true; code of nvcc without this option needs no device link: link the \
                    archive like any other, without a table";
        return Err(Box::new(
            Diagnostic::error(&DEVICE_LINK_ERROR, message).help(help),
        ));
    }
    Ok(())
}

const HELP: &str = "list the archive's architectures in `archs` of the library, or build the archive for these as well";

/// Rejects archives without code for the architectures of the link.
pub(super) fn check(
    nvcc: &Nvcc,
    archs: &[Arch],
    lto: bool,
    members: &[&DeviceLibrary],
) -> Result<(), Error> {
    if lto {
        return Ok(());
    }
    match missing_code(nvcc, archs, members) {
        Some(message) => Err(Error::new(&MISSING_ARCH, message).help(HELP)),
        None => Ok(()),
    }
}

/// Rejects archives without code for the architectures that variables of nvcc added to those of a device link,
/// which made `output`.
pub(super) fn check_added(
    nvcc: &Nvcc,
    archs: &[Arch],
    lto: bool,
    members: &[&DeviceLibrary],
    output: &Path,
) -> Result<(), Error> {
    if lto || !nvcc.flags.iter().any(|(_, value)| chooses_archs(value)) {
        return Ok(());
    }
    let mut linked: Vec<Arch> = Vec::new();
    for line in list(nvcc, output).unwrap_or_default().lines() {
        linked.extend(arch(line).filter(|arch| arch.kind() == ArchKind::Real));
    }
    linked.retain(|arch| nvcc_report::is_added(*arch, archs));
    for added in linked {
        if let Some(message) = missing_code(nvcc, &[added], members) {
            let help = nvcc_report::help_about_variable(nvcc, archs, added, true);
            let help = help.unwrap_or_else(|| HELP.to_owned());
            return Err(Error::new(&MISSING_ARCH, message).help(help));
        }
    }
    Ok(())
}

/// Output of cuobjdump for a file; `None` if the toolkit has none.
fn list(nvcc: &Nvcc, file: &Path) -> Option<String> {
    let output = Command::new(nvcc.root.join("bin/cuobjdump"))
        .args(["--list-elf", "--list-ptx"])
        .arg(file)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Message about the first object of archives that lacks code for one of the architectures.
fn missing_code(nvcc: &Nvcc, archs: &[Arch], members: &[&DeviceLibrary]) -> Option<String> {
    // Archives made by gpustub have sources.
    for member in members.iter().filter(|member| member.sources.is_empty()) {
        for (object, present) in parse_list(&list(nvcc, &member.archive).unwrap_or_default()) {
            let missing: Vec<_> = archs
                .iter()
                .filter(|arch| !present.iter().any(|code| code.serves(**arch)))
                .map(Arch::to_string)
                .collect();
            if present.is_empty() || missing.is_empty() {
                continue;
            }
            let present: Vec<_> = present.iter().map(Arch::to_string).collect();
            return Some(format!(
                "the device link is for {}, and {object} of {} (device-link.{} of {}) has only {}",
                join(&missing, ", "),
                member.archive.display(),
                member.name,
                member.package,
                join(&present, ", ")
            ));
        }
    }
    None
}

/// Parses the output of cuobjdump: objects with the architectures of their code.
///
/// ```text
/// member libvec.a:vec.o:
/// ELF file    1: vec.sm_80.cubin
/// PTX file    1: vec.sm_90.ptx
/// ```
fn parse_list(text: &str) -> Vec<(&str, Vec<Arch>)> {
    let mut objects: Vec<(&str, Vec<Arch>)> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("member ") {
            let name = rest.trim_end_matches(':').rsplit(':').next();
            objects.push((name.unwrap_or(rest), Vec::new()));
        } else if let (Some(arch), Some((_, archs))) = (arch(line), objects.last_mut()) {
            archs.push(arch);
        }
    }
    objects
}

/// PTX is listed under the `sm_` of its number, like machine code.
fn arch(line: &str) -> Option<Arch> {
    let (kind, name) = line.split_once(" file ")?;
    let word = name.trim_end().rsplit('.').nth(1)?;
    match kind {
        "ELF" => Arch::parse(word),
        "PTX" => Arch::parse(&word.replacen("sm_", "compute_", 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_by_object() {
        let text = "\nmember /a b/libx.a:a.b.o:\nELF file    1: a.b.sm_80.cubin\n\
                    ELF file    2: a.b.sm_90a.cubin\nPTX file    1: a.b.sm_90.ptx\n\n\
                    member /a b/libx.a:host.o:\n";
        let archs = ["sm_80", "sm_90a", "compute_90"].map(|word| Arch::parse(word).unwrap());
        assert_eq!(
            parse_list(text),
            [("a.b.o", archs.to_vec()), ("host.o", vec![])]
        );
    }
}
