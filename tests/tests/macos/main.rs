//! Stubs for macOS: constant answers. No machine here runs programs of macOS: they are linked by lld, and their
//! instructions are read here and executed as programs of Linux (`answers.rs`).

mod answers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::directives::Directive;
use gpustub_core::library::Library;
use gpustub_engine::{Env, Output, Settings};
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::rustup::{HOST, rustc};
use gpustub_tests::scratch::scratch;

/// Triples, and the instructions of `cudaGetDeviceCount`: it zeroes what argument 0 points to and returns 35.
const TARGETS: [(&str, &[&str]); 2] = [
    (
        "x86_64-apple-darwin",
        &[
            "movq %rdi, %rax",
            "testq %rax, %rax",
            "je",
            "movl $0x0, (%rax)",
            "movl $0x23, %eax",
            "retq",
        ],
    ),
    (
        "aarch64-apple-darwin",
        &[
            "mov x9, x0",
            "cbz x9,",
            "str wzr, [x9]",
            "mov x0, #0x23",
            "ret",
        ],
    ),
];

const LIBRARIES: &str = "schema = 1
[stub.cudart]
header-version = \"12\"
[stub.cuda]
header-version = \"12\"
[stub.opencl]
";

/// A library may be asked for in each form that crates use.
const PROGRAM: &str = r#"
use std::ffi::{c_char, c_int};
use library as _;
#[link(name = "cudart", kind = "static")]
unsafe extern "C" { fn cudaGetDeviceCount(count: *mut c_int) -> c_int; }
#[link(name = "cuda")]
unsafe extern "C" {
    fn cuGetErrorName(code: c_int, name: *mut *const c_char) -> c_int;
    fn gpustub_load(library: *const c_char) -> c_int;
}
fn main() {
    let (mut count, mut name) = (-1, std::ptr::null());
    unsafe {
        println!("{} {}", cudaGetDeviceCount(&mut count), gpustub_load(c"cuda".as_ptr()));
        println!("{}", cuGetErrorName(2, &mut name));
    }
}
"#;

/// A build script's call for a package, with its directives as options of rustc.
struct Package {
    output: Output,
    options: Vec<String>,
}

fn build(name: &str, manifest: &str, triple: &str, dir: &Path, rustc: &Path) -> Result<Package> {
    let dir = dir.join(name);
    fs::create_dir_all(&dir)?;
    fs::write(dir.join("GpuStub.toml"), manifest)?;
    let (arch, _) = triple.split_once('-').ok_or("a triple")?;
    let (dir_text, rustc) = (dir.to_string_lossy(), rustc.to_string_lossy());
    let env = Env::from_iter([
        ("CARGO_MANIFEST_DIR", &*dir_text),
        ("CARGO_PKG_NAME", name),
        ("OUT_DIR", &*dir_text),
        ("TARGET", triple),
        ("HOST", HOST),
        ("CARGO_CFG_TARGET_ARCH", arch),
        ("CARGO_CFG_TARGET_OS", "macos"),
        ("CARGO_CFG_TARGET_ENV", ""),
        ("RUSTC", &*rustc),
        // No compiler and no archiver is needed.
        ("CC", "/nonexistent/cc"),
        ("AR", "/nonexistent/ar"),
    ]);
    let output = gpustub_engine::build(&Settings {
        env,
        ..Settings::default()
    })?;
    let mut options = Vec::new();
    for directive in &output.directives {
        match directive {
            Directive::LinkSearch(path) => options.push(format!("-Lnative={path}")),
            Directive::LinkLib(kind, name) => options.push(format!("-l{kind}={name}")),
            Directive::LinkArg(argument) => options.push(format!("-Clink-arg={argument}")),
            _ => {}
        }
    }
    Ok(Package { output, options })
}

/// Directory that stands for an SDK. What Rust's standard library needs of it is left to the loader.
fn sdk(dir: &Path) -> Result<PathBuf> {
    let libraries = dir.join("sdk/usr/lib");
    fs::create_dir_all(&libraries)?;
    for name in ["System", "c", "m", "iconv"] {
        let text = format!(
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [ x86_64-macos, arm64-macos ]\n\
             install-name: '/usr/lib/lib{name}.dylib'\nexports:\n  - targets: [ x86_64-macos, arm64-macos ]\n    \
             symbols: [ dyld_stub_binder, ___stub_of_lib{name} ]\n...\n"
        );
        fs::write(libraries.join(format!("lib{name}.tbd")), text)?;
    }
    Ok(dir.join("sdk"))
}

/// Links a Rust program: the stubs of `library` come in a crate, those of `own` from the build script of the program.
fn link(
    rustc: &Path,
    triple: &str,
    dir: &Path,
    library: &Package,
    own: &Package,
) -> Result<PathBuf> {
    let program = dir.join(format!("{triple}.program"));
    fs::write(dir.join("library.rs"), "")?;
    fs::write(dir.join("main.rs"), PROGRAM)?;
    let compile = |words: &[&str], package: &Package| {
        let mut command = Command::new(rustc);
        command
            .current_dir(dir)
            .args(["--edition=2024", "--target", triple]);
        command
            .args(words)
            .args(&package.options)
            .env("SDKROOT", sdk(dir)?);
        succeed(&mut command)
    };
    compile(&["--crate-type=rlib", "library.rs"], library)?;
    // Cargo passes the directories of dependencies on.
    let mut options = vec![library.options[0].as_str()];
    options.extend([
        "-Clinker=ld64.lld-19",
        "-Clinker-flavor=ld64.lld",
        "-Cstrip=none",
        "-Clink-arg=-undefined",
        "-Clink-arg=dynamic_lookup",
        "--extern=library=liblibrary.rlib",
        "main.rs",
        "-o",
    ]);
    compile(&[&options[..], &[&program.to_string_lossy()]].concat(), own)?;
    Ok(program)
}

