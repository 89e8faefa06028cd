//! `diff` on the headers of real libraries.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};
use serde_json::Value;

use super::{component, ends, repository};

/// First file below a directory with this name prefix.
fn find(directory: &Path, prefix: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries.iter().find_map(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            find(path, prefix)
        } else {
            name.starts_with(prefix).then(|| path.clone())
        }
    })
}

/// Directory of the first header below a package's directory with this name prefix.
fn find_include(package: &str, prefix: &str) -> Option<PathBuf> {
    let header = find(&component(package), prefix)?;
    Some(header.parent().unwrap().to_owned())
}

fn include_option(directory: &Path) -> String {
    format!("--clang-arg=-I{}", directory.display())
}

/// Compares two versions of the CUDA runtime; both use our fakes of other packages' headers.
fn diff(old: Version, new: Version, format: &str) -> String {
    let [old, new] = [old, new].map(|version| format!("wheels/cudart-{version}"));
    let [old_library, new_library] =
        [&old, &new].map(|wheel| find(&component(wheel), "libcudart.so.").unwrap());
    let [old_headers, new_headers] =
        [&old, &new].map(|wheel| find_include(wheel, "cuda_runtime_api.h").unwrap());
    let arguments = [
        "diff",
        old_library.to_str().unwrap(),
        new_library.to_str().unwrap(),
        "--old-headers",
        old_headers.to_str().unwrap(),
        "--new-headers",
        new_headers.to_str().unwrap(),
        &include_option(&repository().join("xtask/headers")),
        "--format",
        format,
    ];
    ends(1, &repository(), &arguments).0
}

/// Names of the functions that have this change in a JSON report.
fn changed_functions<'a>(report: &'a Value, change: &str) -> Vec<&'a str> {
    let rows = report["changes"].as_array().unwrap();
    rows.iter()
        .filter(|row| row["change"] == change)
        .map(|row| row["name"].as_str().unwrap())
        .collect()
}

/// Functions of a library that both versions have, and that differ between them by the ABI table.
fn table_changes(library: &Library, old: Version, new: Version) -> BTreeSet<&str> {
    let code = i32::try_from(new.code()).unwrap();
    let mut names = BTreeSet::new();
    for symbol in library.symbols.functions() {
        let is_in_both = [old, new].iter().all(|version| {
            let releases = &symbol.releases;
            releases.is_empty() || releases.iter().any(|(a, b)| (a..=b).contains(&version))
        });
        let header = HeaderVersion::parse(&old.to_string());
        let entries = library.abi.entries(&symbol.name, header);
        let is_replaced = entries.iter().any(|e| e.from <= code && code < e.below);
        // Functions with one ABI are adapted, too, if they answer otherwise.
        if is_in_both && is_replaced && library.abi.depends_on_headers(&symbol.name) {
            names.insert(symbol.name.as_str());
        }
    }
    names
}

const OLD: Version = Version::new(11, 8);
const MIDDLE: Version = Version::new(12, 9);
const NEW: Version = Version::new(13, 0);

/// The shipped ABI tables come from the same headers by another method: all versions, and reviewed.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn headers_differ_only_as_the_shipped_abi_tables_state() {
    // Types do not show that these functions return functions of the library's own version.
    let bound = ["cudaGetDriverEntryPoint", "cudaGetDriverEntryPoint_ptsz"];
    for (old, new, only_in_table) in [
        (OLD, MIDDLE, &[][..]),
        (MIDDLE, NEW, &bound),
        (OLD, NEW, &[]),
    ] {
        let report: Value = serde_json::from_str(&diff(old, new, "json")).unwrap();
        let declared = changed_functions(&report, "declared");
        assert_eq!(declared, [""; 0], "{old} {new}");
        let undeclared = report["headers"]["undeclared"].as_array().unwrap();
        assert!(undeclared.len() < 25, "{undeclared:?}");
        let compared = report["headers"]["compared"].as_u64().unwrap();
        assert!(compared > 300, "{compared} functions");

        let mut expected = table_changes(Library::builtin("cudart").unwrap(), old, new);
        assert!(expected.len() >= 8, "{expected:?}");
        for name in only_in_table {
            assert!(expected.remove(name), "{name}, {old} {new}");
        }
        let changed: BTreeSet<&str> = changed_functions(&report, "abi").into_iter().collect();
        assert_eq!(changed, expected, "{old} {new}");
    }
}

