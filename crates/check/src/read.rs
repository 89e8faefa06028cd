//! Files, directories and archives, read as packages. Only this module accesses files, and of large
//! files only the pages with headers and tables. No file is written to a path from an archive.
//!
//! Any archive costs at most what `Limits` allows, and produces flaws instead of errors.

mod content;
mod directory;
mod format;
mod limits;
mod members;
mod path;
pub mod process;
mod scratch;
mod source;
mod tar;
mod verified;
mod zip;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use gpustub_core::diag::Origin;
use gpustub_core::offload::{CodeKind, ContainerFormat};
use gpustub_image::offload::offload_code;
use gpustub_image::{ObjectFacts, archive_members};
use rawzip::ZipSliceArchive;

use crate::display_path::printable;
use crate::package::{ContainerKind, Content, Flaw, FlawKind, Member, Package};
pub use content::KeepFn;
use format::{Format, form_of_device_code, format, why_skipped};
use limits::{LIMITS, Limits, TOO_MANY};
use members::MemberReader;
use scratch::is_scratch_error;
pub use scratch::{Scratch, scratch_cause};
pub use source::release;
use source::{FileBytes, Source};
pub use verified::VerifiedReader;
pub use zip::Zip;

/// Maximum inflation. Compilers' output inflates to about ten times its size, and deflate's maximum is
/// 1032 times, which is accepted up to the size `MAX_UNBOUNDED`.
const MAX_RATIO: u64 = 100;
const MAX_UNBOUNDED: u64 = 256 << 20;

/// Reads the file or directory at `path`, with the display path `name`. The first package is the file
/// or directory itself; each archive in it follows as a separate package.
///
/// # Errors
///
/// If the file cannot be read, or a temporary file cannot be written ([`scratch_cause`]).
pub fn read(path: &Path, name: &str) -> io::Result<Vec<Package>> {
    read_with(path, name, &ReadOptions::default())
}

/// Receives the display path and the size of each file and archive member before it is read.
pub type BeginFn<'a> = &'a dyn Fn(&str, u64);

/// Options of a read.
pub struct ReadOptions<'a> {
    /// Receiver of the current file.
    pub begin: BeginFn<'a>,
    /// Names beyond those that rules need.
    pub keep: KeepFn<'a>,
}

impl Default for ReadOptions<'_> {
    fn default() -> Self {
        Self {
            begin: &|_, _| (),
            keep: &|_| false,
        }
    }
}

/// Reads like [`read`], with options.
///
/// # Errors
///
/// Errors of [`read`].
pub fn read_with(path: &Path, name: &str, options: &ReadOptions<'_>) -> io::Result<Vec<Package>> {
    let mut reader = PackageReader::new(LIMITS, options);
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        let mut package = Package::new(name, ContainerKind::Directory);
        reader.root = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        reader.directory(path, "", &mut package)?;
        reader.add(package);
    } else if !kind.is_file() {
        // A pipe may never end, nor a device.
        return Err(io::Error::other("neither a file nor a directory"));
    } else {
        reader.named_file(File::open(path)?, path, name)?;
    }
    Ok(reader.into_packages())
}

/// Reads an open wheel with the display path `name` like [`read_with`]. The first package is the wheel itself.
///
/// # Errors
///
/// If a temporary file cannot be written ([`scratch_cause`]).
pub fn read_wheel(wheel: &Zip, name: &str, options: &ReadOptions<'_>) -> io::Result<Vec<Package>> {
    let mut reader = PackageReader::new(LIMITS, options);
    let mut package = Package::new(name, ContainerKind::Wheel);
    package.size = wheel.archive().get_ref().len() as u64;
    reader.archive(package, |reader, package| {
        reader.zip(wheel.archive(), package)
    })?;
    Ok(reader.into_packages())
}

/// Reads bytes like the contents of a file.
#[doc(hidden)]
pub fn read_bytes(bytes: &[u8], name: &str) -> Vec<Package> {
    let options = ReadOptions::default();
    let mut reader = PackageReader::new(LIMITS, &options);
    // Bytes in memory can be read.
    let _ = reader.single_file(&mut Source::bytes(bytes), name, name);
    reader.into_packages()
}

/// State of a read.
struct PackageReader<'a> {
    options: &'a ReadOptions<'a>,
    /// The directory that is read, without symbolic links.
    root: PathBuf,
    /// Remaining limits.
    limits: Limits,
    /// Number of open archives.
    depth: u32,
    /// Packages that are read, with sort keys that place a container before its archives.
    packages: Vec<(Vec<String>, Package)>,
    /// Names of the packages that are being read.
    containers: Vec<String>,
}

