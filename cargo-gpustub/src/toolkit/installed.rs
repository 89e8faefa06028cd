//! Detects the version of a vendor's headers that a program is compiled against, from this machine and
//! the workspace.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::version::{HeaderVersion, Version};
use gpustub_workspace::display_path::slashes;
use gpustub_workspace::environment::variable;

use crate::dependencies::Dependency;

/// A version and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedVersion {
    /// The headers' version.
    pub version: HeaderVersion,
    /// Human-readable source: a file, or a crate and its feature.
    pub origin: String,
}

impl DetectedVersion {
    /// A release of headers; `None` if no table can declare it.
    pub fn release(version: Version, origin: String) -> Option<Self> {
        let version = HeaderVersion::parse(&version.to_string())?;
        Some(Self { version, origin })
    }

    /// `12.8 (/usr/local/cuda/include/cuda.h), 12.8 (feature …)`.
    pub fn listing(versions: &[Self]) -> String {
        let texts: Vec<String> = versions
            .iter()
            .map(|detected| format!("{} ({})", detected.version, detected.origin))
            .collect();
        texts.join(", ")
    }
}

/// Location of a family's toolkit, and the header that defines its version.
struct Family {
    /// Name in the libraries' manifests.
    name: &'static str,
    variables: &'static [&'static str],
    root: &'static str,
    header: &'static str,
    version: fn(&str) -> Option<Version>,
}

const FAMILIES: &[Family] = &[
    Family {
        name: "cuda",
        variables: &["CUDA_HOME", "CUDA_PATH"],
        root: "/usr/local/cuda",
        header: "include/cuda.h",
        version: |text| define(text, "CUDA_VERSION").and_then(Version::from_code),
    },
    Family {
        name: "rocm",
        variables: &["ROCM_PATH"],
        root: "/opt/rocm",
        header: "include/hip/hip_version.h",
        version: |text| {
            let major = define(text, "HIP_VERSION_MAJOR")?;
            Some(Version::new(major, define(text, "HIP_VERSION_MINOR")?))
        },
    },
];

/// Maximum number of bytes of a header: larger files are none.
const MAX_HEADER: usize = 16 << 20;

fn family(name: &str) -> Option<&'static Family> {
    FAMILIES.iter().find(|family| family.name == name)
}

/// The header that defines the version of a family, below a toolkit's directory.
pub fn header(family_name: &str) -> Option<&'static str> {
    family(family_name).map(|family| family.header)
}

/// The version that this header defines.
pub fn version_in(family_name: &str, header: &[u8]) -> Option<Version> {
    // Not UTF-8 in all releases.
    (family(family_name)?.version)(&String::from_utf8_lossy(header))
}

/// The toolkit of a family on this machine: from the first variable that is set, else from the default
/// directory.
pub fn installed(family_name: &str) -> Option<DetectedVersion> {
    let family = family(family_name)?;
    let root = family
        .variables
        .iter()
        .find_map(|name| variable(name))
        .map_or_else(|| PathBuf::from(family.root), PathBuf::from);
    let (version, file) = version(family, &root)?;
    DetectedVersion::release(version, slashes(&file))
}

/// Versions that features of binding crates name: `cuda-12080` of cudarc is 12.8.
pub fn binding(family: &str, crates: &[Dependency]) -> Vec<DetectedVersion> {
    if family != "cuda" {
        return Vec::new();
    }
    let mut versions = Vec::new();
    for binding in crates
        .iter()
        .filter(|dependency| dependency.name == "cudarc")
    {
        for feature in &binding.features {
            if let Some(number) = feature.strip_prefix("cuda-")
                && let Ok(code) = number.parse()
                && let Some(version) = Version::from_code(code)
            {
                let origin = format!("feature `{feature}` of {binding}");
                versions.extend(DetectedVersion::release(version, origin));
            }
        }
    }
    versions
}

/// Version of a toolkit: of the header, which a compiler reads, before `version.json` of CUDA's
/// installer.
fn version(family: &Family, root: &Path) -> Option<(Version, PathBuf)> {
    let header = root.join(family.header);
    if let Ok(bytes) = fs::read(&header)
        && bytes.len() < MAX_HEADER
        && let Some(version) = version_in(family.name, &bytes)
    {
        return Some((version, header));
    }
    let file = root.join("version.json");
    let json: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).ok()?).ok()?;
    let text = json.get(family.name)?.get("version")?.as_str()?;
    let mut parts = text.split('.').map(|part| part.parse().ok());
    Some((Version::new(parts.next()??, parts.next()??), file))
}

/// The number of `#define NAME number` in a header.
fn define(header: &str, name: &str) -> Option<u32> {
    header.lines().find_map(|line| {
        let mut words = line.trim_start().strip_prefix('#')?.split_whitespace();
        (words.next() == Some("define") && words.next() == Some(name))
            .then(|| words.next()?.trim_matches(['(', ')']).parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuda(root: &Path) -> Option<(Version, PathBuf)> {
        version(&FAMILIES[0], root)
    }

    #[test]
    fn reads_toolkits() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(cuda(root.path()), None);

        let json = root.path().join("version.json");
        fs::write(
            &json,
            r#"{"cuda": {"name": "CUDA SDK", "version": "12.6.3"}}"#,
        )
        .unwrap();
        assert_eq!(cuda(root.path()), Some((Version::new(12, 6), json)));

        let header = root.path().join("include/cuda.h");
        fs::create_dir_all(root.path().join("include/hip")).unwrap();
        fs::write(
            &header,
            b"/* \xff */\n#define CUDA_VERSION_X 1\n#define CUDA_VERSION 12080\n",
        )
        .unwrap();
        assert_eq!(cuda(root.path()), Some((Version::new(12, 8), header)));

        let header = root.path().join("include/hip/hip_version.h");
        fs::write(
            &header,
            "#define HIP_VERSION_MAJOR 6\n# define HIP_VERSION_MINOR 4\n",
        )
        .unwrap();
        assert_eq!(
            version(&FAMILIES[1], root.path()),
            Some((Version::new(6, 4), header))
        );
    }

    #[test]
    fn absurd_toolkits_are_none() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("include")).unwrap();
        for text in [
            "#define CUDA_VERSION",
            "#define CUDA_VERSION 0",
            "#define CUDA_VERSION -1",
        ] {
            fs::write(root.path().join("include/cuda.h"), text).unwrap();
            assert_eq!(cuda(root.path()), None, "{text}");
        }
        for text in [
            "",
            "{",
            "{}",
            r#"{"cuda": {"version": "new"}}"#,
            r#"{"cuda": 12}"#,
        ] {
            fs::write(root.path().join("version.json"), text).unwrap();
            assert_eq!(cuda(root.path()), None, "{text}");
        }
    }
}
