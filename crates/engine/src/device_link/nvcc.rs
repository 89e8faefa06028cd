//! Finds nvcc and a host compiler that it accepts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::diag::{MISSING_COMPILER, MISSING_NVCC};
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::{Arch, NVCC_FLAGS};
use gpustub_core::text::join;

use crate::env::Env;
use crate::error::Error;
use crate::files;
use crate::fingerprint;

/// A CUDA compiler with the properties of its toolkit.
#[derive(Debug, Clone)]
pub(crate) struct Nvcc {
    /// Program, or its wrapper, with its first words (`sccache nvcc`).
    words: Vec<OsString>,
    /// Whether NVCC names it.
    is_named: bool,
    /// Toolkit directory: the one with `bin/nvcc`.
    pub(crate) root: PathBuf,
    /// `--compiler-bindir`, if nvcc's default compiler is unsuitable.
    host_compiler: Option<PathBuf>,
    /// Compiler cache, for compile commands only.
    wrapper: Option<OsString>,
    /// The programs, with symbolic links resolved.
    programs: Vec<PathBuf>,
    /// Variables with options that it adds to those of a command, and their values.
    pub(crate) flags: Vec<(&'static str, String)>,
    /// Other inputs of a command's result, for its fingerprint.
    surroundings: String,
    /// Architecture of the target, as in its triple.
    arch: String,
    /// Variables that name a toolkit without a compiler, which another toolkit replaces.
    ineffective: Vec<String>,
}

/// Variables that nvcc and the host compiler read (nvcc's manual, "NVCC Environment Variables";
/// GCC's, "Environment Variables Affecting GCC"; `nvcc.profile`). [`NVCC_FLAGS`] are among them.
const READ_BY_COMPILERS: [&str; 9] = [
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "GCC_EXEC_PREFIX",
    "COMPILER_PATH",
    "INCLUDES",
    "SYSTEM_INCLUDES",
];

/// Default directories of toolkits (CUDA Installation Guide for Linux; Arch packages).
const DEFAULT_ROOTS: &[&str] = &["/usr/local/cuda", "/opt/cuda"];

/// Directories in Python's `site-packages` where wheels of one major install a whole toolkit.
const WHEEL_ROOTS: &[&str] = &["nvidia/cu14", "nvidia/cu13"];

impl Nvcc {
    /// Finds nvcc by NVCC, CUDA_HOME, CUDA_PATH, PATH, the usual directories or the active Python
    /// environment, in this order. `triple` is the target, `host` this machine.
    pub(crate) fn find(env: &Env, triple: &str, host: &str) -> Result<Self, Error> {
        let search = search(env);
        let Some(words) = search.words else {
            return Err(missing(&search.tried));
        };
        let program = words.last().map(PathBuf::from).unwrap_or_default();
        let root = root_of(&program).unwrap_or_default();
        let mut nvcc = Self {
            words,
            is_named: get_nonempty(env, "NVCC").is_some(),
            root,
            host_compiler: None,
            wrapper: wrapper(env),
            programs: Vec::new(),
            flags: Vec::new(),
            surroundings: String::new(),
            arch: triple.split('-').next().unwrap_or(triple).to_owned(),
            ineffective: search.ineffective,
        };
        nvcc.host_compiler = nvcc.choose_host_compiler(env, triple, host)?;
        let host_compiler = match &nvcc.host_compiler {
            Some(compiler) => compiler.clone(),
            None => get_nonempty(env, "NVCC_CCBIN").map_or("gcc".into(), PathBuf::from),
        };
        nvcc.programs.extend(on_path(env, &program));
        nvcc.programs.extend(on_path(env, &host_compiler));
        for name in NVCC_FLAGS {
            if let Some(value) = get_nonempty(env, name) {
                let value = value.to_string_lossy().into_owned();
                nvcc.flags.push((name, value));
            }
        }
        for name in READ_BY_COMPILERS {
            if let Some(value) = get_nonempty(env, name) {
                nvcc.surroundings += &format!(" {name}={value:?}");
            }
        }
        for program in &nvcc.programs {
            nvcc.surroundings += &format!(" {:?}", fingerprint::state(program));
        }
        Ok(nvcc)
    }

