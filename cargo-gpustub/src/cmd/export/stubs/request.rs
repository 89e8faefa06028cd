//! Libraries and header versions that the command line names, and their plan.

use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::library::Library;
use gpustub_core::manifest::Stub;
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
pub struct Request<'a> {
    /// Names; empty: those of `GpuStub.toml`.
    pub libraries: Vec<String>,
    /// `--header-version` options.
    pub header_version: Vec<FamilyVersion>,
    /// Package of the `GpuStub.toml`.
    pub cargo: &'a Selection,
}

impl Request<'_> {
    /// Whether gpustub knows all named libraries.
    pub fn is_shipped(&self) -> bool {
        let mut libraries = self.libraries.iter();
        !self.libraries.is_empty() && libraries.all(|name| Library::builtin(name).is_some())
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
        let given = shipped::header_versions(&libraries, &self.header_version)?;
        let without = libraries
            .iter()
            .zip(&given)
            .filter(|(_, given)| given.is_none());
        let added: Vec<_> = without
            .filter_map(|(library, _)| {
                let major = shipped::header_major(library, os, files.clone())?;
                Some(FamilyVersion {
                    family: Some(library.id.clone()),
                    version: major.to_string(),
                })
            })
            .collect();
        self.header_version.extend(added);
        Ok(())
    }

    /// Plans the named libraries, or those of a package, and returns all diagnostics.
    pub fn plan(&self, target: &Target) -> Result<(Plan, Vec<Diagnostic>, Sources)> {
        let is_shipped = |name: &String| Library::builtin(name).is_some();
        if !self.libraries.iter().all(is_shipped)
            && let Some((declared, written)) = declared_libraries(self)?
        {
            let (plan, found) = declared.plan(target, &declared.inputs);
            let is_added = |one: &Diagnostic| {
                let origin = one.origin.as_ref();
                origin.is_some_and(|o| o.file == declared.shown && o.span.start > written)
            };
            let (mut added, mut found): (Vec<_>, Vec<_>) = found.into_iter().partition(is_added);
            shipped::on_command_line(&mut added, &declared.manifest, target, add_options);
            found.extend(added);
            return Ok((plan, found, declared.sources()));
        }
        let versions = &self.header_version;
        if self.libraries.is_empty() {
            let declared = Declared::read_selected(self.cargo).map_err(or_library)?;
            if !versions.is_empty() {
                return Err(unused_header_version(&declared));
            }
            let (plan, found) = declared.plan(target, &declared.inputs);
            return Ok((plan, found, declared.sources()));
        }
        let (mut libraries, mut found) = shipped::look_up(&self.libraries);
        libraries.sort_unstable_by(|a, b| a.id.cmp(&b.id));
        libraries.dedup_by(|a, b| a.id == b.id);
        let headers = shipped::header_versions(&libraries, versions)?;
        let ids = libraries.iter().map(|library| library.id.as_str());
        let (manifest, more) = shipped::manifest(ids.zip(headers));
        found.extend(more);
        let (plan, more) = plan(&manifest, target, &Inputs::default());
        found.extend(more);
        shipped::on_command_line(&mut found, &manifest, target, add_options);
        Ok((plan, found, Sources::new()))
    }
}

/// Declarations of the named libraries, if `GpuStub.toml` has a table for each that gpustub does not
/// know, and the length of its text. A known library without a table gets one after this text, with the
/// options of the command line.
fn declared_libraries(options: &Request<'_>) -> Result<Option<(Declared, usize)>> {
    // Without the file, the error is about the name.
    let Ok(declared) = Declared::read_selected(options.cargo) else {
        return Ok(None);
    };
    let written = declared.text.len();
    if has_errors(&declared.diagnostics) {
        return Ok(Some((declared, written)));
    }
    let has_table = |id: &str| {
        declared
            .manifest
            .stubs
            .iter()
            .any(|stub| stub.id.value == id)
    };
    let without: Vec<String> = options
        .libraries
        .iter()
        .filter(|id| !has_table(id))
        .cloned()
        .collect();
    let (libraries, unknown) = shipped::look_up(&without);
    if !unknown.is_empty() {
        return Ok(None);
    }
    if libraries.is_empty() && !options.header_version.is_empty() {
        return Err(unused_header_version(&declared));
    }
    let headers = shipped::header_versions(&libraries, &options.header_version)?;
    let ids = libraries.iter().map(|library| library.id.as_str());
    let text = format!("{}\n{}", declared.text, shipped::tables(ids.zip(headers)));
    let mut declared = Declared::from_text(&declared.directory, text)?;
    let is_named = |stub: &Stub| options.libraries.contains(&stub.id.value);
    declared.manifest.stubs.retain(is_named);
    Ok(Some((declared, written)))
}

fn unused_header_version(declared: &Declared) -> Error {
    Error::new("`--header-version` is for libraries named on the command line, without a table")
        .help(format!("set `header-version` in {}", declared.shown))
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
