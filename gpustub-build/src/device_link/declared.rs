//! The libraries of relocatable CUDA code of a package, in its build script.

use std::path::Path;

use gpustub_core::manifest::LibraryType;

use super::{Context, Stubs, libraries, link, tell_off};
use crate::input::Input;
use crate::{Build, Directive, Error, Output};

impl Build {
    /// Builds the libraries of relocatable CUDA code.
    pub(crate) fn device_link(&self, input: &Input, output: &mut Output) -> Result<(), Error> {
        let manifest = &input.manifest;
        // For rustc, also where they are left out.
        for name in &manifest.device_link_names {
            let cfg = format!("cfg(gpustub_device_link, values({name:?}))");
            output.directives.push(Directive::CheckCfg(cfg));
        }
        let mut declared = Vec::new();
        let mut off = Vec::new();
        for library in &manifest.device_links {
            let features = &library.required_features;
            match features.first_missing(|feature| self.env.has_feature(feature)) {
                Some(feature) => off.push((library.name.value.as_str(), feature)),
                None => declared.push(library),
            }
        }
        output.directives.extend(tell_off(&self.env, &off));
        if declared.is_empty() && self.carrier.is_none() {
            return Ok(());
        }
        let dir = self.dir()?;
        let target = self.env.target()?;
        let context = Context {
            env: &self.env,
            manifest: input.written(),
            package: input.path.parent().unwrap_or(Path::new("")),
            out: &dir,
            off: &off,
            stubs: match manifest.stubs.iter().find(|s| s.id.value == "cudart") {
                None => Stubs::None,
                Some(_) if !output.stubs.iter().any(|id| id == "cudart") => Stubs::Elsewhere,
                Some(stub) => match &output.library {
                    Some(path) if stub.library_type == LibraryType::Shared => {
                        Stubs::Shared(path.clone())
                    }
                    _ => Stubs::Static,
                },
            },
            tools: &|| self.toolchain(&target, &dir),
            linker: &|| self.linker(&target, &dir),
        };
        let closure = libraries(&context, &declared, &mut output.directives)?;
        let Some(carrier) = self.carrier else {
            return Ok(());
        };
        link(&context, &closure, carrier, &mut output.directives)
    }
}
