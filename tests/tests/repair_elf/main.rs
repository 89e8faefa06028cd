//! Edited images, as linkers, the loader, strip, patchelf and elfutils see them.

mod bindings;
mod images;
mod linkers;
mod mutations;
