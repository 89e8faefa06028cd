//! A package for the library calls of a build script.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_build::{Build, Env, Output};

use crate::tools::host;

/// A package to build, in an empty directory for one test.
pub struct Package {
    pub dir: PathBuf,
    variables: Vec<(String, OsString)>,
}

impl Package {
    pub fn new(name: &str, manifest: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(env!("CARGO_CRATE_NAME"))
            .join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("GpuStub.toml"), manifest).unwrap();
        let mut package = Self {
            dir: dir.clone(),
            variables: Vec::new(),
        };
        let triple = host();
        let arch = triple.split('-').next().unwrap().to_owned();
        for (name, value) in [
            ("CARGO_MANIFEST_DIR", dir.as_os_str().to_owned()),
            ("CARGO_PKG_NAME", "my-package".into()),
            ("OUT_DIR", dir.join("out").into()),
            ("TARGET", triple.clone().into()),
            ("HOST", triple.into()),
            ("CARGO_CFG_TARGET_ARCH", arch.into()),
            ("CARGO_CFG_TARGET_OS", "linux".into()),
            ("CARGO_CFG_TARGET_ENV", "gnu".into()),
        ] {
            package.set(name, value);
        }
        package
    }

    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.retain(|(n, _)| n != name);
        self.variables.push((name.to_owned(), value.into()));
    }

    pub fn build(&self) -> Build {
        Build::new().env(Env::from_iter(self.variables.clone()))
    }

    pub fn output(&self) -> Output {
        self.build().try_build().unwrap()
    }

    pub fn error(&self) -> String {
        self.build().try_build().unwrap_err().to_string()
    }
}
