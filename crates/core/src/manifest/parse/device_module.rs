//! Keys of `[device-link.<name>]` that depend on `type = "module"`.

use crate::by_name::ByName;
use crate::decode::{Decoder, Table};
use crate::diag::{INVALID_VALUE, MISSING_KEY};
use crate::gpu_arch::{Arch, ArchKind};
use crate::manifest::device_module::variable;
use crate::manifest::{DeviceCode, DeviceLink, DeviceModule, ModuleFormat};

pub(super) const FORMATS: [(&str, ModuleFormat); 3] = [
    ("fatbin", ModuleFormat::Fatbin),
    ("cubin", ModuleFormat::Cubin),
    ("ptx", ModuleFormat::Ptx),
];

pub(super) const ARCHS_HELP: &str = "write the GPUs that it is compiled for, such as archs = \
                                     [\"sm_80\", \"sm_90\", \"compute_90\"]";

/// Keys of modules only.
const OF_MODULES: [&str; 2] = ["format", "separable"];

/// Keys that modules do not have, with what to do instead.
const OF_LIBRARIES: [(&str, &str); 3] = [
    (
        "prebuilt",
        "declare the archive in a table of its own, and name it in `requires`",
    ),
    (
        "prebuilt-shared",
        "remove it: programs load a module from memory",
    ),
    (
        "cudart",
        "remove it: a module has no host code that calls a runtime",
    ),
];

/// Keys of a module that are not those of a library.
pub(super) struct Settings {
    format: ModuleFormat,
    separable: bool,
}

/// Reads them; `None` for a library, which has none.
pub(super) fn settings(
    decoder: &mut Decoder<'_>,
    table: &Table<'_>,
    is_module: bool,
) -> Option<Settings> {
    if !is_module {
        for value in OF_MODULES.iter().filter_map(|key| table.get(key)) {
            let message = format!("`{}` requires `type = \"module\"`", value.name);
            let help = "write type = \"module\", or remove it: libraries are relocatable code, which \
                        programs are linked with";
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
        return None;
    }
    for (key, help) in OF_LIBRARIES {
        if let Some(value) = table.get(key) {
            let message = format!("`{}` in a table with `type = \"module\"`", value.name);
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
    }
    let format = table.get("format");
    let format = format.and_then(|value| decoder.one_of(&value, &FORMATS));
    let separable = table.get("separable");
    let separable = separable.and_then(|value| decoder.boolean(&value));
    Some(Settings {
        format: format.unwrap_or_default(),
        separable: separable.unwrap_or(true),
    })
}

impl Settings {
    pub(super) fn module(self, library: DeviceLink) -> DeviceModule {
        DeviceModule {
            library,
            format: self.format,
            separable: self.separable,
        }
    }

    /// Rejects sources and architectures that the file cannot be made of.
    pub(super) fn check(&self, decoder: &mut Decoder<'_>, table: &Table<'_>, library: &DeviceLink) {
        let (name, of) = (&table.name, &library.name.span);
        if matches!(library.code, DeviceCode::Headers) {
            if library.requires.is_empty() || !self.separable {
                let message = format!("`{name}` has no `sources`");
                let help = if self.separable {
                    "write sources = [\"cuda/*.cu\"], or name libraries in `requires`"
                } else {
                    "write sources = [\"cuda/*.cu\"]: each becomes a module"
                };
                decoder.error_with_help(&MISSING_KEY, of.clone(), message, help);
            }
            if table.get("archs").is_none() {
                let message = format!("`{name}` has no `archs`");
                decoder.error_with_help(&MISSING_KEY, of.clone(), message, ARCHS_HELP);
            }
        }
        if let Some(value) = table.get("cudadevrt").filter(|_| library.cudadevrt)
            && !self.separable
        {
            let message = format!("`{}` with `separable = false`", value.name);
            let help = "remove separable = false: launches in device code need a device link";
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
        if self.format == ModuleFormat::Ptx && self.separable {
            let message =
                format!("`{name}` has `format = \"ptx\"`, and a device link makes no PTX");
            let help = "write separable = false: each source becomes a module, without functions of \
                        other files";
            let span = table.get("format").map_or(of.clone(), |value| value.span);
            return decoder.error_with_help(&INVALID_VALUE, span, message, help);
        }
        let wrong = |kind: ArchKind| match (kind, self.separable, self.format) {
            (ArchKind::Virtual, true, _) => Some((
                "PTX, which a device link cannot keep",
                "remove it, or write separable = false",
            )),
            (ArchKind::Lto, false, _) => Some((
                "code for a device link, and there is none",
                "name an `sm_` architecture, or remove separable = false",
            )),
            (ArchKind::Virtual, _, ModuleFormat::Cubin) => Some((
                "PTX, and the file is machine code",
                "name an `sm_` architecture, or remove `format`",
            )),
            (ArchKind::Real, _, ModuleFormat::Ptx) => Some((
                "machine code, and the file is PTX",
                "name a `compute_` architecture, or remove `format`",
            )),
            _ => None,
        };
        for arch in &library.archs {
            if let Some((what, help)) = wrong(arch.value.kind) {
                let message = format!("`{name}.archs`: \"{}\" is {what}", arch.value);
                decoder.error_with_help(&INVALID_VALUE, arch.span.clone(), message, help);
                return;
            }
        }
        let mut others = library.archs.iter().skip(1);
        // `sm_80` and `lto_80` are code for one architecture.
        let real = |arch: Arch| arch.as_kind(ArchKind::Real);
        let first = library.archs.first().map(|arch| real(arch.value));
        let other = others.find(|arch| Some(real(arch.value)) != first);
        if let (Some(other), true) = (other, self.format != ModuleFormat::Fatbin) {
            let word = self.format.word();
            let message = format!("`{name}.archs`: a {word} is for one architecture");
            let help = "use the default format, \"fatbin\", or a table for each architecture";
            decoder.error_with_help(&INVALID_VALUE, other.span.clone(), message, help);
        }
    }
}

/// Rejects requirements of modules, and modules with one variable.
pub(super) fn check(decoder: &mut Decoder<'_>, links: &[DeviceLink], modules: &[DeviceModule]) {
    let all = links.iter().chain(modules.iter().map(|one| &one.library));
    for table in all {
        for name in &table.requires {
            if modules.iter().all(|module| module.name() != name.value) {
                continue;
            }
            let message = format!(
                "`device-link.{}.requires`: `{}` is a module, which nothing can be linked with",
                table.name.value, name.value
            );
            let help = "move what both need into a library (`type = \"static\"`), and require that";
            decoder.error_with_help(&INVALID_VALUE, name.span.clone(), message, help);
        }
    }
    let mut variables = ByName::new();
    for module in modules {
        let name = module.name();
        if let Some(other) = variables.insert(&variable(name), name) {
            let message =
                format!("`device-link.{name}` and `device-link.{other}` have one variable");
            let help = "rename one: in the variable's name `-` is `_`";
            let span = module.library.name.span.clone();
            decoder.error_with_help(&INVALID_VALUE, span, message, help);
        }
    }
}
