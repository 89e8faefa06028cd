//! Whether a tool has to run again.
//!
//! Beside each output stands a stamp: the command that made it, and every file that the command
//! read, each with its time and size. The tool runs again when one of these is another now. Cargo
//! only says that a build script has to run; of its twenty sources mostly one has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::{Error, files};

const FIRST_LINE: &str = "gpustub-stamp 1\n";

/// The command in one line, as it stands in stamps.
pub(crate) fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| format!("{word:?}")).collect();
    words.join(" ")
}

/// What `output` was made from, if the same command and the same files would make it again.
pub(crate) fn fresh(output: &Path, command: &str) -> Option<Vec<PathBuf>> {
    if !output.exists() {
        return None;
    }
    let old = fs::read_to_string(of(output)).ok()?;
    let rest = old.strip_prefix(FIRST_LINE)?;
    let (made_by, inputs) = rest.split_once('\n')?;
    if made_by != command {
        return None;
    }
    let mut files = Vec::new();
    for line in inputs.lines() {
        let path = Path::new(line.splitn(3, ' ').nth(2)?);
        if state(path)? != line {
            return None;
        }
        files.push(path.to_path_buf());
    }
    Some(files)
}

/// Notes what `output` was made by and from, where that is known only afterwards. `started` is when
/// the command was: a file that was written since then may not be what it has read, and leaves no stamp.
pub(crate) fn write(
    output: &Path,
    command: &str,
    inputs: &[PathBuf],
    started: Started,
) -> Result<(), Error> {
    let is_older = |path: &PathBuf| modified(path).is_some_and(|time| time < started.0);
    match Inputs::of(inputs) {
        Inputs(Some(lines)) if inputs.iter().all(is_older) => note(output, command, &lines),
        _ => forget(output),
    }
}

/// Notes what `output` was made by and from, where that was known `before`: a file that is another now
/// leaves no stamp.
pub(crate) fn write_known(
    output: &Path,
    command: &str,
    inputs: &[PathBuf],
    before: &Inputs,
) -> Result<(), Error> {
    match (before, Inputs::of(inputs)) {
        (Inputs(Some(lines)), now) if *before == now => note(output, command, lines),
        _ => forget(output),
    }
}

fn note(output: &Path, command: &str, lines: &[String]) -> Result<(), Error> {
    let mut text = format!("{FIRST_LINE}{command}\n");
    for line in lines {
        text += &format!("{line}\n");
    }
    files::write_if_changed(&of(output), text.as_bytes())
}

/// Files as they are at one time, in the lines of a stamp; `None` if one cannot be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inputs(Option<Vec<String>>);

impl Inputs {
    pub(crate) fn of(paths: &[PathBuf]) -> Self {
        Self(paths.iter().map(|path| state(path)).collect())
    }
}

/// Removes the stamp of an output that is about to be written: a run that is broken off leaves none.
pub(crate) fn forget(output: &Path) -> Result<(), Error> {
    files::remove(&of(output))
}

/// A time by the clock of the file system that outputs lie on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started(u128);

impl Started {
    /// Now: the time of a file that is written in `dir`.
    pub(crate) fn now(dir: &Path) -> Result<Self, Error> {
        let probe = dir.join("started");
        fs::write(&probe, "").map_err(|e| Error::io("write", &probe, &e))?;
        Ok(Self(modified(&probe).unwrap_or_default()))
    }
}

fn of(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(".stamp");
    name.into()
}

/// Nanoseconds since 1970 at which a file was last written.
fn modified(path: &Path) -> Option<u128> {
    let time = fs::metadata(path).ok()?.modified().ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_nanos())
}

/// A line that is another when the file is. A path that has no place in a line has no state.
pub(crate) fn state(path: &Path) -> Option<String> {
    let size = fs::metadata(path).ok()?.len();
    let text = path.to_str().filter(|text| !text.contains('\n'))?;
    Some(format!("{} {size} {text}", modified(path)?))
}

