//! Places that load GPU libraries by name, which no edit of DT_NEEDED changes: strings of images, and
//! Python code.

use std::ops::Range;

use gpustub_check::gpu_file::{gpu_file, names_gpu_file};
use gpustub_check::{Package, PackageImage};
use gpustub_core::diag::{Diagnostic, HARD_CODED_LOAD_NAME, Origin, PYTHON_LOADER, listing};
use memchr::memmem;

use crate::libraries::KnownLibraries;
use crate::package_plan::PackagePlan;

/// Largest text file that is read.
pub const MAX_TEXT: u64 = 1 << 20;

/// Calls that load the library of an argument.
const CALLS: [&str; 5] = ["CDLL(", "LoadLibrary(", "PyDLL(", "WinDLL(", "dlopen("];

/// Call of `ctypes.util.find_library`.
const FIND: &str = "find_library(";

/// Package of NVIDIA's wheels.
const NVIDIA: &str = "nvidia";

/// Whether a file of a package may load libraries: Python code, or a list that it reads.
pub fn is_text(path: &str) -> bool {
    path.ends_with(".py") || path.ends_with(".json")
}

/// Reports GPU libraries that edited images open by name.
pub fn opened_by_images(
    package: &Package,
    plan: &PackagePlan,
    known: &KnownLibraries,
) -> Vec<Diagnostic> {
    package
        .all_images()
        .filter(|image| {
            plan.images
                .iter()
                .any(|edited| edited.path == image.member.path)
        })
        .filter_map(|image| opened_by(&image, known))
        .collect()
}

fn opened_by(image: &PackageImage<'_>, known: &KnownLibraries) -> Option<Diagnostic> {
    let names = known.opened_names(image);
    if names.is_empty() {
        return None;
    }
    let message = format!(
        "`{}` may open {} by name",
        image.member.file_name(),
        listing(&names)
    );
    Some(
        Diagnostic::warning(&HARD_CODED_LOAD_NAME, message)
            .with_location(image.location())
            .help("check that the code handles a missing library"),
    )
}

/// Reports the first part of a text file that loads a GPU library, and counts the others. A part is a line in
/// Python, and a string in JSON. `location` is that of the file.
pub fn loaded_by_text(path: &str, location: Origin, text: &str) -> Option<Diagnostic> {
    let is_list = path.ends_with(".json");
    if !is_list && !has_loader(text) {
        return None;
    }
    let (message, separator, is_loader): (&str, char, fn(&str) -> bool) = if is_list {
        ("lists a GPU library to load", '"', |part| {
            gpu_file(part).is_some()
        })
    } else {
        ("loads a GPU library", '\n', loads_gpu_library)
    };
    let remedy = if is_list {
        "where the code that reads the list fails without it, remove the entry"
    } else {
        "let the code continue without it"
    };
    let mut loaders = parts(text, separator).filter(|span| is_loader(&text[span.clone()]));
    let span = loaders.next()?;
    let code = shortened(&text[span.clone()]);
    let more = match loaders.count() {
        0 => String::new(),
        count => format!(", and {count} more"),
    };
    Some(
        Diagnostic::warning(&PYTHON_LOADER, format!("{message}: `{code}`{more}"))
            .with_location(Origin { span, ..location })
            .help(format!(
                "the repaired images need no such library; {remedy}"
            )),
    )
}

/// Byte ranges of the parts of a text, without spaces around them.
fn parts(text: &str, separator: char) -> impl Iterator<Item = Range<usize>> {
    let mut next = 0;
    text.split(separator).map(move |part| {
        let start = next + part.len() - part.trim_start().len();
        next += part.len() + separator.len_utf8();
        start..start + part.trim().len()
    })
}

/// Whether Python code has one of the words without which no line [`loads_gpu_library`]: most modules of a wheel have none.
fn has_loader(code: &str) -> bool {
    let mut words = CALLS.iter().chain(&[FIND, NVIDIA]);
    words.any(|word| memmem::find(code.as_bytes(), word.as_bytes()).is_some())
}

