//! Stubs as a shared library, and what an image that links it needs.
//!
//! The exports have a version node of the library's own, so that no other library of the process binds to
//! them, and the program binds to nothing else. Two files have the same soname:
//!
//! * `lib<name>.link.so` for linkers: the versions are default ones (`name@@NODE`), which a linker gives
//!   to a program's references.
//! * `lib<name>.so` for the loader: the versions are hidden ones (`name@NODE`). A reference without a
//!   version, such as of any library that needs libcuda.so.1, binds to the first default version in scope,
//!   and to no hidden one (glibc, dl-lookup.c: check_match; FreeBSD, rtld.c: matched_symbol).
//!
//! A library with the soname of a real one ([`soname_script`]) has the nodes of that one instead, as default versions,
//! and its `.link.so` would be the same file.
//!
//! Programs for musl load the first form under the second name: musl ignores versions of references, and
//! finds no hidden one (dynlink.c: gnu_lookup).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::by_name::ByName;
use gpustub_core::diag::{COMPILER_ERROR, IO_ERROR};
use gpustub_core::text::join;

use super::{OBJECTS, Toolchain, absolute, failed};
use crate::error::Error;
use crate::files;

/// Object with the functions of `gpustub.h` for images that link the library, and its source.
const CLIENT: (&str, &str) = ("gpustub_client.o", "client.c");

/// Files of stubs as a shared library.
#[derive(Debug, Clone)]
pub struct SharedStubs {
    /// The library to ship.
    pub library: PathBuf,
    /// Object for each image that links the library: the functions of `gpustub.h`.
    pub client: PathBuf,
    /// The library for linkers: [`link_file`].
    pub link_library: PathBuf,
}

/// The file that linkers read in place of a library of stubs.
pub fn link_file(library: &Path) -> PathBuf {
    library.with_extension("link.so")
}

/// Value of `GPUSTUB_EXPORT` for a library with this name after `-l`: a C name.
pub fn export_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    name.chars().map(plain).collect()
}

/// Version script of a library with this name after `-l`. The first node is empty: references without a
/// version bind to index 2, the first node after the base, even if its versions are hidden.
pub fn version_script(name: &str) -> String {
    let name = export_name(name);
    // gold exports the symbols of the layout.
    format!(
        "GPUSTUB_0 {{ }};\nGPUSTUB_{name} {{ global: *; local: _end; _edata; __bss_start; }};\n"
    )
}

/// Version script of a library that replaces the real one for a program: exactly these functions, each with its
/// version node, if it has one. Functions without a node stay in the base version, which a script with nodes cannot
/// name; nothing else that is visible does.
pub fn soname_script<'a>(
    functions: impl IntoIterator<Item = (&'a str, Option<&'a str>)>,
) -> String {
    let mut nodes = BTreeMap::<&str, Vec<&str>>::new();
    for (name, version) in functions {
        if let Some(version) = version {
            nodes.entry(version).or_default().push(name);
        }
    }
    let mut text = String::new();
    let mut local = " local: gpustub1_*; _end; _edata; __bss_start;";
    for (node, names) in &nodes {
        let names = join(names, "; ");
        text.push_str(&format!("{node} {{ global: {names};{local} }};\n"));
        local = "";
    }
    if nodes.is_empty() {
        text = format!("{{{local} }};\n");
    }
    text
}

impl Toolchain {
    /// Compiles the sources in `dir` with exported stubs, and links them into the shared library
    /// `library`, whose file name becomes its soname.
    pub fn shared_library(&self, dir: &Path, library: &Path) -> Result<SharedStubs, Error> {
        let file = file_name(library);
        let Some(name) = file.strip_prefix("lib").and_then(|n| n.strip_suffix(".so")) else {
            let message = format!("{} is not the name of a library", library.display());
            return Err(Error::new(&IO_ERROR, message));
        };
        let define = format!("-DGPUSTUB_EXPORT={}", export_name(name));
        self.objects(dir, &[&define])?;
        self.object(dir, &[&define], CLIENT.1, CLIENT.0)?;

        let linked = SharedStubs {
            library: library.to_owned(),
            client: dir.join(CLIENT.0),
            link_library: link_file(library),
        };
        let new = self.link(dir, library, &version_script(name), &[])?;
        let mut image = fs::read(&new).map_err(|e| Error::io("read", &new, &e))?;
        files::rename(&new, &linked.link_library)?;
        if self.target.env != "musl" && hide_versions(&mut image).is_none() {
            return Err(self.without_versions());
        }
        files::write_if_changed(library, &image)?;
        Ok(linked)
    }

    /// As [`Self::shared_library`], for programs that need or open the real library of this file name: `script`
    /// is a [`soname_script`], and the versions are default ones.
    pub fn soname_library(&self, dir: &Path, library: &Path, script: &str) -> Result<(), Error> {
        let define = format!("-DGPUSTUB_EXPORT={}", export_name(&file_name(library)));
        self.objects(dir, &[&define])?;
        let new = self.link(dir, library, script, &[])?;
        files::rename(&new, library)
    }