    /// Text that fingerprints store of a command: the command and the other inputs of its result. A
    /// toolkit may be replaced by another in the same directory, and a host compiler be upgraded.
    pub(crate) fn key(&self, command: &Command) -> String {
        fingerprint::command_line(command) + &self.surroundings
    }

    /// A warning for each variable that was set without effect.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Directive> {
        let program = self.program().display();
        self.ineffective
            .iter()
            .map(move |reason| Directive::Warning(format!("{reason}: {program} is used")))
    }

    /// Error for a command that did not start.
    pub(crate) fn cannot_run(&self, command: &Command, error: &io::Error) -> Error {
        let program = command.get_program();
        let error = Error::io("run", Path::new(program), error);
        if self.words.first().is_some_and(|first| first == program) && self.is_named {
            error.help(
                "the variable NVCC names it: set it to the path of an nvcc, or unset it; then CUDA_HOME, \
                 CUDA_PATH and PATH are searched",
            )
        } else {
            error
        }
    }

    /// Directives that make cargo watch the programs.
    pub(crate) fn watched(&self) -> Result<Vec<Directive>, Error> {
        self.programs
            .iter()
            .map(|program| Ok(Directive::RerunIfChanged(files::text(program)?)))
            .collect()
    }

    /// A command that compiles: through the compiler cache, if cargo uses one.
    pub(crate) fn compile(&self) -> Command {
        self.command(self.wrapper.iter().chain(&self.words))
    }

    /// A command that links device code. Caches do not support such commands.
    pub(crate) fn link(&self) -> Command {
        self.command(self.words.iter())
    }

