//! Architectures that the environment requests for all packages of a build, in place of those of their tables.

use gpustub_core::diag::INVALID_VALUE;
use gpustub_core::gpu_arch::Arch;
use gpustub_core::manifest::{DeviceCode, DeviceLink, Manifest, Spanned};

use crate::env::Env;
use crate::error::Error;

/// Variable with architectures, separated by commas or spaces.
const NAME: &str = "GPUSTUB_DEVICE_ARCHS";

/// The manifest with the requested architectures, if the variable is set. A table keeps its vendors: one for CUDA alone is
/// not compiled for AMD.
pub(crate) fn apply(env: &Env, mut manifest: Manifest) -> Result<Manifest, Error> {
    if !manifest.device_links.is_empty() {
        let requested = read(env)?;
        for library in &mut manifest.device_links {
            replace(library, &requested);
        }
    }
    Ok(manifest)
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
    let archs: Vec<Arch> = requested.filter(is_of_declared_vendor).collect();
    // A finished archive has the code that it has: its device link is for what this serves.
    let is_served = |arch: &Arch| declared.iter().any(|declared| declared.value.serves(*arch));
    let is_external = matches!(library.code, DeviceCode::External { .. });
    if archs.is_empty() || is_external && !archs.iter().all(is_served) {
        return;
    }
    library.archs = archs
        .into_iter()
        .map(|value| Spanned {
            value,
            span: span.clone(),
        })
        .collect();
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
            ("sources = ['a.cu']", "'sm_80', 'gfx90a'", "sm_86", "sm_86"),
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
            let library = &mut manifest.device_links[0];
            replace(library, &Vec::from_iter(names));
            let archs: Vec<String> = library
                .archs
                .iter()
                .map(|arch| arch.value.to_string())
                .collect();
            assert_eq!(archs.join(" "), expected, "{code} {declared} {requested}");
        }
    }
}
