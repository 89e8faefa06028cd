//! Check of a program's declared headers against the functions that it imports.
//!
//! Headers map names of sources to exported ones by macros (`cuCtxCreate` to `cuCtxCreate_v4` from
//! 13.0 on), and declare functions that older ones do not. So a name identifies its headers: a name
//! in no header of the declared version comes from other headers, or `header-version` is wrong.
//!
//! The check reports only certain mismatches. Unknown names, names that no header declares, and
//! names that a version between two recorded ones may have had are not reported.

use std::fmt;

use crate::diag::{Diagnostic, HEADER_VERSION_MISMATCH, listing};
use crate::library::Library;
use crate::version::{HeaderVersion, Version};

/// Recorded versions that have a name: from the first to the last of them.
#[cfg_attr(feature = "tools", derive(Debug))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct VersionSpan {
    /// First version; `None`: already the first recorded one.
    pub since: Option<Version>,
    /// Last version; `None`: also the last recorded one.
    pub until: Option<Version>,
}

/// `12.5 and newer`, `12.0 to 12.9`, `11.8 and older`.
impl fmt::Display for VersionSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.since, self.until) {
            (Some(since), Some(until)) if since == until => write!(f, "{since}"),
            (Some(since), Some(until)) => write!(f, "{since} to {until}"),
            (Some(since), None) => write!(f, "{since} and newer"),
            (None, Some(until)) => write!(f, "{until} and older"),
            (None, None) => f.write_str("every version"),
        }
    }
}

impl Library {
    /// Versions whose headers have an imported name, if those of the declared version do not;
    /// `None`: they do, or may.
    pub fn only_in(&self, name: &str, header: HeaderVersion) -> Option<VersionSpan> {
        // Names called by compilers, exported for sister libraries, or otherwise undeclared.
        if name.starts_with('_') || self.abi.is_undeclared(name) {
            return None;
        }
        if self.abi.contains(name) {
            return only(
                self.abi.headers(),
                |version| self.abi.is_exported_in(name, version),
                header,
            );
        }
        let symbols = self.symbols.lookup(name);
        only(
            &self.symbols.releases,
            |version| symbols.iter().any(|symbol| symbol.is_in(version)),
            header,
        )
    }
}

/// Warns that headers of the declared version lack these functions, which other versions have.
pub fn wrong_header(
    library: &str,
    header: HeaderVersion,
    functions: &[(VersionSpan, Vec<&str>)],
) -> Diagnostic {
    let mut parts = Vec::new();
    for (only, names) in functions {
        parts.push(format!("{}: only those of {only} do", listing(names)));
    }
    let message = format!(
        "headers of `{library}` {header} do not have {}",
        parts.join("; nor ")
    );
    Diagnostic::warning(&HEADER_VERSION_MISMATCH, message)
        .help("set `header-version` to the version that the whole program is compiled against")
}

/// `recorded`: versions, ascending; `has`: whether one of them has the name.
fn only(
    recorded: &[Version],
    has: impl Fn(Version) -> bool,
    header: HeaderVersion,
) -> Option<VersionSpan> {
    let first = recorded.iter().position(|version| has(*version))?;
    let last = recorded.iter().rposition(|version| has(*version))?;
    (!may_have(recorded, &has, header)).then(|| VersionSpan {
        since: (first > 0).then(|| recorded[first]),
        until: (last + 1 < recorded.len()).then(|| recorded[last]),
    })
}

