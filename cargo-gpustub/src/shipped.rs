//! Lookup of shipped library manifests by name.

use std::fmt::Write;

use gpustub_core::diag::{Diagnostic, Level, MISSING_HEADER_VERSION, UNKNOWN_LIBRARY};
use gpustub_core::library::Library;
use gpustub_core::manifest::{Manifest, Stub};
use gpustub_core::suggest::nearest;
use gpustub_core::target::Target;
use gpustub_workspace::error::{Error, Result};

use crate::cli::FamilyVersion;

/// The libraries of these names, and an error for each unknown name.
pub fn look_up(names: &[String]) -> (Vec<&'static Library>, Vec<Diagnostic>) {
    let mut libraries = Vec::new();
    let mut unknown = Vec::new();
    for name in names {
        if let Some(library) = Library::builtin(name) {
            libraries.push(library);
            continue;
        }
        let message = format!("unknown library `{name}`");
        let known: Vec<&str> = Library::builtin_ids().collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "known libraries are {}; for another one run `cargo gpustub add {name} --from \
                 path/to/the/library`",
                known.join(", ")
            ),
        };
        unknown.push(Diagnostic::error(&UNKNOWN_LIBRARY, message).help(help));
    }
    (libraries, unknown)
}

/// The shipped library with this load name.
pub fn with_soname(soname: &str) -> Option<&'static Library> {
    let mut all = Library::builtin_ids().filter_map(Library::builtin);
    all.find(|library| {
        let mut names = library.load_names.iter().flat_map(|(_, names)| names);
        names.any(|load| load.name == *soname)
    })
}

/// The shipped libraries that have this load name on an operating system.
pub fn with_load_name(os: &str, file: &str) -> Vec<&'static Library> {
    let all = Library::builtin_ids().filter_map(Library::builtin);
    all.filter(|library| !library.load_names_like(os, file).is_empty())
        .collect()
}

/// Major of the headers of a program that needs these files, if one of them is the library and determines it.
pub fn header_major<'a>(
    library: &Library,
    os: &str,
    files: impl IntoIterator<Item = &'a str>,
) -> Option<u32> {
    let names = files
        .into_iter()
        .map(|file| library.load_names_like(os, file));
    let mut majors = names.flatten().map(|name| name.major);
    let first = majors.next()??;
    majors.all(|other| other == Some(first)).then_some(first)
}

/// Family whose headers a library is compiled with, unless its majors are its own.
pub fn toolkit_family(library: &Library) -> Option<&str> {
    let is_of_toolkit = !library.independent_major && !library.family.is_empty();
    is_of_toolkit.then_some(library.family.as_str())
}

/// Whether functions of the library have several ABI variants.
pub fn depends_on_headers(library: &Library) -> bool {
    let mut names = library.abi.names();
    names.any(|name| library.abi.depends_on_headers(name))
}

/// Header version of each library by the options: the last one for the library, else for its family,
/// else without a name. Beside libraries of toolkits, one without a name is not for the others, whose
/// majors are their own. An option for other libraries only is an error.
pub fn header_versions<'a>(
    libraries: &[&'static Library],
    options: &'a [FamilyVersion],
) -> Result<Vec<Option<&'a str>>> {
    for family in options.iter().filter_map(|one| one.family.as_deref()) {
        let mut libraries = libraries.iter();
        if !libraries.any(|one| one.id == family || toolkit_family(one) == Some(family)) {
            let message = format!(
                "`--header-version` is given for `{family}`, but no library of it is named"
            );
            return Err(Error::new(message).help("remove the option, or name a library"));
        }
    }
    let last = |wanted: Option<&str>| {
        let mut all = options.iter().rev();
        let found = all.find(|one| one.family.as_deref() == wanted);
        found.map(|one| one.version.as_str())
    };
    let for_toolkits = libraries.iter().any(|one| toolkit_family(one).is_some());
    let versions = libraries.iter().map(|library| {
        let family = toolkit_family(library);
        // The library `cuda` has the name of its family.
        let own = last(Some(library.id.as_str()));
        let own = own.or_else(|| family.and_then(|family| last(Some(family))));
        own.or_else(|| last(None).filter(|_| family.is_some() || !for_toolkits))
    });
    Ok(versions.collect())
}

/// `--header-version` options with the newest known major of each of these libraries' toolkits, and of each library
/// that is numbered otherwise.
pub fn header_options(libraries: &[&Library], target: &Target) -> String {
    let mut newest: Vec<(&str, u32)> = Vec::new();
    for library in libraries {
        let name = toolkit_family(library).unwrap_or(&library.id);
        let major = library.majors(&target.os).first().copied();
        if !newest.iter().any(|(other, _)| *other == name) {
            newest.extend(major.map(|major| (name, major)));
        }
    }
    // An option without a name is for toolkits.
    let of_toolkit = libraries.first().and_then(|one| toolkit_family(one));
    let options = newest.iter().map(|(name, major)| match newest.len() {
        1 if of_toolkit.is_some() => format!("--header-version {major}"),
        _ => format!("--header-version {name}={major}"),
    });
    options.collect::<Vec<_>>().join(" ")
}

/// Prepares diagnostics of libraries that the command line names: their places are in a text that no
/// file has, and options set the header version. Adds warnings about newer headers. `command` says what to do with these
/// options.
pub fn on_command_line(
    found: &mut Vec<Diagnostic>,
    manifest: &Manifest,
    target: &Target,
    command: impl Fn(&str) -> String,
) {
    let is_missing = |one: &Diagnostic| one.code.id == MISSING_HEADER_VERSION.id;
    let spans: Vec<_> = found.iter().filter(|one| is_missing(one)).collect();
    let stubs = manifest.stubs.iter().filter(|stub| {
        let mut origins = spans.iter().filter_map(|one| one.origin.as_ref());
        origins.any(|origin| origin.span == stub.id.span)
    });
    let libraries: Vec<&Library> = stubs
        .filter_map(|stub| Library::builtin(&stub.id.value))
        .collect();
    let options = header_options(&libraries, target);
    for diagnostic in found.iter_mut() {
        if is_missing(diagnostic) {
            diagnostic.help = Some(format!(
                "{}, with the version of the headers or bindings that the program is compiled \
                 against; `none` refuses the functions that depend on it",
                command(&options)
            ));
        }
        diagnostic.origin = None;
    }
    found.extend(manifest.stubs.iter().filter_map(newer_headers));
}

/// A warning if headers are newer than every release that gpustub knows: `[policy]` decides about them in
/// `check`.
pub fn newer_headers(stub: &Stub) -> Option<Diagnostic> {
    let mut warning = gpustub_check::newer_headers(stub)?;
    warning.level = Level::Warning;
    Some(warning)
}

/// Manifest of a `GpuStub.toml` with these libraries.
pub fn manifest<'a>(
    libraries: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> (Manifest, Vec<Diagnostic>) {
    Manifest::parse(
        "<command line>",
        &format!("schema = 1\n{}", tables(libraries)),
    )
}

/// Tables of these libraries, with their header versions.
pub fn tables<'a>(libraries: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) -> String {
    let mut text = String::new();
    for (id, header) in libraries {
        let _ = writeln!(text, "[stub.{id}]");
        if let Some(header) = header {
            let _ = writeln!(text, "header-version = \"{header}\"");
        }
    }
    text
}
