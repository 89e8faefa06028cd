//! Shared libraries of HIP: one device link for each process, in a final or in the program.

use std::env::join_paths;
use std::fs;
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::nvcc::hip_recorder;
use gpustub_tests::opener::host;
use gpustub_tests::rdc::Project;

use crate::{STUB, build, library, records};

pub const SHARED: &str = "type = \"shared\"";

/// Shared libraries `base`, `top` and `side`, the last two over the first. Programs: `tip` uses `top`, `both` uses all of
/// them. Cdylibs: `plugin` uses all, `flat` the final of `top`, `solid` that of `side`.
fn shared_project() -> Result<Project> {
    let project = Project::headers_alone()?;
    project.install_rocm()?;
    library(&project, "base", &[], SHARED)?;
    project.edit("base/GpuStub.toml", STUB, &format!("{STUB}{SHARED}\n"))?;
    library(&project, "top", &["base"], SHARED)?;
    library(&project, "side", &["base"], SHARED)?;
    let needs = "[dependencies]\ntop = { path = \"../top\" }\n";
    let main = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    let needs = format!("{needs}side = {{ path = \"../side\" }}\n");
    let main = "fn main() {\n    assert_eq!(top::run() + side::run(), 0);\n}\n";
    project.package("both", &needs, &[("src/main.rs", main)])?;
    let plugin = "//! Opened by C.\n\n#[no_mangle]\npub extern \"C\" fn run() {\n    \
                  assert_eq!(top::run() + side::run(), 0);\n}\n";
    let manifest = format!("[lib]\ncrate-type = [\"cdylib\"]\n\n{needs}");
    project.package("plugin", &manifest, &[("src/lib.rs", plugin)])?;
    for (name, unused) in [("flat", "side"), ("solid", "top")] {
        let needs = manifest.replace(&format!("{unused} = {{ path = \"../{unused}\" }}\n"), "");
        let code = plugin
            .replace(" + ", "")
            .replace(&format!("{unused}::run()"), "");
        project.package(name, &needs, &[("src/lib.rs", &code)])?;
    }
    Ok(project)
}

/// Images of the records of a kind, whose field `index` is an address.
pub fn images(ran: &Ran, kind: &str, index: usize) -> Vec<String> {
    let mut images: Vec<String> = records(&ran.stderr, kind)
        .iter()
        .filter_map(|words| words.get(index)?.split('+').next().map(str::to_owned))
        .collect();
    images.sort();
    images
}

/// The device link of `image` is registered once, with the kernels and variables of these libraries, which are launched
/// and at last unregistered once.
pub fn expect_shared(ran: &Ran, image: &str, libraries: &[&str], launches: usize) {
    assert_eq!(images(ran, "open", 1), [image], "{}", ran.stderr);
    assert_eq!(images(ran, "function", 1), libraries, "{}", ran.stderr);
    assert_eq!(
        records(&ran.stderr, "launch").len(),
        launches,
        "{}",
        ran.stderr
    );
    assert_eq!(records(&ran.stderr, "close").len(), 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("UNKNOWN"), "{}", ran.stderr);
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_shared_libraries_are_registered_by_one_device_link() -> Result<()> {
    let project = shared_project()?;
    let recorder = hip_recorder(&project.path("recorder"))?;
    let example = "fn main() {\n    assert_eq!(top::run(), 0);\n}\n";
    project.write("top/examples/own.rs", example)?;
    let words = ["--workspace", "--examples", "--bins", "--lib"];
    build(&project, &words)?.success()?;
    let programs = [
        (
            "tip",
            "libtop_final.so",
            &["libbase.so", "libtop.so"][..],
            2,
        ),
        (
            "examples/own",
            "libtop_final.so",
            &["libbase.so", "libtop.so"],
            2,
        ),
        (
            "both",
            "both",
            &["libbase.so", "libside.so", "libtop.so"],
            4,
        ),
    ];
    let search_path = join_paths(project.library_dirs()?)?;
    for (name, image, libraries, launches) in programs {
        let mut program = Command::new(project.built(name));
        program.env("LD_LIBRARY_PATH", &search_path);
        let ran = succeed(program.env("GPUSTUB_HIP_PATH", &recorder))?;
        expect_shared(&ran, image, libraries, launches);
    }
    let mut program = Command::new(host(&project.path(""))?);
    program.arg(project.built("libplugin.so"));
    program.env("LD_LIBRARY_PATH", &search_path);
    let ran = succeed(program.env("GPUSTUB_HIP_PATH", &recorder))?;
    expect_shared(
        &ran,
        "libplugin.so",
        &["libbase.so", "libside.so", "libtop.so"],
        4,
    );
    reports_agree(&project)
}

/// Findings of `plan` before a build are those of `check` in a directory of the built files.
fn reports_agree(project: &Project) -> Result<()> {
    let words = ["plan", "-p", "flat", "-p", "solid"];
    let planned = succeed(&mut project.gpustub(&words)?)?.stderr;
    let is_planned = planned.contains("warning[duplicate-device-link]: `")
        && planned.contains("/cdylib` cannot be opened by one process");
    assert!(is_planned, "{planned}");
    let planned = succeed(&mut project.gpustub(&["plan", "-p", "tip", "-p", "both"])?)?.stderr;
    assert!(!planned.contains("[duplicate-device-link]"), "{planned}");

    let shared = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| format!("lib{name}.so")).collect()
    };
    let all = shared(&[
        "gpustub_base",
        "base",
        "top",
        "side",
        "top_final",
        "side_final",
    ]);
    let middles = shared(&["gpustub_base", "base", "top"]);
    for (programs, libraries, finding) in [
        (
            shared(&["flat", "solid"]),
            &all,
            "error[duplicate-device-link]",
        ),
        (Vec::new(), &middles, "error[missing-device-link]"),
        (vec!["tip".to_owned()], &all, ""),
    ] {
        let directory = project.path("shipped");
        fs::create_dir_all(&directory)?;
        for name in &programs {
            fs::copy(project.built(name), directory.join(name))?;
        }
        for name in libraries {
            let directories = project.library_dirs()?.into_iter();
            let file = directories
                .map(|from| from.join(name))
                .find(|file| file.is_file());
            fs::copy(file.ok_or(format!("no {name}"))?, directory.join(name))?;
        }
        let mut check = gpustub(&["check", "--allow", "needed-toolkit"])?;
        let ran = run(check.arg(&directory))?;
        fs::remove_dir_all(&directory)?;
        assert_eq!(
            ran.stderr.contains("-device-link]"),
            !finding.is_empty(),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains(finding), "{finding}: {}", ran.stderr);
    }
    Ok(())
}
