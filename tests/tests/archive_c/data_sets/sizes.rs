//! Sizes of super-archives, of an archive for each view, and of offload bundles. Prints rows for BENCHMARKS.md.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_superarchive::ViewId;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;
use serde_json::Value;

use super::inputs::{Gpustub, Inputs, Row, rows, write};

/// An archive for each view.
fn directory(all: &Path, inputs: &Inputs) -> Result<Vec<PathBuf>> {
    let gpustub = Gpustub::new()?;
    let archives = inputs.views.iter().map(|view| {
        let archive = all.with_file_name(format!("{}.a", view.name));
        let mut extract = gpustub.archive(&["extract", "-q", "--view", &view.name, "-o"]);
        succeed(extract.arg(&archive).arg(all))?;
        Ok(archive)
    });
    archives.collect()
}

/// Size of an offload bundle of these files. The bundler accepts names of processors that do not exist. As archives it
/// only unpacks what it bundled (`-type=a`), so they are bundled as files of any kind.
fn bundle(archives: &[PathBuf], options: &[&str]) -> Result<u64> {
    let bundler = "clang-tools-19/usr/lib/llvm-19/bin/clang-offload-bundler";
    let file = archives[0].with_file_name("bundle");
    let mut bundle = Command::new(component(bundler)?);
    let targets = (0..archives.len()).map(|at| format!("hip-amdgcn-amd-amdhsa--view{at}"));
    let targets: Vec<_> = targets.collect();
    bundle
        .args(options)
        .arg("-type=bc")
        .arg("-output")
        .arg(&file);
    bundle.arg(format!("-targets={}", targets.join(",")));
    for archive in archives {
        bundle.arg("-input").arg(archive);
    }
    succeed(&mut bundle)?;
    Ok(fs::metadata(file)?.len())
}

/// Size of a super-archive; what `stats` prints is right.
fn size(file: &Path, bytes: &[u8]) -> Result<(u64, u64)> {
    fs::write(file, bytes)?;
    let archive = SuperArchive::parse(bytes).map_err(|error| error.to_string())?;
    let (size, tables) = (bytes.len() as u64, archive.tables_size());
    let mut stats = Gpustub::new()?.archive(&["stats", "--format", "json"]);
    let stats = succeed(stats.arg(file))?;
    let stats: Value = serde_json::from_str(&stats.stdout)?;
    let contents = archive
        .contents()
        .map(|contents| contents.map(|one| one.size()));
    let contents: u64 = contents
        .sum::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    assert_eq!(stats["file_bytes"], size);
    assert_eq!(stats["tables_bytes"], tables);
    assert_eq!(stats["unique"]["bytes"], contents);
    Ok((size, tables))
}

fn measure(row: &Row) -> Result<()> {
    let inputs = Inputs::read(row)?;
    let members = inputs.layers.iter().flat_map(|layer| &layer.members);
    let members: HashSet<&[u8]> = members.map(|member| &member.data[..]).collect();
    let members: u64 = members.iter().map(|data| data.len() as u64).sum();
    let dir = scratch()?;
    let file = dir.path().join("all");
    let mut request = inputs.request()?;
    let mut line = format!("| {} | {} | {members}", row.name, inputs.views.len());
    let mut last = 0;
    for default in [None, Some(ViewId(0))] {
        request.default = default;
        let (size, tables) = size(&file, &write(&request)?)?;
        let ratio = size as f64 / members as f64;
        if default.is_none() {
            line += &format!(" | {tables}");
        }
        line += &format!(" | {size} ({ratio:.3})");
        if let Some(bound) = row.bound(default) {
            assert!(ratio <= bound, "{}: {ratio}, more than {bound}", row.name);
        }
        last = size;
    }
    let archives = directory(&file, &inputs)?;
    let sum = archives.iter().map(|file| Ok(fs::metadata(file)?.len()));
    let sum: u64 = sum.sum::<Result<_>>()?;
    let (plain, packed) = (bundle(&archives, &[])?, bundle(&archives, &["-compress"])?);
    println!("{line} | {sum} | {plain} | {packed} |");
    assert!(last < sum.min(plain), "{}: {last}", row.name);
    Ok(())
}

#[test]
#[ignore = "needs device libraries, libgcc, newlib and others of Debian, llvm, and minutes: ./tests/run --all"]
fn heavy_sizes_of_the_data_sets() -> Result<()> {
    println!(
        "| set | views | members | tables | file | with a default view | archives | bundle | compressed |"
    );
    rows()?.iter().try_for_each(measure)
}
