//! Objects of HIP in archives that other builds made: which of them clang can link, and for which architectures.

use std::collections::BTreeSet;
use std::path::Path;

use gpustub_core::diag::{DEVICE_LINK_ERROR, DEVICE_LINKED_ARCHIVE, Diagnostic, MISSING_ARCH};
use gpustub_core::gpu_arch::{Arch, Vendor};
use gpustub_core::manifest::DeviceLink;
use gpustub_core::offload::{CodeKind, Container, ContainerFormat, Model, containers};
use gpustub_core::text::join;

use super::super::symbol_index::{self, ObjectIds};
use super::register::{FATBIN, HANDLE};
use crate::files;

/// HIP code of an archive's member.
#[derive(Debug, PartialEq, Eq)]
enum Form {
    /// An object of clang's older driver with code for these architectures.
    Relocatable(BTreeSet<String>),
    /// Code that the HIP runtime loads as it is.
    Finished,
    /// Code that no device link can use: its form, and the next step.
    Unlinkable(String, &'static str),
    /// No code of HIP.
    None,
}

const DEVICE_ONLY: &str = "it has no code for the host: compile the source with clang --no-offload-new-driver -fgpu-rdc -c, without \
                           --cuda-device-only, --offload-device-only, --genco and -flto";

const NEWER_DRIVER: &str = "clang's newer driver made it, whose objects only its own linker can register: compile with \
                            --no-offload-new-driver -fgpu-rdc";

const JOINED: &str = "`ld -r` joined several objects, whose device code clang cannot separate: archive the objects themselves";

const NOT_BITCODE: &str =
    "clang -fgpu-rdc makes LLVM bitcode, which is linked for each GPU: compile the source with it";

/// First bytes of LLVM bitcode: the magic, and the beginning of its identification block (since LLVM 3.8).
const BITCODE: &[u8] = b"BC\xC0\xDE5\x14\0\0";

/// HIP code of a member.
fn form(member: &[u8]) -> Form {
    if let Some(format) = ContainerFormat::of_file(member) {
        return Form::Unlinkable(format!("is {format}"), DEVICE_ONLY);
    }
    let kind = CodeKind::of(member);
    if matches!(kind, CodeKind::CodeObject | CodeKind::Ptx | CodeKind::SpirV) {
        return Form::Unlinkable(format!("is {kind}"), DEVICE_ONLY);
    }
    let mut archs = BTreeSet::new();
    let mut is_finished = false;
    for container in containers(member) {
        if !container.is_relocatable() {
            is_finished |= container.section == b".hip_fatbin";
            continue;
        }
        for entry in &container.entries {
            if entry.model != Model::Hip {
                continue;
            }
            if container.format != ContainerFormat::Bundle {
                let description =
                    format!("has device code for {} in {}", entry.arch, container.format);
                return Form::Unlinkable(description, NEWER_DRIVER);
            }
            let code = container.code(entry).unwrap_or_default();
            if entry.code != CodeKind::Bitcode {
                let description =
                    format!("has device code for {} that is {}", entry.arch, entry.code);
                return Form::Unlinkable(description, NOT_BITCODE);
            }
            if code
                .windows(BITCODE.len())
                .skip(1)
                .any(|bytes| bytes == BITCODE)
            {
                let description = format!("has several modules of device code for {}", entry.arch);
                return Form::Unlinkable(description, JOINED);
            }
            archs.insert(entry.arch.clone());
        }
    }
    match (archs.is_empty(), is_finished) {
        (false, _) => Form::Relocatable(archs),
        (true, true) => Form::Finished,
        (true, false) => Form::None,
    }
}

/// Whether a member is an object that a device link is over.
pub(super) fn is_relocatable(member: &[u8]) -> bool {
    let is_hip = |container: Container<'_>| {
        let is_bundle = container.format == ContainerFormat::Bundle && container.is_relocatable();
        is_bundle
            && container
                .entries
                .iter()
                .any(|entry| entry.model == Model::Hip)
    };
    ContainerFormat::of_file(member).is_none() && containers(member).any(is_hip)
}

