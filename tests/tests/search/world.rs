//! A machine as data: the tables of `GpuStub.toml`, the files, the variables, the libraries loaded
//! beforehand, and the order of the program's requests. Builds and runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::Result;
use gpustub_tests::command::{Ran, succeed};
use gpustub_tests::isolated::{Isolated, system_libraries};
use gpustub_tests::stubs::{Machine, Stubs, list_of, plan_or_fail};

/// Keys of one library in `GpuStub.toml`.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Choice {
    pub majors: Vec<u32>,
    pub header: Option<u32>,
    pub search_dirs: Vec<String>,
    pub require: bool,
    pub min_version: Option<(u32, u32)>,
}

/// A `GpuStub.toml`: its libraries, by id.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    pub stubs: BTreeMap<String, Choice>,
}

impl Config {
    fn text(&self) -> String {
        let mut text = String::from("schema = 1\n");
        for (id, choice) in &self.stubs {
            text += &format!("[stub.{id}]\nsymbols = \"{id}.symbols\"\n");
            if id == "acme" {
                text += "load-names = { linux = [\"libacme.so.3\", \"libacme.so.2\", \"libacme.so\"] }\n";
            }
            let majors: Vec<String> = choice.majors.iter().map(ToString::to_string).collect();
            if !majors.is_empty() {
                text += &format!("majors = {majors:?}\n");
            }
            text += &match choice.header {
                Some(header) => format!("header-version = \"{header}\"\n"),
                None => "header-version = \"none\"\n".to_owned(),
            };
            if !choice.search_dirs.is_empty() {
                text += &format!("search-dirs = {:?}\n", choice.search_dirs);
            }
            if choice.require {
                text += &format!("required-functions = [\"{}\"]\n", required(id));
            }
            if let Some((major, minor)) = choice.min_version {
                text += &format!("min-version = \"{major}.{minor}\"\n");
            }
        }
        text
    }
}

/// Content of a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Content {
    /// Library with this soname whose version query returns this version (12090; 0: without the
    /// function), and which may lack the required function.
    Library {
        soname: String,
        version: u32,
        lacks: bool,
    },
    /// Library for another processor.
    WrongMachine,
    /// The first bytes of a library.
    Short,
    /// A library whose headers are whole, and whose last segments are missing.
    Truncated,
    /// Text instead of a library.
    Text,
    /// Link to this path.
    Link(String),
}

/// Way in which the program is started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    #[default]
    Directly,
    /// As an argument of the loader, for which `/proc/self/exe` is the loader.
    ThroughLoader,
    /// As an argument of the loader, by a relative path.
    ThroughLoaderRelative,
    /// On a machine without `/proc`.
    WithoutProc,
    /// By [`LINK`], as a virtual environment's `python`.
    ByLink,
}

/// The link to the program that [`Start::ByLink`] starts.
pub const LINK: &str = "/venv/bin/python";

/// Machine and the actions of its program.
#[derive(Clone, Default)]
pub struct World {
    pub config: Config,
    /// Path of the program.
    pub program: String,
    pub start: Start,
    /// Links to directories; they come before the files.
    pub links: Vec<(String, String)>,
    /// Files; of two with one path the first counts.
    pub files: Vec<(String, Content)>,
    pub variables: BTreeMap<String, String>,
    /// Libraries that the program loads by their paths before its requests.
    pub preloads: Vec<String>,
    /// Libraries that the program requests.
    pub order: Vec<String>,
}

/// One fact per line, for readers of a failed test.
impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}", self.config.text())?;
        for (link, to) in &self.links {
            writeln!(f, "{link} -> {to}")?;
        }
        for (path, content) in &self.files {
            writeln!(f, "{path}: {content:?}")?;
        }
        writeln!(f, "{:?}", self.variables)?;
        let Self {
            program,
            start,
            preloads,
            order,
            ..
        } = self;
        writeln!(
            f,
            "{program} {start:?} preloads {preloads:?}, requests {order:?}"
        )
    }
}

impl World {
    /// Path without `..` and without links to directories: the real path of a file, except for
    /// links at its end.
    pub fn canonical(&self, path: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in path.split('/').filter(|part| !part.is_empty()) {
            match part {
                ".." => drop(parts.pop()),
                _ => parts.push(part),
            }
        }
        let mut path = format!("/{}", parts.join("/"));
        while let Some((link, to)) = self
            .links
            .iter()
            .find(|(link, _)| path.starts_with(&format!("{link}/")))
        {
            path = format!("{to}{}", &path[link.len()..]);
        }
        path
    }

