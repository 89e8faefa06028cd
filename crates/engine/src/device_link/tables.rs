//! The `[device-link.*]` tables of a package, in its build script.

use std::path::Path;

use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::Arch;
use gpustub_core::manifest::LibraryType;

use super::context::Context;
use super::metadata::Stubs;
use super::modules::build_empty_declared;
use super::{Delivery, disabled, exports, final_link, libraries, requested};
use crate::error::Error;
use crate::input::Input;
use crate::output::Output;
use crate::settings::Settings;
use crate::store::Store;

/// Writes the file that a finalizer crate includes, without any code.
pub(crate) fn build_nothing(settings: &Settings) -> Result<(), Error> {
    if settings.delivery != Some(Delivery::Crate) {
        return Ok(());
    }
    let dir = settings.gpustub_dir()?;
    std::fs::create_dir_all(&dir).map_err(|e| Error::io("create the directory", &dir, &e))?;
    exports::write_rust(&dir, &[])
}

/// Builds the `[device-link.*]` tables of a package, and the device link of its programs.
pub(crate) fn build_declared(
    settings: &Settings,
    input: &Input,
    output: &mut Output,
) -> Result<(), Error> {
    let manifest = &input.manifest;
    // rustc must know the cfg values of all libraries, including those that are left out.
    for name in &manifest.device_link_names {
        let cfg = format!("cfg(gpustub_device_link, values({name:?}))");
        output.directives.push(Directive::CheckCfg(cfg));
    }
    let mut declared = Vec::new();
    let mut disabled = Vec::new();
    for library in &manifest.device_links {
        let features = &library.required_features;
        match features.first_missing(|feature| settings.env.has_feature(feature)) {
            Some(feature) => disabled.push((library.name.value.as_str(), feature)),
            None => declared.push(library),
        }
    }
    let mut modules = Vec::new();
    for module in &manifest.device_modules {
        let features = &module.library.required_features;
        let missing = features.first_missing(|feature| settings.env.has_feature(feature));
        if missing.is_none() {
            modules.push(module);
        }
    }
    let metadata = disabled::publish(&settings.env, &disabled);
    output.directives.extend(metadata);
    if declared.is_empty() && modules.is_empty() && settings.delivery.is_none() {
        return Ok(());
    }
    let help = "`off` compiles no device code, for builds that link no program";
    if settings.env.is_off("GPUSTUB_DEVICE_CODE", help)? {
        let modules = modules.iter().map(|module| &module.library);
        for table in declared.iter().copied().chain(modules) {
            let cfg = libraries::cfg(&table.name.value);
            output.directives.push(cfg);
        }
        build_empty_declared(settings, output)?;
        return build_nothing(settings);
    }
    let link_archs: Vec<Arch> = manifest.link_archs.iter().map(|arch| arch.value).collect();
    let dir = settings.gpustub_dir()?;
    let target = settings.env.target()?;
    let context = Context {
        env: &settings.env,
        manifest: input.source_text(),
        package: input.path.parent().unwrap_or(Path::new("")),
        out: &dir,
        store: Store::find(&dir, &target.triple),
        disabled: &disabled,
        link_archs: &link_archs,
        stubs: stubs(input, output, "cudart"),
        hip_stubs: stubs(input, output, "hip"),
        tools: &|| settings.toolchain(&target, &dir),
        linker: &|| settings.linker(&target, &dir),
    };
    let directives = &mut output.directives;
    libraries::build_all(&context, &declared, &modules, directives)
        .and_then(|closure| match settings.delivery {
            Some(delivery) => final_link::link(&context, &closure, delivery, directives),
            None => Ok(()),
        })
        .map_err(|error| requested::explain(&settings.env, error))
}

/// The stubs of a runtime that the package's libraries call: none if it is built with the runtime itself.
fn stubs(input: &Input, output: &Output, runtime: &str) -> Stubs {
    let mut stubs = input.manifest.stubs.iter();
    let Some(stub) = stubs.find(|stub| stub.id.value == runtime) else {
        return Stubs::None;
    };
    if input.plan.linked.iter().any(|name| name == runtime) {
        return Stubs::None;
    }
    if !output.stubs.iter().any(|id| id == runtime) {
        return Stubs::External;
    }
    match &output.stub_library {
        Some(path) if stub.library_type == LibraryType::Shared => Stubs::Shared(path.clone()),
        _ => Stubs::Static,
    }
}