fn tool(name: &str, words: &[&str], file: &Path) -> Result<String> {
    Ok(succeed(Command::new(name).args(words).arg(file))?.stdout)
}

/// Instructions of a function, with one space between words.
fn instructions(program: &Path, function: &str) -> Result<Vec<String>> {
    let only = format!("--disassemble-symbols=_{function}");
    let text = tool(
        "llvm-objdump-19",
        &["-d", "--no-show-raw-insn", &only],
        program,
    )?;
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let code = lines.filter(|(address, _)| u64::from_str_radix(address.trim(), 16).is_ok());
    Ok(code
        .map(|(_, instruction)| instruction.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect())
}

/// The linker keeps one copy of each used function of two packages, and nothing else.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_programs_contain_the_used_answers_only() -> Result<()> {
    for (triple, expected) in TARGETS {
        let dir = scratch()?;
        let dir = dir.path();
        let rustc = rustc(&TARGETS.map(|(triple, _)| triple), dir)?;
        let first = build("first", LIBRARIES, triple, dir, &rustc)?;
        let cuda = "schema = 1\n[stub.cuda]\nheader-version = \"12\"\n";
        let second = build("second", cuda, triple, dir, &rustc)?;
        assert_eq!(first.output.stubs, ["cuda", "cudart"], "{triple}");
        let program = link(&rustc, triple, dir, &first, &second)?;

        let symbols = tool("llvm-nm-19", &["-P"], &program)?;
        let kind = |name: &str| {
            let mut lines = symbols.lines().map(|line| line.split(' '));
            lines.find_map(|mut words| (words.next()? == name).then(|| words.next())?)
        };
        for name in ["_cudaGetDeviceCount", "_cuGetErrorName", "_gpustub_load"] {
            assert_eq!(kind(name), Some("t"), "{triple}: {name}");
        }
        for name in [
            "_cudaMalloc",
            "_cuInit",
            "_gpustub_reason",
            "_gpustub1_stand_in",
            "_dlopen",
        ] {
            assert_eq!(kind(name), None, "{triple}: {name}");
        }
        for library in ["cuda", "cudart"] {
            for symbol in Library::builtin(library)
                .ok_or("a library")?
                .symbols
                .functions()
            {
                let kind = kind(&format!("_{}", symbol.name));
                assert!(
                    matches!(kind, None | Some("t")),
                    "{triple}: {}",
                    symbol.name
                );
            }
        }
        let rows = symbols.matches("_gpustub1_errors_cuda_").count();
        assert_eq!(rows, 1, "{triple}: {symbols}");
        let libraries = tool("llvm-objdump-19", &["--macho", "--dylibs-used"], &program)?;
        assert!(!libraries.contains("cuda"), "{libraries}");

        let disassembly = instructions(&program, "cudaGetDeviceCount")?;
        let matches = |(line, expected): (&String, &&str)| line.starts_with(*expected);
        assert!(
            disassembly.len() >= expected.len() && disassembly.iter().zip(expected).all(matches),
            "{triple}: {disassembly:?}"
        );
    }
    Ok(())
}

/// Linkers that select members read the index of the archives.
#[test]
#[ignore = "downloads standard libraries: tests/run --all"]
fn heavy_archives_have_an_index() -> Result<()> {
    let source = "int cuInit(unsigned); int start(void) { return cuInit(0); }\n";
    for (triple, _) in TARGETS {
        let dir = scratch()?;
        let dir = dir.path();
        let rustc = rustc(&TARGETS.map(|(triple, _)| triple), dir)?;
        let package = build("first", LIBRARIES, triple, dir, &rustc)?;
        let archive = package.output.stub_library.ok_or("an archive")?;
        let index = tool("llvm-nm-19", &["--print-armap"], &archive)?;
        for name in ["_cuInit", "_cudaMalloc", "_gpustub_load"] {
            let line = format!("{name} in gpustub_stubs.o\n");
            assert!(index.contains(&line), "{triple}: {name}");
        }
        fs::write(dir.join("main.c"), source)?;
        let (arch, _) = triple.split_once('-').ok_or("a triple")?;
        let arch = arch.replace("aarch64", "arm64");
        let target = format!("--target={arch}-apple-macos11");
        let clang = ["-c", "main.c", "-o", "main.o", &target];
        succeed(Command::new("clang-19").current_dir(dir).args(clang))?;
        let mut lld = Command::new("ld64.lld-19");
        lld.args(["-arch", &arch, "-platform_version", "macos", "11.0", "11.0"])
            .args(["-dead_strip", "-e", "_start", "-lSystem", "-syslibroot"])
            .arg(sdk(dir)?)
            .arg(dir.join("main.o"))
            .arg(&archive)
            .arg(archive.with_file_name("libcuda.a"))
            .arg("-o")
            .arg(dir.join("program"));
        succeed(&mut lld)?;
        let symbols = tool("llvm-nm-19", &[], &dir.join("program"))?;
        assert!(symbols.contains(" t _cuInit\n"), "{triple}: {symbols}");
        assert!(!symbols.contains("_cudaMalloc"), "{triple}: {symbols}");
    }
    Ok(())
}
