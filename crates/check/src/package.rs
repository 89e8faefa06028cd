//! What is looked at: a file, a directory or an archive, as facts.

use gpustub_image::{ImageFacts, ObjectFacts, Problem};

/// Something that is shipped as one: what was named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// As it was named.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The size of the file that was named, in bytes; 0 for a directory.
    pub size: u64,
    /// Its files, sorted by path.
    pub members: Vec<Member>,
    /// What is wrong with what holds them, in the order in which it was seen.
    pub flaws: Vec<Flaw>,
}

/// Something that is wrong with an archive or a directory, whatever its files are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// The member that has it; empty for the package itself.
    pub path: String,
    /// Its kind.
    pub kind: FlawKind,
    /// What is wrong, in one sentence, without a full stop.
    pub message: String,
}

/// What kind of flaw it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlawKind {
    /// The system does not give the file.
    Unreadable,
    /// The archive is damaged, contradicts itself, or is more than is looked at.
    Archive,
    /// A name that leads out of the place that the archive is unpacked to, or means another file on
    /// another system.
    Path,
    /// No fault: a file that no rule looks at, although somebody may expect it.
    Skipped,
}

/// What holds the files of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// It is a single file.
    File,
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
    /// Its path in the package, with `/`; the file's name if the package is a single file. A file of a
    /// static library has `!` and its own name after the library's path: `lib/libx.a!x.o`.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// What is in it, as far as rules look at it.
    pub content: Content,
}

/// What is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A program or shared library.
    Image(Box<ImageFacts>),
    /// An object file.
    Object(Box<ObjectFacts>),
    /// A short text that rules read: a wheel's `METADATA` and `WHEEL`, a crate's `Cargo.toml`.
    Text(String),
    /// A program or library that cannot be read.
    Damaged(Problem),
    /// Anything else.
    Other,
}

/// A program or shared library of a package.
#[derive(Debug, Clone, Copy)]
pub struct Image<'a> {
    /// The package.
    pub package: &'a Package,
    /// The file.
    pub member: &'a Member,
    /// What is in it.
    pub facts: &'a ImageFacts,
}

impl Package {
    /// Its programs and shared libraries.
    pub fn images(&self) -> impl Iterator<Item = Image<'_>> {
        self.members
            .iter()
            .filter_map(|member| match &member.content {
                Content::Image(facts) => Some(Image {
                    package: self,
                    member,
                    facts,
                }),
                _ => None,
            })
    }

    /// The text of a member that has this path.
    pub fn text(&self, path: &str) -> Option<&str> {
        let member = self.members.iter().find(|member| member.path == path)?;
        match &member.content {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// How messages call a member: `dist/x.whl!x/_core.so`.
    pub fn display_path(&self, member: &Member) -> String {
        self.display_path_of(&member.path)
    }

    /// How messages call what has this path in the package; an empty one is the package itself.
    pub fn display_path_of(&self, path: &str) -> String {
        match self.kind {
            _ if path.is_empty() => self.name.clone(),
            Kind::File => self.name.clone(),
            Kind::Directory => format!("{}/{path}", self.name.trim_end_matches('/')),
            _ => format!("{}!{path}", self.name),
        }
    }
}

impl Member {
    /// Its file name.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// The folder that it is in; empty for the package's own.
    pub fn folder(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(folder, _)| folder)
    }
}

impl<'a> Image<'a> {
    /// How messages call it.
    pub fn display_path(&self) -> String {
        self.package.display_path(self.member)
    }

    /// Its `DT_NEEDED`.
    pub fn needed(&self) -> &'a [String] {
        &self.facts.link.needed
    }

    /// The entries of its search path, empty ones included: they mean the current directory.
    pub fn runpath(&self) -> impl Iterator<Item = &'a str> {
        self.facts
            .link
            .runpath
            .as_deref()
            .into_iter()
            .flat_map(|path| path.split(':'))
    }
}
