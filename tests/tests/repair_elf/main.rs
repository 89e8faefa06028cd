//! Edited images, as linkers, the loader, strip, patchelf and elfutils see them.

mod images;
mod linkers;
