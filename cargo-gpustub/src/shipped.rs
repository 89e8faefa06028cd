//! Lookup of shipped library manifests by name.

use std::collections::BTreeSet;
use std::fmt::Write;

use gpustub_check::gpu_file::{self, GpuFile};
use gpustub_core::diag::{Diagnostic, Level, MISSING_HEADER_VERSION, UNKNOWN_LIBRARY};
use gpustub_core::library::Library;
use gpustub_core::manifest::{Manifest, Stub};
use gpustub_core::suggest::nearest;
use gpustub_core::target::Target;
use gpustub_core::version::Version;
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
        unknown.push(unknown_library(name));
    }
    (libraries, unknown)
}

/// The error for a name that is not an id: it may be a file name, or a library without stubs.
fn unknown_library(name: &str) -> Diagnostic {
    let error = Diagnostic::error(&UNKNOWN_LIBRARY, format!("unknown library `{name}`"));
    if let Some(file) = gpu_file::named_library(name) {
        if let Some(library) = file.library {
            return error.help(format!("did you mean `{}`?", library.id));
        }
        let GpuFile { stem, is_cxx, .. } = file;
        if is_cxx {
            let message = format!("lib{stem} has no stubs: its interface is C++ classes");
            return Diagnostic::error(&UNKNOWN_LIBRARY, message).help("link it as before");
        }
        let id = stem.to_ascii_lowercase();
        let message = format!("lib{stem} has no stubs: gpustub has no list of its functions");
        return Diagnostic::error(&UNKNOWN_LIBRARY, message).help(format!(
            "link it as before, or read its C functions: `cargo gpustub add {id} --from \
             path/to/lib{stem}.so`"
        ));
    }
    let known: Vec<&str> = Library::builtin_ids().collect();
    error.help(match nearest(name, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "known libraries are {}; for another one run `cargo gpustub add {name} --from \
             path/to/the/library`",
            known.join(", ")
        ),
    })
}

/// Difference of a function's ABI from the releases before, as its ABI table has it: `# NAME RELEASE: DIFFERENCE`.
pub fn abi_difference(library: &Library, name: &str, release: Version) -> Option<&'static str> {
    let mut texts = gpustub_manifests::LIBRARIES.iter();
    let text = texts.find(|text| text.id == library.id)?;
    let prefix = format!("# {name} {release}: ");
    text.abi.lines().find_map(|line| line.strip_prefix(&prefix))
}

/// The shipped library with this load name.
pub fn with_soname(soname: &str) -> Option<&'static Library> {
    Library::builtin_ids()
        .filter_map(Library::builtin)
        .find(|library| {
            library
                .load_names
                .iter()
                .flat_map(|(_, names)| names)
                .any(|name| name.name == *soname)
        })
}

/// The shipped libraries that have this load name on an operating system.
pub fn with_load_name(os: &str, file: &str) -> Vec<&'static Library> {
    Library::builtin_ids()
        .filter_map(Library::builtin)
        .filter(|library| !library.load_names_like(os, file).is_empty())
        .collect()
}

/// Major of the headers of a program that needs these files, if one of them is the library and determines it.
pub fn header_major<'a>(
    library: &Library,
    os: &str,
    files: impl IntoIterator<Item = &'a str>,
) -> Option<u32> {
    let mut majors = files
        .into_iter()
        .flat_map(|file| library.load_names_like(os, file))
        .map(|name| name.major);
    let first = majors.next()??;
    majors.all(|major| major == Some(first)).then_some(first)
}

/// Whether functions of the library have several ABI variants.
pub fn depends_on_headers(library: &Library) -> bool {
    library
        .abi
        .names()
        .any(|name| library.abi.depends_on_headers(name))
}

