//! `RECORD` of a wheel: a line for each file, with hash and size (PEP 376, PEP 427; binary distribution
//! format of the Python packaging user guide).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io;

use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest, Sha256};

/// Whether a path is `x-1.dist-info/RECORD`, also in a directory such as site-packages.
pub fn is_record(member: &str, name: &str) -> bool {
    member
        .strip_suffix(name)
        .is_some_and(|directory| directory.ends_with(".dist-info/"))
}

/// Hash and size of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// `sha256=…`.
    pub hash: String,
    /// Number of bytes.
    pub size: u64,
}

/// Computes an entry from the bytes of a file.
#[derive(Default)]
pub struct Hasher {
    hash: Sha256,
    size: u64,
}

impl Hasher {
    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
    }

    /// The entry.
    pub fn finish(self) -> Entry {
        let hash = BASE64URL_NOPAD.encode(&self.hash.finalize());
        Entry {
            hash: format!("sha256={hash}"),
            size: self.size,
        }
    }
}

/// A line of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Path in the wheel, or relative to site-packages.
    pub path: String,
    /// `sha256=…`; may be empty.
    pub hash: String,
    /// Number of bytes; may be empty.
    pub size: String,
}

/// Lines of a text that are not empty.
pub fn lines(text: &str) -> impl Iterator<Item = Line> {
    text.lines().filter(|line| !line.is_empty()).map(|line| {
        let [path, hash, size] = fields(line);
        Line { path, hash, size }
    })
}

/// The bytes that are written are added.
impl io::Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Paths in a text.
pub fn paths(text: &str) -> BTreeSet<String> {
    lines(text).map(|line| line.path).collect()
}

/// Returns the text with the lines of removed files left out, those of changed files replaced, and those of new
/// files before the line of `RECORD` itself. Other lines are unchanged.
pub fn edited(
    text: &str,
    record: &str,
    entries: &BTreeMap<String, Entry>,
    removed: &BTreeSet<String>,
) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut new_entries = entries.clone();
    let mut out = String::with_capacity(text.len());
    let mut record_line = String::new();
    for line in text.lines() {
        let [path, ..] = fields(line);
        if removed.contains(&path) {
            continue;
        }
        if path == record {
            record_line = format!("{line}{end}");
        } else if let Some(entry) = new_entries.remove(&path) {
            write_line(&mut out, &path, &entry, end);
        } else {
            out.push_str(line);
            out.push_str(end);
        }
    }
    for (path, entry) in &new_entries {
        write_line(&mut out, path, entry, end);
    }
    out + &record_line
}

fn write_line(out: &mut String, path: &str, entry: &Entry, end: &str) {
    let path = if path.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", path.replace('"', "\"\""))
    } else {
        path.to_owned()
    };
    // Writing to a String cannot fail.
    let _ = write!(out, "{path},{},{}{end}", entry.hash, entry.size);
}

/// Path, hash and size in a line. Fields in quotes may contain commas, and quotes twice (RFC 4180).
fn fields(line: &str) -> [String; 3] {
    let mut fields = [const { String::new() }; 3];
    let mut chars = line.chars().peekable();
    for field in &mut fields {
        let is_quoted = chars.next_if_eq(&'"').is_some();
        while let Some(c) = chars.next() {
            match c {
                '"' if is_quoted && chars.next_if_eq(&'"').is_none() => {
                    chars.next_if_eq(&',');
                    break;
                }
                ',' if !is_quoted => break,
                _ => field.push(c),
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_with_and_without_quotes() {
        for (line, expected) in [
            ("a.so,sha256=x,1", ["a.so", "sha256=x", "1"]),
            ("a,,", ["a", "", ""]),
            ("a", ["a", "", ""]),
            ("\"a,b\",sha256=x,1", ["a,b", "sha256=x", "1"]),
            ("\"a\"\"b\",\"sha256=x\",\"1\"", ["a\"b", "sha256=x", "1"]),
            ("a\"b,\"\",1,more", ["a\"b", "", "1"]),
            ("\"a", ["a", "", ""]),
        ] {
            assert_eq!(fields(line), expected, "{line}");
        }
    }

    #[test]
    fn lines_of_changed_files_are_replaced() {
        let mut hasher = Hasher::default();
        hasher.update(b"abc");
        let entry = hasher.finish();
        assert_eq!(
            entry.hash,
            "sha256=ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0"
        );
        let text = "x/a.so,sha256=old,1\r\n\"x/a,b.py\",sha256=old,2\r\nx/c.so,sha256=old,3\r\n\
                    x-1.dist-info/RECORD,,\r\n";
        let entries =
            ["x/a.so", "x.libs/s.so", "x/a,b.py"].map(|path| (path.to_owned(), entry.clone()));
        let removed = BTreeSet::from(["x/c.so".to_owned()]);
        let hash = &entry.hash;
        assert_eq!(
            edited(text, "x-1.dist-info/RECORD", &entries.into(), &removed),
            format!(
                "x/a.so,{hash},3\r\n\"x/a,b.py\",{hash},3\r\nx.libs/s.so,{hash},3\r\n\
                 x-1.dist-info/RECORD,,\r\n"
            )
        );
    }
}