/// Each library is compared with itself, with its own headers on both sides, found by its soname:
/// clang reads them, and they declare most of the library's exports for other libraries.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn headers_of_shipped_libraries_are_read() {
    let mut include_options: Vec<String> = ["xtask/headers", "xtask/include"]
        .map(|directory| include_option(&repository().join(directory)))
        .into();
    for (package, header) in [
        ("wheels/crt", "host_defines.h"),
        ("wheels/cudart-12.9", "cuda_runtime_api.h"),
        ("wheels/cublas", "cublas_v2.h"),
        ("wheels/cusparse-12.9", "cusparse.h"),
        ("hip-5.7", "hip_runtime_api.h"),
    ] {
        let header = find(&component(package), header).unwrap();
        let include = header.ancestors().find(|path| path.ends_with("include"));
        include_options.push(include_option(include.unwrap()));
    }
    for (package, library, min_compared) in [
        ("wheels/cublas", "libcublas.so.", 700),
        ("wheels/cudnn", "libcudnn.so.", 200),
        ("wheels/cufft-12.9", "libcufft.so.", 50),
        ("wheels/cupti-12.9", "libcupti.so.", 150),
        ("wheels/curand-12.9", "libcurand.so.", 25),
        ("wheels/cusolver-12.9", "libcusolver.so.", 550),
        ("wheels/nccl", "libnccl.so.", 100),
        ("wheels/nvrtc-12.9", "libnvrtc.so.", 25),
        ("hipblas-5.5", "libhipblas.so.", 600),
        ("hipsolver-5.5", "libhipsolver.so.", 400),
        ("rocfft-6.1", "librocfft.so.", 20),
        ("rocrand-5.3", "librocrand.so.", 20),
    ] {
        let directory = component(package);
        let path = find(&directory, library).unwrap();
        let library = path.to_str().unwrap();
        let mut include = directories(&directory);
        include.retain(|path| path.ends_with("include"));
        let include = include[0].to_str().unwrap();
        let mut arguments = vec!["diff", library, library, "--format=json"];
        arguments.extend(["--old-headers", include, "--new-headers", include]);
        arguments.extend(include_options.iter().map(String::as_str));
        let (out, _) = ends(0, &repository(), &arguments);
        let report: Value = serde_json::from_str(&out).unwrap();
        let compared = report["headers"]["compared"].as_u64().unwrap();
        assert!(compared >= min_compared, "{package}: {compared}");
    }
}

