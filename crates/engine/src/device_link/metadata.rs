//! Metadata of RDC libraries for dependent packages: a file whose path reaches their build scripts
//! as `DEP_<LINKS>_GPUSTUB_DEVICE_LINK`.
//!
//! The file lists the package's own libraries and all libraries that these require. A build
//! script sees its direct dependencies only, and learns the whole closure from their files.
//!
//! ```text
//! gpustub-device-link 5
//! library waves
//! package physics 0.1.0
//! built true
//! …
//! ```
//!
//! Writer and reader may be two versions of this crate, if a build graph has both. Every value is
//! typed at both ends, and a value that this version does not know is an error: a dropped `arch`
//! would omit a kernel that the program launches.

use std::path::{Path, PathBuf};

use gpustub_core::diag::IO_ERROR;
use gpustub_core::gpu_arch::{Arch, Vendor};
use gpustub_core::manifest::{Cudart, LibraryType};

use crate::error::{Error, Location};
use crate::files::text;

/// Key of the metadata; cargo upper-cases it and writes `_` for `-`.
pub(crate) const KEY: &str = "GPUSTUB_DEVICE_LINK";

/// First line. Raised whenever a key or value is added or changes its meaning.
const FIRST_LINE: &str = "gpustub-device-link 5";

/// The stubs of a runtime that a package uses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Stubs {
    /// None: the runtime itself.
    #[default]
    None,
    /// Provided by another package (`provide = false`).
    External,
    /// The package's own, hidden in the program.
    Static,
    /// The package's own, in this shared library.
    Shared(PathBuf),
}

impl Stubs {
    fn text(&self) -> Result<String, Error> {
        Ok(match self {
            Self::None => "none".to_owned(),
            Self::External => "external".to_owned(),
            Self::Static => "static".to_owned(),
            Self::Shared(path) => format!("shared {}", text(path)?),
        })
    }

    fn parse(value: &str) -> Option<Self> {
        match value.split_once(' ') {
            Some(("shared", path)) => Some(Self::Shared(path.into())),
            None if value == "none" => Some(Self::None),
            None if value == "external" => Some(Self::External),
            None if value == "static" => Some(Self::Static),
            _ => None,
        }
    }
}

/// An object in the archive of a library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Name of the archive member.
    pub member: String,
    /// Source file that it was compiled from.
    pub source: PathBuf,
}

/// One RDC library, as its dependents need it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceLibrary {
    /// Name of its `[device-link.<name>]` table.
    pub name: String,
    /// Name and version of the package that declares it.
    pub package: String,
    /// `false`: left out, because there is no nvcc.
    pub built: bool,
    /// Archive of objects; empty for headers alone.
    pub archive: PathBuf,
    /// Sources of the archive's objects; empty for an archive that was built elsewhere.
    pub sources: Vec<Object>,
    /// Architectures that it is compiled for.
    pub archs: Vec<Arch>,
    /// The CUDA runtime that its host code is linked with.
    pub cudart: Cudart,
    /// Whether its kernels launch kernels.
    pub cudadevrt: bool,
    /// The stubs of the CUDA runtime that its package uses.
    pub stubs: Stubs,
    /// The stubs of the HIP runtime that its package uses.
    pub hip_stubs: Stubs,
    /// Archive or shared library.
    pub library_type: LibraryType,
    /// Shared library with the objects, for `type = "shared"`.
    pub middle: Option<PathBuf>,
    /// Shared library with the device link, for `type = "shared"`.
    pub r#final: Option<PathBuf>,
    /// Header directories for the sources of dependents.
    pub include_dirs: Vec<PathBuf>,
    /// Macros for the sources of dependents, as after `-D`.
    pub defines: Vec<String>,
    /// Arguments of nvcc's compile steps for the sources of dependents.
    pub compile_options: Vec<String>,
    /// Names of the libraries that it requires.
    pub requires: Vec<String>,
}

const TYPES: [LibraryType; 2] = [LibraryType::Static, LibraryType::Shared];
const CUDARTS: [Cudart; 3] = [Cudart::Shared, Cudart::Static, Cudart::None];

impl DeviceLibrary {
    /// Whether it has code for a vendor's GPUs. Unknown architectures are those of an archive of CUDA.
    pub fn has_code(&self, vendor: Vendor) -> bool {
        let is_unknown = vendor == Vendor::Nvidia && self.archs.is_empty();
        is_unknown || vendor.is_in(self.archs.iter().copied())
    }

    /// The stubs of a vendor's runtime that its package uses.
    pub fn stubs(&self, vendor: Vendor) -> &Stubs {
        match vendor {
            Vendor::Nvidia => &self.stubs,
            Vendor::Amd => &self.hip_stubs,
        }
    }

