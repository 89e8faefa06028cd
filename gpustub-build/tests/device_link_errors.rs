//! Errors of CUDA code that cannot be built, with compilers that only print the messages of nvcc,
//! nvlink and the host compiler (13.5, GCC 12).
#![cfg(all(unix, feature = "device-link"))]

#[path = "tools/package.rs"]
mod package;
#[path = "tools/toolkit.rs"]
mod toolkit;
#[allow(dead_code, reason = "other tests need the rest of them")]
#[path = "../../crates/engine/tests/tools/mod.rs"]
mod tools;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use package::Package;
use toolkit::{MANIFEST, directives, executable, expect, log, package};

/// A package whose compiler prints this and fails. The compiler lists its architectures.
fn failing(name: &str, manifest: &str, says: &str) -> Package {
    let package = package(name, manifest);
    let script = format!(
        "#!/bin/sh\n\
         case $1 in\n\
         --list-gpu-code) echo sm_90; echo sm_80; exit ;;\n\
         --list-gpu-arch) echo compute_90; echo compute_80; exit ;;\n\
         esac\n\
         cat >&2 <<'END'\n{says}\nEND\nexit 1\n"
    );
    executable(&package.dir.join("toolkit/bin/nvcc"), &script);
    package
}

#[test]
fn the_cause_comes_first_and_the_command_last() {
    let package = failing(
        "order",
        &format!("{MANIFEST}defines = {{ TEXT = \"a b\" }}\n"),
        "cuda/waves.cu(1): error: identifier \"foo\" is undefined",
    );
    let error = package.error();
    let lines: Vec<_> = error.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "error[nvcc-error]: nvcc cannot compile cuda/waves.cu (exit status: 1)",
            "  | cuda/waves.cu(1): error: identifier \"foo\" is undefined",
        ]
    );
    assert_eq!(lines.len(), 3, "{error}");
    let nvcc = package.dir.join("toolkit/bin/nvcc");
    let start = format!("  command: {} -rdc=true -c ", nvcc.display());
    assert!(lines[2].starts_with(&start), "{error}");
    expect(
        lines[2],
        &[
            " -gencode arch=compute_80,code=sm_80 '-DTEXT=a b' ",
            " cuda/waves.cu -o ",
        ],
    );
}

#[test]
fn a_missing_header_error_names_its_library() {
    let says = "cuda/waves.cu:1:10: fatal error: geo/area.cuh: No such file or directory";
    let mut package = failing("header", MANIFEST, says);
    let general = "help: `include-dirs = [\"…\"]` in [device-link.waves] (GpuStub.toml:2:14) names the directories";
    expect(&package.error(), &[says, general]);

    let dir = package.dir.clone();
    let metadata = format!(
        "gpustub-device-link 5\nlibrary base\npackage base 0.1.0\nbuilt true\nlibrary geometry\n\
         package shapes 0.2.0\nbuilt true\ninclude-dir {}\n",
        dir.join("geometry").display()
    );
    fs::write(dir.join("libraries"), metadata).unwrap();
    package.set("DEP_SHAPES_GPUSTUB_DEVICE_LINK", dir.join("libraries"));
    expect(&package.error(), &[general]);

    fs::create_dir_all(dir.join("geometry/geo")).unwrap();
    fs::write(dir.join("geometry/geo/area.cuh"), "").unwrap();
    expect(
        &package.error(),
        &[
            "help: device-link.geometry of shapes 0.2.0 has geo/area.cuh: write \"geometry\" into `requires` of \
           [device-link.waves] (GpuStub.toml:2:14)",
        ],
    );

    // The header of a required library has been searched.
    let manifest = format!("{MANIFEST}requires = [\"geometry\"]\n");
    fs::write(dir.join("GpuStub.toml"), manifest).unwrap();
    expect(&package.error(), &[general]);
}

