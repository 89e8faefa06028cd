//! Reads C headers that the command line names.

use std::path::{Path, PathBuf};

use gpustub_cdecl::{Clang, Declarations, Headers};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::environment::variable;
use gpustub_workspace::error::{Error, Result};

/// Options that name headers.
pub struct HeaderRequest<'a> {
    /// Headers, or directories to include from.
    pub paths: &'a [PathBuf],
    /// Headers to include from the directories.
    pub include: &'a [String],
    /// Arguments for clang.
    pub clang_arg: &'a [String],
    /// Machine of a library for Windows, for which the headers are read. `None`: the headers are read for the host.
    pub windows_machine: Option<&'a str>,
    /// Headers of the library, if gpustub knows it.
    pub known: Option<&'a Headers>,
    /// The option of `paths`, in messages.
    pub option: &'static str,
    /// Result without headers, in messages.
    pub without: &'static str,
}

impl HeaderRequest<'_> {
    /// Reads the declarations of the functions for which `is_selected` holds.
    pub fn read(&self, is_selected: &dyn Fn(&str) -> bool) -> Result<Declarations> {
        let (directories, names) = self.directories_and_names()?;
        let display_paths: Vec<String> = self
            .paths
            .iter()
            .map(|path| format!("`{}`", slashes(path)))
            .collect();
        let display_paths = display_paths.join(", ");
        for name in &names {
            if name.contains(['>', '\n']) {
                return Err(Error::new(format!("`{name}` cannot be included")));
            }
            // clang would also search its own directories.
            if !directories
                .iter()
                .any(|directory| directory.join(name).is_file())
            {
                let message = format!("`{name}` is not in {display_paths}");
                let help = "`--include` accepts a name as in `#include`, such as `hip/hiprtc.h`";
                return Err(Error::new(message).help(help));
            }
        }
        let mut headers = match (names.as_slice(), self.known) {
            ([], Some(known)) => known.clone(),
            ([], None) => {
                let message = format!(
                    "gpustub does not know which of the headers in {display_paths} to read"
                );
                return Err(Error::new(message).help("name them: `--include acme.h`"));
            }
            _ => Headers::including(names),
        };
        // The macros and rules of a library's headers also apply to headers named by options.
        if let Some(known) = self.known {
            headers.defines.clone_from(&known.defines);
            headers.rules.clone_from(&known.rules);
        }
        headers
            .read(&self.clang(&directories), is_selected)
            .map_err(|e| self.failed(e, &display_paths))
    }

    /// The directories to include from, and the names of the headers to include.
    fn directories_and_names(&self) -> Result<(Vec<&Path>, Vec<String>)> {
        let mut names = self.include.to_vec();
        let mut directories: Vec<&Path> = Vec::new();
        for path in self.paths {
            let metadata = std::fs::metadata(path).map_err(|e| Error::io("read", path, &e))?;
            match path.parent().filter(|_| !metadata.is_dir()) {
                Some(parent) => {
                    let name = path.file_name().unwrap_or_default();
                    names.push(name.to_string_lossy().into_owned());
                    directories.push(if parent == Path::new("") {
                        Path::new(".")
                    } else {
                        parent
                    });
                }
                None => directories.push(path),
            }
        }
        Ok((directories, names))
    }

    fn clang(&self, directories: &[&Path]) -> Clang {
        let mut clang = Clang::new(variable("CLANG").unwrap_or_else(|| "clang".into()));
        for directory in directories {
            clang = clang.directory(directory);
        }
        // By this triple clang finds the headers of mingw-w64. An argument of the command line overrides it.
        if let Some(machine) = self.windows_machine {
            clang = clang
                .argument(format!("--target={}", windows_triple(machine)))
                .argument("-fms-extensions");
        }
        for argument in self.clang_arg {
            clang = clang.argument(argument);
        }
        clang
    }

    fn failed(&self, error: gpustub_cdecl::Error, display_paths: &str) -> Error {
        use gpustub_cdecl::Error as CdeclError;
        match error {
            CdeclError::Missing { program, cause } => {
                Error::new(format!("cannot run `{program}`: {cause}")).help(format!(
                    "headers are read by clang: Debian, Ubuntu: `apt install clang`; Fedora: `dnf install \
                     clang`; Alpine: `apk add clang`; or name one in `CLANG`. Without {} {}, which \
                     needs no clang",
                    self.option, self.without
                ))
            }
            CdeclError::Refused { program, message } => {
                let message = without_controls(&message);
                let error = Error::new(format!(
                    "`{program}` cannot read the headers in {display_paths}\n{message}"
                ));
                if let Some(header) = missing_header(&message)
                    && let Some(packages) = gpustub_cdecl::packages_of(header)
                {
                    return error.help(format!(
                        "`{header}` is in the package {packages}: add its directory with another {}",
                        self.option
                    ));
                }
                if let Some(machine) = self.windows_machine {
                    return error.help(format!(
                        "headers are read as C for {}, with the headers of mingw-w64 (Debian, \
                         Ubuntu: `apt install mingw-w64`): add the directories of other headers with another {}, \
                         macros with `--clang-arg=-DNAME`",
                        windows_triple(machine),
                        self.option
                    ));
                }
                error.help(format!(
                    "headers are read as C, without compiler options: add the directories of other \
                     headers that they include with another {}, macros with `--clang-arg=-DNAME`",
                    self.option
                ))
            }
            CdeclError::Nothing => {
                let message =
                    format!("the headers in {display_paths} declare none of the functions");
                Error::new(message).help(
                    "the headers belong to another library, declare functions for C++ only, or other \
                     headers must be named with `--include`",
                )
            }
            error => Error::new(format!("the headers in {display_paths}: {error}")),
        }
    }
}

/// Removes control characters from clang's message, which quotes the header.
fn without_controls(message: &str) -> String {
    message
        .trim_end()
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

/// Name of the header that clang does not find:
///
/// ```text
/// include/cuda_fp16.h:4492:10: fatal error: 'nv/target' file not found
/// ```
fn missing_header(message: &str) -> Option<&str> {
    let (before, _) = message.split_once("' file not found")?;
    Some(before.rsplit_once('\'')?.1)
}

/// Triple of mingw-w64 for a machine, as symbol lists name it.
fn windows_triple(machine: &str) -> String {
    let arch = match machine {
        "x86" => "i686",
        arch => arch,
    };
    format!("{arch}-w64-windows-gnu")
}

/// Headers of the known library that has this soname.
pub fn known(soname: &str) -> Option<&'static Headers> {
    let library = crate::shipped::with_soname(soname)?;
    Headers::for_library(&library.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_headers_are_named() {
        let message = "In file included from <stdin>:1:\na.h:4:10: fatal error: 'nv/target' file not found\n#include";
        assert_eq!(missing_header(message), Some("nv/target"));
        assert_eq!(
            missing_header("a.h:1:1: error: unknown type name 'x'"),
            None
        );
    }

    #[test]
    fn control_characters_are_removed() {
        let message = "a.h:1:2: error: \x1b[31mred\u{9b}2J\n\t^\r\n";
        assert_eq!(without_controls(message), "a.h:1:2: error: [31mred2J\n\t^");
    }
}
