//! Versions of headers that the workspace and this machine name.

use std::collections::BTreeMap;

use gpustub_core::library::Library;
use gpustub_core::manifest::{Spanned, Toolkit};
use gpustub_core::version::{HeaderVersion, Version};
use gpustub_workspace::tables::{Declared, FILE};

use crate::cli::AddToolkit;
use crate::dependencies::Dependency;
use crate::toolkit::installed::{self, DetectedVersion};

/// Header versions that files declare for libraries of toolkits, by family.
pub type DeclaredHeaders = BTreeMap<String, Vec<DetectedVersion>>;

/// Header versions that these files declare.
pub fn declared_headers<'a>(files: impl IntoIterator<Item = &'a Declared>) -> DeclaredHeaders {
    let mut headers = DeclaredHeaders::new();
    for file in files {
        for stub in &file.manifest.stubs {
            let id = &stub.id.value;
            let family = Library::builtin(id).and_then(Library::toolkit_family);
            let (Some(family), Some(version)) = (family, stub.header_version()) else {
                continue;
            };
            let versions = headers.entry(family.to_owned()).or_default();
            if versions.iter().all(|known| known.version != version) {
                let origin = format!("`[stub.{id}]` of {}", file.display_path);
                versions.push(DetectedVersion { version, origin });
            }
        }
    }
    headers
}

/// Sources of header versions, beside the toolkits installed on this machine.
#[derive(Debug, Default)]
pub struct KnownHeaders {
    /// `cuda` and `hip` of `--toolkit`.
    pub toolkit_option: [Option<Version>; 2],
    /// Versions that the package's own file declares, then those of the other members.
    pub declared: [DeclaredHeaders; 2],
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
    /// that it does not contain. Tables of the same toolkit come before crates and installed files, as stubs of one
    /// image have headers of one version.
    pub fn find(&self, library: &Library) -> Vec<DetectedVersion> {
        let Some(family) = library.toolkit_family() else {
            return Vec::new();
        };
        let option = self.option(family);
        let mut declared = self.declared.iter();
        if option.is_none()
            && let Some(versions) = declared.find_map(|headers| headers.get(family))
        {
            return versions.clone();
        }
        let mut versions = installed::binding(family, &self.crates);
        let toolkit = option
            .or_else(|| self.table(family))
            .or_else(|| installed::installed(family));
        if let Some(toolkit) = toolkit {
            versions.insert(0, toolkit);
        }
        versions
    }

    /// The header version, if all detected versions are the same.
    pub fn agreed(versions: &[DetectedVersion]) -> Option<HeaderVersion> {
        let first = versions.first()?.version;
        versions
            .iter()
            .all(|detected| detected.version == first)
            .then_some(first)
    }

    /// Release that `--toolkit` gives.
    fn option(&self, family: &str) -> Option<DetectedVersion> {
        let version = self.toolkit_option[index(family)?]?;
        DetectedVersion::release(version, "`--toolkit`".to_owned())
    }

    /// Release that build scripts of the workspace see as the installed toolkit.
    fn table(&self, family: &str) -> Option<DetectedVersion> {
        let table = &self.toolkit_table.as_ref()?.value;
        let release = [&table.cuda, &table.hip][index(family)?].as_ref()?;
        DetectedVersion::release(release.value, format!("`[toolkit]` of {FILE}"))
    }
}

/// Position of a family among `cuda` and `hip`.
fn index(family: &str) -> Option<usize> {
    ["cuda", "rocm"].iter().position(|name| *name == family)
}
