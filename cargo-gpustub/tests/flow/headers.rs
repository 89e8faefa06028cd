//! `diff` on the headers of real libraries.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use gpustub_core::library::Library;
use gpustub_core::version::{HeaderVersion, Version};
use serde_json::Value;

use super::{component, ends, repository};

fn wheel(version: Version) -> PathBuf {
    component(&format!("wheels/cudart-{version}"))
}

/// First file below a directory with this name prefix.
fn find(directory: &Path, start: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(directory)
        .unwrap_or_else(|e| panic!("{}: {e}", directory.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    entries.iter().find_map(|path| {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            find(path, start)
        } else {
            name.starts_with(start).then(|| path.clone())
        }
    })
}

/// Compares two versions of the CUDA runtime; both use our fakes of other packages' headers.
fn diff(old: Version, new: Version, format: &str) -> String {
    let library = |version| find(&wheel(version), "libcudart.so.").unwrap();
    let include = |version| find(&wheel(version), "cuda_runtime_api.h").unwrap();
    let directory = |version| include(version).parent().unwrap().to_owned();
    let stand_ins = repository().join("xtask/headers");
    let arguments = [
        "diff".into(),
        library(old),
        library(new),
        "--old-headers".into(),
        directory(old),
        "--new-headers".into(),
        directory(new),
        format!("--clang-arg=-I{}", stand_ins.display()).into(),
        "--format".into(),
        format.into(),
    ];
    let arguments: Vec<&str> = arguments.iter().map(|a| a.to_str().unwrap()).collect();
    ends(1, &repository(), &arguments).0
}

const OLD: Version = Version::new(11, 8);
const MIDDLE: Version = Version::new(12, 9);
const NEW: Version = Version::new(13, 0);

/// The shipped ABI tables come from the same headers by another method: all versions, and reviewed.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn headers_differ_only_as_the_shipped_abi_tables_state() {
    let table = &Library::builtin("cudart").unwrap().abi;
    // Types do not show that these functions return functions of the library's own version.
    let bound = ["cudaGetDriverEntryPoint", "cudaGetDriverEntryPoint_ptsz"];
    for (old, new, only_table) in [
        (OLD, MIDDLE, &[][..]),
        (MIDDLE, NEW, &bound),
        (OLD, NEW, &[]),
    ] {
        let found: Value = serde_json::from_str(&diff(old, new, "json")).unwrap();
        let rows = found["changes"].as_array().unwrap();
        let of = |kind: &'static str| -> BTreeSet<&str> {
            let rows = rows.iter().filter(|row| row["change"] == kind);
            rows.map(|row| row["name"].as_str().unwrap()).collect()
        };
        assert_eq!(of("declared"), [].into(), "{old} {new}");
        let unknown = found["headers"]["undeclared"].as_array().unwrap();
        assert!(unknown.len() < 25, "{unknown:?}");
        let compared = found["headers"]["compared"].as_u64().unwrap();
        assert!(compared > 300, "{compared} functions");

        let code = i32::try_from(new.code()).unwrap();
        let header = || HeaderVersion::parse(&old.to_string());
        let library = Library::builtin("cudart").unwrap();
        let names = library
            .symbols
            .functions()
            .map(|symbol| symbol.name.as_str());
        let is_in = |name: &&str| {
            let present = |version: Version| {
                let symbol = library.symbols.functions().find(|s| s.name == **name);
                let present = &symbol.unwrap().releases;
                present.is_empty() || present.iter().any(|(a, b)| (*a..=*b).contains(&version))
            };
            present(old) && present(new)
        };
        let differs = |name: &&str| {
            let mut entries = table.entries(name, header()).into_iter();
            entries.any(|entry| entry.from <= code && code < entry.below)
        };
        let mut expected: BTreeSet<&str> = names.filter(is_in).filter(differs).collect();
        assert!(expected.len() >= 8, "{expected:?}");
        for name in only_table {
            assert!(expected.remove(name), "{name}, {old} {new}");
        }
        assert_eq!(of("abi"), expected, "{old} {new}");
    }
}

