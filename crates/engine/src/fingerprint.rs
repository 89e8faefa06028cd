//! Decides whether a tool has to run again.
//!
//! Each output has a fingerprint file next to it: the command that made the output, the size of the output, and every
//! file that the command read with its time and size. The tool runs again when one of these differs. Cargo
//! only reruns the build script as a whole; usually one of its twenty sources has changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::UNIX_EPOCH;

use crate::error::Error;
use crate::files;
use gpustub_core::text::join;

const FIRST_LINE: &str = "gpustub-fingerprint 2\n";

/// The command in one line, as fingerprints record it.
pub(crate) fn command_line(command: &Command) -> String {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("{word:?}"))
        .collect();
    join(&words, " ")
}

/// Returns the input files of `output`, if the same command and the same files would produce it again.
pub(crate) fn fresh(output: &Path, command: &str) -> Option<Vec<PathBuf>> {
    let size = size_line(output)?;
    let old = fs::read_to_string(file_for(output)).ok()?;
    let rest = old.strip_prefix(FIRST_LINE)?;
    let (recorded_command, rest) = rest.split_once('\n')?;
    let (recorded_size, inputs) = rest.split_once('\n')?;
    if recorded_command != command || recorded_size != size {
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

/// Records command and inputs of `output`, for inputs that are known only afterwards. `started` is the
/// start of the command: a file written since then may differ from what it read, and leaves no fingerprint.
pub(crate) fn record(
    output: &Path,
    command: &str,
    inputs: &[PathBuf],
    started: Started,
) -> Result<(), Error> {
    match InputStates::read(inputs) {
        InputStates(Some(lines)) if started.is_after(inputs) => write(output, command, &lines),
        _ => invalidate(output),
    }
}

/// Records command and inputs of `output`, for inputs that were known before the command: a file that
/// has changed since leaves no fingerprint.
pub(crate) fn record_known(
    output: &Path,
    command: &str,
    inputs: &[PathBuf],
    before: &InputStates,
) -> Result<(), Error> {
    match (before, InputStates::read(inputs)) {
        (InputStates(Some(lines)), after) if *before == after => write(output, command, lines),
        _ => invalidate(output),
    }
}

fn write(output: &Path, command: &str, lines: &[String]) -> Result<(), Error> {
    let Some(size) = size_line(output) else {
        return invalidate(output);
    };
    let mut text = format!("{FIRST_LINE}{command}\n{size}\n");
    for line in lines {
        text += &format!("{line}\n");
    }
    files::write_if_changed(&file_for(output), text.as_bytes())
}

/// Line with the size of an output, so that a truncated one is made again; `None` if it does not exist. Not its time: another
/// build may link the file of the store anew.
fn size_line(output: &Path) -> Option<String> {
    Some(format!("{} bytes", fs::metadata(output).ok()?.len()))
}

/// State of files at one time, as lines of a fingerprint; `None` if a file has no state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InputStates(Option<Vec<String>>);

impl InputStates {
    pub(crate) fn read(paths: &[PathBuf]) -> Self {
        Self(paths.iter().map(|path| state(path)).collect())
    }
}

/// Removes the fingerprint of an output that is about to be written: an interrupted run leaves none.
pub(crate) fn invalidate(output: &Path) -> Result<(), Error> {
    files::remove(&file_for(output))
}

/// A time by the clock of the outputs' file system.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started(u128);

impl Started {
    /// Now: the time of a file that is written in `dir`.
    pub(crate) fn now(dir: &Path) -> Result<Self, Error> {
        let probe = dir.join("started");
        fs::write(&probe, "").map_err(|e| Error::io("write", &probe, &e))?;
        Ok(Self(modified(&probe).unwrap_or_default()))
    }

    /// Whether all files were last written before.
    pub(crate) fn is_after(self, paths: &[PathBuf]) -> bool {
        let mut times = paths.iter().map(|path| modified(path));
        times.all(|time| time.is_some_and(|time| time < self.0))
    }
}

/// Suffix of the file names of fingerprints.
pub(crate) const SUFFIX: &str = ".fingerprint";

fn file_for(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_owned();
    name.push(SUFFIX);
    name.into()
}

/// Nanoseconds since 1970 at which a file was last written.
fn modified(path: &Path) -> Option<u128> {
    let time = fs::metadata(path).ok()?.modified().ok()?;
    Some(time.duration_since(UNIX_EPOCH).ok()?.as_nanos())
}

/// A line that changes with the file. A path with a line break, or one that is not UTF-8, has no state.
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
    let mut paths = Vec::new();
    let mut word = String::new();
    let mut characters = names.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some('\n')) => {}
            ('\\', Some(&escaped @ (' ' | '#' | '\\'))) => {
                characters.next();
                word.push(escaped);
            }
            ('$', Some('$')) => {
                characters.next();
                word.push('$');
            }
            (' ' | '\n' | '\r' | '\t', _) => {
                if !word.is_empty() {
                    paths.push(PathBuf::from(std::mem::take(&mut word)));
                }
            }
            _ => word.push(character),
        }
    }
    if !word.is_empty() {
        paths.push(word.into());
    }
    paths.sort();
    paths.dedup();
    paths
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
    fn an_output_is_fresh_until_its_command_or_a_file_changes() {
        let dir = tempfile::tempdir().unwrap();
        let [source, output] = ["a.cu", "a.o"].map(|name| dir.path().join(name));
        fs::write(&source, "1").unwrap();
        fs::write(&output, "").unwrap();
        set_time(&source, 1000);
        let started = Started::now(dir.path()).unwrap();
        assert_eq!(fresh(&output, "nvcc a.cu"), None);
        record(&output, "nvcc a.cu", std::slice::from_ref(&source), started).unwrap();
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
    fn a_missing_or_restarted_output_is_not_fresh() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().join("a.o");
        fs::write(&output, "").unwrap();
        let started = Started::now(dir.path()).unwrap();
        record(&output, "x", &[], started).unwrap();
        assert!(fresh(&output, "x").is_some());
        invalidate(&output).unwrap();
        assert_eq!(fresh(&output, "x"), None);
        record(&output, "x", &[], started).unwrap();
        for text in ["truncated", ""] {
            fs::write(&output, text).unwrap();
            assert_eq!(fresh(&output, "x").is_some(), text.is_empty());
        }
        fs::remove_file(&output).unwrap();
        assert_eq!(fresh(&output, "x"), None);
        record(&output, "x", &[], started).unwrap();
        assert!(!file_for(&output).exists());
    }

    #[test]
    fn a_file_written_meanwhile_leaves_no_fingerprint() {
        let dir = tempfile::tempdir().unwrap();
        let [source, output] = ["a.cu", "a.o"].map(|name| dir.path().join(name));
        fs::write(&source, "1").unwrap();
        fs::write(&output, "").unwrap();
        record(&output, "x", std::slice::from_ref(&source), Started(0)).unwrap();
        assert_eq!(fresh(&output, "x"), None);
    }

    #[test]
    fn known_inputs_leave_a_fingerprint_unless_they_change_meanwhile() {
        let dir = tempfile::tempdir().unwrap();
        let [object, output] = ["a.o", "a.a"].map(|name| dir.path().join(name));
        let inputs = [object.clone()];
        fs::write(&object, "1").unwrap();
        fs::write(&output, "").unwrap();
        // Both were made in one tick of the clock, in either order.
        let before = InputStates::read(&inputs);
        record_known(&output, "ar", &inputs, &before).unwrap();
        assert!(fresh(&output, "ar").is_some());
        set_time(&object, 1000);
        record_known(&output, "ar", &inputs, &before).unwrap();
        assert_eq!(fresh(&output, "ar"), None);
        fs::remove_file(&object).unwrap();
        record_known(&output, "ar", &inputs, &InputStates::read(&inputs)).unwrap();
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
