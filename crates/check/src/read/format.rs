//! Formats of files.

use gpustub_core::offload::Container;

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
    /// A program or library of Windows or macOS; the reason why it was skipped.
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
    } else {
        foreign(head).map_or(Format::Other, Format::Foreign)
    }
}

/// Reason for skipping a file of another format that is named on the command line.
pub(super) fn why_skipped(head: &[u8]) -> String {
    match Container::of_file(head) {
        Some(container) => format!("{container} by clang, whose device code is not checked"),
        None if head.starts_with(b"!<thin>\n") => {
            "a thin archive, which only names its objects: check their files".into()
        }
        None => "not an ELF file, wheel, crate, zip or tar.gz archive".into(),
    }
}

/// Reason for skipping a file whose first bytes are those of a program or library of another system.
fn foreign(head: &[u8]) -> Option<&'static str> {
    match four_bytes(head, 0)? {
        // IMAGE_DOS_HEADER has the offset of the PE header at 60 (e_lfanew).
        [b'M', b'Z', ..] => {
            let offset = usize::try_from(u32::from_le_bytes(four_bytes(head, 60)?)).ok()?;
            (four_bytes(head, offset)? == *b"PE\0\0")
                .then_some("programs and libraries of Windows are not checked")
        }
        // mach-o/loader.h: MH_MAGIC and MH_MAGIC_64, in either order of bytes.
        [0xfe, 0xed, 0xfa, 0xce | 0xcf] | [0xce | 0xcf, 0xfa, 0xed, 0xfe] => Some(MACOS),
        // mach-o/fat.h: FAT_MAGIC and the number of machines. Java class files have the same magic
        // number, followed by their version, 45 or more.
        [0xca, 0xfe, 0xba, 0xbe | 0xbf] if u32::from_be_bytes(four_bytes(head, 4)?) < 45 => {
            Some(MACOS)
        }
        _ => None,
    }
}

fn four_bytes(head: &[u8], offset: usize) -> Option<[u8; 4]> {
    head.get(offset..offset + 4)?.try_into().ok()
}

const MACOS: &str = "programs and libraries of macOS are not checked";
