//! Libraries of CUDA 12.9 and 13.5 that the stubs of a repaired wheel bind, as their reports say.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use gpustub_image::{SymbolRequirements, read_symbols_file};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{wheel_libraries, wheel_library_dir};

/// Wheels of a release, for all stubs of the repaired wheels.
const RELEASES: [(&str, [&str; 3]); 2] = [
    ("12.9", ["cudart-12.9", "cublas", "nvrtc-12.9"]),
    ("13.5", ["cudart-13.5", "cublas-13.5", "nvrtc-13.5"]),
];

/// Their libraries.
const TOOLKIT: [&str; 4] = ["cudart", "cublas", "cublaslt", "nvrtc"];

/// Functions that need no driver, and accept NULL.
const CALLS: [&str; 7] = [
    "cudaPeekAtLastError",
    "cudaGetLastError",
    "cublasDestroy_v2",
    "cublasGetMathMode",
    "cublasLtDestroy",
    "cublasLtMatmulDescDestroy",
    "nvrtcDestroyProgram",
];

/// Version nodes of a stub library, with the function to call.
fn nodes(stub: &Path) -> Result<BTreeMap<String, String>> {
    let list = read_symbols_file(stub, SymbolRequirements::default())?;
    let mut calls = BTreeMap::new();
    for symbol in list.symbols {
        let Some(node) = symbol.version else {
            continue;
        };
        if !TOOLKIT.iter().any(|id| node.ends_with(&format!("_{id}"))) {
            continue;
        }
        let call = calls.entry(node).or_insert(None);
        if CALLS.contains(&symbol.name.as_str()) {
            *call = Some(symbol.name);
        }
    }
    let mut nodes = BTreeMap::new();
    for (node, call) in calls {
        let call = call.ok_or_else(|| format!("{node} has none of the functions {CALLS:?}"))?;
        nodes.insert(node, call);
    }
    Ok(nodes)
}

/// Report of a library, by its version node without `GPUSTUB_`, with the libraries of a release beside the package.
pub fn reports(site: &Path, release: &str) -> Result<BTreeMap<String, String>> {
    let (_, wheels) = (RELEASES.iter())
        .find(|(version, _)| *version == release)
        .ok_or_else(|| format!("unknown release {release}"))?;
    for wheel in wheels {
        // Wheels of CUDA 13 share a directory.
        let directory = site.join(wheel_library_dir(wheel)?);
        fs::create_dir_all(&directory)?;
        for entry in fs::read_dir(wheel_libraries(wheel)?)? {
            let entry = entry?;
            symlink(entry.path(), directory.join(entry.file_name()))?;
        }
    }
    let mut reports = BTreeMap::new();
    for entry in fs::read_dir(site)? {
        let libs = entry?.path();
        if libs.extension().is_none_or(|extension| extension != "libs") {
            continue;
        }
        for file in fs::read_dir(&libs)? {
            let stub = file?.path();
            let name = stub.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with("libgpustub_") {
                continue;
            }
            for (node, function) in nodes(&stub)? {
                let key = node.trim_start_matches("GPUSTUB_").to_owned();
                reports.insert(key, report(site, &stub, &node, &function)?);
            }
        }
    }
    fs::remove_dir_all(site.join("nvidia"))?;
    Ok(reports)
}

/// Report about the library behind a version node, from a process that calls one of its functions.
fn report(site: &Path, stub: &Path, node: &str, function: &str) -> Result<String> {
    let script = format!(
        "import ctypes\n\
         library = ctypes.CDLL({stub:?})\n\
         find = ctypes.CDLL(None).dlvsym\n\
         find.restype = ctypes.c_void_p\n\
         address = find(ctypes.c_void_p(library._handle), b'{function}', b'{node}')\n\
         ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(address)(None, None)\n"
    );
    let mut python = Command::new("python3");
    python.args(["-c", &script]).env("GPUSTUB_LOG", "1");
    let log = succeed(python.env_remove("LD_LIBRARY_PATH"))?.stderr;
    let library = node.rsplit('_').next().unwrap_or_default();
    let start = format!("gpustub: {library}: ");
    let mut lines = log.lines().skip_while(|line| !line.starts_with(&start));
    let first = lines.next().ok_or_else(|| format!("no report: {log}"))?;
    let mut text = first[start.len()..].replace(&format!("{}/", site.display()), "");
    for line in lines.take_while(|line| line.starts_with("  ")) {
        text = format!("{text}; {}", line.trim_start());
    }
    Ok(text)
}
