//! Exports for Windows: CMake, Meson and pkg-config with mingw-w64; the programs run under wine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::command::succeed;
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;
use gpustub_tests::wine::{TRIPLE, compiler, run, windows_path, wine};
use gpustub_tests::{Result, repository};

use super::{export, generate};

/// What the programs print without libraries.
const WITHOUT: [&str; 2] = [
    "headers 0, cuInit 100, cudaGetDeviceCount 35 0, nvrtcVersion 11 0.0\ngpustub_load 1 2\n",
    "cuInit 100, cudaRuntimeGetVersion 35 0, 0 bound\n",
];

/// The directory of stubs, and a project beside it that is built with CMake.
fn build(dir: &Path, project: &Path, definition: &str) -> Result<PathBuf> {
    let build = dir.join("build");
    let toolchain = repository().join("tests/exports/windows/toolchain.cmake");
    let mut cmake = Command::new("cmake");
    cmake.args(["-G", "Ninja", "-S"]).arg(project);
    cmake.arg("-B").arg(&build).arg(definition);
    cmake.arg(format!("-DCMAKE_TOOLCHAIN_FILE={}", toolchain.display()));
    for variable in ["CUDA_PATH", "CUDAToolkit_ROOT", "CMAKE_PREFIX_PATH"] {
        cmake.env_remove(variable);
    }
    succeed(&mut cmake)?;
    succeed(Command::new("cmake").arg("--build").arg(&build))?;
    Ok(build)
}

/// Output of a program with these variables.
pub fn output(program: &Path, variables: &[(&str, &Path)]) -> Result<String> {
    let mut command = wine(program)?;
    for (name, file) in variables {
        command.env(name, windows_path(file));
    }
    Ok(run(&mut command)?.success()?.stdout)
}

/// A DLL in place of NVRTC's, which is large: only tests of all components have it.
pub fn nvrtc(dir: &Path) -> Result<PathBuf> {
    let source = dir.join("nvrtc.c");
    let text = "__declspec(dllexport) int nvrtcVersion(int *major, int *minor)\n\
                { *major = 12; *minor = 9; return 0; }\n";
    fs::write(&source, text)?;
    let library = dir.join("nvrtc64_120_0.dll");
    let mut gcc = Command::new(compiler("c"));
    gcc.arg("-shared").arg(&source).arg("-o").arg(&library);
    succeed(&mut gcc)?;
    Ok(library)
}

/// Names of the functions and pointers to functions in a program.
fn symbols(program: &Path) -> Result<Vec<String>> {
    let lines = succeed(Command::new("x86_64-w64-mingw32-nm").arg(program))?.stdout;
    // Discarded functions stay in the table, without an address.
    Ok(lines
        .lines()
        .filter(|line| !line.contains(" U "))
        .filter_map(|line| line.rsplit(' ').next())
        .map(str::to_owned)
        .collect())
}

/// Names that a DLL exports.
fn exports(library: &Path) -> Result<Vec<String>> {
    let mut objdump = Command::new("x86_64-w64-mingw32-objdump");
    let text = succeed(objdump.arg("-p").arg(library))?.stdout;
    let (_, table) = text
        .split_once("[Ordinal/Name Pointer] Table")
        .ok_or("no exports")?;
    Ok(table
        .lines()
        .skip(1)
        .map_while(|line| line.trim().strip_prefix('['))
        .filter_map(|line| line.rsplit(' ').next())
        .map(str::to_owned)
        .collect())
}

/// Linkers of mingw-w64 export each global symbol of a DLL that names none, but not the stubs. A program with stubs of its
/// own can use the DLL. Each links the archive of one library only, whose run time has the adapters of all.
#[test]
#[ignore = "needs mingw-w64, clang, lld and wine: ./tests/run"]
fn libraries_export_no_stubs() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(
        dir.path(),
        &["--target", TRIPLE, "--header-version", "cuda=13"],
    )?;
    let library = dir.path().join("library.c");
    let malloc = "int cudaMalloc(void **, unsigned long long);\n";
    fs::write(
        &library,
        format!("{malloc}int answer(void) {{ void *p; return cudaMalloc(&p, 1); }}\n"),
    )?;
    let program = dir.path().join("program.c");
    fs::write(
        &program,
        format!(
            "{malloc}int printf(const char *, ...);\nint answer(void);\nint gpustub_is_available(const char *);\n\
             int main(void) {{ void *p; printf(\"%d %d %d\", cudaMalloc(&p, 1), answer(), gpustub_is_available(\"cudart\")); }}\n"
        ),
    )?;
    let lld: &[&str] = &["--target=x86_64-w64-mingw32", "-fuse-ld=lld"];
    let file = dir.path().join("library.dll");
    for (name, options) in [("clang-19", lld), (compiler("c"), &[])] {
        let mut linker = Command::new(name);
        linker.args(options).args(["-shared", "-Wl,--gc-sections"]);
        linker.arg(&library).arg("-o").arg(&file);
        linker
            .arg("-L")
            .arg(stubs.join("link"))
            .args(["-lcudart", "-Wl,--out-implib"]);
        let import_library = dir.path().join("library.dll.a");
        let ran = succeed(linker.arg(format!("-Wl,{}", import_library.display())))?;
        assert_eq!(ran.stderr, "", "{name}");
        assert_eq!(exports(&file)?, ["answer"], "{name}");
        let image = dir.path().join("program.exe");
        let mut gcc = Command::new(compiler("c"));
        gcc.arg(&program).arg(&import_library);
        gcc.arg("-L")
            .arg(stubs.join("link"))
            .args(["-lcudart", "-o"]);
        succeed(gcc.arg(&image))?;
        assert_eq!(output(&image, &[])?, "35 35 0", "{name}");
    }
    Ok(())
}