    /// The file behind a path, through all links: its path and content.
    pub fn file(&self, path: &str) -> Option<(String, &Content)> {
        let mut path = self.canonical(path);
        for _ in 0..8 {
            let (_, content) = self
                .files
                .iter()
                .find(|(file, _)| self.canonical(file) == path)?;
            match content {
                Content::Link(to) => path = self.canonical(to),
                content => return Some((path, content)),
            }
        }
        None
    }

    /// Arguments of the program.
    pub fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        for path in &self.preloads {
            // A program that loads a truncated library itself ends by SIGBUS.
            if !matches!(self.file(path), Some((_, Content::Truncated))) {
                arguments.push(format!("+{path}"));
            }
        }
        arguments.extend(self.order.iter().cloned());
        arguments
    }

    /// Whether the path is a link without a target.
    pub fn is_dangling(&self, path: &str) -> bool {
        let path = self.canonical(path);
        let entry = (self.files.iter()).find(|(file, _)| self.canonical(file) == path);
        matches!(entry, Some((_, Content::Link(_)))) && self.file(&path).is_none()
    }

    /// Names of a directory's entries.
    pub fn entries(&self, directory: &str) -> BTreeSet<String> {
        let inside = format!("{directory}/");
        self.files
            .iter()
            .map(|(path, _)| self.canonical(path))
            .chain(self.links.iter().map(|(link, _)| link.clone()))
            .filter_map(|path| Some(path.strip_prefix(&inside)?.split('/').next()?.to_owned()))
            .collect()
    }
}

/// Compiler of the parts of worlds, each once.
pub struct Workshop {
    dir: tempfile::TempDir,
    libraries: BTreeMap<Content, PathBuf>,
    programs: Vec<(Config, PathBuf)>,
    system: BTreeSet<PathBuf>,
}

impl Workshop {
    pub fn new() -> Result<Self> {
        Ok(Self {
            dir: gpustub_tests::scratch::scratch()?,
            libraries: BTreeMap::new(),
            programs: Vec::new(),
            system: BTreeSet::new(),
        })
    }

    /// The program with the stubs of this configuration; its arguments name its requests.
    pub fn program(&mut self, config: &Config) -> Result<PathBuf> {
        if let Some((_, program)) = self.programs.iter().find(|(built, _)| built == config) {
            return Ok(program.clone());
        }
        let dir = self.dir.path().join(format!("c{}", self.programs.len()));
        fs::create_dir(&dir)?;
        let mut lists = Vec::new();
        for id in config.stubs.keys() {
            let function = format!("{id}_function");
            let list = list_of([&function, version_function(id), &required(id)]);
            lists.push((format!("{id}.symbols"), list));
        }
        let lists: Vec<(&str, String)> = lists
            .iter()
            .map(|(file, list)| (&file[..], list.clone()))
            .collect();
        let plan = plan_or_fail(&config.text(), &lists, &Machine::X86_64.target())?;
        let stubs = Stubs::write(&dir, &plan, "cc", &[])?;
        let program = dir.join("program");
        let mut command = Command::new("cc");
        command.arg("-I").arg(&stubs.sources);
        command.arg(gpustub_tests::repository().join("tests/programs/search.c"));
        succeed(command.arg(stubs.archive()?).arg("-o").arg(&program))?;
        self.system.extend(system_libraries(&program)?);
        self.programs.push((config.clone(), program.clone()));
        Ok(program)
    }

