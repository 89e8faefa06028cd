//! Functions and version nodes, compared with the real libraries.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::Library;
use gpustub_core::symbols::{Symbol, SymbolKind};
use gpustub_image::{SymbolRequirements, read_symbols_file};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::elf::{needed, readelf, soname, symbols};
use gpustub_tests::scratch::scratch;

use super::export;

/// Library, its file below the components, and whether the list has no other release of the major.
const REAL: [(&str, &str, bool); 20] = [
    ("cublas", "cublas/libcublas.so.12", true),
    ("cublaslt", "cublas/libcublasLt.so.12", true),
    ("cuda", "driver-550/libcuda.so.1", false),
    ("cudart", "cudart-11.8/libcudart.so.11.0", true),
    ("cudart", "cudart-12.9/libcudart.so.12", true),
    ("cudart", "cudart-13.5/libcudart.so.13", false),
    ("cudnn", "cudnn/libcudnn.so.9", false),
    ("cufft", "cufft-12.9/libcufft.so.11", false),
    ("cufile", "cufile-12.9/libcufile.so.0", false),
    ("cupti", "cupti-12.9/libcupti.so.12", false),
    ("curand", "curand-12.9/libcurand.so.10", false),
    ("cusolver", "cusolver-12.9/libcusolver.so.11", false),
    ("cusparse", "cusparse-12.9/libcusparse.so.12", false),
    ("hsa", "hsa-5.2/libhsa-runtime64.so.1", false),
    ("nccl", "nccl/libnccl.so.2", false),
    ("nvjitlink", "nvjitlink-12.9/libnvJitLink.so.12", true),
    ("nvml", "driver-550/libnvidia-ml.so.1", false),
    ("nvrtc", "nvrtc-11.8/libnvrtc.so.11.2", true),
    ("nvrtc", "nvrtc-12.9/libnvrtc.so.12", true),
    ("nvtx", "nvtx-12.8/libnvToolsExt.so.1", true),
];

/// File of a component: a wheel's, or in its directory.
fn real(path: &str) -> Result<PathBuf> {
    if path.starts_with("driver-") || path.starts_with("hsa-") {
        return component(path);
    }
    let (wheel, file) = path.split_once('/').ok_or("a wheel")?;
    Ok(wheel_libraries(wheel)?.join(file))
}

fn file_name(file: &Path) -> String {
    file.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Functions of the library that a program can bind to, as `name` or `name@node`. Those that only C++ programs
/// have, and hidden versions, get no stub.
fn functions(list: &[Symbol]) -> BTreeSet<String> {
    list.iter()
        .filter(|symbol| {
            let is_function = matches!(symbol.kind, SymbolKind::Function | SymbolKind::Ifunc);
            is_function && !symbol.compat && !symbol.name.starts_with("_Z")
        })
        .map(|symbol| match &symbol.version {
            Some(version) => format!("{}@{version}", symbol.name),
            None => symbol.name.clone(),
        })
        .collect()
}

/// Libraries that export functions of C and C++ run times, or of other libraries, beside their own.
fn is_of_library(library: &Library, name: &str) -> bool {
    let plain = name.split('@').next().unwrap_or(name);
    !library.symbols.lookup(plain).is_empty()
}

#[test]
#[ignore = "needs real libraries: ./tests/run"]
fn exports_and_version_nodes_are_those_of_the_real_libraries() -> Result<()> {
    let mut files = Vec::new();
    for (id, path, is_complete) in REAL {
        files.push((id, real(path)?, is_complete));
    }
    let system = Path::new("/usr/lib/x86_64-linux-gnu");
    files.push(("hip", system.join("libamdhip64.so.5"), false));
    files.push(("opencl", system.join("libOpenCL.so.1"), true));
    for (id, file, is_complete) in files {
        let library = Library::builtin(id).ok_or("a shipped library")?;
        let name = file_name(&file);
        let real = functions(&read_symbols_file(&file, SymbolRequirements::default())?.symbols);
        let real: BTreeSet<String> = (real.into_iter())
            .filter(|function| is_of_library(library, function))
            .collect();
        let exports = library.exports("linux", &name);
        let ours: BTreeSet<String> = (exports.iter())
            .map(|export| match export.version {
                Some(version) => format!("{}@{version}", export.name),
                None => export.name.to_owned(),
            })
            .collect();
        let missing: Vec<_> = real.difference(&ours).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
        let additional: Vec<_> = ours.difference(&real).collect();
        assert!(
            !is_complete || additional.is_empty(),
            "{name}: {additional:?}"
        );
        assert!(real.len() > 10, "{name}: {}", real.len());
    }
    Ok(())
}

/// Names of the version nodes that a library defines, the base version included.
fn nodes(file: &Path) -> Result<BTreeSet<String>> {
    let text = readelf(&["--version-info"], file)?;
    let definitions = text
        .split("\n\n")
        .find(|section| section.starts_with("Version definition section"))
        .unwrap_or_default();
    Ok(definitions
        .lines()
        .filter_map(|line| line.split_once("Name: "))
        .map(|(_, name)| name.trim().to_owned())
        .collect())
}

/// Names of defined functions as `readelf` shows them: `name@@node`.
fn defined(file: &Path) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    for row in symbols("--dyn-syms", file)? {
        let is_function = matches!(&row.kind[..], "FUNC" | "IFUNC" | "NOTYPE");
        if row.section == "UND" || !is_function {
            continue;
        }
        let name = match row.name.split_once('@') {
            // The list has no nodes of hiprtc, since only ROCm 5 has any. The loader binds references with a version
            // to functions without one, too (glibc, dl-lookup.c: check_match).
            Some((name, _)) if name.starts_with("hiprtc") => name.to_owned(),
            _ => row.name,
        };
        // C++ functions and the compiler's run time get no stub.
        if !name.starts_with("_Z") && !name.starts_with("__gnu_") {
            names.insert(name);
        }
    }
    Ok(names)
}

