//! Device code of other build systems, as `check` and super-archives read it: finals of CudaRdcUtils, compiled by nvcc,
//! and relocatable code in the containers of clang.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_image::read_device_code;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::clang::Clang;
use gpustub_tests::command::{path_with, run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::nvcc::{TOOLKIT_12, TOOLKIT_13, Toolkit, runtime};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};

/// Findings of `check` about device links and clang's code, and its last line.
fn check(directory: &Path, paths: &[&str]) -> Result<Vec<String>> {
    let mut command = gpustub(&["check"])?;
    let ran = run(command.current_dir(directory).args(paths))?;
    Ok(ran
        .stderr
        .lines()
        .filter(|line| {
            ["device-link]", "device-code]", "Checked ", "Skipped "]
                .iter()
                .any(|word| line.contains(word))
        })
        .map(|line| line.trim().to_owned())
        .collect())
}

/// Objects of a library `b`, of two libraries that need it, and of sources that finals have in addition.
const SOURCES: [(&str, &str); 8] = [
    (
        "a",
        "extern __device__ int twice(int); __global__ void ka(int *p) { *p = twice(*p); } void a_run() { ka<<<1, 1>>>(nullptr); }",
    ),
    (
        "b",
        "__device__ int twice(int x) { return 2 * x; } __global__ void kb(int *p) { *p = twice(*p); } void b_run() { kb<<<1, 1>>>(nullptr); }",
    ),
    (
        "c",
        "extern __device__ int twice(int); __global__ void kc(int *p) { *p = twice(*p); } void c_run() { kc<<<1, 1>>>(nullptr); }",
    ),
    ("a_emptyfile", "/* intentionally empty. */"),
    ("b_emptyfile", "/* intentionally empty. */"),
    ("c_emptyfile", "/* intentionally empty. */"),
    (
        "removed",
        "#if 0\n__global__ void gone(int *p) { *p = 1; }\n#endif",
    ),
    (
        "plugin",
        "static __global__ void k(int *p) { *p = 1; } static int launch() { k<<<1, 1>>>(nullptr); return 0; } static int launched = launch();",
    ),
];

/// Finals in a directory, each with its needed library and objects, programs that need finals, and `check`'s findings.
struct Set {
    name: &'static str,
    finals: &'static [(&'static str, &'static [&'static str])],
    programs: &'static [&'static [&'static str]],
    findings: &'static [&'static str],
}

const SETS: [Set; 5] = [
    Set {
        name: "without further objects",
        finals: &[("a", &[]), ("b", &[])],
        programs: &[&["a"], &["b"]],
        findings: &[],
    },
    Set {
        name: "of CudaRdcUtils",
        finals: &[("a", &["a_emptyfile"]), ("b", &["b_emptyfile"])],
        programs: &[&["a"], &["b"]],
        findings: &[],
    },
    Set {
        name: "with two objects",
        finals: &[("a", &["a_emptyfile", "removed"]), ("b", &["b_emptyfile"])],
        programs: &[&["a"], &["b"]],
        findings: &[],
    },
    Set {
        name: "over one library, in a program",
        finals: &[("a", &["a_emptyfile"]), ("c", &["c_emptyfile"])],
        programs: &[&["a", "c"]],
        findings: &["liba_final.so", "libc_final.so"],
    },
    Set {
        name: "one of which launches",
        finals: &[("a", &["plugin"]), ("b", &["b_emptyfile"])],
        programs: &[&["b"]],
        findings: &["liba_final.so", "libb_final.so"],
    },
];

struct Work {
    toolkit: Toolkit,
    directory: tempfile::TempDir,
    /// The real runtime, in a directory of its own: `check` does not read it.
    runtime: PathBuf,
}

