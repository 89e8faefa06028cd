//! Architectures that the environment requests for all packages of a build, in place of those of their tables.

use gpustub_core::diag::INVALID_VALUE;
use gpustub_core::gpu_arch::Arch;
use gpustub_core::manifest::{DeviceCode, DeviceLink, Spanned};

use crate::env::Env;
use crate::error::Error;

/// Variable with architectures, separated by commas or spaces.
const NAME: &str = "GPUSTUB_DEVICE_ARCHS";

/// Replaces the architectures of libraries by the requested ones, if the variable is set. A table keeps its vendors: one
/// for CUDA alone is not compiled for AMD.
pub(crate) fn apply(env: &Env, libraries: &mut [DeviceLink]) -> Result<(), Error> {
    if libraries.is_empty() {
        return Ok(());
    }
    let requested = read(env)?;
    for library in libraries {
        replace(library, &requested);
    }
    Ok(())
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
    let vendor_is_declared = |arch: &Arch| {
        let mut declared = declared.iter();
        declared.any(|declared| declared.value.vendor() == arch.vendor())
    };
    let archs: Vec<Arch> = requested
        .iter()
        .copied()
        .filter(vendor_is_declared)
        .collect();
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
