//! Files, directories and archives, read as packages. Only this module accesses files, and of large
//! files only the pages with headers and tables. No file is written to a path from an archive.
//!
//! Any archive costs at most what `Limits` allows, and produces flaws instead of errors.

mod format;
mod limits;
mod members;
mod path;
pub mod process;
mod scratch;
mod source;
mod tar;
mod zip;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use gpustub_core::diag::Origin;
use gpustub_image::{
    ConsumedFn, ElfImage, Problem, archive_members, code_may_contain, read_image, read_object,
    read_strings,
};

use rawzip::ZipSliceArchive;

use crate::display_path::printable;
use crate::evidence::{self, TEXTS};
use crate::package::{Content, Flaw, FlawKind, Kind, Member, Package};
use crate::symbol_names::wanted;
use format::{Format, format};
use limits::{LIMITS, Limits, TOO_MANY};
use members::MemberReader;
pub use scratch::is_scratch_error;
use source::{Source, Whole};
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
/// If the file cannot be read, or a temporary file cannot be written ([`is_scratch_error`]).
pub fn read(path: &Path, name: &str) -> io::Result<Vec<Package>> {
    read_reporting(path, name, &|_, _| ())
}

/// Receives the display path and the size of each file and archive member before it is read.
pub type BeginFn<'a> = &'a dyn Fn(&str, u64);

/// Reads like [`read`], and reports the current file.
///
/// # Errors
///
/// Errors of [`read`].
pub fn read_reporting(path: &Path, name: &str, begin: BeginFn<'_>) -> io::Result<Vec<Package>> {
    let mut reader = Reader::new(LIMITS);
    reader.begin = begin;
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        let mut package = Package::new(name, Kind::Directory);
        reader.directory(path, "", &mut package)?;
        reader.add(package);
    } else if !kind.is_file() {
        // A pipe may never end, nor a device.
        return Err(io::Error::other("neither a file nor a directory"));
    } else {
        reader.named(File::open(path)?, path, name)?;
    }
    Ok(reader.packages())
}

/// Reads an open wheel with the display path `name` like [`read_reporting`]. The first package is the wheel itself.
///
/// # Errors
///
/// If a temporary file cannot be written ([`is_scratch_error`]).
pub fn read_wheel(wheel: &Zip, name: &str, begin: BeginFn<'_>) -> io::Result<Vec<Package>> {
    let mut reader = Reader::new(LIMITS);
    reader.begin = begin;
    let mut package = Package::new(name, Kind::Wheel);
    package.size = wheel.archive().get_ref().len() as u64;
    reader.archive(package, |reader, package| {
        reader.zip(wheel.archive(), package)
    })?;
    Ok(reader.packages())
}

/// Reads bytes like the contents of a file.
#[doc(hidden)]
pub fn read_bytes(bytes: &[u8], name: &str) -> Vec<Package> {
    let mut reader = Reader::new(LIMITS);
    let mut source = Source::bytes(bytes);
    // Bytes in memory can be read.
    let _ = reader.single(&mut source, name, name);
    reader.packages()
}

/// State of a read.
struct Reader<'a> {
    /// Receiver of the current file.
    begin: BeginFn<'a>,
    /// Remaining limits.
    left: Limits,
    /// Number of open archives.
    depth: u32,
    /// Packages that are read, with sort keys that place a container before its archives.
    done: Vec<(Vec<String>, Package)>,
    /// Names of the packages that are being read.
    open: Vec<String>,
}

