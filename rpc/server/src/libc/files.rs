//! Files below a directory of the host.

use std::ffi::CStr;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
#[cfg(unix)]
use cap_std::fs::OpenOptionsExt;
use cap_std::fs::{Dir, OpenOptions};

use super::stream::Backing;

/// The directory. Paths are relative to it and may not leave it: neither through `..` or symlinks nor as
/// absolute paths.
pub(crate) struct Root(Dir);

impl Root {
    pub fn open(path: &Path) -> io::Result<Self> {
        Dir::open_ambient_dir(path, ambient_authority()).map(Self)
    }

    /// `fopen` of a regular file, or of a directory, which cannot be read. A FIFO, a socket or a device is no file
    /// for the program: it could block the thread of the stream indefinitely. Streams of bytes are standard input and
    /// output, which the host provides.
    pub fn fopen(&self, path: &CStr, mode: &CStr) -> Option<Backing> {
        let mode = Mode::parse(mode.to_bytes())?;
        let mut options = OpenOptions::new();
        options
            .read(mode.read)
            .write(mode.write && !mode.append)
            .append(mode.append)
            .truncate(mode.truncate)
            .create(mode.create)
            .create_new(mode.create_new);
        // Opening a FIFO would wait for its other end. For files the flag has no meaning.
        #[cfg(unix)]
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let file = self.0.open_with(host_path(path)?, &options).ok()?;
        // The opened file is inspected, because the program may rename what a path names.
        let kind = file.metadata().ok()?.file_type();
        if !kind.is_file() && !kind.is_dir() {
            return None;
        }
        Some(Backing::File {
            file: BufReader::new(file.into_std()),
            read: mode.read,
            write: mode.write,
        })
    }

    /// `remove`: removes a file or an empty directory. Returns whether it succeeded.
    pub fn remove(&self, path: &CStr) -> bool {
        let Some(path) = host_path(path) else {
            return false;
        };
        let removed = match self.0.symlink_metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.0.remove_dir(&path),
            _ => self.0.remove_file(&path),
        };
        removed.is_ok()
    }

    /// `rename`: returns whether it succeeded.
    pub fn rename(&self, old: &CStr, new: &CStr) -> bool {
        host_path(old)
            .zip(host_path(new))
            .is_some_and(|(old, new)| self.0.rename(old, &self.0, new).is_ok())
    }
}

/// Path of the host with these bytes, if they are valid.
#[cfg(unix)]
fn host_path(path: &CStr) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStrExt;
    Some(std::ffi::OsStr::from_bytes(path.to_bytes()).into())
}

/// Path of the host with these bytes, if they are valid.
#[cfg(not(unix))]
fn host_path(path: &CStr) -> Option<PathBuf> {
    path.to_str().ok().map(PathBuf::from)
}

/// A mode of `fopen`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mode {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
}

impl Mode {
    /// Parses a mode of C (C11 7.21.5.3): `r`, `w` or `a`, then `b` and `+` in any order, then `x`
    /// after `w` only.
    fn parse(mode: &[u8]) -> Option<Self> {
        let (first, rest) = mode.split_first()?;
        let (rest, exclusive) = match rest.strip_suffix(b"x") {
            Some(rest) if *first == b'w' => (rest, true),
            _ => (rest, false),
        };
        let both = match rest {
            b"" | b"b" => false,
            b"+" | b"+b" | b"b+" => true,
            _ => return None,
        };
        Some(Self {
            read: *first == b'r' || both,
            write: *first != b'r' || both,
            append: *first == b'a',
            truncate: *first == b'w' && !exclusive,
            create: *first != b'r' && !exclusive,
            create_new: exclusive,
        })
        .filter(|_| matches!(first, b'r' | b'w' | b'a'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_those_of_c() {
        for mode in [
            "r", "w", "a", "rb", "wb", "ab", "r+", "w+", "a+", "r+b", "rb+", "w+b", "wb+", "a+b",
            "ab+", "wx", "wbx", "w+x", "w+bx", "wb+x",
        ] {
            let parsed = Mode::parse(mode.as_bytes()).unwrap_or_else(|| panic!("{mode}"));
            assert_eq!(parsed.read, mode.contains('r') || mode.contains('+'));
            assert_eq!(parsed.write, !mode.contains('r') || mode.contains('+'));
            assert_eq!(parsed.append, mode.contains('a'));
            assert_eq!(parsed.create_new, mode.contains('x'));
            assert_eq!(parsed.create || parsed.create_new, !mode.contains('r'));
            assert!(!(parsed.truncate && parsed.create_new));
        }
        for mode in [
            "", "b", "+", "x", "rx", "ax", "r+x", "wxb", "rbb", "r++", "rw", "re", "R", "r ", "w,",
        ] {
            assert_eq!(Mode::parse(mode.as_bytes()), None, "{mode:?}");
        }
    }
}
