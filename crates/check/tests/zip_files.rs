//! Files of an open zip archive.

mod archive;

use std::fs::{self, File};
use std::io::Read;

use archive::{Entry, entry, zip};
use gpustub_check::read::Zip;

/// Names and texts of the files in an archive of these entries.
fn zip_files(entries: &[Entry]) -> std::io::Result<Vec<(String, String)>> {
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("x.whl");
    fs::write(&path, zip(entries))?;
    let mut files = Vec::new();
    for file in Zip::new(File::open(&path)?)?.files() {
        let (name, mut bytes) = file?;
        let mut text = String::new();
        bytes.read_to_string(&mut text)?;
        files.push((name, text));
    }
    Ok(files)
}

#[test]
fn zip_files_returns_verified_contents() {
    let stored = Entry {
        method: 0,
        ..entry("a/stored.h", "stored")
    };
    let link = Entry {
        mode: 0o120777,
        ..entry("a/link.h", "packed.h")
    };
    let entries = [
        entry("a/", ""),
        entry("a/packed.h", "packed"),
        stored.clone(),
        link,
        entry("../b.h", "escapes"),
    ];
    let expected = [("a/packed.h", "packed"), ("a/stored.h", "stored")];
    assert_eq!(
        zip_files(&entries).unwrap(),
        expected.map(|(name, text)| (name.to_owned(), text.to_owned()))
    );

    for (change, expected) in [
        (
            (|file| file.flags = 1) as fn(&mut Entry),
            "`a/stored.h`: unsupported encryption",
        ),
        (
            |file| file.method = 12,
            "`a/stored.h`: unsupported compression",
        ),
        (|file| file.size = Some(7), "two different sizes"),
        (|file| file.crc = Some(0), "checksum"),
    ] {
        let mut file = stored.clone();
        change(&mut file);
        let error = zip_files(&[file]).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
