//! `prebuilt` archives of HIP objects that clang compiled without gpustub: linked with libraries of packages, or refused by
//! `plan` and by builds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::hip;
use gpustub_tests::nvcc::hip_recorder;
use gpustub_tests::rdc::Project;

use crate::{build, expect_code, expect_registered, project};

const SOURCES: &str = "sources = [\"hip/*.hip\"]";
const PREBUILT: &str = "prebuilt = \"libacme.a\"";
const BOTH_ARCHS: &str = "--offload-arch=gfx90a --offload-arch=gfx1030";

/// The shell with clang in `$CLANG`, in the directory of `base`, whose archive is to be `libacme.a`.
fn shell(project: &Project, line: &str) -> Result<()> {
    let clang = hip::clang(&project.rocm());
    let path = clang.get_envs().find(|(name, _)| *name == "PATH");
    let mut shell = Command::new("bash");
    shell.current_dir(project.root().join("base"));
    shell.env("ROCM", project.rocm());
    shell.envs(path.and_then(|(name, value)| Some((name, value?))));
    let clang = "CLANG() { clang++ --rocm-path=\"$ROCM\" -fPIC -O1 \"$@\"; }";
    let older = "OLDER() { CLANG --no-offload-new-driver -fgpu-rdc \"$@\"; }";
    succeed(shell.args([
        "-euc",
        &format!("{clang}\n{older}\nrm -f libacme.a\n{line}"),
    ]))?;
    Ok(())
}

/// `tip` over `top`, whose library requires the archive of `base`.
fn prebuilt_project() -> Result<Project> {
    let project = project()?;
    project.edit("base/GpuStub.toml", SOURCES, PREBUILT)?;
    Ok(project)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_objects_of_clang_are_linked_with_those_of_packages() -> Result<()> {
    let project = prebuilt_project()?;
    let line =
        format!("OLDER {BOTH_ARCHS} -x hip -c hip/base.hip -o acme.o && ar rcs libacme.a acme.o");
    shell(&project, &line)?;
    build(&project, &["-p", "tip"])?.success()?;
    let recorder = hip_recorder(&project.path("recorder"))?;
    let run_tip = || {
        let mut program = Command::new(project.built("tip"));
        succeed(program.env("GPUSTUB_HIP_PATH", &recorder))
    };
    expect_registered(&run_tip()?);
    let archs = ["gfx90a", "gfx1030"];
    expect_code(&project.built("tip"), &project.path(""), &archs)?;
    let again = build(&project, &["-v", "-p", "tip"])?.success()?;
    assert!(again.stderr.contains("Fresh tip"), "{}", again.stderr);

    // Another archive is linked again, here with a second object that has no code of HIP.
    let host = "echo 'int host;' >host.c && cc -c host.c";
    shell(
        &project,
        &format!("{host} && {line} && ar rcs libacme.a host.o"),
    )?;
    let again = build(&project, &["-v", "-p", "tip"])?.success()?;
    assert!(!again.stderr.contains("Fresh tip"), "{}", again.stderr);
    expect_registered(&run_tip()?);
    Ok(())
}

struct Refused {
    name: &'static str,
    /// Makes `libacme.a`.
    line: &'static str,
    /// `archs` of the table.
    archs: &'static str,
    texts: &'static [&'static str],
}

