//! Keys of `[device-link.<name>]` that depend on `type = "module"`.

use crate::by_name::ByName;
use crate::decode::{Decoder, Table};
use crate::diag::{INVALID_VALUE, MISSING_KEY};
use crate::gpu_arch::{Arch, ArchKind, Vendor};
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
const MODULE_KEYS: [&str; 2] = ["format", "separable"];

/// Keys that modules do not have, with the help for them.
const LIBRARY_KEYS: [(&str, &str); 3] = [
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
        for value in MODULE_KEYS.iter().filter_map(|key| table.get(key)) {
            let message = format!("`{}` requires `type = \"module\"`", value.name);
            let help = "write type = \"module\", or remove it: libraries are relocatable code, which \
                        programs are linked with";
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
        return None;
    }
    for (key, help) in LIBRARY_KEYS {
        if let Some(value) = table.get(key) {
            let message = format!("`{}` in a table with `type = \"module\"`", value.name);
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
    }
    let format = table
        .get("format")
        .and_then(|value| decoder.one_of(&value, &FORMATS));
    let separable = table
        .get("separable")
        .and_then(|value| decoder.boolean(&value));
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
        let (name, name_span) = (&table.name, &library.name.span);
        if matches!(library.code, DeviceCode::Headers) {
            if library.requires.is_empty() || !self.separable {
                let message = format!("`{name}` has no `sources`");
                let help = if self.separable {
                    "write sources = [\"cuda/*.cu\"], or name libraries in `requires`"
                } else {
                    "write sources = [\"cuda/*.cu\"]: each becomes a module"
                };
                decoder.error_with_help(&MISSING_KEY, name_span.clone(), message, help);
            }
            if table.get("archs").is_none() {
                let message = format!("`{name}` has no `archs`");
                decoder.error_with_help(&MISSING_KEY, name_span.clone(), message, ARCHS_HELP);
            }
        }
        let rejects_cudadevrt = library.cudadevrt && !self.separable;
        if let Some(value) = table.get("cudadevrt").filter(|_| rejects_cudadevrt) {
            let message = format!("`{}` with `separable = false`", value.name);
            let help = "remove separable = false: launches in device code need a device link";
            decoder.error_with_help(&INVALID_VALUE, value.key_span, message, help);
        }
        self.check_archs(decoder, name, library);
    }

    fn check_archs(&self, decoder: &mut Decoder<'_>, name: &str, library: &DeviceLink) {
        for arch in &library.archs {
            if let Some((problem, help)) = self.arch_problem(arch.value) {
                let message = format!("`{name}.archs`: \"{}\" is {problem}", arch.value);
                decoder.error_with_help(&INVALID_VALUE, arch.span.clone(), message, help);
                return;
            }
        }
        if self.format == ModuleFormat::Fatbin {
            return;
        }
        // `sm_80` and `lto_80` are code for one architecture.
        let mut archs = library.archs.iter();
        let first = archs.next().map(|arch| arch.value.as_kind(ArchKind::Real));
        if let Some(second) = archs.find(|arch| Some(arch.value.as_kind(ArchKind::Real)) != first) {
            let word = self.format.word();
            let message = format!("`{name}.archs`: a {word} is for one architecture");
            let help = "use the default format, \"fatbin\", or a table for each architecture";
            decoder.error_with_help(&INVALID_VALUE, second.span.clone(), message, help);
        }
    }

    /// Reason why the file cannot have code for this architecture, and the help for it.
    fn arch_problem(&self, arch: Arch) -> Option<(&'static str, &'static str)> {
        if arch.vendor() == Vendor::Amd {
            let is_other_form = self.format != ModuleFormat::Fatbin;
            return is_other_form.then_some((
                "of AMD, and cubins and PTX are code of CUDA",
                "remove `format`: the file is an offload bundle for hipModuleLoadData; write a table for each vendor to choose that of CUDA",
            ));
        }
        match (arch.kind(), self.separable, self.format) {
            (ArchKind::Real | ArchKind::Virtual, true, ModuleFormat::Ptx) => Some((
                "not LTO code, and a device link makes PTX of nothing else",
                "name an `lto_` architecture, as the libraries in `requires` have it, or write separable = false: each \
                 source becomes a module, without functions of other files",
            )),
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
        }
    }
}

/// Rejects requirements of modules, and modules with one variable.
pub(super) fn check(decoder: &mut Decoder<'_>, links: &[DeviceLink], modules: &[DeviceModule]) {
    for table in links
        .iter()
        .chain(modules.iter().map(|module| &module.library))
    {
        for required in &table.requires {
            if modules.iter().all(|module| module.name() != required.value) {
                continue;
            }
            let message = format!(
                "`device-link.{}.requires`: `{}` is a module, which nothing can be linked with",
                table.name.value, required.value
            );
            let help = "move what both need into a library (`type = \"static\"`), and require that";
            decoder.error_with_help(&INVALID_VALUE, required.span.clone(), message, help);
        }
    }
    let mut variables = ByName::new();
    for module in modules {
        let name = module.name();
        if let Some(previous) = variables.insert(&variable(name), name) {
            let message =
                format!("`device-link.{name}` and `device-link.{previous}` have one variable");
            let help = "rename one: in the variable's name `-` is `_`";
            let span = module.library.name.span.clone();
            decoder.error_with_help(&INVALID_VALUE, span, message, help);
        }
    }
}