/// Unchanged projects of CUDA, in C and C++, with each form of the stubs.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_cmake_builds_programs_for_windows() -> Result<()> {
    for form in [&[][..], &["--sources-only"]] {
        let dir = scratch()?;
        let stubs = generate(dir.path(), &[form, &["--target", TRIPLE]].concat())?;
        let definition = format!(
            "-DCMAKE_PROJECT_TOP_LEVEL_INCLUDES={}",
            stubs.join("cmake/gpustub-cuda.cmake").display()
        );
        let project = repository().join("tests/exports/windows");
        let build = build(dir.path(), &project, &definition)?;
        let programs = [build.join("program.exe"), build.join("cxx.exe")];
        for (program, expected) in programs.iter().zip(WITHOUT) {
            assert_eq!(output(program, &[])?, expected, "{form:?}");
        }
        let library = nvrtc(dir.path())?;
        let printed = output(&programs[0], &[("GPUSTUB_NVRTC_PATH", &library)])?;
        assert!(printed.contains("nvrtcVersion 0 12.9"), "{printed}");
        let library = "wheels/cudart-windows/nvidia/cuda_runtime/bin/cudart64_12.dll";
        let library = component(library)?;
        let printed = output(&programs[1], &[("GPUSTUB_CUDART_PATH", &library)])?;
        assert_eq!(
            printed, "cuInit 100, cudaRuntimeGetVersion 0 12090, 1 bound\n",
            "{form:?}"
        );
        let names = symbols(&programs[0])?;
        let has = |name: &str| names.iter().any(|symbol| symbol == name);
        assert!(has("cuInit") && has("cudaGetDeviceCount"), "{form:?}");
        assert!(!has("cudaMalloc") && !has("cuMemAlloc_v2"), "{form:?}");
    }
    Ok(())
}

/// A program that links one archive of several, whose adapters are in all of them.
#[test]
#[ignore = "needs mingw-w64, clang, lld and wine: ./tests/run"]
fn programs_link_one_library_of_several() -> Result<()> {
    let dir = scratch()?;
    let names = ["cuda", "cudart", "nvrtc", "hip", "hipblas"];
    let options = [
        "--header-version=13",
        "--header-version=hip=6",
        "--target",
        TRIPLE,
    ];
    let stubs = export(dir.path(), "stubs", &[&names[..], &options].concat())?;
    let source = dir.path().join("program.c");
    for (library, call) in [
        ("cuda", "cuInit(0) == 100"),
        ("cudart", "cudaDeviceReset() == 35"),
        ("nvrtc", "nvrtcVersion(0, 0) == 11"),
    ] {
        let (function, _) = call.split_once('(').ok_or("no call")?;
        let text = format!("int {function}();\nint main(void) {{ return !({call}); }}\n");
        fs::write(&source, text)?;
        for compiler in [
            &["x86_64-w64-mingw32-gcc"][..],
            &["clang-19", "--target=x86_64-w64-mingw32", "-fuse-ld=lld"],
        ] {
            let program = dir.path().join("program.exe");
            let mut command = Command::new(compiler[0]);
            command.args(&compiler[1..]).arg(&source);
            command.arg("-L").arg(stubs.join("link"));
            command.args([&format!("-l{library}"), "-Wl,--gc-sections", "-o"]);
            succeed(command.arg(&program))?;
            let ran = output(&program, &[])?;
            assert_eq!(ran, "", "{library} {compiler:?}");
        }
    }
    Ok(())
}