/// A program that was linked to ROCm 5's libamdhip64.so.5, which also has the functions of hiprtc, starts and works.
#[test]
#[ignore = "needs HIP 5.2: ./tests/run"]
fn a_finished_program_of_rocm_5_binds_to_the_stubs() -> Result<()> {
    let dir = scratch()?;
    let source = dir.path().join("program.c");
    fs::write(
        &source,
        "#include <stdio.h>\nint hipGetDeviceCount(int *), hipRuntimeGetVersion(int *), hiprtcVersion(int *, int *);\n\
         int main(void) { int n = -7, v = -7, a = -7, b = -7; int s = hipGetDeviceCount(&n);\n\
         printf(\"%d %d, %d\", s, n, hipRuntimeGetVersion(&v)); printf(\" %d, %d\", v > 0, hiprtcVersion(&a, &b));\n\
         printf(\" %d\\n\", a); }\n",
    )?;
    let real = Path::new("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5");
    let program = dir.path().join("program");
    let mut cc = Command::new("cc");
    succeed(cc.arg(&source).arg(real).arg("-o").arg(&program))?;
    assert!(needed(&program)?.contains(&file_name(real)));
    let options = ["--quiet", "--soname", "libamdhip64.so.5"];
    export(dir.path(), &options)?;
    for (value, expected) in [("off", "100 0, 100 0, 11 0\n"), ("", "100 0, 0 1, 0 9\n")] {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", dir.path().join("lib"));
        command.env("LD_BIND_NOW", "1");
        for variable in ["GPUSTUB_HIP_PATH", "GPUSTUB_HIPRTC_PATH"] {
            command.env(variable, value);
        }
        let ran = succeed(&mut command)?;
        assert_eq!((&ran.stdout[..], &ran.stderr[..]), (expected, ""));
    }
    Ok(())
}

#[test]
#[ignore = "needs real libraries: ./tests/run"]
fn stubs_have_the_symbol_tables_of_the_real_libraries() -> Result<()> {
    let dir = scratch()?;
    let system = Path::new("/usr/lib/x86_64-linux-gnu");
    for (file, options) in [
        (real("cudart-12.9/libcudart.so.12")?, &[][..]),
        (real("nvrtc-12.9/libnvrtc.so.12")?, &[]),
        (real("cufft-12.9/libcufft.so.11")?, &[]),
        (real("driver-550/libcuda.so.1")?, &["--header-version=12"]),
        (system.join("libOpenCL.so.1"), &[]),
        (system.join("libamdhip64.so.5"), &[]),
    ] {
        let name = file_name(&file);
        export(
            dir.path(),
            &[&["--quiet", "--soname", &name], options].concat(),
        )?;
        let stubs = dir.path().join("lib").join(&name);
        assert_eq!(soname(&stubs)?.as_deref(), Some(&name[..]));
        // The lists have what other releases of these names have, too.
        let others = ["libamdhip64.so.5", "libcuda.so.1", "libcufft.so.11"];
        let has_others = others.contains(&&name[..]);
        for (ours, real) in [
            (nodes(&stubs)?, nodes(&file)?),
            (defined(&stubs)?, defined(&file)?),
        ] {
            let missing: Vec<_> = real.difference(&ours).collect();
            assert!(missing.is_empty(), "{name}: {missing:?}");
            let additional: Vec<_> = ours.difference(&real).collect();
            assert!(
                additional.is_empty() || has_others,
                "{name}: {additional:?}"
            );
        }
    }
    Ok(())
}
