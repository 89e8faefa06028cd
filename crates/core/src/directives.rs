//! Directives of a build script to cargo, as ordered values.

use std::fmt;

/// One line for cargo (two-colon form, cargo 1.77; `error` since 1.84).
///
/// ```
/// use gpustub_core::directives::Directive;
///
/// let line = Directive::RerunIfChanged("GpuStub.toml".into());
/// assert_eq!(line.to_string(), "cargo::rerun-if-changed=GpuStub.toml");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directive {
    /// `rerun-if-changed`.
    RerunIfChanged(String),
    /// `rerun-if-env-changed`.
    RerunIfEnvChanged(String),
    /// `rustc-link-search=native=…`.
    LinkSearch(String),
    /// `rustc-link-lib=KIND=NAME`, with the kind and its modifiers as given.
    LinkLib(String, String),
    /// `rustc-link-arg`.
    LinkArg(String),
    /// `rustc-env=NAME=VALUE`.
    Env(String, String),
    /// `rustc-cfg`.
    Cfg(String),
    /// `rustc-check-cfg`.
    CheckCfg(String),
    /// `metadata=KEY=VALUE`.
    Metadata(String, String),
    /// `warning`.
    Warning(String),
    /// `error`.
    Error(String),
}

impl fmt::Display for Directive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RerunIfChanged(path) => write!(f, "cargo::rerun-if-changed={path}"),
            Self::RerunIfEnvChanged(name) => write!(f, "cargo::rerun-if-env-changed={name}"),
            Self::LinkSearch(dir) => write!(f, "cargo::rustc-link-search=native={dir}"),
            Self::LinkLib(kind, name) => write!(f, "cargo::rustc-link-lib={kind}={name}"),
            Self::LinkArg(arg) => write!(f, "cargo::rustc-link-arg={arg}"),
            Self::Env(name, value) => write!(f, "cargo::rustc-env={name}={value}"),
            Self::Cfg(cfg) => write!(f, "cargo::rustc-cfg={cfg}"),
            Self::CheckCfg(cfg) => write!(f, "cargo::rustc-check-cfg={cfg}"),
            Self::Metadata(key, value) => write!(f, "cargo::metadata={key}={value}"),
            Self::Warning(text) => write!(f, "cargo::warning={text}"),
            Self::Error(text) => write!(f, "cargo::error={text}"),
        }
    }
}
