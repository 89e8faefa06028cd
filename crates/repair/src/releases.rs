//! Header versions of a stub library: those that the replaced libraries and the imported names allow.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_core::library::Library;
use gpustub_core::version::HeaderVersion;

use crate::libraries::intersection;

/// Owner of a library's majors: its toolkit, or the library itself.
pub fn header_key(library: &'static Library) -> &'static str {
    if library.independent_major || library.family.is_empty() {
        &library.id
    } else {
        &library.family
    }
}

/// Toolkit majors by owner.
pub type Majors = BTreeMap<&'static str, BTreeSet<u32>>;

/// The majors that both allow; `None`: there is an owner without a common one.
pub fn common(a: &Majors, b: &Majors) -> Option<Majors> {
    let mut all = a.clone();
    for (key, majors) in b {
        let common = intersection(all.remove(key), Some(majors.clone()))?;
        if common.is_empty() {
            return None;
        }
        all.insert(key, common);
    }
    Some(all)
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

/// Header version of a library whose functions are imported. `majors`: those that the replaced libraries allow.
pub fn header(
    library: &Library,
    functions: &BTreeSet<&str>,
    majors: Option<&BTreeSet<u32>>,
) -> Header {
    let known = library.header_majors("linux");
    let mut majors: Vec<u32> = match majors {
        Some(majors) => majors.iter().copied().collect(),
        None => known,
    };
    if majors.len() > 1 {
        // A name identifies the headers of its callers.
        let fits = |major: &u32| {
            let version = HeaderVersion::parse(&major.to_string());
            version.is_some_and(|version| {
                functions
                    .iter()
                    .all(|name| library.only_in(name, version).is_none())
            })
        };
        majors.retain(fits);
    }
    if let [major] = majors[..] {
        return Header::Version(major.to_string());
    }
    let depends = functions
        .iter()
        .filter(|name| library.abi.depends_on_headers(name));
    let depends: Vec<String> = depends.map(|name| (*name).to_owned()).collect();
    if depends.is_empty() {
        Header::Any
    } else {
        Header::Unknown(depends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derived(id: &str, functions: &[&str], majors: &[u32]) -> Header {
        let library = Library::builtin(id).unwrap();
        let majors: BTreeSet<u32> = majors.iter().copied().collect();
        let majors = Some(&majors).filter(|majors| !majors.is_empty());
        header(library, &functions.iter().copied().collect(), majors)
    }

    #[test]
    fn header_follows_from_majors_and_names() {
        let version = |text: &str| Header::Version(text.to_owned());
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
        let of = |majors: &[u32]| Majors::from([("cuda", majors.iter().copied().collect())]);
        assert_eq!(common(&of(&[11, 12]), &of(&[12, 13])), Some(of(&[12])));
        assert_eq!(common(&of(&[12]), &of(&[13])), None);
        assert_eq!(common(&of(&[12]), &Majors::new()), Some(of(&[12])));
    }
}
