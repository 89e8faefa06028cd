//! A library of a test, its stubs, and a program with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::Returns;
use gpustub_core::plan::Plan;
use gpustub_core::symbols::SymbolList;
use gpustub_core::target::Target;
use gpustub_image::{SymbolRequirements, read_library_symbols_file};
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::msvc;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{SOURCES, Stubs, plan_or_fail, trap_manifest, with_abi_table};
use gpustub_tests::wine::{self, compiler, compiler_libraries, run, windows_path, wine};
use gpustub_tests::wine_arm64;
use gpustub_tests::{Result, repository};
use tempfile::TempDir;

/// ABI of the objects of a test's stubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abi {
    /// mingw-w64 compiles them.
    Gnu,
    /// clang compiles them, as cl would.
    Msvc,
    /// zig compiles them, for ARM64.
    Arm64,
}

impl Abi {
    fn target(self) -> Target {
        match self {
            Self::Gnu => wine::target(),
            Self::Msvc => msvc::target(),
            Self::Arm64 => wine_arm64::target(),
        }
    }

    /// C or C++ compiler of the programs.
    fn compiler(self, language: &str) -> Result<PathBuf> {
        match self {
            Self::Gnu | Self::Msvc => Ok(compiler(language).into()),
            Self::Arm64 => wine_arm64::compiler(language),
        }
    }
}

/// Directory of a test's files.
pub struct Trial {
    directory: TempDir,
    abi: Abi,
    /// Of C and C++.
    compilers: [PathBuf; 2],
}

impl Trial {
    pub fn new() -> Result<Self> {
        Self::with(Abi::Gnu)
    }

    pub fn with(abi: Abi) -> Result<Self> {
        let directory = scratch()?;
        Ok(Self {
            directory,
            abi,
            compilers: [abi.compiler("c")?, abi.compiler("c++")?],
        })
    }

    pub fn dir(&self) -> &Path {
        self.directory.path()
    }

    /// Compiler command in the directory; `sources` are below `tests`.
    pub fn compile(&self, output: &str, sources: &[&str], flags: &[&str]) -> Command {
        let [c, cxx] = &self.compilers;
        let is_cxx = sources.iter().any(|source| source.ends_with(".cc"));
        let tests = repository().join("tests");
        let mut command = Command::new(if is_cxx { cxx } else { c });
        command
            .current_dir(self.dir())
            .args(["-O1", "-Wall", "-o", output]);
        // Windows finds no DLL of the compiler for a DLL that is loaded by its path. Exceptions pass between images
        // only with a common one, which the program has loaded.
        command.args((!is_cxx && self.abi != Abi::Arm64).then_some("-static-libgcc"));
        for directory in ["programs/windows", "traps"] {
            command.arg("-I").arg(tests.join(directory));
        }
        command.args(["-I", SOURCES]);
        command.args(sources.iter().map(|source| tests.join(source)));
        command.args(flags);
        command
    }

    /// Compiles a DLL.
    pub fn library(&self, output: &str, source: &str, flags: &[&str]) -> Result<PathBuf> {
        let mut command = self.compile(output, &[source], flags);
        succeed(command.arg("-shared"))?;
        Ok(self.dir().join(output))
    }

    /// Functions of a DLL, which return a status.
    pub fn functions(&self, library: &str) -> Result<SymbolList> {
        let target = self.abi.target();
        let options = SymbolRequirements {
            expect_machine: Some(&target.arch),
            require: &[],
        };
        let mut list = read_library_symbols_file(&self.dir().join(library), options)?;
        // zig exports functions of mingw-w64, too.
        list.symbols
            .retain(|symbol| !symbol.kind.is_data() && symbol.name.starts_with("trap_"));
        for function in &mut list.symbols {
            function.returns = Some(Returns::Status);
        }
        Ok(list)
    }

