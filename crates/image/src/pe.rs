//! A PE image of Windows: a program, a DLL, or an extension module of Python.
//!
//! Tables are read by their addresses in memory, as the loader does, independent of the sections that contain them
//! (Microsoft, "PE Format", <https://learn.microsoft.com/windows/win32/debug/pe-format>).

mod edit;
mod facts;
mod image;
mod import_library;
mod reader;
mod symbols;

pub use edit::EditablePe;
pub use image::{PeExport, PeImage, PeImport, PeSymbol, is_pe};
pub(crate) use import_library::read_import_library;
pub(crate) use symbols::read_dll_exports;
pub use symbols::read_dll_symbols;
