//! Real device links: nvcc's own objects, links and images, as `check` and NVIDIA's tools read
//! them.

mod objects;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::gpu_arch::{Arch, ArchKind, ArchSuffix, NvidiaArch};
use gpustub_image::{DeviceCode, archive_device_code_file, read_device_code};
use gpustub_tests::Result;
use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::{run, succeed};
use gpustub_tests::components::wheel_libraries;
use gpustub_tests::elf::{readelf, symbols};
use gpustub_tests::nvcc::{TOOLKIT_13, runtime};
use gpustub_tests::scratch::scratch;

/// `b` has a device function that `a` and `c` call.
const SOURCES: [(&str, &str); 3] = [
    (
        "a",
        "extern __device__ int twice(int); __global__ void ka(int *p) { *p = twice(*p); }\n\
         extern \"C\" void a_run(int *p) { ka<<<1, 1>>>(p); }",
    ),
    (
        "b",
        "__device__ int twice(int x) { return 2 * x; } __global__ void kb(int *p) { *p = twice(*p); }\n\
         extern \"C\" void b_run(int *p) { kb<<<1, 1>>>(p); }",
    ),
    (
        "c",
        "extern __device__ int twice(int); __global__ void kc(int *p) { *p = twice(*p); }\n\
         extern \"C\" void c_run(int *p) { kc<<<1, 1>>>(p); }",
    ),
];

/// Directory of the objects and links.
struct Work {
    directory: tempfile::TempDir,
}

