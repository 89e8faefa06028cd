//! Each linker's images after the edit: they load, bind to the stub, survive other tools, and elfutils
//! finds no new fault.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_tests::command::{run, succeed};
use gpustub_tests::{Result, elf};

use crate::images::{Images, USER, request};

/// What is linked, with the flags of the compiler.
type Form = (&'static str, &'static [&'static str]);

const FORMS: [Form; 3] = [
    ("library", &["-shared", "-fPIC"]),
    ("pie", &["-DPROGRAM", "-fPIE", "-pie"]),
    ("no-pie", &["-DPROGRAM", "-fno-pie", "-no-pie"]),
];

/// How it is linked.
struct Variant {
    name: &'static str,
    flags: &'static [&'static str],
    has_sections: bool,
    /// What the image prints with the stub.
    prints: &'static str,
}

const fn variant(name: &'static str, flags: &'static [&'static str]) -> Variant {
    Variant {
        name,
        flags,
        has_sections: true,
        prints: "35036037\n",
    }
}

const PLAIN: Variant = variant("plain", &[]);
const NOW: Variant = variant("now", &["-Wl,-z,now"]);
/// Needs more entries of the dynamic section than before, of which lld has none to spare.
const ONE_LIBRARY: Variant = Variant {
    prints: "35036000\n",
    ..variant("one library", &["-DONE_LIBRARY", "-Wl,--as-needed"])
};
/// More zero-initialised data than repair writes into a file.
const LARGE: Variant = variant("large", &["-DLARGE"]);
const NO_SECTIONS: Variant = Variant {
    has_sections: false,
    ..variant("no sections", &[])
};

/// Edits of other tools after ours.
const TOOLS: [(&str, &[&str]); 4] = [
    ("strip", &["strip"]),
    ("llvm-strip-14", &["llvm-strip-14"]),
    ("llvm-strip-19", &["llvm-strip-19"]),
    ("patchelf", &["patchelf", "--add-rpath", "/nowhere"]),
];

/// Findings of eu-elflint.
fn findings(file: &Path) -> Result<BTreeSet<String>> {
    let ran = run(Command::new("eu-elflint").arg("--gnu-ld").arg(file))?;
    let lines = ran.stdout.lines().chain(ran.stderr.lines());
    let found = lines.filter(|line| *line != "No errors").map(str::to_owned);
    Ok(found.collect())
}

/// Runs a repaired image, and returns what is wrong.
fn wrong(
    images: &Images,
    file: &Path,
    is_program: bool,
    variant: &Variant,
) -> Result<Option<String>> {
    let mut command = Command::new(images.at("load"));
    command.arg(file);
    if is_program {
        command = Command::new(file);
    }
    let ran = run(command.env("LD_BIND_NOW", "1"))?;
    let right = ran.status.success() && ran.stdout == variant.prints && ran.stderr.is_empty();
    Ok((!right).then(|| ran.error("wrong").0))
}

/// Checks the images of a linker.
fn linker(
    linker: &str,
    forms: &[Form],
    variants: &[Variant],
    faults: &mut Vec<String>,
) -> Result<()> {
    let images = Images::new()?;
    for (form, form_flags) in forms {
        for variant in variants {
            let name = format!("{linker}, {form}, {}", variant.name);
            let mut flags = form_flags.to_vec();
            let linker = format!("-fuse-ld={linker}");
            flags.push(&linker);
            flags.extend(variant.flags);
            flags.extend(["@real/libcudart.so.12", "@real/libcuda.so.1"]);
            let image = images.compile("original", USER, &flags)?;
            if !variant.has_sections {
                succeed(
                    Command::new("llvm-strip-19")
                        .arg("--strip-sections")
                        .arg(&image),
                )?;
            }
            let has_relr = elf::readelf(&["-d"], &image)?.contains("(RELRENT)");
            // A fixed address needs none.
            let expected = variant.name == "relr" && *form != "no-pie";
            assert_eq!(has_relr, expected, "{name}");
            let found = check(&images, &image, *form != "library", variant)?;
            faults.extend(found.into_iter().map(|fault| format!("{name}, {fault}")));
        }
    }
    Ok(())
}

/// Edits an image, and returns what is wrong with the result.
fn check(
    images: &Images,
    image: &Path,
    is_program: bool,
    variant: &Variant,
) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    let repaired = images.repair(image, "repaired", &request())?;
    let works = |tool: &str, file: &Path| -> Result<Option<String>> {
        let wrong = wrong(images, file, is_program, variant)?;
        Ok(wrong.map(|wrong| format!("{tool}: {wrong}")))
    };
    faults.extend(works("repaired", &repaired)?);
    for (tool, words) in TOOLS.iter().filter(|_| variant.has_sections) {
        let copy = images.at("edited");
        let edit = |file: &Path| -> Result<bool> {
            fs::copy(file, &copy)?;
            let mut command = Command::new(words[0]);
            Ok(run(command.args(&words[1..]).arg(&copy))?.status.success())
        };
        // patchelf 0.14 crashes on programs of mold with 3 MB of .bss.
        if edit(&repaired)? {
            faults.extend(works(tool, &copy)?);
        } else if edit(image)? {
            faults.push(format!("{tool} fails"));
        }
    }
    let (before, after) = (findings(image)?, findings(&repaired)?);
    let new: Vec<_> = after.difference(&before).collect();
    if !new.is_empty() {
        faults.push(format!("eu-elflint: {new:#?}"));
    }
    Ok(faults)
}

fn no(faults: Vec<String>) -> Result<()> {
    match faults.len() {
        0 => Ok(()),
        count => Err(format!("{count} faults\n{}", faults.join("\n")).into()),
    }
}

#[test]
#[ignore = "needs elfutils, patchelf and LLVM: ./tests/run"]
fn bfd() -> Result<()> {
    // Requires GLIBC_ABI_DT_RELR of libc, as glibc insists.
    const RELR: Variant = variant("relr", &["-Wl,-z,pack-relative-relocs"]);
    let mut faults = Vec::new();
    linker(
        "bfd",
        &FORMS,
        &[PLAIN, NOW, ONE_LIBRARY, LARGE, RELR, NO_SECTIONS],
        &mut faults,
    )?;
    no(faults)
}

#[test]
#[ignore = "needs elfutils, patchelf and LLVM: ./tests/run"]
fn gold() -> Result<()> {
    let mut faults = Vec::new();
    linker(
        "gold",
        &FORMS,
        &[PLAIN, NOW, ONE_LIBRARY, LARGE, NO_SECTIONS],
        &mut faults,
    )?;
    no(faults)
}

/// glibc rejects packed relocations unless the image requires a version of libc that lld 14 and mold 1.10
/// do not write. So theirs do without libc.
const RELR: Variant = variant("relr", &["-Wl,--pack-dyn-relocs=relr", "-nostdlib"]);

#[test]
#[ignore = "needs lld, elfutils, patchelf and LLVM: ./tests/run"]
fn lld() -> Result<()> {
    let mut faults = Vec::new();
    linker(
        "lld",
        &FORMS,
        &[PLAIN, NOW, ONE_LIBRARY, LARGE, NO_SECTIONS],
        &mut faults,
    )?;
    linker("lld", &FORMS[..1], &[RELR], &mut faults)?;
    no(faults)
}

#[test]
#[ignore = "needs mold, elfutils, patchelf and LLVM: ./tests/run"]
fn mold() -> Result<()> {
    let mut faults = Vec::new();
    linker(
        "mold",
        &FORMS,
        &[PLAIN, NOW, ONE_LIBRARY, LARGE, NO_SECTIONS],
        &mut faults,
    )?;
    linker("mold", &FORMS[..1], &[RELR], &mut faults)?;
    no(faults)
}
