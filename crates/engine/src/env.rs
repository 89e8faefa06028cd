//! Environment variables: the only module of this crate that reads them.
//!
//! Every variable that is read is recorded, and becomes a `rerun-if-env-changed` line. An [`Env`]
//! may also be made from given variables, so that other code does not need the process's own.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{INVALID_VALUE, IO_ERROR};
use gpustub_core::directives::Directive;
use gpustub_core::target::Target;

use crate::error::Error;

/// Environment variables, and the names of those that were read.
///
/// ```
/// use gpustub_engine::Env;
///
/// let env = Env::from_iter([("TARGET", "x86_64-unknown-linux-gnu")]);
/// assert_eq!(env.get("TARGET").unwrap(), "x86_64-unknown-linux-gnu");
/// assert_eq!(env.get("CUDA_HOME"), None);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Env {
    /// `None`: the environment of the process.
    variables: Option<ByName<OsString>>,
    names_read: RefCell<ByName<()>>,
}

/// Creates an environment with just these variables.
impl<K: Into<String>, V: Into<OsString>> FromIterator<(K, V)> for Env {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        let variables = variables
            .into_iter()
            .map(|(k, v)| (k.into(), v.into()))
            .collect();
        Self {
            variables: Some(variables),
            names_read: RefCell::default(),
        }
    }
}

impl Env {
    /// The environment of this process.
    pub fn from_process() -> Self {
        Self::default()
    }

    /// Value of a variable. The name is recorded.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.rerun_if_env_changed(name);
        self.peek(name)
    }

    /// Value of a variable whose change must not cause a rebuild: the `PATH` of a tool differs in
    /// every editor and terminal.
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that may read the environment"
    )]
    pub(crate) fn peek(&self, name: &str) -> Option<OsString> {
        match &self.variables {
            Some(variables) => variables.get(name).cloned(),
            None => std::env::var_os(name),
        }
    }

    /// Values that direct dependencies published under `key`, by variable, sorted: `DEP_<LINKS>_<KEY>`.
    /// Cargo runs the script again when one of them changes, so that no line is needed.
    #[cfg(feature = "device-link")]
    #[allow(
        clippy::disallowed_methods,
        reason = "the one place that may read the environment"
    )]
    pub(crate) fn dependency_metadata(&self, key: &str) -> ByName<OsString> {
        let suffix = format!("_{key}");
        let mut metadata = ByName::new();
        let mut add = |name: &str, value: &OsString| {
            if name.starts_with("DEP_") && name.ends_with(&suffix) {
                metadata.insert(name, value.clone());
            }
        };
        match &self.variables {
            Some(variables) => {
                for (name, value) in variables {
                    add(name, value);
                }
            }
            None => {
                for (name, value) in std::env::vars_os() {
                    add(&name.to_string_lossy(), &value);
                }
            }
        }
        metadata
    }

    /// Records a variable that another library reads for this crate.
    pub fn rerun_if_env_changed(&self, name: &str) {
        self.names_read.borrow_mut().insert(name, ());
    }

    /// A variable that cargo always sets, as text.
    pub(crate) fn cargo_text(&self, name: &str) -> Result<String, Error> {
        let Some(value) = self.get(name) else {
            return Err(Error::unset(name));
        };
        value.into_string().map_err(|value| {
            Error::new(&IO_ERROR, format!("{name} is not valid UTF-8: {}", value.to_string_lossy()))
                .help("cargo reads a build script's lines as UTF-8: move the directory, or set CARGO_TARGET_DIR to another")
        })
    }

    /// The target that cargo builds for.
    pub(crate) fn target(&self) -> Result<Target, Error> {
        let features = self.text_or_empty("CARGO_CFG_TARGET_FEATURE");
        Ok(Target {
            triple: self.cargo_text("TARGET")?,
            arch: self.cargo_text("CARGO_CFG_TARGET_ARCH")?,
            os: self.cargo_text("CARGO_CFG_TARGET_OS")?,
            env: self.text_or_empty("CARGO_CFG_TARGET_ENV"), // empty on FreeBSD
            crt_static: self.links_libc_statically(&features)?,
        })
    }

    fn text_or_empty(&self, name: &str) -> String {
        self.get(name)
            .and_then(|value| value.into_string().ok())
            .unwrap_or_default()
    }

    /// Whether libc is linked statically. Cargo reports the feature where flags request it, but not the default of
    /// musl targets: it queries rustc for proc macros as well, which are never static (`Session::crt_static` of
    /// rustc). So rustc is asked for programs.
    fn links_libc_statically(&self, features: &str) -> Result<bool, Error> {
        if features.split(',').any(|feature| feature == "crt-static") {
            return Ok(true);
        }
        let is_musl = self.get("CARGO_CFG_TARGET_ENV") == Some("musl".into());
        let Some(rustc) = self.get("RUSTC").filter(|_| is_musl) else {
            return Ok(false);
        };
        let rustflags = self.get("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
        let output = Command::new(&rustc)
            .args(
                rustflags
                    .to_string_lossy()
                    .split('\x1f')
                    .filter(|flag| !flag.is_empty()),
            )
            .args(["--print=cfg", "--target", &self.cargo_text("TARGET")?])
            .output()
            .map_err(|e| Error::io("run", Path::new(&rustc), &e))?;
        let cfg = String::from_utf8_lossy(&output.stdout);
        Ok(cfg
            .lines()
            .any(|line| line == "target_feature=\"crt-static\""))
    }

    /// Whether this feature of the package is enabled. Cargo upper-cases the names and writes `_`
    /// for `-` (cargo reference, "Environment variables").
    pub(crate) fn has_feature(&self, feature: &str) -> bool {
        let name = feature.to_uppercase().replace("-", "_");
        self.get(&format!("CARGO_FEATURE_{name}")).is_some()
    }

    /// Whether a variable of the user that takes `on` and `off` is `off`. `help` says what both do.
    pub(crate) fn is_off(&self, name: &str, help: &str) -> Result<bool, Error> {
        let value = self.get(name).unwrap_or_default();
        match value.to_string_lossy().as_ref() {
            "" | "on" => Ok(false),
            "off" => Ok(true),
            unknown => {
                let message =
                    format!("unknown value of the environment variable {name}: {unknown:?}");
                Err(Error::new(&INVALID_VALUE, message).help(help))
            }
        }
    }

    /// A line for each variable that was read, sorted. Variables that cargo itself sets need none:
    /// a change of them is another build, and the line would compare the user's variable of that
    /// name instead.
    pub(crate) fn rerun_lines(&self) -> Vec<Directive> {
        let mut lines = Vec::new();
        for (name, ()) in self.names_read.borrow().iter() {
            if !is_set_by_cargo(name) {
                lines.push(Directive::RerunIfEnvChanged(name.clone()));
            }
        }
        lines
    }
}

