//! A load name that two majors share: libcusparse.so.12 is in CUDA 12 and in CUDA 13. The major of
//! a file is read from it before it is loaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{LoadName, VersionProbe};
use gpustub_core::plan::LibraryPlan;
use gpustub_tests::command::succeed;
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail};
use gpustub_tests::{Result, repository};

use crate::reports;

pub fn load_name(major: Option<u32>, name: &str) -> LoadName {
    LoadName {
        major,
        name: name.to_owned(),
    }
}

/// A program with stubs of `libacme.so.12`, which CUDA 12 and 13 have, in the family of cudart.
fn program(dir: &Path) -> Result<PathBuf> {
    program_with(dir, |library| {
        library.load_names = vec![
            load_name(Some(13), "libacme.so.12"),
            load_name(Some(12), "libacme.so.12"),
            load_name(Some(11), "libacme.so.11"),
            load_name(None, "libacme.so"),
        ];
        library.newest_major = 13;
        library.library.to_mut().toolkit_version_from = ["libbase.so.", "libnvJitLink.so."]
            .map(|prefix| VersionProbe::Needed(prefix.to_owned()))
            .into();
    })
}

/// A program with stubs of a library in the family of cudart, whose manifest `edit` changes.
pub fn program_with(dir: &Path, edit: impl Fn(&mut LibraryPlan)) -> Result<PathBuf> {
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"none\"\n[stub.acme]\nsymbols = \"acme.symbols\"\n\
                    load-names = { linux = [\"libacme.so.12\"] }\nsearch-dirs = [\"/a\", \"/b\"]\n";
    let lists = [("acme.symbols", list_of(["acme_function"]))];
    let mut plan = plan_or_fail(manifest, &lists, &Machine::X86_64.target())?;
    for library in plan.libraries.iter_mut().filter(|l| l.library.id == "acme") {
        library.library.to_mut().family = "cuda".to_owned();
        library.wheel_dirs = vec!["nvidia/cu13/lib".to_owned(), "nvidia/acme/lib".to_owned()];
        edit(library);
    }
    let stubs = Stubs::write(dir, &plan, "cc", &[])?;
    let program = dir.join("program");
    let mut command = Command::new("cc");
    command.arg("-I").arg(&stubs.sources);
    command.arg(repository().join("tests/programs/search.c"));
    succeed(command.arg(stubs.archive()?).arg("-o").arg(&program))?;
    Ok(program)
}

/// Compiles a library, which gets the file's name as its soname.
pub fn library(file: &Path, source: &str, more: &[String]) -> Result<()> {
    let directory = file.parent().ok_or("a file in a directory")?;
    fs::create_dir_all(directory)?;
    let text = directory.join("source.c");
    fs::write(&text, source)?;
    let mut command = Command::new("cc");
    command.args([
        "-shared",
        "-fPIC",
        "-Wl,--no-as-needed",
        "-Wl,-rpath,$ORIGIN",
    ]);
    command.arg("-o").arg(file).arg(text).args(more);
    let soname = file.file_name().unwrap_or_default().to_string_lossy();
    succeed(command.arg(format!("-Wl,-soname,{soname}")))?;
    Ok(())
}

/// A library that prints its name when it is loaded, and needs another one beside it.
pub fn fake(dir: &Path, name: &str, soname: &str, needs: Option<&str>) -> Result<PathBuf> {
    let directory = dir.join(name);
    let mut more = Vec::new();
    if let Some(needs) = needs {
        library(&directory.join(needs), "int base_function;\n", &[])?;
        more.push(directory.join(needs).display().to_string());
    }
    let source = format!(
        "#include <stdio.h>\nint acme_function(void) {{ return 0; }}\n\
         int cudaGetDeviceCount(int *count) {{ *count = 0; return 0; }}\n\
         __attribute__((constructor)) static void say(void) {{ puts(\"loaded {name}\"); }}\n"
    );
    library(&directory.join(soname), &source, &more)?;
    Ok(directory)
}

