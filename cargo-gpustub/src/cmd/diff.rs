//! `cargo gpustub diff`: differences between two versions of a library.

mod change;
mod headers;
mod input;
mod show;

use gpustub_core::diag::{DIFFERENT_LIBRARIES, Diagnostic};
use gpustub_core::library::Library;
use gpustub_workspace::error::Result;
use gpustub_workspace::report::Sources;
use gpustub_workspace::shell::Shell;

use crate::cli::{self, TextOrJson};
use crate::shipped::with_load_name;
use change::{Differences, changes};
use input::LibraryVersion;

/// Runs the command. Returns whether the versions are equal.
pub fn run(options: &cli::Diff, shell: &mut Shell) -> Result<bool> {
    let mut diagnostics = Vec::new();
    let mut sources = Sources::new();
    let versions = [&options.old, &options.new]
        .map(|argument| input::read(argument, system(options), &mut diagnostics, &mut sources));
    shell.diagnostics(&diagnostics, &sources)?;
    let [Some(old), Some(new)] = versions else {
        return Ok(false);
    };
    shell.diagnostics(
        different_libraries(&old, &new, system(options)).as_slice(),
        &sources,
    )?;
    let comparison = headers::compare(&options.headers, &old, &new)?;
    let differences = comparison.as_ref().map(|headers| &headers.differences);
    let mut changes = changes(&old, &new, differences.unwrap_or(&Differences::new()));
    if let Some(comparison) = &comparison {
        changes.extend(comparison.changes.iter().cloned());
        changes.sort_by(|a, b| a.name().cmp(b.name()));
    }
    shell.data(match options.format {
        TextOrJson::Text => show::text(&old, &new, &changes, comparison.as_ref()),
        TextOrJson::Json => show::json(&old, &new, &changes, comparison.as_ref()),
    })?;
    Ok(changes.is_empty())
}

/// The warning for versions of two libraries, of which few functions are the same.
fn different_libraries(
    old: &LibraryVersion,
    new: &LibraryVersion,
    system: &str,
) -> Option<Diagnostic> {
    let (old_libraries, new_libraries) = (libraries(old, system), libraries(new, system));
    let (old_id, new_id) = (&old_libraries.first()?.id, &new_libraries.first()?.id);
    let is_shared = |library: &&Library| new_libraries.iter().any(|new| new.id == library.id);
    (!old_libraries.iter().any(is_shared)).then(|| {
        let message = format!(
            "`{}` is a version of {old_id}, and `{}` one of {new_id}",
            old.name, new.name
        );
        Diagnostic::warning(&DIFFERENT_LIBRARIES, message)
            .help("compare two versions of one library")
    })
}

/// The shipped libraries that a version may be of: files of several have the soname libamdhip64.so.5.
fn libraries(version: &LibraryVersion, system: &str) -> Vec<&'static Library> {
    match (version.shipped, &version.soname) {
        (Some((library, _)), _) => vec![library],
        (None, Some(soname)) => with_load_name(system, soname),
        (None, None) => Vec::new(),
    }
}