impl Work {
    /// Compiles all sources.
    fn new(toolkit: Toolkit, version: &str) -> Result<Self> {
        let work = Self {
            toolkit,
            directory: scratch()?,
            runtime: runtime(version)?,
        };
        let mut sources = Vec::new();
        for (name, code) in SOURCES {
            let source = work.path(name).with_extension("cu");
            fs::write(&source, code)?;
            sources.push(source);
        }
        let mut nvcc = work.nvcc(&["-dc", "-t2", "--output-directory"])?;
        succeed(nvcc.arg(work.directory.path()).args(sources))?;
        fs::write(work.path("main.c"), "int main(void) { return 0; }")?;
        Ok(work)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn nvcc(&self, words: &[&str]) -> Result<Command> {
        let mut nvcc = self.toolkit.nvcc()?;
        nvcc.args(["-arch=sm_80", "-Xcompiler", "-fPIC"])
            .args(words);
        Ok(nvcc)
    }

    /// The device link of objects, which sets share.
    fn device_link(&self, objects: &[PathBuf]) -> Result<PathBuf> {
        let names: Vec<_> = objects
            .iter()
            .filter_map(|object| object.file_stem()?.to_str())
            .collect();
        let link = self.path(&format!("{}.link.o", names.join("+")));
        if !link.exists() {
            let mut nvcc = self.nvcc(&["-dlink"])?;
            succeed(nvcc.args(objects).arg("-o").arg(&link))?;
        }
        Ok(link)
    }

    /// Links a file of the set's directory.
    fn link(&self, words: &[&str], inputs: &[PathBuf], output: &Path) -> Result<()> {
        let mut link = Command::new("c++");
        link.arg("-Wl,--no-as-needed,--allow-shlib-undefined,--unresolved-symbols=ignore-all")
            .args(words)
            .args(inputs);
        succeed(link.arg(&self.runtime).arg("-o").arg(output))?;
        Ok(())
    }

    fn build(&self, set: &Set) -> Result<PathBuf> {
        let directory = self.path(set.name);
        fs::create_dir(&directory)?;
        let shared = |inputs: &[PathBuf], name: &str| {
            let soname = format!("-Wl,-soname,{name}");
            self.link(&["-shared", &soname], inputs, &directory.join(name))
        };
        let library = |name: &str| directory.join(format!("lib{name}.so"));
        shared(&[self.path("b.o")], "libb.so")?;
        for (name, objects) in set.finals {
            let mut libraries = vec![library("b")];
            let mut linked = vec![self.path("b.o")];
            if *name != "b" {
                let object = self.path(&format!("{name}.o"));
                shared(&[object.clone(), library("b")], &format!("lib{name}.so"))?;
                libraries.push(library(name));
                linked.push(object);
            }
            let objects: Vec<_> = objects
                .iter()
                .map(|o| self.path(&format!("{o}.o")))
                .collect();
            linked.extend(objects.iter().cloned());
            let inputs = [vec![self.device_link(&linked)?], objects, libraries].concat();
            shared(&inputs, &format!("lib{name}_final.so"))?;
        }
        for (index, finals) in set.programs.iter().enumerate() {
            let mut inputs = vec![self.path("main.c")];
            inputs.extend(finals.iter().map(|name| library(&format!("{name}_final"))));
            self.link(&["-pie"], &inputs, &directory.join(format!("app{index}")))?;
        }
        Ok(directory)
    }

    fn check_sets(&self, sets: &[Set]) -> Result<()> {
        for set in sets {
            let directory = self.build(set)?;
            let findings = check(&directory, &["."])?;
            let (_, findings) = findings.split_last().ok_or("nothing was printed")?;
            let name = set.name;
            if let [image, other] = set.findings {
                assert_eq!(findings.len(), 1, "{name}: {findings:?}");
                assert!(
                    findings[0].contains("error[duplicate-device-link]"),
                    "{name}: {findings:?}"
                );
                assert!(
                    findings[0].contains(&format!("`{other}`")),
                    "{name}: {findings:?}"
                );
                assert!(
                    !findings[0].contains(&format!("`{image}`")),
                    "{name}: {findings:?}"
                );
            } else {
                assert_eq!(findings, [""; 0], "{name}");
            }
        }
        Ok(())
    }

    /// Whether host code uses kernels or variables, in an object or image.
    fn used_by_host(&self, file: &Path) -> Result<Option<bool>> {
        Ok(read_device_code(&fs::read(file)?)?.used_by_host)
    }
}

#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn finals_may_have_objects_that_no_host_code_uses() -> Result<()> {
    let work = Work::new(TOOLKIT_13, "13.5")?;
    work.check_sets(&SETS)?;
    for (name, used) in [
        ("a_emptyfile", false),
        ("removed", false),
        ("plugin", true),
        ("a", true),
    ] {
        let object = work.path(&format!("{name}.o"));
        assert_eq!(work.used_by_host(&object)?, Some(used), "{name}");
    }
    // The linker drops the names of all objects but the first, which has none.
    let inputs = ["removed.o", "plugin.o"].map(|name| work.path(name));
    let image = work.path("collected.so");
    work.link(&["-shared", "-Wl,--gc-sections"], &inputs, &image)?;
    assert_eq!(work.used_by_host(&image)?, None);
    Ok(())
}

