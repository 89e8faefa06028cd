//! Stub libraries: sources, and their compilation.

use std::path::Path;

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{Diagnostic, has_errors, listing};
use gpustub_core::plan::{Inputs, plan};
use gpustub_core::sources::{SourceSet, render_for_c};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::Toolchain;
use gpustub_engine::write_sources;
use gpustub_repair::StubPlan;
use gpustub_workspace::error::Result;
use gpustub_workspace::status_line::StatusLine;
use gpustub_workspace::workspace::{host_triple, target};

use crate::compile::{engine_error, scratch};
use crate::shipped;

/// Sources of a stub library.
pub struct Sources {
    /// File name and soname.
    pub file: String,
    target: Target,
    files: SourceSet,
    exports: ByName<Vec<String>>,
}

/// Generates the sources of a stub library, or returns the reason why there can be none.
pub fn sources(stub: &StubPlan) -> Result<std::result::Result<Sources, String>> {
    let target = target(Some(&format!("{}-unknown-linux-gnu", stub.machine)))?;
    let libraries = stub.libraries.iter();
    let ids = libraries.map(|one| (one.library.id.as_str(), one.header.as_deref()));
    let (manifest, mut found) = shipped::manifest(ids);
    let (mut plan, more) = plan(&manifest, &target, &Inputs::default());
    found.extend(more);
    if has_errors(&found) {
        return Ok(Err(found
            .iter()
            .map(Diagnostic::to_string)
            .collect::<Vec<_>>()
            .join("; ")));
    }
    let mut exports: ByName<Vec<String>> = ByName::new();
    let mut missing = Vec::new();
    for one in &stub.libraries {
        let own = plan
            .libraries
            .iter_mut()
            .find(|library| library.manifest.id == one.library.id);
        let Some(own) = own else { continue };
        own.functions
            .to_mut()
            .retain(|function| one.exports.contains_key(&function.name));
        for (name, node) in &one.exports {
            if !own.functions.iter().any(|function| function.name == *name) {
                missing.push(name.as_str());
            }
            exports.get_or_default(node).push(name.clone());
        }
    }
    if !missing.is_empty() {
        let names = listing(&missing);
        return Ok(Err(format!(
            "imports functions for which there are no stubs: {names}"
        )));
    }
    Ok(Ok(Sources {
        file: stub.file.clone(),
        target,
        files: render_for_c(&plan),
        exports,
    }))
}

/// Compiles stub libraries.
pub fn compile_all(stubs: &[Sources], status: &StatusLine) -> Result<Vec<Vec<u8>>> {
    let compile = |stub: &Sources| {
        status.show(|| stub.file.clone());
        stub.compile()
    };
    stubs.iter().map(compile).collect()
}

impl Sources {
    fn compile(&self) -> Result<Vec<u8>> {
        let scratch = scratch()?;
        let directory: &Path = scratch.path();
        write_sources(directory, &self.files).map_err(engine_error)?;
        let tools = Toolchain::find(&self.target, &host_triple(), directory, None, None)
            .map_err(engine_error)?;
        let library = directory.join(&self.file);
        tools
            .stub_library(directory, &library, &self.exports)
            .map_err(engine_error)
    }
}