impl Work {
    fn new() -> Result<Self> {
        let work = Self {
            directory: scratch()?,
        };
        for (name, code) in SOURCES {
            fs::write(work.path(&format!("{name}.cu")), code)?;
        }
        Ok(work)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Compiles an object of relocatable device code.
    fn compile(&self, source: &str, archs: &str, output: &str) -> Result<PathBuf> {
        let mut nvcc = TOOLKIT_13.nvcc()?;
        nvcc.args(["-dc", "-Xcompiler", "-fPIC"])
            .args(archs.split(' '));
        nvcc.arg(self.path(source).with_extension("cu"));
        succeed(nvcc.arg("-o").arg(self.path(output)))?;
        Ok(self.path(output))
    }

    /// Creates a device link of objects.
    fn device_link(&self, objects: &[&str], archs: &str, output: &str) -> Result<PathBuf> {
        let mut nvcc = TOOLKIT_13.nvcc()?;
        nvcc.args(["-dlink", "-Xcompiler", "-fPIC"])
            .args(archs.split(' '));
        nvcc.args(objects.iter().map(|name| self.path(name)));
        succeed(nvcc.arg("-o").arg(self.path(output)))?;
        Ok(self.path(output))
    }

    fn archive(&self, name: &str, objects: &[&str]) -> Result<PathBuf> {
        let archive = self.path(name);
        let mut ar = Command::new("ar");
        ar.arg("rc").arg(&archive);
        succeed(ar.args(objects.iter().map(|object| self.path(object))))?;
        Ok(archive)
    }

    /// Links an image in a directory, with `DT_NEEDED` entries for all named libraries.
    fn link(&self, directory: &str, words: &str, output: &str) -> Result<()> {
        let directory = self.path(directory);
        fs::create_dir_all(&directory)?;
        let library = directory.join("libcudart.so.13");
        if !library.exists() {
            fs::copy(runtime("13.5")?, &library)?;
        }
        let mut link = Command::new("c++");
        link.current_dir(self.directory.path())
            .arg("-Wl,--no-as-needed");
        for word in words.split(' ') {
            if word.ends_with(".so") {
                link.arg(directory.join(word))
            } else {
                link.arg(word)
            };
        }
        link.arg("-Wl,-rpath-link").arg(&directory).arg(library);
        if output.ends_with(".so") {
            link.arg("-shared").arg(format!("-Wl,-soname,{output}"));
        }
        succeed(
            link.args(["-pthread", "-ldl", "-o"])
                .arg(directory.join(output)),
        )?;
        Ok(())
    }

    /// Links the libraries in the middle: objects without a device link.
    fn middles(&self, directory: &str, names: &[&str]) -> Result<()> {
        self.link(directory, "b.o", "libb.so")?;
        for name in names {
            self.link(
                directory,
                &format!("{name}.o libb.so"),
                &format!("lib{name}.so"),
            )?;
        }
        Ok(())
    }

    /// Findings of `check` in a directory, with names for ids.
    fn check(&self, directory: &str) -> Result<Vec<String>> {
        let mut command = gpustub(&["check", "--message-format", "short", "."])?;
        let ran = run(command.current_dir(self.path(directory)))?;
        let mut text = ran.stderr;
        for (name, _) in SOURCES {
            let id = &read(&self.path(&format!("{name}.o")))?.modules[0].id;
            text = text.replace(id, name);
        }
        Ok(text
            .lines()
            .map(|line| line.trim_start_matches("./").to_owned())
            .collect())
    }
}

fn read(path: &Path) -> Result<DeviceCode> {
    Ok(read_device_code(&fs::read(path)?)
        .map_err(|error| format!("{}: {error}", path.display()))?)
}

/// Eight sets of images, with the findings in each.
const SETS: [(&str, &[&str]); 8] = [
    ("objects", &[]),
    ("chain", &[]),
    (
        "two-finals",
        &[
            "liba_final.so: error[duplicate-device-link]: `b` is device-linked in this image and in `libc_final.so`; a process registers only one of the two",
        ],
    ),
    ("own-link", &[]),
    (
        "middles",
        &[
            "liba.so: error[missing-device-link]: relocatable code of `a` has no device link in the process",
            "libb.so: error[missing-device-link]: relocatable code of `b` has no device link in the process",
        ],
    ),
    (
        "wrong-arch",
        &[
            "app: error[missing-arch]: the device link for sm_90 lacks the code of `b`, which is compiled for sm_80",
        ],
    ),
    (
        "isolated",
        &[
            "plugin_a.so: warning[unshared-device-globals]: `b` is linked into this image and into `plugin_c.so`; each copy has its own device globals",
        ],
    ),
    (
        "exporting",
        &[
            "plugin_a.so: error[duplicate-device-link]: `b` is device-linked in this image and in `plugin_c.so`; a process registers only one of the two",
        ],
    ),
];

/// Builds the images of all sets.
fn sets(work: &Work) -> Result<()> {
    let machine_code = "-gencode arch=compute_80,code=sm_80";
    for (name, _) in SOURCES {
        work.compile(name, machine_code, &format!("{name}.o"))?;
    }
    for objects in ["ab", "cb", "abc"] {
        let names: Vec<String> = objects.chars().map(|name| format!("{name}.o")).collect();
        let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
        work.device_link(&inputs, "-arch=sm_80", &format!("{objects}.link.o"))?;
    }
    // nvlink only warns.
    work.device_link(&["b.o"], "-arch=sm_90", "b.90.link.o")?;
    fs::write(
        work.path("local"),
        "{ local: __cudaRegisterLinkedBinary*; __fatbinwrap*; };\n",
    )?;
    for calls in ["ab", "ac", "abc", "b"] {
        let name = format!("main_{calls}");
        let mut code = String::new();
        let mut body = String::new();
        for call in calls.chars() {
            code += &format!("void {call}_run(int *);\n");
            body += &format!("{call}_run(&x); ");
        }
        code += &format!("int main(void) {{ int x = 1; {body}return 0; }}\n");
        fs::write(work.path(&name).with_extension("c"), code)?;
        let mut cc = Command::new("cc");
        cc.args(["-c", "-fPIC"])
            .arg(work.path(&name).with_extension("c"));
        succeed(cc.arg("-o").arg(work.path(&name).with_extension("o")))?;
    }

    work.link("objects", "main_ab.o ab.link.o a.o b.o", "app")?;

    work.middles("chain", &["a"])?;
    work.link("chain", "ab.link.o liba.so libb.so", "liba_final.so")?;
    work.link("chain", "main_ab.o liba_final.so liba.so libb.so", "app")?;

    work.middles("two-finals", &["a", "c"])?;
    for (name, link) in [("a", "ab"), ("c", "cb")] {
        let words = format!("{link}.link.o lib{name}.so libb.so");
        work.link("two-finals", &words, &format!("lib{name}_final.so"))?;
    }
    let words = "main_ac.o liba_final.so libc_final.so liba.so libc.so";
    work.link("two-finals", words, "app")?;

    work.middles("own-link", &["a", "c"])?;
    work.link(
        "own-link",
        "main_abc.o abc.link.o liba.so libc.so libb.so",
        "app",
    )?;

    work.middles("middles", &["a"])?;

    work.link("wrong-arch", "main_b.o b.90.link.o b.o", "app")?;

    for (set, flags) in [
        ("isolated", " -Wl,--version-script=local"),
        ("exporting", ""),
    ] {
        for (name, link) in [("a", "ab"), ("c", "cb")] {
            let words = format!("{name}.o b.o {link}.link.o{flags}");
            work.link(set, &words, &format!("plugin_{name}.so"))?;
        }
    }
    Ok(())
}

#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn each_set_has_its_findings_stripped_or_not() -> Result<()> {
    let work = Work::new()?;
    sets(&work)?;
    for (set, expected) in SETS {
        assert_eq!(work.check(set)?, expected, "{set}");
        for entry in fs::read_dir(work.path(set))? {
            let path = entry?.path();
            let before = fs::metadata(&path)?.len();
            succeed(Command::new("strip").arg(&path))?;
            let is_ours = !path.ends_with("libcudart.so.13");
            assert!(
                !is_ours || fs::metadata(&path)?.len() < before,
                "{set}: {path:?}"
            );
        }
        assert_eq!(work.check(set)?, expected, "{set}, stripped");
    }
    Ok(())
}

