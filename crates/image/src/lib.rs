//! Reads symbol lists, link facts and CUDA device code of ELF files, imports and exports of PE files.
//!
//! [`read_symbols`] returns the exports of a library, [`read_link_facts`] the requirements of an
//! image, [`read_device_code`] the device code that CUDA's device linker linked or has yet to link.
//! The first two read a file as the dynamic loader does, through its program headers and dynamic
//! section; so they work on files without section headers, and touch only a few pages of a library
//! of 750 MB. Any bytes result in a value or an [`Error`]: no panic, and no memory beyond a small
//! multiple of the size of the file's tables. [`PeImage`] is a program or DLL of Windows, with the same promises.
//!
//! ```no_run
//! let options = gpustub_image::SymbolRequirements { expect_machine: Some("x86_64"), ..Default::default() };
//! match gpustub_image::read_symbols_file("libcudart.so.13".as_ref(), options) {
//!     Ok(list) => print!("{}", list.to_text()),
//!     Err(error) => eprintln!("{}", error.diagnostic()),
//! }
//! ```

mod archive;
mod consumed;
mod device;
mod dlopen_notes;
pub mod edit;
mod elf;
mod error;
mod exports;
mod file;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod ifs;
mod image_facts;
mod link_facts;
mod machine;
pub mod offload;
mod pe;
mod relocatable;
mod strings;
mod strings_scan;
mod symbols;

pub use archive::{ArchiveMember, archive_members};
pub use consumed::{ConsumedFn, FAULT_AROUND};
pub use device::{
    DeviceCode, HIP_SYMBOLS, Module, REGISTER, archive_device_code, archive_device_code_file,
    read_device_code, registered_object,
};
pub use elf::ElfImage;
pub use error::{Error, Problem};
pub use exports::{LibraryExports, read_exports_file, read_library_symbols_file};
pub use file::{read_link_facts_file, read_symbols_file};
pub use ifs::to_ifs;
pub use image_facts::{
    ImageFacts, ImageFormat, ImageKind, Import, ImportVersion, Keep, is_stub_library, read_image,
    read_image_file,
};
pub use link_facts::{LinkFacts, VersionNeed, read_link_facts};
pub use pe::{EditablePe, PeExport, PeImage, PeImport, PeSymbol, is_pe, read_dll_symbols};
pub use relocatable::{ObjectFacts, read_object};
pub use strings_scan::{code_may_contain, read_strings};
pub use symbols::{SymbolRequirements, read_symbols};
