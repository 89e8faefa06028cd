//! Human-readable errors of nvcc and nvlink: the cause first, then the next step, the command last.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use gpustub_core::diag::{COMPILER_ERROR, DEVICE_LINK_ERROR, NVCC_ERROR};
use gpustub_core::gpu_arch::{Arch, ArchKind, chooses_archs};
use gpustub_core::manifest::DeviceLink;
use gpustub_core::text::join;

use super::compiler::Compiler;
use super::lto;
use super::metadata::DeviceLibrary;
use super::nvcc::Nvcc;
use super::{cuda_clang, hip};
use crate::error::{Error, SourceText};

/// Joins both streams: nvcc writes errors to either.
pub(super) fn printed(output: &Output) -> String {
    let mut bytes = output.stdout.clone();
    bytes.extend(&output.stderr);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Quotes a command for a shell.
pub(super) fn shell(command: &Command) -> String {
    let mut words = Vec::new();
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        let word = word.to_string_lossy();
        let is_plain = word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_=+,./:@%".contains(c));
        words.push(if is_plain && !word.is_empty() {
            word.into_owned()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        });
    }
    join(&words, " ")
}

/// A compile step that failed.
pub(super) struct CompileError<'a> {
    pub(super) compiler: Compiler<'a>,
    pub(super) manifest: SourceText<'a>,
    pub(super) library: &'a DeviceLink,
    pub(super) source: &'a Path,
    /// All visible libraries, and those whose headers the source could include.
    pub(super) visible: &'a [&'a DeviceLibrary],
    pub(super) inherited: &'a [&'a DeviceLibrary],
}

impl CompileError<'_> {
    pub(super) fn into_error(self, command: &str, output: &Output) -> Error {
        let printed = printed(output);
        let nvcc = match self.compiler {
            Compiler::Nvcc(nvcc) => nvcc,
            Compiler::CudaClang(_) => return self.clang_error("CUDA", command, output, &printed),
            Compiler::Clang(_) => return self.clang_error("AMD", command, output, &printed),
        };
        self.nvcc_error(nvcc, command, output, &printed)
    }

    fn clang_error(&self, code: &str, command: &str, output: &Output, printed: &str) -> Error {
        let message = format!(
            "clang cannot compile {} for {code} ({})",
            self.source.display(),
            output.status
        );
        let error = Error::new(&COMPILER_ERROR, message).output(printed.as_bytes());
        let help = cuda_clang::help(printed).map(str::to_owned);
        let help = help.or_else(|| hip::device_library_help(printed));
        let error = match (help, missing_header(printed)) {
            (Some(help), _) => error.help(help),
            (None, Some(header)) => error.help(self.header_help(header)),
            // Of lld: only a module is linked from one source.
            (None, None) if printed.contains("error: undefined") => {
                error.help(self.separable_help())
            }
            (None, None) => error,
        };
        error.command(command)
    }

    fn nvcc_error(&self, nvcc: &Nvcc, command: &str, output: &Output, nvcc_output: &str) -> Error {
        let library_name = &self.library.name.value;
        let unsupported = unsupported_arch(nvcc_output).and_then(|arch_name| {
            self.library.archs.iter().find(|arch| {
                let forms = [arch.value, arch.value.as_kind(ArchKind::Virtual)];
                forms.iter().any(|form| form.to_string() == arch_name)
            })
        });
        if let Some(arch) = unsupported {
            let message = format!(
                "the CUDA toolkit at {} does not support `{}`, which device-link.{library_name} requests",
                nvcc.root.display(),
                arch.value
            );
            return Error::new(&NVCC_ERROR, message)
                .with_location(self.manifest.location(&arch.span))
                .output(nvcc_output.as_bytes())
                .help(supported_archs_help(nvcc))
                .command(command);
        }
        let message = format!(
            "nvcc cannot compile {} ({})",
            self.source.display(),
            output.status
        );
        let error = Error::new(&NVCC_ERROR, message).output(nvcc_output.as_bytes());
        let archs: Vec<Arch> = self.library.archs.iter().map(|arch| arch.value).collect();
        let error = if let Some(help) = added_arch_help(nvcc, &archs, nvcc_output) {
            error.help(help)
        } else if let Some(header) = missing_header(nvcc_output) {
            error.help(self.header_help(header))
        } else if nvcc_output.contains("Unresolved extern") {
            error.help(self.separable_help())
        } else {
            error
        };
        error.command(command)
    }

    /// Help for a module of one source that calls a function of another.
    fn separable_help(&self) -> String {
        format!(
            "with `separable = false` a source can call only functions that it defines or includes: remove it from \
             [device-link.{}] ({}), and each source is linked with the others",
            self.library.name.value,
            self.manifest.location(&self.library.name.span)
        )
    }

    /// Names the library that has a header which the source cannot include.
    fn header_help(&self, header: &str) -> String {
        let name = &self.library.name.value;
        let location = self.manifest.location(&self.library.name.span);
        for owner in self.visible {
            let is_inherited = self.inherited.iter().any(|used| used.name == owner.name);
            let has_header = owner
                .include_dirs
                .iter()
                .any(|dir| dir.join(header).is_file());
            if has_header && !is_inherited {
                return format!(
                    "device-link.{} of {} has {header}: write \"{}\" into `requires` of [device-link.{name}] ({location})",
                    owner.name, owner.package, owner.name
                );
            }
        }
        format!(
            "`include-dirs = [\"…\"]` in [device-link.{name}] ({location}) names the directories to search, relative to \
             GpuStub.toml; a header of another library comes with `requires` and `include-dirs` of that one"
        )
    }
}

