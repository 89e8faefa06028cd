//! What a package with RDC libraries tells the packages that depend on it: a file, whose path goes
//! to their build scripts as `DEP_<LINKS>_GPUSTUB_DEVICE_LINK`.
//!
//! It names the package's own libraries and all that these require, so that a build script that
//! sees only its direct dependencies knows the whole closure.

use std::path::{Path, PathBuf};

use gpustub_core::diag::IO_ERROR;

use crate::Error;
use crate::files::text;

/// The key of the metadata; cargo upper-cases it and writes `_` for `-`.
pub(crate) const KEY: &str = "GPUSTUB_DEVICE_LINK";

/// The first line: files of another version are refused.
const FIRST_LINE: &str = "gpustub-device-link 1";

/// Stubs of the CUDA runtime, as a package has them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stubs {
    /// None: the toolkit's runtime.
    #[default]
    None,
    /// Those that another package provides.
    Elsewhere,
    /// Its own, hidden in the program.
    Static,
    /// Its own, in this shared library.
    Shared(PathBuf),
}

impl Stubs {
    fn line(&self) -> Result<String, Error> {
        Ok(match self {
            Self::None => "none".to_owned(),
            Self::Elsewhere => "elsewhere".to_owned(),
            Self::Static => "static".to_owned(),
            Self::Shared(path) => format!("shared {}", text(path)?),
        })
    }

    fn parse(value: &str) -> Self {
        match value.split_once(' ') {
            Some(("shared", path)) => Self::Shared(path.into()),
            _ if value == "elsewhere" => Self::Elsewhere,
            _ if value == "static" => Self::Static,
            _ => Self::None,
        }
    }
}

/// One RDC library as its dependents need it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Library {
    pub name: String,
    /// Name and version of the package that declares it.
    pub package: String,
    /// `false`: it was left out, as there is no nvcc.
    pub built: bool,
    /// The archive, of objects only.
    pub archive: PathBuf,
    /// The archive's objects by name, each with the source that it was made from.
    pub sources: Vec<(String, PathBuf)>,
    pub archs: Vec<String>,
    pub cudart: String,
    /// What its package uses of the CUDA runtime's stubs.
    pub stubs: Stubs,
    pub form: String,
    /// Shared form: the library with the objects, and the one with the device link.
    pub middle: Option<PathBuf>,
    pub last: Option<PathBuf>,
    /// For the sources of dependents.
    pub include: Vec<PathBuf>,
    pub defines: Vec<String>,
    pub flags: Vec<String>,
    pub requires: Vec<String>,
}

impl Library {
    fn lines(&self) -> Result<Vec<(&'static str, String)>, Error> {
        let mut lines = vec![
            ("library", self.name.clone()),
            ("package", self.package.clone()),
            ("built", self.built.to_string()),
            ("archive", text(&self.archive)?),
            ("cudart", self.cudart.clone()),
            ("stubs", self.stubs.line()?),
            ("form", self.form.clone()),
        ];
        for (key, path) in [("middle", &self.middle), ("final", &self.last)] {
            if let Some(path) = path {
                lines.push((key, text(path)?));
            }
        }
        for path in &self.include {
            lines.push(("include", text(path)?));
        }
        for (object, path) in &self.sources {
            lines.push(("source", format!("{object}\t{}", text(path)?)));
        }
        let lists = [
            ("arch", &self.archs),
            ("define", &self.defines),
            ("flag", &self.flags),
            ("requires", &self.requires),
        ];
        for (key, values) in lists {
            lines.extend(values.iter().map(|value| (key, value.clone())));
        }
        Ok(lines)
    }

