//! Files that a library opens itself, by a bare name: found also where the loader would not find them.

use std::fs;
use std::path::Path;
use std::process::Command;

use gpustub_core::library::{Library, Preload};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{wheel_libraries, wheel_library_dir};
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, repository};

use crate::built::runtime_includes;
use crate::shared::{library, load_name, program_with};

/// A library that prints its name when it is loaded.
fn part(file: &Path, name: &str) -> Result<()> {
    let source = format!(
        "#include <stdio.h>\n\
         __attribute__((constructor)) static void say(void) {{ puts(\"loaded {name}\"); }}\n"
    );
    library(file, &source, &[])
}

fn preload(file: &str, functions: Option<&str>) -> Preload {
    Preload {
        file: file.to_owned(),
        functions: functions.map(str::to_owned),
    }
}

/// The manifest's files are loaded if the library would not find them itself, and the program uses a
/// function that needs them.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn files_that_a_library_opens_are_preloaded() -> Result<()> {
    let dir = scratch()?;
    let program = program_with(dir.path(), |library| {
        library.load_names = vec![load_name(Some(12), "libacme.so.12")];
        library.newest_major = 12;
        library.root_subdirs = vec!["lib64".to_owned()];
        library.preload = vec![
            preload("libacme_part.so.", None),
            preload("nvidia/helper/lib/libhelper.so.", None),
            preload("libacme_tool.so", Some("acme_func")),
            preload("libacme_unused.so", Some("acme_other")),
        ];
    })?;
    let source = "int acme_function(void) { return 0; }\n";
    let plain = dir.path().join("plain").join("libacme.so.12");
    fs::create_dir_all(dir.path().join("plain"))?;
    fs::write(dir.path().join("plain/acme.c"), source)?;
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-Wl,-soname,libacme.so.12", "-o"]);
    succeed(command.arg(&plain).arg(dir.path().join("plain/acme.c")))?;
    let by_run_path = dir.path().join("run-path").join("libacme.so.12");
    let run_path = "-Wl,-rpath,$ORIGIN/../../helper/lib".to_owned();
    library(&by_run_path, source, &[run_path])?;
    for name in ["part.so.12", "tool.so", "unused.so", "tool.so.1"] {
        part(&dir.path().join(format!("libacme_{name}")), name)?;
    }
    part(&dir.path().join("libhelper.so.12"), "helper")?;
    part(&dir.path().join("libhelper.so.11"), "helper of 11")?;

    let wheel = "/env/lib/python3.12/site-packages";
    for (file, directory, helper_directory, loaded) in [
        // Wheels: the helper has a directory of its own.
        (
            &plain,
            format!("{wheel}/nvidia/acme/lib"),
            format!("{wheel}/nvidia/helper/lib"),
            &["loaded part.so.12", "loaded helper", "loaded tool.so"][..],
        ),
        // One directory for all.
        (
            &plain,
            format!("{wheel}/nvidia/cu13/lib"),
            format!("{wheel}/nvidia/cu13/lib"),
            &["loaded part.so.12", "loaded helper", "loaded tool.so"],
        ),
        // The library's run path is enough.
        (
            &by_run_path,
            format!("{wheel}/nvidia/acme/lib"),
            format!("{wheel}/nvidia/helper/lib"),
            &[],
        ),
        // Another directory of the toolkit.
        (
            &plain,
            "/a".to_owned(),
            "/a/nothing".to_owned(),
            &["loaded part.so.12", "loaded tool.so"],
        ),
    ] {
        let machine = Isolated::new()?;
        let program_path = format!("{wheel}/pkg/program");
        machine.install(&program, &program_path)?;
        machine.install(file, &format!("{directory}/libacme.so.12"))?;
        for name in ["part.so.12", "tool.so", "unused.so", "tool.so.1"] {
            let name = format!("libacme_{name}");
            machine.install(&dir.path().join(&name), &format!("{directory}/{name}"))?;
        }
        for name in ["libhelper.so.11", "libhelper.so.12"] {
            machine.install(
                &dir.path().join(name),
                &format!("{helper_directory}/{name}"),
            )?;
        }
        let ran = machine.run_with(&program_path, &["acme"], &[])?.success()?;
        let lines: Vec<_> = (ran.stdout.lines())
            .filter(|line| line.starts_with("loaded "))
            .collect();
        assert_eq!(lines, loaded, "{directory}");
    }
    Ok(())
}