/// A wheel is one process, also; a static library is checked alone.
#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn archives_that_hold_a_device_link_are_found() -> Result<()> {
    let work = Work::new()?;
    work.compile("b", "-arch=sm_80", "b.o")?;
    work.device_link(&["b.o"], "-arch=sm_80", "b.link.o")?;
    let good = work.archive("libgood.a", &["b.o"])?;
    let bad = work.archive("libbad.a", &["b.o", "b.link.o"])?;
    assert!(!archive_device_code_file(&good)?.is_device_linked());
    assert!(archive_device_code_file(&bad)?.is_device_linked());
    let mut check = gpustub(&["check", "--message-format", "short"])?;
    assert_eq!(run(check.arg(&good))?.stderr, "");
    let mut check = gpustub(&["check", "--message-format", "short"])?;
    assert!(
        run(check.arg(&bad))?
            .stderr
            .contains("libbad.a: warning[device-linked-archive]: the archive contains 1 object")
    );
    // nvlink's result for each: no message reports that the second is left out.
    for (library, registers) in [("libgood.a", 1), ("libbad.a", 0)] {
        let link = work.device_link(&[library], "-arch=sm_80", "again.o")?;
        assert_eq!(read(&link)?.links.len(), registers, "{library}");
    }
    Ok(())
}

/// Architectures that cuobjdump lists: of an image's device links, and with `-all` also of objects.
fn listed(file: &Path, flags: &[&str]) -> Result<BTreeSet<String>> {
    let mut archs = BTreeSet::new();
    for (option, head) in [("--list-elf", "sm_"), ("--list-ptx", "compute_")] {
        let mut tool = TOOLKIT_13.tool("cuobjdump")?;
        let ran = run(tool.args(flags).arg(option).arg(file))?;
        // Its code for a file without device code, or without code of this kind.
        if !ran.status.success() && ran.status.code() != Some(255) {
            return Err(ran.error("cuobjdump failed"));
        }
        for name in ran.stdout.lines().filter(|line| line.contains(" file ")) {
            let arch = name
                .rsplit('.')
                .nth(1)
                .and_then(|arch| arch.strip_prefix("sm_"))
                .ok_or_else(|| format!("cuobjdump says {name}"))?;
            archs.insert(format!("{head}{arch}"));
        }
    }
    Ok(archs)
}

/// Names as cuobjdump prints them, without families: `sm_100f` is `sm_100`.
fn names<'a>(archs: impl IntoIterator<Item = &'a Arch>) -> BTreeSet<String> {
    archs
        .into_iter()
        .map(|arch| arch.to_string().trim_end_matches('f').to_owned())
        .collect()
}

/// Strings of `__nv_module_id`, by readelf.
fn ids(file: &Path) -> Result<Vec<String>> {
    let text = readelf(&["-p", "__nv_module_id"], file)?;
    Ok(text
        .lines()
        .filter_map(|line| Some(line.split_once("]  ")?.1.to_owned()))
        .collect())
}

