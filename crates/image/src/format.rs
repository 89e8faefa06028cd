//! Kinds of files that are not ELF.

use gpustub_core::offload::{CodeKind, ContainerFormat};

use crate::error::Problem;

/// Number of bytes that are scanned for a linker script, whose commands come early.
pub(crate) const HEAD: usize = 4096;

/// Identifies bytes without the ELF magic, as the reason why they are not a library.
pub(crate) fn identify(bytes: &[u8]) -> Problem {
    if bytes.is_empty() {
        return Problem::Empty;
    }
    if bytes.starts_with(b"!<arch>\n") || bytes.starts_with(b"!<thin>\n") {
        return Problem::Archive;
    }
    if bytes.starts_with(b"MZ") {
        return Problem::OtherFormat("a Windows (PE) image");
    }
    // 32 and 64 bits, both byte orders; then universal ("fat") files.
    const MACH_O: [[u8; 4]; 6] = [
        [0xfe, 0xed, 0xfa, 0xce],
        [0xce, 0xfa, 0xed, 0xfe],
        [0xfe, 0xed, 0xfa, 0xcf],
        [0xcf, 0xfa, 0xed, 0xfe],
        [0xca, 0xfe, 0xba, 0xbe],
        [0xca, 0xfe, 0xba, 0xbf],
    ];
    if MACH_O.iter().any(|magic| bytes.starts_with(magic)) {
        return Problem::OtherFormat("a macOS (Mach-O) image");
    }
    if let Some(format) = ContainerFormat::of_file(bytes) {
        return Problem::DeviceCode(format.to_string());
    }
    match CodeKind::of(bytes) {
        CodeKind::Bitcode => return Problem::OtherFormat("LLVM bitcode"),
        kind if kind.is_for_device() => return Problem::DeviceCode(kind.to_string()),
        _ => {}
    }
    if bytes.starts_with(b"@gpustub-symbols") {
        return Problem::SymbolList;
    }
    let head = &bytes[..bytes.len().min(HEAD)];
    linker_script(&String::from_utf8_lossy(head)).unwrap_or(Problem::Unknown)
}

/// Recognises linker scripts as ld does (`GROUP ( libc.so.6 … )`), and finds the first library.
fn linker_script(text: &str) -> Option<Problem> {
    if text.contains('\0') {
        return None;
    }
    let code = without_comments(text);
    let mut words = code
        .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
        .flat_map(|word| word.split_inclusive(['(', ')']))
        .flat_map(|word| match word.strip_suffix(['(', ')']) {
            Some(head) => [head, &word[head.len()..]],
            None => [word, ""],
        })
        .filter(|word| !word.is_empty());
    if !words.any(|word| matches!(word, "INPUT" | "GROUP")) || words.next() != Some("(") {
        return text
            .starts_with("/* GNU ld script")
            .then_some(Problem::LinkerScript(None));
    }
    let files: Vec<&str> = words
        .take_while(|word| *word != ")" && *word != "AS_NEEDED")
        .collect();
    let first = files
        .iter()
        .find(|file| file.contains(".so"))
        .or(files.first());
    Some(Problem::LinkerScript(
        first.map(|file| file.trim_matches('"').to_owned()),
    ))
}

fn without_comments(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, comment)) = rest.split_once("/*") {
        code.push_str(before);
        code.push(' ');
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    code.push_str(rest);
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_the_file_is() {
        let script = |target: &str| Problem::LinkerScript(Some(target.to_owned()));
        for (bytes, problem) in [
            (&b""[..], Problem::Empty),
            (b"!<arch>\n", Problem::Archive),
            (b"!<thin>\n/", Problem::Archive),
            (b"MZ\x90\0", Problem::OtherFormat("a Windows (PE) image")),
            (b"\xcf\xfa\xed\xfe\x07", Problem::OtherFormat("a macOS (Mach-O) image")),
            (b"BC\xc0\xde", Problem::OtherFormat("LLVM bitcode")),
            (b"CCOB\x03\0", Problem::DeviceCode("a compressed offload bundle of clang".into())),
            (b"//\n.version 8.0\n", Problem::DeviceCode("PTX of CUDA".into())),
            (b"@gpustub-symbols 1\n", Problem::SymbolList),
            (b"hello", Problem::Unknown),
            (b"\0\0GROUP ( libx.so )", Problem::Unknown),
            (
                b"/* GNU ld script\n*/\nOUTPUT_FORMAT(elf64-x86-64)\n\
                  GROUP ( /lib/libc.so.6 /usr/lib/libc_nonshared.a  AS_NEEDED ( /lib64/ld.so.2 ) )\n",
                script("/lib/libc.so.6"),
            ),
            (b"INPUT(libncurses.so.6 -ltinfo)\n", script("libncurses.so.6")),
            (b"INPUT ( -ltbb )", script("-ltbb")),
            (b"GROUP(\"libq.so.1\")", script("libq.so.1")),
            (b"/* GNU ld script */", Problem::LinkerScript(None)),
            (b"The GROUP of INPUT files", Problem::Unknown),
            (b"/* unfinished INPUT (", Problem::Unknown),
        ] {
            assert_eq!(identify(bytes), problem, "{}", String::from_utf8_lossy(bytes));
        }
    }
}