impl<'a> PackageReader<'a> {
    fn new(limits: Limits, options: &'a ReadOptions<'a>) -> Self {
        Self {
            options,
            root: PathBuf::new(),
            limits,
            depth: 0,
            packages: Vec::new(),
            containers: Vec::new(),
        }
    }

    fn add(&mut self, mut package: Package) {
        package.members.sort_by(|a, b| a.path.cmp(&b.path));
        let mut key = self.containers.clone();
        key.push(package.name.clone());
        self.packages.push((key, package));
    }

    fn into_packages(mut self) -> Vec<Package> {
        self.packages.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.packages
            .into_iter()
            .map(|(_, package)| package)
            .collect()
    }

    /// Reads a file named on the command line.
    fn named_file(&mut self, file: File, path: &Path, name: &str) -> io::Result<()> {
        let size = file.metadata()?.len();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        self.single_file(&mut Source::file(file, size), &file_name, name)
    }

    fn single_file(
        &mut self,
        source: &mut Source<'_>,
        file_name: &str,
        name: &str,
    ) -> io::Result<()> {
        match format(source.head()?, file_name, true) {
            Format::Objects => {
                let mut package = Package::new(name, ContainerKind::Archive);
                match source.read_all(&mut self.limits) {
                    Ok(bytes) => self.objects(&bytes, "", &mut package),
                    Err(error) => package.flaw("", FlawKind::Archive, error.to_string()),
                }
                self.add(package);
            }
            format @ (Format::Zip(_) | Format::TarGz(_) | Format::Tar) => {
                self.archive_in(source, format, name, None)?;
            }
            format => {
                let mut package = Package::new(name, ContainerKind::File);
                package.size = source.size();
                if format == Format::Other || CodeKind::of(source.head()?).is_for_device() {
                    package.flaw("", FlawKind::Skipped, why_skipped(source.head()?));
                }
                self.member(&mut package, file_name.to_owned(), source)?;
                self.add(package);
            }
        }
        Ok(())
    }

