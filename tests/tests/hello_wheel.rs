//! `examples/hello-wheel`: one wheel, in clean environments with CUDA 11, 12, 13 and none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use gpustub_tests::cargo::{cargo, gpustub, without_own_cargo};
use gpustub_tests::command::succeed;
use gpustub_tests::components::{
    auditwheel, component, only_entry, target_dir, wheel_libraries, wheel_library_dir,
};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Failure, Result, repository};

fn example() -> PathBuf {
    repository().join("examples/hello-wheel")
}

/// Path of the wheel, built once by maturin as the README describes, into cargo's target directory.
fn wheel() -> Result<PathBuf> {
    static WHEEL: LazyLock<Result<PathBuf, String>> =
        LazyLock::new(|| build().map_err(|Failure(why)| why));
    Ok(WHEEL.clone()?)
}

fn build() -> Result<PathBuf> {
    maturin("wheels", &[], &[])
}

/// Runs `maturin build` with its output in a directory of the target directory.
fn maturin(out: &str, options: &[&str], variables: &[(&str, PathBuf)]) -> Result<PathBuf> {
    let target = target_dir().join("hello-wheel");
    let out = target.join(out);
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut command = Command::new(component("maturin/bin/maturin")?);
    without_own_cargo(command.current_dir(example()));
    command.args(["build", "--release", "--locked", "--quiet", "--out"]);
    command.arg(&out).arg("--target-dir").arg(target);
    succeed(command.args(options).envs(variables.iter().cloned()))?;
    only_entry(&out)
}

/// Creates a virtual environment `venv`, with the wheel and the libraries of other wheels where
/// pip installs them.
fn environment(venv: &Path, wheels: &[&str]) -> Result<()> {
    let mut python = Command::new("python3");
    succeed(python.args(["-m", "venv", "--without-pip"]).arg(venv))?;
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        "--python",
    ]);
    pip.arg(venv.join("bin/python"))
        .args(["install", "--no-index", "--no-deps"]);
    succeed(pip.arg(wheel()?))?;
    for name in wheels {
        let libraries = wheel_libraries(name)?;
        let directory = site_packages(venv)?.join(wheel_library_dir(name)?);
        fs::create_dir_all(&directory)?;
        for entry in fs::read_dir(&libraries)? {
            let file = entry?.path();
            let to = directory.join(file.file_name().unwrap_or_default());
            if fs::hard_link(&file, &to).is_err() {
                fs::copy(&file, &to)?;
            }
        }
    }
    Ok(())
}

/// `lib/python3.X/site-packages`.
fn site_packages(venv: &Path) -> Result<PathBuf> {
    let mut python = Command::new(venv.join("bin/python"));
    python.args([
        "-c",
        "import sysconfig; print(sysconfig.get_path('purelib'))",
    ]);
    Ok(PathBuf::from(succeed(&mut python)?.stdout.trim_end()))
}

/// Runs the environment's Python, as a shell does in which the environment is not activated.
fn python(venv: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(venv.join("bin/python"));
    command.args(arguments).env_clear();
    Ok(succeed(&mut command)?.stdout)
}

/// The README's runs of `demo.py`: the installed packages and the output.
fn runs() -> Result<Vec<(Option<String>, String)>> {
    let readme = fs::read_to_string(example().join("README.md"))?;
    Ok(readme
        .split("```console\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .filter_map(|block| {
            let (installed, printed) = block.split_once("$ python demo.py\n")?;
            let extra = installed
                .split_once(".whl)[")
                .and_then(|(_, rest)| rest.split_once(']'));
            Some((extra.map(|(extra, _)| extra.to_owned()), printed.to_owned()))
        })
        .collect())
}

#[test]
#[ignore = "needs maturin and the wheels of CUDA 11, 12 and 13: ./tests/run"]
fn wheel_works_with_every_cuda_and_without() -> Result<()> {
    let runs = runs()?;
    let extras: Vec<_> = runs.iter().map(|(extra, _)| extra.as_deref()).collect();
    assert_eq!(extras, [None, Some("cu11"), Some("cu12"), Some("cu13")]);
    for (extra, expected) in runs {
        let wheels: &[&str] = match extra.as_deref() {
            None => &[],
            Some("cu11") => &["cudart-11.8", "nvrtc-11.8"],
            Some("cu12") => &["cudart-12.9", "nvrtc-12.9"],
            _ => &["cudart-13.5", "nvrtc-13.5"],
        };
        let dir = scratch()?;
        let venv = dir.path().join(".venv");
        environment(&venv, wheels)?;
        let demo = example().join("demo.py");
        let printed = python(&venv, &[&demo.to_string_lossy()])?;
        let site = site_packages(&venv)?;
        let printed = printed.replace(
            &*site.to_string_lossy(),
            ".venv/lib/python3.11/site-packages",
        );
        assert_eq!(printed, expected, "{extra:?}");
    }
    Ok(())
}