const REFUSED: &[Refused] = &[
    Refused {
        name: "an architecture that the archive lacks",
        line: "OLDER --offload-arch=gfx90a -x hip -c hip/base.hip -o acme.o; ar rcs libacme.a acme.o",
        archs: "\"gfx90a\", \"gfx1030\"",
        texts: &[
            "error[missing-arch]: `archs` of device-link.base is gfx1030, but acme.o in ",
            "libacme.a has only gfx90a",
            "build the archive for these as well",
        ],
    },
    Refused {
        name: "code for one setting",
        line: "OLDER --offload-arch=gfx90a:xnack+ -x hip -c hip/base.hip -o acme.o; ar rcs libacme.a acme.o",
        archs: "\"gfx90a\"",
        texts: &[
            "error[missing-arch]: `archs` of device-link.base is gfx90a",
            "has only gfx90a:xnack+",
        ],
    },
    Refused {
        name: "newer driver",
        line: "CLANG --offload-new-driver -fgpu-rdc --offload-arch=gfx90a -x hip -c hip/base.hip -o acme.o; ar rcs libacme.a acme.o",
        archs: "\"gfx90a\"",
        texts: &[
            "error[device-link-error]: device-link.base: acme.o in ",
            "has device code for gfx90a in an offload binary of clang, which no device link can use",
            "clang's newer driver made it",
            "--no-offload-new-driver -fgpu-rdc",
        ],
    },
    Refused {
        name: "static library of clang",
        line: "OLDER --offload-arch=gfx90a -x hip -c hip/base.hip -o acme.o; \
               OLDER --offload-arch=gfx90a --hip-link --emit-static-lib acme.o -o libacme.a",
        archs: "\"gfx90a\"",
        texts: &[
            "error[device-linked-archive]: device-link.base: ",
            "libacme.a was archived with a device link",
            "`--emit-static-lib`",
        ],
    },
    Refused {
        name: "partial link of clang",
        line: "OLDER --offload-arch=gfx90a -x hip -c hip/base.hip -o acme.o; \
               OLDER --offload-arch=gfx90a --hip-link -r acme.o -o linked.o; ar rcs libacme.a linked.o",
        archs: "\"gfx90a\"",
        texts: &["error[device-linked-archive]: device-link.base: ", "`-r`"],
    },
    Refused {
        name: "without -fgpu-rdc",
        line: "CLANG --no-offload-new-driver --offload-arch=gfx90a -x hip -c hip/base.hip -o acme.o; ar rcs libacme.a acme.o",
        archs: "\"gfx90a\"",
        texts: &[
            "error[device-link-error]: device-link.base: ",
            "libacme.a has no relocatable device code of HIP",
            "code of clang without this option needs no device link",
        ],
    },
    Refused {
        name: "joined objects",
        line: "for name in one two; do echo \"__device__ int $name;\" >$name.hip; \
               OLDER --offload-arch=gfx90a -include hip/hip_runtime.h -x hip -c $name.hip; done; \
               ld -r one.o two.o -o joined.o; ar rcs libacme.a joined.o",
        archs: "\"gfx90a\"",
        texts: &[
            "joined.o in ",
            "has several modules of device code for gfx90a, which no device link can use",
            "`ld -r` joined several objects",
        ],
    },
    Refused {
        name: "code for the device alone",
        line: "OLDER --offload-arch=gfx90a --cuda-device-only --gpu-bundle-output -x hip -c hip/base.hip -o acme.o; \
               ar rcs libacme.a acme.o",
        archs: "\"gfx90a\"",
        texts: &[
            "acme.o in ",
            "is an offload bundle of clang, which no device link can use",
            "it has no code for the host",
        ],
    },
    Refused {
        name: "compressed code for the device alone",
        line: "OLDER --offload-arch=gfx90a --cuda-device-only --gpu-bundle-output --offload-compress -x hip -c hip/base.hip \
               -o acme.o; ar rcs libacme.a acme.o",
        archs: "\"gfx90a\"",
        texts: &["is a compressed offload bundle of clang, which no device link can use"],
    },
    Refused {
        name: "host code",
        line: "echo 'int host;' >host.c; cc -c host.c; ar rcs libacme.a host.o",
        archs: "\"gfx90a\"",
        texts: &[
            "libacme.a has no relocatable device code of HIP",
            "remove AMD's architectures from `archs`",
        ],
    },
    Refused {
        name: "truncated archive",
        line: "OLDER --offload-arch=gfx90a -x hip -c hip/base.hip -o acme.o; ar rcs libacme.a acme.o; truncate -s -100 libacme.a",
        archs: "\"gfx90a\"",
        texts: &["the archive ends in its member acme.o"],
    },
    Refused {
        name: "no archive",
        line: "echo text >libacme.a",
        archs: "\"gfx90a\"",
        texts: &["is not an archive", "or clang with -fgpu-rdc"],
    },
];

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_archives_that_cannot_be_linked_are_named() -> Result<()> {
    let project = prebuilt_project()?;
    let toml = fs::read_to_string(project.root().join("base/GpuStub.toml"))?;
    succeed(&mut project.gpustub(&["sync", "-p", "base"])?)?;
    for Refused {
        name,
        line,
        archs,
        texts,
    } in REFUSED
    {
        shell(&project, line).map_err(|e| format!("{name}: {e:?}"))?;
        project.write("base/GpuStub.toml", &toml.replace(crate::ARCHS, archs))?;
        let planned = run(&mut project.gpustub(&["plan", "-p", "base"])?)?;
        let built = run(&mut project.cargo(&["build", "-p", "base"]))?;
        for (command, ran) in [("plan", planned), ("build", built)] {
            assert!(!ran.status.success(), "{name}: {command}");
            for text in *texts {
                assert!(
                    ran.stderr.contains(text),
                    "{name}: {command}: {text:?} is missing from\n{}",
                    ran.stderr
                );
            }
        }
    }
    Ok(())
}

/// Path of the only archive of a package's library that a build made.
fn built_archive(project: &Project, name: &str) -> Result<PathBuf> {
    for entry in fs::read_dir(project.built("build"))? {
        let lib = entry?.path().join("out/gpustub/device-link/lib");
        let archive = lib.join(Path::new(name));
        if archive.is_file() {
            return Ok(archive);
        }
    }
    Err(format!("no {name}").into())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_an_archive_has_objects_of_both_vendors() -> Result<()> {
    let project = crate::both(crate::STUB, "")?;
    build(&project, &["-p", "both"])?.success()?;
    let archive = built_archive(&project, "libgpustub_rdc_both_both.a")?;
    fs::copy(archive, project.root().join("both/libboth.a"))?;
    let sources = "sources = [\"cuda/*.cu\", \"cuda/*.hip\"]";
    project.edit("both/GpuStub.toml", sources, "prebuilt = \"libboth.a\"")?;
    fs::remove_dir_all(project.root().join("both/cuda"))?;
    let needs = "[dependencies]\nboth = { path = \"../both\" }\n";
    let main = "fn main() {\n    assert_eq!(both::run(), 0);\n}\n";
    project.package("tip", needs, &[("src/main.rs", main)])?;
    build(&project, &["-p", "tip"])?.success()?;
    crate::expect_both(&project)?;

    project.edit(
        "both/GpuStub.toml",
        "\"sm_80\", \"gfx90a\"",
        "\"sm_80\", \"gfx1030\"",
    )?;
    let ran = run(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    let error = "error[missing-arch]: `archs` of device-link.both is gfx1030";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
    project.edit(
        "both/GpuStub.toml",
        "\"sm_80\", \"gfx1030\"",
        "\"sm_90\", \"gfx90a\"",
    )?;
    let ran = run(&mut project.gpustub(&["plan", "-p", "tip"])?)?;
    let error = "error[missing-arch]: `archs` of device-link.both is sm_90";
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
    Ok(())
}