    /// The file of a content other than a link.
    fn content(&mut self, content: &Content) -> Result<PathBuf> {
        if let Some(file) = self.libraries.get(content) {
            return Ok(file.clone());
        }
        let intact = match content {
            Content::Library { .. } => Vec::new(),
            _ => fs::read(self.content(&Content::Library {
                soname: "libcudart.so.13".to_owned(),
                version: 13000,
                lacks: false,
            })?)?,
        };
        let file = self.dir.path().join(format!("l{}", self.libraries.len()));
        match content {
            Content::Library {
                soname,
                version,
                lacks,
            } => {
                let source = file.with_extension("c");
                fs::write(&source, library_source(soname, *version, *lacks))?;
                let mut command = Command::new("cc");
                command.args(["-shared", "-fPIC", "-nostdlib", "-o"]);
                command.arg(&file).arg(source);
                succeed(command.arg(format!("-Wl,-soname,{soname}")))?;
            }
            Content::WrongMachine => {
                let mut bytes = intact;
                bytes[18] = 183; // e_machine: EM_AARCH64
                fs::write(&file, bytes)?;
            }
            Content::Short => fs::write(&file, &intact[..300])?,
            Content::Truncated => fs::write(&file, &intact[..4200])?,
            Content::Text => fs::write(&file, "INPUT(libsomething.so)\n".repeat(9))?,
            Content::Link(_) => return Err("a link is not a file".into()),
        }
        self.libraries.insert(content.clone(), file.clone());
        Ok(file)
    }

    /// Builds the machine.
    pub fn build(&mut self, world: &World) -> Result<Isolated> {
        let program = self.program(&world.config)?;
        let mut machine = Isolated::new()?;
        if world.start == Start::WithoutProc {
            machine.without_proc();
        }
        for library in &self.system {
            machine.copy(library, library)?;
        }
        machine.copy(&program, Path::new(&world.program))?;
        if world.start == Start::ByLink {
            symlink(&world.program, path_in_directory(&machine, LINK)?)
                .map_err(|e| format!("{LINK}: {e}"))?;
        }
        for (link, to) in &world.links {
            fs::create_dir_all(machine.path(to))?;
            symlink(to, path_in_directory(&machine, link)?).map_err(|e| format!("{link}: {e}"))?;
        }
        for (file, content) in &world.files {
            let path = path_in_directory(&machine, &world.canonical(file))?;
            if path.symlink_metadata().is_ok() {
                continue;
            }
            match content {
                Content::Link(to) => symlink(to, &path)?,
                // A copy: of two links to one file the loader keeps the first.
                content => drop(fs::copy(self.content(content)?, &path)?),
            }
        }
        Ok(machine)
    }

    /// Builds the machine and runs the program.
    pub fn run(&mut self, world: &World) -> Result<Ran> {
        let machine = self.build(world)?;
        let words = world.arguments();
        let mut words: Vec<&str> = words.iter().map(|word| &word[..]).collect();
        let mut program = &world.program[..];
        if let Start::ThroughLoader | Start::ThroughLoaderRelative = world.start {
            let is_relative = world.start == Start::ThroughLoaderRelative;
            let relative = program.trim_start_matches('/');
            words.insert(0, if is_relative { relative } else { program });
            program = "/lib64/ld-linux-x86-64.so.2";
        }
        if world.start == Start::ByLink {
            program = LINK;
        }
        let mut variables = vec![("GPUSTUB_LOG", "json")];
        variables.extend(world.variables.iter().map(|(name, v)| (&name[..], &v[..])));
        machine.run_with(program, &words, &variables)?.success()
    }
}

/// A path on a machine, whose directory is created.
fn path_in_directory(machine: &Isolated, path: &str) -> Result<PathBuf> {
    let path = machine.path(path);
    fs::create_dir_all(path.parent().unwrap_or(&path))?;
    Ok(path)
}

/// Function of a library that `required-functions` may name. One image has one function of a name.
fn required(id: &str) -> String {
    format!("{id}_required")
}

fn version_function(id: &str) -> &'static str {
    match id {
        "cuda" => "cuDriverGetVersion",
        "cudart" => "cudaRuntimeGetVersion",
        "nvrtc" => "nvrtcVersion",
        "opencl" => "clVersion",
        _ => "acmeVersion",
    }
}

fn library_source(soname: &str, version: u32, lacks: bool) -> String {
    let id = soname.trim_start_matches("lib").split('.').next();
    let id = id.unwrap_or_default().to_ascii_lowercase();
    let mut source = format!("int {id}_function(void) {{ return 0; }}\n");
    let function = version_function(&id);
    if version != 0 {
        source += &match &id[..] {
            "nvrtc" => format!(
                "int {function}(int *a, int *b) {{ *a = {}; *b = {}; return 0; }}\n",
                version / 1000,
                version % 1000 / 10
            ),
            _ => format!("int {function}(int *v) {{ *v = {version}; return 0; }}\n"),
        };
    }
    if !lacks {
        source += &format!("int {}(void) {{ return 0; }}\n", required(&id));
    }
    source
}
