//! Each linker's images after the edit: they load, bind to the stub, survive other tools, and elfutils
//! finds no new fault.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_image::{SymbolRequirements, read_symbols_file};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::wheel_libraries;
use gpustub_tests::{Result, elf};

use crate::images::{Images, USER, request};

/// Kind of image, with the flags of the compiler.
type Form = (&'static str, &'static [&'static str]);

const FORMS: [Form; 3] = [
    ("library", &["-shared", "-fPIC"]),
    ("pie", &["-DPROGRAM", "-fPIE", "-pie"]),
    ("no-pie", &["-DPROGRAM", "-fno-pie", "-no-pie"]),
];

/// Way of linking.
struct Variant {
    name: &'static str,
    flags: &'static [&'static str],
    has_sections: bool,
    /// Output of the image with the stub.
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
    let mut command = Command::new(images.path("load"));
    command.arg(file);
    if is_program {
        command = Command::new(file);
    }
    let ran = run(command.env("LD_BIND_NOW", "1"))?;
    let right = ran.status.success() && ran.stdout == variant.prints && ran.stderr.is_empty();
    Ok((!right).then(|| ran.error("wrong").0))
}

/// Checks the images of a compiler with a linker.
fn linker(
    (compiler, linker): (&'static str, &str),
    forms: &[Form],
    variants: &[Variant],
    faults: &mut Vec<String>,
) -> Result<()> {
    let images = Images::cross_compiled(compiler)?;
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
        let copy = images.path("edited");
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

/// AArch64 has pages of up to 64 KiB, and other relocations.
#[test]
#[ignore = "needs a cross compiler and qemu: ./tests/run"]
fn aarch64() -> Result<()> {
    let images = Images::cross_compiled("aarch64-linux-gnu-gcc")?;
    for (form, flags) in FORMS {
        for variant in [&PLAIN, &ONE_LIBRARY, &LARGE] {
            let link = ["@real/libcudart.so.12", "@real/libcuda.so.1"];
            let flags = [flags, variant.flags, &link].concat();
            let image = images.compile("original", USER, &flags)?;
            let repaired = images.repair(&image, "repaired", &request())?;
            let mut qemu = Command::new("qemu-aarch64");
            qemu.args(["-L", "/usr/aarch64-linux-gnu"]);
            if form == "library" {
                qemu.arg(images.path("load"));
            }
            let ran = succeed(qemu.arg(&repaired).env("LD_BIND_NOW", "1"))?;
            assert_eq!(ran.stdout, variant.prints, "{form}, {}", variant.name);
            let new = &findings(&repaired)? - &findings(&image)?;
            assert!(new.is_empty(), "{form}, {}: {new:#?}", variant.name);
        }
    }
    Ok(())
}

/// Vendors' libraries, which need each other.
#[test]
#[ignore = "needs elfutils and CUDA wheels: ./tests/run"]
fn vendors_libraries_keep_their_symbols() -> Result<()> {
    let images = Images::new()?;
    for (wheel, name, needed) in [
        ("cublas", "libnvblas.so.12", "libcublas.so.12"),
        ("cufft-12.9", "libcufftw.so.11", "libcufft.so.11"),
    ] {
        let image = wheel_libraries(wheel)?.join(name);
        let mut request = request();
        request.libraries[0].needed = vec![needed.to_owned()];
        let repaired = images.repair(&image, name, &request)?;
        let symbols = |file: &Path| read_symbols_file(file, SymbolRequirements::default());
        assert_eq!(symbols(&repaired), symbols(&image), "{name}");
        let (before, after) = (elf::needed(&image)?, elf::needed(&repaired)?);
        assert!(before.contains(&needed.to_owned()) && !after.contains(&needed.to_owned()));
        assert_eq!(after.len(), before.len(), "{after:?}");
        let new = &findings(&repaired)? - &findings(&image)?;
        assert!(new.is_empty(), "{name}: {new:#?}");
    }
    Ok(())
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
    let mut faults = Vec::new();
    linker(
        ("gcc", "bfd"),
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
        ("gcc", "gold"),
        &FORMS,
        &[PLAIN, NOW, ONE_LIBRARY, LARGE, NO_SECTIONS],
        &mut faults,
    )?;
    no(faults)
}

/// Requires `GLIBC_ABI_DT_RELR` of libc, as glibc insists.
const RELR: Variant = variant("relr", &["-Wl,-z,pack-relative-relocs"]);

/// glibc rejects packed relocations unless the image requires a version of libc that lld 14 and mold 1.10
/// do not write. So theirs do without libc.
const BARE_RELR: Variant = variant(
    "relr",
    &[
        "-Wl,--pack-dyn-relocs=relr",
        "-nostdlib",
        "-DBARE",
        "@stub/libprint.so",
    ],
);

#[test]
#[ignore = "needs lld, elfutils, patchelf and LLVM: ./tests/run"]
fn lld() -> Result<()> {
    let mut faults = Vec::new();
    let variants = [PLAIN, NOW, ONE_LIBRARY, LARGE, NO_SECTIONS];
    linker(("gcc", "lld"), &FORMS, &variants, &mut faults)?;
    linker(("gcc", "lld"), &FORMS[..2], &[BARE_RELR], &mut faults)?;
    no(faults)
}

#[test]
#[ignore = "needs lld 19, elfutils, patchelf and LLVM: ./tests/run"]
fn lld_19() -> Result<()> {
    let mut faults = Vec::new();
    // gcc knows no versions of lld.
    let variants = [PLAIN, NOW, ONE_LIBRARY, LARGE, RELR, NO_SECTIONS];
    linker(("clang", "lld-19"), &FORMS, &variants, &mut faults)?;
    no(faults)
}

#[test]
#[ignore = "needs mold, elfutils, patchelf and LLVM: ./tests/run"]
fn mold() -> Result<()> {
    let mut faults = Vec::new();
    let variants = [PLAIN, NOW, ONE_LIBRARY, LARGE, NO_SECTIONS];
    linker(("gcc", "mold"), &FORMS, &variants, &mut faults)?;
    linker(("gcc", "mold"), &FORMS[..2], &[BARE_RELR], &mut faults)?;
    no(faults)
}
