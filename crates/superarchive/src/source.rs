//! Inputs of layers: archives of all kinds, directories, single files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_archive::{Error as ArchiveError, SuperArchive, View, contains_tables};
use memmap2::Mmap;
use object::read::archive::{ArchiveFile, ArchiveKind};

use crate::ar;
use crate::definitions::collector::{Binding, Definition};
use crate::definitions::is_object;
use crate::error::{Error, Problem};
use crate::known_members::KnownMembers;
use crate::map::map_file;
use crate::request::{Input, Layer};

/// Mapped files, from which their [`Layer`] borrows.
#[derive(Debug)]
pub struct Source {
    path: PathBuf,
    contents: Contents,
}

#[derive(Debug)]
enum Contents {
    /// With the files that a thin archive names, in its order.
    Archive(Mmap, Vec<Mmap>),
    /// A view of a super-archive; without a name, the default one.
    View(Mmap, Option<String>),
    Files(Vec<(PathBuf, Mmap)>),
}

/// Members that are no files but tables of the archive.
const SPECIAL: &[&str] = &[
    "/",
    "//",
    "/SYM64/",
    "/<ECSYMBOLS>/",
    "/<XFGHASHMAP>/",
    "/<HYBRIDMAP>/",
    "__.SYMDEF",
    "__.SYMDEF SORTED",
    "__.SYMDEF_64",
    "__.SYMDEF_64 SORTED",
];

const THIN_MAGIC: &[u8] = b"!<thin>\n";

impl Source {
    /// Opens the input at a path: an archive of GNU's, BSD's, Apple's or Microsoft's form; a thin
    /// archive, whose members are relative to its directory; a super-archive, whose default view is
    /// used, or, as `FILE:VIEW`, another one; a directory, whose files are the members in the order of their names; or an object file
    /// or module of bitcode, which is the only member.
    ///
    /// # Errors
    ///
    /// If the input, or a file that a thin archive names, cannot be read, or is none of these.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Self::directory(path);
        }
        if let Some((file, view)) = Self::split_view(path) {
            return Self::view(&file, &view);
        }
        let map = map_file(path)?;
        let failed = |problem: Problem| Error::from(problem).in_file(path);
        let contents = if map.starts_with(THIN_MAGIC) {
            let files = thin_members(path, &map).map_err(|error| error.in_file(path))?;
            Contents::Archive(map, files)
        } else if map.starts_with(ar::MAGIC) {
            match SuperArchive::parse(&map) {
                Err(ArchiveError::NoViews) => Contents::Archive(map, Vec::new()),
                archive => {
                    find_view(archive, None).map_err(failed)?;
                    Contents::View(map, None)
                }
            }
        } else if map.is_empty() {
            return Err(failed(Problem::Empty));
        } else if !is_object(&map) {
            return Err(failed(Problem::UnsupportedInput));
        } else {
            Contents::Files(vec![(path.to_owned(), map)])
        };
        Ok(Self::new(path, contents))
    }

    /// Opens a view of a super-archive.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is no super-archive, or has no such view.
    pub fn view(path: &Path, name: &str) -> Result<Self, Error> {
        let map = map_file(path)?;
        find_view(SuperArchive::parse(&map), Some(name))
            .map_err(|problem| Error::from(problem).in_file(path))?;
        Ok(Self::new(path, Contents::View(map, Some(name.to_owned()))))
    }

    /// The file and the view of `FILE:VIEW`, unless there is a file of that whole name.
    pub fn split_view(path: &Path) -> Option<(PathBuf, String)> {
        let text = path.to_str().filter(|_| !path.exists())?;
        let mut colons = text.match_indices(':').map(|(at, _)| text.split_at(at));
        let (file, view) = colons.find(|(file, _)| Path::new(file).is_file())?;
        Some((file.into(), view[1..].to_owned()))
    }

    /// Opens files of any kind, which are the members in the order of their names.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read.
    pub fn files(mut paths: Vec<PathBuf>) -> Result<Self, Error> {
        // Files of one name in different directories are adjacent.
        paths.sort_by(|a, b| (a.file_name(), a).cmp(&(b.file_name(), b)));
        let files = paths
            .into_iter()
            .map(|path| map_file(&path).map(|map| (path, map)));
        let files: Vec<_> = files.collect::<Result<_, _>>()?;
        let first = files.first().map(|(path, _)| path.clone());
        Ok(Self::new(
            &first.unwrap_or_default(),
            Contents::Files(files),
        ))
    }

    fn directory(path: &Path) -> Result<Self, Error> {
        let failed = |problem: Problem| Error::from(problem).in_file(path);
        let unreadable = |error: std::io::Error| failed(Problem::Unreadable(error.to_string()));
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            if !file.is_dir() {
                files.push(file);
            }
        }
        if files.is_empty() {
            return Err(failed(Problem::EmptyDirectory));
        }
        Ok(Self::new(path, Self::files(files)?.contents))
    }

    fn new(path: &Path, contents: Contents) -> Self {
        Self {
            path: path.to_owned(),
            contents,
        }
    }

    /// The layer of all members except the tables of the archive. Names of members have no directory;
    /// the layer has the name of the file, or of the first one.
    ///
    /// # Errors
    ///
    /// If the archive or an object file in it is damaged.
    pub fn layer(&self) -> Result<Layer<'_>, Error> {
        self.layer_with(&mut KnownMembers::default())
    }

    /// The same layer. Contents that members of other sources have too are read once.
    ///
    /// # Errors
    ///
    /// If the archive or an object file in it is damaged.
    pub fn layer_with<'d>(&'d self, known: &mut KnownMembers<'d>) -> Result<Layer<'d>, Error> {
        let name = self.path.file_name().unwrap_or(self.path.as_os_str());
        let mut name = name.to_string_lossy().into_owned();
        let in_file = |error: Error| error.in_file(&self.path);
        let members = match &self.contents {
            Contents::Archive(map, files) => archive_inputs(map, files, known).map_err(in_file)?,
            Contents::View(map, view) => {
                if let Some(view) = view {
                    name = format!("{name}:{view}");
                }
                view_inputs(map, view.as_deref(), known).map_err(in_file)?
            }
            Contents::Files(files) => {
                let inputs = files.iter().map(|(path, map)| {
                    let name = path.file_name().unwrap_or(path.as_os_str());
                    (known.input(name.as_encoded_bytes(), map)).map_err(|error| error.in_file(path))
                });
                inputs.collect::<Result<_, _>>()?
            }
        };
        Ok(Layer::new(name, members))
    }
}

