//! Device code in archives that were built elsewhere.
//!
//! nvlink (13.5) does not report that an object in an archive lacks an architecture: the kernels
//! are registered, and cannot be launched. The toolkit's cuobjdump, if installed, lists the code of
//! each object. Its list omits LTO code, so device links with such code are not checked.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::process::Command;

use gpustub_core::diag::{DEVICE_LINK_ERROR, Diagnostic, IO_ERROR, MISSING_ARCH};
use gpustub_core::gpu_arch::Arch;
use gpustub_core::text::join;

use super::metadata::DeviceLibrary;
use super::nvcc::Nvcc;
use super::symbol_index::{self, IndexError, ObjectIds};
use crate::error::Error;
use crate::files;

/// Name of the section with the device code of clang's objects, and start of a file with code for
/// host and devices (clang's offload packager and bundler).
const CLANG_MARKS: [&[u8]; 2] = [b".llvm.offloading\0", b"__CLANG_OFFLOAD_BUNDLE__"];

/// Maximum number of bytes that are searched for a mark: each object of clang has one.
const MAX_SEARCH: u64 = 64 << 20;

/// Ids of the objects in the archive of a library. An archive that rustc or nvlink cannot read is an error.
pub(super) fn object_ids(library: &str, archive: &Path) -> Result<ObjectIds, Box<Diagnostic>> {
    let unread = |error| files::unread(archive, &error);
    let error = match symbol_index::object_ids(archive).map_err(unread)? {
        Ok(ids) if ids.objects.is_empty() && is_by_clang(archive).map_err(unread)? => {
            let message = format!(
                "device-link.{library}: {} has device code that clang compiled, which nvlink cannot read",
                archive.display()
            );
            let help =
                "compile its sources with nvcc, as `sources` of the library or with -rdc=true";
            return Err(Box::new(
                Diagnostic::error(&DEVICE_LINK_ERROR, message).help(help),
            ));
        }
        Ok(ids) => return Ok(ids),
        Err(error) => error,
    };
    let (problem, help) = match error {
        IndexError::NoArchive => (
            "is not an archive",
            "`prebuilt` names the .a file of objects that nvcc compiled with -rdc=true".to_owned(),
        ),
        IndexError::Thin => (
            "is a thin archive, which only names its objects",
            "`ar` without `T` puts them in".to_owned(),
        ),
        IndexError::NoIndex => (
            "has no symbol index",
            format!("`ranlib {}` writes one", archive.display()),
        ),
    };
    let message = format!("device-link.{library}: {} {problem}", archive.display());
    Err(Box::new(Diagnostic::error(&IO_ERROR, message).help(help)))
}

/// Whether a file has one of [`CLANG_MARKS`].
fn is_by_clang(archive: &Path) -> io::Result<bool> {
    let mut file = File::open(archive)?.take(MAX_SEARCH);
    let mut buffer = Vec::new();
    loop {
        // A mark may lie across the end of a chunk.
        buffer.drain(..buffer.len().saturating_sub(CLANG_MARKS[1].len()));
        if (&mut file).take(1 << 20).read_to_end(&mut buffer)? == 0 {
            return Ok(false);
        }
        if CLANG_MARKS
            .iter()
            .any(|mark| buffer.windows(mark.len()).any(|window| window == *mark))
        {
            return Ok(true);
        }
    }
}

/// Checks that an archive built elsewhere can be linked.
pub fn check_archive(library: &str, archive: &Path) -> Result<(), Box<Diagnostic>> {
    object_ids(library, archive).map(drop)
}

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
    for member in members {
        // Archives made by gpustub have sources.
        if !member.sources.is_empty() {
            continue;
        }
        let output = Command::new(nvcc.root.join("bin/cuobjdump"))
            .args(["--list-elf", "--list-ptx"])
            .arg(&member.archive)
            .output();
        let Some(output) = output.ok().filter(|output| output.status.success()) else {
            continue;
        };
        for (object, present) in parse_list(&String::from_utf8_lossy(&output.stdout)) {
            let missing: Vec<_> = archs
                .iter()
                .filter(|arch| !present.iter().any(|code| code.serves(**arch)))
                .map(Arch::to_string)
                .collect();
            if present.is_empty() || missing.is_empty() {
                continue;
            }
            let present: Vec<_> = present.iter().map(Arch::to_string).collect();
            return Err(Error::new(
                &MISSING_ARCH,
                format!(
                    "the device link is for {}, and {object} of {} (device-link.{} of {}) has only {}",
                    join(&missing, ", "),
                    member.archive.display(),
                    member.name,
                    member.package,
                    join(&present, ", ")
                ),
            )
            .help("list the archive's architectures in `archs` of the library, or build the archive for these as well"));
        }
    }
    Ok(())
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
