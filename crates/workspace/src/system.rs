//! Operating systems: what the standard library does not have for each of them.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::{
    clean_up_when_interrupted, copy_link, end_with_children, is_program, is_running, make_program,
    make_writable, sync_directory,
};
#[cfg(windows)]
pub use windows::{
    clean_up_when_interrupted, copy_link, end_with_children, is_program, is_running, make_program,
    make_writable, sync_directory,
};
