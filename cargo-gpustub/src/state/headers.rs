//! Versions of headers that the workspace and this machine name.

use gpustub_core::library::Library;
use gpustub_core::manifest::{Spanned, Toolkit};
use gpustub_core::version::Version;
use gpustub_workspace::tables::FILE;

use crate::cli::AddToolkit;
use crate::dependencies::Dependency;
use crate::shipped::toolkit_family;
use crate::toolkit::installed::{self, DetectedVersion};

/// Sources of header versions, beside the toolkits installed on this machine.
#[derive(Debug, Default)]
pub struct KnownHeaders {
    /// `cuda` and `hip` of `--toolkit`.
    pub toolkit_option: [Option<Version>; 2],
    /// `[toolkit]` of the workspace.
    pub toolkit_table: Option<Spanned<Toolkit>>,
    /// Crates whose features may name a version.
    pub crates: Vec<Dependency>,
}

impl KnownHeaders {
    /// Releases that `--toolkit` gives.
    pub fn toolkit_option(options: &AddToolkit) -> [Option<Version>; 2] {
        ["cuda", "hip"].map(|family| options.release(family).and_then(Version::parse))
    }

    /// Every version named for the headers of a library. Those of a toolkit do not concern a library
    /// that it does not contain.
    pub fn find(&self, library: &Library) -> Vec<DetectedVersion> {
        let Some(family) = toolkit_family(library) else {
            return Vec::new();
        };
        let mut versions = installed::binding(family, &self.crates);
        let toolkit = self
            .toolkit(family)
            .or_else(|| installed::installed(family));
        if let Some(toolkit) = toolkit {
            versions.insert(0, toolkit);
        }
        versions
    }

    /// The header version, if all detected versions are the same.
    pub fn agreed(versions: &[DetectedVersion]) -> Option<Version> {
        let first = versions.first()?.version;
        versions
            .iter()
            .all(|detected| detected.version == first)
            .then_some(first)
    }

    /// Release that build scripts of the workspace see as the installed toolkit.
    fn toolkit(&self, family: &str) -> Option<DetectedVersion> {
        let index = ["cuda", "rocm"].iter().position(|name| *name == family)?;
        if let Some(version) = self.toolkit_option[index] {
            let origin = "`--toolkit`".to_owned();
            return Some(DetectedVersion { version, origin });
        }
        let table = &self.toolkit_table.as_ref()?.value;
        let release = [&table.cuda, &table.hip][index].as_ref()?;
        Some(DetectedVersion {
            version: release.value,
            origin: format!("`[toolkit]` of {FILE}"),
        })
    }
}
