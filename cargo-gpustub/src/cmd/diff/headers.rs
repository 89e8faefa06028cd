//! Comparison of declarations in the headers of two versions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gpustub_cdecl::{Clang, Headers, Version, same};
use gpustub_core::library::Library;
use gpustub_report::error::{Error, Result};
use gpustub_workspace::environment::variable;

use super::{Change, Side};
use crate::cli::DiffHeaders;

/// Result of the comparison.
pub struct Compared {
    /// Number of functions that both libraries have and both headers declare.
    pub functions: usize,
    /// Differences of these functions, by name.
    pub reasons: BTreeMap<String, String>,
    /// Functions that only one of the headers declares, and macros with another expansion.
    pub changes: Vec<Change>,
    /// Functions that both libraries have and neither of the headers declares.
    pub undeclared: Vec<String>,
}

/// Compares the declarations of functions that both libraries have. `None`: no headers are given.
pub fn compare(options: &DiffHeaders, old: &Side, new: &Side) -> Result<Option<Compared>> {
    if options.old_headers.is_empty() {
        return Ok(None);
    }
    let known = match (library(old), library(new)) {
        (Some(a), Some(b)) if a.id != b.id => None,
        (a, b) => a
            .or(b)
            .and_then(|library| Headers::for_library(&library.id)),
    };
    let names = |side: &Side| -> BTreeSet<String> {
        let names = side.functions.iter();
        names.map(|symbol| symbol.name.clone()).collect()
    };
    let names = [names(old), names(new)];
    let is_theirs = |name: &str| names.iter().any(|names| names.contains(name));
    let read = |paths| read(paths, options, known, &is_theirs);
    let versions = [read(&options.old_headers)?, read(&options.new_headers)?];
    let both = names[0].intersection(&names[1]);
    Ok(Some(compare_declarations(&versions, both)))
}

/// The shipped library that a side is a version of.
fn library(side: &Side) -> Option<&'static Library> {
    let mut all = Library::builtin_ids().filter_map(Library::builtin);
    match (side.shipped, &side.soname) {
        (Some((id, ..)), _) => Library::builtin(id),
        (None, Some(soname)) => all.find(|library| {
            let mut names = library.load_names.iter().flat_map(|(_, names)| names);
            names.any(|load| load.name == *soname)
        }),
        (None, None) => None,
    }
}

/// Reads the headers of one side.
fn read(
    paths: &[PathBuf],
    options: &DiffHeaders,
    known: Option<&Headers>,
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Version> {
    let program = variable("CLANG").unwrap_or_else(|| "clang".into());
    let mut clang = Clang::new(program);
    let mut named = options.include.clone();
    let mut directories: Vec<&Path> = Vec::new();
    for path in paths {
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
    for argument in &options.clang_arg {
        clang = clang.argument(argument);
    }
    let shown: Vec<_> = paths.iter().map(|p| format!("`{}`", p.display())).collect();
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
    let mut headers = match (named.as_slice(), known) {
        ([], Some(known)) => known.clone(),
        ([], None) => {
            let message = format!("gpustub does not know which of the headers in {shown} to read");
            return Err(Error::new(message).help("name them: `--include acme.h`"));
        }
        _ => Headers::including(named),
    };
    // The macros for reading a library's headers also apply to headers named by options.
    if let Some(known) = known {
        headers.defines.clone_from(&known.defines);
    }
    headers.read(&clang, wanted).map_err(|e| failed(e, &shown))
}

fn failed(error: gpustub_cdecl::Error, shown: &str) -> Error {
    use gpustub_cdecl::Error as Why;
    match error {
        Why::Missing { program, cause } => {
            Error::new(format!("cannot run `{program}`: {cause}")).help(
                "headers are read by clang: Debian, Ubuntu: `apt install clang`; Fedora: `dnf install \
                 clang`; Alpine: `apk add clang`; or name one in `CLANG`. Without `--old-headers` and \
                 `--new-headers` only symbols are compared, which needs no clang",
            )
        }
        Why::Refused { program, message } => {
            let message = harmless(&message);
            Error::new(format!("`{program}` cannot read the headers in {shown}\n{message}")).help(
                "headers are read as C, without compiler options: add the directories of other \
                 headers that they include with another `--old-headers` or `--new-headers`, macros with \
                 `--clang-arg=-DNAME`",
            )
        }
        Why::Nothing => {
            let message = format!("the headers in {shown} declare none of the functions");
            Error::new(message).help(
                "the headers belong to another library, declare functions for C++ only, or other headers \
                 must be named with `--include`",
            )
        }
        other => Error::new(format!("the headers in {shown}: {other}")),
    }
}

/// Removes control characters from clang's message, which quotes the header.
fn harmless(message: &str) -> String {
    let is_shown = |c: &char| !c.is_control() || *c == '\n' || *c == '\t';
    message.trim_end().chars().filter(is_shown).collect()
}

/// Compares the declarations of two versions.
fn compare_declarations<'a>(
    versions: &[Version; 2],
    both: impl Iterator<Item = &'a String>,
) -> Compared {
    let [old, new] = versions;
    let mut found = Compared {
        functions: 0,
        reasons: BTreeMap::new(),
        changes: Vec::new(),
        undeclared: Vec::new(),
    };
    for (name, was) in sources(old) {
        let Some(is) = meaning(new, name) else {
            continue;
        };
        if was != is {
            let declared = old.functions.get(was).zip(new.functions.get(is));
            let reason = declared.and_then(|(a, b)| same(a, b).err());
            let [name, was, is] = [name, was, is].map(str::to_owned);
            found.changes.push(Change::Macro(name, was, is, reason));
        }
    }
    for name in both {
        match (old.functions.get(name), new.functions.get(name)) {
            (Some(was), Some(is)) => {
                found.functions += 1;
                if let Err(reason) = same(was, is) {
                    found.reasons.insert(name.clone(), reason);
                }
            }
            (None, None) => found.undeclared.push(name.clone()),
            (was, _) => {
                // Declared under the macro's other name: reported above.
                let is_moved = |v: &Version| v.plain.contains_key(name);
                if !is_moved(old) && !is_moved(new) {
                    let change = Change::Declared(name.clone(), was.is_some());
                    found.changes.push(change);
                }
            }
        }
    }
    found
}

/// Pairs of a name in sources and the function that it is bound to.
fn sources(version: &Version) -> impl Iterator<Item = (&str, &str)> {
    let macros = version.plain.iter().map(|(a, b)| (a.as_str(), b.as_str()));
    let own = version.functions.keys().map(String::as_str);
    let own = own.filter(|name| !version.plain.contains_key(*name));
    macros.chain(own.map(|name| (name, name)))
}

/// The function that a name in sources is bound to.
fn meaning<'a>(version: &'a Version, name: &'a str) -> Option<&'a str> {
    match version.plain.get(name) {
        Some(other) => Some(other),
        None => version.functions.contains_key(name).then_some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_removes_control_characters() {
        let message = "a.h:1:2: error: \x1b[31mred\u{9b}2J\n\t^\r\n";
        assert_eq!(harmless(message), "a.h:1:2: error: [31mred2J\n\t^");
    }

    #[test]
    fn library_is_found_by_soname() {
        let side = |soname: &str| Side {
            name: "x".into(),
            functions: Vec::new(),
            soname: Some(soname.into()),
            shipped: None,
        };
        let id = |soname| library(&side(soname)).map(|library| library.id.as_str());
        assert_eq!(id("libcudart.so.12"), Some("cudart"));
        assert_eq!(id("libacme.so.3"), None);
    }
}