/// Symbol of objects that contain nothing but GCC's code for link-time optimization (`-fno-fat-lto-objects`).
const SLIM_LTO: &[u8] = b"__gnu_lto_slim";

/// Whether a member is probably an object file whose symbols cannot be read: its name ends like that of one,
/// or it contains code for link-time optimization only.
pub fn has_unknown_symbols(input: &Input<'_>) -> bool {
    const ENDINGS: [&[u8]; 5] = [b".o", b".obj", b".lo", b".bc", b".spv"];
    let is_named = ENDINGS.iter().any(|ending| input.name.ends_with(ending));
    match &input.symbols[..] {
        [] => is_named && !is_object(input.data),
        symbols => is_slim(symbols),
    }
}

/// Whether only the plugin of its compiler can read the symbols of a member.
fn is_slim(symbols: &[Definition<'_>]) -> bool {
    symbols.iter().all(|symbol| &*symbol.name == SLIM_LTO)
}

/// Symbols that the index of an archive gives to its members, by the offsets of their contents.
fn index(bytes: &[u8]) -> HashMap<u64, Vec<&[u8]>> {
    let mut index: HashMap<u64, Vec<&[u8]>> = HashMap::new();
    let Ok(archive) = ArchiveFile::parse(bytes) else {
        return index;
    };
    let symbols = archive.symbols().ok().flatten().into_iter().flatten();
    for symbol in symbols.flatten() {
        if let Ok(member) = archive.member(symbol.offset()) {
            index
                .entry(member.file_range().0)
                .or_default()
                .push(symbol.name());
        }
    }
    index
}

/// A file of an `ar` archive.
struct ArchiveMember<'d> {
    /// Name in the archive.
    name: &'d [u8],
    /// Contents.
    data: &'d [u8],
    /// Offset of the contents in the archive.
    offset: u64,
}

fn malformed_member() -> Error {
    Problem::Malformed("archive member is cut off or has no header").into()
}