#[test]
fn an_unsupported_architecture_has_a_location() {
    let manifest = MANIFEST.replace("[\"sm_80\"]", "[\"sm_80\", \"sm_999\"]");
    let says = "nvcc fatal   : Unsupported gpu architecture 'compute_999'";
    let package = failing("arch", &manifest, says);
    let toolkit = package.dir.join("toolkit");
    let first = format!(
        "GpuStub.toml:4:19: error[nvcc-error]: the CUDA toolkit at {} does not support `sm_999`, which \
         device-link.waves requests\n  | {says}\n  help: use a supported one: sm_80 sm_90 compute_80 \
         compute_90; or compile with another toolkit",
        toolkit.display()
    );
    let error = package.error();
    assert!(error.starts_with(&first), "{error}");

    // Toolkits before 11.3 do not list their architectures.
    executable(
        &toolkit.join("bin/nvcc"),
        &format!("#!/bin/sh\necho \"{says}\"\nexit 1\n"),
    );
    expect(&package.error(), &["help: `nvcc --list-gpu-code` lists"]);
}

#[test]
fn a_missing_required_library_has_a_location() {
    let manifest = format!("{MANIFEST}requires = [\"geometry\"]\n");
    let error = package("requires", &manifest).error();
    let start =
        "GpuStub.toml:5:13: error[unknown-device-library]: device-link.waves requires `geometry`";
    assert!(error.starts_with(start), "{error}");
    expect(&error, &["the `links` key; no library is visible"]);
}

#[test]
fn only_files_are_compiled() {
    let package = package("files", MANIFEST);
    let cuda = package.dir.join("cuda");
    fs::create_dir(cuda.join("folder.cu")).unwrap();
    package.output();
    assert!(!log(&package).contains("folder"), "{}", log(&package));

    symlink(cuda.join("nowhere"), cuda.join("gone.cu")).unwrap();
    let gone = cuda.join("gone.cu").display().to_string();
    expect(
        &package.error(),
        &[&format!("cannot read {gone}: No such file")],
    );

    fs::remove_file(cuda.join("waves.cu")).unwrap();
    fs::remove_file(cuda.join("gone.cu")).unwrap();
    expect(
        &package.error(),
        &[
            "GpuStub.toml:3:12: error[unmatched-sources]: `sources` of device-link.waves: `cuda/*.cu` matches no file",
        ],
    );
}

#[test]
fn names_that_nvcc_alters_are_rejected() {
    let package = package("names", &format!("{MANIFEST}include-dirs = [\"in\"]\n"));
    for directory in ["in", "a,b"] {
        fs::create_dir(package.dir.join(directory)).unwrap();
    }
    let cuda = package.dir.join("cuda");
    for (name, message) in [
        (&b"a$(x).cu"[..], "cuda/a$(x).cu, which contains `$`"),
        (b"a`x`.cu", "cuda/a`x`.cu, which contains ```"),
        (b"a\xff.cu", "cuda/a\\xFF.cu\" cannot be passed to cargo"),
        (b"a\nb.cu", "cuda/a\\nb.cu\" cannot be passed to cargo"),
    ] {
        let path = cuda.join(OsStr::from_bytes(name));
        fs::write(&path, "").unwrap();
        expect(&package.error(), &[message, "help: "]);
        fs::remove_file(path).unwrap();
    }
    assert_eq!(log(&package), "");

    // All other names can be passed to nvcc.
    for name in ["a b.cu", "a,b.cu", "a'b.cu"] {
        fs::write(cuda.join(name), "").unwrap();
    }
    package.output();
    expect(&log(&package), &[" cuda/a b.cu -o "]);

    let manifest = format!("{MANIFEST}include-dirs = [\"a,b\"]\n");
    fs::write(package.dir.join("GpuStub.toml"), manifest).unwrap();
    expect(
        &package.error(),
        &["a,b, which contains `,`", "help: rename"],
    );
}

/// Prints messages of nvlink about the given archives, and exits with `CODE`.
const LINKER: &str = r#"#!/bin/sh
case $1 in --list*) exit 1 ;; esac
while [ $# -gt 0 ]; do
    case $1 in
        -o) output=$2; shift ;;
        --keep-dir) keep=$2; shift ;;
        *.a) archive=$1 ;;
    esac
    shift
done
echo "nvlink SAYS" | sed "s|ARCHIVE|$archive|" >&2
: >"$output"
echo 'DEFINE_REGISTER_FUNC(_1)' >"$keep/device_link.reg.c"
exit CODE
"#;