    /// Takes one line of the file. `false`: no such key.
    fn take(&mut self, key: &str, value: &str) -> bool {
        let owned = value.to_owned();
        match key {
            "package" => self.package = owned,
            "built" => self.built = value == "true",
            "archive" => self.archive = value.into(),
            "cudart" => self.cudart = owned,
            "stubs" => self.stubs = Stubs::parse(value),
            "form" => self.form = owned,
            "middle" => self.middle = Some(value.into()),
            "final" => self.last = Some(value.into()),
            "include" => self.include.push(value.into()),
            "source" => {
                let (object, path) = value.split_once('\t').unwrap_or((value, ""));
                self.sources.push((object.to_owned(), path.into()));
            }
            "arch" => self.archs.push(owned),
            "define" => self.defines.push(owned),
            "flag" => self.flags.push(owned),
            "requires" => self.requires.push(owned),
            _ => return false,
        }
        true
    }
}

/// The libraries as a text, in their order.
pub(crate) fn render(libraries: &[Library]) -> Result<String, Error> {
    let mut out = format!("{FIRST_LINE}\n");
    for library in libraries {
        for (key, value) in library.lines()? {
            if value.contains('\n') {
                return Err(Error::new(
                    &IO_ERROR,
                    format!("`{key}` of device-link.{} has a line break", library.name),
                ));
            }
            out += &format!("{key} {value}\n");
        }
    }
    Ok(out)
}

/// The libraries that `text` tells of. `path` is its file, for errors.
pub fn parse(path: &Path, text: &str) -> Result<Vec<Library>, Error> {
    let wrong = |line: usize, what: String| {
        Error::new(&IO_ERROR, format!("{}:{line}: {what}", path.display())).help(
            "packages of one build have to use one version of gpustub-build: `cargo update -p gpustub-build`",
        )
    };
    let mut lines = text.lines().enumerate();
    match lines.next() {
        Some((_, FIRST_LINE)) => {}
        other => {
            let found = other.map_or("", |(_, line)| line);
            return Err(wrong(1, format!("`{found}` instead of `{FIRST_LINE}`")));
        }
    }
    let mut libraries: Vec<Library> = Vec::new();
    for (index, line) in lines {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "library" {
            libraries.push(Library {
                name: value.to_owned(),
                ..Library::default()
            });
            continue;
        }
        let known = libraries.last_mut().is_some_and(|l| l.take(key, value));
        if !known {
            return Err(wrong(index + 1, format!("unknown key `{key}`")));
        }
    }
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let geometry = Library {
            name: "geometry".to_owned(),
            package: "shapes 0.1.0".to_owned(),
            built: true,
            archive: "/out dir/libgeometry.a".into(),
            sources: vec![("a b.cu.o".to_owned(), "/p/a b.cu".into())],
            archs: ["sm_80", "compute_90"].map(str::to_owned).into(),
            cudart: "shared".to_owned(),
            stubs: Stubs::Shared("/s.so".into()),
            form: "shared".to_owned(),
            middle: Some("/m.so".into()),
            last: Some("/f.so".into()),
            include: vec!["/inc".into()],
            defines: vec!["X=a b".to_owned(), "Y".to_owned()],
            flags: vec!["--use_fast_math".to_owned()],
            requires: vec!["base".to_owned()],
        };
        let other = |stubs| Library {
            name: format!("with {stubs:?}"),
            stubs,
            ..Library::default()
        };
        let others = [Stubs::None, Stubs::Elsewhere, Stubs::Static].map(other);
        let all = [[geometry].as_slice(), &others].concat();
        let text = render(&all).unwrap();
        assert_eq!(parse(Path::new("x"), &text).unwrap(), all);
    }

    #[test]
    fn another_version_is_refused_with_its_place() {
        for (text, place) in [
            ("", "x:1: ``"),
            ("gpustub-device-link 2\n", "x:1: "),
            (
                "gpustub-device-link 1\nlibrary a\nnew b\n",
                "x:3: unknown key `new`",
            ),
            (
                "gpustub-device-link 1\narch sm_80\n",
                "x:2: unknown key `arch`",
            ),
        ] {
            let error = parse(Path::new("x"), text).unwrap_err().to_string();
            assert!(error.contains(place), "{error}");
        }
    }

    #[test]
    fn a_line_break_in_a_value_is_refused() {
        let library = Library {
            defines: vec!["A=1\nflag x".to_owned()],
            ..Library::default()
        };
        assert!(render(&[library]).is_err());
    }
}
