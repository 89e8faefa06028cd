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
mod input;
mod stubs;
// For cargo-gpustub: no part of what this crate promises.
#[doc(hidden)]
pub mod toolchain;

use std::path::{Path, PathBuf};

#[cfg(not(all(feature = "archive", feature = "device-link")))]
use gpustub_core::diag::MISSING_BUILD_FEATURE;
use gpustub_core::target::Target;

pub use env::Env;
pub use error::Error;
#[doc(hidden)]
pub use files::write_sources;
pub use gpustub_core::directives::Directive;
#[cfg(not(all(feature = "archive", feature = "device-link")))]
use input::Input;
#[cfg(feature = "device-link")]
use toolchain::Linker;
use toolchain::Toolchain;

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

    /// Says that what the table declares is not made without the feature, which is called as the table.
    #[cfg(not(all(feature = "archive", feature = "device-link")))]
    fn needs_feature(table: &str, declared: &[String]) -> Result<(), Error> {
        let Some(first) = declared.first() else {
            return Ok(());
        };
        Err(Error::new(
            &MISSING_BUILD_FEATURE,
            format!("[{table}.{first}] needs the feature `{table}` of gpustub-build"),
        )
        .help(format!(
            "in Cargo.toml: [build-dependencies] gpustub-build = {{ version = \"0.1\", \
             features = [\"{table}\"] }}; `cargo gpustub sync` writes it",
        )))
    }

    #[cfg(not(feature = "device-link"))]
    fn device_link(&self, input: &Input, _: &mut Output) -> Result<(), Error> {
        Self::needs_feature("device-link", &input.manifest.device_link_names)
    }

    #[cfg(not(feature = "archive"))]
    fn archives(&self, input: &Input, _: &mut Output) -> Result<(), Error> {
        Self::needs_feature("archive", &input.manifest.archive_names)
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
