//! The C compiler and archiver: generated sources in, an archive or a shared library out.
//!
//! Usable outside of build scripts as well:
//!
//! ```no_run
//! use gpustub_engine::toolchain::{Index, Toolchain};
//! # use std::path::{Path, PathBuf};
//! # fn f(sources: &gpustub_core::sources::SourceSet) -> Result<(), gpustub_engine::Error> {
//! let triple = "aarch64-unknown-linux-gnu";
//! let target = gpustub_core::target::Target::from_triple(triple).unwrap();
//! let dir = Path::new("stubs");
//! gpustub_engine::write_sources(dir, sources)?;
//! let tools = Toolchain::find(&target, "x86_64-unknown-linux-gnu", dir, None, None)?;
//! tools.static_library(dir, Path::new("stubs/libgpustub_stubs.a"), Index::Write)?;
//! # Ok(()) }
//! ```
//!
//! The same sources and compiler give the same bytes in any directory and for any user: the
//! compiler runs inside the directory with relative names, and the archiver omits times and owners.
//! `cc` therefore only finds the tools: its own object names contain a hash of the absolute path.

pub mod assembler;
mod coff_archive;
mod dll;
mod finder;
pub mod help;
#[cfg(feature = "device-link")]
mod linker;
mod macos;
mod msvc;
mod object_store;
mod objects;
pub mod shared;
mod tool;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpustub_core::diag::MISSING_COMPILER;
use gpustub_core::target::Target;
use gpustub_core::text::join;

use crate::error::Error;
use crate::files;
use finder::{finder, no_tool, other_compiler};
#[cfg(feature = "device-link")]
pub(crate) use linker::Linker;
use msvc::Family;
use tool::{Tool, absolute, tool_error, underscores};

/// A C compiler and an archiver for one target.
#[derive(Debug)]
pub struct Toolchain {
    compiler: Tool,
    family: Family,
    archiver: Tool,
    target: Target,
    cross: bool,
    /// The assembler for Windows, faster than GNU's, and for macOS.
    rustc: Option<OsString>,
}

/// Whether an archive gets an index of its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Index {
    /// For linkers that select members by undefined symbols.
    Write,
    /// For linkers that link the whole archive, and for rustc, which writes its own: the index of a
    /// large archive takes ten times as long as the rest.
    Omit,
}

/// Flags that override `CFLAGS`, because the code relies on them: position-independent code for any
/// image, no exported names, sections that the linker can drop one by one, frames that can be
/// unwound, and machine code rather than some compiler's intermediate form. `_GNU_SOURCE` is for
/// headers that `-include` puts in front of the code.
pub const REQUIRED: &[&str] = &[
    "-std=gnu11",
    "-D_GNU_SOURCE",
    "-D_FILE_OFFSET_BITS=64",
    "-fPIC",
    "-fvisibility=hidden",
    "-ffunction-sections",
    "-fdata-sections",
    "-fasynchronous-unwind-tables",
    "-fno-lto",
];

/// Objects of the archive, in its order, and their sources. The stubs come first: linkers name
/// their first symbol when there are two archives.
pub(crate) const OBJECTS: [&str; 4] = [
    "gpustub_stubs.o",
    "gpustub_runtime.o",
    "gpustub_libraries.o",
    "gpustub_adapters.o",
];

/// A complete archive without members: the format's magic (ar(5)).
const EMPTY_ARCHIVE: &[u8] = b"!<arch>\n";

/// Environment variables that select the tools and their flags, by the rules of the `cc` crate: for
/// a target, cross or native, and for all.
pub fn variables(triple: &str, host: &str) -> Vec<String> {
    let mut names = tool_variables(&["CC", "CFLAGS", "AR", "ARFLAGS"], triple, host);
    for name in [
        "CRATE_CC_NO_DEFAULTS",
        "CC_SHELL_ESCAPED_FLAGS",
        "CC_KNOWN_WRAPPER_CUSTOM",
    ] {
        names.push(name.to_owned());
    }
    if triple.ends_with("-msvc") {
        names.extend(msvc::VARIABLES.map(str::to_owned));
    }
    names
}

