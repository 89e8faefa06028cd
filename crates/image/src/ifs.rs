//! LLVM's text form of a shared library's interface (`llvm-ifs`), format version 3.

use std::fmt::Write;

use gpustub_core::symbols::{SymbolKind, SymbolList};

/// Formats the list as LLVM's `.ifs` text, which has no version nodes: of several entries of one
/// name it contains the default one, else the last. IFUNCs are functions, as for every caller.
pub fn to_ifs(list: &SymbolList) -> String {
    let mut text = String::from("--- !ifs-v1\nIfsVersion:      3.0\n");
    if let Some(soname) = &list.soname {
        let _ = writeln!(text, "SoName:          {}", scalar(soname));
    }
    if let Some((arch, endianness, bits)) = list.machine.as_deref().and_then(target) {
        let _ = writeln!(
            text,
            "Target:          {{ ObjectFormat: ELF, Arch: {arch}, Endianness: {endianness}, \
             BitWidth: {bits} }}"
        );
    }
    text.push_str("Symbols:\n");
    for versions in list.symbols.chunk_by(|a, b| a.name == b.name) {
        let Some(symbol) = versions.iter().max_by_key(|symbol| !symbol.compat) else {
            continue;
        };
        let _ = write!(text, "  - {{ Name: {}, Type: ", scalar(&symbol.name));
        text.push_str(match symbol.kind {
            SymbolKind::Function | SymbolKind::Ifunc => "Func",
            SymbolKind::NoType => "NoType",
            SymbolKind::Object => "Object",
            SymbolKind::Tls => "TLS",
        });
        if symbol.kind.is_data() {
            let _ = write!(text, ", Size: {}", symbol.size);
        }
        if symbol.weak {
            text.push_str(", Weak: true");
        }
        text.push_str(" }\n");
    }
    text.push_str("...\n");
    text
}

/// Architecture (LLVM's names of ELF machines), byte order, width.
fn target(machine: &str) -> Option<(&'static str, &'static str, u8)> {
    Some(match machine {
        "x86_64" => ("x86_64", "little", 64),
        "x86" => ("386", "little", 32),
        "aarch64" => ("AArch64", "little", 64),
        "arm" => ("ARM", "little", 32),
        "riscv64" => ("RISCV", "little", 64),
        "powerpc64le" => ("PPC64", "little", 64),
        "powerpc64" => ("PPC64", "big", 64),
        "s390x" => ("S390", "big", 64),
        _ => return None,
    })
}

/// Formats a YAML scalar: plain if unambiguous, else quoted.
fn scalar(text: &str) -> String {
    let is_plain = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '+' | '/'));
    if is_plain {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "''"))
}