    /// As [`Self::shared_library`], for finished images: `exports` has the functions of each version node. Returns
    /// the bytes of the library.
    pub fn stub_library(
        &self,
        dir: &Path,
        library: &Path,
        exports: &ByName<Vec<String>>,
    ) -> Result<Vec<u8>, Error> {
        self.objects(dir, &["-DGPUSTUB_EXPORT=repaired"])?;
        let new = self.link(dir, library, &node_script(exports), &["-Wl,-s"])?;
        let mut image = fs::read(&new).map_err(|e| Error::io("read", &new, &e))?;
        files::remove(&new)?;
        hide_versions(&mut image).ok_or_else(|| self.without_versions())?;
        Ok(image)
    }

    /// Links the objects in `dir` into a neighbour of `library`, whose path it returns. The soname is that of
    /// `library`.
    fn link(
        &self,
        dir: &Path,
        library: &Path,
        script: &str,
        more: &[&str],
    ) -> Result<PathBuf, Error> {
        files::write_if_changed(&dir.join("gpustub.map"), script.as_bytes())?;
        let new = absolute(&files::sibling(library))?;
        let mut command = self.compiler.command(dir);
        command.args([
            "-shared",
            "-Wl,-z,defs",
            "-Wl,--gc-sections",
            "-Wl,--build-id=none",
            "-Wl,--version-script=gpustub.map",
        ]);
        command.arg(format!("-Wl,-soname,{}", file_name(library)));
        command.args(more).arg("-o").arg(&new).args(OBJECTS);
        let output = command.output().map_err(|e| self.no_compiler(&e))?;
        if !output.status.success() {
            files::remove(&new)?;
            return Err(failed("the stubs could not be linked", &command, &output));
        }
        Ok(new)
    }

    fn without_versions(&self) -> Error {
        let program = self.compiler.program.to_string_lossy();
        let message = format!("`{program}` linked the stubs without symbol versions");
        Error::new(&COMPILER_ERROR, message)
            .help("choose another linker: CFLAGS=-fuse-ld=bfd, gold, lld or mold")
    }
}

fn file_name(library: &Path) -> Cow<'_, str> {
    let name = library.file_name().map(|name| name.to_string_lossy());
    name.unwrap_or_default()
}

/// Version script of a library with these functions in each node, and no others.
fn node_script(exports: &ByName<Vec<String>>) -> String {
    let mut script = "GPUSTUB_0 { };\n".to_owned();
    for (index, (node, functions)) in exports.iter().enumerate() {
        let locals = if index == 0 { " local: *;" } else { "" };
        let functions = functions.join("; ");
        script += &format!("{node} {{ global: {functions};{locals} }};\n");
    }
    script
}

/// Makes the versions of all definitions hidden. `None`: it has none, or is no 64-bit image.
fn hide_versions(image: &mut [u8]) -> Option<()> {
    // gABI, "ELF Header" and "Sections"; LSB, "Symbol Version Table": SHT_GNU_versym, in the order of the
    // symbols; bit 15 hides, and 2 is the first index of a node.
    const VERSYM: u32 = 0x6fff_ffff;
    const HIDDEN: u16 = 0x8000;
    let sections = number_at(image, u64::from_le_bytes, 0x28)?;
    let count = usize::from(number_at(image, u16::from_le_bytes, 0x3c)?);
    let header = |index: usize| usize::try_from(sections).ok()?.checked_add(index * 64);
    let mut hidden = None;
    for index in 0..count {
        let section = header(index)?;
        if number_at(image, u32::from_le_bytes, section.checked_add(4)?)? != VERSYM {
            continue;
        }
        let field = |from: usize| {
            number_at(image, u64::from_le_bytes, from)
                .map(usize::try_from)?
                .ok()
        };
        let (versions, size) = (field(section + 0x18)?, field(section + 0x20)?);
        let linked = usize::try_from(number_at(image, u32::from_le_bytes, section + 0x28)?).ok()?;
        let symbols = field(header(linked)?.checked_add(0x18)?)?;
        for symbol in 0..size / 2 {
            let place = versions.checked_add(symbol * 2)?;
            let version = number_at(image, u16::from_le_bytes, place)?;
            let shndx = symbols.checked_add(symbol * 24 + 6)?;
            if version >= 2 && number_at(image, u16::from_le_bytes, shndx)? != 0 {
                let new = (version | HIDDEN).to_le_bytes();
                image.get_mut(place..place + 2)?.copy_from_slice(&new);
                hidden = Some(());
            }
        }
    }
    hidden
}

/// Reads a number.
fn number_at<T, const N: usize>(image: &[u8], decode: fn([u8; N]) -> T, place: usize) -> Option<T> {
    let bytes = image.get(place..place.checked_add(N)?)?;
    bytes.try_into().ok().map(decode)
}