/// Wheels of two majors in one environment: both libraries come from one of them.
#[test]
#[ignore = "needs maturin and the wheels of CUDA 12 and 13: ./tests/run"]
fn libraries_come_from_one_major_if_two_are_installed() -> Result<()> {
    let dir = scratch()?;
    let venv = dir.path().join(".venv");
    environment(&venv, &["cudart-12.9", "nvrtc-13.5", "nvrtc-12.9"])?;
    let script = "import hello_wheel\nfor library in hello_wheel.report().values():\n    \
                  print(library['version'])";
    assert_eq!(python(&venv, &["-c", script])?, "12.9\n12.9\n");
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_wheel_tag_is_consistent_and_no_library_is_bundled() -> Result<()> {
    let wheel = wheel()?;
    let name = wheel
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let tag = name
        .trim_end_matches(".whl")
        .rsplit('-')
        .next()
        .unwrap_or_default();
    assert!(tag.starts_with("manylinux_2_"), "{name}");
    let reported = succeed(auditwheel(&["show"])?.arg(&wheel))?.stdout;
    let words = reported.split_whitespace().collect::<Vec<_>>().join(" ");
    let consistent = format!("{name} is consistent with the following platform tag: \"{tag}\".");
    assert!(words.contains(&consistent), "{reported}");

    let words = ["check", "--deny", "all"];
    let reported = succeed(gpustub(&words)?.current_dir(example()).arg(&wheel))?.stderr;
    let readme = fs::read_to_string(example().join("README.md"))?;
    assert!(
        reported.contains("nothing found") && readme.contains(&reported),
        "{reported}"
    );
    succeed(gpustub(&words)?.current_dir(example()))?;

    let list = "import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep='\\n')";
    let files = succeed(Command::new("python3").args(["-c", list]).arg(&wheel))?.stdout;
    let libraries: Vec<_> = files.lines().filter(|file| file.contains(".so")).collect();
    assert_eq!(libraries, ["hello_wheel/hello_wheel.abi3.so"], "{files}");
    Ok(())
}

/// auditwheel and `check` find nothing that the tag does not allow.
fn check_tag(wheel: &Path, tag: &str) -> Result<()> {
    let ran = succeed(auditwheel(&["show", "--json"])?.arg(wheel))?;
    let audit: serde_json::Value = serde_json::from_str(&ran.stdout)?;
    assert_eq!(audit["overall_tag"].as_str(), Some(tag), "{audit}");
    let ran = succeed(gpustub(&["check", "--deny", "all"])?.arg(wheel))?;
    assert!(ran.stderr.contains("nothing found"), "{ran:?}");
    Ok(())
}

/// A wheel with a C extension that calls stubs, and a shared library of stubs, both linked by this
/// machine's gcc.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_c_extension_linked_here_conforms_to_manylinux_2_17() -> Result<()> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n";
    let plan = plan_or_fail(manifest, &[], &Machine::X86_64.target())?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?;
    let package = dir.path().join("wheel/ext");
    let info = dir.path().join("wheel/ext-1.0.dist-info");
    fs::create_dir_all(&package)?;
    fs::create_dir_all(&info)?;
    let source = dir.path().join("ext.c");
    let code = "#include <stddef.h>\nint cudaGetDeviceCount(int *);\n\
        int status(void) { int n; return cudaGetDeviceCount(&n); }\n\
        void *PyInit__core(void) { return NULL; }\n";
    fs::write(&source, code)?;
    let shared = stubs.shared(dir.path(), "shared")?;
    fs::copy(&shared.library, package.join("libgpustub_shared.so"))?;
    for (output, stubs) in [
        ("_core.abi3.so", vec![stubs.archive()?]),
        ("_other.abi3.so", vec![shared.link_library, shared.client]),
    ] {
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-O2", "-Wl,-rpath,$ORIGIN"])
            .arg(&source);
        cc.args(stubs).arg("-o").arg(package.join(output));
        succeed(&mut cc)?;
        let run = "import ctypes, sys; print(ctypes.CDLL(sys.argv[1]).status())";
        let mut python = Command::new("python3");
        python.args(["-c", run]).arg(package.join(output));
        assert_eq!(
            succeed(python.env("GPUSTUB_CUDART_PATH", "off"))?.stdout,
            "35\n"
        );
    }
    let tag = "manylinux_2_17_x86_64";
    let metadata = "Metadata-Version: 2.1\nName: ext\nVersion: 1.0\n";
    let text = format!("Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: cp39-abi3-{tag}\n");
    fs::write(info.join("METADATA"), metadata)?;
    fs::write(info.join("WHEEL"), text)?;
    let files = ["_core.abi3.so", "_other.abi3.so", "libgpustub_shared.so"];
    let record: String = files.map(|file| format!("ext/{file},,\n")).concat();
    fs::write(info.join("RECORD"), record)?;
    let wheel = dir.path().join(format!("ext-1.0-cp39-abi3-{tag}.whl"));
    let mut zip = Command::new("python3");
    zip.args(["-m", "zipfile", "-c"])
        .arg(&wheel)
        .args([package, info]);
    succeed(&mut zip)?;
    check_tag(&wheel, tag)
}

/// The README's build for older machines.
#[test]
#[ignore = "needs maturin, zig and auditwheel: ./tests/run --all"]
fn heavy_wheel_linked_with_zig_conforms_to_manylinux_2_17() -> Result<()> {
    let zig = component("ziglang")?;
    let wheel = maturin(
        "zig",
        &["--zig", "--compatibility", "manylinux2014"],
        &[
            ("PYTHONPATH", zig),
            (
                "ZIG_GLOBAL_CACHE_DIR",
                target_dir().join("hello-wheel/zig-cache"),
            ),
        ],
    )?;
    check_tag(&wheel, "manylinux_2_17_x86_64")
}

/// The code passes the checks of the other packages.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_the_example_is_formatted_and_without_lints() -> Result<()> {
    succeed(cargo(&example()).args(["fmt", "--check"]))?;
    let mut clippy = cargo(&example());
    clippy.args(["clippy", "--quiet", "--locked", "--target-dir"]);
    clippy.arg(target_dir().join("hello-wheel"));
    clippy.args(["--", "-Dwarnings", "-Wclippy::undocumented_unsafe_blocks"]);
    succeed(&mut clippy)?;
    Ok(())
}
