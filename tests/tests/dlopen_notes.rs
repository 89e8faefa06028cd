//! Notes by which images name the libraries that they open: which of them each linker keeps, and what readers make of
//! them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_image::{ElfImage, read_image};
use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{path_with, succeed};
use gpustub_tests::components::component;
use gpustub_tests::elf::readelf;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use serde_json::{Value, json};

const LIBRARIES: [&str; 3] = ["cudart", "nvrtc", "opencl"];

/// Flags of the program, and the libraries that it then uses.
const PROGRAMS: [(&[&str], &[&str]); 3] = [
    (&[], &[]),
    (&["-DCUDART"], &["cudart"]),
    (&["-DCUDART", "-DOPENCL"], &["cudart", "opencl"]),
];

const PROGRAM: &str = "int cudaFree(void *); int clGetPlatformIDs(unsigned, void *, unsigned *);\n\
    int entry(void)\n{\n int sum = 0;\n\
    #ifdef CUDART\n sum += cudaFree(0);\n#endif\n\
    #ifdef OPENCL\n sum += clGetPlatformIDs(0, 0, 0);\n#endif\n return sum;\n}\n\
    #ifndef __PIC__\n#error programs are position-independent\n#endif\nint main(void) { return entry() == -1; }\n";

/// The notes of an image, each an array of one object, in the order of their features.
fn notes(image: &Path) -> Result<Vec<Value>> {
    let bytes = fs::read(image)?;
    let facts = read_image(&ElfImage::parse(&bytes)?, &|_, _| false, &|_| ())?;
    let mut notes = Vec::new();
    for text in facts.dlopen_notes {
        // UAPI.12, "Implementation".
        assert!(
            !text.contains(char::is_control) && !text.contains("\\u"),
            "{text}"
        );
        match serde_json::from_str(&text)? {
            Value::Array(entries) if entries.len() == 1 => notes.extend(entries),
            other => return Err(format!("not a list of one: {other}").into()),
        }
    }
    notes.sort_by_key(|note| note["feature"].to_string());
    Ok(notes)
}

fn features(image: &Path) -> Result<Vec<String>> {
    let notes = notes(image)?;
    let features = notes.iter().map(|note| note["feature"].as_str());
    Ok(features.map(|f| f.unwrap_or_default().to_owned()).collect())
}

/// Table of all libraries, with a line for the first.
fn manifest(line: &str) -> String {
    format!(
        "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n{line}\n[stub.nvrtc]\n[stub.opencl]\n"
    )
}

/// Stubs of a manifest in a directory of their own, as a build script writes them.
fn stubs(dir: &Path, name: &str, manifest: &str) -> Result<Stubs> {
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let own = dir.join(name);
    fs::create_dir(&own)?;
    Stubs::write_for_cargo(&own, &plan)
}

/// Links a program, or with `-shared` a library, as rustc does.
fn link(dir: &Path, compiler: &str, stubs: &[&Path], flags: &[&str]) -> Result<PathBuf> {
    let (source, image) = (dir.join("main.c"), dir.join("image"));
    fs::write(&source, PROGRAM)?;
    let mut cc = Command::new(compiler);
    cc.args(["-fPIC", "-O1"]).arg(&source).args(flags);
    cc.arg("-Wl,--whole-archive").args(stubs);
    cc.args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-ldl", "-o"]);
    succeed(cc.arg(&image))?;
    Ok(image)
}

/// Images have notes of the libraries that they use, or with linkers that keep all notes of all that are declared.
fn images_are_noted(linker: &str, keeps_all: bool) -> Result<()> {
    let dir = scratch()?;
    let archive = stubs(dir.path(), "a", &manifest(""))?.archive()?;
    let linker = format!("-fuse-ld={linker}");
    for (flags, used) in PROGRAMS {
        let expected: &[&str] = if keeps_all { &LIBRARIES } else { used };
        for kind in [&["-pie"][..], &["-shared", "-fvisibility=default"]] {
            let flags = [flags, kind, &[&linker]].concat();
            let image = link(dir.path(), "cc", &[&archive], &flags)?;
            assert_eq!(features(&image)?, expected, "{flags:?}");
            succeed(Command::new("strip").arg(&image))?;
            assert_eq!(features(&image)?, expected, "{flags:?}, stripped");
        }
    }
    Ok(())
}

