//! The files to repair, as packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gpustub_check::read::{self, ReadOptions, Zip};
use gpustub_check::{ContainerKind, Flaw, FlawKind, Package};
use gpustub_core::diag::{Diagnostic, PYTHON_LOADER, UNSUPPORTED_WHEEL};
use gpustub_repair::libraries::KnownLibraries;
use gpustub_repair::record::is_record;
use gpustub_repair::verify::{Unpacked, UnpackedMembers, compare_with_record};
use gpustub_repair::wheel::{Blocks, Wheel};
use gpustub_repair::{candidates, followers, load_order, loaders};
use gpustub_workspace::display_path::{display_path, slashes};
use gpustub_workspace::error::{Error, Result};
use gpustub_workspace::status_line::StatusLine;
use memmap2::Mmap;

use crate::cli;
use crate::scratch::scratch_error;

/// Files that are repaired as one.
pub struct Input {
    /// Facts about the files.
    pub package: Package,
    /// The files themselves.
    pub source: Source,
    /// Images of a wheel that may need an edit.
    pub unpacked: UnpackedMembers,
    /// File or directory to write.
    pub target: PathBuf,
}

/// Files of an input.
pub enum Source {
    /// A wheel.
    Wheel {
        /// Path of the wheel.
        path: PathBuf,
        /// The open archive.
        wheel: Wheel,
    },
    /// Libraries and programs, which are written to one directory: paths by file name.
    Files(Vec<(String, PathBuf)>),
    /// A directory.
    Directory(PathBuf),
}

/// An image, mapped.
pub struct MappedImage {
    /// The file.
    pub file: File,
    /// Blocks of a member of a wheel.
    pub blocks: Blocks,
    /// Bytes of the file.
    pub bytes: Mmap,
}

impl MappedImage {
    /// Releases the memory of the bytes, which can be read from the file again. Otherwise all images of a package would
    /// be resident at once.
    pub fn release(&self) {
        read::release(&self.bytes, &self.bytes);
    }
}

/// Reads all files. Those that cannot be rewritten are reported.
pub fn read(
    options: &cli::Repair,
    jobs: NonZeroUsize,
    known: &KnownLibraries,
    status: &StatusLine,
    diagnostics: &mut Vec<Diagnostic>,
) -> Result<Vec<Input>> {
    let mut inputs = Vec::new();
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    let mut files_package: Option<Package> = None;
    for path in &options.paths {
        let zip = open_wheel(path)?;
        let Some(package) = read_package(path, zip.as_ref(), known, status)? else {
            continue;
        };
        let name = file_name(path)?;
        match package.kind {
            ContainerKind::Wheel => match rewritable_wheel(zip, &package, options, known, jobs)? {
                Ok((wheel, unpacked)) => inputs.push(Input {
                    package,
                    unpacked,
                    source: Source::Wheel {
                        path: path.clone(),
                        wheel,
                    },
                    target: options.out_dir.join(name),
                }),
                Err(diagnostic) => diagnostics.push(*diagnostic),
            },
            ContainerKind::Directory => match signature(&package).filter(|_| !options.unsign) {
                Some(signature) => diagnostics.push(signed(&display_path(path), signature)),
                None => inputs.push(Input {
                    package,
                    source: Source::Directory(path.clone()),
                    unpacked: UnpackedMembers::new(),
                    target: options.out_dir.join(name),
                }),
            },
            ContainerKind::File if !package.flaws.iter().any(is_fault) => {
                if files.iter().any(|(file, _)| *file == name) {
                    return Err(Error::new(format!("two files are called `{name}`"))
                        .help("name them in two runs, with an `--out-dir` each"));
                }
                files.push((name, path.clone()));
                match &mut files_package {
                    None => files_package = Some(package),
                    Some(files_package) => files_package.members.extend(package.members),
                }
            }
            _ => {
                let message = "neither a wheel nor a program, library or directory";
                diagnostics.push(refused(&display_path(path), message));
            }
        }
    }
    if let Some(package) = files_package {
        inputs.push(files_input(package, files, options));
    }
    Ok(inputs)
}

/// The files that are named together. `package` has the members of all.
fn files_input(
    mut package: Package,
    files: Vec<(String, PathBuf)>,
    options: &cli::Repair,
) -> Input {
    if files.len() > 1 {
        // Paths of members are their names in the output directory.
        package.kind = ContainerKind::Directory;
        package.name = parent(&files[0].1);
    }
    package.members.sort_by(|a, b| a.path.cmp(&b.path));
    Input {
        package,
        source: Source::Files(files),
        unpacked: UnpackedMembers::new(),
        target: options.out_dir.clone(),
    }
}

