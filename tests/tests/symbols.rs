//! `cargo gpustub symbols` compared with `readelf` and llvm-readobj, on real libraries.

#[path = "../../crates/image/tests/support/dll.rs"]
mod dll;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::symbols::{SymbolKind, SymbolList};
use gpustub_image::PeImage;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{component, only_entry, wheel_libraries};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, elf};

/// Name, symbol version, whether it is the default one, kind, weakness.
type Entry = (String, Option<String>, bool, SymbolKind, bool);

fn ours(file: &Path) -> Result<BTreeSet<Entry>> {
    let text = succeed(gpustub(&["symbols"])?.arg(file))?.stdout;
    let (list, diagnostics) = SymbolList::parse("its output", &text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let entries = list.symbols.into_iter();
    Ok(entries
        .map(|s| (s.name, s.version, !s.compat, s.kind, s.weak))
        .collect())
}

fn theirs(file: &Path) -> Result<BTreeSet<Entry>> {
    let mut entries = BTreeSet::new();
    for row in elf::symbols("--dyn-syms", file)? {
        let exported = ["DEFAULT", "PROTECTED"].contains(&&row.visibility[..]);
        if row.section == "UND" || row.binding == "LOCAL" || !exported {
            continue;
        }
        let (name, node, default) = match row.name.split_once('@') {
            Some((name, node)) => (
                name,
                Some(node.trim_start_matches('@').to_owned()),
                node.starts_with('@'),
            ),
            None => (&row.name[..], None, true),
        };
        // Symbol of a version itself, which linkers add: absolute, with the name of the version.
        if row.section == "ABS" && node.as_deref().is_none_or(|node| node == name) {
            continue;
        }
        let kind = match &row.kind[..] {
            "FUNC" => SymbolKind::Function,
            "IFUNC" => SymbolKind::Ifunc,
            "NOTYPE" => SymbolKind::NoType,
            "OBJECT" | "COMMON" => SymbolKind::Object,
            "TLS" => SymbolKind::Tls,
            other => return Err(format!("{}: a symbol of type {other}", row.name).into()),
        };
        entries.insert((name.to_owned(), node, default, kind, row.binding == "WEAK"));
    }
    Ok(entries)
}

fn same(file: &Path) -> Result<BTreeSet<Entry>> {
    let (ours, theirs) = (ours(file)?, theirs(file)?);
    let only_ours: Vec<_> = ours.difference(&theirs).take(10).collect();
    let only_theirs: Vec<_> = theirs.difference(&ours).take(10).collect();
    let file = file.display();
    assert_eq!((&only_ours, &only_theirs), (&vec![], &vec![]), "{file}");
    assert!(!ours.is_empty(), "{file}");
    Ok(ours)
}

/// The file in the wheel's library directory whose name has this prefix.
fn in_wheel(wheel: &str, start: &str) -> Result<PathBuf> {
    let directory = wheel_libraries(wheel)?;
    let mut found: Vec<PathBuf> = std::fs::read_dir(&directory)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with(start))
        })
        .collect();
    found.sort();
    Ok(found
        .into_iter()
        .next()
        .ok_or_else(|| format!("no {start}* in {}", directory.display()))?)
}

fn nodes(entries: &BTreeSet<Entry>) -> BTreeSet<&str> {
    entries
        .iter()
        .filter_map(|entry| entry.1.as_deref())
        .collect()
}

#[test]
#[ignore = "needs cudart and NVRTC of four versions: ./tests/run"]
fn cudart_and_nvrtc() -> Result<()> {
    for version in ["11.8", "12.9", "13.0", "13.5"] {
        let cudart = same(&in_wheel(&format!("cudart-{version}"), "libcudart.so.")?)?;
        assert_eq!(nodes(&cudart).len(), 1, "one node, named like the soname");
        same(&in_wheel(&format!("nvrtc-{version}"), "libnvrtc.so.")?)?;
        same(&in_wheel(
            &format!("nvrtc-{version}"),
            "libnvrtc-builtins.so.",
        )?)?;
    }
    Ok(())
}

#[test]
#[ignore = "needs NVIDIA's driver libraries: ./tests/run"]
fn driver_libraries() -> Result<()> {
    for driver in ["driver-535", "driver-550"] {
        let cuda = same(&component(driver)?.join("libcuda.so.1"))?;
        assert!(nodes(&cuda).is_empty(), "libcuda has no versions");
        same(&component(driver)?.join("libnvidia-ml.so.1"))?;
    }
    Ok(())
}

#[test]
#[ignore = "needs cuBLAS: ./tests/run"]
fn cublas() -> Result<()> {
    let cublas = same(&in_wheel("cublas", "libcublas.so.12")?)?;
    assert!(cublas.len() >= 746, "{}", cublas.len());
    same(&in_wheel("cublas", "libcublasLt.so.12")?)?;
    Ok(())
}

/// Hundreds of weak C++ functions and data.
#[test]
#[ignore = "needs cuDNN: ./tests/run"]
fn cudnn_graph() -> Result<()> {
    let entries = same(&in_wheel("cudnn", "libcudnn_graph.so.9")?)?;
    let count = |wanted: fn(&Entry) -> bool| entries.iter().filter(|entry| wanted(entry)).count();
    assert!(
        count(|entry| entry.4 && entry.0.starts_with("_Z")) > 500,
        "weak C++ symbols"
    );
    assert!(count(|entry| entry.3 == SymbolKind::Object) > 100, "data");
    same(&in_wheel("cudnn", "libcudnn_adv.so.9")?)?;
    Ok(())
}