/// Variables that select only the given tools.
pub(crate) fn tool_variables(tools: &[&str], triple: &str, host: &str) -> Vec<String> {
    let kind = if triple == host { "HOST" } else { "TARGET" };
    let underscores = underscores(triple);
    let mut names = Vec::new();
    for tool in tools {
        names.push(format!("{tool}_{triple}"));
        names.push(format!("{tool}_{underscores}"));
        names.push(format!("{kind}_{tool}"));
        names.push((*tool).to_owned());
    }
    names
}

/// Option that protects objects against diverted jumps, for compilers that have it. Linking one
/// object without these markings disables the protection of the whole program (see the notes at the
/// end of each `asm/<arch>.S`).
pub fn protection(target: &Target) -> Option<&'static str> {
    match target.arch.as_str() {
        _ if target.os == "windows" => None,
        "x86_64" | "x86" => Some("-fcf-protection=full"),
        "aarch64" => Some("-mbranch-protection=standard"),
        _ => None,
    }
}

impl Toolchain {
    /// Finds the tools for `target` as the `cc` crate does, or uses the given ones. `host` is the
    /// triple of this machine; a temporary file may be written to `scratch`.
    pub fn find(
        target: &Target,
        host: &str,
        scratch: &Path,
        compiler: Option<&Path>,
        archiver: Option<&Path>,
    ) -> Result<Self, Error> {
        let mut build = finder(target, host, scratch);
        compiler.map(|program| build.compiler(program));
        archiver.map(|program| build.archiver(program));
        let (compiler, family) = match target.os.as_str() {
            // No C code is compiled: a build on another system needs no compiler for macOS.
            "macos" => (Command::new("cc"), Family::Gnu),
            _ => {
                let compiler = build.try_get_compiler().map_err(|e| no_tool(target, &e))?;
                if target.env == "msvc" && compiler.is_like_gnu() {
                    // The `cc` crate also takes a program that does not run for GCC.
                    let mut command = compiler.to_command();
                    command
                        .arg("--version")
                        .output()
                        .map_err(|e| missing_compiler(target, host, command.get_program(), &e))?;
                    let reason = format!("is GCC, which makes no objects for {}", target.triple);
                    return Err(other_compiler(target, compiler.path(), &reason));
                }
                (compiler.to_command(), Family::of(&compiler, target))
            }
        };
        let archiver = match target.env.as_str() {
            // coff_archive.rs
            "msvc" => Command::new("lib"),
            _ => build.try_get_archiver().map_err(|e| no_tool(target, &e))?,
        };
        Ok(Self {
            compiler: Tool::new(&compiler)?,
            family,
            archiver: Tool::new(&archiver)?,
            target: target.clone(),
            cross: target.triple != host,
            rustc: None,
        })
    }

    /// Uses this rustc (`RUSTC` of build scripts) as the assembler for Windows, instead of the C compiler.
    pub fn with_rustc(mut self, rustc: OsString) -> Self {
        self.rustc = Some(rustc);
        self
    }

    /// Compiles for size instead of without optimisation, unless `CFLAGS` has a level: half of the bytes of the run
    /// time, in three times the time. Not for Windows.
    pub fn optimised(mut self) -> Self {
        if self.family == Family::Gnu && self.target.os != "windows" {
            self.compiler.replace_arg("-O0", "-Os");
        }
        self
    }

    /// Compiles the sources in `dir` and puts the objects into the archive `library`.
    pub fn static_library(&self, dir: &Path, library: &Path, index: Index) -> Result<(), Error> {
        if self.target.os == "macos" {
            return self.constant_library(dir, library);
        }
        let defines = self.defines();
        self.objects(dir, defines)?;
        self.archive(dir, &OBJECTS.map(PathBuf::from), library, index)
    }

    /// Bytes of an archive without functions, for the names of libraries. `dir` has the sources.
    pub fn stand_in(&self, dir: &Path) -> Result<Vec<u8>, Error> {
        match (self.target.os.as_str(), self.target.env.as_str()) {
            ("macos", _) => self.assembled_stand_in(dir),
            (_, "msvc") => Ok(coff_archive::stand_in(self.target.arch.as_str())),
            _ => Ok(EMPTY_ARCHIVE.to_vec()),
        }
    }