/// A package that has been compiled, and whose device link prints this.
fn linking(name: &str, says: &str, code: u8) -> Package {
    let package = package(name, &format!("{MANIFEST}cudart = \"none\"\n"));
    package.output();
    let script = LINKER.replace("SAYS", says);
    let script = script.replace("CODE", &code.to_string());
    // Next to the compiler, whose objects stay fresh.
    let nvcc = package.dir.join("toolkit/bin/nvcc");
    let compiler = fs::read_to_string(&nvcc).unwrap();
    executable(&package.dir.join("toolkit/bin/compiler"), &compiler);
    executable(&package.dir.join("toolkit/bin/linker"), &script);
    let dispatcher = "#!/bin/sh\nhere=$(dirname \"$0\")\n\
                case \" $* \" in *' -dlink '*) exec \"$here/linker\" \"$@\" ;; esac\n\
                exec \"$here/compiler\" \"$@\"\n";
    executable(&nvcc, dispatcher);
    package
}

fn link_error(package: &Package) -> String {
    let error = package.build().finalize().try_build().unwrap_err();
    error.to_string()
}

#[test]
fn functions_are_demangled_and_objects_named_by_source() {
    let says = "error   : Undefined reference to '_ZN3geo4areaEi' in 'ARCHIVE:cuda-waves.cu.o'";
    let package = linking("undefined", says, 255);
    let filter = package.dir.join("toolkit/bin/cu++filt");
    executable(
        &filter,
        "#!/bin/sh\nsed 's/_ZN3geo4areaEi/geo::area(int)/'\n",
    );
    let error = link_error(&package);
    let source = package.dir.join("cuda/waves.cu");
    let start = format!(
        "error[device-link-error]: nvcc cannot link the device code (exit status: 255)\n  | nvlink error   : \
         Undefined reference to 'geo::area(int)' in '{}'\n  help: the library that defines it belongs into \
         `requires`",
        source.display()
    );
    assert!(error.starts_with(&start), "{error}");
    let last = error.lines().last().unwrap();
    expect(last, &["  command: ", " -dlink ", "my_package_waves.a -o "]);

    // A demangler that fails, or prints other text, is ignored.
    for script in ["exit 1", "echo; echo; echo no"] {
        executable(&filter, &format!("#!/bin/sh\n{script}\n"));
        let error = link_error(&package);
        expect(&error, &["Undefined reference to '", "waves.cu'"]);
    }
}

#[test]
fn a_duplicate_definition_has_a_help() {
    let says = "error   : Multiple definition of 'dup' in 'ARCHIVE:cuda-waves.cu.o', first defined in 'x.a:x.o'";
    let error = link_error(&linking("twice", says, 1));
    expect(&error, &["in 'x.a:x.o'", "help: make it `inline`"]);
}

#[test]
fn kernels_that_launch_kernels_are_rejected_with_a_help() {
    let says =
        "error   : Undefined reference to '__cudaCDP2LaunchDeviceV2' in 'ARCHIVE:cuda-waves.cu.o'";
    let error = link_error(&linking("launch", says, 255));
    expect(
        &error,
        &[
            "help: a kernel launches kernels, which needs libcudadevrt: write `cudadevrt = true`",
            " -cudadevrt none ",
        ],
    );
}

#[test]
fn missing_code_for_an_architecture_is_an_error() {
    let says = "warning : SM Arch ('sm_90') not found in 'ARCHIVE:cuda-waves.cu.o'";
    let error = link_error(&linking("no-arch", says, 0));
    expect(
        &error,
        &["| nvlink warning : SM Arch ('sm_90') not found in '"],
    );
}

