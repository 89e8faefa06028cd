//! Reads C headers that the command line names.

use std::path::{Path, PathBuf};

use gpustub_cdecl::{Clang, Headers, Version};
use gpustub_workspace::environment::variable;
use gpustub_workspace::error::{Error, Result};

/// Options that name headers.
pub struct Request<'a> {
    /// Headers, or directories to include from.
    pub paths: &'a [PathBuf],
    /// Headers to include from the directories.
    pub include: &'a [String],
    /// Arguments for clang.
    pub clang_arg: &'a [String],
    /// Headers of the library, if gpustub knows it.
    pub known: Option<&'a Headers>,
    /// The option of `paths`, in messages.
    pub option: &'static str,
    /// Result without headers, in messages.
    pub without: &'static str,
}

impl Request<'_> {
    /// Reads the declarations of the functions that are `wanted`.
    pub fn read(&self, wanted: &dyn Fn(&str) -> bool) -> Result<Version> {
        let program = variable("CLANG").unwrap_or_else(|| "clang".into());
        let mut clang = Clang::new(program);
        let mut named = self.include.to_vec();
        let mut directories: Vec<&Path> = Vec::new();
        for path in self.paths {
            let data = std::fs::metadata(path).map_err(|e| Error::io("read", path, &e))?;
            let directory = match path.parent().filter(|_| !data.is_dir()) {
                Some(directory) => {
                    let name = path.file_name().unwrap_or_default();
                    named.push(name.to_string_lossy().into_owned());
                    if directory == Path::new("") {
                        Path::new(".")
                    } else {
                        directory
                    }
                }
                None => path,
            };
            directories.push(directory);
            clang = clang.directory(directory);
        }
        for argument in self.clang_arg {
            clang = clang.argument(argument);
        }
        let shown: Vec<_> = self
            .paths
            .iter()
            .map(|p| format!("`{}`", p.display()))
            .collect();
        let shown = shown.join(", ");
        for name in &named {
            if name.contains(['>', '\n']) {
                return Err(Error::new(format!("`{name}` cannot be included")));
            }
            // clang would also search its own directories.
            if !directories
                .iter()
                .any(|directory| directory.join(name).is_file())
            {
                let message = format!("`{name}` is not in {shown}");
                let help = "`--include` accepts a name as in `#include`, such as `hip/hiprtc.h`";
                return Err(Error::new(message).help(help));
            }
        }
        let mut headers = match (named.as_slice(), self.known) {
            ([], Some(known)) => known.clone(),
            ([], None) => {
                let message =
                    format!("gpustub does not know which of the headers in {shown} to read");
                return Err(Error::new(message).help("name them: `--include acme.h`"));
            }
            _ => Headers::including(named),
        };
        // The macros and rules of a library's headers also apply to headers named by options.
        if let Some(known) = self.known {
            headers.defines.clone_from(&known.defines);
            headers.rules.clone_from(&known.rules);
        }
        headers
            .read(&clang, wanted)
            .map_err(|e| self.failed(e, &shown))
    }

    fn failed(&self, error: gpustub_cdecl::Error, shown: &str) -> Error {
        use gpustub_cdecl::Error as Why;
        match error {
            Why::Missing { program, cause } => {
                Error::new(format!("cannot run `{program}`: {cause}")).help(format!(
                    "headers are read by clang: Debian, Ubuntu: `apt install clang`; Fedora: `dnf install \
                     clang`; Alpine: `apk add clang`; or name one in `CLANG`. Without {} {}, which \
                     needs no clang",
                    self.option, self.without
                ))
            }
            Why::Refused { program, message } => {
                let message = harmless(&message);
                let packages = missing(&message).and_then(|header| {
                    let packages = gpustub_cdecl::packages_of(header)?;
                    Some(format!(
                        "`{header}` is in the package {packages}: add its directory with another {}",
                        self.option
                    ))
                });
                let help = || {
                    format!(
                        "headers are read as C, without compiler options: add the directories of other \
                         headers that they include with another {}, macros with `--clang-arg=-DNAME`",
                        self.option
                    )
                };
                Error::new(format!("`{program}` cannot read the headers in {shown}\n{message}"))
                    .help(packages.unwrap_or_else(help))
            }
            Why::Nothing => {
                let message = format!("the headers in {shown} declare none of the functions");
                Error::new(message).help(
                    "the headers belong to another library, declare functions for C++ only, or other \
                     headers must be named with `--include`",
                )
            }
            other => Error::new(format!("the headers in {shown}: {other}")),
        }
    }
}

/// Removes control characters from clang's message, which quotes the header.
fn harmless(message: &str) -> String {
    let is_shown = |c: &char| !c.is_control() || *c == '\n' || *c == '\t';
    message.trim_end().chars().filter(is_shown).collect()
}

/// Name of the header that clang does not find:
///
/// ```text
/// include/cuda_fp16.h:4492:10: fatal error: 'nv/target' file not found
/// ```
fn missing(message: &str) -> Option<&str> {
    let (before, _) = message.split_once("' file not found")?;
    Some(before.rsplit_once('\'')?.1)
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
        assert_eq!(missing(message), Some("nv/target"));
        assert_eq!(missing("a.h:1:1: error: unknown type name 'x'"), None);
    }

    #[test]
    fn harmless_removes_control_characters() {
        let message = "a.h:1:2: error: \x1b[31mred\u{9b}2J\n\t^\r\n";
        assert_eq!(harmless(message), "a.h:1:2: error: [31mred2J\n\t^");
    }
}
