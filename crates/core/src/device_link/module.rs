//! Device links of modules, which no program contains.

use super::plan::{arch_names, linked_archs};
use crate::diag::{Diagnostic, INVALID_VALUE, MISSING_ARCH};
use crate::gpu_arch::{Arch, ArchKind};
use crate::manifest::{DeviceModule, ModuleFormat};

/// Architectures that a module's device link makes machine code for, ascending.
pub fn module_archs(module: &DeviceModule) -> Vec<Arch> {
    linked_archs(module.library.archs.iter().map(|arch| arch.value))
}

/// Reports a library without code for an architecture of a module that requires it: nvlink does not.
pub fn module_lacks_arch(
    module: &DeviceModule,
    library: &str,
    library_archs: &[Arch],
) -> Option<Diagnostic> {
    let is_usable = |arch: Arch| module.format != ModuleFormat::Ptx || arch.kind() == ArchKind::Lto;
    let mut missing = Vec::from_iter(module.library.archs.iter().map(|arch| arch.value));
    missing.retain(|&requested| {
        let real = requested.as_kind(ArchKind::Real);
        !library_archs
            .iter()
            .any(|&arch| is_usable(arch) && arch.serves(real))
    });
    if missing.is_empty() {
        return None;
    }
    let name = module.name();
    let message = format!(
        "device-link.{name} is for {}, and `{library}`, which it requires, has only {}",
        arch_names(&missing),
        arch_names(library_archs)
    );
    let help = format!("add them to `archs` of `{library}`, or remove them from those of `{name}`");
    Some(Diagnostic::error(&MISSING_ARCH, message).help(help))
}

/// Reports a module with the environment variable of another module of its package. `source`: as shown,
/// if each source is a module.
pub fn module_variable_taken(
    module: &DeviceModule,
    source: Option<&str>,
    variable: &str,
) -> Diagnostic {
    let source = source.map_or(String::new(), |source| format!("{source} of "));
    let message = format!(
        "{source}device-link.{}: another module has the variable {variable}",
        module.name()
    );
    Diagnostic::error(&INVALID_VALUE, message)
        .help("rename the table or the source: the variable consists of both names")
}
