//! Replaces a file atomically, and only if its contents change.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Writes a file atomically, unless it already has these bytes; returns whether it did.
///
/// # Errors
///
/// System errors, and `AlreadyExists` if the path exists and is not a file.
pub fn replace(
    path: &Path,
    content: &dyn Fn(&mut dyn Write) -> io::Result<()>,
) -> io::Result<bool> {
    let path = match fs::metadata(path) {
        // A symbolic link stays: the file that it points to is replaced.
        Ok(old) if old.is_file() => path.canonicalize()?,
        Ok(_) => {
            let message = "already exists and is not a file";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        Err(_) => path.to_owned(),
    };
    if let Ok(old) = File::open(&path) {
        let mut comparison = Comparison(BufReader::new(old));
        if content(&mut comparison).is_ok() && comparison.0.read(&mut [0])? == 0 {
            return Ok(false);
        }
    }
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = Path::new(&name);
    let result = File::create(new).and_then(|file| {
        let mut out = BufWriter::new(file);
        content(&mut out)?;
        out.flush()?;
        drop(out);
        fs::rename(new, &path)
    });
    if result.is_err() {
        // The file may not exist.
        let _ = fs::remove_file(new);
    }
    result.map(|()| true)
}

/// Compares written bytes with a file, and fails at the first difference.
struct Comparison(BufReader<File>);

impl Write for Comparison {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut buffer = [0; 8192];
        for chunk in bytes.chunks(buffer.len()) {
            let old = &mut buffer[..chunk.len()];
            self.0.read_exact(old)?;
            if *old != *chunk {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_only_if_it_differs() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.a");
        for (text, written) in [
            ("one", true),
            ("one", false),
            ("onee", true),
            ("one", true),
            ("two", true),
            ("", true),
            ("", false),
        ] {
            let content = |out: &mut dyn Write| out.write_all(text.as_bytes());
            assert_eq!(replace(&path, &content).unwrap(), written, "{text}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 1);
    }

    #[test]
    fn a_failed_write_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.a");
        let result = replace(&path, &|out| {
            out.write_all(b"half")?;
            Err(io::Error::other("full"))
        });
        assert!(result.is_err());
        assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
        assert!(replace(dir.path(), &|_| Ok(())).is_err());
    }
}
