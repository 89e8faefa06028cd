//! The nearest name by edit distance.

/// Longer words are not typing mistakes, and the distance costs the product of the lengths.
const MAX_LENGTH: usize = 80;

/// Shorter words are prefixes of too many names.
const MIN_PREFIX_LENGTH: usize = 4;

/// Compiled once for all types of `known`.
pub(super) fn nearest_of<'a>(
    word: &str,
    known: &mut dyn Iterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > MAX_LENGTH {
        return None;
    }
    let word = word.to_ascii_lowercase();
    let mut nearest: Option<(usize, &str)> = None;
    let mut longer_name = None;
    let mut longer_names = 0;
    for name in known.filter(|name| name.len() <= MAX_LENGTH) {
        let letters = name.to_ascii_lowercase();
        if word.len() >= MIN_PREFIX_LENGTH && letters.starts_with(&word) {
            longer_name = Some(name);
            longer_names += 1;
        }
        let mut limit = word.len().max(name.len()).max(3) / 3;
        if let Some((least, _)) = nearest {
            let Some(less) = least.checked_sub(1) else {
                break;
            };
            limit = limit.min(less);
        }
        if let Some(edits) = distance(word.as_bytes(), letters.as_bytes(), limit) {
            nearest = Some((edits, name));
        }
    }
    match nearest {
        Some((_, name)) => Some(name),
        None => longer_name.filter(|_| longer_names == 1),
    }
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment); `None` if they are more than `limit`. Neither is longer than [`MAX_LENGTH`].
pub(super) fn distance(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || least_distance(a, b) > limit {
        return None;
    }
    // Rows of the matrix of distances between beginnings of both.
    let mut before_previous = [0; MAX_LENGTH + 1];
    let mut previous = [0; MAX_LENGTH + 1];
    for (j, edits) in previous.iter_mut().enumerate() {
        *edits = j;
    }
    for (i, letter_a) in a.iter().enumerate() {
        let mut row = [i + 1; MAX_LENGTH + 1];
        for (j, letter_b) in b.iter().enumerate() {
            let mut edits = (previous[j] + usize::from(letter_a != letter_b))
                .min(previous[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *letter_a == b[j - 1] && a[i - 1] == *letter_b {
                edits = edits.min(before_previous[j - 1] + 1);
            }
            row[j + 1] = edits;
        }
        before_previous = previous;
        previous = row;
    }
    Some(previous[b.len()]).filter(|&edits| edits <= limit)
}

/// Lower bound of the distance. Lists have thousands of names, nearly all of them far off: comparing the counts of
/// letters rejects those at a fraction of the cost. One edit changes a count by two at most.
fn least_distance(a: &[u8], b: &[u8]) -> usize {
    let mut counts = [0_i32; 64];
    for letter in a {
        counts[usize::from(letter % 64)] += 1;
    }
    for letter in b {
        counts[usize::from(letter % 64)] -= 1;
    }
    let mut differences = 0;
    for count in counts {
        differences += count.unsigned_abs() as usize;
    }
    differences.div_ceil(2)
}
