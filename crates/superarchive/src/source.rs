//! Inputs of layers: archives of all kinds, directories, single files.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_archive::{Error as ArchiveError, SuperArchive, View, contains_tables};
use memmap2::Mmap;
use object::read::archive::{ArchiveFile, ArchiveKind};

use crate::ar;
use crate::decompressed::Decompressed;
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
    files: Files,
}

/// The files of an input.
#[derive(Debug)]
enum Files {
    /// With the files that a thin archive names, in its order.
    Archive(Mmap, Vec<Mmap>),
    /// A view of a super-archive; without a name, the default one. With its compressed contents.
    View(Mmap, Option<String>, Decompressed),
    Members(Vec<(PathBuf, Mmap)>),
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
    /// used, or, as `FILE:VIEW`, another one; a directory, whose files are the members in the order of
    /// their names; or an object file or module of bitcode, which is the only member.
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
        let files = Files::from_map(path, map_file(path)?).map_err(|error| error.in_file(path))?;
        Ok(Self::new(path, files))
    }

    /// Opens a view of a super-archive.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is no super-archive, or has no such view.
    pub fn view(path: &Path, name: &str) -> Result<Self, Error> {
        let map = map_file(path)?;
        let contents = find_view(SuperArchive::parse(&map), Some(name))
            .and_then(|view| decompress(&view))
            .map_err(|problem| Error::from(problem).in_file(path))?;
        Ok(Self::new(
            path,
            Files::View(map, Some(name.to_owned()), contents),
        ))
    }

    /// The file and the view of `FILE:VIEW`, unless there is a file of that whole name.
    pub fn split_view(path: &Path) -> Option<(PathBuf, String)> {
        let text = path.to_str().filter(|_| !path.exists())?;
        for (colon, _) in text.match_indices(':') {
            let file = Path::new(&text[..colon]);
            if file.is_file() {
                return Some((file.to_owned(), text[colon + 1..].to_owned()));
            }
        }
        None
    }

    /// Opens files of any kind, which are the members in the order of their names.
    ///
    /// # Errors
    ///
    /// If one of them cannot be read.
    pub fn files(mut paths: Vec<PathBuf>) -> Result<Self, Error> {
        // Files of one name in different directories are adjacent.
        paths.sort_by(|a, b| (a.file_name(), a).cmp(&(b.file_name(), b)));
        let mut members = Vec::with_capacity(paths.len());
        for path in paths {
            let map = map_file(&path)?;
            members.push((path, map));
        }
        let first = members.first().map(|(path, _)| path.clone());
        Ok(Self::new(
            &first.unwrap_or_default(),
            Files::Members(members),
        ))
    }

    fn directory(path: &Path) -> Result<Self, Error> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| Error::unreadable(path, error))? {
            let file = entry
                .map_err(|error| Error::unreadable(path, error))?
                .path();
            if !file.is_dir() {
                paths.push(file);
            }
        }
        if paths.is_empty() {
            return Err(Error::from(Problem::EmptyDirectory).in_file(path));
        }
        Ok(Self::new(path, Self::files(paths)?.files))
    }

    fn new(path: &Path, files: Files) -> Self {
        Self {
            path: path.to_owned(),
            files,
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
        let members = match &self.files {
            Files::Archive(map, files) => archive_inputs(map, files, known),
            Files::View(map, view, contents) => {
                if let Some(view) = view {
                    name = format!("{name}:{view}");
                }
                view_inputs(map, view.as_deref(), contents, known)
            }
            Files::Members(members) => {
                let members = file_inputs(members, known)?;
                return Ok(Layer::new(name, members));
            }
        };
        let members = members.map_err(|error| error.in_file(&self.path))?;
        Ok(Layer::new(name, members))
    }
}