/// nvlink does not report this for archives; cuobjdump does, if the toolkit has it.
#[test]
fn an_external_archive_without_an_architecture_is_an_error() {
    let manifest = "schema = 1\n[device-link.waves]\nprebuilt = \"libwaves.a\"\narchs = [\"sm_80\", \
                    \"sm_90\"]\ncudart = \"none\"\n";
    let package = package("other-archs", manifest);
    let dir = &package.dir;
    let [source, object, archive] =
        ["a.s", "a.o", "libwaves.a"].map(|name| dir.join(name).display().to_string());
    let code = ".data; .globl __fatbinwrap_1; __fatbinwrap_1: .byte 0\n";
    fs::write(&source, code).unwrap();
    tools::output("cc", ["-c", &source, "-o", &object]);
    tools::output("ar", ["qcs", &archive, &object]);
    let linker = LINKER.replace("SAYS", "").replace("CODE", "0");
    executable(&dir.join("toolkit/bin/nvcc"), &linker);
    install_cuobjdump(&package, "sm_75 sm_80");
    let error = link_error(&package);
    let start = format!(
        "error[missing-arch]: the device link is for sm_90, and a.o of {} (device-link.waves of \
         my-package 0.1.0) has only sm_75, sm_80\n  help: list",
        archive
    );
    assert!(error.starts_with(&start), "{error}");

    install_cuobjdump(&package, "sm_80 sm_90");
    package.build().finalize().try_build().unwrap();
    let before = log(&package);
    package.build().finalize().try_build().unwrap();
    assert_eq!(log(&package), before, "the archive is as it was");

    // Without the tool, and with a tool that lists nothing.
    let _ = fs::remove_dir_all(dir.join("out"));
    fs::remove_file(dir.join("toolkit/bin/cuobjdump")).unwrap();
    package.build().finalize().try_build().unwrap();
    let _ = fs::remove_dir_all(dir.join("out"));
    install_cuobjdump(&package, "");
    package.build().finalize().try_build().unwrap();
}

/// Installs a `cuobjdump` that lists these architectures of `a.o`, and none of `host.o`. As the real one does, it exits
/// with 255 if there are none.
fn install_cuobjdump(package: &Package, archs: &str) {
    let script = format!(
        "#!/bin/sh\necho cuobjdump >>'{}'\necho \"member $3:a.o:\"\ncode=255\n\
         for arch in {archs}; do code=0; echo \"ELF file    1: a.1.$arch.cubin\"; done\n\
         echo \"member $3:host.o:\"\nexit $code\n",
        package.dir.join("log").display()
    );
    executable(&package.dir.join("toolkit/bin/cuobjdump"), &script);
}

/// Uses nvlink's warnings about recursion and calls by pointer, which are no mistakes.
#[test]
fn other_warnings_of_the_device_link_are_passed_on() {
    let says = "warning : Stack size for entry function 'k' cannot be statically determined";
    let package = linking("stack", says, 0);
    let output = package.build().finalize().try_build().unwrap();
    let directives: Vec<_> = output.directives.iter().map(ToString::to_string).collect();
    let line = format!("cargo::warning=nvlink {says}");
    assert!(directives.contains(&line), "{directives:#?}");
    let link = package.dir.join("out/gpustub/device-link/link");
    let object = link.join("device_link.o").display().to_string();
    assert!(
        directives.contains(&format!("cargo::rustc-link-arg={object}")),
        "{directives:#?}"
    );
}

/// Checks a build that compiles and links, then one that only links.
#[test]
fn a_substitute_toolkit_is_reported_once() {
    let mut package = linking("stands-in", "", 0);
    package.set("CUDA_PATH", package.dir.join("toolkit"));
    package.set("CUDA_HOME", "/nowhere");
    assert_eq!(substitute_warnings(&package), 1);

    // A build that only links.
    let dir = package.dir.clone();
    let libraries = dir.join("out/gpustub/device-link/libraries");
    fs::copy(libraries, dir.join("libraries")).unwrap();
    package.set("DEP_WAVES_GPUSTUB_DEVICE_LINK", dir.join("libraries"));
    fs::write(dir.join("GpuStub.toml"), "schema = 1\n").unwrap();
    assert_eq!(substitute_warnings(&package), 1);
}

fn substitute_warnings(package: &Package) -> usize {
    let output = package.build().finalize().try_build().unwrap();
    let start = "cargo::warning=CUDA_HOME is set, and /nowhere/bin has no nvcc: ";
    output
        .directives
        .iter()
        .filter(|directive| directive.to_string().starts_with(start))
        .count()
}

/// Number of nvcc calls of a build.
fn compiled(package: &Package) -> usize {
    let before = log(package).lines().count();
    directives(package);
    log(package).lines().count() - before
}