impl Reader<'_> {
    fn new(left: Limits) -> Self {
        Self {
            begin: &|_, _| (),
            left,
            depth: 0,
            done: Vec::new(),
            open: Vec::new(),
        }
    }

    fn add(&mut self, mut package: Package) {
        package.members.sort_by(|a, b| a.path.cmp(&b.path));
        let mut key = self.open.clone();
        key.push(package.name.clone());
        self.done.push((key, package));
    }

    fn packages(mut self) -> Vec<Package> {
        self.done.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.done.into_iter().map(|(_, package)| package).collect()
    }

    /// Reads a file named on the command line.
    fn named(&mut self, file: File, path: &Path, name: &str) -> io::Result<()> {
        let size = file.metadata()?.len();
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        self.single(&mut Source::file(file, size), &file_name, name)
    }

    fn single(&mut self, source: &mut Source<'_>, file: &str, name: &str) -> io::Result<()> {
        let head = source.head()?.to_vec();
        match format(&head, file, true) {
            Format::Objects => {
                let mut package = Package::new(name, Kind::Archive);
                match source.read_all(&mut self.left) {
                    Ok(bytes) => self.objects(&bytes, "", &mut package),
                    Err(error) => package.flaw("", FlawKind::Archive, error.to_string()),
                }
                self.add(package);
            }
            what @ (Format::Zip(_) | Format::TarGz(_) | Format::Tar) => {
                self.archive_in(source, what, name, None)?;
            }
            what => {
                let mut package = Package::new(name, Kind::File);
                package.size = source.size();
                if what == Format::Other {
                    let message = "not an ELF file, wheel, crate, zip or tar.gz archive";
                    package.flaw("", FlawKind::Skipped, message.into());
                }
                self.member(&mut package, file.to_owned(), source)?;
                self.add(package);
            }
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path, inside: &str, package: &mut Package) -> io::Result<()> {
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let name = printable(entry.file_name().as_encoded_bytes());
            let inside = match inside {
                "" => name,
                directory => format!("{directory}/{name}"),
            };
            let mut read = || -> io::Result<()> {
                let kind = entry.file_type()?;
                // Links are not followed: their targets are read at their own paths. Special files, such
                // as pipes, are skipped: reading one may block indefinitely.
                if kind.is_dir() {
                    self.directory(&entry.path(), &inside, package)
                } else if kind.is_file() {
                    let file = File::open(entry.path())?;
                    let size = file.metadata()?.len();
                    self.member(package, inside.clone(), &mut Source::file(file, size))
                } else {
                    Ok(())
                }
            };
            match read() {
                Err(error) if is_scratch_error(&error) => return Err(error),
                // Deleted in the meantime.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => package.flaw(&inside, FlawKind::Unreadable, error.to_string()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn text(
        &mut self,
        source: &mut Source<'_>,
        most: u64,
        path: &str,
        package: &mut Package,
    ) -> io::Result<Content> {
        if source.size() > most.min(self.left.text) {
            let name = path.rsplit('/').next().unwrap_or_default();
            let message = format!("skipped: larger than the limit for `{name}`");
            package.flaw(path, FlawKind::Archive, message);
            return Ok(Content::Other);
        }
        let mut bytes = Vec::new();
        source.read(&mut self.left)?.read_to_end(&mut bytes)?;
        self.left.text -= (bytes.len() as u64).min(self.left.text);
        Ok(Content::Text(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Reads an archive in a file, or in another archive, as a separate package.
    fn archive_in(
        &mut self,
        source: &mut Source<'_>,
        what: Format,
        name: &str,
        outer: Option<(String, String)>,
    ) -> io::Result<()> {
        let kind = match what {
            Format::Zip(kind) | Format::TarGz(kind) => kind,
            _ => Kind::Archive,
        };
        let mut package = Package::new(name, kind);
        package.outer = outer;
        package.size = source.size();
        self.archive(package, |reader, package| match what {
            Format::Zip(_) => {
                let whole = source.read_all(&mut reader.left)?;
                reader.zip(&zip::opened(whole)?, package)
            }
            _ => {
                let bytes = source.read(&mut reader.left)?;
                tar::read(reader, bytes, what != Format::Tar, package)
            }
        })
    }

    fn zip(
        &mut self,
        archive: &ZipSliceArchive<Whole<'_>>,
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
        let most = package.size.saturating_mul(MAX_RATIO).max(MAX_UNBOUNDED);
        let beyond = self.left.inflated.saturating_sub(most);
        self.left.inflated -= beyond;
        self.depth += 1;
        let result = read(self, &mut package);
        self.left.inflated += beyond;
        self.depth -= 1;
        match result {
            Err(error) if is_scratch_error(&error) => return Err(error),
            Err(error) => package.flaw("", FlawKind::Archive, error.to_string()),
            Ok(()) => {}
        }
        // An archive of another kind within a package is the package's data, perhaps a malformed one for
        // its tests: the program that unpacks it validates it.
        if !self.open.is_empty() && package.kind == Kind::Archive {
            package.flaws.clear();
        }
        self.add(package);
        Ok(())
    }

    /// Reads the objects of a static library at `path` in the package.
    fn objects(&mut self, bytes: &[u8], path: &str, package: &mut Package) {
        let members = match archive_members(bytes) {
            Ok(members) => members,
            Err(error) => return package.flaw(path, FlawKind::Archive, error.to_string()),
        };
        for member in members {
            let Some(left) = self.left.members.checked_sub(1) else {
                return package.flaw(path, FlawKind::Archive, TOO_MANY.into());
            };
            self.left.members = left;
            let member = match member {
                Ok(member) => member,
                Err(error) => return package.flaw(path, FlawKind::Archive, error.to_string()),
            };
            let content = content(member.data, "", &|_| ());
            // Rules need few members of the thousands that a library may have.
            if matches!(&content, Content::Object(o) if o.imports.is_empty() && o.defines.is_empty())
                || content == Content::Other
            {
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
    }
}

impl MemberReader for Reader<'_> {
    fn limits(&mut self) -> &mut Limits {
        &mut self.left
    }

    fn member(
        &mut self,
        package: &mut Package,
        path: String,
        source: &mut Source<'_>,
    ) -> io::Result<()> {
        let size = source.size();
        (self.begin)(&package.display_path_of(&path), size);
        let content = match format(source.head()?, &path, false) {
            Format::Elf => {
                let whole = source.read_all(&mut self.left)?;
                let file = path.rsplit('/').next().unwrap_or_default();
                content(&whole, file, &|part| whole.release(part))
            }
            Format::Objects => {
                let bytes = source.read_all(&mut self.left)?;
                self.objects(&bytes, &path, package);
                Content::Other
            }
            Format::Text(most) => self.text(source, most, &path, package)?,
            Format::Other => Content::Other,
            Format::Foreign(message) => {
                package.flaw(&path, FlawKind::Skipped, message.into());
                Content::Other
            }
            what => {
                let name = package.display_path_of(&path);
                if self.depth < self.left.depth {
                    let Origin { file, member, .. } = package.location_of(&path);
                    let outer = member.map(|member| (file, member));
                    self.open.push(package.name.clone());
                    let result = self.archive_in(source, what, &name, outer);
                    self.open.pop();
                    result?;
                } else {
                    package.flaw(
                        &path,
                        FlawKind::Archive,
                        "skipped: too many archives inside each other".into(),
                    );
                }
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

/// Contents of an ELF file of this name; `Other` for other files.
fn content(bytes: &[u8], file: &str, passed: ConsumedFn<'_>) -> Content {
    // ELF files with GPU code are not for host loaders and linkers: EM_CUDA, EM_AMDGPU.
    let machine = bytes.get(18..20);
    if !bytes.starts_with(b"\x7fELF") || [190, 224].iter().any(|m| machine == Some(&[*m, 0])) {
        return Content::Other;
    }
    let image = match ElfImage::parse(bytes) {
        Ok(image) => image,
        Err(error) => return Content::Damaged(error.problem().clone()),
    };
    let error = match read_image(&image, &wanted, passed) {
        Ok(mut facts) => {
            facts.strings = read_strings(&image, TEXTS, &evidence::is_kept, passed);
            let names = evidence::dlopen_candidates(&facts, file);
            if !names.is_empty() {
                let more = code_may_contain(&image, &names, passed);
                let whole = names.iter().filter(|name| !more.contains(name));
                facts.whole_strings = whole.map(|name| (*name).to_owned()).collect();
            }
            return Content::Image(Box::new(facts));
        }
        Err(error) => error,
    };
    let error = match error.problem() {
        Problem::NoDynamicSymbols(_) => match read_object(&image, &wanted) {
            Ok(Some(facts)) => return Content::Object(Box::new(facts)),
            Ok(None) => return Content::Other,
            Err(error) => error,
        },
        _ => error,
    };
    Content::Damaged(error.problem().clone())
}

impl Package {
    fn new(name: &str, kind: Kind) -> Self {
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
        if self.flaws.len() < 1000 {
            self.flaws.push(Flaw {
                path: path.to_owned(),
                kind,
                message,
            });
        }
    }
}
