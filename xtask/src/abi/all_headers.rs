//! clang reads the headers of every version among the components as C.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_cdecl::{Clang, Headers};

use super::recipes::STAND_INS;
use crate::recipes::{root, walk};

/// Runtime whose headers those of libraries include that are numbered otherwise than the toolkit.
const RUNTIME: &str = "12.9";

fn include_below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    walk(directory, |path| path.is_dir() && path.ends_with("include"))
}

/// Number of functions that the headers of a version declare, in the component `headers/NAME`.
fn declared(components: &Path, library: &str, name: &str, version: &str) -> Result<usize, String> {
    let headers = Headers::for_library(library).ok_or("libraries.toml lacks it")?;
    let release: Vec<&str> = version.splitn(3, '.').take(2).collect();
    let runtime = |version: &str| components.join(format!("wheels/cudart-{version}"));
    let own = Some(runtime(&release.join("."))).filter(|path| path.is_dir());
    let mut directories = vec![
        components.join("headers").join(name),
        own.unwrap_or_else(|| runtime(RUNTIME)),
    ];
    if library == "cusolver" {
        let others = ["cublas", "cusparse"];
        directories.extend(
            others.map(|id| components.join(format!("headers/{id}-{}", release.join(".")))),
        );
    }
    let mut clang = Clang::new("clang");
    for directory in directories {
        for include in include_below(&directory)? {
            clang = clang.directory(include);
        }
    }
    let clang = clang
        .directory(STAND_INS)
        .directory(root().join("xtask/include"));
    let prefix = library.to_lowercase();
    // nvJitLink's functions are `__nvJitLinkCreate_12_0` and so on.
    let wanted = |name: &str| {
        name.trim_start_matches('_')
            .to_lowercase()
            .starts_with(&prefix)
    };
    let read = headers.read(&clang, &wanted);
    Ok(read.map_err(|e| e.to_string())?.functions.len())
}

#[test]
#[ignore = "needs the headers of all versions: tests/run --all"]
#[expect(
    clippy::disallowed_methods,
    reason = "the test says where the packages are"
)]
fn heavy_headers_of_every_version_are_c() {
    let components = std::env::var_os("GPUSTUB_TEST_COMPONENTS")
        .expect("GPUSTUB_TEST_COMPONENTS names the directory of unpacked packages");
    let components = Path::new(&components);
    let mut failures = Vec::new();
    let mut names: Vec<String> = fs::read_dir(components.join("headers"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    for name in names {
        let (library, version) = name.split_once('-').unwrap();
        let also = (library == "cublas").then_some("cublaslt");
        for id in [library].into_iter().chain(also) {
            match declared(components, id, &name, version) {
                Ok(count) => println!("{id} {version}: {count} functions"),
                Err(error) => failures.push(format!("{id} {version}: {error}")),
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
