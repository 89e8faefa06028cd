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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Only {
    /// First version; `None`: already the first recorded one.
    pub since: Option<Version>,
    /// Last version; `None`: also the last recorded one.
    pub until: Option<Version>,
}

/// `12.5 and newer`, `12.0 to 12.9`, `11.8 and older`.
impl fmt::Display for Only {
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
    pub fn only_in(&self, name: &str, header: HeaderVersion) -> Option<Only> {
        // Names called by compilers, exported for sister libraries, or otherwise undeclared.
        if name.starts_with('_') || self.abi.is_undeclared(name) {
            return None;
        }
        if self.abi.contains(name) {
            let has = |version| self.abi.is_exported_in(name, version);
            return only(self.abi.headers(), has, header);
        }
        let entries = self.symbols.lookup(name);
        let has = |version: Version| {
            entries.iter().any(|symbol| {
                let ranges = &symbol.releases;
                ranges.is_empty() || ranges.iter().any(|(a, b)| (*a..=*b).contains(&version))
            })
        };
        only(&self.symbols.releases, has, header)
    }
}

/// Warns that headers of the declared version lack these functions, which other versions have.
pub fn wrong_header(
    library: &str,
    header: HeaderVersion,
    found: &[(Only, Vec<&str>)],
) -> Diagnostic {
    let listed = found.iter().map(|(only, names)| {
        let names = listing(names);
        format!("{names}: only those of {only} do")
    });
    let listed: Vec<String> = listed.collect();
    let listed = listed.join("; nor ");
    let message = format!("headers of `{library}` {header} do not have {listed}");
    Diagnostic::warning(&HEADER_VERSION_MISMATCH, message)
        .help("set `header-version` to the version that the whole program is compiled against")
}

/// `read`: recorded versions, ascending; `has`: whether one of them has the name.
fn only(read: &[Version], has: impl Fn(Version) -> bool, header: HeaderVersion) -> Option<Only> {
    let first = read.iter().position(|version| has(*version))?;
    let last = read.iter().rposition(|version| has(*version))?;
    (!may_have(read, &has, header)).then(|| Only {
        since: (first > 0).then(|| read[first]),
        until: (last + 1 < read.len()).then(|| read[last]),
    })
}

/// Within a major, names come but do not go: programs that were linked before must still start.
fn may_have(read: &[Version], has: impl Fn(Version) -> bool, header: HeaderVersion) -> bool {
    let start = read.partition_point(|version| *version < header.from);
    let end = read.partition_point(|version| *version < header.below);
    let before = read[..start].last().copied();
    let after = read.get(end).copied();
    let has = |version: Option<Version>| version.is_some_and(&has);
    if read[start..end].iter().any(|version| has(Some(*version))) {
        return true;
    }
    if start == end {
        return has(before) || has(after);
    }
    let is_one = header.below.major == header.from.major;
    // A minor version between the recorded ones and the next major may have added it.
    let is_complete = is_one || after.is_none_or(|next| next.minor == 0);
    !is_complete && has(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result for a real name, with headers of a version.
    fn said(id: &str, name: &str, header: &str) -> String {
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
            // Decided by the lists of exports, which have fewer versions.
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
            ("nvrtc", "nvrtcGetPCHHeapSize", "11.8", "12.9 and newer"),
            ("nvrtc", "nvrtcGetPCHHeapSize", "12", "fits"),
            ("hip", "hipGetDevicePropertiesR0600", "5.7", "6.4 and newer"),
            ("hip", "hipGetDevicePropertiesR0600", "6", "fits"),
            ("hip", "hipGetDeviceProperties", "5", "fits"),
        ] {
            assert_eq!(said(id, name, header), expected, "{id} {name} {header}");
        }
    }

    #[test]
    fn uncertain_names_are_not_reported() {
        let read: Vec<Version> = ["5.2", "5.7", "6.4", "7.0", "7.2"]
            .iter()
            .map(|text| Version::parse(text).unwrap())
            .collect();
        let may = |since: usize, until: usize, header: &str| {
            let has = |version| read[since..=until].contains(&version);
            may_have(&read, has, HeaderVersion::parse(header).unwrap())
        };
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
            assert_eq!(
                may(since, until, header),
                expected,
                "{since} {until} {header}"
            );
        }
    }
}