/// Two directories in one project: of each library the stubs of the first one, and one run time.
#[test]
#[ignore = "needs CMake, mingw-w64 and wine: ./tests/run"]
fn cmake_links_two_directories_for_windows() -> Result<()> {
    let dir = scratch()?;
    let common = ["--header-version=13", "--target", TRIPLE];
    let first = export(dir.path(), "first", &[&["cuda"], &common[..]].concat())?;
    let others = ["cudart", "nvrtc", "cuda"];
    let second = export(dir.path(), "second", &[&others, &common[..]].concat())?;
    let program = repository().join("tests/exports/program.c");
    let [first, second] = [&first, &second].map(|stubs| {
        stubs
            .join("cmake/gpustub-targets.cmake")
            .display()
            .to_string()
    });
    for (first, second) in [(&first, &second), (&second, &first)] {
        fs::write(
            dir.path().join("CMakeLists.txt"),
            format!(
                "cmake_minimum_required(VERSION 3.18)\nproject(example C)\ninclude({first})\ninclude({second})\n\
                 add_executable(program {})\n\
                 target_link_libraries(program PRIVATE gpustub::cuda gpustub::cudart gpustub::nvrtc)\n",
                program.display()
            ),
        )?;
        let build = build(dir.path(), dir.path(), "-DUNUSED=")?;
        assert_eq!(output(&build.join("program.exe"), &[])?, WITHOUT[0]);
        let library = nvrtc(dir.path())?;
        let printed = output(
            &build.join("program.exe"),
            &[("GPUSTUB_NVRTC_PATH", &library)],
        )?;
        assert!(printed.contains("nvrtcVersion 0 12.9"), "{printed}");
    }
    Ok(())
}

/// The archives by their `-l` names, in each order; `--for` a program of Windows restricts them to its imports.
#[test]
#[ignore = "needs mingw-w64 and wine: ./tests/run"]
fn archives_for_windows_by_their_names() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &["--target", TRIPLE])?;
    for order in [
        ["-lcuda", "-lcudart", "-lnvrtc"],
        ["-lnvrtc", "-lcudart", "-lcuda"],
    ] {
        let program = dir.path().join("program.exe");
        let mut gcc = Command::new(compiler("c"));
        gcc.arg(repository().join("tests/exports/program.c"));
        gcc.args(["-include", "gpustub.h", "-I"])
            .arg(stubs.join("include"));
        gcc.arg("-L").arg(stubs.join("link")).args(order);
        succeed(gcc.arg("-o").arg(&program))?;
        assert_eq!(output(&program, &[])?, WITHOUT[0], "{order:?}");
    }

    // A program that imports from the DLL itself.
    let library = nvrtc(dir.path())?;
    let source = dir.path().join("importer.c");
    fs::write(
        &source,
        "int nvrtcVersion(int *, int *);\nint main(void) { int i, j; return nvrtcVersion(&i, &j); }\n",
    )?;
    let importer = dir.path().join("importer.exe");
    let mut gcc = Command::new(compiler("c"));
    gcc.arg(&source).arg(&library).arg("-o").arg(&importer);
    succeed(&mut gcc)?;
    let importer = importer.display().to_string();
    let restricted = export(
        dir.path(),
        "restricted",
        &["--for", &importer, "--target", TRIPLE],
    )?;
    let names = symbols(&restricted.join("link/libnvrtc.a"))?;
    let has = |name: &str| names.iter().any(|symbol| symbol == name);
    assert!(
        has("nvrtcVersion") && !has("nvrtcCompileProgram"),
        "{names:?}"
    );
    assert!(!restricted.join("link/libcudart.a").exists());
    Ok(())
}

#[test]
#[ignore = "needs Meson, mingw-w64 and wine: ./tests/run"]
fn meson_builds_a_program_for_windows() -> Result<()> {
    let dir = scratch()?;
    let stubs = generate(dir.path(), &["--sources-only", "--target", TRIPLE])?;
    let project = dir.path().join("project");
    fs::create_dir_all(project.join("subprojects"))?;
    let exports = repository().join("tests/exports");
    fs::copy(
        exports.join("meson/meson.build"),
        project.join("meson.build"),
    )?;
    fs::copy(exports.join("program.c"), project.join("program.c"))?;
    fs::rename(stubs, project.join("subprojects/gpustub"))?;
    let mut setup = Command::new("meson");
    setup
        .current_dir(&project)
        .args(["setup", "build", "--unity=on", "--cross-file"])
        .arg(exports.join("windows/meson.ini"))
        .env_remove("PKG_CONFIG_PATH");
    let reported = succeed(&mut setup)?;
    assert!(!reported.stdout.contains("WARNING"), "{}", reported.stdout);
    succeed(Command::new("ninja").arg("-C").arg(project.join("build")))?;
    assert_eq!(output(&project.join("build/program.exe"), &[])?, WITHOUT[0]);
    Ok(())
}