/// Each library is compared with itself, with its own headers on both sides, found by its soname:
/// clang reads them, and they declare most of the library's exports for other libraries.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn headers_of_shipped_libraries_are_read() {
    let mut more: Vec<PathBuf> = ["xtask/headers", "xtask/include"]
        .map(|directory| repository().join(directory))
        .into();
    for (name, header) in [
        ("wheels/crt", "host_defines.h"),
        ("wheels/cudart-12.9", "cuda_runtime_api.h"),
        ("wheels/cublas", "cublas_v2.h"),
        ("wheels/cusparse-12.9", "cusparse.h"),
        ("hip-5.7", "hip_runtime_api.h"),
    ] {
        let found = find(&component(name), header).unwrap();
        let mut above = found.ancestors();
        more.push(above.find(|a| a.ends_with("include")).unwrap().to_owned());
    }
    for (name, library, least) in [
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
        let directory = component(name);
        let library = find(&directory, library).unwrap();
        let library = library.to_str().unwrap();
        let include = directories(&directory);
        let include = include.iter().find(|f| f.ends_with("include")).unwrap();
        let include = include.to_str().unwrap();
        let mut arguments = vec!["diff", library, library, "--format=json"];
        arguments.extend(["--old-headers", include, "--new-headers", include]);
        let more: Vec<String> = (more.iter())
            .map(|directory| format!("--clang-arg=-I{}", directory.display()))
            .collect();
        arguments.extend(more.iter().map(String::as_str));
        let (found, _) = ends(0, &repository(), &arguments);
        let found: Value = serde_json::from_str(&found).unwrap();
        let compared = found["headers"]["compared"].as_u64().unwrap();
        assert!(compared >= least, "{name}: {compared}");
    }
}

/// Differences that libraries handle, and changes, of libraries whose structs grow. Lists of all names in the headers
/// are the libraries.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn guarded_differences_of_real_headers_are_no_changes() {
    // Headers of all versions, by library.
    let mut texts: BTreeMap<&str, String> = BTreeMap::new();
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
        let headers = gpustub_cdecl::Headers::for_library(library).unwrap();
        let mut arguments = vec!["diff".to_owned(), "--format=json".to_owned()];
        for (side, [of, runtime]) in [("old", old), ("new", new)] {
            let include = |name: &str, header: &str| {
                let found = find(&component(name), header)?;
                Some(found.parent().unwrap().to_owned())
            };
            // The first is one of the C library, for CUPTI.
            let own = headers.include[0]
                .iter()
                .find_map(|header| include(of, header));
            let own = own.unwrap_or_else(|| panic!("{of} has no header of {library}"));
            let source = sources(&own);
            let names = source.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let names: BTreeSet<&str> = names.filter(|name| name.starts_with(prefix)).collect();
            let names: Vec<_> = names.into_iter().collect();
            let list = format!(
                "@gpustub-symbols 1\n@soname {soname}\n{}\n",
                names.join("\n")
            );
            let file = scratch.path().join(format!("{side}.symbols"));
            std::fs::write(&file, list).unwrap();
            *texts.entry(library).or_default() += &plain(&source);
            arguments.push(file.display().to_string());
            for directory in [own, include(runtime, "cuda_runtime_api.h").unwrap()] {
                arguments.push(format!("--{side}-headers={}", directory.display()));
            }
        }
        for stand_ins in ["xtask/headers", "xtask/include"] {
            let directory = repository().join(stand_ins);
            arguments.push(format!("--clang-arg=-I{}", directory.display()));
        }
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let found: Value = serde_json::from_str(&ends(1, &repository(), &arguments).0).unwrap();
        let rows = found["changes"].as_array().unwrap().iter();
        let rows = rows.filter(|row| row["change"] == "abi");
        let names: Vec<&str> = rows.map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, changed, "{library}: {old:?} {new:?}");
        let found = found["headers"]["guarded"].as_array().unwrap();
        assert_eq!(
            found.len(),
            guarded,
            "{library}: {old:?} {new:?}: {found:#?}"
        );
    }
}

/// Text of all headers in a directory.
fn sources(directory: &Path) -> String {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let headers = paths.filter(|path| path.extension().is_some_and(|e| e == "h"));
    headers
        .map(|path| String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned())
        .collect()
}

/// Text without line breaks and the marks of comments.
fn plain(text: &str) -> String {
    let words = text.split_whitespace();
    let words: Vec<_> = words.filter(|word| !["*", "\\"].contains(word)).collect();
    words.join(" ")
}

/// A directory and all directories below it.
fn directories(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let below = paths
        .filter(|path| path.is_dir())
        .flat_map(|p| directories(&p));
    [directory.to_owned()].into_iter().chain(below).collect()
}

/// Output of the real headers, as `docs/diff.md` shows it.
#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn page_shows_the_real_output() {
    let page = std::fs::read_to_string(repository().join("docs/diff.md")).unwrap();
    let blocks = page.split("```text\n").skip(1);
    let blocks: Vec<&str> = blocks.map(|b| b.split("```").next().unwrap()).collect();
    let printed = diff(MIDDLE, NEW, "text");
    let printed: Vec<&str> = printed.lines().collect();
    let shown: Vec<&str> = (blocks[0].lines())
        .filter(|line| *line != "…" && !line.starts_with("--- ") && !line.starts_with("+++ "))
        .collect();
    assert!(shown.len() > 6, "{shown:?}");
    for line in shown {
        assert!(printed.contains(&line), "{line}\n{}", printed.join("\n"));
    }
}
