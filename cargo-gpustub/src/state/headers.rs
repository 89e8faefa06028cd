//! Versions of headers that the workspace and this machine name.

use gpustub_core::library::Library;
use gpustub_core::manifest::{Spanned, Toolkit};
use gpustub_core::version::Version;
use gpustub_workspace::tables::FILE;

use crate::cli::AddToolkit;
use crate::dependencies::Dependency;
use crate::shipped::toolkit_family;
use crate::toolkit::installed::{self, Found};

/// Sources of header versions, beside the toolkits installed on this machine.
#[derive(Debug, Default)]
pub struct KnownHeaders {
    /// `cuda` and `hip` of `--toolkit`.
    pub given: [Option<Version>; 2],
    /// `[toolkit]` of the workspace.
    pub toolkit: Option<Spanned<Toolkit>>,
    /// Crates whose features may name a version.
    pub crates: Vec<Dependency>,
}

impl KnownHeaders {
    /// Releases that `--toolkit` gives.
    pub fn given(options: &AddToolkit) -> [Option<Version>; 2] {
        ["cuda", "hip"].map(|family| options.release(family).and_then(Version::parse))
    }

    /// Every version named for the headers of a library. Those of a toolkit do not concern a library
    /// that it does not contain.
    pub fn find(&self, library: &Library) -> Vec<Found> {
        let Some(family) = toolkit_family(library) else {
            return Vec::new();
        };
        let toolkit = self.toolkit(family);
        let toolkit = toolkit.or_else(|| installed::installed(family));
        let mut found: Vec<Found> = toolkit.into_iter().collect();
        found.extend(installed::binding(family, &self.crates));
        found
    }

    /// The header version, if all that were found are the same.
    pub fn agreed(found: &[Found]) -> Option<Version> {
        let first = found.first()?.version;
        let agree = found.iter().all(|other| other.version == first);
        agree.then_some(first)
    }

    /// Release that build scripts of the workspace see as the installed toolkit.
    fn toolkit(&self, family: &str) -> Option<Found> {
        let index = ["cuda", "rocm"].iter().position(|one| *one == family)?;
        if let Some(version) = self.given[index] {
            let origin = "`--toolkit`".to_owned();
            return Some(Found { version, origin });
        }
        let toolkit = &self.toolkit.as_ref()?.value;
        let release = [&toolkit.cuda, &toolkit.hip][index].as_ref()?;
        Some(Found {
            version: release.value,
            origin: format!("`[toolkit]` of {FILE}"),
        })
    }
}
