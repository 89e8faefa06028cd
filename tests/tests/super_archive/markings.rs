//! The object with the tables has the properties that `ld -r` gives to the ordinary members, so that programs
//! that link the whole archive keep branch protection.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_superarchive::{LayerId, Plan, Request, Source, View, ViewId};
use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;

/// Options of two members, and a compiler.
const MEMBERS: [(&str, [&[&str]; 2]); 7] = [
    (
        "gcc",
        [&["-fcf-protection=full"], &["-fcf-protection=full"]],
    ),
    (
        "gcc",
        [&["-fcf-protection=full"], &["-fcf-protection=branch"]],
    ),
    (
        "gcc",
        [&["-fcf-protection=full"], &["-fcf-protection=none"]],
    ),
    (
        "gcc",
        [&["-fcf-protection=none"], &["-fcf-protection=none"]],
    ),
    (
        "gcc",
        [
            &["-Wa,-mx86-used-note=yes"],
            &["-Wa,-mx86-used-note=yes", "-mavx2"],
        ],
    ),
    (
        "aarch64-linux-gnu-gcc",
        [
            &["-mbranch-protection=standard"],
            &["-mbranch-protection=standard"],
        ],
    ),
    (
        "aarch64-linux-gnu-gcc",
        [
            &["-mbranch-protection=bti"],
            &["-mbranch-protection=standard"],
        ],
    ),
];

fn write(dir: &Path, compiler: &str, options: [&[&str]; 2]) -> Result<()> {
    let mut sources = Vec::new();
    for (name, options) in ["one", "two"].iter().zip(options) {
        let text = format!("int {name}(int x) {{ static float y; y += x; return y; }}");
        fs::write(dir.join(format!("{name}.c")), text)?;
        let mut command = Command::new(compiler);
        command.current_dir(dir).args(["-O2", "-c"]).args(options);
        succeed(command.arg(format!("{name}.c")))?;
        let object = dir.join(format!("{name}.o"));
        sources.push(Source::open(&object).map_err(|e| e.to_string())?);
    }
    let request = Request {
        layers: sources
            .iter()
            .map(|source| source.layer())
            .collect::<Result<_, _>>()
            .map_err(|e| e.to_string())?,
        views: vec![View {
            name: "v".into(),
            layers: vec![LayerId(0), LayerId(1)],
        }],
        default: Some(ViewId(0)),
    };
    let mut bytes = Vec::new();
    let plan = Plan::new(&request).map_err(|e| format!("{e:?}"))?;
    plan.write(&mut bytes)?;
    fs::write(dir.join("all.a"), bytes)?;
    Ok(())
}

/// The lines of properties.
fn properties(dir: &Path, file: &str) -> Result<String> {
    let ran = run(Command::new("readelf").current_dir(dir).args(["-nW", file]))?.success()?;
    let lines: Vec<_> = (ran.stdout.lines())
        .filter(|line| {
            line.contains("Properties") || line.contains("feature") || line.contains("ISA")
        })
        .collect();
    Ok(lines.join("\n"))
}

fn compare(compilers: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    for (compiler, options) in MEMBERS {
        if !compilers.contains(&compiler) {
            continue;
        }
        write(dir, compiler, options)?;
        let ld = compiler.replace("gcc", "ld");
        let merge = ["-r", "one.o", "two.o", "-o", "merged.o"];
        succeed(Command::new(&ld).current_dir(dir).args(merge))?;
        let extract = ["x", "all.a", "gpustub-views.o"];
        succeed(Command::new("ar").current_dir(dir).args(extract))?;
        let expected = properties(dir, "merged.o")?;
        assert_eq!(
            properties(dir, "gpustub-views.o")?,
            expected,
            "{compiler} {options:?}"
        );
        // Merging it once more changes nothing.
        let merge_archive = ["-r", "--whole-archive", "all.a", "-o", "whole.o"];
        succeed(Command::new(&ld).current_dir(dir).args(merge_archive))?;
        assert_eq!(
            properties(dir, "whole.o")?,
            expected,
            "{compiler} {options:?}"
        );
    }
    Ok(())
}

#[test]
fn the_object_with_the_tables_has_the_properties_of_the_members() -> Result<()> {
    compare(&["gcc"])
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn the_object_with_the_tables_has_the_properties_of_other_machines() -> Result<()> {
    compare(&["aarch64-linux-gnu-gcc"])
}

/// Every linker keeps IBT and SHSTK.
#[test]
#[ignore = "needs gold, lld, mold: ./tests/run"]
fn linkers_keep_branch_protection() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let full: &[&str] = &["-fcf-protection=full"];
    write(dir, "gcc", [full, full])?;
    for linker in ["bfd", "gold", "lld", "mold"] {
        let mut gcc = Command::new("gcc");
        gcc.current_dir(dir).args(["-shared", "-nostdlib"]);
        gcc.arg(format!("-fuse-ld={linker}"));
        let archive = "-Wl,--whole-archive,all.a,--no-whole-archive";
        succeed(gcc.args([archive, "-o", "all.so"]))?;
        let properties = properties(dir, "all.so")?;
        assert!(properties.contains("IBT, SHSTK"), "{linker}: {properties}");
    }
    Ok(())
}
