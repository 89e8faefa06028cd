//! The `build.rs` helper of gpustub: stand-ins for GPU libraries, found at run time.
//!
//! A package declares its GPU libraries in `GpuStub.toml` beside its `Cargo.toml`. Its build
//! script is one line:
//!
//! ```no_run
//! // fn main() {
//! gpustub_build::build();
//! // }
//! ```
//!
//! The package, and whatever it depends on, may then call these libraries as if they were linked.
//! Nothing of them has to be installed to build it, and the program starts without them too.
//!
//! # What is written where
//!
//! ```text
//! OUT_DIR/gpustub/            the generated sources, objects, and gpustub.h
//! OUT_DIR/gpustub/link/       the search path that rustc is given
//!     libgpustub_<package>.a  the stubs of all libraries, and the run time once
//!     libcuda.a               for each stubbed name, an archive without members
//! OUT_DIR/<name>.a            a super-archive, of `[archive.<name>]`
//! ```
//!
//! Both halves are needed. The empty `libcuda.a` answers every `-lcuda` that a dependency emits,
//! before a real `libcuda.so` further down the search path can; `static:+whole-archive` then puts
//! the stubs into the link wherever the references stand in it.

// For cargo-gpustub, too: no part of what this crate promises.
#[cfg(feature = "archive")]
#[doc(hidden)]
pub mod archive;
// For cargo-gpustub, too: no part of what this crate promises.
#[cfg(feature = "device-link")]
#[doc(hidden)]
pub mod device_link;
mod env;
mod error;
mod files;
// For cargo-gpustub: no part of what this crate promises.
#[doc(hidden)]
pub mod toolchain;

use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
#[cfg(not(all(feature = "archive", feature = "device-link")))]
use gpustub_core::diag::FEATURE_OFF;
use gpustub_core::diag::{BAD_VALUE, FILE_ERROR, has_errors};
use gpustub_core::manifest::{Form, Manifest, Optional};
use gpustub_core::plan::{Inputs, Plan, beside, plan};
use gpustub_core::sources::render;
use gpustub_core::target::Target;

#[cfg(feature = "device-link")]
use device_link::Stubs;
pub use env::Env;
pub use error::Error;
#[doc(hidden)]
pub use files::write_sources;
pub use gpustub_core::directives::Directive;
#[cfg(feature = "device-link")]
use toolchain::Linker;
use toolchain::{Index, Toolchain};

/// Builds the stubs that `GpuStub.toml` declares, and tells cargo to link them. On an error it
/// says what is wrong and ends the build script.
pub fn build() {
    Build::new().build();
}

/// As [`build`], for a package whose direct dependencies have libraries of relocatable CUDA code,
/// and whose own programs, tests, examples and C libraries are to be linked with them: it links the
/// device code, and passes the result as link arguments. `GpuStub.toml` may be absent.
///
/// Where such libraries stand behind crates without any, or where tests alone need them,
/// `cargo gpustub sync` writes a crate that does the same with [`finalizer`].
#[cfg(feature = "device-link")]
pub fn finalize() {
    Build::new().finalize().build();
}

/// The build script of a crate that `cargo gpustub sync` has written: it links the device code of
/// its direct dependencies, and whatever program uses the crate has it.
#[cfg(feature = "device-link")]
pub fn finalizer() {
    Build::new().finalizer().build();
}

/// Settings of a build, for the rare case that the defaults do not fit.
#[derive(Debug, Clone, Default)]
pub struct Build {
    env: Env,
    manifest: Option<PathBuf>,
    out_dir: Option<PathBuf>,
    compiler: Option<PathBuf>,
    archiver: Option<PathBuf>,
    #[cfg(feature = "device-link")]
    carrier: Option<device_link::Carrier>,
    #[cfg(feature = "archive")]
    archives: Vec<String>,
}

/// What a build made. Nothing has been printed yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// What to tell cargo, in this order.
    pub directives: Vec<Directive>,
    /// The ids of the libraries that have stubs now, sorted.
    pub stubs: Vec<String>,
    /// The archive or shared library with the stubs; `None` if there are none.
    pub library: Option<PathBuf>,
    /// The folder with `gpustub.h`; `None` if nothing was generated.
    pub include: Option<PathBuf>,
    /// The super-archives that are there now, sorted.
    pub archives: Vec<PathBuf>,
}

/// What a package has declared that has no `GpuStub.toml`, where it may have none.
const EMPTY_MANIFEST: &str = "schema = 1\n";

/// The whole of an archive without members: the format's magic (ar(5)).
const EMPTY_ARCHIVE: &str = "!<arch>\n";