/// Without symbol versions; half of its functions are weak.
#[test]
#[ignore = "needs NCCL: ./tests/run"]
fn nccl() -> Result<()> {
    let entries = same(&in_wheel("nccl", "libnccl.so.2")?)?;
    assert!(nodes(&entries).is_empty());
    assert!(entries.iter().any(|entry| entry.4) && entries.iter().any(|entry| !entry.4));
    Ok(())
}

#[test]
#[ignore = "needs an OpenCL loader: ./tests/run"]
fn opencl() -> Result<()> {
    let entries = same(Path::new("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"))?;
    assert_eq!(nodes(&entries).len(), 7, "{:?}", nodes(&entries));
    Ok(())
}

#[test]
#[ignore = "needs AMD's HIP: ./tests/run"]
fn hip() -> Result<()> {
    same(Path::new("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5"))?;
    Ok(())
}

/// 6.4 has names in an old and a new version side by side; it cannot be loaded here, only read.
#[test]
#[ignore = "needs a HIP that may be gone: ./tests/run --all"]
fn heavy_hip_with_two_versions_of_a_name() -> Result<()> {
    let entries = same(&component("hip-6.4")?.join("libamdhip64.so.6"))?;
    assert!(nodes(&entries).contains("hip_6.0"), "{:?}", nodes(&entries));
    Ok(())
}

/// The C library has IFUNCs, TLS and old symbol versions.
#[test]
fn c_library() -> Result<()> {
    let entries = same(Path::new("/lib/x86_64-linux-gnu/libc.so.6"))?;
    assert!(
        entries.iter().any(|entry| entry.3 == SymbolKind::Ifunc),
        "IFUNCs"
    );
    assert!(entries.iter().any(|entry| !entry.2), "old versions");
    same(Path::new("/lib/x86_64-linux-gnu/libm.so.6"))?;
    Ok(())
}

/// All tables of DLLs, and the functions that `symbols` prints for them.
#[test]
#[ignore = "needs wheels for Windows, and llvm 19: ./tests/run"]
fn dlls_of_windows() -> Result<()> {
    let cudart = component("wheels/cudart-windows/nvidia")?;
    let unpacked = scratch()?;
    let xformers = only_entry(&component("wheels-check/windows-xformers")?)?;
    let mut unzip = Command::new("python3");
    unzip.args(["-m", "zipfile", "-e"]);
    succeed(unzip.arg(xformers).arg(unpacked.path()))?;
    for (file, export_count) in [
        (cudart.join("cuda_runtime/bin/cudart64_12.dll"), 461),
        (cudart.join("cu13/bin/x86_64/cudart64_13.dll"), 483),
        (unpacked.path().join("xformers/_C.pyd"), 0),
    ] {
        let bytes = std::fs::read(&file)?;
        let lines = dll::lines(&PeImage::parse(&bytes)?);
        assert_eq!(lines, dll::readobj_lines(&file), "{}", file.display());
        assert!(lines.iter().any(|line| line.starts_with("import ")));
        if export_count == 0 {
            let refusal = run(gpustub(&["symbols"])?.arg(&file))?.stderr;
            assert!(refusal.contains("exports no dynamic symbols"), "{refusal}");
            continue;
        }
        let symbols = ours(&file)?;
        assert_eq!(symbols.len(), export_count, "{}", file.display());
        for (name, ..) in symbols {
            let suffix = format!(" {name}");
            assert!(lines.iter().any(|line| line.ends_with(&suffix)), "{name}");
        }
    }
    Ok(())
}

/// A file that is not a library is an error, with the next step.
#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn symbols_rejects_files_that_are_not_libraries() -> Result<()> {
    let dir = scratch()?;
    let script = dir.path().join("libscript.so");
    std::fs::write(&script, "/* GNU ld script */\nINPUT(libreal.so.1)\n")?;
    let cut = dir.path().join("libcut.so");
    std::fs::write(
        &cut,
        &std::fs::read("/lib/x86_64-linux-gnu/libm.so.6")?[..5000],
    )?;
    let empty = dir.path().join("libempty.so");
    std::fs::write(&empty, "")?;
    let library = "/lib/x86_64-linux-gnu/libm.so.6";
    let foreign = "/usr/aarch64-linux-gnu/lib/libm.so.6";
    for (words, file, expected) in [
        (&["symbols"][..], script.to_str(), "linker script"),
        (&["symbols"], cut.to_str(), "libcut.so"),
        (&["symbols"], empty.to_str(), "empty"),
        (
            &["symbols"],
            Some("/nonexistent/libm.so"),
            "/nonexistent/libm.so",
        ),
        (
            &["symbols", "--machine", "x86_64"],
            Some(foreign),
            "aarch64",
        ),
        (
            &["symbols", "--require", "cosinus"],
            Some(library),
            "cosinus",
        ),
    ] {
        let ran = run(gpustub(words)?.arg(file.ok_or("a path in UTF-8")?))?;
        assert!(!ran.status.success(), "{words:?} {file:?} passed");
        assert!(
            ran.stderr.contains("error") && ran.stderr.contains(expected),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.stdout, "", "no half list");
    }
    Ok(())
}