#[test]
fn variables_and_programs_of_compilers_cause_a_rebuild() {
    let mut package = package("surroundings", MANIFEST);
    let dir = package.dir.clone();
    let old = fs::File::options()
        .write(true)
        .open(dir.join("cuda/waves.cu"));
    old.unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let host: PathBuf = dir.join("host");
    executable(&host, "#!/bin/sh\necho '#define __clang__ 1'\n");
    package.set("CXX", &host);
    assert_eq!([compiled(&package), compiled(&package)], [1, 0]);
    let variables = "NVCC_PREPEND_FLAGS NVCC_APPEND_FLAGS CPATH CPLUS_INCLUDE_PATH GCC_EXEC_PREFIX \
                     COMPILER_PATH INCLUDES SYSTEM_INCLUDES";
    for name in variables.split(' ') {
        package.set(name, "-DX");
        assert_eq!([compiled(&package), compiled(&package)], [1, 0], "{name}");
    }

    // Replaces the compilers: the host's, and CUDA's by a link.
    executable(&host, "#!/bin/sh\necho '#define __clang__ 15'\n");
    assert_eq!([compiled(&package), compiled(&package)], [1, 0]);
    let nvcc = dir.join("toolkit/bin/nvcc");
    let text = fs::read_to_string(&nvcc).unwrap();
    executable(&dir.join("newer"), &format!("{text}# newer\n"));
    fs::remove_file(&nvcc).unwrap();
    symlink(dir.join("newer"), &nvcc).unwrap();
    assert_eq!([compiled(&package), compiled(&package)], [1, 0]);

    // Cargo has to run the script when they change.
    let directives = directives(&package);
    for file in [dir.join("newer"), host] {
        let file = fs::canonicalize(file).unwrap();
        let line = format!("cargo::rerun-if-changed={}", file.display());
        assert!(directives.contains(&line), "{line} in {directives:#?}");
    }

    // The variable may name a directory, whose files are watched.
    executable(&dir.join("hosts/gcc"), "#!/bin/sh\n");
    package.set("NVCC_CCBIN", dir.join("hosts"));
    let line = format!("cargo::rerun-if-changed={}/hosts/gcc", dir.display());
    assert!(toolkit::directives(&package).contains(&line));
}

#[test]
fn sources_with_similar_names_have_their_own_objects() {
    let manifest = MANIFEST.replace("cuda/*.cu", "**/*.cu");
    let package = package("alike", &manifest);
    for name in ["a/b-c.cu", "a-b/c.cu"] {
        let path = package.dir.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    package.output();
    expect(&log(&package), &["/a-b-c.cu.o\n", "/a-b-c.cu.2.o\n"]);
    let metadata =
        fs::read_to_string(package.dir.join("out/gpustub/device-link/libraries")).unwrap();
    let dir = package.dir.display();
    for source in ["a-b/c.cu", "a/b-c.cu"] {
        expect(&metadata, &[&format!("\t{dir}/{source}\n")]);
    }
}

/// An unescaped comma would end the value.
#[test]
fn values_of_macros_may_contain_commas() {
    let manifest = format!("{MANIFEST}defines = {{ LIST = \"1,2\" }}\n");
    let package = package("commas", &manifest);
    package.output();
    expect(&log(&package), &[" -DLIST=1\\,2 "]);
}

/// The first of two compilations waits for the second, which has two tokens then, and fails.
#[test]
fn compiled_objects_are_kept_after_a_failure() {
    let mut package = package("kept", MANIFEST);
    package.set("NUM_JOBS", "2");
    let dir = package.dir.clone();
    for name in ["cuda/a.cu", "cuda/waves.cu"] {
        fs::write(dir.join(name), "").unwrap();
        let file = fs::File::options()
            .write(true)
            .open(dir.join(name))
            .unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
    }
    let nvcc = dir.join("toolkit/bin/nvcc");
    let good = fs::read_to_string(&nvcc).unwrap();
    let wait = format!(
        "case \"$*\" in *cuda/a.cu*)\n\
         [ -e '{0}/fixed' ] || {{ until [ -e '{0}/begun' ]; do sleep 0.01; done; echo error; exit 1; }} ;;\n\
         *) : >'{0}/begun' ;;\n\
         esac\n",
        dir.display()
    );
    executable(&nvcc, &good.replacen('\n', &format!("\n{wait}"), 1));
    expect(&package.error(), &["nvcc cannot compile cuda/a.cu"]);
    assert_eq!(log(&package).lines().count(), 1, "{}", log(&package));
    fs::write(dir.join("fixed"), "").unwrap();
    package.output();
    let log = log(&package);
    assert_eq!(log.lines().count(), 2, "{log}");
    assert!(log.lines().nth(1).unwrap().contains(" cuda/a.cu "), "{log}");
}