/// Header version of each library by the options: the last one for the library, else for its family,
/// else without a name. Beside libraries of toolkits, one without a name is not for the others, whose
/// majors are their own. An option for other libraries only is an error, and so is one version for two toolkits.
pub fn header_versions<'a>(
    libraries: &[&'static Library],
    options: &'a [FamilyVersion],
) -> Result<Vec<Option<&'a str>>> {
    for name in options.iter().filter_map(|option| option.family.as_deref()) {
        if !libraries
            .iter()
            .any(|library| library.id == name || library.toolkit_family() == Some(name))
        {
            let message =
                format!("`--header-version` is given for `{name}`, but no library of it is named");
            return Err(Error::new(message).help("remove the option, or name a library"));
        }
    }
    let unnamed = last_version(options, None).filter(|version| *version != "none");
    let families: BTreeSet<&str> = libraries
        .iter()
        .filter(|library| last_version(options, Some(&library.id)).is_none())
        .filter_map(|library| library.toolkit_family())
        .filter(|family| last_version(options, Some(family)).is_none())
        .collect();
    if let Some(version) = unnamed
        && families.len() > 1
    {
        let families = Vec::from_iter(families);
        let message = format!(
            "`--header-version {version}` is given for libraries of {}, which have different versions",
            families.join(" and ")
        );
        let options: Vec<String> = (families.iter())
            .map(|family| format!("`--header-version {family}=VERSION`"))
            .collect();
        return Err(Error::new(message).help(format!("give {}", options.join(" and "))));
    }
    let has_toolkit = libraries
        .iter()
        .any(|library| library.toolkit_family().is_some());
    let mut versions = Vec::new();
    for library in libraries {
        let family = library.toolkit_family();
        // The library `cuda` has the name of its family.
        let mut version = last_version(options, Some(&library.id));
        if version.is_none() && family.is_some() {
            version = last_version(options, family);
        }
        if version.is_none() && (family.is_some() || !has_toolkit) {
            version = last_version(options, None);
        }
        let is_version = version.is_some_and(|version| version != "none");
        if is_version && library.abi.headers().is_empty() && library.family.is_empty() {
            let message = format!(
                "`--header-version` is given for `{}`, whose functions do not depend on it",
                library.id
            );
            return Err(Error::new(message).help("remove the option"));
        }
        versions.push(version);
    }
    Ok(versions)
}

/// The last of the options with this name.
fn last_version<'a>(options: &'a [FamilyVersion], name: Option<&str>) -> Option<&'a str> {
    options
        .iter()
        .rev()
        .find(|option| option.family.as_deref() == name)
        .map(|option| option.version.as_str())
}

/// `--header-version` options with the newest known major of each of these libraries' toolkits, and of each library
/// that is numbered otherwise.
pub fn header_options(libraries: &[&Library], target: &Target) -> String {
    let mut newest: Vec<(&str, u32)> = Vec::new();
    for library in libraries {
        let name = library.toolkit_family().unwrap_or(&library.id);
        if let Some(&major) = library.majors(&target.os).first()
            && newest.iter().all(|(earlier, _)| *earlier != name)
        {
            newest.push((name, major));
        }
    }
    // An option without a name is for toolkits.
    let is_of_toolkit = libraries
        .first()
        .is_some_and(|library| library.toolkit_family().is_some());
    if let [(_, major)] = newest.as_slice()
        && is_of_toolkit
    {
        return format!("--header-version {major}");
    }
    let options: Vec<String> = newest
        .iter()
        .map(|(name, major)| format!("--header-version {name}={major}"))
        .collect();
    options.join(" ")
}

/// Prepares diagnostics of libraries that the command line names: their origins are in a text that no
/// file has, and options set the header version. Adds warnings about newer headers. `command` says what to do with these
/// options.
pub fn on_command_line(
    diagnostics: &mut Vec<Diagnostic>,
    manifest: &Manifest,
    target: &Target,
    command: impl Fn(&str) -> String,
) {
    let mut libraries: Vec<&Library> = Vec::new();
    for stub in &manifest.stubs {
        let has_no_version = diagnostics.iter().any(|diagnostic| {
            diagnostic.code.id == MISSING_HEADER_VERSION.id
                && diagnostic
                    .origin
                    .as_ref()
                    .is_some_and(|origin| origin.span == stub.id.span)
        });
        if has_no_version {
            libraries.extend(Library::builtin(&stub.id.value));
        }
    }
    let options = header_options(&libraries, target);
    for diagnostic in diagnostics.iter_mut() {
        if diagnostic.code.id == MISSING_HEADER_VERSION.id {
            diagnostic.help = Some(format!(
                "{}, with the version of the headers or bindings that the program is compiled \
                 against; `none` refuses the functions that depend on it",
                command(&options)
            ));
        }
        diagnostic.origin = None;
    }
    diagnostics.extend(manifest.stubs.iter().filter_map(newer_headers));
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
