//! From `GpuStub.toml` to a stub library, as in a build without cargo: core plans and renders,
//! gpustub-build's tool chain compiles.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::abi_table::AbiTable;
use gpustub_core::diag::{Diagnostic, has_errors};
use gpustub_core::library::{Library, Returns, VersionEncoding, VersionQuery};
use gpustub_core::manifest::Manifest;
use gpustub_core::plan::{Inputs, Plan};
use gpustub_core::planner::plan;
use gpustub_core::sources::{SourceSet, render, render_for_c};
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::target::Target;
use gpustub_engine::toolchain::shared::SharedStubs;
use gpustub_engine::toolchain::{Index, REQUIRED, Toolchain};

use crate::rustup::HOST;
use crate::{Result, components};

/// Machine that tests compile and run programs for. The first runs the tests; the others need a cross compiler,
/// and an emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Machine {
    /// The machine that runs the tests.
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit Arm.
    Aarch64,
    /// RISC-V with 64 bits.
    Riscv64,
    /// 64-bit POWER, little endian.
    Powerpc64le,
    /// z/Architecture, big endian.
    S390x,
    /// x86 with 32 bits.
    I686,
    /// 32-bit Arm, hard-float. Debian's compiler makes Thumb code.
    Arm,
    /// The machine that runs the tests, with another C library.
    Musl,
    /// LoongArch with 64 bits: clang, with packages of a newer Debian.
    Loongarch64,
}

impl Machine {
    /// All machines.
    pub const ALL: &[Self] = &[
        Self::X86_64,
        Self::Aarch64,
        Self::Riscv64,
        Self::Powerpc64le,
        Self::S390x,
        Self::I686,
        Self::Arm,
        Self::Musl,
        Self::Loongarch64,
    ];

    /// Name of the architecture, as in `@machine` of symbol lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 | Self::Musl => "x86_64",
            Self::Aarch64 => "aarch64",
            Self::Riscv64 => "riscv64",
            Self::Powerpc64le => "powerpc64le",
            Self::S390x => "s390x",
            Self::I686 => "x86",
            Self::Arm => "arm",
            Self::Loongarch64 => "loongarch64",
        }
    }

    /// Name in lists of tests.
    pub fn label(self) -> &'static str {
        match self {
            Self::Musl => "musl",
            _ => self.name(),
        }
    }

    /// Compilation target.
    pub fn target(self) -> Target {
        let triple = match self {
            Self::X86_64 => HOST,
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
            Self::Riscv64 => "riscv64gc-unknown-linux-gnu",
            Self::Powerpc64le => "powerpc64le-unknown-linux-gnu",
            Self::S390x => "s390x-unknown-linux-gnu",
            Self::I686 => "i686-unknown-linux-gnu",
            Self::Arm => "armv7-unknown-linux-gnueabihf",
            Self::Musl => "x86_64-alpine-linux-musl",
            Self::Loongarch64 => "loongarch64-unknown-linux-gnu",
        };
        Target::from_triple(triple).expect("a triple of rustc")
    }

    /// Triple of the GNU tools; `None`: the machine that runs the tests.
    pub fn gnu_triple(self) -> Option<&'static str> {
        match self {
            Self::X86_64 | Self::Musl => None,
            Self::Aarch64 => Some("aarch64-linux-gnu"),
            Self::Riscv64 => Some("riscv64-linux-gnu"),
            Self::Powerpc64le => Some("powerpc64le-linux-gnu"),
            Self::S390x => Some("s390x-linux-gnu"),
            Self::I686 => Some("i686-linux-gnu"),
            Self::Arm => Some("arm-linux-gnueabihf"),
            Self::Loongarch64 => Some("loongarch64-linux-gnu"),
        }
    }

    /// Tool of the GNU compilers and binutils.
    pub fn tool(self, name: &str) -> String {
        self.gnu_triple()
            .map_or_else(|| name.to_owned(), |triple| format!("{triple}-{name}"))
    }

    /// C (`cc`) or C++ (`c++`) compiler.
    pub fn compiler(self, language: &str) -> String {
        if self == Self::Musl {
            return "musl-gcc".to_owned(); // Debian has no C++ library for it
        }
        if self == Self::Loongarch64 {
            let name = if language == "c++" { "c++" } else { "cc" };
            let script = crate::repository().join(format!("tests/programs/loongarch64-{name}"));
            return script.to_string_lossy().into_owned();
        }
        match (self.gnu_triple(), language) {
            (None, "c++") => "c++".to_owned(),
            (None, _) => "cc".to_owned(),
            (Some(_), "c++") => self.tool("g++"),
            (Some(_), _) => self.tool("gcc"),
        }
    }

    /// Options that link a program with the cross compiler's C library. Kernels for x86-64 run 32-bit programs,
    /// for which the system has no libraries.
    pub fn link_flags(self) -> &'static [&'static str] {
        match self {
            Self::I686 => &[
                "-Wl,--dynamic-linker=/usr/i686-linux-gnu/lib/ld-linux.so.2",
                "-Wl,-rpath,/usr/i686-linux-gnu/lib",
            ],
            _ => &[],
        }
    }

    /// Command that runs a program of this machine.
    pub fn run(self, program: &Path) -> Command {
        let words = self.emulator();
        let Some((emulator, arguments)) = words.split_first() else {
            return Command::new(program);
        };
        let mut command = Command::new(emulator);
        command.args(arguments).arg(program);
        command
    }

    /// First words of a command that runs a program of this machine.
    pub fn emulator(self) -> Vec<String> {
        let Some(triple) = self.gnu_triple() else {
            return Vec::new();
        };
        let machine = match self {
            Self::I686 => return Vec::new(),
            Self::Loongarch64 => {
                // The emulator of Debian 12 lacks vector instructions, which this C library has.
                let [qemu, root] = [
                    "qemu-10/usr/bin/qemu-loongarch64",
                    "loong64/usr/loongarch64-linux-gnu",
                ]
                .map(|path| {
                    let path = components::component(path).unwrap_or_else(|_| path.into());
                    path.to_string_lossy().into_owned()
                });
                return vec![qemu, "-L".to_owned(), root];
            }
            Self::Powerpc64le => "ppc64le",
            _ => self.name(),
        };
        vec![
            format!("qemu-{machine}"),
            "-L".to_owned(),
            format!("/usr/{triple}"),
        ]
    }
}