#[test]
#[ignore = "needs nvcc 12.4: ./tests/run --all"]
fn heavy_finals_of_cuda_12() -> Result<()> {
    Work::new(TOOLKIT_12, "12.4")?.check_sets(&SETS)
}

/// Result of `archive build` with one view: its warnings and errors.
fn build_view(directory: &Path, input: &str) -> Result<String> {
    let view = format!("v={input}");
    let mut command = gpustub(&["archive", "build", "-o", "view.a", "--view", &view])?;
    Ok(run(command.current_dir(directory))?.stderr)
}

fn archive(directory: &Path, name: &str, members: &[&str]) -> Result<()> {
    let mut ar = Command::new("ar");
    ar.current_dir(directory).arg("rcs").arg(name);
    succeed(ar.args(members))?;
    Ok(())
}

fn expect(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
}

/// LLVM's own writer of offload binaries, and clang's own section.
#[test]
#[ignore = "needs clang 19 and yaml2obj 19: ./tests/run"]
fn offload_binaries_in_host_objects_are_named() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let mut yaml = "--- !Offload\nMembers:\n".to_owned();
    for arch in ["gfx90a", "gfx1100"] {
        yaml += &format!(
            "  - ImageKind: IMG_Bitcode\n    OffloadKind: OFK_HIP\n    String:\n      - Key: triple\n        \
             Value: amdgcn-amd-amdhsa\n      - Key: arch\n        Value: {arch}\n    Content: 4243c0de\n"
        );
    }
    fs::write(dir.join("images.yaml"), yaml)?;
    let mut yaml2obj = Command::new("yaml2obj-19");
    succeed(
        yaml2obj
            .current_dir(dir)
            .args(["images.yaml", "-o", "images.bin"]),
    )?;
    fs::write(dir.join("h.c"), "")?;
    let mut clang = Clang::System(19).command()?;
    clang
        .current_dir(dir)
        .args(["-c", "h.c", "-o", "h.o", "-Xclang"]);
    succeed(clang.arg("-fembed-offload-object=images.bin"))?;
    archive(dir, "h.a", &["h.o"])?;
    for (path, subject) in [("h.o", "the object"), ("h.a", "`h.o`")] {
        assert_eq!(
            check(dir, &[path])?,
            [
                format!(
                    "warning[clang-device-code]: {subject} has device code for gfx1100, gfx90a that only clang links"
                ),
                "Checked 1 file: 1 warning".to_owned(),
            ]
        );
        expect(
            &build_view(dir, path)?,
            &[
                "warning[no-symbols]: layer `h`: the device code of `h.o` for gfx1100, gfx90a is in an offload binary of clang",
                "`--unpack`",
            ],
        );
    }
    Ok(())
}