/// The system whose functions a shipped release has: that of the file that it is compared with.
fn system(options: &cli::Diff) -> &'static str {
    let is_dll = |argument: &String| argument.to_ascii_lowercase().ends_with(".dll");
    if [&options.old, &options.new].into_iter().any(is_dll) {
        "windows"
    } else {
        "linux"
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gpustub_core::library::Library;
    use gpustub_core::symbols::SymbolList;

    use super::change::Change;
    use super::*;

    fn from_list(list: &str) -> LibraryVersion {
        let text = format!("@gpustub-symbols 1\n{list}");
        let (list, diagnostics) = SymbolList::parse("x.symbols", &text);
        assert_eq!(diagnostics, []);
        LibraryVersion {
            name: "x".into(),
            functions: list.functions().cloned().collect(),
            soname: None,
            windows_machine: None,
            shipped: None,
        }
    }

    fn shipped(release: &str) -> LibraryVersion {
        read_shipped(release, "linux")
    }

    fn read_shipped(release: &str, system: &str) -> LibraryVersion {
        input::read(release, system, &mut Vec::new(), &mut Sources::new()).expect("a shipped list")
    }

    #[test]
    fn lists_are_compared_by_name() {
        let old = from_list("a\nc\nd version=V1\ne version=V1\ntable kind=object\n");
        let new = from_list("b\nc\nd version=V2\ne version=V1\nf\n");
        assert_eq!(
            changes(&old, &new, &BTreeMap::new()),
            [
                Change::Removed("a".into(), None),
                Change::Added("b".into()),
                Change::SymbolVersion("d".into(), "V1".into(), "V2".into()),
                Change::Added("f".into()),
            ]
        );
        assert_eq!(changes(&new, &new, &BTreeMap::new()), []);
    }

    #[test]
    fn changes_of_the_abi_name_the_replacement() {
        let (old, new) = (shipped("cudart@12.9"), shipped("cudart@13.5"));
        let no_headers = BTreeMap::new();
        let text = show::text(&old, &new, &changes(&old, &new, &no_headers), None);
        for line in [
            "!cudaChooseDevice: ABI changed in 13.0: argument 1: cudaDeviceProp: 1032 -> 1008 bytes; calls of the old ABI are adapted to cudaChooseDevice\n",
            "!cudaSignalExternalSemaphoresAsync: ABI changed in 13.0: argument 1: \
             cudaExternalSemaphoreSignalParams_v1: 32 -> 144 bytes; calls of the old ABI are refused: only headers of 11.1 have these structs\n",
            "!cudaGraphAddDependencies: ABI changed in 13.0: 4 -> 5 arguments; the old ABI is \
             cudaGraphAddDependencies with NULL as argument 3\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let json = show::json(&old, &new, &changes(&old, &new, &no_headers), None);
        let row = r#"{"adapted":true,"change":"abi","differences":[],"name":"cudaGraphGetEdges","null_argument":3,"recorded":[{"difference":"4 -> 5 arguments","since":"13.0"}],"refused":null,"replacement":"cudaGraphGetEdges"}"#;
        assert!(json.contains(row), "{json}");
        let reverse = show::text(&new, &old, &changes(&new, &old, &no_headers), None);
        let line = "!cudaGraphAddDependencies: ABI changed in 13.0: 4 -> 5 arguments; the old ABI is \
                    cudaGraphAddDependencies_v2\n";
        assert!(reverse.contains(line), "{reverse}");
    }

    #[test]
    fn release_has_no_difference_from_itself() {
        for id in Library::builtin_ids() {
            for release in &Library::builtin(id).unwrap().symbols.releases {
                for system in ["linux", "windows"] {
                    let version = read_shipped(&format!("{id}@{release}"), system);
                    let changes = changes(&version, &version, &BTreeMap::new());
                    assert_eq!(changes, [], "{id}@{release}, {system}");
                }
            }
        }
    }

    #[test]
    fn function_with_other_symbol_versions_in_other_releases_is_in_all_of_them() {
        for release in ["cutensor@2.0", "cutensor@2.2", "cutensor@2.8"] {
            let version = shipped(release);
            let names: Vec<&str> = version
                .functions
                .iter()
                .map(|symbol| symbol.name.as_str())
                .filter(|name| *name == "cutensorBlockSparseContract")
                .collect();
            assert_eq!(names.len(), 1, "{release}");
        }
    }

    #[test]
    fn abi_changes_are_those_between_the_two_releases() {
        for (old, new, expected) in [
            ("cudart@12.4", "cudart@12.5", &[][..]),
            ("cudart@13.4", "cudart@13.5", &[]),
            ("cuda@12.8", "cuda@12.9", &[]),
            // Calls are passed as they are.
            ("cufft@11.7", "cufft@11.8", &["cufftXtMalloc"]),
            // The library of 12.2 has another ABI than its headers declare.
            (
                "nvml@12.2",
                "nvml@12.3",
                &[
                    "nvmlDeviceGetComputeRunningProcesses_v3",
                    "nvmlDeviceGetGraphicsRunningProcesses_v3",
                    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                ],
            ),
        ] {
            let changes = changes(&shipped(old), &shipped(new), &BTreeMap::new());
            let names: Vec<&str> = changes
                .iter()
                .filter(|change| matches!(change, Change::Abi(..)))
                .map(Change::name)
                .collect();
            assert_eq!(names, expected, "{old} {new}");
        }
    }

    #[test]
    fn removed_functions_have_a_replacement_or_the_reason_why_not() {
        let (old, new) = (shipped("cuda@13.5"), shipped("cuda@12.2"));
        let changes = changes(&old, &new, &BTreeMap::new());
        let text = show::text(&old, &new, &changes, None);
        for line in [
            "-cuCtxCreate_v4; calls of the old ABI are adapted to cuCtxCreate_v3\n",
            "-cuEventElapsedTime_v2; the old ABI is cuEventElapsedTime\n",
            "-cuMemcpyBatchAsync_v2; calls of the old ABI are refused: the library has no batches of \
             copies\n",
            "-cuCtxWaitEvent\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        let json = show::json(&old, &new, &changes, None);
        let row = r#"{"adapted":false,"change":"removed","name":"cuMemcpyBatchAsync_v2","null_argument":null,"refused":"the library has no batches of copies","replacement":null}"#;
        assert!(json.contains(row), "{json}");
    }

    #[test]
    fn shared_symbol_version_is_no_difference() {
        let old = from_list("a version=libx.so.1\nb version=libx.so.1\n");
        let new = from_list("a version=libx.so.2\nb version=libx.so.2\n");
        assert_eq!(changes(&old, &new, &BTreeMap::new()), []);
    }

    #[test]
    fn several_changes_of_the_abi_are_listed_with_their_releases() {
        let (old, new) = (shipped("cudart@11.8"), shipped("cudart@13.5"));
        let text = show::text(&old, &new, &changes(&old, &new, &BTreeMap::new()), None);
        let line = "!cudaChooseDevice: ABI changed in 12.0: argument 1: cudaDeviceProp: 728 -> 1032 bytes, in 13.0: \
                    argument 1: cudaDeviceProp: 1032 -> 1008 bytes; ";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn versions_of_two_libraries_get_a_warning() {
        let file = |soname: &str| LibraryVersion {
            soname: Some(soname.into()),
            ..from_list("a\n")
        };
        let (cudart, cublas) = (shipped("cudart@12.8"), shipped("cublas@12.9"));
        let warning = different_libraries(&cudart, &cublas, "linux").unwrap();
        let message = "`cudart@12.8` is a version of cudart, and `cublas@12.9` one of cublas";
        assert_eq!(warning.message, message);
        for (old, new, is_warned) in [
            (&cudart, &shipped("cudart@12.9"), false),
            (&cudart, &file("libcudart.so.13"), false),
            (&cudart, &file("libcublas.so.12"), true),
            (&file("libcudart.so.12"), &file("libcudart.so.13"), false),
            // Renamed, without a soname, and of two libraries.
            (&cudart, &file("libmine.so.12"), false),
            (&cudart, &from_list("a\n"), false),
            (&shipped("hiprtc@5.2"), &file("libamdhip64.so.5"), false),
        ] {
            let warning = different_libraries(old, new, "linux");
            assert_eq!(
                warning.is_some(),
                is_warned,
                "{} {:?}",
                old.name,
                new.soname
            );
        }
    }
}
