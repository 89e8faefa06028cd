//! Libraries with independent majors: libcudnn.so.9 and libnccl.so.2 are built for each toolkit. A
//! constant of the file, or of a file beside it, names its toolkit.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{Library, VersionProbe};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::{component, wheel_libraries};
use gpustub_tests::isolated::Isolated;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

use crate::reports;
use crate::shared::{fake, library, load_name, program_with};

/// A program with stubs of `libacme.so.9`, which is built for each toolkit.
fn program(dir: &Path) -> Result<PathBuf> {
    program_with(dir, |library| {
        library.load_names = vec![
            load_name(Some(9), "libacme.so.9"),
            load_name(None, "libacme.so"),
        ];
        library.newest_major = 9;
        library.library.to_mut().independent_major = true;
        library.library.to_mut().driver = Some("cuda".to_owned());
        library.library.to_mut().toolkit_version_from = vec![
            VersionProbe::Constant {
                prefix: "acme +cuda".to_owned(),
                sibling: None,
            },
            VersionProbe::Constant {
                prefix: "libbase.so.".to_owned(),
                sibling: Some("libacme_parts".to_owned()),
            },
        ];
    })
}

/// A library with a constant, which prints its name when it is loaded.
fn build(dir: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let directory = dir.join(name);
    let source = format!(
        "#include <stdio.h>\nconst char *acme_function(void) {{ return \"{text}\"; }}\n\
         __attribute__((constructor)) static void say(void) {{ puts(\"loaded {name}\"); }}\n"
    );
    library(&directory.join("libacme.so.9"), &source, &[])?;
    Ok(directory)
}

/// A driver that supports CUDA 12.2.
fn driver(dir: &Path) -> Result<PathBuf> {
    let directory = dir.join("driver");
    let source = "int cuDriverGetVersion(int *version) { *version = 12020; return 0; }\n";
    library(&directory.join("libcuda.so.1"), source, &[])?;
    Ok(directory)
}

/// Files with their directories, order of the requests, directory of the accepted file, loaded
/// files, and the reported reasons for rejected files.
struct Case<'c> {
    files: &'c [(&'c Path, &'c str)],
    order: &'c [&'c str],
    accepted: Option<&'c str>,
    loaded: &'c str,
    rejected: &'c [(&'c str, &'c str)],
}