/// Objects and bundles of clang of one source: each form of HIP, and OpenMP.
#[test]
#[ignore = "needs clang-tools-19: ./tests/run --all"]
fn heavy_containers_of_clang_are_named() -> Result<()> {
    let dir = scratch()?;
    let dir = dir.path();
    let tools = component("clang-tools-19/usr/lib/llvm-19/bin")?;
    let compile = |words: &str| -> Result<()> {
        let mut clang = Clang::System(19).command()?;
        clang.current_dir(dir).env("PATH", path_with(&tools)?);
        clang.args(["-nogpulib", "-nogpuinc", "-c"]);
        succeed(clang.args(words.split(' ')))?;
        Ok(())
    };
    fs::write(
        dir.join("d.hip"),
        "__attribute__((device)) int twice(int x) { return 2 * x; }",
    )?;
    fs::copy(
        repository().join("tests/startup/device.hip"),
        dir.join("k.hip"),
    )?;
    fs::write(
        dir.join("o.c"),
        "int f(int *p) {\n#pragma omp target map(tofrom : p[0])\n    *p = 1;\n    return 0;\n}\n",
    )?;
    let hip = "-fgpu-rdc --offload-arch=gfx90a --offload-arch=gfx1100 -x hip";
    for (options, source, output) in [
        ("--offload-new-driver", "d.hip", "new.o"),
        ("--no-offload-new-driver", "d.hip", "old.o"),
        ("--no-offload-new-driver", "k.hip", "kernel.o"),
        (
            "--no-offload-new-driver --cuda-device-only --gpu-bundle-output -emit-llvm",
            "d.hip",
            "plain.bc",
        ),
        (
            "--no-offload-new-driver --cuda-device-only --gpu-bundle-output -emit-llvm --offload-compress",
            "d.hip",
            "compressed.bc",
        ),
    ] {
        compile(&format!("{options} {hip} {source} -o {output}"))?;
    }
    compile("-fopenmp --offload-arch=gfx90a o.c -o openmp.o")?;
    for (member, archs, form) in [
        ("new.o", " for gfx1100, gfx90a", "an offload binary"),
        ("old.o", " for gfx1100, gfx90a", "an offload bundle"),
        ("kernel.o", " for gfx1100, gfx90a", ""),
        ("plain.bc", " for gfx1100, gfx90a", "an offload bundle"),
        (
            "compressed.bc",
            " for gfx1100, gfx90a",
            "a compressed offload bundle",
        ),
    ] {
        archive(dir, "x.a", &[member])?;
        assert_eq!(
            check(dir, &["x.a"])?,
            [
                format!(
                    "warning[clang-device-code]: `{member}` has device code{archs} that only clang links"
                ),
                "Checked 1 file: 1 warning".to_owned(),
            ]
        );
        let built = build_view(dir, "x.a")?;
        let code = match form {
            "" => format!(
                "views find the symbols of `{member}` for the host, and not those of its device code{archs}, which is in an \
                 offload bundle of clang"
            ),
            // The subcommand's builder unpacks nothing.
            "a compressed offload bundle" => format!("the device code of `{member}` is in {form}"),
            _ => format!(
                "the device code of `{member}`{archs} is in {form} of clang: no view finds its symbols"
            ),
        };
        expect(&built, &["warning[no-symbols]", &code]);
        fs::remove_file(dir.join("x.a"))?;
    }
    // The advice helps.
    let mut unbundle = Command::new(tools.join("clang-offload-bundler"));
    unbundle.args(["-unbundle", "-type=o", "-input=old.o", "-output=bundled.bc"]);
    unbundle.arg("-targets=hip-amdgcn-amd-amdhsa--gfx90a");
    let mut extract = Command::new(tools.join("clang-offload-packager"));
    extract.args(["new.o", "--image=file=packed.bc,arch=gfx90a"]);
    for (mut command, output) in [(unbundle, "bundled.bc"), (extract, "packed.bc")] {
        succeed(command.current_dir(dir))?;
        let built = build_view(dir, output)?;
        assert!(!built.contains("warning"), "{built}");
        let mut find = gpustub(&["archive", "find", "view.a", "_Z5twicei"])?;
        expect(&succeed(find.current_dir(dir))?.stdout, &[output]);
    }
    archive(dir, "openmp.a", &["openmp.o"])?;
    assert_eq!(
        check(dir, &["openmp.a"])?,
        ["Checked 1 file: nothing found"]
    );
    assert_eq!(
        check(dir, &["compressed.bc"])?[0],
        "Skipped compressed.bc: a compressed offload bundle of clang, which is not checked: the host neither links nor loads it"
    );
    Ok(())
}
