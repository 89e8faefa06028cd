//! The ABI of MSVC (x86-64): clang in the place of cl, which runs on Windows only, lld as the linker, and libraries that
//! stand for those of Microsoft's SDK.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use gpustub_core::target::Target;
use gpustub_image::PeImage;
use tempfile::TempDir;

use crate::command::succeed;
use crate::scratch::scratch;
use crate::wine::system_directory;
use crate::{Failure, Result, repository};

/// Triple of the target.
pub const TRIPLE: &str = "x86_64-pc-windows-msvc";

/// clang, with GCC's options.
pub const CLANG: &str = "clang-19";

/// Import libraries, their DLLs, and the beginnings of the names that they have: ntdll.dll has functions of the C run time,
/// too.
const IMPORTS: [(&str, &str, &[&str]); 7] = [
    ("kernel32", "kernel32", &[""]),
    ("ntdll", "ntdll", &["Nt", "Rtl"]),
    ("userenv", "userenv", &[""]),
    ("ws2_32", "ws2_32", &[""]),
    ("dbghelp", "dbghelp", &[""]),
    ("vcruntime", "vcruntime140", &["_", "mem"]),
    ("ucrt", "ucrtbase", &[""]),
];

/// Functions that two DLLs have, of which vcruntime140.dll has the right ones, or that are in no import library.
const NOT_IN_UCRT: [&str; 7] = [
    "__C_specific_handler",
    "memchr",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "_fltused",
];

/// The target of the programs.
pub fn target() -> Target {
    Target::from_triple(TRIPLE).expect("a triple of rustc")
}

/// clang, with cl's options.
pub fn clang_cl() -> PathBuf {
    repository().join("tests/programs/windows/clang-cl")
}

/// Flags with which [`clang_cl`] finds headers, and needs no more of a C run time than mingw-w64 has.
pub fn flags() -> Vec<String> {
    let headers = directory();
    vec!["/GS-".to_owned(), format!("/imsvc{}", headers.display())]
}

/// Stand-ins for Microsoft's headers and C run time.
pub fn directory() -> PathBuf {
    repository().join("tests/programs/windows/msvc")
}

/// Variables with which cargo builds programs, and build scripts compile.
pub fn variables() -> Result<Vec<(&'static str, OsString)>> {
    let mut rustflags = OsString::from("-Lnative=");
    rustflags.push(libraries()?);
    rustflags.push(" -Clink-arg=/defaultlib:ucrt -Clink-arg=/defaultlib:vcruntime");
    let mut cflags = OsString::from("/imsvc");
    cflags.push(directory());
    Ok(vec![
        (
            "CARGO_TARGET_X86_64_PC_WINDOWS_MSVC_LINKER",
            "lld-link-19".into(),
        ),
        ("CARGO_TARGET_X86_64_PC_WINDOWS_MSVC_RUSTFLAGS", rustflags),
        ("CC_x86_64_pc_windows_msvc", clang_cl().into()),
        ("CFLAGS_x86_64_pc_windows_msvc", cflags),
    ])
}

/// The directory of import libraries and the C run time.
pub fn libraries() -> Result<PathBuf> {
    static LIBRARIES: OnceLock<Result<TempDir, String>> = OnceLock::new();
    let libraries = LIBRARIES.get_or_init(|| make().map_err(|failure: Failure| failure.0));
    let libraries = libraries.as_ref().map_err(|message| message.as_str())?;
    Ok(libraries.path().to_owned())
}

fn make() -> Result<TempDir> {
    let libraries = scratch()?;
    let system = system_directory()?;
    for (name, dll, prefixes) in IMPORTS {
        import_library(libraries.path(), name, &system.join(dll), prefixes)?;
    }
    let object = libraries.path().join("crt.obj");
    let mut clang = Command::new(CLANG);
    clang.args(["-O1", "-c", "-o"]).arg(&object);
    clang.arg(format!("--target={TRIPLE}"));
    succeed(clang.arg(directory().join("crt.c")))?;
    for name in ["msvcrt", "legacy_stdio_definitions"] {
        let mut archiver = Command::new("llvm-lib-19");
        let output = libraries.path().join(format!("{name}.lib"));
        archiver.arg(format!("/out:{}", output.display()));
        archiver.args((name == "msvcrt").then_some(&object));
        succeed(archiver.arg("/llvmlibempty"))?;
    }
    Ok(libraries)
}

/// Writes the import library of a DLL.
fn import_library(directory: &Path, name: &str, dll: &Path, prefixes: &[&str]) -> Result<()> {
    let file = dll.with_extension("dll");
    let bytes = fs::read(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let image = PeImage::parse(&bytes)?;
    let names = image.exports.iter().filter_map(|export| export.name);
    let dll_name = file.file_name().unwrap_or_default().display();
    let mut definition = format!("LIBRARY {dll_name}\nEXPORTS\n");
    for function in names {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let is_other = name != "vcruntime" && NOT_IN_UCRT.contains(&function);
        let has_prefix = prefixes.iter().any(|prefix| function.starts_with(prefix));
        if has_prefix && !is_other && function.bytes().all(is_word) {
            definition += &format!("{function}\n");
        }
    }
    let text = directory.join(format!("{name}.def"));
    fs::write(&text, definition)?;
    let mut dlltool = Command::new("llvm-dlltool-19");
    dlltool.args(["-m", "i386:x86-64", "-d"]).arg(text);
    dlltool.arg("-l").arg(directory.join(format!("{name}.lib")));
    succeed(&mut dlltool)?;
    Ok(())
}