#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn toolkit_of_a_build_is_read_before_loading() -> Result<()> {
    let dir = scratch()?;
    let program = program(dir.path())?;
    let twelve = build(dir.path(), "twelve", "acme +cuda12.9")?;
    let thirteen = build(dir.path(), "thirteen", "acme +cuda13.0")?;
    let silent = build(dir.path(), "silent", "acme +cuda")?;
    let parts = build(dir.path(), "parts", "nothing")?;
    let source = "const char *base_name(void) { return \"libbase.so.13\"; }\n";
    library(&parts.join("libacme_parts.so.9"), source, &[])?;
    let runtime_12 = fake(dir.path(), "runtime-12", "libcudart.so.12", None)?;
    let runtime_13 = fake(dir.path(), "runtime-13", "libcudart.so.13", None)?;
    let driver = driver(dir.path())?;
    let toolkit = "/usr/local/cuda/lib64";
    let [of_12, of_13] = [(12, 13), (13, 12)].map(|(major, settled)| {
        format!("built for major {major}, and cudart settled for major {settled}")
    });

    let cases = [
        // Without a selected toolkit: the first file.
        Case {
            files: &[(&twelve, "/a"), (&thirteen, "/b")],
            order: &["acme"],
            accepted: Some("/a"),
            loaded: "twelve",
            rejected: &[("/b", "/a/libacme.so.9 comes first")],
        },
        Case {
            files: &[(&twelve, "/a"), (&thirteen, "/b"), (&runtime_13, toolkit)],
            order: &["cudart", "acme"],
            accepted: Some("/b"),
            loaded: "runtime-13 thirteen",
            rejected: &[("/a", &of_12)],
        },
        Case {
            files: &[(&thirteen, "/a"), (&twelve, "/b"), (&runtime_12, toolkit)],
            order: &["cudart", "acme"],
            accepted: Some("/b"),
            loaded: "runtime-12 twelve",
            rejected: &[("/a", &of_13)],
        },
        // A file of another toolkit only: it is not even loaded.
        Case {
            files: &[(&thirteen, "/a"), (&runtime_12, toolkit)],
            order: &["cudart", "acme"],
            accepted: None,
            loaded: "runtime-12",
            rejected: &[("/a", &of_13)],
        },
        // By a constant of a file beside it.
        Case {
            files: &[(&parts, "/a"), (&twelve, "/b"), (&runtime_12, toolkit)],
            order: &["cudart", "acme"],
            accepted: Some("/b"),
            loaded: "runtime-12 twelve",
            rejected: &[("/a", &of_13)],
        },
        // A file without version information is accepted.
        Case {
            files: &[(&silent, "/a"), (&twelve, "/b"), (&runtime_12, toolkit)],
            order: &["cudart", "acme"],
            accepted: Some("/a"),
            loaded: "runtime-12 silent",
            rejected: &[],
        },
        // A file newer than the driver comes last, if there is no other.
        Case {
            files: &[(&thirteen, "/a"), (&twelve, "/b"), (&driver, "/ld")],
            order: &["acme"],
            accepted: Some("/b"),
            loaded: "twelve",
            rejected: &[("/a", "/b/libacme.so.9 comes first")],
        },
        Case {
            files: &[(&thirteen, "/a"), (&driver, "/ld")],
            order: &["acme"],
            accepted: Some("/a"),
            loaded: "thirteen",
            rejected: &[],
        },
        // A file that the loader finds is checked after loading; its directories are searched.
        Case {
            files: &[(&thirteen, "/ld"), (&runtime_12, toolkit)],
            order: &["cudart", "acme"],
            accepted: None,
            loaded: "runtime-12 thirteen",
            rejected: &[("/ld", &of_13)],
        },
        Case {
            files: &[(&twelve, "/a"), (&runtime_13, toolkit)],
            order: &["+/a/libacme.so.9", "cudart", "acme"],
            accepted: None,
            loaded: "twelve runtime-13",
            rejected: &[("/a", &of_12)],
        },
        // The accepted file selects the toolkit for the other libraries.
        Case {
            files: &[
                (&twelve, "/a"),
                (&runtime_12, toolkit),
                (&runtime_13, toolkit),
            ],
            order: &["acme", "cudart"],
            accepted: Some("/a"),
            loaded: "twelve runtime-12",
            rejected: &[],
        },
    ];
    for case in cases {
        let machine = Isolated::new()?;
        machine.install(&program, "/site-packages/pkg/program")?;
        for (source, directory) in case.files {
            machine.install_all(source, directory)?;
        }
        let variables = [("GPUSTUB_LOG", "json"), ("LD_LIBRARY_PATH", "/ld")];
        let ran = machine.run_with("/site-packages/pkg/program", case.order, &variables)?;
        let ran = ran.success()?;
        let report = &reports(&ran)?["acme"];
        let context = format!("{:?}: {}", case.files, ran.stderr);
        let path = (case.accepted).map(|directory| format!("{directory}/libacme.so.9"));
        assert_eq!(report["path"].as_str(), path.as_deref(), "{context}");
        assert_eq!(
            report["major"],
            if path.is_some() { 9 } else { 0 },
            "{context}"
        );
        let names: Vec<_> = (ran.stdout.lines())
            .filter_map(|line| line.strip_prefix("loaded "))
            .collect();
        assert_eq!(names.join(" "), case.loaded, "{context}");
        for (directory, reason) in case.rejected {
            let file = format!("{directory}/libacme.so.9");
            let candidates = report["candidates"].as_array().into_iter().flatten();
            let reasons: Vec<_> = candidates
                .filter(|candidate| candidate["name"] == file[..])
                .filter_map(|candidate| candidate["reason"].as_str())
                .collect();
            assert_eq!(reasons, [*reason], "{file}: {context}");
        }
    }
    Ok(())
}

/// The user's override applies to a file of any toolkit.
#[test]
#[ignore = "needs user namespaces: ./tests/run"]
fn override_may_name_another_toolkit() -> Result<()> {
    let dir = scratch()?;
    let machine = Isolated::new()?;
    machine.install(&program(dir.path())?, "/program")?;
    machine.install_all(&build(dir.path(), "twelve", "acme +cuda12.9")?, "/o")?;
    let runtime = fake(dir.path(), "runtime", "libcudart.so.13", None)?;
    machine.install_all(&runtime, "/usr/local/cuda/lib64")?;
    for path in ["/o", "/o/libacme.so.9"] {
        let variables = [("GPUSTUB_LOG", "json"), ("GPUSTUB_ACME_PATH", path)];
        let ran = machine.run_with("/program", &["cudart", "acme"], &variables)?;
        let ran = ran.success()?;
        let path = &reports(&ran)?["acme"]["path"];
        assert_eq!(path, "/o/libacme.so.9", "{}", ran.stderr);
    }
    Ok(())
}