/// Files and other members, with their names in the archive.
fn members(bytes: &[u8]) -> Result<Vec<ArchiveMember<'_>>, Error> {
    let archive = ArchiveFile::parse(bytes).map_err(|_| malformed_member())?;
    // Paths of Windows.
    let windows = archive.kind() == ArchiveKind::Coff;
    let mut members = Vec::new();
    for member in archive.members() {
        let member = member.map_err(|_| {
            if archive.is_thin() {
                // GNU's thin archives name members of other archives by an offset.
                Problem::Malformed("archive member is damaged, or a member of another archive")
                    .into()
            } else {
                malformed_member()
            }
        })?;
        let name = member.name();
        if SPECIAL.iter().any(|special| special.as_bytes() == name) {
            continue;
        }
        let data = member
            .data(bytes)
            .map_err(|_| malformed_member().in_member(name))?;
        // All of the writer's names for it begin like this.
        if name.starts_with(b"gpustub-view") && contains_tables(data) {
            return Err(Error::from(Problem::LostViews).in_member(name));
        }
        let directory = |&byte: &u8| windows && byte == b'\\';
        let end = name.iter().rposition(directory).map_or(0, |at| at + 1);
        let name = &name[end..];
        members.push(ArchiveMember {
            name,
            data,
            offset: member.file_range().0,
        });
    }
    Ok(members)
}

/// A name without directories.
fn file_name(name: &[u8]) -> &[u8] {
    name.rsplit(|&byte| byte == b'/').next().unwrap_or(name)
}

/// Maps the files that a thin archive names.
fn thin_members(path: &Path, bytes: &[u8]) -> Result<Vec<Mmap>, Error> {
    let directory = path.parent().unwrap_or(Path::new(""));
    let files = members(bytes)?
        .into_iter()
        .map(|ArchiveMember { name, .. }| {
            let text = std::str::from_utf8(name);
            let text = text.map_err(|_| Problem::Malformed("member name is not UTF-8 text"));
            let text = text.map_err(|problem| Error::from(problem).in_member(name))?;
            map_file(&directory.join(text)).map_err(|error| {
                let reason = format!("the archive is thin, and {error}");
                Error::from(Problem::Unreadable(reason)).in_member(name)
            })
        });
    files.collect()
}

fn archive_inputs<'d>(
    bytes: &'d [u8],
    files: &'d [Mmap],
    known: &mut KnownMembers<'d>,
) -> Result<Vec<Input<'d>>, Error> {
    let thin = bytes.starts_with(THIN_MAGIC);
    let members = members(bytes)?;
    if thin && members.len() != files.len() {
        return Err(Problem::Malformed("archive changed while it was read").into());
    }
    let mut symbols_of = None;
    let inputs = members.into_iter().enumerate().map(|(at, member)| {
        let name = member.name;
        let data = if thin { &files[at][..] } else { member.data };
        let input = known.input(file_name(name), data);
        let mut input = input.map_err(|error| error.in_member(name))?;
        let symbols = &input.symbols;
        let is_unknown = symbols.is_empty() && !is_object(data);
        if is_unknown || !symbols.is_empty() && is_slim(symbols) {
            let index = symbols_of.get_or_insert_with(|| index(bytes));
            if let Some(names) = index.remove(&member.offset) {
                // The index has no bindings.
                let symbols = names.into_iter().map(|name| Definition {
                    name: name.into(),
                    binding: Binding::Strong,
                });
                input.symbols = symbols.collect();
            }
        }
        Ok(input)
    });
    inputs.collect()
}

fn find_view<'d>(
    archive: Result<SuperArchive<'d>, ArchiveError>,
    name: Option<&str>,
) -> Result<View<'d>, Problem> {
    let archive = match archive {
        Err(ArchiveError::NoViews | ArchiveError::NotAnArchive) => {
            return Err(Problem::UnknownView {
                name: name.map(str::to_owned),
                known: Vec::new(),
            });
        }
        archive => archive.map_err(Problem::SuperArchive)?,
    };
    archive.verify().map_err(Problem::SuperArchive)?;
    let found = match name {
        Some(name) => archive.view(name),
        None => archive.default_view(),
    };
    found.map_err(Problem::SuperArchive)?.ok_or_else(|| {
        let names = archive.views().flatten();
        let names = names.map(|view| String::from_utf8_lossy(view.name()).into_owned());
        Problem::UnknownView {
            name: name.map(str::to_owned),
            known: names.collect(),
        }
    })
}

fn view_inputs<'d>(
    bytes: &'d [u8],
    name: Option<&str>,
    known: &mut KnownMembers<'d>,
) -> Result<Vec<Input<'d>>, Error> {
    let view = find_view(SuperArchive::parse(bytes), name)?;
    let inputs = view.members().map(|member| {
        let member = member.map_err(Problem::SuperArchive)?;
        let data = member.data().map_err(Problem::SuperArchive);
        data.map_err(Error::from)
            .and_then(|data| known.input(member.name(), data))
            .map_err(|error| error.in_member(member.name()))
    });
    inputs.collect()
}
