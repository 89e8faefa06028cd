//! Verification finds each changed bit, except in the bytes that FORMAT.md names.

use std::collections::HashSet;

use gpustub_archive::SuperArchive;
use gpustub_tests::Result;

use crate::cases::{Case, all, blob, number};
use crate::walker::Walker;

/// The bytes that no reader uses: dates, owners and modes in the headers of the index, the long names, the container
/// and members that repeat the contents of earlier ones; the container around the blob; padding; compressed contents.
pub fn gaps(bytes: &[u8]) -> Option<Vec<bool>> {
    let mut is_gap = vec![false; bytes.len()];
    let start = blob(bytes)?;
    let end = start + number::<8>(bytes, start + 32)?;
    let archive = SuperArchive::parse(bytes).ok()?;
    // Offsets of contents that no earlier member has.
    let originals: HashSet<usize> = archive
        .contents()
        .flatten()
        .filter(|contents| contents.in_default_view())
        .filter_map(|contents| contents.data().ok())
        .map(|data| data.as_ptr() as usize - bytes.as_ptr() as usize)
        .collect();
    let mut member = 8;
    while member + 60 <= bytes.len() {
        let header = bytes.get(member..member + 60)?;
        let name = std::str::from_utf8(&header[..16]).ok()?.trim_end();
        let size: usize = std::str::from_utf8(&header[48..58])
            .ok()?
            .trim_end()
            .parse()
            .ok()?;
        let data = member + 60..member + 60 + size;
        let is_container = data.contains(&start);
        let is_special = is_container || ["/", "/SYM64/", "//"].contains(&name);
        if is_special || !originals.contains(&data.start) {
            is_gap[member + 16..member + 48].fill(true);
        }
        if is_special {
            // 00 is 0.
            is_gap[member + 49..member + 58].fill(size == 0);
        }
        if is_container && name.starts_with("/") {
            // Zeros between the names of the index and the blob. The trailer follows the blob.
            let names = bytes[data.start..start].iter().rposition(|&byte| byte != 0);
            // A number, even if it is 0, and the end of the last name.
            let used = names
                .map_or(0, |last| last + 2)
                .max(if name == "/" { 4 } else { 8 });
            is_gap[data.start + used..start].fill(true);
        } else if is_container {
            // The name, too.
            is_gap[member..member + 16].fill(true);
            is_gap[data.start..start].fill(true);
            is_gap[end..data.end].fill(true);
        }
        member = data.end + size % 2;
        is_gap[data.end..member].fill(true);
    }
    for contents in archive.contents() {
        let contents = contents.ok()?;
        if contents.data().is_err() {
            let record = usize::try_from(archive.record_offset(contents.index())?).ok()?;
            let (offset, size) = (number::<8>(bytes, record)?, number::<8>(bytes, record + 8)?);
            is_gap[start + offset..start + offset + size].fill(true);
        }
    }
    Some(is_gap)
}

/// Changes of one case that are not found, although they are in no gap.
fn missed(walker: &Walker, case: &Case, gaps: &[bool]) -> Result<Vec<String>> {
    let changed: Vec<Vec<u8>> = (0..8 * case.bytes.len())
        .map(|bit| {
            let mut bytes = case.bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            bytes
        })
        .collect();
    let answers = walker.walk(changed.iter().map(Vec::as_slice))?;
    assert_eq!(answers.len(), changed.len());
    let mut missed = Vec::new();
    for (bit, (answer, bytes)) in answers.iter().zip(&changed).enumerate() {
        let verified = SuperArchive::parse(bytes).is_ok_and(|archive| archive.verify().is_ok());
        if (verified || answer.ends_with("verify ok\n")) && !gaps[bit / 8] {
            missed.push(format!(
                "{}: bit {} of byte {}",
                case.name,
                bit % 8,
                bit / 8
            ));
        }
    }
    Ok(missed)
}

#[test]
fn each_changed_bit_is_found_or_in_a_gap() -> Result<()> {
    let walker = Walker::checked()?;
    let mut missed_bits = Vec::new();
    let cases = all()?;
    let sound: Vec<_> = cases
        .iter()
        .filter(|case| case.answers.ends_with("verify ok\n"))
        .collect();
    assert!(sound.len() > 12, "{}", sound.len());
    for case in sound {
        let gaps = gaps(&case.bytes).ok_or_else(|| format!("{}: no gaps", case.name))?;
        let covered = gaps.iter().filter(|&&is_gap| !is_gap).count();
        assert!(
            2 * covered > gaps.len(),
            "{}: {covered} of {}",
            case.name,
            gaps.len()
        );
        missed_bits.extend(missed(&walker, case, &gaps)?);
    }
    assert!(missed_bits.is_empty(), "{}", missed_bits.join("\n"));
    Ok(())
}