#[test]
fn images_name_the_libraries_that_they_use() -> Result<()> {
    images_are_noted("bfd", false)
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn images_name_the_libraries_that_they_use_with_other_linkers() -> Result<()> {
    images_are_noted("lld", false)?;
    images_are_noted("gold", true)?;
    images_are_noted("mold", true)
}

#[test]
fn notes_have_the_specified_form() -> Result<()> {
    let dir = scratch()?;
    let line = "dlopen-note = \"recommended\"";
    let archive = stubs(dir.path(), "a", &manifest(line))?.archive()?;
    let image = link(dir.path(), "cc", &[&archive], &["-DCUDART", "-DOPENCL"])?;
    let expected = [
        json!({
            "soname": ["libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"],
            "feature": "cudart", "description": "CUDA runtime", "priority": "recommended",
        }),
        json!({
            "soname": ["libOpenCL.so.1"],
            "feature": "opencl", "description": "OpenCL", "priority": "suggested",
        }),
    ];
    assert_eq!(notes(&image)?, expected);
    // `[Nr] Name Type Address Off Size ES Flg Lk Inf Al`
    let sections = readelf(&["--sections"], &image)?;
    let section = sections.lines().find(|line| line.contains(".note.dlopen"));
    let words: Vec<&str> = section.ok_or("no section")?.split_whitespace().collect();
    let (end, kind) = (words.len(), words.iter().position(|word| *word == "NOTE"));
    assert!(
        kind.is_some() && words[end - 4] == "A" && words[end - 1] == "4",
        "{words:?}"
    );
    Ok(())
}

/// Two packages have the same library, and different priorities.
fn merged_packages_have_one_note(linkers: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let first = stubs(dir.path(), "first", &manifest(""))?.archive()?;
    let line = "dlopen-note = \"recommended\"";
    let second = stubs(dir.path(), "second", &manifest(line))?.archive()?;
    for linker in linkers {
        let linker = format!("-fuse-ld={linker}");
        for packages in [[&*first, &*second], [&second, &first]] {
            let image = link(dir.path(), "cc", &packages, &["-DCUDART", &linker])?;
            let mut features = features(&image)?;
            features.retain(|feature| feature == "cudart");
            assert_eq!(features, ["cudart"], "{linker}");
            let priority = &notes(&image)?[0]["priority"];
            let is_first = packages[0] == first;
            assert_eq!(priority, if is_first { "suggested" } else { "recommended" });
        }
    }
    Ok(())
}

#[test]
fn packages_in_one_image_have_one_note_of_a_library() -> Result<()> {
    merged_packages_have_one_note(&["bfd"])
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn packages_in_one_image_have_one_note_of_a_library_with_other_linkers() -> Result<()> {
    merged_packages_have_one_note(&["gold", "lld", "mold"])
}

#[test]
fn notes_can_be_turned_off() -> Result<()> {
    let dir = scratch()?;
    let flags = ["-DCUDART", "-DOPENCL"];
    // The table of a library.
    let one = stubs(dir.path(), "one", &manifest("dlopen-note = \"off\""))?;
    let image = link(dir.path(), "cc", &[&one.archive()?], &flags)?;
    assert_eq!(features(&image)?, ["opencl"]);
    // All libraries, in a build that compiles exported sources.
    let plan = plan_or_fail(&manifest(""), &[], &Machine::X86_64.target())?;
    let define = ["-DGPUSTUB_NO_DLOPEN_NOTES".to_owned()];
    let all = Stubs::write(dir.path(), &plan, "cc", &define)?;
    let image = link(dir.path(), "cc", &[&all.archive()?], &flags)?;
    assert_eq!(features(&image)?, [""; 0]);
    assert!(!readelf(&["--sections"], &image)?.contains(".note.dlopen"));
    Ok(())
}

/// A library of stubs exports all functions, so it opens all libraries; programs that link it open none.
#[test]
fn shared_stubs_name_all_libraries() -> Result<()> {
    let dir = scratch()?;
    let shared = stubs(dir.path(), "a", &manifest(""))?.shared(dir.path(), "demo")?;
    assert_eq!(features(&shared.library)?, LIBRARIES);
    let files = [&*shared.link_library, &*shared.client];
    let image = link(dir.path(), "cc", &files, &["-DCUDART"])?;
    assert_eq!(features(&image)?, [""; 0]);
    Ok(())
}

/// Exported archives have one object per library, which linkers that keep all notes do not link if it is unused.
#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn programs_with_exported_stubs_name_what_they_use_with_every_linker() -> Result<()> {
    let dir = scratch()?;
    let mut export = gpustub(&["export", "stubs"])?;
    export
        .args(LIBRARIES)
        .args(["--header-version", "12", "--out-dir"]);
    succeed(export.arg(dir.path()))?;
    let source = dir.path().join("main.c");
    fs::write(&source, PROGRAM)?;
    for linker in ["bfd", "gold", "lld", "mold"] {
        for (flags, used) in PROGRAMS {
            let image = dir.path().join("image");
            let mut cc = Command::new("cc");
            cc.args(["-fPIC", "-Wl,--gc-sections"])
                .args(flags)
                .arg(&source)
                .arg("-L");
            cc.arg(dir.path().join("link"))
                .args(["-lcudart", "-lnvrtc", "-lOpenCL", "-ldl"]);
            cc.arg(format!("-fuse-ld={linker}")).arg("-o");
            succeed(cc.arg(&image))?;
            assert_eq!(features(&image)?, used, "{linker}, {flags:?}");
        }
    }
    Ok(())
}

/// Other assemblers, and the other architecture.
#[test]
#[ignore = "needs clang and a cross compiler: ./tests/run"]
fn notes_are_the_same_by_other_assemblers() -> Result<()> {
    for (machine, compiler) in [
        (Machine::X86_64, "clang"),
        (Machine::Aarch64, &Machine::Aarch64.compiler("c")),
    ] {
        let dir = scratch()?;
        let plan = plan_or_fail(&manifest(""), &[], &machine.target())?;
        let archive = Stubs::write(dir.path(), &plan, compiler, &[])?.archive()?;
        let image = link(dir.path(), compiler, &[&archive], &["-DOPENCL"])?;
        assert_eq!(features(&image)?, ["opencl"], "{compiler}");
    }
    Ok(())
}

// ---- readers ---------------------------------------------------------------------------------------

const CONTROL: &str = "Source: demo\nMaintainer: A <a@example.org>\nBuild-Depends: debhelper-compat (= 13)\n\n\
    Package: demo\nArchitecture: any\nRecommends: ${dlopen:Recommends}\nSuggests: ${dlopen:Suggests}\n\
    Description: demo\n";
const CHANGELOG: &str = "demo (1.0) unstable; urgency=low\n\n  * New.\n\n \
    -- A <a@example.org>  Mon, 01 Jan 2024 00:00:00 +0000\n";

/// Installed packages, and a file of each: no machine has both, and Debian has none of CUDA 13 yet.
const PACKAGES: [(&str, &str); 4] = [
    ("libcudart13", "libcudart.so.13.5.1"),
    ("libcudart12", "libcudart.so.12"),
    ("ocl-icd-libopencl1", "libOpenCL.so.1"),
    ("ocl-icd-opencl-dev", "libOpenCL.so"),
];

/// Tool of the components, in a Debian source package with the installed packages above.
fn tool(name: &str, dir: &Path) -> Result<Command> {
    let (reader, packaging) = (component("dlopenlibdeps")?, component("packaging")?);
    let path = path_with(&packaging.join("usr/bin"))?;
    let mut roots = [&reader, &packaging].into_iter();
    let own = roots.find(|root| root.join("usr/bin").join(name).exists());
    let mut tool = Command::new(own.ok_or("no such tool")?.join("usr/bin").join(name));
    let paths = [reader.join("usr/bin").into_os_string(), path];
    tool.current_dir(dir).env("PATH", paths.join(":".as_ref()));
    let perl = [&reader, &packaging].map(|root| root.join("usr/share/perl5").into_os_string());
    tool.env("PERL5LIB", perl.join(":".as_ref()));
    tool.env("PYTHONPATH", reader.join("usr/lib/python3/dist-packages"));
    tool.env(
        "LD_LIBRARY_PATH",
        packaging.join("usr/lib/x86_64-linux-gnu"),
    );
    tool.env("MAGIC", packaging.join("usr/lib/file/magic.mgc"));
    tool.env("DPKG_ADMINDIR", dir.join("database"));
    Ok(tool)
}

/// Database of `dpkg-query` with [`PACKAGES`].
fn install(dir: &Path) -> Result<()> {
    let database = dir.join("database");
    fs::create_dir_all(database.join("info"))?;
    fs::create_dir_all(database.join("updates"))?;
    fs::write(database.join("info/format"), "1\n")?;
    let mut status = String::new();
    for (package, file) in PACKAGES {
        status += &format!(
            "Package: {package}\nStatus: install ok installed\nMaintainer: A <a@example.org>\n\
             Architecture: amd64\nVersion: 1\nDescription: fake\n\n"
        );
        let list = format!("/.\n/usr\n/usr/lib\n/usr/lib/x86_64-linux-gnu/{file}\n");
        fs::write(database.join(format!("info/{package}.list")), list)?;
    }
    Ok(fs::write(database.join("status"), status)?)
}

/// A package of Debian, made by debhelper, depends on what its program opens.
#[test]
#[ignore = "needs debhelper and dh_dlopenlibdeps: ./tests/run --all"]
fn heavy_debian_packages_depend_on_noted_libraries() -> Result<()> {
    let dir = scratch()?;
    let debian = dir.path().join("debian");
    fs::create_dir_all(debian.join("demo/usr/bin"))?;
    fs::write(debian.join("control"), CONTROL)?;
    fs::write(debian.join("changelog"), CHANGELOG)?;
    install(dir.path())?;
    let line = "dlopen-note = \"recommended\"";
    let archive = stubs(dir.path(), "a", &manifest(line))?.archive()?;
    let image = link(dir.path(), "cc", &[&archive], &["-DCUDART", "-DOPENCL"])?;
    let program = debian.join("demo/usr/bin/demo");
    fs::copy(&image, &program)?;
    succeed(Command::new("strip").arg(&program))?;

    // systemd's reader.
    let read = succeed(tool("dlopen-notes", dir.path())?.arg("-s").arg(&program))?;
    let expected = "libOpenCL.so.1 suggested\n\
        libcudart.so.13 libcudart.so.12 libcudart.so.11.0 recommended\n";
    assert_eq!(read.stdout, expected);
    let raw = succeed(tool("dlopen-notes", dir.path())?.arg("--raw").arg(&program))?;
    let (_, raw) = raw.stdout.split_once('\n').ok_or("no notes")?;
    let mut raw: Vec<Value> = serde_json::from_str(raw)?;
    raw.sort_by_key(|note| note["feature"].to_string());
    assert_eq!(raw, notes(&program)?);

    for words in [
        &["dh_dlopenlibdeps"][..],
        &["dh_gencontrol"],
        &["dh_builddeb", "--destdir=."],
    ] {
        succeed(tool(words[0], dir.path())?.args(&words[1..]))?;
    }
    let mut query = Command::new("dpkg-deb");
    query.arg("-f").arg(dir.path().join("demo_1.0_amd64.deb"));
    let fields = succeed(query.args(["Recommends", "Suggests"]))?.stdout;
    assert_eq!(
        fields,
        "Recommends: libcudart13 | libcudart12\nSuggests: ocl-icd-libopencl1\n"
    );
    Ok(())
}
