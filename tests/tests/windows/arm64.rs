//! ARM64 without an emulator: what clang assembles and lld links, read. `programs` and `images` run the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::target::Target;
use gpustub_tests::command::succeed;
use gpustub_tests::msvc;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Stubs, list_of, plan_or_fail, trap_manifest};
use gpustub_tests::wine_arm64::{CLANG, headers, target};
use gpustub_tests::{Result, repository};

/// The stubs of functions `trap00000` and so on, of which a program uses some.
struct Objects {
    dir: tempfile::TempDir,
    archive: PathBuf,
}

fn numbered(count: usize) -> impl Iterator<Item = String> {
    (0..count).map(|n| format!("trap{n:05}"))
}

fn tool(name: &str, words: &[&str], file: &Path) -> Result<String> {
    Ok(succeed(Command::new(name).args(words).arg(file))?.stdout)
}

impl Objects {
    fn new(functions: usize) -> Result<Self> {
        Self::of(&target(), CLANG, &headers(), functions)
    }

    /// For the ABI of MSVC.
    fn of_msvc(functions: usize) -> Result<Self> {
        let target = Target::from_triple("aarch64-pc-windows-msvc").ok_or("a triple")?;
        let compiler = msvc::clang_cl();
        Self::of(
            &target,
            &compiler.to_string_lossy(),
            &msvc::flags(),
            functions,
        )
    }

    fn of(target: &Target, compiler: &str, flags: &[String], functions: usize) -> Result<Self> {
        let dir = scratch()?;
        let lists = [("trap.symbols", list_of(numbered(functions)))];
        let plan = plan_or_fail(&trap_manifest(""), &lists, target)?;
        let stubs = Stubs::write(dir.path(), &plan, compiler, flags)?;
        let archive = stubs.archive()?;
        let objects = Self { dir, archive };
        objects.write_import_libraries()?;
        Ok(objects)
    }

    /// Import libraries of what the run time calls.
    fn write_import_libraries(&self) -> Result<()> {
        let runtime = self.archive.with_file_name("gpustub_runtime.o");
        let text = tool(
            "llvm-nm-19",
            &["--undefined-only", "--just-symbol-name"],
            &runtime,
        )?;
        let names = || text.lines().map(str::trim);
        let system: String = names()
            .filter_map(|name| Some(format!("{}\n", name.strip_prefix("__imp_")?)))
            .collect();
        let own = |name: &&str| {
            ["gpustub1_", "__imp_", "__ImageBase"]
                .iter()
                .any(|start| name.starts_with(start))
        };
        let library: String = names()
            .filter(|name| !own(name))
            .map(|name| format!("{name}\n"))
            .collect();
        for (dll, exports) in [("kernel32", system), ("ucrtbase", library)] {
            let definition = self.dir.path().join(format!("{dll}.def"));
            fs::write(
                &definition,
                format!("LIBRARY {dll}.dll\nEXPORTS\n{exports}"),
            )?;
            let mut dlltool = Command::new("llvm-dlltool-19");
            dlltool
                .current_dir(self.dir.path())
                .args(["-m", "arm64", "-d"])
                .arg(definition);
            succeed(dlltool.args(["-l", &format!("{dll}.lib")]))?;
        }
        Ok(())
    }

    /// Links an image that uses the first functions.
    fn link(&self, used: usize, options: &[&str]) -> Result<PathBuf> {
        let dir = self.dir.path();
        let uses: String = numbered(used)
            .map(|name| format!("USED({name})\n"))
            .collect();
        fs::write(dir.join("used.inc"), uses)?;
        let mut clang = Command::new(CLANG);
        clang.current_dir(dir).args([
            "--target=aarch64-w64-windows-gnu",
            "-O1",
            "-Wall",
            "-ffreestanding",
            "-I",
            ".",
            "-c",
            "-o",
            "main.o",
        ]);
        succeed(clang.arg(repository().join("tests/programs/windows/arm64.c")))?;
        let mut lld = Command::new("lld-link-19");
        lld.current_dir(dir)
            .args(options)
            .args(["/opt:ref", "/debug:symtab", "/out:image"]);
        lld.arg(format!("/wholearchive:{}", self.archive.display()));
        succeed(lld.args(["main.o", "kernel32.lib", "ucrtbase.lib"]))?;
        Ok(dir.join("image"))
    }
}

