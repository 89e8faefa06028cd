//! Exports of a library of either format.

use std::path::Path;

use gpustub_core::symbols::SymbolList;

use crate::error::Error;
use crate::file::with_file;
use crate::image_facts::ImageFormat;
use crate::pe::{is_pe, read_dll_exports, read_import_library};
use crate::symbols::{SymbolRequirements, read_symbols};

/// Exports of a library.
#[derive(Debug, Clone)]
pub struct LibraryExports {
    /// Names and kinds.
    pub list: SymbolList,
    /// Format of the library.
    pub format: ImageFormat,
    /// Names of a DLL that the list omits, since no C declaration has them.
    pub decorated: Vec<String>,
    /// Number of exports of a DLL that have a number only.
    pub unnamed: usize,
}

/// Exports of a shared library, as by [`read_symbols`], of a DLL, as by [`read_dll_symbols`](crate::read_dll_symbols), or of the DLL of an import
/// library; the error has its path.
pub fn read_exports_file(
    path: &Path,
    options: SymbolRequirements<'_>,
) -> Result<LibraryExports, Error> {
    with_file(path, |bytes| {
        let exports = if is_pe(bytes) {
            read_dll_exports(bytes, options)?
        } else if bytes.starts_with(b"!<arch>\n") {
            read_import_library(bytes, options)?
        } else {
            return Ok(LibraryExports {
                list: read_symbols(bytes, options)?,
                format: ImageFormat::Elf,
                decorated: Vec::new(),
                unnamed: 0,
            });
        };
        Ok(LibraryExports {
            list: exports.list,
            format: ImageFormat::Pe,
            decorated: exports.decorated,
            unnamed: exports.unnamed,
        })
    })
}

/// The list of [`read_exports_file`].
pub fn read_library_symbols_file(
    path: &Path,
    options: SymbolRequirements<'_>,
) -> Result<SymbolList, Error> {
    read_exports_file(path, options).map(|exports| exports.list)
}
