//! Facts about a file, a directory or an archive to check.

use gpustub_core::diag::Origin;
use gpustub_image::{ImageFacts, ImageFormat, ObjectFacts, Problem};

/// A unit that is shipped as one: a file or directory named on the command line, or an archive in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// Name on the command line.
    pub name: String,
    /// The outermost file and the path in it, of an archive in an archive.
    pub outer: Option<(String, String)>,
    /// Kind of container.
    pub kind: ContainerKind,
    /// Size of the file in bytes; 0 for a directory.
    pub size: u64,
    /// Files of the package, sorted by path.
    pub members: Vec<Member>,
    /// Faults of the container, in the order in which they were found.
    pub flaws: Vec<Flaw>,
}

/// A fault of an archive or a directory, independent of the contents of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The affected member; empty for the package itself.
    pub path: String,
    /// Kind of the fault.
    pub kind: FlawKind,
    /// Description in one sentence, without a full stop.
    pub message: String,
}

/// Kind of a [`Flaw`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    /// The system cannot read the file.
    Unreadable,
    /// The archive is damaged, contradicts itself, or exceeds a limit.
    Archive,
    /// A name that leads out of the directory that the archive is unpacked to, or means another file
    /// on another system.
    Path,
    /// No fault: a pipe, socket or device, whose contents are not of the package.
    Special,
    /// No fault: a file that no rule reads, although a user may expect it.
    Skipped,
}

/// Kind of a package's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContainerKind {
    /// A single file.
    File,
    /// Files that are named together, and libraries that they find through their search paths. Paths
    /// of members are display paths.
    Process,
    /// A directory.
    Directory,
    /// A Python wheel.
    Wheel,
    /// A packed crate.
    Crate,
    /// Any other archive.
    Archive,
}

/// A file of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Path in the package, with `/`; the file's name if the package is a single file. A member of a
    /// static library has `!` and its own name after the library's path: `lib/libx.a!x.o`.
    pub path: String,
    /// Path of the static library in the package, of a member of one; empty if the package is the library.
    pub library: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// Contents, as far as rules read them.
    pub content: Content,
}

/// Contents of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A program or shared library.
    Image(Box<ImageFacts>),
    /// An object file.
    Object(Box<ObjectFacts>),
    /// A text file that rules read: a wheel's `METADATA` and `WHEEL`, a crate's `Cargo.toml`.
    Text(String),
    /// A program or library that cannot be read.
    Damaged(Problem),
    /// Anything else.
    Other,
}

/// A program or shared library of a package.
#[derive(Debug, Clone, Copy)]
pub struct PackageImage<'a> {
    /// The package.
    pub package: &'a Package,
    /// The file.
    pub member: &'a Member,
    /// Facts about the file.
    pub facts: &'a ImageFacts,
}

impl Package {
    /// ELF programs and shared libraries of the package.
    pub fn images(&self) -> impl Iterator<Item = PackageImage<'_>> {
        self.all_images().filter(|image| !image.is_pe())
    }

    /// Programs and shared libraries of the package, in ELF and PE.
    pub fn all_images(&self) -> impl Iterator<Item = PackageImage<'_>> {
        self.members
            .iter()
            .filter_map(|member| match &member.content {
                Content::Image(facts) => Some(PackageImage {
                    package: self,
                    member,
                    facts,
                }),
                _ => None,
            })
    }

    /// The text of the member at this path.
    pub fn text(&self, path: &str) -> Option<&str> {
        let member = self.members.iter().find(|member| member.path == path)?;
        match &member.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Display path of a member: `dist/x.whl!x/_core.so`.
    pub fn display_path(&self, member: &Member) -> String {
        self.display_path_of(&member.path)
    }

    /// Display path of a path in the package; an empty one is the package itself.
    pub fn display_path_of(&self, path: &str) -> String {
        match self.kind {
            _ if path.is_empty() => self.name.clone(),
            ContainerKind::File => self.name.clone(),
            ContainerKind::Process => path.to_owned(),
            ContainerKind::Directory => format!("{}/{path}", self.name.trim_end_matches('/')),
            _ => format!("{}!{path}", self.name),
        }
    }

    /// Location of a member.
    pub fn location(&self, member: &Member) -> Origin {
        match (self.kind, &member.library) {
            (ContainerKind::Directory, Some(library)) => Origin {
                member: Some(member.path[library.len() + 1..].to_owned()),
                ..self.location_of(library)
            },
            _ => self.location_of(&member.path),
        }
    }

    /// Location of a file of the package, or of the package itself if the path is empty. Only archives have
    /// members; names of other files may contain `!`.
    pub fn location_of(&self, path: &str) -> Origin {
        let (file, member) = match (&self.outer, self.kind) {
            (_, ContainerKind::File | ContainerKind::Process | ContainerKind::Directory) => {
                (self.display_path_of(path), None)
            }
            (None, _) if path.is_empty() => (self.name.clone(), None),
            (None, _) => (self.name.clone(), Some(path.to_owned())),
            (Some((file, archive)), _) if path.is_empty() => (file.clone(), Some(archive.clone())),
            (Some((file, archive)), _) => (file.clone(), Some(format!("{archive}!{path}"))),
        };
        Origin {
            file,
            member,
            span: 0..0,
        }
    }
}

impl Member {
    /// File name of the member.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Directory of the member; empty for the top directory of the package.
    pub fn directory(&self) -> &str {
        self.path
            .rsplit_once('/')
            .map_or("", |(directory, _)| directory)
    }
}

impl<'a> PackageImage<'a> {
    /// Display path of the image.
    pub fn display_path(&self) -> String {
        self.package.display_path(self.member)
    }

    /// Location of the image.
    pub fn location(&self) -> Origin {
        self.package.location(self.member)
    }

    /// Whether the image is a program or DLL of Windows.
    pub fn is_pe(&self) -> bool {
        self.facts.format == ImageFormat::Pe
    }

    /// Libraries that the loader loads together with the image: `DT_NEEDED` entries, or the import table of a PE file.
    pub fn needed(&self) -> &'a [String] {
        &self.facts.link.needed
    }

    /// Entries of the runpath, including empty ones, which mean the current directory.
    pub fn runpath(&self) -> impl Iterator<Item = &'a str> {
        self.facts
            .link
            .runpath
            .as_deref()
            .into_iter()
            .flat_map(|path| path.split(':'))
    }
}