/// Plans the stubs of a `GpuStub.toml`; `lists` are the symbol lists that it names. Returns all
/// diagnostics, whether errors or not.
pub fn plan_of(
    manifest: &str,
    lists: &[(&str, String)],
    target: &Target,
) -> (Plan, Vec<Diagnostic>) {
    let (manifest, mut diagnostics) = Manifest::parse("GpuStub.toml", manifest);
    let inputs = Inputs {
        symbol_files: lists
            .iter()
            .map(|(path, text)| ((*path).to_owned(), text.clone()))
            .collect(),
        ..Inputs::default()
    };
    let (plan, plan_diagnostics) = plan(&manifest, target, &inputs);
    diagnostics.extend(plan_diagnostics);
    (plan, diagnostics)
}

/// As [`plan_of`]; an error fails the test.
pub fn plan_or_fail(manifest: &str, lists: &[(&str, String)], target: &Target) -> Result<Plan> {
    let (plan, diagnostics) = plan_of(manifest, lists, target);
    if has_errors(&diagnostics) {
        let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
        return Err(lines.join("\n").into());
    }
    Ok(plan)
}

/// Plan of these functions of a shipped library, for a program with headers of a version.
pub fn plan_shipped(library: &Library, header: &str, has: impl Fn(&str) -> bool) -> Result<Plan> {
    let mut list = library.symbols.clone();
    list.symbols.retain(|symbol| has(&symbol.name));
    let id = &library.id;
    let manifest =
        format!("schema = 1\n[stub.{id}]\nsymbols = \"symbols\"\nheader-version = \"{header}\"\n");
    let lists = [("symbols", list.to_text())];
    plan_or_fail(&manifest, &lists, &Machine::X86_64.target())
}

/// A `GpuStub.toml` for one user-defined library, `libtrap.so.1` or `trap1.dll`, with further keys.
pub fn trap_manifest(keys: &str) -> String {
    format!(
        r#"
schema = 1
[stub.trap]
load-names = {{ linux = ["libtrap.so.1"], windows = ["trap1.dll"] }}
symbols = "trap.symbols"
search-dirs = ["$ORIGIN"]
fallback = {{ status = 77, string = "trap is not installed" }}
{keys}
"#
    )
}

/// Gives the only library of a plan this ABI table, and a version query of `trap_version`.
pub fn with_abi_table(plan: &mut Plan, text: &str) -> Result<()> {
    let (table, diagnostics) = AbiTable::parse("trap.abi", text);
    if has_errors(&diagnostics) {
        return Err(format!("{diagnostics:?}").into());
    }
    let library = &mut plan.libraries[0];
    library.library.to_mut().version_query = Some(VersionQuery {
        function: "trap_version".to_owned(),
        encoding: VersionEncoding::Cuda,
    });
    for function in library.functions.to_mut() {
        if !table.contains(&function.name) {
            continue;
        }
        let mut spec = library.specs[usize::from(function.spec)].clone();
        spec.abi_name = Some(function.name.clone());
        function.spec = u16::try_from(library.specs.len())?;
        library.specs.to_mut().push(spec);
    }
    library.library.to_mut().abi = table;
    Ok(())
}