/// The files that a compiler read, from the rule that it writes for make (`-MD`): the words after
/// the first colon, with `\ ` for a space, `$$` for `$` and a backslash before a line's end.
pub(crate) fn read_dependencies(text: &str) -> Vec<PathBuf> {
    let Some((_, names)) = text.split_once(": ") else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let mut word = String::new();
    let mut letters = names.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('\n')) => {}
            ('\\', Some(&escaped @ (' ' | '#' | '\\'))) => {
                letters.next();
                word.push(escaped);
            }
            ('$', Some('$')) => {
                letters.next();
                word.push('$');
            }
            (' ' | '\n' | '\r' | '\t', _) => {
                if !word.is_empty() {
                    found.push(PathBuf::from(std::mem::take(&mut word)));
                }
            }
            (other, _) => word.push(other),
        }
    }
    if !word.is_empty() {
        found.push(word.into());
    }
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_time(path: &Path, seconds: u64) {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(seconds))
            .unwrap();
    }

    #[test]
    fn an_output_is_fresh_until_its_command_or_a_file_is_another() {
        let dir = tempfile::tempdir().unwrap();
        let [source, output] = ["a.cu", "a.o"].map(|name| dir.path().join(name));
        fs::write(&source, "1").unwrap();
        fs::write(&output, "").unwrap();
        set_time(&source, 1000);
        let started = Started::now(dir.path()).unwrap();
        assert_eq!(fresh(&output, "nvcc a.cu"), None);
        write(&output, "nvcc a.cu", std::slice::from_ref(&source), started).unwrap();
        assert_eq!(fresh(&output, "nvcc a.cu"), Some(vec![source.clone()]));
        assert_eq!(fresh(&output, "nvcc -O3 a.cu"), None);
        set_time(&source, 1001);
        assert_eq!(fresh(&output, "nvcc a.cu"), None);
        set_time(&source, 1000);
        assert!(fresh(&output, "nvcc a.cu").is_some());
        fs::write(&source, "22").unwrap();
        set_time(&source, 1000);
        assert_eq!(fresh(&output, "nvcc a.cu"), None);
        fs::remove_file(&source).unwrap();
        assert_eq!(fresh(&output, "nvcc a.cu"), None);
    }

    #[test]
    fn an_output_that_is_gone_or_begun_again_is_not_fresh() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.o");
        fs::write(&output, "").unwrap();
        let started = Started::now(dir.path()).unwrap();
        write(&output, "x", &[], started).unwrap();
        assert!(fresh(&output, "x").is_some());
        forget(&output).unwrap();
        assert_eq!(fresh(&output, "x"), None);
        write(&output, "x", &[], started).unwrap();
        fs::remove_file(&output).unwrap();
        assert_eq!(fresh(&output, "x"), None);
    }

    #[test]
    fn a_file_that_was_written_meanwhile_leaves_no_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let [source, output] = ["a.cu", "a.o"].map(|name| dir.path().join(name));
        fs::write(&source, "1").unwrap();
        fs::write(&output, "").unwrap();
        write(&output, "x", std::slice::from_ref(&source), Started(0)).unwrap();
        assert_eq!(fresh(&output, "x"), None);
    }

    #[test]
    fn what_was_known_before_is_stamped_unless_it_changes_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let [object, output] = ["a.o", "a.a"].map(|name| dir.path().join(name));
        let inputs = [object.clone()];
        fs::write(&object, "1").unwrap();
        fs::write(&output, "").unwrap();
        // Both were made in one tick of the clock; which one, does not matter.
        let before = Inputs::of(&inputs);
        write_known(&output, "ar", &inputs, &before).unwrap();
        assert!(fresh(&output, "ar").is_some());
        set_time(&object, 1000);
        write_known(&output, "ar", &inputs, &before).unwrap();
        assert_eq!(fresh(&output, "ar"), None);
        fs::remove_file(&object).unwrap();
        write_known(&output, "ar", &inputs, &Inputs::of(&inputs)).unwrap();
        assert_eq!(fresh(&output, "ar"), None);
    }

    #[test]
    fn rules_of_make_are_read_as_nvcc_and_gcc_write_them() {
        let text = "a.o : a.cu \\\n    /usr/include/x.h \\\n    /a\\ b/c.h /d$$e.h a.cu\n";
        let expected = ["/a b/c.h", "/d$e.h", "/usr/include/x.h", "a.cu"].map(PathBuf::from);
        assert_eq!(read_dependencies(text), expected);
        assert!(read_dependencies("").is_empty());
    }
}
