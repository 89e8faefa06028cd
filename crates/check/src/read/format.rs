//! Formats of files.

use gpustub_core::offload::{CodeKind, ContainerFormat};
use gpustub_image::is_pe;

use crate::package::ContainerKind;

/// Maximum size of a text file, and of a `RECORD`, which has a line for each file.
const MAX_TEXT: u64 = 1 << 20;
const MAX_RECORD: u64 = 16 << 20;

/// Format of a file, by its first bytes, and by its name where these are ambiguous (a crate begins
/// like any other archive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Elf,
    Objects,
    Zip(ContainerKind),
    TarGz(ContainerKind),
    Tar,
    Text(u64),
    Pe,
    /// A program or library of macOS; the reason why it was skipped.
    Foreign(&'static str),
    Other,
}

/// Detects the format. `named`: named on the command line, where a zip file may have any name.
pub(super) fn format(head: &[u8], path: &str, named: bool) -> Format {
    let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
    let is_zip = [&b"PK\x03\x04"[..], b"PK\x05\x06"]
        .iter()
        .any(|magic| head.starts_with(magic));
    if head.starts_with(b"\x7fELF") {
        Format::Elf
    } else if head.starts_with(b"!<arch>\n") {
        Format::Objects
    } else if file.ends_with(".whl") {
        // Independent of its first bytes: pip treats it as a wheel.
        Format::Zip(ContainerKind::Wheel)
    } else if file.ends_with(".crate") {
        Format::TarGz(ContainerKind::Crate)
    } else if is_zip && (named || file.ends_with(".zip")) {
        Format::Zip(ContainerKind::Archive)
    } else if head.starts_with(b"\x1f\x8b") && (file.ends_with(".tar.gz") || file.ends_with(".tgz"))
    {
        Format::TarGz(ContainerKind::Archive)
    } else if head.get(257..262) == Some(b"ustar") && file.ends_with(".tar") {
        Format::Tar
    } else if file == "Cargo.toml" {
        Format::Text(MAX_TEXT)
    } else if directory.ends_with(".dist-info") {
        match file {
            "METADATA" | "WHEEL" | "top_level.txt" => Format::Text(MAX_TEXT),
            "RECORD" => Format::Text(MAX_RECORD),
            _ => Format::Other,
        }
    } else if is_pe(head) {
        Format::Pe
    } else if is_mach_o(head) {
        Format::Foreign("programs and libraries of macOS are not checked")
    } else {
        Format::Other
    }
}

/// Form of a file of device code, by its first bytes.
pub(super) fn form_of_device_code(head: &[u8]) -> Option<String> {
    let code = CodeKind::of(head);
    match ContainerFormat::of_file(head) {
        Some(format) => Some(format.to_string()),
        None if code.is_for_device() || code == CodeKind::Bitcode => Some(code.to_string()),
        None => None,
    }
}

/// Reason for skipping a file of another format that is named on the command line.
pub(super) fn why_skipped(head: &[u8]) -> String {
    match form_of_device_code(head) {
        Some(form) => format!("{form}, which is not checked: the host neither links nor loads it"),
        None if head.starts_with(b"!<thin>\n") => {
            "a thin archive, which only names its objects: check their files".into()
        }
        None => "not an ELF or PE file, wheel, crate, zip or tar.gz archive".into(),
    }
}

/// Whether the first bytes are those of a program or library of macOS.
fn is_mach_o(head: &[u8]) -> bool {
    match four_bytes(head, 0) {
        // mach-o/loader.h: MH_MAGIC and MH_MAGIC_64, in either order of bytes.
        Some([0xfe, 0xed, 0xfa, 0xce | 0xcf] | [0xce | 0xcf, 0xfa, 0xed, 0xfe]) => true,
        // mach-o/fat.h: FAT_MAGIC and the number of machines. Java class files have the same magic
        // number, followed by their version, 45 or more.
        Some([0xca, 0xfe, 0xba, 0xbe | 0xbf]) => {
            four_bytes(head, 4).is_some_and(|count| u32::from_be_bytes(count) < 45)
        }
        _ => false,
    }
}

fn four_bytes(head: &[u8], offset: usize) -> Option<[u8; 4]> {
    head.get(offset..offset + 4)?.try_into().ok()
}
