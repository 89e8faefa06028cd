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

use super::{OBJECTS, Toolchain, absolute, tool_error};
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
    name.chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect()
}

/// Version script of a library with this name after `-l`. The first node is empty: references without a
/// version bind to index 2, the first node after the base, even if its versions are hidden.
pub fn version_script(name: &str) -> String {
    let name = export_name(name);
    // gold exports the symbols of the layout. As patterns, because lld 16 and later refuse names that do not exist.
    format!(
        "GPUSTUB_0 {{ }};\nGPUSTUB_{name} {{ global: *; local: _en[d]; _edat[a]; __bss_star[t]; }};\n"
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
    // In the first node only.
    let mut locals = " local: gpustub1_*; _end; _edata; __bss_start;";
    for (node, names) in &nodes {
        let names = join(names, "; ");
        text.push_str(&format!("{node} {{ global: {names};{locals} }};\n"));
        locals = "";
    }
    if nodes.is_empty() {
        text = format!("{{{locals} }};\n");
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

        let stubs = SharedStubs {
            library: library.to_owned(),
            client: dir.join(CLIENT.0),
            link_library: link_file(library),
        };
        let new = self.link(dir, library, &version_script(name), &[])?;
        let mut image = fs::read(&new).map_err(|e| Error::io("read", &new, &e))?;
        files::rename(&new, &stubs.link_library)?;
        if self.target.env != "musl" && hide_versions(&mut image).is_none() {
            return Err(self.no_versions());
        }
        files::write_if_changed(library, &image)?;
        Ok(stubs)
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
        hide_versions(&mut image).ok_or_else(|| self.no_versions())?;
        Ok(image)
    }

    /// Links the objects in `dir` into a neighbour of `library`, whose path it returns. The soname is that of
    /// `library`.
    fn link(
        &self,
        dir: &Path,
        library: &Path,
        script: &str,
        options: &[&str],
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
        command.args(options).arg("-o").arg(&new).args(OBJECTS);
        let output = command.output().map_err(|e| self.no_compiler(&e))?;
        if !output.status.success() {
            files::remove(&new)?;
            let message = "the stubs could not be linked";
            return Err(tool_error(message, &command, &output));
        }
        Ok(new)
    }

    fn no_versions(&self) -> Error {
        let program = self.compiler.program.to_string_lossy();
        let message = format!("`{program}` linked the stubs without symbol versions");
        Error::new(&COMPILER_ERROR, message)
            .help("choose another linker: CFLAGS=-fuse-ld=bfd, gold, lld or mold")
    }
}

fn file_name(library: &Path) -> Cow<'_, str> {
    library
        .file_name()
        .map_or(Cow::Borrowed(""), |name| name.to_string_lossy())
}

/// Version script of a library with these functions in each node, and no others.
fn node_script(exports: &ByName<Vec<String>>) -> String {
    let mut script = "GPUSTUB_0 { };\n".to_owned();
    for (index, (node, functions)) in exports.iter().enumerate() {
        let locals = if index == 0 { " local: *;" } else { "" };
        let functions = join(functions, "; ");
        script += &format!("{node} {{ global: {functions};{locals} }};\n");
    }
    script
}

/// Makes the versions of all definitions hidden. `None`: it has none, or is no ELF image.
fn hide_versions(image: &mut [u8]) -> Option<()> {
    // LSB, "Symbol Version Table": SHT_GNU_versym, in the order of the symbols; bit 15 hides, and 2 is the first
    // index of a node.
    const VERSYM: usize = 0x6fff_ffff;
    const HIDDEN: usize = 0x8000;
    let layout = Layout::read(image)?;
    let sections = layout.number(image, layout.section_headers, layout.word)?;
    let section_count = layout.number(image, layout.section_count, 2)?;
    let mut hidden = None;
    for index in 0..section_count {
        let section = sections.checked_add(index * layout.section_header_size)?;
        if layout.number(image, section.checked_add(4)?, 4)? != VERSYM {
            continue;
        }
        let versions = layout.number(image, section.checked_add(layout.offset)?, layout.word)?;
        let size = layout.number(image, section.checked_add(layout.size)?, layout.word)?;
        let link = layout.number(image, section.checked_add(layout.link)?, 4)?;
        let symbol_table = sections.checked_add(link * layout.section_header_size)?;
        let symbols =
            layout.number(image, symbol_table.checked_add(layout.offset)?, layout.word)?;
        for symbol in 0..size / 2 {
            let version_offset = versions.checked_add(symbol * 2)?;
            let version = layout.number(image, version_offset, 2)?;
            let shndx = symbols.checked_add(symbol * layout.symbol_size + layout.symbol_section)?;
            if version >= 2 && layout.number(image, shndx, 2)? != 0 {
                layout.write_half(image, version_offset, version | HIDDEN)?;
                hidden = Some(());
            }
        }
    }
    hidden
}

/// Offsets and sizes of fields (gABI, "ELF Header", "Sections", "Symbol Table"), by class.
struct Layout {
    little: bool,
    word: usize,
    section_headers: usize,
    section_count: usize,
    section_header_size: usize,
    offset: usize,
    size: usize,
    link: usize,
    symbol_size: usize,
    symbol_section: usize,
}

impl Layout {
    fn read(image: &[u8]) -> Option<Self> {
        let [0x7f, b'E', b'L', b'F', class, data] = *image.first_chunk()? else {
            return None;
        };
        let little = data == 1;
        Some(if class == 2 {
            Self {
                little,
                word: 8,
                section_headers: 0x28,
                section_count: 0x3c,
                section_header_size: 64,
                offset: 0x18,
                size: 0x20,
                link: 0x28,
                symbol_size: 24,
                symbol_section: 6,
            }
        } else {
            Self {
                little,
                word: 4,
                section_headers: 0x20,
                section_count: 0x30,
                section_header_size: 40,
                offset: 0x10,
                size: 0x14,
                link: 0x18,
                symbol_size: 16,
                symbol_section: 14,
            }
        })
    }

    /// Reads a number of some bytes.
    fn number(&self, image: &[u8], offset: usize, size: usize) -> Option<usize> {
        let bytes = image.get(offset..offset.checked_add(size)?)?;
        let mut number: u64 = 0;
        for (index, byte) in bytes.iter().enumerate() {
            let position = if self.little { index } else { size - 1 - index };
            number |= u64::from(*byte) << (8 * position);
        }
        usize::try_from(number).ok()
    }

    /// Writes a number of two bytes.
    fn write_half(&self, image: &mut [u8], offset: usize, number: usize) -> Option<()> {
        let number = u16::try_from(number).ok()?;
        let bytes = if self.little {
            number.to_le_bytes()
        } else {
            number.to_be_bytes()
        };
        image
            .get_mut(offset..offset.checked_add(2)?)?
            .copy_from_slice(&bytes);
        Some(())
    }
}
