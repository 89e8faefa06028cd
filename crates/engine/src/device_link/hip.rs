//! Relocatable device code of HIP: clang compiles and links it, with the tools of its own release.

mod clang;
mod export;
mod link;
mod prebuilt;
mod register;

pub use export::{HIP_SOURCES, hip_symbols};

pub(super) use clang::{
    Clang, READ_BY_CLANG, debian_directories, device_library_help, path_of_commands, resolve,
};
pub(super) use link::{LinkInputs, MODULE, link, link_module};
pub(super) use prebuilt::check as check_archive;
pub(super) use register::{middle_object, suffixes};