    fn text(
        &mut self,
        source: &mut Source<'_>,
        max_size: u64,
        path: &str,
        package: &mut Package,
    ) -> io::Result<Content> {
        if source.size() > max_size.min(self.limits.text) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let message = format!("skipped: larger than the limit for `{name}`");
            package.flaw(path, FlawKind::Archive, message);
            return Ok(Content::Other);
        }
        let mut bytes = Vec::new();
        source.read(&mut self.limits)?.read_to_end(&mut bytes)?;
        self.limits.text -= (bytes.len() as u64).min(self.limits.text);
        Ok(Content::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Reads an archive in a file, or in another archive, as a separate package.
    fn archive_in(
        &mut self,
        source: &mut Source<'_>,
        format: Format,
        name: &str,
        outer: Option<(String, String)>,
    ) -> io::Result<()> {
        let kind = match format {
            Format::Zip(kind) | Format::TarGz(kind) => kind,
            _ => ContainerKind::Archive,
        };
        let mut package = Package::new(name, kind);
        package.outer = outer;
        package.size = source.size();
        self.archive(package, |reader, package| match format {
            Format::Zip(_) => {
                let bytes = source.read_all(&mut reader.limits)?;
                reader.zip(&zip::open(bytes)?, package)
            }
            _ => {
                let bytes = source.read(&mut reader.limits)?;
                tar::read(reader, bytes, format != Format::Tar, package)
            }
        })
    }

    fn zip(
        &mut self,
        archive: &ZipSliceArchive<FileBytes<'_>>,
        package: &mut Package,
    ) -> io::Result<()> {
        zip::read(
            self,
            archive,
            &|part| archive.get_ref().release(part),
            package,
        )
    }

    /// Reads an archive by `read`, within its own bounds. An error is one of a temporary file.
    fn archive(
        &mut self,
        mut package: Package,
        read: impl FnOnce(&mut Self, &mut Package) -> io::Result<()>,
    ) -> io::Result<()> {
        let max_inflated = package.size.saturating_mul(MAX_RATIO).max(MAX_UNBOUNDED);
        let reserved = self.limits.inflated.saturating_sub(max_inflated);
        self.limits.inflated -= reserved;
        self.depth += 1;
        let result = read(self, &mut package);
        self.limits.inflated += reserved;
        self.depth -= 1;
        match result {
            Err(error) if is_scratch_error(&error) => return Err(error),
            Err(error) => package.flaw("", FlawKind::Archive, error.to_string()),
            Ok(()) => {}
        }
        // An archive of another kind within a package is the package's data, perhaps a malformed one for
        // its tests: the program that unpacks it validates it.
        if !self.containers.is_empty() && package.kind == ContainerKind::Archive {
            package.flaws.clear();
        }
        self.add(package);
        Ok(())
    }

    /// Reads the archive at `path` of a package as a separate package, unless too many are inside each other.
    fn nested_archive(
        &mut self,
        source: &mut Source<'_>,
        format: Format,
        path: &str,
        package: &mut Package,
    ) -> io::Result<()> {
        if self.depth >= self.limits.depth {
            let message = "skipped: too many archives inside each other";
            package.flaw(path, FlawKind::Archive, message.into());
            return Ok(());
        }
        let Origin { file, member, .. } = package.location_of(path);
        let outer = member.map(|member| (file, member));
        self.containers.push(package.name.clone());
        let result = self.archive_in(source, format, &package.display_path_of(path), outer);
        self.containers.pop();
        result
    }

    /// Reads the objects of a static library at `path` in the package.
    fn objects(&mut self, bytes: &[u8], path: &str, package: &mut Package) {
        let members = match archive_members(bytes) {
            Ok(members) => members,
            Err(error) => return package.flaw(path, FlawKind::Archive, error.to_string()),
        };
        let member_count = package.members.len();
        let mut device_code = None;
        for member in members {
            if !self.limits.take_member() {
                return package.flaw(path, FlawKind::Archive, TOO_MANY.into());
            }
            let member = match member {
                Ok(member) => member,
                Err(error) => return package.flaw(path, FlawKind::Archive, error.to_string()),
            };
            if device_code.is_none() {
                let form = form_of_device_code(member.data);
                device_code = form.map(|form| format!("`{}` is {form}", printable(member.name)));
            }
            // A member that is a container is an object for clang's linker.
            let content = match ContainerFormat::of_file(member.data) {
                Some(_) => Content::Object(Box::new(ObjectFacts {
                    offload: offload_code(member.data),
                    ..ObjectFacts::default()
                })),
                None => content::of_elf(member.data, "", self.options.keep, &|_| ()),
            };
            // Rules need few members of the thousands that a library may have.
            let is_irrelevant = match &content {
                Content::Object(object) => {
                    object.imports.is_empty()
                        && object.defines.is_empty()
                        && object.device.modules.is_empty()
                        && object.offload.is_none()
                }
                Content::Other => true,
                _ => false,
            };
            if is_irrelevant {
                continue;
            }
            let name = printable(member.name);
            package.members.push(Member {
                path: match path {
                    "" => name,
                    library => format!("{library}!{name}"),
                },
                library: Some(path.to_owned()),
                size: member.data.len() as u64,
                content,
            });
        }
        // Like a file that is named on the command line and not checked.
        if let (Some(code), "", true) = (device_code, path, package.members.len() == member_count) {
            let message =
                format!("{code}, which is not checked: the host neither links nor loads it");
            package.flaw(path, FlawKind::Skipped, message);
        }
    }
}

impl MemberReader for PackageReader<'_> {
    fn limits(&mut self) -> &mut Limits {
        &mut self.limits
    }

    fn member(
        &mut self,
        package: &mut Package,
        path: String,
        source: &mut Source<'_>,
    ) -> io::Result<()> {
        let size = source.size();
        (self.options.begin)(&package.display_path_of(&path), size);
        let content = match format(source.head()?, &path, false) {
            Format::Elf => {
                let bytes = source.read_all(&mut self.limits)?;
                let file_name = path.rsplit('/').next().unwrap_or_default();
                content::of_elf(&bytes, file_name, self.options.keep, &|part| {
                    bytes.release(part)
                })
            }
            Format::Pe => content::of_pe(&source.read_all(&mut self.limits)?, self.options.keep),
            Format::Objects => {
                let bytes = source.read_all(&mut self.limits)?;
                self.objects(&bytes, &path, package);
                Content::Other
            }
            Format::Text(max_size) => self.text(source, max_size, &path, package)?,
            Format::Other => Content::Other,
            Format::Foreign(message) => {
                package.flaw(&path, FlawKind::Skipped, message.into());
                Content::Other
            }
            format => {
                self.nested_archive(source, format, &path, package)?;
                Content::Other
            }
        };
        package.members.push(Member {
            path,
            library: None,
            size,
            content,
        });
        Ok(())
    }
}

impl Package {
    fn new(name: &str, kind: ContainerKind) -> Self {
        Self {
            name: name.to_owned(),
            outer: None,
            kind,
            size: 0,
            members: Vec::new(),
            flaws: Vec::new(),
        }
    }

    fn flaw(&mut self, path: &str, kind: FlawKind, message: String) {
        // A hostile archive may have one for each member.
        const MAX_FLAWS: usize = 1000;
        if self.flaws.len() < MAX_FLAWS {
            self.flaws.push(Flaw {
                path: path.to_owned(),
                kind,
                message,
            });
        }
    }
}