/// CUPTI opens the library of its profiler's host part when it is first needed, without a GPU, too.
#[test]
#[ignore = "needs components: ./tests/run"]
fn real_profiler_finds_its_host_library() -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.cupti]\nheader-version = \"12\"\n";
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?;
    let source = dir.path().join("chips.c");
    fs::write(
        &source,
        "#include <stddef.h>\n#include <stdio.h>\n\
         struct chips { size_t size; void *reserved; size_t count; const char *const *names; };\n\
         int cuptiProfilerHostGetSupportedChips(struct chips *);\n\
         int main(void) {\n\
             struct chips chips = {sizeof chips, NULL, 0, NULL};\n\
             int code = cuptiProfilerHostGetSupportedChips(&chips);\n\
             printf(\"%d %s\\n\", code, chips.count ? \"chips\" : \"none\");\n\
             return 0;\n}\n",
    )?;
    let program = dir.path().join("chips");
    succeed(
        Command::new("cc")
            .arg(&source)
            .arg(stubs.archive()?)
            .arg("-Wl,--gc-sections")
            .arg("-o")
            .arg(&program),
    )?;
    let library = wheel_libraries("cupti-12.9")?.join("libcupti.so.12");
    let ran = run(Command::new(&program).env("GPUSTUB_CUPTI_PATH", library))?;
    assert_eq!(ran.success()?.stdout, "0 chips\n");
    Ok(())
}

/// Files that real libraries open (read from their constants), with wheels side by side: wheel, opener, file, wheel of
/// that file, library whose manifest names it, and whether the loader finds it by the opener's run path.
const OPENED: &str = "\
cublas libcublasLt.so.12 libnvrtc.so.12 nvrtc-12.9 cublas missing
cufft-12.9 libcufft.so.11 libnvrtc.so.12 nvrtc-12.9 cufft missing
cufft-12.9 libcufft.so.11 libnvJitLink.so.12 nvjitlink-12.9 cufft found
cudnn libcudnn.so.9 libcudnn_engines_precompiled.so.9 cudnn cudnn found
cudnn libcudnn_graph.so.9 libnvrtc.so.12 nvrtc-12.9 cudnn found
nvrtc-13.0 libnvrtc.so.13 libnvrtc-builtins.so.13.0 nvrtc-13.0 nvrtc missing
nvrtc-13.5 libnvrtc.so.13 libnvrtc-builtins.so.13.5 nvrtc-13.5 nvrtc found
cupti-12.9 libcupti.so.12 libnvperf_host.so cupti-12.9 cupti missing
";
const OPENED_BY_OTHER_MAJORS: &str = "\
cublas-11.8 libcublasLt.so.11 libnvrtc.so.11.2 nvrtc-11.8 cublaslt missing
cublas-13.5 libcublasLt.so.13 libnvrtc.so.13 nvrtc-13.5 cublas found
cusparse-13.5 libcusparse.so.12 libnvJitLink.so.13 nvjitlink-13.5 cusparse found
";

#[test]
#[ignore = "needs components: ./tests/run"]
fn preloaded_files_are_those_that_real_libraries_do_not_find() -> Result<()> {
    check_opened_files(OPENED)
}

#[test]
#[ignore = "needs large components: ./tests/run --all"]
fn heavy_preloaded_files_are_those_that_other_majors_do_not_find() -> Result<()> {
    check_opened_files(OPENED_BY_OTHER_MAJORS)
}

/// The manifest preloads each file, and the loader finds it where the table says so.
fn check_opened_files(table: &str) -> Result<()> {
    let dir = scratch()?;
    let program = dir.path().join("finds");
    let source = repository().join("tests/programs/loader-finds.c");
    let mut command = Command::new("cc");
    command.args(runtime_includes());
    succeed(command.arg(source).arg("-o").arg(&program))?;
    for line in table.lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [wheel, opener, file, file_wheel, id, answer] = words[..] else {
            return Err(line.into());
        };
        let site = scratch()?;
        for wheel in [wheel, file_wheel] {
            let directory = site.path().join(wheel_library_dir(wheel)?);
            fs::create_dir_all(&directory)?;
            for entry in fs::read_dir(wheel_libraries(wheel)?)? {
                let path = entry?.path();
                let link = directory.join(path.file_name().unwrap_or_default());
                if link.symlink_metadata().is_err() {
                    std::os::unix::fs::symlink(path, link)?;
                }
            }
        }
        let opener = site.path().join(wheel_library_dir(wheel)?).join(opener);
        let ran = run(Command::new(&program).arg(&opener).arg(file))?.success()?;
        assert_eq!(
            ran.stdout.trim_end(),
            answer,
            "{} opens {file}",
            opener.display()
        );
        let manifest = Library::builtin(id).ok_or("a shipped library")?;
        let is_preloaded = manifest.preload.iter().any(|preload| {
            let name = preload.file.rsplit('/').next().unwrap_or_default();
            file.starts_with(name)
        });
        assert!(is_preloaded, "{id} does not preload {file}");
    }
    Ok(())
}