/// Differences that libraries handle, and changes, of libraries whose structs grow. Lists of all names in the headers
/// are the libraries.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_guarded_differences_of_real_headers_are_no_changes() {
    for (library, soname, prefix, old, new, changed, guarded) in [
        (
            "cublaslt",
            "libcublasLt.so.12",
            "cublasLt",
            ["headers/cublas-11.8", "wheels/cudart-11.8"],
            ["headers/cublas-12.9", "wheels/cudart-12.9"],
            &[][..],
            13,
        ),
        (
            "cublaslt",
            "libcublasLt.so.12",
            "cublasLt",
            ["headers/cublas-12.9", "wheels/cudart-12.9"],
            ["headers/cublas-13.5", "wheels/cudart-13.5"],
            &[],
            14,
        ),
        (
            "cufile",
            "libcufile.so.0",
            "cuFile",
            ["headers/cufile-1.14", "wheels/cudart-12.9"],
            ["headers/cufile-1.20", "wheels/cudart-13.5"],
            &[],
            0,
        ),
        (
            "cupti",
            "libcupti.so.12",
            "cupti",
            ["headers/cupti-11.8", "wheels/cudart-11.8"],
            ["headers/cupti-12.9", "wheels/cudart-12.9"],
            // Parameters of cudaGetDriverEntryPoint and cudaGraphExecUpdate.
            &["cuptiSubscribe"],
            2,
        ),
        (
            "cupti",
            "libcupti.so.12",
            "cupti",
            ["headers/cupti-12.9", "wheels/cudart-12.9"],
            ["headers/cupti-13.5", "wheels/cudart-13.5"],
            // The record of NVLink has pointers instead of arrays; cudaGraphKernelNodeCopyAttributes has its
            // parameters in another order.
            &["cuptiActivityGetNextRecord", "cuptiSubscribe"],
            3,
        ),
        (
            "nccl",
            "libnccl.so.2",
            "nccl",
            ["headers/nccl-2.21", "wheels/cudart-11.8"],
            ["headers/nccl-2.32", "wheels/cudart-13.5"],
            &[],
            2,
        ),
        (
            "nvml",
            "libnvidia-ml.so.1",
            "nvml",
            ["headers/nvml-11.8", "wheels/cudart-11.8"],
            ["headers/nvml-13.5", "wheels/cudart-13.5"],
            &["nvmlGpmMetricsGet"],
            0,
        ),
        (
            "nvml",
            "libnvidia-ml.so.1",
            "nvml",
            ["headers/nvml-12.9", "wheels/cudart-12.9"],
            ["headers/nvml-13.5", "wheels/cudart-13.5"],
            &["nvmlGpmMetricsGet"],
            1,
        ),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        let mut arguments = vec!["diff".to_owned(), "--format=json".to_owned()];
        for (version, [package, runtime]) in [("old", old), ("new", new)] {
            let include = library_include(library, package);
            let source = sources(&include);
            let names: BTreeSet<&str> = source
                .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                .filter(|name| name.starts_with(prefix))
                .collect();
            let names: Vec<&str> = names.into_iter().collect();
            let list = format!(
                "@gpustub-symbols 1\n@soname {soname}\n{}\n",
                names.join("\n")
            );
            let path = scratch.path().join(format!("{version}.symbols"));
            std::fs::write(&path, list).unwrap();
            arguments.push(path.display().to_string());
            let runtime_include = find_include(runtime, "cuda_runtime_api.h").unwrap();
            for directory in [include, runtime_include] {
                arguments.push(format!("--{version}-headers={}", directory.display()));
            }
        }
        for stand_ins in ["xtask/headers", "xtask/include"] {
            arguments.push(include_option(&repository().join(stand_ins)));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (out, _) = ends(1, &repository(), &arguments);
        let report: Value = serde_json::from_str(&out).unwrap();
        let functions = changed_functions(&report, "abi");
        assert_eq!(functions, changed, "{library}: {old:?} {new:?}");
        let rows = report["headers"]["guarded"].as_array().unwrap();
        assert_eq!(rows.len(), guarded, "{library}: {old:?} {new:?}: {rows:#?}");
    }
}

/// Directory of a library's headers in a package.
fn library_include(library: &str, package: &str) -> PathBuf {
    let headers = gpustub_cdecl::Headers::for_library(library).unwrap();
    // The first is one of the C library, for CUPTI.
    headers.include[0]
        .iter()
        .find_map(|header| find_include(package, header))
        .unwrap_or_else(|| panic!("{package} has no header of {library}"))
}

/// Text of all headers in a directory.
fn sources(directory: &Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "h") {
            text += &String::from_utf8_lossy(&std::fs::read(path).unwrap());
        }
    }
    text
}

/// A directory and all directories below it.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let mut paths = vec![directory.to_owned()];
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            paths.extend(directories(&path));
        }
    }
    paths
}

/// Output of the real headers, as `docs/diff.md` shows it.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn page_shows_the_real_output() {
    let page = std::fs::read_to_string(repository().join("docs/diff.md")).unwrap();
    let block = page.split("```text\n").nth(1).unwrap();
    let block = block.split("```").next().unwrap();
    let out = diff(MIDDLE, NEW, "text");
    let out_lines: Vec<&str> = out.lines().collect();
    let lines: Vec<&str> = block
        .lines()
        .filter(|line| *line != "…" && !line.starts_with("--- ") && !line.starts_with("+++ "))
        .collect();
    assert!(lines.len() > 6, "{lines:?}");
    for line in lines {
        assert!(out_lines.contains(&line), "{line}\n{out}");
    }
}
