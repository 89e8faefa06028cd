//! What a host does for programs on a device.

pub mod printf;
