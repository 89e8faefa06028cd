//! Runs of a compiler, as its log has them.

use std::borrow::Cow;
use std::path::Path;

/// Run of nvcc or clang.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Call {
    /// Compilation of the source with this file name.
    Compile(String),
    /// Device link, by the package whose build script ran it.
    Link(String),
    /// Device link of the module of this name.
    Module(String),
    /// Arguments of any other run.
    Other(String),
}

/// Package of a directory below its OUT_DIR.
fn package_of(directory: &Path, depth: usize) -> String {
    let name = directory
        .components()
        .nth_back(depth)
        .map_or(Cow::Borrowed(""), |name| name.as_os_str().to_string_lossy());
    let (package, _) = name.rsplit_once('-').unwrap_or((&name, ""));
    package.to_owned()
}

impl Call {
    /// Reads a line of the log: the directory, and the arguments.
    pub(super) fn parse(line: &str) -> Self {
        let (directory, arguments) = line.split_once('\t').unwrap_or((line, ""));
        let directory = Path::new(directory);
        let words: Vec<&str> = arguments.split(' ').collect();
        let is_module = ["-fatbin", "-cubin", "-ptx", "--cuda-device-only"]
            .iter()
            .any(|option| words.contains(option));
        if words.contains(&"-dlink") {
            if is_module {
                // …/out/gpustub/device-link/modules/<name>
                let name = directory.file_name().unwrap_or_default();
                return Self::Module(name.to_string_lossy().into_owned());
            }
            // …/build/<package>-<hash>/out/gpustub/device-link/link
            return Self::Link(package_of(directory, 4));
        }
        if words.contains(&"--hip-link") && words.contains(&"module.hipfb") {
            // …/out/gpustub/device-link/modules/<name>/hip
            let name = directory.parent().and_then(Path::file_name);
            let name = name.unwrap_or_default();
            return Self::Module(name.to_string_lossy().into_owned());
        }
        if words.contains(&"--hip-link") {
            // …/build/<package>-<hash>/out/gpustub/device-link/link/hip
            return Self::Link(package_of(directory, 5));
        }
        let is_source = |word: &&&str| word.ends_with(".cu") || word.ends_with(".hip");
        match words.iter().find(is_source) {
            Some(source) if words.contains(&"-c") || is_module => {
                let (_, name) = source.rsplit_once('/').unwrap_or(("", source));
                Self::Compile(name.to_owned())
            }
            _ => Self::Other(arguments.to_owned()),
        }
    }
}