impl Files {
    /// Reads the form of the input from its bytes.
    fn from_map(path: &Path, map: Mmap) -> Result<Self, Error> {
        if map.starts_with(THIN_MAGIC) {
            let files = thin_members(path, &map)?;
            return Ok(Self::Archive(map, files));
        }
        if map.starts_with(ar::MAGIC) {
            return match SuperArchive::parse(&map) {
                Err(ArchiveError::NoViews) => Ok(Self::Archive(map, Vec::new())),
                archive => {
                    let contents = decompress(&find_view(archive, None)?)?;
                    Ok(Self::View(map, None, contents))
                }
            };
        }
        if map.is_empty() {
            return Err(Problem::Empty.into());
        }
        if !is_object(&map) {
            return Err(Problem::UnsupportedInput.into());
        }
        Ok(Self::Members(vec![(path.to_owned(), map)]))
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
fn symbols_by_offset(bytes: &[u8]) -> HashMap<u64, Vec<&[u8]>> {
    let mut symbols: HashMap<u64, Vec<&[u8]>> = HashMap::new();
    let Ok(archive) = ArchiveFile::parse(bytes) else {
        return symbols;
    };
    let index = archive.symbols().ok().flatten();
    for symbol in index.into_iter().flatten().flatten() {
        if let Ok(member) = archive.member(symbol.offset()) {
            symbols
                .entry(member.file_range().0)
                .or_default()
                .push(symbol.name());
        }
    }
    symbols
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
    let is_windows = archive.kind() == ArchiveKind::Coff;
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
        let backslash = name.iter().rposition(|&byte| byte == b'\\');
        let name_start = backslash
            .filter(|_| is_windows)
            .map_or(0, |index| index + 1);
        members.push(ArchiveMember {
            name: &name[name_start..],
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
    let mut mappings = Vec::new();
    for ArchiveMember { name, .. } in members(bytes)? {
        let member_path = std::str::from_utf8(name).map_err(|_| {
            Error::from(Problem::Malformed("member name is not UTF-8 text")).in_member(name)
        })?;
        let mapping = map_file(&directory.join(member_path)).map_err(|error| {
            let reason = format!("the archive is thin, and {error}");
            Error::from(Problem::Unreadable(reason)).in_member(name)
        })?;
        mappings.push(mapping);
    }
    Ok(mappings)
}

fn archive_inputs<'d>(
    bytes: &'d [u8],
    files: &'d [Mmap],
    known: &mut KnownMembers<'d>,
) -> Result<Vec<Input<'d>>, Error> {
    let is_thin = bytes.starts_with(THIN_MAGIC);
    let members = members(bytes)?;
    if is_thin && members.len() != files.len() {
        return Err(Problem::Malformed("archive changed while it was read").into());
    }
    let mut index = None;
    let mut inputs = Vec::with_capacity(members.len());
    for (position, member) in members.into_iter().enumerate() {
        let data = if is_thin {
            &files[position][..]
        } else {
            member.data
        };
        let mut input = known
            .input(file_name(member.name), data)
            .map_err(|error| error.in_member(member.name))?;
        let symbols = &input.symbols;
        let is_unknown = symbols.is_empty() && !is_object(data);
        if is_unknown || !symbols.is_empty() && is_slim(symbols) {
            let index = index.get_or_insert_with(|| symbols_by_offset(bytes));
            if let Some(names) = index.remove(&member.offset) {
                input.symbols = names
                    .into_iter()
                    .map(|name| Definition {
                        name: name.into(),
                        // The index has no bindings.
                        binding: Binding::Strong,
                    })
                    .collect();
            }
        }
        inputs.push(input);
    }
    Ok(inputs)
}

fn file_inputs<'d>(
    files: &'d [(PathBuf, Mmap)],
    known: &mut KnownMembers<'d>,
) -> Result<Vec<Input<'d>>, Error> {
    let mut inputs = Vec::with_capacity(files.len());
    for (path, map) in files {
        let name = path.file_name().unwrap_or(path.as_os_str());
        let input = known
            .input(name.as_encoded_bytes(), map)
            .map_err(|error| error.in_file(path))?;
        inputs.push(input);
    }
    Ok(inputs)
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
    let view = match name {
        Some(name) => archive.view(name),
        None => archive.default_view(),
    };
    view.map_err(Problem::SuperArchive)?
        .ok_or_else(|| Problem::UnknownView {
            name: name.map(str::to_owned),
            known: archive
                .views()
                .flatten()
                .map(|view| String::from_utf8_lossy(view.name()).into_owned())
                .collect(),
        })
}

/// Decompresses the members of a view.
fn decompress(view: &View<'_>) -> Result<Decompressed, Problem> {
    let mut contents = Decompressed::default();
    for member in view.members() {
        member
            .and_then(|member| contents.add(&member.contents()))
            .map_err(Problem::SuperArchive)?;
    }
    Ok(contents)
}

fn view_inputs<'d>(
    bytes: &'d [u8],
    name: Option<&str>,
    contents: &'d Decompressed,
    known: &mut KnownMembers<'d>,
) -> Result<Vec<Input<'d>>, Error> {
    let view = find_view(SuperArchive::parse(bytes), name)?;
    let mut inputs = Vec::new();
    for member in view.members() {
        let member = member.map_err(Problem::SuperArchive)?;
        let input = contents
            .data(&member.contents())
            .map_err(|error| Problem::SuperArchive(error).into())
            .and_then(|data| known.input(member.name(), data))
            .map_err(|error| error.in_member(member.name()))?;
        inputs.push(input);
    }
    Ok(inputs)
}
