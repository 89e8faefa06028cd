//! Architectures that the environment requests for all packages of a build, in place of those of their tables.

use gpustub_core::diag::{DEVICE_LINK_ERROR, INVALID_VALUE, MISSING_ARCH, NVCC_ERROR};
use gpustub_core::gpu_arch::{Arch, TARGETS_HELP, conflicting_targets};
use gpustub_core::manifest::{DeviceCode, DeviceLink, Manifest, Spanned};

use crate::env::Env;
use crate::error::Error;

/// Variable with architectures, separated by commas or spaces.
const NAME: &str = "GPUSTUB_DEVICE_ARCHS";

/// The manifest with the requested architectures, if the variable is set. A table keeps its vendors: one for CUDA alone is
/// not compiled for AMD, and code for AMD stays as it is if the variable names none of its architectures. The device links
/// of programs are then for what their libraries were compiled for.
pub(crate) fn apply(env: &Env, mut manifest: Manifest) -> Result<Manifest, Error> {
    if !manifest.device_links.is_empty() || !manifest.link_archs.is_empty() {
        request(&mut manifest, &read(env)?)?;
    }
    Ok(manifest)
}

fn request(manifest: &mut Manifest, requested: &[Arch]) -> Result<(), Error> {
    let link_archs = &mut manifest.link_archs;
    link_archs.retain(|arch| !arch.value.vendor().is_in(requested.iter().copied()));
    for library in &mut manifest.device_links {
        replace(library, requested);
        // Other architectures were those of the table, whose errors are reported elsewhere.
        let mut uncompilable = library.uncompilable().into_iter();
        if let Some((arch, help)) = uncompilable.find(|(arch, _)| requested.contains(&arch.value)) {
            let message = format!(
                "the environment variable {NAME} names `{}`, and device-link.{} has compiler = \"clang\"",
                arch.value, library.name.value
            );
            return Err(Error::new(&INVALID_VALUE, message).help(help));
        }
    }
    Ok(())
}

/// Names the variable in an error about architectures, whose cause may be the table or the variable.
pub(super) fn explain(env: &Env, error: Error) -> Error {
    let codes = [&MISSING_ARCH, &NVCC_ERROR, &DEVICE_LINK_ERROR];
    let value = env.get(NAME).filter(|value| !value.is_empty());
    match value.filter(|_| error.code().is_some_and(|code| codes.contains(&code))) {
        Some(value) => error.help(format!(
            "the environment variable {NAME} is `{}`, in place of the `archs` of tables: unset it, or add to it",
            value.to_string_lossy()
        )),
        None => error,
    }
}

fn read(env: &Env) -> Result<Vec<Arch>, Error> {
    let Some(value) = env.get(NAME) else {
        return Ok(Vec::new());
    };
    let value = value.to_string_lossy();
    let mut archs = Vec::new();
    for name in value.split([',', ' ']).filter(|name| !name.is_empty()) {
        archs.push(Arch::parse(name).ok_or_else(|| {
            let message = format!("the environment variable {NAME} names `{name}`");
            Error::new(&INVALID_VALUE, message).help(format!("it takes {}", Arch::TAKES))
        })?);
    }
    if let Some((first, second)) = conflicting_targets(archs.iter().copied()) {
        let message = format!(
            "the environment variable {NAME} names `{first}` and `{second}`, which clang does not compile together"
        );
        return Err(Error::new(&INVALID_VALUE, message).help(TARGETS_HELP));
    }
    Ok(archs)
}

