//! Plain object files, for the feature levels of x86-64 (psABI, "Micro-Architecture Levels").

use std::fs;
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
use gpustub_tests::bitcode::Layer;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::naive::{build, compare};

/// Newest first.
const LEVELS: [&str; 3] = ["x86-64-v3", "x86-64-v2", "x86-64"];

const FUNCTIONS: [(&str, &str); 5] = [
    // A fused operation in v3.
    (
        "dot",
        "float dot(float a, float b, float c) { return __builtin_fmaf(a, b, c); }",
    ),
    // One instruction from v2 on; the second differs in v3.
    (
        "bits",
        "int bits(unsigned long x) { return __builtin_popcountl(x); }",
    ),
    (
        "down",
        "double down(double x) { return __builtin_floor(x); }",
    ),
    // Equal at all levels.
    ("next", "int next(int x) { return x + 1; }"),
    (
        "both",
        "int next(int); int both(int x) { return next(next(x)); }",
    ),
];

#[test]
#[ignore = "needs clang, llvm: ./tests/run"]
fn levels_of_x86_64_have_what_they_override() -> Result<()> {
    let dir = scratch()?;
    let directory = dir.path();
    for level in LEVELS {
        fs::create_dir(directory.join(level))?;
        for (name, source) in FUNCTIONS {
            let file = directory.join(format!("{name}.c"));
            fs::write(&file, source)?;
            let mut clang = Command::new("clang-19");
            clang.args(["--target=x86_64-linux-gnu", "-O2", "-ffreestanding", "-c"]);
            clang.arg(format!("-march={level}")).arg(&file).arg("-o");
            succeed(clang.arg(directory.join(level).join(format!("{name}.o"))))?;
        }
    }
    let mut overridden = Vec::new();
    for (index, level) in LEVELS.iter().enumerate() {
        let mut layer = Layer::from_directory(level, &directory.join(level))?;
        if let Some(older) = LEVELS.get(index + 1) {
            layer.files.retain(|file| {
                let name = file.file_name().unwrap_or_default();
                let same_name = directory.join(older).join(name);
                fs::read(file).ok() != fs::read(same_name).ok()
            });
        }
        layer.archive(directory)?;
        overridden.push(layer.files.len());
    }
    assert_eq!(overridden, [2, 2, 5]);

    let views: Vec<_> = (0..3)
        .map(|index| (LEVELS[index], LEVELS[index..].to_vec()))
        .collect();
    let file = build(directory, &views)?;
    assert_eq!(compare(directory, &views)?, 3 * FUNCTIONS.len());
    let bytes = fs::read(file)?;
    let archive = SuperArchive::parse(&bytes).map_err(|e| e.to_string())?;
    assert_eq!(archive.contents_count(), 9);
    Ok(())
}