/// Opens the archive of a wheel. A file that is no archive after all is read like any other.
fn open_wheel(path: &Path) -> Result<Option<Zip>> {
    if path.extension().is_none_or(|extension| extension != "whl") || !path.is_file() {
        return Ok(None);
    }
    let file = File::open(path).map_err(|e| Error::io("read", path, &e))?;
    Ok(Zip::new(file).ok())
}

/// Facts about a path of the command line, which `zip` is the archive of.
fn read_package(
    path: &Path,
    zip: Option<&Zip>,
    known: &KnownLibraries,
    status: &StatusLine,
) -> Result<Option<Package>> {
    let name = display_path(path);
    let options = ReadOptions {
        begin: &|file, _| status.show(|| file.to_owned()),
        keep: &|name| known.is_of_user_defined(name),
    };
    let packages = match zip {
        Some(zip) => read::read_wheel(zip, &name, &options),
        None => read::read_with(path, &name, &options),
    };
    let packages = packages
        .map_err(|e| scratch_error(&name, &e).unwrap_or_else(|| Error::io("read", path, &e)))?;
    Ok(packages.into_iter().next())
}

/// Whether a flaw keeps a file from being rewritten; skipped files of a package do not.
fn is_fault(flaw: &Flaw) -> bool {
    flaw.kind != FlawKind::Skipped || flaw.path.is_empty()
}

/// The next step for a damaged wheel.
const NEW_WHEEL: &str = "download or build it again";

/// The wheel, ready to be rewritten, or the reason why it is not.
fn rewritable_wheel(
    zip: Option<Zip>,
    package: &Package,
    options: &cli::Repair,
    known: &KnownLibraries,
    jobs: NonZeroUsize,
) -> Result<std::result::Result<(Wheel, UnpackedMembers), Box<Diagnostic>>> {
    let refuse = |fault: &str| refused(&package.name, &format!("not rewritten: {fault}"));
    let unusable = |error: io::Error| {
        Box::new(refuse(&format!("it {error}")).help(match error.kind() {
            io::ErrorKind::Unsupported => "unpack it, repair the directory, and run `wheel pack`",
            _ => NEW_WHEEL,
        }))
    };
    // Members that unpackers read in two ways must not become one of them.
    if let Some(flaw) = package.flaws.iter().find(|flaw| is_fault(flaw)) {
        let member = if flaw.path.is_empty() {
            String::new()
        } else {
            format!("`{}`: ", flaw.path)
        };
        let fault = format!("{member}{}", flaw.message);
        return Ok(Err(Box::new(refuse(&fault).help(NEW_WHEEL))));
    }
    let Some(zip) = zip else {
        return Ok(Err(Box::new(refuse("not a zip archive").help(NEW_WHEEL))));
    };
    let wheel = match Wheel::new(zip) {
        Ok(wheel) => wheel,
        Err(e) => return Ok(Err(unusable(e))),
    };
    if !options.unsign
        && let Some(signature) = wheel.signatures().first()
    {
        return Ok(Err(Box::new(signed(&package.name, signature))));
    }
    let images = [candidates(package, known), followers(package, known)].concat();
    let images = BTreeSet::from_iter(images);
    Ok(match compare_with_record(&wheel, &images, jobs) {
        Ok(Ok(unpacked)) => Ok((wheel, unpacked)),
        Ok(Err(fault)) => Err(Box::new(
            refuse(&format!("`{}` {}", fault.member, fault.message)).help(
                "build the wheel again; or unpack it with `unzip`, compare the file with its source, and run `wheel pack`, \
                 which writes a new RECORD and names the wheel by the tags in WHEEL",
            ),
        )),
        Err(e) => match scratch_error(&package.name, &e) {
            Some(error) => return Err(error),
            None => Err(unusable(e)),
        },
    })
}

/// Signature of a `RECORD` in a directory.
fn signature(package: &Package) -> Option<&str> {
    package
        .members
        .iter()
        .map(|member| member.path.as_str())
        .find(|path| is_record(path, "RECORD.jws") || is_record(path, "RECORD.p7s"))
}

fn signed(name: &str, signature: &str) -> Diagnostic {
    let message = format!("signed: `{signature}` would be invalid after a repair");
    refused(name, &message).help("remove the signature with `--unsign`")
}

fn refused(name: &str, message: &str) -> Diagnostic {
    Diagnostic::error(&UNSUPPORTED_WHEEL, message).with_origin(name, 0..0)
}