    fn command<'a>(&self, mut words: impl Iterator<Item = &'a OsString>) -> Command {
        let mut command = Command::new(words.next().map(OsString::as_os_str).unwrap_or_default());
        command.args(words);
        if let Some(compiler) = &self.host_compiler {
            command.arg("-ccbin").arg(compiler);
        }
        command
    }

    /// The same command with another path of the compiler.
    pub(crate) fn link_as(&self, program: OsString) -> Command {
        let wrapper = self.words.len().saturating_sub(1);
        self.command(self.words[..wrapper].iter().chain([&program]))
    }

    /// Path of the compiler, without its wrapper.
    pub(crate) fn program(&self) -> &Path {
        self.words.last().map_or(Path::new(""), Path::new)
    }

    /// Architecture of the target, for [`Self::library_dirs`].
    pub(crate) fn arch(&self) -> &str {
        &self.arch
    }

    /// Architectures that it can compile for; empty if unknown.
    pub(crate) fn archs(&self) -> Vec<Arch> {
        let mut archs = Vec::new();
        for option in ["--list-gpu-code", "--list-gpu-arch"] {
            let Ok(output) = self.link().arg(option).output() else {
                continue;
            };
            if output.status.success() {
                let list = String::from_utf8_lossy(&output.stdout);
                archs.extend(list.split_whitespace().filter_map(Arch::parse));
            }
        }
        archs
    }

    /// Existing directories with this toolkit's libraries for `arch`.
    pub(crate) fn library_dirs(&self, arch: &str) -> Vec<PathBuf> {
        let target = match arch {
            "aarch64" => "targets/sbsa-linux/lib".to_owned(),
            arch => format!("targets/{arch}-linux/lib"),
        };
        ["lib64", &target, "lib"]
            .into_iter()
            .map(|dir| self.root.join(dir))
            .filter(|dir| dir.is_dir())
            .collect()
    }

    /// nvcc uses the `gcc` of PATH. The toolkit's headers reject a too new one with an #error for
    /// each source; an older one is often installed under a name with its version.
    fn choose_host_compiler(
        &self,
        env: &Env,
        triple: &str,
        host: &str,
    ) -> Result<Option<PathBuf>, Error> {
        // nvcc reads these itself.
        let flags = NVCC_FLAGS.map(|name| env.get(name));
        if env.get("NVCC_CCBIN").is_some() {
            return Ok(None);
        }
        let is_waived = flags.iter().flatten().any(|flags| {
            let flags = flags.to_string_lossy();
            flags.contains("allow-unsupported-compiler") || flags.contains("ccbin")
        });
        let named = self.named_compiler(env, triple, host);
        if is_waived {
            return Ok(named);
        }
        let Some(newest) = self.newest_gcc() else {
            return Ok(named);
        };
        let compiler = named.clone().unwrap_or_else(|| "gcc".into());
        let Some(major) = gcc_major(&compiler) else {
            // Not GCC, or missing: nvcc reports the error.
            return Ok(named);
        };
        if major <= newest {
            return Ok(named);
        }
        let prefix = if triple == host {
            String::new()
        } else {
            format!("{}-", triple.replace("-unknown", ""))
        };
        for older in (7..=newest).rev() {
            let name = format!("{prefix}g++-{older}");
            if gcc_major(Path::new(&name)).is_some() {
                return Ok(Some(name.into()));
            }
        }
        Err(Error::new(
            &MISSING_COMPILER,
            format!(
                "the CUDA toolkit at {} accepts GCC up to {newest}, and `{}` is {major}",
                self.root.display(),
                compiler.display()
            ),
        )
        .help(format!(
            "install an older one (Debian, Ubuntu: apt install g++-{newest}), name one with \
             NVCC_CCBIN, or use a newer toolkit; NVCC_APPEND_FLAGS=-allow-unsupported-compiler \
             disables this check"
        )))
    }

    /// The C++ compiler that the user names, or the cross compiler of another target.
    fn named_compiler(&self, env: &Env, triple: &str, host: &str) -> Option<PathBuf> {
        let underscores = triple.replace(['-', '.'], "_");
        let names = [
            format!("CXX_{triple}"),
            format!("CXX_{underscores}"),
            "CXX".to_owned(),
        ];
        let named = names.iter().find_map(|name| env.get(name));
        match named {
            // Several words are a wrapper, which nvcc does not accept.
            Some(named) if !named.to_string_lossy().contains(' ') => Some(named.into()),
            _ if triple != host => Some(format!("{}-g++", triple.replace("-unknown", "")).into()),
            _ => None,
        }
    }

    /// Newest GCC that the toolkit's headers accept (`crt/host_config.h`).
    fn newest_gcc(&self) -> Option<u32> {
        let header = "include/crt/host_config.h";
        let text = fs::read_to_string(self.root.join(header)).ok()?;
        text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix("#if __GNUC__ > ")?;
            rest.trim().parse().ok()
        })
    }
}

/// Value of a variable, unless it is empty.
fn get_nonempty(env: &Env, name: &str) -> Option<OsString> {
    env.get(name).filter(|value| !value.is_empty())
}

/// Result of the search for nvcc.
struct Search {
    /// Words of the first candidate that exists.
    words: Option<Vec<OsString>>,
    tried: Vec<String>,
    /// Variables that were set without effect, with the reason.
    ineffective: Vec<String>,
}

