//! Members of views.

use crate::contents::Contents;
use crate::error::Error;

/// A member of a view: an object file, a module of bitcode, or anything else.
///
/// ```
/// # use gpustub_archive::SuperArchive;
/// # let bytes = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sample.a"));
/// # let archive = SuperArchive::parse(bytes)?;
/// let view = archive.view("gfx1100")?.expect("a view");
/// let member = view.find_symbol("scale")?.expect("a symbol");
/// assert_eq!(member.name(), b"scale.o");
/// assert!(!member.contents().in_default_view());
/// assert!(member.data()?.starts_with(b"\x7fELF"));
/// # Ok::<(), gpustub_archive::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) position: u32,
    pub(crate) layer: u32,
    pub(crate) contents: Contents<'a>,
}

impl<'a> Member<'a> {
    /// Name in the original archive.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// Position in the view.
    pub fn position(&self) -> usize {
        self.position as usize
    }

    /// Index of its layer in the view.
    pub fn layer(&self) -> usize {
        self.layer as usize
    }

    /// Contents, which other members may share.
    pub fn contents(&self) -> Contents<'a> {
        self.contents
    }

    /// The bytes to link: [`Contents::data`].
    ///
    /// # Errors
    ///
    /// As [`Contents::data`].
    pub fn data(&self) -> Result<&'a [u8], Error> {
        self.contents.data()
    }
}
