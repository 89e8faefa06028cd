//! Finds nvcc and a host compiler that it accepts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::diag::{MISSING_COMPILER, MISSING_NVCC};
use gpustub_core::directives::Directive;
use gpustub_core::gpu_arch::Arch;
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
    /// Other inputs of a command's result, for its fingerprint.
    surroundings: String,
    /// Architecture of the target, as in its triple.
    arch: String,
    /// Variables that name a toolkit without a compiler, which another toolkit replaces.
    passed: Vec<String>,
}

/// Variables that nvcc and the host compiler read (nvcc's manual, "NVCC Environment Variables";
/// GCC's, "Environment Variables Affecting GCC").
const READ_BY_COMPILERS: [&str; 5] = [
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "NVCC_CCBIN",
    "CPATH",
    "CPLUS_INCLUDE_PATH",
];

/// Default directories of toolkits (CUDA Installation Guide for Linux; Arch packages).
const USUAL: &[&str] = &["/usr/local/cuda", "/opt/cuda"];

/// Directories in Python's `site-packages` where wheels of one major install a whole toolkit.
const WHEEL_ROOTS: &[&str] = &["nvidia/cu14", "nvidia/cu13"];

impl Nvcc {
    /// Finds nvcc by NVCC, CUDA_HOME, CUDA_PATH, PATH, the usual directories or the active Python
    /// environment, in this order. `triple` is the target, `host` this machine.
    pub(crate) fn find(env: &Env, triple: &str, host: &str) -> Result<Self, Error> {
        let Candidates {
            words,
            tried,
            passed,
        } = candidates(env);
        let Some(words) = words else {
            return Err(missing(&tried));
        };
        let program = words.last().map(PathBuf::from).unwrap_or_default();
        let root = root_of(&program).unwrap_or_default();
        let by_name = |name: &str| env.get(name).filter(|named| !named.is_empty());
        let mut nvcc = Self {
            words,
            is_named: by_name("NVCC").is_some(),
            root,
            host_compiler: None,
            wrapper: wrapper(env),
            programs: Vec::new(),
            surroundings: String::new(),
            arch: triple.split('-').next().unwrap_or(triple).to_owned(),
            passed,
        };
        nvcc.host_compiler = nvcc.choose_host_compiler(env, triple, host)?;
        let host_compiler = match &nvcc.host_compiler {
            Some(chosen) => chosen.clone(),
            None => by_name("NVCC_CCBIN").map_or("gcc".into(), PathBuf::from),
        };
        let programs = [program, host_compiler];
        nvcc.programs = programs.iter().filter_map(|p| on_path(env, p)).collect();
        let values = READ_BY_COMPILERS
            .iter()
            .filter_map(|name| Some((name, by_name(name)?)));
        nvcc.surroundings = values
            .map(|(name, value)| format!(" {name}={value:?}"))
            .collect();
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
        let instead = self.words.last().map(PathBuf::from).unwrap_or_default();
        let text = move |why| format!("{why}: {} is used", instead.display());
        self.passed
            .iter()
            .map(move |why| Directive::Warning(text(why)))
    }

    /// Error for a command that did not start.
    pub(crate) fn cannot_run(&self, command: &Command, error: &io::Error) -> Error {
        let program = command.get_program();
        let failed = Error::io("run", Path::new(program), error);
        if self.words.first().is_some_and(|first| first == program) && self.is_named {
            failed.help(
                "the variable NVCC names it: set it to the path of an nvcc, or unset it; then CUDA_HOME, \
                 CUDA_PATH and PATH are searched",
            )
        } else {
            failed
        }
    }

    /// Directives that make cargo watch the programs.
    pub(crate) fn watched(&self) -> Result<Vec<Directive>, Error> {
        let programs = self.programs.iter();
        programs
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
        let wrapper = self
            .words
            .split_last()
            .map_or(&[][..], |(_, before)| before);
        self.command(wrapper.iter().chain([&program]))
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
        let listed = ["--list-gpu-code", "--list-gpu-arch"].map(|option| {
            let output = self.link().arg(option).output().ok();
            let output = output.filter(|output| output.status.success());
            output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
        });
        let texts = listed.iter().flatten();
        texts
            .flat_map(|text| text.split_whitespace().filter_map(Arch::parse))
            .collect()
    }