fn search(env: &Env) -> Search {
    let mut tried = vec!["NVCC".to_owned()];
    let mut ineffective = Vec::new();
    if let Some(command) = get_nonempty(env, "NVCC") {
        // Parsed like CC: the last word is the compiler, those before it wrap it.
        let text = command.to_string_lossy().into_owned();
        let words = if Path::new(&command).exists() || !text.contains(' ') {
            vec![command]
        } else {
            text.split_whitespace().map(OsString::from).collect()
        };
        return Search {
            words: Some(words),
            tried,
            ineffective,
        };
    }
    let mut bin = None;
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        let Some(root) = get_nonempty(env, name) else {
            tried.push(name.to_owned());
            continue;
        };
        let dir = Path::new(&root).join("bin");
        if has_nvcc(&dir) {
            bin = bin.or(Some(dir));
        } else {
            tried.push(format!("{name} ({} has no nvcc)", dir.display()));
            if bin.is_none() {
                ineffective.push(format!("{name} is set, and {} has no nvcc", dir.display()));
            }
        }
    }
    if bin.is_none() {
        let path = env.peek("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        dirs.extend(DEFAULT_ROOTS.iter().map(|root| Path::new(root).join("bin")));
        dirs.extend(python_dirs(env));
        bin = dirs.into_iter().find(|dir| has_nvcc(dir));
    }
    if bin.is_none() {
        env.rerun_if_env_changed("PATH");
        tried.push("PATH".to_owned());
        tried.extend(DEFAULT_ROOTS.iter().map(|root| (*root).to_owned()));
        tried.push("the active Python environment".to_owned());
    }
    Search {
        words: bin.map(|dir| vec![dir.join("nvcc").into()]),
        tried,
        ineffective,
    }
}

fn has_nvcc(dir: &Path) -> bool {
    dir.join("nvcc").is_file()
}

/// Resolves a program's name; NVCC_CCBIN may be the directory of a `gcc`.
fn on_path(env: &Env, program: &Path) -> Option<PathBuf> {
    if program.components().count() > 1 {
        let file = fs::canonicalize(program).ok()?;
        return if file.is_dir() {
            fs::canonicalize(file.join("gcc")).ok()
        } else {
            Some(file)
        };
    }
    let path = env.peek("PATH").unwrap_or_default();
    let file = std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|file| file.is_file())?;
    fs::canonicalize(file).ok()
}

/// `bin` directories of the toolkits that wheels put into the active Python environment.
fn python_dirs(env: &Env) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        let Some(prefix) = env.get(name) else {
            continue;
        };
        let lib = Path::new(&prefix).join("lib");
        let Ok(entries) = fs::read_dir(lib) else {
            continue;
        };
        let mut packages: Vec<_> = entries
            .flatten()
            .map(|entry| entry.path().join("site-packages"))
            .filter(|path| path.is_dir())
            .collect();
        packages.sort();
        for packages in packages {
            for root in WHEEL_ROOTS {
                dirs.push(packages.join(root).join("bin"));
            }
        }
    }
    dirs
}

/// Toolkit directory of an nvcc, which is often a link elsewhere (`/usr/bin/nvcc`).
fn root_of(program: &Path) -> Option<PathBuf> {
    let plain_root = program.parent()?.parent().map(Path::to_path_buf);
    let target = fs::canonicalize(program).ok();
    match target
        .as_deref()
        .and_then(|target| target.parent()?.parent())
    {
        Some(root) if root.join("include").is_dir() => Some(root.to_path_buf()),
        _ => plain_root,
    }
}

/// sccache, if rustc is run through it. Other wrappers of rustc do not support nvcc.
fn wrapper(env: &Env) -> Option<OsString> {
    let wrapper = env.get("RUSTC_WRAPPER")?;
    let stem = Path::new(&wrapper).file_stem()?;
    (stem == "sccache").then_some(wrapper)
}

/// The major of a GCC; `None` for other compilers, or if it does not run.
fn gcc_major(program: &Path) -> Option<u32> {
    let output = Command::new(program)
        .args(["-dM", "-E", "-x", "c", "/dev/null"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    if text.contains("__clang__") {
        return None;
    }
    let major = text
        .lines()
        .find_map(|line| line.strip_prefix("#define __GNUC__ "))?;
    major.trim().parse().ok()
}

fn missing(tried: &[String]) -> Error {
    Error::new(
        &MISSING_NVCC,
        format!(
            "no CUDA compiler (nvcc) is found\n  tried: {}",
            join(tried, ", ")
        ),
    )
    .help(
        "install the CUDA toolkit (Debian, Ubuntu: apt install nvidia-cuda-toolkit), or its wheels \
         (pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime \
         nvidia-cuda-cccl), or set CUDA_HOME; `optional = true` builds without the library",
    )
}