/// Symbol list of functions that return a status.
pub fn list_of<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> String {
    let mut list = SymbolList::default();
    for name in names {
        list.symbols.push(Symbol {
            name: name.as_ref().to_owned(),
            returns: Some(Returns::Status),
            ..Symbol::default()
        });
    }
    list.normalise();
    list.to_text()
}

/// Plan of one user-defined library with these functions.
pub fn plan_functions<S: AsRef<str>>(
    names: impl IntoIterator<Item = S>,
    machine: Machine,
) -> Result<Plan> {
    let lists = [("trap.symbols", list_of(names))];
    plan_or_fail(&trap_manifest(""), &lists, &machine.target())
}

/// Directory of the sources, in a directory of [`scratch`](crate::scratch::scratch): as in cargo's OUT_DIR, so that all tests
/// share the object of the run time.
pub const SOURCES: &str = "build/stubs/out/gpustub";

/// Sources in a directory and the tools to compile them.
#[derive(Debug)]
pub struct Stubs {
    /// Directory of the sources and of `gpustub.h`.
    pub sources: PathBuf,
    tools: Toolchain,
}

impl Stubs {
    /// Writes the sources of `plan` for C projects below `dir`. `compiler` and `flags` compile them.
    pub fn write(dir: &Path, plan: &Plan, compiler: &str, flags: &[String]) -> Result<Self> {
        Self::write_sources(dir, plan, &render_for_c(plan), compiler, flags)
    }

    /// As [`Self::write`], for the sources of a cargo build.
    pub fn write_for_cargo(dir: &Path, plan: &Plan) -> Result<Self> {
        Self::write_sources(dir, plan, &render(plan), "cc", &[])
    }

    fn write_sources(
        dir: &Path,
        plan: &Plan,
        files: &SourceSet,
        compiler: &str,
        flags: &[String],
    ) -> Result<Self> {
        let sources = dir.join(SOURCES);
        fs::create_dir_all(&sources).map_err(|e| format!("{}: {e}", sources.display()))?;
        gpustub_engine::write_sources(&sources, files)?;
        let compiler = wrapper(dir, compiler, flags)?;
        let tools = Toolchain::find(&plan.target, HOST, dir, Some(&compiler), None)?;
        Ok(Self { sources, tools })
    }

    /// Adds the adapters in C of the library `trap`, if `directory` has any, and the files that they include.
    pub fn add_adapters(&self, directory: &Path) -> Result<()> {
        for file in ["adapters_trap.c", "layouts.h"] {
            let source = directory.join(file);
            if source.exists() {
                fs::copy(&source, self.sources.join(file))
                    .map_err(|e| format!("{}: {e}", source.display()))?;
            }
        }
        if directory.join("adapters_trap.c").exists() {
            let header = crate::repository().join("templates/adapters/words.h");
            fs::copy(header, self.sources.join("adapters_words.h"))?;
        }
        Ok(())
    }

    /// Compiles the archive.
    pub fn archive(&self) -> Result<PathBuf> {
        let library = self.sources.join("libgpustub_stubs.a");
        self.tools
            .static_library(&self.sources, &library, Index::Write)?;
        Ok(library)
    }

    /// Compiles the shared library of a package, beside the program.
    pub fn shared(&self, dir: &Path, package: &str) -> Result<SharedStubs> {
        let library = dir.join(format!("libgpustub_{package}.so"));
        Ok(self.tools.shared_library(&self.sources, &library)?)
    }
}

/// Compiler that adds flags where a user's `CFLAGS` are: after the defaults, before the flags that gpustub requires.
fn wrapper(dir: &Path, compiler: &str, flags: &[String]) -> Result<PathBuf> {
    if flags.is_empty() {
        return Ok(compiler.into());
    }
    let name = Path::new(compiler).file_name().unwrap_or_default();
    let path = dir.join(format!("{}-with-flags", name.display()));
    let (flags, required) = (flags.join(" "), REQUIRED[0]);
    let script = format!(
        "#!/bin/sh\ncase \" $* \" in *' {required} '*) ;; *) exec {compiler} {flags} \"$@\" ;; esac\n\
         for word; do\n    shift\n    [ \"$word\" != {required} ] || set -- \"$@\" {flags}\n    \
         set -- \"$@\" \"$word\"\ndone\nexec {compiler} \"$@\"\n"
    );
    fs::write(&path, script)
        .and_then(|()| fs::set_permissions(&path, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}
