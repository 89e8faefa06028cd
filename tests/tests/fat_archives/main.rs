//! Fat static libraries, whose members have code for several GPUs: unpacked into views, and linked from them.

mod hip;
mod host;
mod library;