/// What the user wrote, and what follows of it.
struct Input {
    #[cfg(any(feature = "archive", feature = "device-link"))]
    path: PathBuf,
    manifest: Manifest,
    /// The files that diagnostics point into: `GpuStub.toml`, and symbol lists.
    #[cfg(any(feature = "archive", feature = "device-link"))]
    texts: ByName<String>,
    plan: Plan,
}

impl Input {
    /// `GpuStub.toml` itself.
    #[cfg(feature = "device-link")]
    fn written(&self) -> error::Written<'_> {
        let name = &self.manifest.file;
        let text = self.texts.get(name).map_or("", String::as_str);
        error::Written { name, text }
    }
}

impl Build {
    /// A build with the defaults: all is taken from the environment that cargo sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Another environment than the process's own. The C compiler's own variables (`CC`, `AR`,
    /// `CFLAGS`) are still read from the process.
    pub fn env(mut self, env: Env) -> Self {
        self.env = env;
        self
    }

    /// Another file than `GpuStub.toml` beside `Cargo.toml`.
    pub fn manifest_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.manifest = Some(path.into());
        self
    }

    /// Another folder than `OUT_DIR`.
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.out_dir = Some(dir.into());
        self
    }

    /// This C compiler, whatever `CC` says.
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.compiler = Some(program.into());
        self
    }

    /// This archiver, whatever `AR` says.
    pub fn archiver(mut self, program: impl Into<PathBuf>) -> Self {
        self.archiver = Some(program.into());
        self
    }

    /// See [`finalize`].
    #[cfg(feature = "device-link")]
    pub fn finalize(mut self) -> Self {
        self.carrier = Some(device_link::Carrier::LinkArgs);
        self
    }

    /// See [`finalizer`].
    #[cfg(feature = "device-link")]
    pub fn finalizer(mut self) -> Self {
        self.carrier = Some(device_link::Carrier::Crate);
        self
    }

    /// Of the declared super-archives only this one; several calls name several. Default: all. One that
    /// follows a cargo feature which is off is not built.
    #[cfg(feature = "archive")]
    pub fn archive(mut self, name: impl Into<String>) -> Self {
        self.archives.push(name.into());
        self
    }

    /// Builds the stubs, prints what cargo has to know, and returns what was made. On an error it
    /// says what is wrong and ends the process with status 1.
    pub fn build(self) -> Output {
        match self.try_build() {
            Ok(output) => {
                for directive in &output.directives {
                    println!("{directive}");
                }
                output
            }
            Err(error) => {
                // Cargo takes one line a message.
                for line in error.to_string().lines() {
                    println!("{}", Directive::Error(line.to_owned()));
                }
                std::process::exit(1)
            }
        }
    }

    /// Builds the stubs. Nothing is printed: the directives are in the result.
    pub fn try_build(self) -> Result<Output, Error> {
        let mut output = Output {
            directives: Vec::new(),
            stubs: Vec::new(),
            library: None,
            include: None,
            archives: Vec::new(),
        };

        // Nothing of the user's tree matters where the documentation alone is built: it must come
        // out for every target, also those that have no stubs.
        let docs_only = self.env.get("DOCS_RS").is_some();
        let input = if docs_only {
            None
        } else {
            Some(self.read(&mut output.directives)?)
        };
        if let Some(input) = input {
            let plan = &input.plan;
            output.stubs = plan
                .libraries
                .iter()
                .filter(|l| l.stubbed)
                .map(|l| l.id.clone())
                .collect();
            if !output.stubs.is_empty() {
                self.generate(plan, &mut output)?;
            }
            self.device_link(&input, &mut output)?;
            self.archives(&input, &mut output)?;
        }
        #[cfg(feature = "archive")]
        if docs_only {
            self.empty_archives(&mut output)?;
        }
        // After everything has been read.
        output.directives.splice(0..0, self.env.rerun_lines());
        Ok(output)
    }

    /// `GpuStub.toml`, and how messages call it.
    fn manifest_file(&self) -> Result<(PathBuf, String), Error> {
        if let Some(path) = &self.manifest {
            return Ok((path.clone(), path.display().to_string()));
        }
        let Some(dir) = self.env.get("CARGO_MANIFEST_DIR") else {
            return Err(Error::unset("CARGO_MANIFEST_DIR"));
        };
        let path = Path::new(&dir).join("GpuStub.toml");
        Ok((path, "GpuStub.toml".to_owned()))
    }

    /// Reads what the user wrote, and plans.
    fn read(&self, directives: &mut Vec<Directive>) -> Result<Input, Error> {
        let (path, name) = self.manifest_file()?;
        let text = std::fs::read_to_string(&path).or_else(|e| match e.kind() {
            std::io::ErrorKind::NotFound if self.may_lack_manifest() => {
                Ok(EMPTY_MANIFEST.to_owned())
            }
            _ => Err(e),
        });
        let text = text.map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                Error::new(&FILE_ERROR, format!("there is no {}", path.display())).help(
                    "`cargo gpustub init` writes one, `cargo gpustub add cudart` adds a library",
                )
            }
            _ => Error::io("read", &path, &e),
        })?;
        // To cargo a file that is not there is one that has changed.
        let watched = if path.exists() { &name } else { "Cargo.toml" };
        directives.push(Directive::RerunIfChanged(watched.to_owned()));

        let (manifest, mut found) = Manifest::parse(&name, &text);
        let mut texts = ByName::from_iter([(name.clone(), text)]);
        let mut inputs = Inputs {
            features: Some(Vec::new()),
            ..Inputs::default()
        };
        for stub in &manifest.stubs {
            if let Optional::Feature(feature) = &stub.optional {
                if self.env.has_feature(feature) {
                    inputs
                        .features
                        .get_or_insert_default()
                        .push(feature.clone());
                }
            }
            let Some(symbols) = stub.custom.symbols.as_ref().map(|s| &s.value) else {
                continue;
            };
            let file = path.parent().unwrap_or(Path::new("")).join(symbols);
            directives.push(Directive::RerunIfChanged(beside(&name, symbols)));
            let list = match std::fs::read_to_string(&file) {
                Ok(list) => list,
                // The planner knows who asks for it.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Error::io("read the symbol list", &file, &e)),
            };
            texts.insert(&beside(&name, symbols), list.clone());
            inputs.symbol_files.insert(symbols, list);
        }

        let (plan, more) = plan(&manifest, &self.env.target()?, &inputs);
        found.extend(more);
        if has_errors(&found) {
            return Err(Error::diagnostics(&found, &texts));
        }
        directives.extend(error::warnings(&found, &texts));
        Ok(Input {
            #[cfg(any(feature = "archive", feature = "device-link"))]
            path,
            manifest,
            #[cfg(any(feature = "archive", feature = "device-link"))]
            texts,
            plan,
        })
    }

    /// Writes, compiles and archives (or links) the stubs of a plan that has some.
    fn generate(&self, plan: &Plan, output: &mut Output) -> Result<(), Error> {
        let dir = self.dir()?;
        let link = dir.join("link");
        let link_text = files::text(&link)?;
        let stubbed = || plan.libraries.iter().filter(|l| l.stubbed);
        let shared = stubbed().any(|l| l.form == Form::Shared);
        if shared && stubbed().any(|l| l.form == Form::Static) {
            return Err(Error::new(
                &BAD_VALUE,
                "some stubs of this package are static and some are shared",
            )
            .help("give every [stub] table of this package the same `form`"));
        }

        write_sources(&dir, &render(plan))?;
        let tools = self.toolchain(&plan.target, &dir)?;

        let name = link_name(&self.env.cargo_text("CARGO_PKG_NAME")?);
        let (kind, file, stand_in) = match shared {
            // A linker script. It is named .a because the loader, unlike linkers, would trip over
            // a text file named libcuda.so when cargo puts this folder into LD_LIBRARY_PATH.
            true => (
                "dylib",
                format!("lib{name}.so"),
                format!("INPUT(-l{name})\n"),
            ),
            false => (
                "static:+whole-archive",
                format!("lib{name}.a"),
                EMPTY_ARCHIVE.to_owned(),
            ),
        };
        let mut files = vec![file.clone()];
        for name in stubbed().flat_map(|l| &l.link_names) {
            let stand_in_file = format!("lib{name}.a");
            files::write_if_changed(&link.join(&stand_in_file), stand_in.as_bytes())?;
            files.push(stand_in_file);
        }
        // A stand-in of a library that has no stubs any more would hide the real one.
        files::remove_others(&link, &files)?;
        let library = link.join(file);
        match shared {
            true => tools.shared_library(&dir, &library)?,
            false => tools.static_library(&dir, &library, Index::Omit)?,
        }

        output.directives.push(Directive::LinkSearch(link_text));
        output
            .directives
            .push(Directive::LinkLib(kind.to_owned(), name.clone()));
        if shared {
            // bfd drops a library (--as-needed) when only a crate further down the command line
            // uses it; this is the last word of the command line.
            output
                .directives
                .push(Directive::LinkArg(format!("-l{name}")));
        }
        output.library = Some(library);
        output.include = Some(dir);
        Ok(())
    }

    /// Whether the build has something to do without a `GpuStub.toml`.
    fn may_lack_manifest(&self) -> bool {
        #[cfg(feature = "device-link")]
        return self.carrier.is_some();
        #[cfg(not(feature = "device-link"))]
        false
    }

    /// Builds the libraries of relocatable CUDA code.
    #[cfg(feature = "device-link")]
    fn device_link(&self, input: &Input, output: &mut Output) -> Result<(), Error> {
        let manifest = &input.manifest;
        // For rustc, also where they are left out.
        for name in &manifest.device_link_names {
            let cfg = format!("cfg(gpustub_device_link, values({name:?}))");
            output.directives.push(Directive::CheckCfg(cfg));
        }
        let mut declared = Vec::new();
        let mut off = Vec::new();
        for library in &manifest.device_links {
            match &library.optional {
                Optional::Feature(feature) if !self.env.has_feature(feature) => {
                    off.push((library.name.value.as_str(), feature.as_str()));
                }
                _ => declared.push(library),
            }
        }
        output
            .directives
            .extend(device_link::tell_off(&self.env, &off));
        if declared.is_empty() && self.carrier.is_none() {
            return Ok(());
        }
        let dir = self.dir()?;
        let target = self.env.target()?;
        let context = device_link::Context {
            env: &self.env,
            manifest: input.written(),
            package: input.path.parent().unwrap_or(Path::new("")),
            out: &dir,
            off: &off,
            stubs: match manifest.stubs.iter().find(|s| s.id.value == "cudart") {
                None => Stubs::None,
                Some(_) if !output.stubs.iter().any(|id| id == "cudart") => Stubs::Elsewhere,
                Some(stub) => match &output.library {
                    Some(path) if stub.form == Form::Shared => Stubs::Shared(path.clone()),
                    _ => Stubs::Static,
                },
            },
            tools: &|| self.toolchain(&target, &dir),
            linker: &|| self.linker(&target, &dir),
        };
        let closure = device_link::libraries(&context, &declared, &mut output.directives)?;
        let Some(carrier) = self.carrier else {
            return Ok(());
        };
        device_link::link(&context, &closure, carrier, &mut output.directives)
    }

    /// Says that libraries of relocatable CUDA code are not compiled without the feature.
    #[cfg(not(feature = "device-link"))]
    fn device_link(&self, input: &Input, _: &mut Output) -> Result<(), Error> {
        let Some(first) = input.manifest.device_link_names.first() else {
            return Ok(());
        };
        Err(Error::new(
            &FEATURE_OFF,
            format!("[device-link.{first}] needs the feature `device-link` of gpustub-build"),
        )
        .help(
            "in Cargo.toml: [build-dependencies] gpustub-build = { version = \"0.1\", \
             features = [\"device-link\"] }; `cargo gpustub sync` writes it",
        ))
    }

    /// Says that super-archives are not written without the feature.
    #[cfg(not(feature = "archive"))]
    fn archives(&self, input: &Input, _: &mut Output) -> Result<(), Error> {
        let Some(first) = input.manifest.archive_names.first() else {
            return Ok(());
        };
        Err(Error::new(
            &FEATURE_OFF,
            format!("[archive.{first}] needs the feature `archive` of gpustub-build"),
        )
        .help(
            "in Cargo.toml: [build-dependencies] gpustub-build = { version = \"0.1\", \
             features = [\"archive\"] }; `cargo gpustub sync` writes it",
        ))
    }

    fn made_in(&self) -> Result<PathBuf, Error> {
        Ok(match &self.out_dir {
            Some(dir) => dir.clone(),
            None => self.env.cargo_text("OUT_DIR")?.into(),
        })
    }

    /// Where everything is made, but for super-archives.
    fn dir(&self) -> Result<PathBuf, Error> {
        Ok(self.made_in()?.join("gpustub"))
    }

    /// What links C++ code.
    #[cfg(feature = "device-link")]
    fn linker(&self, target: &Target, scratch: &Path) -> Result<Linker, Error> {
        let host = self.env.cargo_text("HOST")?;
        for variable in toolchain::variables_of(&["CXX", "CXXFLAGS"], &target.triple, &host) {
            self.env.remember(&variable);
        }
        Linker::find(target, &host, scratch)
    }

    fn toolchain(&self, target: &Target, scratch: &Path) -> Result<Toolchain, Error> {
        let host = self.env.cargo_text("HOST")?;
        for variable in toolchain::variables(&target.triple, &host) {
            self.env.remember(&variable);
        }
        Toolchain::find(
            target,
            &host,
            scratch,
            self.compiler.as_deref(),
            self.archiver.as_deref(),
        )
    }
}

/// The name after `-l` of a package's stubs. Other software finds libraries in a process by parts
/// of their file names, such as `libcudart.`; none of them fits this one. The package is in it
/// because rustc unpacks the archives that crates carry into one folder: of two with one name the
/// second would replace the first, and the link would fail without saying why.
fn link_name(package: &str) -> String {
    format!("gpustub_{}", package.replace('-', "_"))
}
