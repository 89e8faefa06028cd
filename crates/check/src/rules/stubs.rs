//! Stubs: their names, their generator, and the images that they are linked into.

use std::path::Path;

use gpustub_core::code;
use gpustub_core::manifest::RuleLevel;
use gpustub_image::ImageKind;

use crate::evidence::{gpu_library_exporting, has_gpustub, image_names, implib_library};
use crate::gpu_file::{gpu_file, impersonated_library};
use crate::package::{Image, Kind, Package};
use crate::rule::{Check, Findings, Rule};
use crate::search_dirs::{Loads, SearchDir, resolve_entry};

pub static AMBIGUOUS_STUB_NAME: Rule = Rule {
    code: code!(
        "ambiguous-stub-name",
        "stub library whose name matches the real library"
    ),
    level: RuleLevel::Deny,
    check: Check::Image(ambiguous_stub_name),
};

pub static ABORTING_STUBS: Rule = Rule {
    code: code!(
        "aborting-stubs",
        "stubs that abort where the library is missing"
    ),
    level: RuleLevel::Warn,
    check: Check::Image(aborting_stubs),
};

pub static STUBS_IN_STATIC_EXECUTABLE: Rule = Rule {
    code: code!("stubs-in-static-executable", "stubs in a static executable"),
    level: RuleLevel::Deny,
    check: Check::Image(stubs_in_static_executable),
};

pub static MISSING_STUB_LIBRARY: Rule = Rule {
    code: code!(
        "missing-stub-library",
        "shared stubs that the loader does not find"
    ),
    level: RuleLevel::Deny,
    check: Check::Package(missing_stub_library),
};

fn missing_stub_library(package: &Package, findings: &mut Findings) {
    let loads = Loads::from_package(package);
    for image in package.images() {
        let stubs = image.needed().iter();
        let missing: Vec<String> = stubs
            .filter(|name| name.starts_with("libgpustub_") && name.ends_with(".so"))
            .filter(|name| loads.carried(&image, name).is_none() && !is_elsewhere(&image, name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            findings.on_image(
                &MISSING_STUB_LIBRARY,
                &image,
                format!("no runpath entry leads to the stubs {}", missing.join(", ")),
                "ship the library in the directory of the image, linked with `-Wl,-rpath,$ORIGIN`",
            );
        }
    }
}

/// Whether the loader may find a library outside of the package. Of a single file, the directory on this
/// machine is known; the program that loads a single library is not, and may have loaded the stubs.
fn is_elsewhere(image: &Image<'_>, name: &str) -> bool {
    if image.package.kind == Kind::File && image.facts.kind == ImageKind::Library {
        return true;
    }
    if image.package.kind != Kind::File {
        return image.runpath().any(|entry| {
            let dir = resolve_entry(image, entry);
            matches!(dir, SearchDir::Outside | SearchDir::Elsewhere)
        });
    }
    // The loader expands $ORIGIN after it has resolved links.
    let Ok(file) = Path::new(&image.package.name).canonicalize() else {
        return false;
    };
    let origin = file.parent().unwrap_or(Path::new("/"));
    image.runpath().any(|entry| {
        let own = ["$ORIGIN", "${ORIGIN}"].into_iter();
        let below = own.filter_map(|token| entry.strip_prefix(token)).next();
        let dir = match below {
            Some(rest) => origin.join(rest.trim_start_matches('/')),
            None => origin.join(entry),
        };
        dir.join(name).is_file()
    })
}

fn ambiguous_stub_name(image: &Image<'_>, findings: &mut Findings) {
    let exports = &image.facts.exports;
    let ours = has_gpustub(image)
        && exports
            .iter()
            .any(|name| gpu_library_exporting(name).is_some());
    let stubs = ours || implib_library(image).is_some();
    let mut names = image_names(image);
    let taken = names.find_map(|name| {
        let real = impersonated_library(name)?;
        let exact = gpu_file(name).is_some();
        let says_so = !exact && name.to_ascii_lowercase().contains("stub");
        // A search for a part of a name that finds libcuda finds libcudart, in any process with a runtime.
        let searched = exact || real != "cuda";
        ((says_so || stubs) && searched).then_some((name, real))
    });
    if let Some((name, real)) = taken {
        findings.on_image(
            &AMBIGUOUS_STUB_NAME,
            image,
            format!("stub library `{name}` matches a search for `lib{real}`"),
            &format!("rename file and soname to `libstub_{real}.so`"),
        );
    }
}

fn aborting_stubs(image: &Image<'_>, findings: &mut Findings) {
    if let Some(library) = implib_library(image) {
        findings.on_image(
            &ABORTING_STUBS,
            image,
            format!("Implib.so stubs for `{library}` abort the program if the library is missing"),
            "declare the library in GpuStub.toml: its stubs return the API's own error",
        );
    }
}

fn stubs_in_static_executable(image: &Image<'_>, findings: &mut Findings) {
    if image.facts.kind == ImageKind::Static && has_gpustub(image) {
        findings.on_image(
            &STUBS_IN_STATIC_EXECUTABLE,
            image,
            "stubs in a static executable cannot load the real libraries".into(),
            "link the C library dynamically: `-C target-feature=-crt-static`",
        );
    }
}