/// Within a major, names come but do not go: programs that were linked before must still start.
fn may_have(recorded: &[Version], has: impl Fn(Version) -> bool, header: HeaderVersion) -> bool {
    let start = recorded.partition_point(|version| *version < header.from);
    let end = recorded.partition_point(|version| *version < header.below);
    if recorded[start..end].iter().any(|version| has(*version)) {
        return true;
    }
    let next = recorded.get(end).copied();
    if start == end {
        return recorded[..start].last().copied().is_some_and(&has) || next.is_some_and(&has);
    }
    let is_single = header.below.major == header.from.major;
    // A minor version between the recorded ones and the next major may have added it.
    let is_complete = is_single || next.is_none_or(|next| next.minor == 0);
    !is_complete && next.is_some_and(&has)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result for a real name, with headers of a version.
    fn only_in(id: &str, name: &str, header: &str) -> String {
        let library = Library::builtin(id).unwrap();
        let only = library.only_in(name, HeaderVersion::parse(header).unwrap());
        only.map_or("fits".to_owned(), |only| only.to_string())
    }

    #[test]
    fn names_identify_their_headers() {
        for (id, name, header, expected) in [
            ("cuda", "cuCtxCreate_v4", "11.8", "12.5 and newer"),
            ("cuda", "cuCtxCreate_v4", "12.4", "12.5 and newer"),
            ("cuda", "cuCtxCreate_v4", "12.5", "fits"),
            ("cuda", "cuCtxCreate_v4", "12", "fits"),
            ("cuda", "cuCtxCreate_v4", "11", "12.5 and newer"),
            // 13 still exports it, and bindings may declare it themselves.
            ("cuda", "cuCtxCreate_v2", "13", "fits"),
            ("cuda", "cuGetProcAddress_v2", "11.8", "12.0 and newer"),
            // 12.7 was never recorded: it may have the additions of 12.8.
            ("cuda", "cuEventElapsedTime_v2", "12.7", "fits"),
            ("cuda", "cuEventElapsedTime_v2", "12.6", "12.8 and newer"),
            (
                "cudart",
                "cudaGetDeviceProperties_v2",
                "11.8",
                "12.0 to 12.9",
            ),
            ("cudart", "cudaGetDeviceProperties_v2", "12", "fits"),
            ("cudart", "cudaGetDeviceProperties_v2", "13", "12.0 to 12.9"),
            (
                "cudart",
                "cudaGetDeviceProperties_v2",
                "13.0",
                "12.0 to 12.9",
            ),
            ("cudart", "cudaGetDeviceProperties", "11.8", "fits"),
            (
                "cudart",
                "cudaGraphAddDependencies_v2",
                "13",
                "12.3 to 12.9",
            ),
            ("cudart", "cudaGraphAddDependencies_v2", "12", "fits"),
            (
                "cudart",
                "cudaGraphAddDependencies_v2",
                "12.2",
                "12.3 to 12.9",
            ),
            ("cudart", "cudaThreadExit", "13", "12.9 and older"),
            // Decided by the lists of exports.
            ("cudart", "cudaBindTexture", "11.8", "fits"),
            ("cudart", "cudaBindTexture", "12", "11.8 and older"),
            ("cudart", "cudaBindTexture", "13", "11.8 and older"),
            ("cudart", "cudaMalloc", "10.2", "fits"),
            // Unknown, or declared by no header.
            ("cudart", "cudaNoSuchFunction", "12", "fits"),
            ("cudart", "__cudaLaunchKernel", "11.8", "fits"),
            ("cudart", "cudaProfilerInitialize", "13", "fits"),
            ("cudart", "malloc", "12", "fits"),
            ("nvjitlink", "__nvJitLinkAddData_12_0", "13", "fits"),
            ("nvrtc", "nvrtcGetCUBIN", "11.8", "fits"),
            ("nvrtc", "nvrtcGetNVVM", "13", "12.9 and older"),
            ("nvrtc", "nvrtcGetPCHHeapSize", "11.8", "12.8 and newer"),
            ("nvrtc", "nvrtcGetPCHHeapSize", "12", "fits"),
            ("hip", "hipGetDevicePropertiesR0600", "5.7", "6.4 and newer"),
            ("hip", "hipGetDevicePropertiesR0600", "6", "fits"),
            ("hip", "hipGetDeviceProperties", "5", "fits"),
        ] {
            assert_eq!(only_in(id, name, header), expected, "{id} {name} {header}");
        }
    }

    #[test]
    fn uncertain_names_are_not_reported() {
        let recorded: Vec<Version> = ["5.2", "5.7", "6.4", "7.0", "7.2"]
            .iter()
            .map(|text| Version::parse(text).unwrap())
            .collect();
        for (since, until, header, expected) in [
            (1, 4, "5", true),
            (1, 4, "5.2", false),
            (1, 4, "5.5", true),
            // Recorded since 6.4: 6.0 may have had it, and a late 5 as well.
            (2, 4, "6", true),
            (2, 4, "6.0", true),
            (2, 4, "5", true),
            (2, 4, "5.7", false),
            (2, 4, "5.1", false),
            // 7.0 is the first of its major: no 6 had it.
            (3, 4, "6", false),
            (3, 4, "6.4", false),
            (3, 4, "6.9", true),
            (4, 4, "7.0", false),
            (4, 4, "7", true),
            (4, 4, "8", true),
            // Absent from 6.4 on: 6.0 may have had it, 7 not.
            (0, 1, "6.0", true),
            (0, 1, "6.4", false),
            (0, 1, "6", false),
            (0, 1, "7", false),
            (0, 1, "8", false),
            (0, 1, "4", true),
            (1, 1, "4", false),
        ] {
            let versions = &recorded[since..=until];
            assert_eq!(
                may_have(
                    &recorded,
                    |version| versions.contains(&version),
                    HeaderVersion::parse(header).unwrap()
                ),
                expected,
                "{since} {until} {header}"
            );
        }
    }
}