/// A failed device link for `archs`. `dir` keeps the output.
pub(super) fn link_error(
    nvcc: &Nvcc,
    archs: &[Arch],
    members: &[&DeviceLibrary],
    dir: &Path,
    command: &Command,
    output: &Output,
) -> Error {
    let raw = printed(output);
    let text = with_sources(demangled(nvcc, dir, &raw), members);
    let message = format!("nvcc cannot link the device code ({})", output.status);
    let error = Error::new(&DEVICE_LINK_ERROR, message).output(text.as_bytes());
    let error = if let Some(help) = added_arch_help(nvcc, archs, &raw) {
        error.help(help)
    } else if unsupported_arch(&raw).is_some() {
        error.help(supported_archs_help(nvcc))
    } else if DEVICE_RUNTIME.iter().any(|name| raw.contains(name)) {
        error.help(DEVRT_HELP)
    } else if let Some(help) = lto::help(nvcc, &raw) {
        error.help(help)
    } else if raw.contains("Undefined reference") {
        error.help(
            "the library that defines it belongs into `requires` of the one that calls it; its \
             definition has to be a `__device__` one, in a source that is compiled with -rdc=true",
        )
    } else if raw.contains("Multiple definition") {
        error.help("make it `inline` or `static`, or take one of the two sources out of `sources`")
    } else {
        error
    };
    error.command(&shell(command))
}

/// Help for kernels that launch kernels.
pub(super) const DEVRT_HELP: &str = "a kernel launches kernels, which needs libcudadevrt: write \
                                     `cudadevrt = true` in the [device-link] table of its source";

/// Functions that nvcc calls for a launch in device code (13.5, 11.8).
const DEVICE_RUNTIME: [&str; 3] = ["__cudaCDP", "cudaGetParameterBuffer", "cudaLaunchDevice"];

/// Replaces `archive:object` of nvlink by the object's source.
fn with_sources(mut text: String, members: &[&DeviceLibrary]) -> String {
    for member in members {
        for object in &member.sources {
            let name = format!("{}:{}", member.archive.display(), object.member);
            text = text.replace(&name, &object.source.display().to_string());
        }
    }
    text
}

/// Demangles the functions in the text, if a demangler is installed.
fn demangled(nvcc: &Nvcc, dir: &Path, text: &str) -> String {
    // Passed as a file: an unread pipe would block.
    let log = dir.join("printed");
    if fs::write(&log, text).is_err() {
        return text.to_owned();
    }
    let programs = [
        nvcc.root.join("bin/cu++filt"),
        PathBuf::from("cu++filt"),
        PathBuf::from("c++filt"),
    ];
    for program in programs {
        let Ok(input) = File::open(&log) else { break };
        let Ok(output) = Command::new(program).stdin(input).output() else {
            continue;
        };
        let demangled = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && demangled.lines().count() == text.lines().count() {
            return demangled.into_owned();
        }
    }
    text.to_owned()
}

/// The missing header, from the messages of GCC, of clang and of NVIDIA's front end.
fn missing_header(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        if let Some(start) = line.strip_suffix(": No such file or directory") {
            return Some(start.split_once("fatal error: ")?.1);
        }
        if let Some(start) = line.strip_suffix("' file not found") {
            return Some(start.split_once("fatal error: '")?.1);
        }
        let (_, rest) = line.split_once("cannot open source file \"")?;
        Some(rest.split_once('"')?.0)
    })
}

/// The architecture that nvcc rejects.
fn unsupported_arch(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("Unsupported gpu architecture '")?;
    Some(rest.split_once('\'')?.0)
}

/// Text before the name of an architecture, and after it, in messages of nvcc, ptxas and nvlink (12.4, 13.5).
const ARCHS_IN_MESSAGES: [(&str, &str); 4] = [
    ("Unsupported gpu architecture '", "'"),
    // The file between both compilers: `/tmp/tmpxft_1_0-6_waves.compute_75.ptx, line 23; error`.
    (".compute_", ".ptx"),
    ("(target: ", ")"),
    ("SM Arch ('", "')"),
];