    /// Existing directories with this toolkit's libraries for `arch`.
    pub(crate) fn library_dirs(&self, arch: &str) -> Vec<PathBuf> {
        let target = match arch {
            "aarch64" => "targets/sbsa-linux/lib".to_owned(),
            arch => format!("targets/{arch}-linux/lib"),
        };
        let dirs = ["lib64", &target, "lib"].map(|dir| self.root.join(dir));
        dirs.into_iter().filter(|dir| dir.is_dir()).collect()
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
        let flags = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"].map(|name| env.get(name));
        if env.get("NVCC_CCBIN").is_some() {
            return Ok(None);
        }
        let waived = flags.iter().flatten().any(|flags| {
            let flags = flags.to_string_lossy();
            flags.contains("allow-unsupported-compiler") || flags.contains("ccbin")
        });
        let named = self.named_compiler(env, triple, host);
        if waived {
            return Ok(named);
        }
        let Some(most) = self.newest_gcc() else {
            return Ok(named);
        };
        let asked = named.clone().unwrap_or_else(|| "gcc".into());
        let Some(version) = gcc_major(&asked) else {
            // Not GCC, or missing: nvcc reports the error.
            return Ok(named);
        };
        if version <= most {
            return Ok(named);
        }
        let prefix = if triple == host {
            String::new()
        } else {
            format!("{}-", triple.replace("-unknown", ""))
        };
        let older = (7..=most).rev().map(|major| format!("{prefix}g++-{major}"));
        for name in older {
            if gcc_major(Path::new(&name)).is_some() {
                return Ok(Some(name.into()));
            }
        }
        Err(Error::new(
            &MISSING_COMPILER,
            format!(
                "the CUDA toolkit at {} accepts GCC up to {most}, and `{}` is {version}",
                self.root.display(),
                asked.display()
            ),
        )
        .help(format!(
            "install an older one (Debian, Ubuntu: apt install g++-{most}), name one with \
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
        let line = text.lines().find_map(|line| {
            let rest = line.trim().strip_prefix("#if __GNUC__ > ")?;
            rest.trim().parse().ok()
        })?;
        Some(line)
    }
}

/// Result of the search for nvcc.
struct Candidates {
    /// Words of the first candidate that exists.
    words: Option<Vec<OsString>>,
    tried: Vec<String>,
    /// Variables that were set without effect, with the reason.
    passed: Vec<String>,
}

fn candidates(env: &Env) -> Candidates {
    let mut tried = vec!["NVCC".to_owned()];
    let mut passed = Vec::new();
    if let Some(named) = env.get("NVCC").filter(|named| !named.is_empty()) {
        // Parsed like CC: the last word is the compiler, those before it wrap it.
        let text = named.to_string_lossy().into_owned();
        let words = if Path::new(&named).exists() || !text.contains(' ') {
            vec![named]
        } else {
            text.split_whitespace().map(OsString::from).collect()
        };
        return Candidates {
            words: Some(words),
            tried,
            passed,
        };
    }
    let has_nvcc = |dir: &PathBuf| dir.join("nvcc").is_file();
    let mut found = None;
    for name in ["CUDA_HOME", "CUDA_PATH"] {
        let Some(root) = env.get(name).filter(|root| !root.is_empty()) else {
            tried.push(name.to_owned());
            continue;
        };
        let dir = Path::new(&root).join("bin");
        if has_nvcc(&dir) {
            found = found.or(Some(dir));
        } else {
            tried.push(format!("{name} ({} has no nvcc)", dir.display()));
            if found.is_none() {
                passed.push(format!("{name} is set, and {} has no nvcc", dir.display()));
            }
        }
    }
    if found.is_none() {
        let path = env.peek("PATH").unwrap_or_default();
        let mut dirs: Vec<PathBuf> = std::env::split_paths(&path).collect();
        dirs.extend(USUAL.iter().map(|root| Path::new(root).join("bin")));
        dirs.extend(python_dirs(env));
        found = dirs.into_iter().find(has_nvcc);
    }
    if found.is_none() {
        env.rerun_if_env_changed("PATH");
        tried.push("PATH".to_owned());
        tried.extend(USUAL.iter().map(|root| (*root).to_owned()));
        tried.push("the active Python environment".to_owned());
    }
    Candidates {
        words: found.map(|dir| vec![dir.join("nvcc").into()]),
        tried,
        passed,
    }
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
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    fs::canonicalize(files.find(|file| file.is_file())?).ok()
}

/// `bin` directories of the toolkits that wheels put into the active Python environment.
fn python_dirs(env: &Env) -> Vec<PathBuf> {
    let mut found = Vec::new();
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
            found.extend(
                WHEEL_ROOTS
                    .iter()
                    .map(|root| packages.join(root).join("bin")),
            );
        }
    }
    found
}

/// Toolkit directory of an nvcc, which is often a link elsewhere (`/usr/bin/nvcc`).
fn root_of(program: &Path) -> Option<PathBuf> {
    let plain = program.parent()?.parent().map(Path::to_path_buf);
    let real = fs::canonicalize(program).ok();
    let real = real.as_deref().and_then(|p| p.parent()?.parent());
    match real {
        Some(real) if real.join("include").is_dir() => Some(real.to_path_buf()),
        _ => plain,
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
    let line = text
        .lines()
        .find_map(|l| l.strip_prefix("#define __GNUC__ "))?;
    line.trim().parse().ok()
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
