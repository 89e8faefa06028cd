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
fn whole(dir: &Path) -> Result<(PathBuf, Vec<u8>)> {
    let base = dir.join("libbase.so.13");
    library(&base, "int base_function;\n", &[])?;
    let file = dir.join("libacme.so.12");
    let source = "const char filler[4096 - 7] = {1};\n\
                  const char *acme_function(void) { return \"+cuda12.9\"; }\n";
    library(&file, source, &[base.display().to_string()])?;
    let bytes = fs::read(&file)?;
    Ok((file, bytes))
}

fn number(bytes: &[u8], at: usize) -> usize {
    let bytes = bytes[at..at + 8].iter().rev();
    bytes.fold(0, |value, byte| value << 8 | usize::from(*byte))
}

/// Reads copies of the file with every byte of `places` damaged, each in several ways.
fn breaks(
    rule: &VersionProbe,
    places: impl Iterator<Item = usize> + Clone,
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
    let (whole, bytes) = whole(dir.path())?;
    let mut files = vec![whole, dir.path().to_owned(), dir.path().join("nothing")];
    let mut add = |bytes: &[u8]| -> Result<()> {
        let file = dir.path().join(format!("f{}", files.len()));
        fs::write(&file, bytes)?;
        files.push(file);
        Ok(())
    };
    for at in places.clone() {
        for value in [0x00, 0x7f, 0xff] {
            let mut broken = bytes.clone();
            broken[at] = value;
            add(&broken[..until(bytes.len())])?;
        }
    }
    for at in places.step_by(13) {
        add(&bytes[..at])?;
        let mut broken = bytes.clone();
        broken[at..(at + 8).min(bytes.len())].fill(0xff);
        add(&broken)?;
    }
    for files in files.chunks(500) {
        for reported in reported(&reader, rule, files)? {
            assert!(reported < 10_000, "{reported}");
        }
    }
    assert_eq!(reported(&reader, rule, &files[..3])?, [major, 0, 0]);
    Ok(())
}

#[test]
fn broken_files_are_read_without_harm() -> Result<()> {
    let dir = scratch()?;
    let (_, bytes) = whole(dir.path())?;
    // Every byte of the header, the segments and the dynamic section, which control the reading.
    let segments = number(&bytes, 32);
    let count = usize::from(bytes[56]);
    let dynamic = (0..count)
        .map(|i| segments + 56 * i)
        .find(|&at| bytes[at] == 2);
    let dynamic = dynamic.ok_or("no dynamic section")?;
    let (start, size) = (number(&bytes, dynamic + 8), number(&bytes, dynamic + 32));
    let places = (0..segments + 56 * count).chain(start..start + size);
    let rule = VersionProbe::Needed("libbase.so.".to_owned());
    breaks(&rule, places, |_| start + size + 1, 13)
}

#[test]
fn broken_sections_are_read_without_harm() -> Result<()> {
    let dir = scratch()?;
    let (_, bytes) = whole(dir.path())?;
    // The header, and the section header table.
    let sections = number(&bytes, 40);
    let count = usize::from(bytes[60]);
    let places = (0..64).chain(sections..sections + 64 * count);
    let rule = VersionProbe::Constant {
        prefix: "+cuda".to_owned(),
        sibling: None,
    };
    breaks(&rule, places, |length| length, 12)
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
    let whole = |before: usize, text: &str| -> Result<u32> {
        // One struct, so that nothing is between the two.
        let source = format!(
            "const struct {{ char before[{before}], text[{}]; }} both = {{{{1}}, \"{text}\"}};\n",
            text.len() + 1
        );
        library(&file, &source, &[])?;
        Ok(reported(&reader, &rule, std::slice::from_ref(&file))?[0])
    };
    for before in (4096 - 16..4096 + 4).chain([1, 8 << 10, (8 << 20) - 16]) {
        assert_eq!(whole(before, "+cuda12.9")?, 12, "after {before} bytes");
    }
    assert_eq!(whole(8 << 20, "+cuda12.9")?, 0, "too far");
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
        assert_eq!(whole(1, text)?, major, "{text}");
    }
    Ok(())
}
