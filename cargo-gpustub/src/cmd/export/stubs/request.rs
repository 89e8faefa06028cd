//! Libraries and header versions that the command line names, and their plan.

use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::library::Library;
use gpustub_core::plan::{Inputs, Plan};
use gpustub_core::planner::plan;
use gpustub_core::target::Target;
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::report::Sources;
use gpustub_workspace::selection::Selection;
use gpustub_workspace::tables::Declared;
use gpustub_workspace::workspace::NO_PACKAGE;

use crate::cli::FamilyVersion;
use crate::shipped;

/// Libraries of one plan.
pub struct StubRequest<'a> {
    /// Names; empty: those of `GpuStub.toml`.
    pub libraries: Vec<String>,
    /// `--header-version` options.
    pub header_version: Vec<FamilyVersion>,
    /// Package of the `GpuStub.toml`.
    pub cargo: &'a Selection,
}

impl StubRequest<'_> {
    /// Whether gpustub knows all named libraries.
    pub fn is_shipped(&self) -> bool {
        !self.libraries.is_empty() && self.libraries.iter().all(|name| is_shipped(name))
    }

    /// Adds header versions that no option gives: majors of the file names by which programs need the libraries.
    pub fn add_header_versions<'f>(
        &mut self,
        os: &str,
        files: impl IntoIterator<Item = &'f str> + Clone,
    ) -> Result<()> {
        if !self.is_shipped() {
            return Ok(());
        }
        let (libraries, _) = shipped::look_up(&self.libraries);
        let mut added = Vec::new();
        let versions = shipped::header_versions(&libraries, &self.header_version)?;
        for (library, version) in libraries.iter().zip(versions) {
            if version.is_none()
                && let Some(major) = shipped::header_major(library, os, files.clone())
            {
                added.push(FamilyVersion {
                    family: Some(library.id.clone()),
                    version: major.to_string(),
                });
            }
        }
        self.header_version.extend(added);
        Ok(())
    }

    /// Plans the named libraries, or those of a package, and returns all diagnostics.
    pub fn plan(&self, target: &Target) -> Result<(Plan, Vec<Diagnostic>, Sources)> {
        if self.libraries.is_empty() {
            let declared = Declared::read_selected(self.cargo).map_err(or_library)?;
            if !self.header_version.is_empty() {
                return Err(unused_header_version(&declared));
            }
            let (plan, diagnostics) = declared.plan(target, &declared.inputs);
            return Ok((plan, diagnostics, declared.sources()));
        }
        if !self.is_shipped()
            && let Some((declared, declared_length)) = self.declared_libraries()?
        {
            let (plan, diagnostics) = declared.plan(target, &declared.inputs);
            let (mut added, mut diagnostics): (Vec<_>, Vec<_>) =
                diagnostics.into_iter().partition(|diagnostic| {
                    diagnostic.origin.as_ref().is_some_and(|origin| {
                        origin.file == declared.display_path && origin.span.start > declared_length
                    })
                });
            shipped::on_command_line(&mut added, &declared.manifest, target, add_options);
            diagnostics.extend(added);
            return Ok((plan, diagnostics, declared.sources()));
        }
        let (mut libraries, mut diagnostics) = shipped::look_up(&self.libraries);
        libraries.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        libraries.dedup_by(|a, b| a.id == b.id);
        let headers = shipped::header_versions(&libraries, &self.header_version)?;
        let ids = libraries.iter().map(|library| library.id.as_str());
        let (manifest, manifest_diagnostics) = shipped::manifest(ids.zip(headers));
        diagnostics.extend(manifest_diagnostics);
        let (plan, plan_diagnostics) = plan(&manifest, target, &Inputs::default());
        diagnostics.extend(plan_diagnostics);
        shipped::on_command_line(&mut diagnostics, &manifest, target, add_options);
        Ok((plan, diagnostics, Sources::new()))
    }

    /// Declarations of the named libraries, if `GpuStub.toml` has a table for each that gpustub does not
    /// know, and the length of its text. A known library without a table gets one after this text, with the
    /// options of the command line.
    fn declared_libraries(&self) -> Result<Option<(Declared, usize)>> {
        // Without the file, the error is about the name.
        let Ok(declared) = Declared::read_selected(self.cargo) else {
            return Ok(None);
        };
        let declared_length = declared.text.len();
        if has_errors(&declared.diagnostics) {
            return Ok(Some((declared, declared_length)));
        }
        let stubs = &declared.manifest.stubs;
        let without_table: Vec<String> = self
            .libraries
            .iter()
            .filter(|id| stubs.iter().all(|stub| stub.id.value != **id))
            .cloned()
            .collect();
        let (libraries, unknown) = shipped::look_up(&without_table);
        if !unknown.is_empty() {
            return Ok(None);
        }
        if libraries.is_empty() && !self.header_version.is_empty() {
            return Err(unused_header_version(&declared));
        }
        let headers = shipped::header_versions(&libraries, &self.header_version)?;
        let ids = libraries.iter().map(|library| library.id.as_str());
        let text = format!("{}\n{}", declared.text, shipped::tables(ids.zip(headers)));
        let mut declared = Declared::from_text(&declared.directory, text)?;
        declared
            .manifest
            .stubs
            .retain(|stub| self.libraries.contains(&stub.id.value));
        Ok(Some((declared, declared_length)))
    }
}

/// Whether gpustub knows a library.
fn is_shipped(name: &str) -> bool {
    Library::builtin(name).is_some()
}

fn unused_header_version(declared: &Declared) -> Error {
    Error::new("`--header-version` is for libraries named on the command line, without a table")
        .help(format!("set `header-version` in {}", declared.display_path))
}

fn add_options(options: &str) -> String {
    format!("add `{options}`")
}

/// Outside of a package, libraries have to be named.
fn or_library(mut error: Error) -> Error {
    if error.help.as_deref() == Some(NO_PACKAGE) {
        error.help = Some(
            "name libraries, such as `cargo gpustub export stubs cudart --out-dir stubs`, or run this \
             inside a package with a GpuStub.toml"
                .to_owned(),
        );
    }
    error
}