#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn objects_and_links_read_as_by_nvidias_tools() -> Result<()> {
    let work = Work::new()?;
    for archs in [
        "-arch=sm_80",
        "-arch=all-major",
        "-arch=sm_80 -no-compress",
        "-arch=sm_86 -G",
        "-gencode arch=compute_90a,code=[sm_90a,compute_90a] -gencode arch=compute_80,code=sm_80",
        "-gencode arch=compute_100f,code=sm_100f -gencode arch=compute_75,code=compute_75",
    ] {
        let object = work.compile("b", archs, "b.o")?;
        let code = read(&object)?;
        assert_eq!(code.modules.len(), 1, "{archs}");
        assert_eq!(
            names(&code.modules[0].archs),
            listed(&object, &[])?,
            "{archs}"
        );
        assert_eq!(ids(&object)?, [code.modules[0].id.clone()], "{archs}");
        let newest = (code.modules[0].archs.iter())
            .rfind(|arch| arch.kind() == ArchKind::Real)
            .ok_or("no machine code")?;
        work.device_link(&["b.o"], &format!("-arch={newest}"), "link.o")?;
        work.link("image", "b.o link.o", "image.so")?;
        let image = work.path("image/image.so");
        let linked = read(&image)?;
        assert_eq!(names(&linked.linked), listed(&image, &[])?, "{archs}");
        let with_objects = linked.linked.iter().chain(&linked.modules[0].archs);
        assert_eq!(names(with_objects), listed(&image, &["-all"])?, "{archs}");
        let mut expected: Vec<String> = linked.links.iter().map(|id| format!("def {id}")).collect();
        expected.extend(linked.modules.iter().map(|module| module.id.clone()));
        let mut ids = ids(&image)?;
        expected.sort();
        ids.sort();
        assert_eq!(ids, expected, "{archs}");
        let exported = symbols("--dyn-syms", &image)?
            .into_iter()
            .filter(|row| row.section != "UND")
            .filter_map(|row| Some(row.name.strip_prefix(gpustub_image::REGISTER)?.to_owned()))
            .collect();
        assert_eq!(linked.exported, exported, "{archs}");
    }
    Ok(())
}

/// A library device-linked by its vendor: stripped, of hundreds of objects, with code that needs no
/// device link between them.
#[test]
#[ignore = "needs NCCL and nvcc 13.5: ./tests/run"]
fn real_library_reads_as_by_nvidias_tools() -> Result<()> {
    let library = wheel_libraries("nccl")?.join("libnccl.so.2");
    let code = read(&library)?;
    let ids = ids(&library)?;
    let (links, module_ids): (Vec<&String>, Vec<_>) =
        ids.iter().partition(|id| id.starts_with("def "));
    assert!(links.len() > 100, "{}", links.len());
    assert_eq!(code.links.len(), links.len());
    let modules = module_ids
        .iter()
        .filter(|id| **id != "__NV_MODULE_ID")
        .count();
    assert_eq!(code.modules.len(), modules);
    assert!(names(&code.linked).is_subset(&listed(&library, &[])?));
    for module in code.modules.iter().filter(|m| code.links.contains(&m.id)) {
        for arch in &code.linked {
            let is_served = module.archs.iter().any(|code| code.serves(*arch));
            assert!(
                is_served || arch.kind() != ArchKind::Real,
                "{}: {arch} of {:?}",
                module.id,
                module.archs
            );
        }
    }
    assert!(!code.linked.is_empty());
    Ok(())
}

/// Warnings of nvlink for every pair of an object's and a link's architectures.
#[test]
#[ignore = "needs nvcc 13.5: ./tests/run"]
fn code_that_serves_a_device_link_is_accepted_by_nvlink() -> Result<()> {
    let work = Work::new()?;
    let archs = [
        "75", "80", "86", "90", "90a", "100", "100a", "100f", "103", "103f", "120",
    ];
    let (mut accepted, mut refused) = (0, 0);
    for name in archs {
        for (kind, head) in [(ArchKind::Real, "sm"), (ArchKind::Virtual, "compute")] {
            let flags = format!("-gencode arch=compute_{name},code={head}_{name}");
            let object = work.compile("b", &flags, "b.o")?;
            let code = arch(name, kind);
            assert_eq!(read(&object)?.modules[0].archs, BTreeSet::from([code]));
            for target in archs {
                let mut nvlink = TOOLKIT_13.tool("nvlink")?;
                nvlink.args(["-m64", &format!("--arch=sm_{target}"), "-cpu-arch=X86_64"]);
                let ran = succeed(nvlink.arg(&object).arg("-o").arg(work.path("linked")))?;
                let is_accepted = !ran.stderr.contains("not found in");
                assert_eq!(
                    code.serves(arch(target, ArchKind::Real)),
                    is_accepted,
                    "{head}_{name} for sm_{target}: {}",
                    ran.stderr
                );
                if is_accepted {
                    accepted += 1
                } else {
                    refused += 1
                }
            }
        }
    }
    assert!(accepted > 50 && refused > 50, "{accepted} {refused}");
    Ok(())
}

/// Architecture of a number with its letter.
fn arch(name: &str, kind: ArchKind) -> Arch {
    Arch::Nvidia(NvidiaArch {
        number: name
            .trim_end_matches(['a', 'f'])
            .parse()
            .unwrap_or_default(),
        suffix: match name.chars().last() {
            Some('a') => Some(ArchSuffix::Accelerated),
            Some('f') => Some(ArchSuffix::Family),
            _ => None,
        },
        kind,
    })
}