    /// The archive of stubs for `trap1.dll` with these functions, in the directory `package` (empty: this one). `abi` is
    /// an ABI table.
    pub fn trap_stubs(
        &self,
        package: &str,
        list: &SymbolList,
        abi: Option<&str>,
    ) -> Result<PathBuf> {
        let lists = [("trap.symbols", list.to_text())];
        let keys = abi.map_or("", |_| "header-version = \"1.0\"");
        let mut plan = plan_or_fail(&trap_manifest(keys), &lists, &self.abi.target())?;
        if let Some(abi) = abi {
            let table = repository().join("tests").join(abi);
            with_abi_table(&mut plan, &fs::read_to_string(table)?)?;
        }
        self.stubs_of(package, &plan)
    }

    /// As [`Self::trap_stubs`], from the text of a symbol list.
    pub fn trap_stubs_of_list(&self, package: &str, list: &str) -> Result<PathBuf> {
        let lists = [("trap.symbols", list.to_owned())];
        self.stubs_of(
            package,
            &plan_or_fail(&trap_manifest(""), &lists, &self.abi.target())?,
        )
    }

    /// The archive of stubs of a `GpuStub.toml`, in the directory `package`.
    pub fn stubs(&self, package: &str, manifest: &str) -> Result<PathBuf> {
        self.stubs_of(package, &plan_or_fail(manifest, &[], &self.abi.target())?)
    }

    /// The archive of stubs of a plan, in the directory `package`.
    pub fn stubs_of(&self, package: &str, plan: &Plan) -> Result<PathBuf> {
        let dir = self.dir().join(package);
        fs::create_dir_all(&dir)?;
        let stubs = match self.abi {
            Abi::Gnu => Stubs::write(&dir, plan, compiler("c"), &[])?,
            Abi::Msvc => {
                let compiler = msvc::clang_cl();
                Stubs::write(&dir, plan, &compiler.to_string_lossy(), &msvc::flags())?
            }
            Abi::Arm64 => Stubs::write(&dir, plan, wine_arm64::CLANG, &wine_arm64::headers())?,
        };
        stubs.archive()
    }

    /// Links an image with all members of the archives, as cargo does.
    pub fn link(
        &self,
        output: &str,
        sources: &[&str],
        archives: &[PathBuf],
        flags: &[&str],
    ) -> Result<PathBuf> {
        let mut command = self.compile(output, sources, &[]);
        command.arg("-Wl,--whole-archive").args(archives);
        command.arg("-Wl,--no-whole-archive,--gc-sections");
        if self.abi == Abi::Msvc {
            // The names of functions that touch the pages of a large frame.
            command.arg("-Wl,--defsym=__chkstk=___chkstk_ms");
        }
        succeed(command.args(flags))?;
        Ok(self.dir().join(output))
    }

    /// A command that runs `program.exe`.
    pub fn command(&self) -> Result<Command> {
        let program = self.dir().join("program.exe");
        if self.abi == Abi::Arm64 {
            return wine_arm64::wine(&program);
        }
        let mut command = wine(&program)?;
        command.env("WINEPATH", windows_path(&compiler_libraries()?));
        Ok(command)
    }

    /// Runs `program.exe` with these variables, of which `{dir}` is this directory.
    pub fn run(&self, environment: &[(&str, &str)]) -> Result<Ran> {
        let mut command = self.command()?;
        let dir = windows_path(self.dir());
        for (name, value) in environment {
            command.env(name, value.replace("{dir}", &dir));
        }
        let mut ran = run(&mut command)?;
        ran.stderr = wine_arm64::without_advice(&ran.stderr);
        ran.success()
    }
}

/// Fails unless a run printed exactly this.
pub fn expect(ran: &Ran, stdout: &str, stderr: &str) -> Result<()> {
    if ran.stdout == stdout && ran.stderr == stderr {
        return Ok(());
    }
    Err(ran.error(&format!("expected {stdout:?} and {stderr:?}")))
}

/// Fails unless the standard error has these texts in this order.
pub fn expect_errors(ran: &Ran, texts: &[&str]) -> Result<()> {
    let mut rest = ran.stderr.as_str();
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            return Err(ran.error(&format!("{text:?} is missing on standard error")));
        };
        rest = after;
    }
    Ok(())
}
