//! Removal of entries. Each step keeps the eight entries that were used last. At most once a day, a
//! build removes those that none used for 30 days, and beyond 10 GiB those that were used longest
//! ago, unless that was within a day.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::record::FILE_NAME;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
const MAX_SIZE: u64 = 10 << 30;
const MAX_ENTRIES: usize = 8;

/// File whose time is that of the last pruning.
const STAMP: &str = "pruned";

/// Sets the time of an entry's last use.
pub(super) fn set_used(file: &Path, now: SystemTime) {
    if let Ok(file) = File::options().append(true).open(file) {
        let _ = file.set_modified(now);
    }
}

/// Prunes the store, unless that was done within a day, or the store is new.
pub(super) fn run_daily(store: &Path, now: SystemTime) {
    let stamp = store.join(STAMP);
    match age(&stamp, now) {
        Some(age) if age < DAY => {}
        Some(_) => {
            set_used(&stamp, now);
            run(store, now, MAX_SIZE);
        }
        None => {
            let _ = fs::write(&stamp, "");
        }
    }
}

/// Time since a file was written: zero for one of the future.
fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let modified = fs::metadata(path).ok()?.modified().ok()?;
    Some(now.duration_since(modified).unwrap_or_default())
}

/// Entries of a step with the times since their last uses, last used first.
fn entries(step: &Path, now: SystemTime) -> Vec<(Duration, PathBuf)> {
    let mut entries = Vec::new();
    for entry in children(step) {
        let age = age(&entry.join(FILE_NAME), now).unwrap_or(MAX_AGE);
        entries.push((age, entry));
    }
    entries.sort();
    entries
}

/// Removes the entries of a step beyond the limit.
pub(super) fn limit_entries(step: &Path, now: SystemTime) {
    for (_, entry) in entries(step, now).into_iter().skip(MAX_ENTRIES) {
        let _ = fs::remove_dir_all(entry);
    }
}

fn run(store: &Path, now: SystemTime, max_size: u64) {
    let mut all = Vec::new();
    for step in children(store) {
        if age(&step, now).is_some_and(|age| age >= DAY) {
            // An entry that was never completed has the name of its process. A step with entries is
            // not removed.
            let _ = match step.extension() {
                Some(_) => fs::remove_dir_all(&step),
                None => fs::remove_dir(&step),
            };
        }
        all.extend(entries(&step, now));
    }
    all.sort();
    let mut total = 0;
    for (age, entry) in all {
        total += size(&entry);
        if age >= MAX_AGE || (total > max_size && age >= DAY) {
            let _ = fs::remove_dir_all(entry);
        }
    }
}

/// Directories in a directory.
fn children(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect()
}

/// Bytes of the files in a directory.
fn size(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some(entry.metadata().ok()?.len()))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    const NOW: u64 = 1000;

    fn days(number: u64) -> SystemTime {
        UNIX_EPOCH + DAY * u32::try_from(number).unwrap()
    }

    /// Adds an entry with a record of 10 bytes, last used some days ago.
    fn add(step: &Path, name: &str, ago: u64) {
        let record = step.join(name).join(FILE_NAME);
        fs::create_dir_all(step.join(name)).unwrap();
        fs::write(&record, "0123456789").unwrap();
        set_used(&record, days(NOW - ago));
    }

    fn names(dir: &Path) -> Vec<String> {
        let names = children(dir).into_iter();
        let mut names: Vec<_> = names
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_step_keeps_the_entries_that_were_used_last() {
        let dir = tempfile::tempdir().unwrap();
        for ago in (0..12).rev() {
            add(dir.path(), &format!("{ago:02}"), ago);
        }
        limit_entries(dir.path(), days(NOW));
        assert_eq!(names(dir.path()).concat(), "0001020304050607");
    }

    #[test]
    fn old_entries_are_removed_and_beyond_the_size_all_but_those_of_today() {
        for (max_size, kept) in [
            (1000, &["0", "1", "20", "29"][..]),
            (30, &["0", "1", "20"]),
            (10, &["0"]),
            (0, &["0"]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            let store = dir.path();
            for ago in [0, 1, 20, 29, 30, 400] {
                add(
                    &store.join(format!("step{}", ago % 2)),
                    &ago.to_string(),
                    ago,
                );
            }
            run(store, days(NOW), max_size);
            let mut steps = names(&store.join("step0"));
            steps.extend(names(&store.join("step1")));
            steps.sort();
            assert_eq!(steps, kept, "{max_size}");
        }
    }

    #[test]
    fn empty_steps_and_unfinished_entries_are_removed_after_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path();
        for name in ["empty", "step.77/0"] {
            fs::create_dir_all(store.join(name)).unwrap();
        }
        run(store, SystemTime::now(), 0);
        assert_eq!(names(store), ["empty", "step.77"]);
        run(store, SystemTime::now() + 2 * DAY, 0);
        assert_eq!(names(store), [""; 0]);
    }

    #[test]
    fn a_store_is_pruned_once_a_day() {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path();
        let step = store.join("step");
        run_daily(store, days(NOW));
        set_used(&store.join(STAMP), days(NOW));
        add(&step, "old", 40);
        run_daily(store, days(NOW) + DAY / 2);
        assert_eq!(names(&step), ["old"]);
        run_daily(store, days(NOW) + DAY);
        assert_eq!(names(&step), [""; 0]);
    }
}