    fn defines(&self) -> &'static [&'static str] {
        // A static glibc has no symbols at run time; without one, no reference may name glibc's newest.
        let links_loader = self.target.crt_static && self.target.env == "gnu";
        if links_loader {
            &["-DGPUSTUB_LINK_LOADER=1"]
        } else {
            &[]
        }
    }

    /// Tools and options of [`static_library`](Self::static_library), in one line.
    #[cfg(feature = "device-link")]
    pub(crate) fn command_line(&self, dir: &Path) -> String {
        let mut compiler = self.compiler.command(dir);
        self.add_flags(&mut compiler, &self.optional_flags(dir), self.defines());
        let archiver = self.archiver.command(dir);
        let lines = [&compiler, &archiver].map(crate::fingerprint::command_line);
        join(&lines, " ")
    }

    /// Puts objects, named relative to `dir` or absolute, into the archive `library`.
    pub fn archive(
        &self,
        dir: &Path,
        objects: &[PathBuf],
        library: &Path,
        index: Index,
    ) -> Result<(), Error> {
        let new = absolute(&files::sibling(library))?;
        if self.target.env == "msvc" {
            coff_archive::write(dir, objects, &new)?;
            return files::rename(&new, library);
        }
        // D omits times and owners; archivers without the letter support the variable.
        let (deterministic, plain) = match index {
            Index::Write => ("cqsD", "cqs"),
            Index::Omit => ("cqSD", "cqS"),
        };
        let (mut command, mut output) = self.run_archiver(dir, &new, deterministic, objects)?;
        if !output.status.success() {
            (command, output) = self.run_archiver(dir, &new, plain, objects)?;
        }
        if !output.status.success() {
            files::remove(&new)?;
            return Err(tool_error("the archiver failed", &command, &output));
        }
        files::rename(&new, library)
    }

    fn run_archiver(
        &self,
        dir: &Path,
        new: &Path,
        operation: &str,
        objects: &[PathBuf],
    ) -> Result<(Command, Output), Error> {
        files::remove(new)?;
        let mut command = self.archiver.command(dir);
        command.env("ZERO_AR_DATE", "1").arg(operation).arg(new);
        command.args(objects);
        let output = command.output().map_err(|e| self.no_archiver(&e))?;
        Ok((command, output))
    }

    /// [`REQUIRED`], or what takes their place.
    fn required_flags(&self) -> Vec<&'static str> {
        if self.family != Family::Gnu {
            return self.family.required_flags();
        }
        let mut flags = REQUIRED.to_vec();
        // clang refuses -fPIC for MSVC's ABI, where all code is position-independent.
        flags.retain(|flag| self.target.env != "msvc" || *flag != "-fPIC");
        flags
    }

    /// Flags that not every compiler knows.
    fn optional_flags(&self, dir: &Path) -> Vec<OsString> {
        if self.family != Family::Gnu {
            return Vec::new();
        }
        let mut prefix_map = OsString::from("-ffile-prefix-map="); // for those who put -g into CFLAGS
        prefix_map.push(dir);
        prefix_map.push("=gpustub");
        // `zig cc` without a level of optimisation sanitizes, and only its own linker has the functions for that.
        let no_sanitizer = "-fno-sanitize=undefined".into();
        // The assembler reads while the compiler writes: a tenth of the time, and no temporary files.
        let mut flags = vec![prefix_map, no_sanitizer, "-pipe".into()];
        flags.extend(protection(&self.target).map(OsString::from));
        flags
    }

    fn no_compiler(&self, error: &io::Error) -> Error {
        let host = if self.cross {
            ""
        } else {
            self.target.triple.as_str()
        };
        missing_compiler(&self.target, host, &self.compiler.program, error)
    }

    fn no_archiver(&self, error: &io::Error) -> Error {
        let program = self.archiver.program.to_string_lossy();
        Error::new(
            &MISSING_COMPILER,
            format!("no archiver: cannot run `{program}`: {error}"),
        )
        .help("install binutils or llvm, or set AR")
    }

    /// Adds help for common causes.
    fn explain(&self, error: Error, output: &Output) -> Error {
        let text = [&output.stdout[..], &output.stderr].concat();
        match help::failure(&self.target, self.family, &String::from_utf8_lossy(&text)) {
            Some(help) => error.help(help),
            None => error,
        }
    }

    /// Rejects a compiler for another system after it failed: headers and assembler of that system do not name the
    /// cause, in thousands of lines.
    fn check_system(&self, dir: &Path) -> Result<(), Error> {
        if self.target.os != "windows" || self.target.env != "gnu" {
            return Ok(());
        }
        let mut command = self.compiler.command(dir);
        let machine = match command.arg("-dumpmachine").output() {
            Ok(output) if output.status.success() => output.stdout,
            _ => return Ok(()),
        };
        let machine = String::from_utf8_lossy(machine.trim_ascii());
        let is_triple = machine.contains('-') && machine.lines().count() == 1;
        // x86_64-w64-mingw32; clang: x86_64-w64-windows-gnu.
        if !is_triple || machine.contains("mingw") || machine.contains("windows") {
            return Ok(());
        }
        let program = Path::new(&self.compiler.program);
        let triple = &self.target.triple;
        let reason = format!("makes objects for {machine}, but the target is {triple}");
        Err(other_compiler(&self.target, program, &reason))
    }

    /// Rejects an object for another machine: the compiler would be the wrong one, and the linker's
    /// message would not name that cause.
    fn check_machine(&self, object: &Path) -> Result<(), Error> {
        let bytes = fs::read(object).map_err(|e| Error::io("read", object, &e))?;
        let arch = match (self.target.os.as_str(), bytes.first_chunk()) {
            ("windows", Some(b"\x7fELF")) => "ELF",
            _ => machine(&bytes),
        };
        if arch == self.target.arch {
            return Ok(());
        }
        let program = Path::new(&self.compiler.program);
        let triple = &self.target.triple;
        let reason = format!("makes {arch} objects, but the target is {triple}");
        Err(other_compiler(&self.target, program, &reason))
    }
}