    /// The shared library with these stubs, if it is the package's own.
    pub fn shared_stubs(&self, vendor: Vendor) -> Option<&Path> {
        match self.stubs(vendor) {
            Stubs::Shared(path) => Some(path),
            _ => None,
        }
    }

    fn lines(&self) -> Result<Vec<(&'static str, String)>, Error> {
        let mut lines = vec![
            ("library", self.name.clone()),
            ("package", self.package.clone()),
            ("built", self.built.to_string()),
            ("archive", text(&self.archive)?),
            ("cudart", self.cudart.word().to_owned()),
            ("cudadevrt", self.cudadevrt.to_string()),
            ("stubs", self.stubs.text()?),
            ("hip-stubs", self.hip_stubs.text()?),
            ("type", self.library_type.word().to_owned()),
        ];
        for (key, path) in [("middle", &self.middle), ("final", &self.r#final)] {
            if let Some(path) = path {
                lines.push((key, text(path)?));
            }
        }
        for dir in &self.include_dirs {
            lines.push(("include-dir", text(dir)?));
        }
        for object in &self.sources {
            let source = text(&object.source)?;
            lines.push(("source", format!("{}\t{source}", object.member)));
        }
        for arch in &self.archs {
            lines.push(("arch", arch.to_string()));
        }
        let lists = [
            ("define", &self.defines),
            ("compile-option", &self.compile_options),
            ("requires", &self.requires),
        ];
        for (key, values) in lists {
            lines.extend(values.iter().map(|value| (key, value.clone())));
        }
        Ok(lines)
    }

    /// Reads one line of the file. The error completes a sentence about the line.
    fn read_line(&mut self, key: &str, value: &str) -> Result<(), String> {
        let unknown_value =
            |expected: &str| format!("unknown value `{value}` of `{key}`, expected {expected}");
        let flag = || {
            let flag = value.parse();
            flag.map_err(|_| unknown_value("`true` or `false`"))
        };
        match key {
            "package" => self.package = value.to_owned(),
            "built" => self.built = flag()?,
            "cudadevrt" => self.cudadevrt = flag()?,
            "archive" => self.archive = value.into(),
            "cudart" => {
                let kind = CUDARTS.into_iter().find(|kind| kind.word() == value);
                self.cudart = kind.ok_or_else(|| unknown_value("`shared`, `static` or `none`"))?;
            }
            "stubs" | "hip-stubs" => {
                let stubs = Stubs::parse(value).ok_or_else(|| {
                    unknown_value("`none`, `external`, `static` or `shared <path>`")
                })?;
                match key {
                    "stubs" => self.stubs = stubs,
                    _ => self.hip_stubs = stubs,
                }
            }
            "type" => {
                let kind = TYPES.into_iter().find(|kind| kind.word() == value);
                self.library_type = kind.ok_or_else(|| unknown_value("`static` or `shared`"))?;
            }
            "middle" => self.middle = Some(value.into()),
            "final" => self.r#final = Some(value.into()),
            "include-dir" => self.include_dirs.push(value.into()),
            "source" => {
                let (member, source) = value
                    .split_once('\t')
                    .ok_or_else(|| unknown_value("an object and a path with a tab between them"))?;
                self.sources.push(Object {
                    member: member.to_owned(),
                    source: source.into(),
                });
            }
            "arch" => {
                let arch = Arch::parse(value);
                self.archs
                    .push(arch.ok_or_else(|| unknown_value(Arch::TAKES))?);
            }
            "define" => self.defines.push(value.to_owned()),
            "compile-option" => self.compile_options.push(value.to_owned()),
            "requires" => self.requires.push(value.to_owned()),
            _ => return Err(format!("unknown key `{key}`")),
        }
        Ok(())
    }
}

/// Writes libraries as a text, in their order.
pub(crate) fn render(libraries: &[DeviceLibrary]) -> Result<String, Error> {
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

/// Reads the libraries in `text`, the contents of the file `path`.
///
/// # Errors
///
/// A first line, key or value of another version of gpustub-build, with file and line.
pub fn parse(path: &Path, text: &str) -> Result<Vec<DeviceLibrary>, Error> {
    let mut lines = text.lines().zip(1..);
    let first_line = lines.next().map_or("", |(line, _)| line);
    if first_line != FIRST_LINE {
        let problem = format!("`{first_line}`, expected `{FIRST_LINE}`");
        return Err(version_error(path, 1, &problem));
    }
    let mut libraries: Vec<DeviceLibrary> = Vec::new();
    for (line, number) in lines {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "library" {
            libraries.push(DeviceLibrary {
                name: value.to_owned(),
                ..DeviceLibrary::default()
            });
            continue;
        }
        match libraries.last_mut() {
            Some(library) => library.read_line(key, value),
            None => Err(format!("`{key}` before the first `library`")),
        }
        .map_err(|problem| version_error(path, number, &problem))?;
    }
    Ok(libraries)
}

/// A line that this version of gpustub-build would not have written.
fn version_error(path: &Path, line: usize, problem: &str) -> Error {
    let message = format!(
        "{problem}; the file is of another version of gpustub-build than {}",
        env!("CARGO_PKG_VERSION")
    );
    Error::new(&IO_ERROR, message)
        .with_location(Location {
            file: path.display().to_string(),
            line,
            column: None,
        })
        .help(
            "all packages of a build have to use one gpustub-build; `cargo tree -d -e build` lists the packages that \
             require each: for versions, run `cargo update -p gpustub-build@<version>` with the older one; for a git \
             repository, write the same `rev` into each Cargo.toml; for paths, the same directory",
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_metadata_is_read_back() {
        let geometry = DeviceLibrary {
            name: "geometry".to_owned(),
            package: "shapes 0.1.0".to_owned(),
            built: true,
            archive: "/out dir/libgeometry.a".into(),
            sources: vec![Object {
                member: "a b.cu.o".to_owned(),
                source: "/p/a b.cu".into(),
            }],
            archs: ["sm_80", "compute_90"]
                .map(|arch| Arch::parse(arch).unwrap())
                .into(),
            cudart: Cudart::Static,
            cudadevrt: true,
            stubs: Stubs::Shared("/s.so".into()),
            hip_stubs: Stubs::Static,
            library_type: LibraryType::Shared,
            middle: Some("/m.so".into()),
            r#final: Some("/f.so".into()),
            include_dirs: vec!["/inc".into()],
            defines: vec!["X=a b".to_owned(), "Y".to_owned()],
            compile_options: vec!["--use_fast_math".to_owned()],
            requires: vec!["base".to_owned()],
        };
        let mut libraries = vec![geometry];
        for stubs in [Stubs::None, Stubs::External, Stubs::Static] {
            libraries.push(DeviceLibrary {
                name: format!("with {stubs:?}"),
                stubs,
                ..DeviceLibrary::default()
            });
        }
        let text = render(&libraries).unwrap();
        assert_eq!(parse(Path::new("x"), &text).unwrap(), libraries);
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = parse(Path::new("/o/libraries"), text).unwrap_err();
        let message = error.to_string();
        assert!(message.starts_with(expected), "{message}");
        assert!(
            message.contains("another version of gpustub-build"),
            "{message}"
        );
        assert!(
            message.contains("`cargo update -p gpustub-build@<version>`")
                && message.contains("the same `rev`"),
            "{message}"
        );
        assert_eq!(error.code(), Some(&IO_ERROR));
        assert_eq!(error.location().unwrap().file, "/o/libraries");
    }

    #[test]
    fn another_first_line_is_rejected() {
        for first in [
            "",
            "gpustub-device-link 2\n",
            "gpustub-device-link 6\nlibrary a\n",
        ] {
            refused(first, "/o/libraries:1: error");
        }
    }

    #[test]
    fn unknown_keys_and_values_are_rejected_with_file_and_line() {
        for (line, expected) in [
            (
                "arch sm_9O",
                "unknown value `sm_9O` of `arch`, expected architectures such as",
            ),
            (
                "type sharde",
                "unknown value `sharde` of `type`, expected `static` or `shared`",
            ),
            ("cudart stat1c", "unknown value `stat1c` of `cudart`"),
            (
                "built yes",
                "unknown value `yes` of `built`, expected `true` or `false`",
            ),
            ("built", "unknown value `` of `built`"),
            ("stubs elsewhere", "unknown value `elsewhere` of `stubs`"),
            ("stubs shared", "unknown value `shared` of `stubs`"),
            ("source a.o", "unknown value `a.o` of `source`"),
            ("form shared", "unknown key `form`"),
        ] {
            let text = format!("{FIRST_LINE}\nlibrary a\n{line}\n");
            refused(
                &text,
                &format!("/o/libraries:3: error[{}]: {expected}", IO_ERROR.id),
            );
        }
        let text = format!("{FIRST_LINE}\narch sm_80\n");
        refused(
            &text,
            &format!("/o/libraries:2: error[{}]: `arch` before", IO_ERROR.id),
        );
    }

    #[test]
    fn a_line_break_in_a_value_is_rejected() {
        let library = DeviceLibrary {
            defines: vec!["A=1\ncompile-option x".to_owned()],
            ..DeviceLibrary::default()
        };
        assert!(render(&[library]).is_err());
    }
}
