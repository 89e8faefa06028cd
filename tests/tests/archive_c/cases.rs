//! Files of `crates/archive/conformance`: its README describes them.

use std::fs;
use std::path::PathBuf;

use gpustub_archive::hash::hash_bytes;
use gpustub_tests::{Result, repository};

/// The table of targets, which is no case.
const TARGETS: &str = "targets.txt";

/// Parts of the tables, and the sizes of their records.
const PARTS: [(&str, usize); 12] = [
    ("contents", 48),
    ("views", 32),
    ("directory", 4),
    ("dictionaries", 32),
    ("slots", 16),
    ("rows", 4),
    ("lists", 12),
    ("entries", 16),
    ("layer-lists", 8),
    ("layer-names", 8),
    ("extensions", 32),
    ("texts", 1),
];

/// A file with the answers of a reader.
pub struct Case {
    pub path: PathBuf,
    pub name: String,
    /// Recipe of the bytes, to the line before the answers.
    recipe: String,
    pub bytes: Vec<u8>,
    pub answers: String,
}

fn directory() -> PathBuf {
    repository().join("crates/archive/conformance")
}

/// A row of the table of targets.
pub struct Target {
    pub target: String,
    pub views: Vec<String>,
    pub best: String,
}

pub fn targets() -> Result<Vec<Target>> {
    let text = fs::read_to_string(directory().join(TARGETS))?;
    let mut rows = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let [target, views, best] = words[..] else {
            return Err(format!("{TARGETS}: {line}").into());
        };
        rows.push(Target {
            target: target.to_owned(),
            views: views.split(',').map(str::to_owned).collect(),
            best: best.to_owned(),
        });
    }
    Ok(rows)
}

/// All cases, by name.
pub fn all() -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for entry in fs::read_dir(directory())? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "txt") && !path.ends_with(TARGETS) {
            cases.push(read(path)?);
        }
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

impl Case {
    /// Writes other answers to the file.
    pub fn bless(&self, answers: &str) -> Result<()> {
        Ok(fs::write(
            &self.path,
            format!("{}---\n{answers}", self.recipe),
        )?)
    }
}

fn read(path: PathBuf) -> Result<Case> {
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (recipe, answers) = text.split_once("---\n").ok_or("no line `---`")?;
    let mut bytes = Vec::new();
    for line in recipe.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let applied = match words[..] {
            ["#", ..] => Some(()),
            ["bytes", data] => unhex(data).map(|data| bytes.extend(data)),
            ["base", base] => {
                bytes = read(path.with_file_name(base).with_extension("txt"))?.bytes;
                Some(())
            }
            _ => change(&mut bytes, &words),
        };
        applied.ok_or_else(|| format!("{}: cannot be done: {line}", path.display()))?;
    }
    Ok(Case {
        name: name.into_owned(),
        recipe: recipe.to_owned(),
        bytes,
        answers: answers.to_owned(),
        path,
    })
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    (text.as_bytes().chunks(2))
        .map(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())
        .collect()
}

/// Applies a line of a recipe.
fn change(bytes: &mut Vec<u8>, words: &[&str]) -> Option<()> {
    let (offset, data) = match *words {
        ["cut" | "short", size] => {
            let size: usize = size.parse().ok()?;
            let length = if words[0] == "cut" {
                Some(size)
            } else {
                bytes.len().checked_sub(size)
            };
            bytes.truncate(length?);
            return Some(());
        }
        ["hash"] => {
            rehash(bytes);
            return Some(());
        }
        ["archive", offset, data] => (offset.parse().ok()?, unhex(data)?),
        ["end", offset, data] => (bytes.len().checked_sub(offset.parse().ok()?)?, unhex(data)?),
        ["set", part, index, offset, data] => {
            let (index, offset): (usize, usize) = (index.parse().ok()?, offset.parse().ok()?);
            (record(bytes, part, index)? + offset, unhex(data)?)
        }
        _ => return None,
    };
    bytes
        .get_mut(offset..offset + data.len())?
        .copy_from_slice(&data);
    Some(())
}

pub fn blob(bytes: &[u8]) -> Option<usize> {
    let magic = gpustub_archive::MAGIC;
    bytes.windows(magic.len()).position(|part| part == magic)
}

pub fn number<const N: usize>(bytes: &[u8], offset: usize) -> Option<usize> {
    let mut number = [0; 8];
    number[..N].copy_from_slice(bytes.get(offset..offset + N)?);
    usize::try_from(u64::from_le_bytes(number)).ok()
}

/// Offset of a record in the archive.
fn record(bytes: &[u8], part: &str, index: usize) -> Option<usize> {
    let blob = blob(bytes)?;
    let mut offset = blob;
    if part != "header" {
        offset += number::<4>(bytes, blob + 20)?;
        let before = PARTS.iter().position(|(name, _)| *name == part)?;
        for (number_of, (_, size)) in PARTS[..before].iter().enumerate() {
            offset += number::<4>(bytes, blob + 56 + 4 * number_of)? * size;
        }
        offset += index * PARTS[before].1;
    }
    Some(offset)
}

/// Makes the hash of the tables right, if they are within the file.
pub fn rehash(bytes: &mut [u8]) -> Option<()> {
    let blob = blob(bytes)?;
    let size = number::<8>(bytes, blob + 40)?;
    let header = hash_bytes(bytes.get(blob..blob + 112)?);
    let hash = header ^ hash_bytes(bytes.get(blob + 120..blob.checked_add(size)?)?);
    bytes
        .get_mut(blob + 112..blob + 120)?
        .copy_from_slice(&hash.to_le_bytes());
    Some(())
}
