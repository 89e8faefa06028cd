//! Places that load GPU libraries by name, which no edit of DT_NEEDED changes: strings of images, and
//! Python code.

use std::ops::Range;

use gpustub_check::evidence::opened_names;
use gpustub_check::gpu_file::{gpu_file, names_gpu_file};
use gpustub_check::{Image, Package};
use gpustub_core::diag::{Diagnostic, HARD_CODED_LOAD_NAME, Origin, PYTHON_LOADER, listing};

use crate::package_plan::PackagePlan;

/// Largest text file that is read.
pub const MAX_TEXT: u64 = 1 << 20;

/// Whether a file of a package may load libraries: Python code, or a list that it reads.
pub fn is_text(path: &str) -> bool {
    path.ends_with(".py") || path.ends_with(".json")
}

/// Reports GPU libraries that edited images open by name.
pub fn opened_by_images(package: &Package, plan: &PackagePlan) -> Vec<Diagnostic> {
    let is_edited = |image: &Image<'_>| plan.images.iter().any(|one| one.path == image.member.path);
    let images = package.images().filter(is_edited);
    images.filter_map(|image| opened_by(&image)).collect()
}

fn opened_by(image: &Image<'_>) -> Option<Diagnostic> {
    let names = opened_names(image);
    let message = format!(
        "`{}` may open {} by name",
        image.member.file_name(),
        listing(&names)
    );
    (!names.is_empty()).then(|| {
        Diagnostic::warning(&HARD_CODED_LOAD_NAME, message)
            .at(image.location())
            .help("check that the code handles a missing library")
    })
}

/// Reports places of a text file, at this location, that load GPU libraries, at most one for each file: the first one. In Python a
/// place is a line, in JSON a string.
pub fn loaded_by_text(path: &str, location: Origin, text: &str) -> Option<Diagnostic> {
    type Loads = fn(&str) -> bool;
    let (what, separator, loads): (_, _, Loads) = if path.ends_with(".json") {
        ("lists a GPU library to load", '"', |part| {
            gpu_file(part).is_some()
        })
    } else {
        ("loads a GPU library", '\n', loads)
    };
    let mut found = parts(text, separator).filter(|range| loads(&text[range.clone()]));
    let first = found.next()?;
    let others = match found.count() {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    let place = shortened(&text[first.clone()]);
    Some(
        Diagnostic::warning(&PYTHON_LOADER, format!("{what}: `{place}`{others}"))
            .at(Origin {
                span: first,
                ..location
            })
            .help("the repaired images need no such library; let the code continue without it"),
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

/// Whether a line of Python calls a loader with the name of a GPU library, or imports a module of NVIDIA's wheels.
fn loads(line: &str) -> bool {
    if line.starts_with('#') {
        return false;
    }
    let calls = ["CDLL(", "LoadLibrary(", "PyDLL(", "dlopen("]
        .iter()
        .any(|call| line.contains(call));
    let imports = [
        "import nvidia",
        "from nvidia",
        "import_module(\"nvidia",
        "import_module('nvidia",
    ];
    (calls && names_gpu_file(line)) || imports.iter().any(|import| begins(line, import))
}

/// Whether the code has the import of exactly this package: not of `nvidia_ml`.
fn begins(code: &str, import: &str) -> bool {
    let after = code.split_once(import).map(|(_, after)| after);
    let is_whole =
        |after: &str| !after.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
    after.is_some_and(is_whole) && (code.starts_with(import) || import.contains('('))
}

fn shortened(line: &str) -> String {
    const SHOWN: usize = 80;
    let mut text: String = line
        .chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect();
    if text.len() < line.len() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_load_gpu_libraries_are_found() {
        let loaded = |file: &str, text: &str| loaded_by_text(file, Origin::new(file, 0..0), text);
        for (file, line, is_it) in [
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
            ("a.py", "import nvidia_ml", false),
            ("a.py", "# ctypes.CDLL('libcudart.so.12')", false),
            ("a.py", "print('libcudart.so.12')", false),
            ("a.py", "ctypes.CDLL('libm.so.6')", false),
            ("a.json", "  \"library\": \"libcudart.so.12\"", true),
            ("a.json", "  \"text\": \"no libcudart.so.12 here\"", false),
        ] {
            assert_eq!(loaded(file, line).is_some(), is_it, "{line}");
        }
        let code = "x = 1\n  CDLL('libcuda.so.1')\nCDLL('libcudart.so')\n";
        let found = loaded("a.py", code).unwrap();
        assert_eq!(found.origin.unwrap().span, 8..28);
        assert_eq!(
            found.message,
            "loads a GPU library: `CDLL('libcuda.so.1')`, and 1 more"
        );
        let list = r#"{"cuda": "12.x", "files": ["libcutensor.so.2", "libcutensorMg.so.2"]}"#;
        let found = loaded("a.json", list).unwrap();
        assert_eq!(
            found.message,
            "lists a GPU library to load: `libcutensor.so.2`, and 1 more"
        );
        assert_eq!(&list[found.origin.unwrap().span], "libcutensor.so.2");
    }
}
