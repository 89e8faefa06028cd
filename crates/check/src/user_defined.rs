//! User-defined libraries by file name.

use gpustub_core::library::Library;

use crate::gpu_file::{GpuFile, dll_key, dll_stem, split, split_version, unhashed};

/// The file of a user-defined library, recognized as [`gpu_file`](crate::gpu_file::gpu_file()) recognizes shipped ones: by its load names, also with the
/// hash of a bundling tool, and with a longer version. A library of another version is another one.
pub fn user_defined_file(library: &'static Library, name: &str) -> Option<GpuFile> {
    let names = |system| library.load_names.get(system).into_iter().flatten();
    let file = |system, stem: &str, version: &str, hashed| GpuFile {
        stem: stem.to_owned(),
        role: library.role,
        major: version
            .split(['_', '.'])
            .next()
            .and_then(|number| number.parse().ok()),
        version: version.to_owned(),
        hashed,
        system,
        library: Some(library),
        is_cxx: false,
    };
    if let Some(file_stem) = dll_stem(name) {
        let is_named = |stem: &str| {
            names("windows").any(|load_name| {
                dll_stem(&load_name.name).is_some_and(|known| known.eq_ignore_ascii_case(stem))
            })
        };
        let (file_stem, hashed) = if is_named(file_stem) {
            (file_stem, false)
        } else {
            (unhashed(file_stem).filter(|stem| is_named(stem))?, true)
        };
        let (stem, version) = split_version(file_stem);
        return Some(file("windows", stem, version, hashed));
    }
    // Sonames of plugins may lack the `lib`.
    if names("linux").any(|load_name| load_name.name == name) {
        let (stem, version) = split(name).unwrap_or((name, ""));
        return Some(file("linux", stem, version, false));
    }
    let (stem, version) = split(name)?;
    let is_named = |stem: &str| {
        names("linux").any(|load_name| {
            split(&load_name.name).is_some_and(|(known_stem, known_version)| {
                let is_longer = || version.strip_prefix(known_version)?.strip_prefix('.');
                known_stem == stem
                    && (version == known_version
                        || (!known_version.is_empty() && is_longer().is_some()))
            })
        })
    };
    let (stem, hashed) = if is_named(stem) {
        (stem, false)
    } else {
        (unhashed(stem).filter(|stem| is_named(stem))?, true)
    };
    Some(file("linux", stem, version, hashed))
}

/// Whether a name is that of another version of a user-defined library: `libacme.so.4` for `libacme.so.3`.
pub fn is_other_version(library: &Library, name: &str) -> bool {
    let stem_of = |name: &str| match dll_stem(name) {
        Some(file_stem) => dll_key(split_version(unhashed(file_stem).unwrap_or(file_stem)).0),
        None => {
            let stem = split(name).map_or("", |(stem, _)| unhashed(stem).unwrap_or(stem));
            stem.to_owned()
        }
    };
    let stem = stem_of(name);
    !stem.is_empty()
        && (library.load_names.iter())
            .flat_map(|(_, names)| names)
            .any(|load_name| stem_of(&load_name.name) == stem)
}

#[cfg(test)]
mod tests {
    use gpustub_core::library::LoadName;

    use super::*;

    /// A shipped library stands for a user-defined one with these load names.
    fn user_defined(load_names: &[(&str, &str)]) -> &'static Library {
        let mut library = Library::builtin("nvtx").unwrap().clone();
        library.load_names = load_names
            .iter()
            .map(|(system, name)| ((*system).to_owned(), vec![LoadName::new(*name)]))
            .collect();
        Box::leak(Box::new(library))
    }

    #[test]
    fn user_defined_libraries_have_their_versions_only() {
        let versioned = [("linux", "libacme.so.3"), ("windows", "acme64_3.dll")];
        for (load_names, name, hashed) in [
            (&versioned[..], "libacme.so.3", Some(false)),
            (&versioned, "libacme.so.3.1", Some(false)),
            (&versioned, "libacme-5ad2a8f1.so.3.1", Some(true)),
            (&versioned, "libacme.so.30", None),
            (&versioned, "libacme.so", None),
            (&versioned, "ACME64_3.DLL", Some(false)),
            (
                &versioned,
                "acme64_3-0123456789abcdef0123456789abcdef.dll",
                Some(true),
            ),
            (&versioned, "acme64_4.dll", None),
            (&[("linux", "libacme.so")], "libacme.so.3", None),
            (
                &[("linux", "libacme.so")],
                "libacme-5ad2a8f1.so",
                Some(true),
            ),
            (&[("linux", "plugin.so")], "plugin.so", Some(false)),
        ] {
            let library = user_defined(load_names);
            let file = user_defined_file(library, name);
            assert_eq!(file.map(|file| file.hashed), hashed, "{name}");
        }
        let library = user_defined(&versioned);
        for (name, expected) in [
            ("libacme.so.4", true),
            ("libacme-5ad2a8f1.so.4", true),
            ("acme64_4.dll", true),
            ("libacmeMg.so.3", false),
            ("c.dll", false),
        ] {
            assert_eq!(is_other_version(library, name), expected, "{name}");
        }
    }
}
