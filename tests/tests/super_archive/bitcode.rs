//! Bitcode of each release and target: the container is a module of the same kind, and LLVM prints
//! no messages about it.

use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;
use gpustub_tests::command::{Ran, run};

use crate::cases::{Cases, RELEASES};
use crate::links::link;
use crate::sample::{Default, Sample};

/// Runs a tool that must succeed without messages; its output must contain all of `expected`.
fn silent(tool: &str, sample: &Sample, words: &[&str], expected: &[&str]) -> Result<Ran> {
    let ran = run(Command::new(tool).current_dir(sample.dir()).args(words))?.success()?;
    if !ran.stderr.is_empty() {
        return Err(ran.error("a complaint"));
    }
    ran.expect_in_order(expected)
}

#[test]
#[ignore = "needs clang, lld and llvm of several releases: ./tests/run"]
fn llvm_links_bitcode_of_the_default_view_alone() -> Result<()> {
    for target in Cases::read()?.bitcode {
        for (index, release) in RELEASES.iter().enumerate() {
            let mut compiler = vec![format!("clang-{release}"), "-emit-llvm".to_owned()];
            compiler.extend(target.iter().cloned());
            let sample = Sample::build(Default::Bitcode, &compiler, &[])?;
            let archive = SuperArchive::parse(&sample.bytes).map_err(|e| e.to_string())?;
            archive.verify().map_err(|e| e.to_string())?;
            // Newer releases read the output of older ones.
            for tools in &RELEASES[index..] {
                let linker = format!("llvm-link-{tools}");
                for words in [&["main.o", "lib.a"][..], &["lib.a", "main.o"], &["lib.a"]] {
                    let words = [words, &["-o", "linked.bc"]].concat();
                    silent(&linker, &sample, &words, &[])?;
                    let symbols = ["T bar", "T foo"];
                    let nm = format!("llvm-nm-{tools}");
                    let ran = silent(&nm, &sample, &["linked.bc"], &symbols)?;
                    if ran.stdout.contains("T only1") {
                        return Err(ran.error("only1 is in the hidden view"));
                    }
                    let disassembler = format!("llvm-dis-{tools}");
                    let ran = silent(
                        &disassembler,
                        &sample,
                        &["linked.bc", "-o", "-"],
                        &["ret i32 1"],
                    )?;
                    if ran.stdout.contains("ret i32 2") {
                        return Err(ran.error("the other bar is in the hidden view"));
                    }
                }
            }
            let is_native = target
                .iter()
                .any(|word| word.starts_with("--target=x86_64"));
            if is_native && *release != "15" {
                link(&[format!("ld.lld-{release}")], &sample, true)?;
            }
        }
    }
    Ok(())
}