/// Files and their directories, requests, accepted directory and its major, and loaded files.
type Case<'c> = (
    &'c [(&'c Path, &'c str)],
    &'c [&'c str],
    &'c str,
    u32,
    &'c str,
);

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn majors_of_one_name_are_distinguished_before_loading() -> Result<()> {
    let dir = scratch()?;
    let program = program(dir.path())?;
    let build = |name: &str, needs| fake(dir.path(), name, "libacme.so.12", needs);
    let twelve = build("twelve", Some("libnvJitLink.so.12"))?;
    let thirteen = build("thirteen", Some("libbase.so.13"))?;
    let silent = build("silent", None)?;
    // Other libraries of the same toolkit have independent majors: their names do not identify it.
    let misleading = build("misleading", Some("libother.so.11"))?;
    let future = build("future", Some("libbase.so.14"))?;
    let runtime = fake(dir.path(), "runtime", "libcudart.so.12", None)?;

    let cases: [Case<'_>; 9] = [
        (
            &[(&twelve, "/a"), (&thirteen, "/b")],
            &["acme"],
            "/b",
            13,
            "thirteen",
        ),
        (
            &[
                (&twelve, "/a"),
                (&thirteen, "/b"),
                (&runtime, "/usr/local/cuda/lib64"),
            ],
            &["cudart", "acme"],
            "/a",
            12,
            "runtime twelve",
        ),
        (&[(&twelve, "/a")], &["acme"], "/a", 12, "twelve"),
        (&[(&silent, "/a")], &["acme"], "/a", 0, "silent"),
        (&[(&misleading, "/a")], &["acme"], "/a", 0, "misleading"),
        (
            &[(&future, "/a"), (&twelve, "/b")],
            &["acme"],
            "/b",
            12,
            "twelve",
        ),
        // If no needed library identifies the major, the directory does.
        (
            &[
                (&silent, "/site-packages/nvidia/cu13/lib"),
                (&runtime, "/site-packages/nvidia/cuda_runtime/lib"),
            ],
            &["cudart", "acme"],
            "",
            0,
            "runtime",
        ),
        (
            &[(&silent, "/site-packages/nvidia/cu13/lib")],
            &["acme"],
            "/site-packages/nvidia/cu13/lib",
            13,
            "silent",
        ),
        (
            &[
                (&twelve, "/site-packages/nvidia/acme/lib"),
                (&silent, "/site-packages/nvidia/cu13/lib"),
            ],
            &["acme"],
            "/site-packages/nvidia/cu13/lib",
            13,
            "silent",
        ),
    ];
    for (files, order, accepted, major, loaded) in cases {
        let machine = Isolated::new()?;
        machine.install(&program, "/site-packages/pkg/program")?;
        for (source, directory) in files {
            machine.install_all(source, directory)?;
        }
        let variables = [("GPUSTUB_LOG", "json")];
        let ran = machine.run_with("/site-packages/pkg/program", order, &variables)?;
        let ran = ran.success()?;
        let report = &reports(&ran)?["acme"];
        let context = format!("{files:?}: {}", ran.stderr);
        let path = format!("{accepted}/libacme.so.12");
        let path = (!accepted.is_empty()).then_some(&path[..]);
        assert_eq!(report["path"].as_str(), path, "{context}");
        assert_eq!(report["major"], major, "{context}");
        let names: Vec<_> = (ran.stdout.lines())
            .filter_map(|line| line.strip_prefix("loaded "))
            .collect();
        assert_eq!(names.join(" "), loaded, "{context}");
        // Every other file is explained.
        for (source, directory) in files {
            if *directory == accepted || **source == *runtime {
                continue;
            }
            let path = format!("{directory}/libacme.so.12");
            let mut candidates = report["candidates"].as_array().into_iter().flatten();
            let is_explained = candidates.any(|candidate| {
                candidate["name"] == path[..] && candidate["reason"] != "no such file"
            });
            assert!(is_explained, "{path}: {context}");
        }
    }
    Ok(())
}

/// The same rule applies to the loader's own choice and to a library that is already loaded.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn loaded_library_is_checked_for_its_major() -> Result<()> {
    let dir = scratch()?;
    let program = program(dir.path())?;
    let twelve = fake(dir.path(), "twelve", "libacme.so.12", Some("libbase.so.12"))?;
    let thirteen = fake(
        dir.path(),
        "thirteen",
        "libacme.so.12",
        Some("libbase.so.13"),
    )?;
    let runtime = fake(dir.path(), "runtime", "libcudart.so.13", None)?;
    let machine = Isolated::new()?;
    machine.install(&program, "/program")?;
    machine.install_all(&twelve, "/ld/twelve")?;
    machine.install_all(&thirteen, "/ld/thirteen")?;
    let check =
        |words: &[&str], variable: (&str, &str), path: Option<&str>, major: u32| -> Result<()> {
            let variables = [("GPUSTUB_LOG", "json"), variable];
            let ran = machine.run_with("/program", words, &variables)?.success()?;
            let report = &reports(&ran)?["acme"];
            assert_eq!(report["path"].as_str(), path, "{}", ran.stderr);
            assert_eq!(report["major"], major, "{}", ran.stderr);
            Ok(())
        };
    let (file_12, file_13) = ("/ld/twelve/libacme.so.12", "/ld/thirteen/libacme.so.12");
    check(
        &["acme"],
        ("LD_LIBRARY_PATH", "/ld/twelve"),
        Some(file_12),
        12,
    )?;
    check(
        &["acme"],
        ("LD_LIBRARY_PATH", "/ld/thirteen"),
        Some(file_13),
        13,
    )?;
    check(&["acme"], ("GPUSTUB_ACME_PATH", file_12), Some(file_12), 12)?;
    check(
        &["acme"],
        ("GPUSTUB_ACME_PATH", "/ld/thirteen"),
        Some(file_13),
        13,
    )?;
    check(
        &["+/ld/twelve/libacme.so.12", "acme"],
        ("LD_LIBRARY_PATH", ""),
        Some(file_12),
        12,
    )?;
    machine.install_all(&runtime, "/usr/local/cuda/lib64")?;
    check(
        &["cudart", "acme"],
        ("LD_LIBRARY_PATH", "/ld/twelve"),
        None,
        0,
    )?;
    check(
        &["cudart", "acme"],
        ("LD_LIBRARY_PATH", "/ld/thirteen"),
        Some(file_13),
        13,
    )?;
    Ok(())
}