/// The architectures that messages name.
fn archs_in_messages(text: &str) -> impl Iterator<Item = Arch> {
    text.lines().filter_map(|line| {
        ARCHS_IN_MESSAGES.iter().find_map(|(before, after)| {
            let (_, rest) = line.split_once(before)?;
            let (name, _) = rest.split_once(after)?;
            Arch::parse(name).or_else(|| Arch::parse(&format!("compute_{name}")))
        })
    })
}

/// Next step after an error about an architecture that a variable adds to `archs`.
fn added_arch_help(nvcc: &Nvcc, archs: &[Arch], text: &str) -> Option<String> {
    let added = archs_in_messages(text).find(|arch| is_added(*arch, archs))?;
    let is_supported = unsupported_arch(text).is_none();
    help_about_variable(nvcc, archs, added, is_supported)
}

/// Whether an architecture is none of the declared ones.
pub(super) fn is_added(arch: Arch, archs: &[Arch]) -> bool {
    archs
        .iter()
        .all(|declared| declared.as_kind(arch.kind()) != arch)
}

/// Names the variable that adds an architecture to `archs`, if there is one.
pub(super) fn help_about_variable(
    nvcc: &Nvcc,
    archs: &[Arch],
    added: Arch,
    is_supported: bool,
) -> Option<String> {
    let name = added.to_string();
    let number = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let number = number.trim_end_matches(char::is_alphabetic);
    let variables = nvcc.flags.iter().filter(|(_, value)| chooses_archs(value));
    // Names such as `native` have no number.
    let (name, value) = variables.max_by_key(|(_, value)| value.contains(number))?;
    let declared: Vec<_> = archs.iter().map(Arch::to_string).collect();
    let step = if is_supported {
        ", or compile every library and `prebuilt` archive for it"
    } else {
        ""
    };
    Some(format!(
        "the variable {name} is `{value}`, and nvcc also makes code for {added}, which is not in `archs` ({}): \
         remove it from {name}{step}",
        join(&declared, " ")
    ))
}

/// Help that lists the architectures of a toolkit.
fn supported_archs_help(nvcc: &Nvcc) -> String {
    let step = "or compile with another toolkit (NVCC, CUDA_HOME)";
    let mut archs = nvcc.archs();
    if archs.is_empty() {
        return format!("`nvcc --list-gpu-code` lists the supported ones; {step}");
    }
    archs.sort();
    let [real_archs, virtual_archs] = [ArchKind::Real, ArchKind::Virtual].map(|kind| {
        let names: Vec<_> = archs
            .iter()
            .filter(|arch| arch.kind() == kind)
            .map(Arch::to_string)
            .collect();
        join(&names, " ")
    });
    format!("use a supported one: {real_archs} {virtual_archs}; {step}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted() {
        let mut command = Command::new("nvcc");
        command.args(["-c", "my waves.cu", "-DX='a'", "", "-arch=sm_80"]);
        let expected = r"nvcc -c 'my waves.cu' '-DX='\''a'\''' '' -arch=sm_80";
        assert_eq!(shell(&command), expected);
    }

    #[test]
    fn architectures_are_read_from_messages() {
        for (text, expected) in [
            (
                "nvlink error   : Undefined reference to '_Z3prei' in 's.a:s.o' (target: sm_75)",
                Some("sm_75"),
            ),
            (
                "x\nnvlink warning : SM Arch ('sm_90a') not found in 'waves.o'\n",
                Some("sm_90a"),
            ),
            (
                "nvcc fatal   : Unsupported gpu architecture 'compute_60'",
                Some("compute_60"),
            ),
            (
                "ptxas /tmp/tmpxft_000064ad_00000000-6_f.compute_75.ptx, line 23; error   : Feature",
                Some("compute_75"),
            ),
            ("waves.compute_new.ptx, (target: all", None),
            ("", None),
        ] {
            let name = archs_in_messages(text).next().map(|arch| arch.to_string());
            assert_eq!(name.as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn missing_headers_are_read_as_compilers_name_them() {
        for (text, header) in [
            (
                "x\na.cu:1:10: fatal error: geo/b.cuh: No such file or directory\n",
                Some("geo/b.cuh"),
            ),
            ("a.cu:1:10: fatal error: 'b.h' file not found", Some("b.h")),
            (
                "a.cu(1): catastrophic error: cannot open source file \"b.h\"",
                Some("b.h"),
            ),
            ("a.cu(1): error: identifier \"foo\" is undefined", None),
        ] {
            assert_eq!(missing_header(text), header, "{text}");
        }
    }
}