fn file_name(path: &Path) -> Result<String> {
    let full_path = fs::canonicalize(path).map_err(|e| Error::io("find", path, &e))?;
    // A link has the name under which programs find the library.
    path.file_name()
        .or_else(|| full_path.file_name())
        .and_then(|name| name.to_str())
        .map(str::to_owned)
        .ok_or_else(|| Error::new(format!("the name of `{}` is not UTF-8", slashes(path))))
}

fn parent(path: &Path) -> String {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => display_path(parent),
        _ => ".".to_owned(),
    }
}

impl Input {
    /// Path of the file or directory to write, for messages.
    pub fn output(&self) -> String {
        let path = match &self.source {
            Source::Files(files) if files.len() == 1 => &self.target.join(&files[0].0),
            _ => &self.target,
        };
        slashes(path)
    }

    /// Maps an image, which `unpacked` has if it is one of a wheel.
    pub fn image(&self, member: &str, unpacked: Option<Unpacked>) -> Result<MappedImage> {
        let without_blocks = |file: File| (file, Blocks::default());
        let file = match &self.source {
            Source::Wheel { .. } => match unpacked {
                Some(Unpacked { file, blocks }) => Ok((file, blocks)),
                None => Err(io::ErrorKind::NotFound.into()),
            },
            Source::Directory(directory) => File::open(directory.join(member)).map(without_blocks),
            Source::Files(files) => match files.iter().find(|(name, _)| name == member) {
                Some((_, path)) => File::open(path).map(without_blocks),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        };
        let image = file.and_then(|(file, blocks)| {
            // SAFETY: the map is private and read-only. If another process truncates the file, this one receives
            // SIGBUS, like every linker that maps its inputs; no code trusts the bytes.
            let bytes = unsafe { Mmap::map(&file) }?;
            Ok(MappedImage {
                file,
                blocks,
                bytes,
            })
        });
        image.map_err(|e| {
            let path = self.package.display_path_of(member);
            scratch_error(&path, &e)
                .unwrap_or_else(|| Error::new(format!("could not read `{path}`: {e}")))
        })
    }

    /// Texts of delvewheel's lists without removed files, for those that name one. Lists that cannot be read are reported.
    pub fn load_orders(
        &self,
        removed: &[String],
        diagnostics: &mut Vec<Diagnostic>,
    ) -> BTreeMap<String, String> {
        let mut lists = BTreeMap::new();
        let members = self.package.members.iter();
        for member in members.filter(|_| !removed.is_empty()) {
            let path = &member.path;
            if !load_order::is_load_order(path) {
                continue;
            }
            let mut bytes = Vec::new();
            let is_read = member.size <= loaders::MAX_TEXT
                && match &self.source {
                    Source::Wheel { wheel, .. } => wheel.unpack(path, &mut bytes),
                    Source::Directory(directory) => {
                        fs::read(directory.join(path)).map(|text| bytes = text)
                    }
                    Source::Files(_) => continue,
                }
                .is_ok();
            match String::from_utf8(bytes) {
                Ok(text) if is_read => {
                    let edited = load_order::without(path, &text, removed);
                    lists.extend(edited.map(|text| (path.clone(), text)));
                }
                _ => diagnostics.push(
                    Diagnostic::warning(
                        &PYTHON_LOADER,
                        "may list a removed DLL, and is no UTF-8 text",
                    )
                    .with_location(self.package.location_of(path))
                    .help("remove the lines of DLLs that the repaired wheel lacks"),
                ),
            }
        }
        lists
    }

    /// Paths and contents of the texts that may load libraries, each read when the iterator reaches it.
    pub fn texts(&self) -> impl Iterator<Item = (&str, String)> {
        let sizes: Vec<_> = match &self.source {
            Source::Wheel { wheel, .. } => wheel.files().collect(),
            Source::Files(_) => Vec::new(),
            Source::Directory(_) => {
                let members = self.package.members.iter();
                members
                    .map(|member| (member.path.as_str(), member.size))
                    .collect()
            }
        };
        let texts = sizes
            .into_iter()
            .filter(|(path, size)| may_load(path, *size));
        texts.filter_map(|(path, _)| Some((path, self.text(path)?)))
    }

    fn text(&self, path: &str) -> Option<String> {
        let bytes = match &self.source {
            Source::Wheel { wheel, .. } => {
                let mut bytes = Vec::new();
                wheel.unpack(path, &mut bytes).ok().map(|()| bytes)
            }
            Source::Files(_) => None,
            Source::Directory(directory) => fs::read(directory.join(path)).ok(),
        };
        bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Whether a file may be a text that loads libraries.
fn may_load(path: &str, size: u64) -> bool {
    loaders::is_text(path) && size <= loaders::MAX_TEXT
}