/// Instructions of a function of an image, with one space between words.
fn instructions(image: &Path, function: &str) -> Result<Vec<String>> {
    let only = format!("--disassemble-symbols={function}");
    let text = tool(
        "llvm-objdump-19",
        &["-d", "--no-show-raw-insn", &only],
        image,
    )?;
    let lines = text.lines().filter_map(|line| line.split_once(": "));
    let code = lines.filter(|(address, _)| u64::from_str_radix(address.trim(), 16).is_ok());
    Ok(code
        .map(|(_, words)| words.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect())
}

const PROGRAM: &[&str] = &["/entry:start", "/subsystem:console"];
const DLL: &[&str] = &["/dll", "/entry:start_dll"];

#[test]
#[ignore = "needs mingw-w64, clang and lld: ./tests/run"]
fn images_have_the_used_stubs_only() -> Result<()> {
    let abis = [Objects::new(8)?, Objects::of_msvc(8)?];
    for (objects, options) in abis.iter().flat_map(|abi| [(abi, PROGRAM), (abi, DLL)]) {
        let image = objects.link(2, options)?;
        let symbols = tool("llvm-nm-19", &["--just-symbol-name"], &image)?;
        let has = |name: &str| symbols.lines().any(|line| line == name);
        for name in ["trap00000", "trap00001", "gpustub1_slow", "gpustub1_exit"] {
            assert!(has(name), "{name}");
        }
        for name in ["trap00002", "__imp_trap00000", "gpustub_report"] {
            assert!(!has(name), "{name}");
        }
        let expected = [
            "adrp x16,",
            "ldr x17, [x16",
            "br x17",
            "adrp x15,",
            "add x15, x15,",
            "b 0x",
        ];
        let code = instructions(&image, "trap00001")?;
        let is_expected = |(line, expected): (&String, &&str)| line.starts_with(*expected);
        assert!(
            code.len() >= 6 && code.iter().zip(&expected).all(is_expected),
            "{code:?}"
        );
        let imports = tool(
            "llvm-readobj-19",
            &["--coff-imports", "--coff-tls-directory"],
            &image,
        )?;
        assert!(
            !imports.contains("trap1") && imports.contains("AddressOfCallBacks: 0x"),
            "{imports}"
        );
    }
    Ok(())
}

/// The unwinder reads these in the slow path, whose epilogues are as it knows them.
#[test]
#[ignore = "needs mingw-w64, clang and lld: ./tests/run"]
fn the_slow_path_has_unwind_data() -> Result<()> {
    let objects = Objects::new(1)?;
    let object = objects.archive.with_file_name("gpustub_stubs.o");
    let text = tool("llvm-readobj-19", &["--unwind"], &object)?;
    let functions: Vec<_> = text.split("RuntimeFunction {").collect();
    for (name, prologue, epilogues) in [
        (
            "gpustub1_slow",
            &["; mov fp, sp", "; stp x29, x30, [sp, #-256]!"][..],
            "EpilogueScopes: 3",
        ),
        (
            "gpustub1_observed",
            &[
                "; sub sp, #1984",
                "; str x19, [sp, #16]",
                "; stp x29, x30, [sp, #-32]!",
            ],
            "EpiloguePacked: Yes",
        ),
    ] {
        let function = functions
            .iter()
            .find(|text| text.contains(&format!("Function: {name}")));
        let function = function.ok_or(name)?;
        assert!(function.contains(epilogues), "{function}");
        for code in prologue {
            assert!(function.contains(code), "{name}: {code}: {function}");
        }
    }
    Ok(())
}

/// Bytes of all sections of an image.
fn size(image: &Path) -> Result<u64> {
    let text = tool("llvm-readobj-19", &["--sections"], image)?;
    let sizes = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("VirtualSize: 0x"));
    sizes.map(|size| Ok(u64::from_str_radix(size, 16)?)).sum()
}

#[test]
#[ignore = "needs mingw-w64, clang and lld: ./tests/run"]
fn bytes_per_stub() -> Result<()> {
    const FEW: usize = 256;
    const MANY: usize = 1280;
    let objects = Objects::new(MANY)?;
    let [few, many] =
        [FEW, MANY].map(|used| objects.link(used, PROGRAM).and_then(|image| size(&image)));
    // The program has the address of each function, with a base relocation of two bytes.
    let bytes = (many? - few?) as f64 / (MANY - FEW) as f64 - 10.0;
    // Trampoline and thunk 24, slot 16, number of the spec 2, name 10, base relocation 2.
    assert!((54.0..55.0).contains(&bytes), "{bytes}");
    Ok(())
}