/// Whether a line of Python calls a loader with the name of a GPU library, or imports a module of NVIDIA's wheels.
fn loads_gpu_library(line: &str) -> bool {
    const IMPORTS: [&str; 4] = [
        "import nvidia",
        "from nvidia",
        "import_module(\"nvidia",
        "import_module('nvidia",
    ];
    if line.starts_with('#') {
        return false;
    }
    finds_gpu_library(line)
        || (CALLS.iter().any(|call| line.contains(call))
            && (names_gpu_file(line) || names_dll(line)))
        || IMPORTS.iter().any(|import| has_import(line, import))
}

/// Whether a line calls `find_library`, which takes the name as a linker does, with that of a GPU library.
fn finds_gpu_library(line: &str) -> bool {
    const QUOTES: [char; 2] = ['"', '\''];
    line.split(FIND).skip(1).any(|call| {
        let name = call.trim_start().strip_prefix(QUOTES);
        let name = name.and_then(|rest| rest.split(QUOTES).next());
        name.is_some_and(|name| {
            let files = [format!("lib{name}.so"), format!("{name}.dll")];
            files.iter().any(|file| gpu_file(file).is_some())
        })
    })
}

/// Whether a word of a line, without directories, is the name of a GPU library of Windows.
fn names_dll(line: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    line.split(|c: char| !is_part(c))
        .filter_map(gpu_file)
        .any(|file| file.system == "windows")
}

/// Whether a line has the import of exactly this package: not of `nvidia_ml`.
fn has_import(line: &str, import: &str) -> bool {
    let Some((_, rest)) = line.split_once(import) else {
        return false;
    };
    !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-')
        && (line.starts_with(import) || import.contains('('))
}

fn shortened(line: &str) -> String {
    const MAX_CHARS: usize = 80;
    let mut text: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_CHARS)
        .collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loaded(file: &str, text: &str) -> Option<Diagnostic> {
        loaded_by_text(file, Origin::new(file, 0..0), text)
    }

    #[test]
    fn lines_that_load_gpu_libraries_are_found() {
        for (file, line, expected) in [
            ("a.py", "ctypes.CDLL('libcudart.so.12')", true),
            (
                "a.py",
                "  lib = ctypes.cdll.LoadLibrary(\"libcuda.so\")",
                true,
            ),
            ("a.py", "import nvidia.cublas", true),
            ("a.py", "from nvidia import cudnn", true),
            (
                "a.py",
                "m = importlib.import_module(\"nvidia.cudnn\")",
                true,
            ),
            // pennylane-lightning-gpu 0.45.0.
            (
                "a.py",
                "    if find_library(\"custatevec\") is None and not imp_util.find_spec(\"cuquantum\"):",
                true,
            ),
            (
                "a.py",
                "path = ctypes.util.find_library('cudart64_12')",
                true,
            ),
            ("a.py", "find_library('m'), 'custatevec'", false),
            ("a.py", "import nvidia_ml", false),
            ("a.py", "# ctypes.CDLL('libcudart.so.12')", false),
            ("a.py", "print('libcudart.so.12')", false),
            ("a.py", "ctypes.CDLL('libm.so.6')", false),
            (
                "a.py",
                r"ctypes.WinDLL(root + r'\bin\cudart64_12.dll')",
                true,
            ),
            ("a.py", "ctypes.WinDLL('kernel32.dll')", false),
            ("a.json", "  \"library\": \"libcudart.so.12\"", true),
            ("a.json", "  \"text\": \"no libcudart.so.12 here\"", false),
        ] {
            assert_eq!(loaded(file, line).is_some(), expected, "{line}");
        }
        let code = "x = 1\n  CDLL('libcuda.so.1')\nCDLL('libcudart.so')\n";
        let diagnostic = loaded("a.py", code).unwrap();
        assert_eq!(diagnostic.origin.unwrap().span, 8..28);
        assert_eq!(
            diagnostic.message,
            "loads a GPU library: `CDLL('libcuda.so.1')`, and 1 more"
        );
        let list = r#"{"cuda": "12.x", "files": ["libcutensor.so.2", "libcutensorMg.so.2"]}"#;
        let diagnostic = loaded("a.json", list).unwrap();
        assert_eq!(
            diagnostic.message,
            "lists a GPU library to load: `libcutensor.so.2`, and 1 more"
        );
        assert_eq!(&list[diagnostic.origin.unwrap().span], "libcutensor.so.2");
    }
}
