//! The `build.rs` helper of gpustub: lazy-loading stubs for GPU libraries.
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
//! The package, and every package that it depends on, may then call these libraries as if they were
//! linked. None of them has to be installed to build the package, and the program also starts
//! without them.
//!
//! # Output
//!
//! ```text
//! OUT_DIR/gpustub/            the generated sources, objects, and gpustub.h
//! OUT_DIR/gpustub/link/       the search path passed to rustc
//!     libgpustub_<package>.a  the stubs of all libraries, and the run time once
//!     libcuda.a               for each stubbed name, an archive without members
//!     libgpustub_<package>.so with `type = "shared"`; also `.link.so` for linkers, and `.api.a`
//! OUT_DIR/<name>.a            a super-archive, of `[archive.<name>]`
//! ```
//!
//! Both halves are needed. The empty `libcuda.a` resolves every `-lcuda` that a dependency emits,
//! before a real `libcuda.so` further down the search path; `static:+whole-archive` then puts
//! the stubs into the link wherever the references are in it.
//!
//! # Errors
//!
//! [`build`] prints errors for cargo and exits. A build script that continues without stubs calls
//! [`Build::try_build`]:
//!
//! ```no_run
//! use gpustub_build::{Build, Directive};
//!
//! match Build::new().try_build() {
//!     Ok(output) => output.directives.iter().for_each(|line| println!("{line}")),
//!     Err(error) if error.code() == Some("missing-compiler") => {
//!         println!("{}", Directive::Warning("no C compiler: built without GPU support".into()));
//!     }
//!     Err(error) => panic!("{error}"),
//! }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod error;

use std::path::PathBuf;

use gpustub_engine::Settings;
#[cfg(feature = "device-link")]
use gpustub_engine::device_link::Delivery;

pub use error::Error;
pub use gpustub_core::directives::Directive;
pub use gpustub_engine::{Env, Output};

/// Builds the stubs that `GpuStub.toml` declares, and prints the directives that link them. An error
/// is printed and ends the build script.
///
/// ```no_run
/// // build.rs
/// gpustub_build::build();
/// ```
pub fn build() {
    Build::new().build();
}

/// Same as [`build`], for a package whose own programs, tests, examples and C libraries link libraries
/// of relocatable CUDA code, of the package or of its direct dependencies: the function device-links
/// the code, and passes the result as link arguments. `GpuStub.toml` may be absent.
///
/// A package without programs calls [`build`]: each of its builds would wait for the device link, which
/// only its tests need. For them `cargo gpustub sync` writes a crate. If such libraries are indirect dependencies, or if only tests need them,
/// `cargo gpustub sync` writes a crate that does the same with [`build_finalizer`].
///
/// ```no_run
/// // build.rs of a program, with `gpustub-build = { version = "0.1", features = ["device-link"] }`
/// gpustub_build::finalize();
/// ```
#[cfg(feature = "device-link")]
pub fn finalize() {
    Build::new().finalize().build();
}

/// The build script of a finalizer crate, which `cargo gpustub sync` writes: the function device-links
/// the code of its direct dependencies, for every program that uses the crate.
///
/// ```no_run
/// // build.rs of the crate `gpustub-final-app`
/// gpustub_build::build_finalizer();
/// ```
#[cfg(feature = "device-link")]
pub fn build_finalizer() {
    Build::new().finalizer_crate().build();
}

/// Settings of a build, for cases in which the defaults do not fit.
///
/// ```no_run
/// use gpustub_build::Build;
///
/// let output = Build::new().manifest_path("gpu/GpuStub.toml").build();
/// // C sources that ask which libraries are available include `gpustub.h`.
/// if let Some(include) = output.include_dir {
///     println!("cargo::metadata=include={}", include.display());
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Build {
    settings: Settings,
}

impl Build {
    /// A build with the defaults: everything comes from the environment that cargo sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the environment of the process. The C compiler's own variables (`CC`, `AR`,
    /// `CFLAGS`) are still read from the process.
    pub fn env(mut self, env: Env) -> Self {
        self.settings.env = env;
        self
    }

    /// Replaces `GpuStub.toml` beside `Cargo.toml`.
    pub fn manifest_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.manifest_path = Some(path.into());
        self
    }

    /// Replaces `OUT_DIR`.
    pub fn out_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.settings.out_dir = Some(dir.into());
        self
    }

    /// Sets the C compiler, overriding `CC`.
    pub fn compiler(mut self, program: impl Into<PathBuf>) -> Self {
        self.settings.compiler = Some(program.into());
        self
    }

    /// Sets the archiver, overriding `AR`.
    pub fn archiver(mut self, program: impl Into<PathBuf>) -> Self {
        self.settings.archiver = Some(program.into());
        self
    }

    /// Adds the device link of [`finalize`].
    #[cfg(feature = "device-link")]
    pub fn finalize(mut self) -> Self {
        self.settings.delivery = Some(Delivery::LinkArgs);
        self
    }

    /// Adds the device link of [`build_finalizer`].
    #[cfg(feature = "device-link")]
    pub fn finalizer_crate(mut self) -> Self {
        self.settings.delivery = Some(Delivery::Crate);
        self
    }

    /// Limits the build to this declared super-archive; several calls name several. Default: all. A
    /// super-archive that requires a disabled cargo feature is not built.
    #[cfg(feature = "archive")]
    pub fn archive(mut self, name: impl Into<String>) -> Self {
        self.settings.archives.push(name.into());
        self
    }

    /// Builds everything, prints the directives for cargo, and returns the products. An error is
    /// printed and ends the process with status 1.
    pub fn build(self) -> Output {
        match self.try_build() {
            Ok(output) => {
                for directive in &output.directives {
                    println!("{directive}");
                }
                output
            }
            Err(error) => {
                // One line per message: cargo's syntax has no line breaks.
                for line in error.to_string().lines() {
                    println!("{}", Directive::Error(line.to_owned()));
                }
                std::process::exit(1)
            }
        }
    }

    /// Builds everything. Prints nothing: the directives are in the result.
    ///
    /// # Errors
    ///
    /// Errors in `GpuStub.toml`, of the tools and of the file system. [`Error::code`] identifies them:
    /// `missing-compiler` and `compiler-error` of the C compiler, `unsupported-target`, `io-error`, the
    /// codes of manifests such as `unknown-key`. `cargo gpustub explain --list` prints all.
    pub fn try_build(self) -> Result<Output, Error> {
        gpustub_engine::build(&self.settings).map_err(Error::new)
    }
}
