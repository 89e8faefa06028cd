//! Lists of architectures: `archs` of a `[device-link.<name>]` table, and `link-archs`.

use super::device_module::ARCHS_HELP;
use super::values::{checked_strings, shorten};
use crate::decode::{Decoder, Table, Value};
use crate::diag::{INVALID_VALUE, MISSING_KEY};
use crate::gpu_arch::{Arch, ArchKind, TARGETS_HELP, Vendor, conflicting_targets};
use crate::manifest::{DeviceCode, DeviceLink};
use crate::spanned::Spanned;

const LINK_ARCHS_HELP: &str = "write the GPUs that programs run on, such as [\"sm_90\"]; without the key \
                               device links are for all architectures of their libraries";

/// Reads `archs` of a `[device-link.<name>]` table.
pub(super) fn archs(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    value: &Value<'_>,
    code: &DeviceCode,
) -> Vec<Spanned<Arch>> {
    if table.get("archs").is_none() && !matches!(code, DeviceCode::Headers) {
        let message = format!("`{}` has no `archs`", table.name);
        decoder.error_with_help(&MISSING_KEY, value.key_span.clone(), message, ARCHS_HELP);
    }
    arch_list(decoder, table, "archs", ARCHS_HELP)
}

/// Reads `link-archs`: a device link makes machine code alone.
pub(super) fn link_archs(decoder: &mut Decoder<'_>, top: &Table<'_>) -> Vec<Spanned<Arch>> {
    let mut archs = arch_list(decoder, top, "link-archs", LINK_ARCHS_HELP);
    archs.retain(|arch| {
        let is_real = arch.value.kind() == ArchKind::Real;
        if !is_real {
            let real = arch.value.as_kind(ArchKind::Real);
            let message = format!(
                "`link-archs` has \"{}\", and a device link makes machine code",
                arch.value
            );
            let help = format!(
                "write \"{real}\": the `archs` of libraries name the code that it is made of"
            );
            decoder.error_with_help(&INVALID_VALUE, arch.span.clone(), message, &help);
        }
        is_real
    });
    archs
}

/// Architectures in a list, which must not be empty.
fn arch_list(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    key: &str,
    help_if_empty: &str,
) -> Vec<Spanned<Arch>> {
    let Some(list) = table.get(key) else {
        return Vec::new();
    };
    let count_before = decoder.count();
    let mut archs = Vec::new();
    for name in checked_strings(decoder, table, key, |_| None) {
        let Some(arch) = Arch::parse(&name.value) else {
            let short_name = shorten(&name.value);
            let message = format!("`{}` takes {}, not {short_name:?}", list.name, Arch::TAKES);
            // `80`, `8.0` and `sm80` identify the intended one.
            let digits: String = short_name.chars().filter(char::is_ascii_digit).collect();
            let is_virtual = short_name.starts_with("compute");
            let prefix = if is_virtual { "compute" } else { "sm" };
            let meant = Arch::parse(&format!("{prefix}_{digits}"));
            let help = meant
                .filter(|_| !short_name.starts_with("gfx"))
                .map(|arch| format!("did you mean \"{arch}\"?"));
            decoder.error(&INVALID_VALUE, name.span, message).help = help;
            continue;
        };
        archs.push(Spanned {
            value: arch,
            span: name.span,
        });
    }
    let values = || archs.iter().map(|arch: &Spanned<Arch>| arch.value);
    if let Some((first, second)) = conflicting_targets(values()) {
        let span = archs.iter().find(|arch| arch.value == second);
        let span = span.map_or(list.span.clone(), |arch| arch.span.clone());
        let message = format!(
            "`{}` has \"{first}\" and \"{second}\", which clang does not compile together",
            list.name
        );
        decoder.error_with_help(&INVALID_VALUE, span, message, TARGETS_HELP);
    }
    if archs.is_empty() && decoder.count() == count_before {
        let message = format!("`{}` is empty", list.name);
        decoder.error_with_help(&INVALID_VALUE, list.span, message, help_if_empty);
    }
    archs
}

/// Rejects what device links for AMD cannot have.
pub(super) fn check_amd(decoder: &mut Decoder<'_>, table: &Table<'_>, link: &DeviceLink) {
    let is_amd = |arch: &&Spanned<Arch>| arch.value.vendor() == Vendor::Amd;
    let Some(arch) = link.archs.iter().find(is_amd) else {
        return;
    };
    let is_shared_elsewhere = matches!(
        &link.code,
        DeviceCode::External {
            prebuilt_shared: Some(_),
            ..
        }
    );
    let help = if is_shared_elsewhere {
        "shared libraries of HIP that others built cannot register in another device link: write type = \"static\" without \
         `prebuilt-shared`"
    } else if link.cudadevrt {
        "kernels of HIP cannot launch kernels: remove `cudadevrt`"
    } else {
        return;
    };
    let message = format!("`{}.archs` has \"{}\"", table.name, arch.value);
    decoder.error_with_help(&INVALID_VALUE, arch.span.clone(), message, help);
}
