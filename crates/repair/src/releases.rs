//! Header versions of a stub library: those that the replaced libraries and the imported names allow.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;

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

/// Header version of a library whose functions are imported. `majors`: those that the replaced libraries allow. `system` is
/// a key of the load names.
pub fn header(
    library: &Library,
    system: &str,
    functions: &BTreeSet<&str>,
    majors: Option<&BTreeSet<u32>>,
) -> Header {
    // The majors of a library without a toolkit or ABI table are of no meaning.
    if library.family.is_empty() && library.abi.headers().is_empty() {
        return Header::Any;
    }
    let mut majors: Vec<u32> = match majors {
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
        return Header::Version(major.to_string());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(id: &str, functions: &[&str], majors: &[u32]) -> Header {
        let library = Library::builtin(id).unwrap();
        let majors: BTreeSet<u32> = majors.iter().copied().collect();
        let majors = Some(&majors).filter(|majors| !majors.is_empty());
        header(
            library,
            "linux",
            &functions.iter().copied().collect(),
            majors,
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
    fn common_majors() {
        assert_eq!(
            common(&cuda(&[11, 12]), &cuda(&[12, 13])),
            Some(cuda(&[12]))
        );
        assert_eq!(common(&cuda(&[12]), &cuda(&[13])), None);
        assert_eq!(common(&cuda(&[12]), &Majors::new()), Some(cuda(&[12])));
    }
}
