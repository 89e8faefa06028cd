//! Tables and code, compared with those that the tools of LLVM 19 and CUDA 13.5 list and extract.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_core::offload::{CodeKind, Container, Entry, Model, containers};
use gpustub_image::offload::unpack;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::nvcc::TOOLKIT_13;
use gpustub_tests::scratch::scratch;

use crate::inputs::{INPUTS, Input, Maker};

fn make<'a>(maker: &Maker, names: &[&'a str]) -> Result<Vec<&'a str>> {
    for name in names {
        let input: Option<&Input> = INPUTS.iter().find(|input| input.name == *name);
        maker.make(input.ok_or("an unknown input")?)?;
    }
    Ok(names.to_vec())
}

/// Triple and architecture of all entries, sorted.
fn targets(file: &[u8]) -> Vec<String> {
    let entries = containers(file).flat_map(|container| container.entries);
    let mut targets: Vec<_> = entries
        .map(|entry| format!("{} {}", entry.triple, entry.arch))
        .collect();
    targets.sort();
    targets
}

#[test]
#[ignore = "needs clang 19, clang-tools-19 and llvm-19: ./tests/run"]
fn offload_binaries_are_read_as_llvm_objdump_reads_them() -> Result<()> {
    let dir = scratch()?;
    let maker = Maker::new(dir.path())?;
    for name in make(&maker, &["hip-newer.o", "openmp.o", "packed.bin"])? {
        let listed = succeed(maker.tool("llvm-objdump").args(["--offloading", name]))?.stdout;
        let value = |key: &str| {
            let lines = listed.lines().filter_map(|line| line.strip_prefix(key));
            lines.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
        };
        let mut expected: Vec<_> = value("triple")
            .iter()
            .zip(value("arch"))
            .map(|(triple, arch)| format!("{triple} {arch}"))
            .collect();
        expected.sort();
        let file = fs::read(dir.path().join(name))?;
        assert_eq!(targets(&file), expected, "{name}");
        let producers: Vec<_> = containers(&file)
            .flat_map(|container| container.entries)
            .map(|entry| format!("{:?}", entry.model).to_lowercase())
            .collect();
        assert_eq!(producers, value("producer"), "{name}");
    }
    Ok(())
}

#[test]
#[ignore = "needs clang 19 and clang-tools-19: ./tests/run"]
fn bundles_are_read_as_clang_offload_bundler_reads_them() -> Result<()> {
    let dir = scratch()?;
    let maker = Maker::new(dir.path())?;
    for name in make(&maker, &["hip-older.o", "bundle.bc", "compressed.bc"])? {
        let kind = format!("-type={}", name.rsplit('.').next().unwrap_or_default());
        let input = format!("-input={name}");
        let mut list = maker.tool("clang-offload-bundler");
        let listed = succeed(list.args(["-list", &kind, &input]))?.stdout;
        let file = fs::read(dir.path().join(name))?;
        let compressed = containers(&file).find(|container| container.compression.is_some());
        let unpacked = compressed.map(|container| unpack(&container, 1 << 20));
        let unpacked = unpacked.transpose().map_err(|error| error.to_string())?;
        let bundle = unpacked.as_deref().unwrap_or(&file);
        let mut count = 0;
        for container in containers(bundle) {
            for entry in &container.entries {
                compare_bundled(
                    &maker,
                    dir.path(),
                    [&kind, &input],
                    &listed,
                    &container,
                    entry,
                )?;
                count += 1;
            }
        }
        assert_eq!(count, listed.lines().count(), "{name}");
    }
    Ok(())
}

/// Compares an entry with its line in a list, and its code with what the bundler extracts.
fn compare_bundled(
    maker: &Maker,
    dir: &Path,
    options: [&str; 2],
    listed: &str,
    container: &Container<'_>,
    entry: &Entry,
) -> Result<()> {
    if entry.model == Model::Host {
        assert!(
            listed.lines().any(|line| line.starts_with("host-")),
            "{listed}"
        );
        return Ok(());
    }
    let id = format!("hip-{}--{}", entry.triple, entry.arch);
    assert!(listed.lines().any(|line| line == id), "{id} in {listed}");
    let mut extract = maker.tool("clang-offload-bundler");
    extract.args(["-unbundle", "-output=code", &format!("-targets={id}")]);
    succeed(extract.args(options))?;
    assert!(
        container.code(entry) == Some(&fs::read(dir.join("code"))?),
        "{id}"
    );
    assert_eq!(entry.code, CodeKind::Bitcode);
    Ok(())
}

#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn fatbins_are_read_as_cuobjdump_reads_them() -> Result<()> {
    let dir = scratch()?;
    let maker = Maker::new(dir.path())?;
    for name in make(&maker, &["nvcc.fatbin", "nvcc.o"])? {
        let cuobjdump = |words: &[&str]| -> Result<String> {
            let mut command: Command = TOOLKIT_13.tool("cuobjdump")?;
            command.current_dir(dir.path()).args(words).arg(name);
            Ok(succeed(&mut command)?.stdout)
        };
        let listed = cuobjdump(&["-lelf", "-lptx"])?;
        cuobjdump(&["-xelf", "all"])?;
        let file = fs::read(dir.path().join(name))?;
        let (mut archs, mut cubins) = (Vec::new(), Vec::new());
        for container in containers(&file) {
            for entry in &container.entries {
                let kind = if entry.code == CodeKind::Ptx {
                    "PTX"
                } else {
                    "ELF"
                };
                archs.push(format!("{kind} {}", entry.arch.replace("compute_", "sm_")));
                if entry.code == CodeKind::Cubin && entry.compression.is_none() {
                    cubins.push(container.code(entry).map(<[u8]>::to_vec));
                }
            }
        }
        let mut expected = Vec::new();
        let mut extracted = Vec::new();
        for line in listed.lines().filter(|line| line.contains(" file ")) {
            let (kind, rest) = line.split_once(" file ").ok_or("a line without a file")?;
            let (_, path) = rest.split_once(": ").ok_or("a line without a name")?;
            let arch = path
                .rsplit('.')
                .nth(1)
                .ok_or("a name without an architecture")?;
            expected.push(format!("{kind} {arch}"));
            if kind == "ELF" {
                extracted.push(Some(fs::read(dir.path().join(path))?));
            }
        }
        assert_eq!(archs, expected, "{name}: {listed}");
        assert!(cubins == extracted && !cubins.is_empty(), "{name}");
    }
    Ok(())
}