fn replace(library: &mut DeviceLink, requested: &[Arch]) {
    let declared = &library.archs;
    let Some(span) = declared.first().map(|arch| arch.span.clone()) else {
        return;
    };
    let is_of_declared_vendor =
        |arch: &Arch| arch.vendor().is_in(declared.iter().map(|arch| arch.value));
    let requested = requested.iter().copied();
    let requested: Vec<Arch> = requested.filter(is_of_declared_vendor).collect();
    // A finished archive has the code that it has: its device link is for what this serves.
    let is_served = |arch: &Arch| declared.iter().any(|declared| declared.value.serves(*arch));
    let is_external = matches!(library.code, DeviceCode::External { .. });
    if is_external && !requested.iter().all(is_served) {
        return;
    }
    let is_requested = |arch: &Spanned<Arch>| arch.value.vendor().is_in(requested.iter().copied());
    library.archs.retain(|arch| !is_requested(arch));
    for value in requested {
        let span = span.clone();
        library.archs.push(Spanned { value, span });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_keep_their_vendors_and_archives_what_they_have() {
        for (code, declared, requested, expected) in [
            (
                "sources = ['a.cu']",
                "'sm_80', 'compute_90'",
                "sm_86",
                "sm_86",
            ),
            (
                "sources = ['a.cu']",
                "'sm_80', 'gfx90a'",
                "gfx942,sm_86",
                "gfx942 sm_86",
            ),
            (
                "sources = ['a.cu']",
                "'sm_80', 'gfx90a', 'gfx1030'",
                "sm_86",
                "gfx90a gfx1030 sm_86",
            ),
            ("sources = ['a.cu']", "'gfx90a'", "sm_86", "gfx90a"),
            ("sources = ['a.cu']", "'sm_80'", "", "sm_80"),
            ("prebuilt = 'a.a'", "'sm_80', 'sm_90'", "sm_86", "sm_86"),
            (
                "prebuilt = 'a.a'",
                "'sm_80', 'sm_90'",
                "sm_75",
                "sm_80 sm_90",
            ),
        ] {
            let text = format!("schema = 1\n[device-link.a]\n{code}\narchs = [{declared}]\n");
            let (mut manifest, diagnostics) = Manifest::parse("GpuStub.toml", &text);
            assert_eq!(diagnostics, []);
            let names = requested.split(',').filter_map(Arch::parse);
            request(&mut manifest, &Vec::from_iter(names)).unwrap();
            let archs = words(&manifest.device_links[0].archs);
            assert_eq!(archs, expected, "{code} {declared} {requested}");
        }
    }

    #[test]
    fn the_environment_precedes_link_archs_of_its_vendors() {
        for (declared, requested, expected) in [
            ("'sm_90', 'gfx942'", "", "sm_90 gfx942"),
            ("'sm_90', 'gfx942'", "sm_86", "gfx942"),
            ("'sm_90', 'sm_90a'", "sm_86,gfx90a", ""),
        ] {
            let text = format!("schema = 1\nlink-archs = [{declared}]\n");
            let (mut manifest, diagnostics) = Manifest::parse("GpuStub.toml", &text);
            assert_eq!(diagnostics, []);
            let names = requested.split(',').filter_map(Arch::parse);
            request(&mut manifest, &Vec::from_iter(names)).unwrap();
            assert_eq!(
                words(&manifest.link_archs),
                expected,
                "{declared} {requested}"
            );
        }
    }

    #[test]
    fn clang_compiles_for_the_requested_architectures() {
        for (requested, expected) in [
            ("sm_90,compute_90", ""),
            ("gfx90a,lto_90", "`lto_90`"),
            ("sm_90,compute_80", "`compute_80`"),
        ] {
            let table = "sources = ['a.cu']\narchs = ['sm_80', 'compute_80']\ncompiler = 'clang'\n";
            let text = format!("schema = 1\n[device-link.a]\n{table}");
            let (mut manifest, diagnostics) = Manifest::parse("GpuStub.toml", &text);
            assert_eq!(diagnostics, []);
            let names = requested.split(',').filter_map(Arch::parse);
            let result = request(&mut manifest, &Vec::from_iter(names));
            let message = result
                .err()
                .map_or(String::new(), |error| error.to_string());
            assert_eq!(message.is_empty(), expected.is_empty(), "{message}");
            assert!(message.contains(expected) && message.contains(NAME) != expected.is_empty());
        }
    }

    fn words(archs: &[Spanned<Arch>]) -> String {
        let words: Vec<String> = archs.iter().map(|arch| arch.value.to_string()).collect();
        words.join(" ")
    }
}
