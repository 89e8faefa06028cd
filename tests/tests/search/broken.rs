//! Files that are not libraries, or broken ones, are read safely: under the sanitizers.

use std::fs;
use std::path::{Path, PathBuf};

use gpustub_core::library::VersionProbe;
use gpustub_tests::Result;
use gpustub_tests::scratch::scratch;

use crate::built::{reader, reported};
use crate::shared::library;

/// A library whose `DT_NEEDED` names identify major 13, and a constant major 12. The constant
/// crosses the end of the first block that is read.
fn intact(dir: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let base = dir.join("libbase.so.13");
    library(&base, "int base_function;\n", &[])?;
    let file = dir.join("libacme.so.12");
    let source = "const char filler[4096 - 7] = {1};\n\
                  const char *acme_function(void) { return \"+cuda12.9\"; }\n";
    library(&file, source, &[base.display().to_string()])?;
    let bytes = fs::read(&file)?;
    Ok((file, bytes))
}

fn number(bytes: &[u8], offset: usize) -> usize {
    (bytes[offset..offset + 8].iter().rev())
        .fold(0, |number, byte| number << 8 | usize::from(*byte))
}

/// Reads copies of the file with every byte of `offsets` damaged, each in several ways.
fn read_broken(
    rule: &VersionProbe,
    offsets: impl Iterator<Item = usize> + Clone,
    until: impl Fn(usize) -> usize,
    major: u32,
) -> Result<()> {
    let dir = scratch()?;
    let sanitizers = [
        "-g",
        "-O1",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
    ];
    let reader = reader(dir.path(), &sanitizers)?;
    let (file, bytes) = intact(dir.path())?;
    let mut files = vec![file, dir.path().to_owned(), dir.path().join("nothing")];
    let mut add = |bytes: &[u8]| -> Result<()> {
        let file = dir.path().join(format!("f{}", files.len()));
        fs::write(&file, bytes)?;
        files.push(file);
        Ok(())
    };
    for offset in offsets.clone() {
        for byte in [0x00, 0x7f, 0xff] {
            let mut broken = bytes.clone();
            broken[offset] = byte;
            add(&broken[..until(bytes.len())])?;
        }
    }
    for offset in offsets.step_by(13) {
        add(&bytes[..offset])?;
        let mut broken = bytes.clone();
        broken[offset..(offset + 8).min(bytes.len())].fill(0xff);
        add(&broken)?;
    }
    for files in files.chunks(500) {
        for major in reported(&reader, rule, files)? {
            assert!(major < 10_000, "{major}");
        }
    }
    assert_eq!(reported(&reader, rule, &files[..3])?, [major, 0, 0]);
    Ok(())
}

#[test]
fn broken_files_are_read_without_harm() -> Result<()> {
    let dir = scratch()?;
    let (_, bytes) = intact(dir.path())?;
    // Every byte of the header, the segments and the dynamic section, which control the reading.
    let segments = number(&bytes, 32);
    let count = usize::from(bytes[56]);
    let dynamic = (0..count)
        .map(|index| segments + 56 * index)
        .find(|&header| bytes[header] == 2)
        .ok_or("no dynamic section")?;
    let (start, size) = (number(&bytes, dynamic + 8), number(&bytes, dynamic + 32));
    let offsets = (0..segments + 56 * count).chain(start..start + size);
    let rule = VersionProbe::Needed("libbase.so.".to_owned());
    read_broken(&rule, offsets, |_| start + size + 1, 13)
}

#[test]
fn broken_sections_are_read_without_harm() -> Result<()> {
    let dir = scratch()?;
    let (_, bytes) = intact(dir.path())?;
    // The header, and the section header table.
    let sections = number(&bytes, 40);
    let count = usize::from(bytes[60]);
    let offsets = (0..64).chain(sections..sections + 64 * count);
    let rule = VersionProbe::Constant {
        prefix: "+cuda".to_owned(),
        sibling: None,
    };
    read_broken(&rule, offsets, |length| length, 12)
}

/// Text is found at any offset, but not beyond the part of the file that is read.
#[test]
fn constant_is_found_at_any_offset() -> Result<()> {
    let dir = scratch()?;
    let reader = reader(dir.path(), &["-O1", "-fsanitize=address,undefined"])?;
    let rule = VersionProbe::Constant {
        prefix: "+cuda".to_owned(),
        sibling: None,
    };
    let file = dir.path().join("libacme.so.9");
    let major_of = |before: usize, text: &str| -> Result<u32> {
        // One struct, so that nothing is between the two.
        let source = format!(
            "const struct {{ char before[{before}], text[{}]; }} both = {{{{1}}, \"{text}\"}};\n",
            text.len() + 1
        );
        library(&file, &source, &[])?;
        Ok(reported(&reader, &rule, std::slice::from_ref(&file))?[0])
    };
    for before in (4096 - 16..4096 + 4).chain([1, 8 << 10, (8 << 20) - 16]) {
        assert_eq!(major_of(before, "+cuda12.9")?, 12, "after {before} bytes");
    }
    assert_eq!(major_of(8 << 20, "+cuda12.9")?, 0, "too far");
    for (text, major) in [
        ("+cuda", 0),
        ("+cuda.", 0),
        ("+cuda+cuda13.4", 13),
        ("++cuda13", 13),
        ("+cuda99999999999999999999", 0),
        ("+cuda-12", 0),
        ("+cuda 12", 0),
        ("+cuda0 +cuda12", 12),
    ] {
        assert_eq!(major_of(1, text)?, major, "{text}");
    }
    Ok(())
}