fn is_set_by_cargo(name: &str) -> bool {
    name.starts_with("CARGO_")
        || matches!(
            name,
            "OUT_DIR"
                | "TARGET"
                | "HOST"
                | "OPT_LEVEL"
                | "DEBUG"
                | "NUM_JOBS"
                | "RUSTC"
                | "RUSTC_WRAPPER"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unset_variables_are_tracked() {
        let env = Env::from_iter([("CC", "clang"), ("TARGET", "x")]);
        assert_eq!(env.get("CC").unwrap(), "clang");
        assert_eq!(env.get("AR"), None);
        assert_eq!(env.cargo_text("TARGET").unwrap(), "x");
        env.rerun_if_env_changed("CFLAGS");
        let lines: Vec<String> = env.rerun_lines().iter().map(ToString::to_string).collect();
        let expected = ["AR", "CC", "CFLAGS"].map(|n| format!("cargo::rerun-if-env-changed={n}"));
        assert_eq!(lines, expected);
    }

    #[test]
    fn features_are_spelt_as_cargo_spells_them() {
        let env = Env::from_iter([("CARGO_FEATURE_GPU_CUDA", "1")]);
        assert!(env.has_feature("gpu-cuda"));
        assert!(env.has_feature("gpu_cuda"));
        assert!(!env.has_feature("gpu"));
    }

    #[test]
    fn a_missing_variable_of_cargo_is_named() {
        let error = Env::from_iter([("TARGET", "x")]).target().unwrap_err();
        assert!(
            error
                .to_string()
                .contains("CARGO_CFG_TARGET_ARCH is not set"),
            "{error}"
        );
    }

    #[test]
    fn crt_static_is_one_of_the_target_features() {
        let env = |features: &str| {
            Env::from_iter([
                ("TARGET", "x86_64-unknown-linux-musl"),
                ("CARGO_CFG_TARGET_ARCH", "x86_64"),
                ("CARGO_CFG_TARGET_OS", "linux"),
                ("CARGO_CFG_TARGET_FEATURE", features),
            ])
        };
        assert!(env("crt-static,fxsr").target().unwrap().crt_static);
        assert!(!env("fxsr,sse2").target().unwrap().crt_static);
    }

    /// rustc knows targets whose standard library is not installed.
    #[test]
    fn crt_static_is_the_default_of_musl_targets() {
        let is_static = |flags: &str, environment: &str| {
            let env = Env::from_iter([
                ("TARGET", "x86_64-unknown-linux-musl"),
                ("CARGO_CFG_TARGET_ARCH", "x86_64"),
                ("CARGO_CFG_TARGET_OS", "linux"),
                ("CARGO_CFG_TARGET_ENV", environment),
                ("CARGO_CFG_TARGET_FEATURE", "fxsr,sse2"),
                ("CARGO_ENCODED_RUSTFLAGS", flags),
                ("RUSTC", "rustc"),
            ]);
            assert!(env.rerun_lines().is_empty());
            env.target().unwrap().crt_static
        };
        assert!(is_static("", "musl"));
        assert!(is_static("-Cdebuginfo=1\x1f--cfg\x1fx", "musl"));
        assert!(!is_static("-C\x1ftarget-feature=-crt-static", "musl"));
        assert!(!is_static("", "gnu"));
    }
}