/// Checks that clang can link the objects of an archive for the architectures of a library: for another one it makes code
/// without kernels, and reports nothing (19.1.7). `index`: result of reading the archive's symbol index.
pub(in crate::device_link) fn check(
    library: &DeviceLink,
    archive: &Path,
    index: &Result<ObjectIds, Box<Diagnostic>>,
) -> Result<(), Box<Diagnostic>> {
    let name = &library.name.value;
    let requested = Vendor::Amd.select(library.archs.iter().map(|arch| arch.value));
    let (mut has_objects, mut has_finished) = (false, false);
    let mut error = None;
    symbol_index::visit_members(archive, u64::MAX, &mut |member_name, member| {
        let path = archive.display();
        match form(member) {
            Form::Relocatable(archs) => {
                has_objects = true;
                error = missing(&requested, &archs).map(|missing| {
                    let archs = Vec::from_iter(&archs);
                    let message = format!(
                        "`archs` of device-link.{name} is {}, but {member_name} in {path} has only {}",
                        join(&missing, ", "),
                        join(&archs, ", ")
                    );
                    let help = "list the archive's architectures, or build the archive for these as well";
                    Diagnostic::error(&MISSING_ARCH, message).help(help)
                });
            }
            Form::Finished => has_finished = true,
            Form::Unlinkable(form, help) => {
                let message = format!(
                    "device-link.{name}: {member_name} in {path} {form}, which no device link can use"
                );
                error = Some(Diagnostic::error(&DEVICE_LINK_ERROR, message).help(help));
            }
            Form::None => {}
        }
        error.is_none()
    })
    .map_err(|e| files::unread(archive, &e))?;
    if let Some(error) = error {
        return Err(Box::new(error));
    }
    // Not before, since containers that are members have no symbols, and no `ranlib` helps.
    index.clone()?;
    let names = symbol_index::names(archive).map_err(|e| files::unread(archive, &e))?;
    let names = names.unwrap_or_default();
    // A device link defines both for each object.
    let is_linked = names.iter().any(|name| {
        let id = name.strip_prefix(FATBIN);
        id.is_some_and(|id| {
            names
                .iter()
                .any(|name| name.strip_prefix(HANDLE) == Some(id))
        })
    });
    let path = archive.display();
    if is_linked {
        let message = format!(
            "device-link.{name}: {path} was archived with a device link; programs have their own"
        );
        let help = "archive the objects of clang -fgpu-rdc -c alone: `--emit-static-lib`, `--hip-link` and `-r` with -fgpu-rdc \
                    add a device link";
        return Err(Box::new(
            Diagnostic::error(&DEVICE_LINKED_ARCHIVE, message).help(help),
        ));
    }
    if has_objects {
        return Ok(());
    }
    let message = format!("device-link.{name}: {path} has no relocatable device code of HIP");
    let help = if has_finished {
        "compile its objects with -fgpu-rdc; code of clang without this option needs no device link: link the archive like any \
         other, without a table"
    } else {
        "compile its objects with clang --no-offload-new-driver -fgpu-rdc, or remove AMD's architectures from `archs`"
    };
    Err(Box::new(
        Diagnostic::error(&DEVICE_LINK_ERROR, message).help(help),
    ))
}

/// Requested architectures that code does not serve; `None` if there are none.
fn missing(requested: &[Arch], archs: &BTreeSet<String>) -> Option<Vec<String>> {
    let code = Vec::from_iter(archs.iter().filter_map(|arch| Arch::parse(arch)));
    let missing = requested
        .iter()
        .filter(|requested| !code.iter().any(|code| code.serves(**requested)));
    let missing = Vec::from_iter(missing.map(Arch::to_string));
    (!missing.is_empty()).then_some(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_without_a_section_of_hip_are_recognized_by_their_first_bytes() {
        assert_eq!(form(b""), Form::None);
        assert_eq!(form(b"\x7fELF\x02\x01"), Form::None);
        let fatbin = form(&[0x50, 0xED, 0x55, 0xBA]);
        let expected = "is a fatbin of CUDA".to_owned();
        assert_eq!(fatbin, Form::Unlinkable(expected, DEVICE_ONLY));
        let bundle = form(b"__CLANG_OFFLOAD_BUNDLE__");
        let expected = "is an offload bundle of clang".to_owned();
        assert_eq!(bundle, Form::Unlinkable(expected, DEVICE_ONLY));
        let mut code_object = *b"\x7fELF\x02\x01\x01\x40\x03\0\0\0\0\0\0\0\x03\0\xE0\0";
        assert!(matches!(form(&code_object), Form::Unlinkable(..)));
        code_object[18] = 62;
        assert_eq!(form(&code_object), Form::None);
    }

    #[test]
    fn code_for_all_settings_serves_each() {
        let archs = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let requested = ["gfx90a:xnack+", "gfx1030"].map(|name| Arch::parse(name).unwrap());
        assert_eq!(missing(&requested, &archs(&["gfx90a", "gfx1030"])), None);
        let expected = Some(vec!["gfx1030".to_owned()]);
        assert_eq!(
            missing(&requested, &archs(&["gfx90a", "amdgcnspirv"])),
            expected
        );
    }
}
