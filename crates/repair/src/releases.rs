//! Header versions of a stub library: those that the replaced libraries and the imported names allow.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};

use crate::libraries::intersection;

/// Owner of a library's majors: its toolkit, or the library itself.
pub fn header_key(library: &'static Library) -> &'static str {
    library.toolkit_family().unwrap_or(&library.id)
}

/// Toolkit majors by owner.
pub type Majors = BTreeMap<&'static str, BTreeSet<u32>>;

/// The majors that both allow; `None`: there is an owner without a common one.
pub fn common(a: &Majors, b: &Majors) -> Option<Majors> {
    let mut common = a.clone();
    for (key, majors) in b {
        let majors = intersection(common.remove(key), Some(majors.clone()))?;
        if majors.is_empty() {
            return None;
        }
        common.insert(key, majors);
    }
    Some(common)
}

/// Header version for a library's stubs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    /// A version, as `header-version` has it.
    Version(String),
    /// No imported function depends on it.
    Any,
    /// Several majors are possible, and these functions depend on it.
    Unknown(Vec<String>),
}

/// Header version of a library whose functions are imported. `allowed`: the majors that the replaced libraries allow.
/// `system` is a key of the load names.
pub fn header(
    library: &'static Library,
    system: &str,
    functions: &BTreeSet<&str>,
    allowed: &Majors,
) -> Header {
    // The majors of a library without a toolkit or ABI table are of no meaning.
    if library.family.is_empty() && library.abi.headers().is_empty() {
        return Header::Any;
    }
    let mut majors: Vec<u32> = match allowed.get(header_key(library)) {
        Some(majors) => majors.iter().copied().collect(),
        None => library.header_majors(system),
    };
    if majors.len() > 1 {
        // A name identifies the headers of its callers.
        majors.retain(|major| {
            HeaderVersion::parse(&major.to_string()).is_some_and(|version| {
                functions
                    .iter()
                    .all(|name| library.only_in(name, version).is_none())
            })
        });
    }
    if let [major] = majors[..] {
        let release = release(library, functions, major, allowed);
        return Header::Version(release.map_or(major.to_string(), |release| release.to_string()));
    }
    let dependent: Vec<String> = functions
        .iter()
        .filter(|name| library.abi.depends_on_headers(name))
        .map(|name| (*name).to_owned())
        .collect();
    if dependent.is_empty() {
        Header::Any
    } else {
        Header::Unknown(dependent)
    }
}

/// Oldest release of a library's own major whose headers an image may have, if some of the functions differ within the major,
/// and none within the releases that its imports and its toolkit allow.
fn release(
    library: &Library,
    functions: &BTreeSet<&str>,
    major: u32,
    allowed: &Majors,
) -> Option<Version> {
    if library.toolkit_family().is_some() {
        return None;
    }
    let is_changed = |old: Version, new: Version| {
        (functions.iter()).any(|name| library.abi.is_changed(name, old, new))
    };
    let toolkits = allowed.get(library.family.as_str());
    let oldest = toolkits.and_then(|toolkits| oldest_headers(library, toolkits));
    let headers = library.abi.headers().iter().copied();
    let all: Vec<Version> = headers.filter(|version| version.major == major).collect();
    let mut releases = all.iter().copied().filter(|release| {
        let headers = HeaderVersion::parse(&release.to_string());
        oldest.is_none_or(|oldest| *release >= oldest)
            && headers.is_some_and(|headers| {
                (functions.iter()).all(|name| library.only_in(name, headers).is_none())
            })
    });
    let first = releases.next()?;
    let is_certain = !releases.any(|release| is_changed(first, release));
    (is_certain && all.iter().any(|release| is_changed(first, *release))).then_some(first)
}

/// Oldest headers for any of these majors of the toolkit, if all have some.
fn oldest_headers(library: &Library, toolkits: &BTreeSet<u32>) -> Option<Version> {
    let oldest = |toolkit: &u32| {
        let mut versions = library.oldest_headers.iter();
        let (_, version) = versions.find(|(major, _)| major == toolkit)?;
        Some(*version)
    };
    let versions: Option<Vec<Version>> = toolkits.iter().map(oldest).collect();
    versions?.into_iter().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(id: &str, functions: &[&str], majors: &[u32]) -> Header {
        let library = Library::builtin(id).unwrap();
        let mut allowed = cuda(majors);
        allowed.retain(|_, majors| !majors.is_empty());
        header(
            library,
            "linux",
            &functions.iter().copied().collect(),
            &allowed,
        )
    }

    fn version(text: &str) -> Header {
        Header::Version(text.to_owned())
    }

    fn cuda(majors: &[u32]) -> Majors {
        Majors::from([("cuda", majors.iter().copied().collect())])
    }

    #[test]
    fn header_follows_from_majors_and_names() {
        assert_eq!(derived("cudart", &["cudaMalloc"], &[12]), version("12"));
        // Exported by 12 only.
        assert_eq!(
            derived("cudart", &["cudaGetDeviceProperties_v2"], &[]),
            version("12")
        );
        assert_eq!(derived("cuda", &["cuInit"], &[]), Header::Any);
        let unknown = Header::Unknown(vec!["cudaGetDeviceProperties".into()]);
        assert_eq!(
            derived("cudart", &["cudaGetDeviceProperties"], &[]),
            unknown
        );
    }

    #[test]
    fn release_follows_from_names_and_toolkit() {
        let init = "cusparseLtInit";
        assert_eq!(derived("cusparselt", &[init], &[]), version("0"));
        assert_eq!(derived("cusparselt", &[init], &[12]), version("0"));
        assert_eq!(derived("cusparselt", &[init], &[13]), version("0.8"));
        assert_eq!(derived("cusparselt", &[init], &[12, 13]), version("0"));
        // New in 0.8.
        let names = [init, "cusparseLtMatmulAlgSelectionDestroy"];
        assert_eq!(derived("cusparselt", &names, &[12]), version("0.8"));
        // The same in all releases.
        let same = ["cusparseLtGetErrorName"];
        assert_eq!(derived("cusparselt", &same, &[13]), version("0"));
    }

    #[test]
    fn common_majors() {
        assert_eq!(
            common(&cuda(&[11, 12]), &cuda(&[12, 13])),
            Some(cuda(&[12]))
        );
        assert_eq!(common(&cuda(&[12]), &cuda(&[13])), None);
        assert_eq!(common(&cuda(&[12]), &Majors::new()), Some(cuda(&[12])));
    }
}