fn missing_compiler(target: &Target, host: &str, program: &OsStr, error: &io::Error) -> Error {
    let triple = &target.triple;
    let program = program.to_string_lossy();
    let tried = join(&variables(triple, host)[..4], ", ");
    let default = match target.env.as_str() {
        "msvc" => "the `cl` of Visual Studio",
        _ => "`cc` or the target's gcc",
    };
    Error::new(
        &MISSING_COMPILER,
        format!(
            "no C compiler for {triple}: cannot run `{program}`: {error}\n  tried: {tried}, then {default}"
        ),
    )
    .help(help::compiler(target, triple != host))
}

/// Architecture of an object in cargo's spelling, by e_ident and e_machine (gABI, "ELF Header"), or by Machine (PE
/// Format, "COFF File Header").
fn machine(object: &[u8]) -> &'static str {
    // The second form is the header for more than 65,279 sections (ANON_OBJECT_HEADER_BIGOBJ, winnt.h).
    match object.get(..8) {
        Some([0x64, 0x86, ..] | [0, 0, 0xff, 0xff, _, _, 0x64, 0x86]) => return "x86_64",
        Some([0x64, 0xaa, ..] | [0, 0, 0xff, 0xff, _, _, 0x64, 0xaa]) => return "aarch64",
        _ => {}
    }
    let Some([0x7f, b'E', b'L', b'F', class, data, .., a, b]) = object.get(..20) else {
        return "something else";
    };
    let number = if *data == 2 { [*b, *a] } else { [*a, *b] };
    match (u16::from_le_bytes(number), class, data) {
        (62, 2, 1) => "x86_64",
        (183, 2, 1) => "aarch64",
        (243, 2, 1) => "riscv64",
        (21, 2, 1) => "powerpc64",
        (22, 2, 2) => "s390x",
        (3, 1, 1) => "x86",
        (40, 1, 1) => "arm",
        (258, 2, 1) => "loongarch64",
        _ => "something else",
    }
}