/// Options for files of the run time.
pub fn runtime_includes() -> [String; 2] {
    ["", "/os/unix"].map(|below| format!("-I{}/templates/runtime{below}", repository().display()))
}

/// Builds the program that prints the toolkit major of a file.
pub fn reader(dir: &Path, flags: &[&str]) -> Result<PathBuf> {
    let reader = dir.join("reader");
    let mut command = Command::new("cc");
    command.args(flags);
    command.args(runtime_includes());
    command.arg(repository().join("tests/programs/toolkit-version.c"));
    succeed(command.arg("-o").arg(&reader))?;
    Ok(reader)
}

/// The major that each file has by a rule.
pub fn reported(reader: &Path, rule: &VersionProbe, files: &[PathBuf]) -> Result<Vec<u32>> {
    let rule = match rule {
        VersionProbe::Needed(prefix) => ["needed", prefix, "-"],
        VersionProbe::Constant { prefix, sibling } => {
            ["text", prefix, sibling.as_deref().unwrap_or("-")]
        }
    };
    let ran = run(Command::new(reader).args(rule).args(files))?.success()?;
    let majors: Result<Vec<u32>, _> = ran.stdout.lines().map(str::parse).collect();
    let majors = majors.map_err(|e| format!("{}: {e}", ran.stdout))?;
    assert_eq!(majors.len(), files.len(), "a major for each file");
    Ok(majors)
}

/// Checks the rules of the shipped manifest on real builds: wheel or component, file, and the toolkit
/// for each rule (0: the rule does not apply to that version).
fn check_real_builds(id: &str, builds: &[(&str, &str, &[u32])]) -> Result<()> {
    let dir = scratch()?;
    let reader = reader(dir.path(), &["-O2"])?;
    let rules = &Library::builtin(id)
        .ok_or("a shipped library")?
        .toolkit_version_from;
    for (name, file, expected) in builds {
        let directory = wheel_libraries(name).or_else(|_| component(name))?;
        let file = directory.join(file);
        let mut majors = Vec::new();
        for rule in rules {
            majors.extend(reported(&reader, rule, std::slice::from_ref(&file))?);
        }
        assert_eq!(majors, *expected, "{}", file.display());
    }
    Ok(())
}

#[test]
#[ignore = "needs components: ./tests/run"]
fn real_builds_name_their_toolkit() -> Result<()> {
    check_real_builds("cudnn", &[("cudnn", "libcudnn.so.9", &[12, 12, 0])])?;
    check_real_builds("nccl", &[("nccl", "libnccl.so.2", &[12])])?;
    check_real_builds("cusparse", &[("cusparse-12.9", "libcusparse.so.12", &[12])])?;
    check_real_builds("cusolver", &[("cusolver-12.9", "libcusolver.so.11", &[12])])?;
    check_real_builds("hipsolver", &[("hipsolver-5.5", "libhipsolver.so.0", &[5])])
}

#[test]
#[ignore = "needs the components of all versions: ./tests/run --all"]
fn heavy_real_builds_name_every_toolkit() -> Result<()> {
    check_real_builds(
        "cudnn",
        &[
            ("cudnn-8", "libcudnn.so.8", &[0, 0, 11]),
            ("cudnn-9-cuda-11", "libcudnn.so.9", &[11, 11, 0]),
            ("cudnn-9-cuda-13", "libcudnn.so.9", &[13, 13, 0]),
        ],
    )?;
    check_real_builds(
        "nccl",
        &[
            ("nccl-cuda-11", "libnccl.so.2", &[11]),
            ("nccl-cuda-13", "libnccl.so.2", &[13]),
        ],
    )?;
    check_real_builds(
        "hipsolver",
        &[
            ("hipsolver-6.4", "libhipsolver.so.0", &[6]),
            ("hipsolver-7.2", "libhipsolver.so.1", &[7]),
        ],
    )
}
