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
    let mut word_letters = Vec::new();
    set_letters(&mut word_letters, word);
    let mut name_letters = Vec::new();
    let mut nearest: Option<(usize, &str)> = None;
    let mut longer_name = None;
    let mut longer_names = 0;
    for name in known.filter(|name| name.len() <= MAX_LENGTH) {
        set_letters(&mut name_letters, name);
        if word_letters.len() >= MIN_PREFIX_LENGTH && name_letters.starts_with(&word_letters) {
            longer_name = Some(name);
            longer_names += 1;
        }
        let mut limit = word_letters.len().max(name_letters.len()).max(3) / 3;
        if let Some((least, _)) = nearest {
            let Some(less) = least.checked_sub(1) else {
                break;
            };
            limit = limit.min(less);
        }
        if let Some(edits) = distance(&word_letters, &name_letters, limit) {
            nearest = Some((edits, name));
        }
    }
    match nearest {
        Some((_, name)) => Some(name),
        None => longer_name.filter(|_| longer_names == 1),
    }
}

/// Replaces `letters` with those of a word, without case.
fn set_letters(letters: &mut Vec<char>, word: &str) {
    letters.clear();
    letters.extend(word.chars().flat_map(char::to_lowercase));
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment); `None` if they are more than `limit`.
pub(super) fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || least_distance(a, b) > limit {
        return None;
    }
    // Rows of the matrix of distances between beginnings of both.
    let mut before_previous: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).collect();
    for (i, letter_a) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, letter_b) in b.iter().enumerate() {
            let mut edits = (previous[j] + usize::from(letter_a != letter_b))
                .min(previous[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *letter_a == b[j - 1] && a[i - 1] == *letter_b {
                edits = edits.min(before_previous[j - 1] + 1);
            }
            row.push(edits);
        }
        before_previous = std::mem::replace(&mut previous, row);
    }
    Some(previous[b.len()]).filter(|&edits| edits <= limit)
}

/// Lower bound of the distance. Lists have thousands of names, nearly all of them far off: comparing the counts of
/// letters rejects those at a fraction of the cost. One edit changes a count by two at most.
fn least_distance(a: &[char], b: &[char]) -> usize {
    let mut counts = [0_i32; 64];
    for &letter in a {
        counts[letter as usize % 64] += 1;
    }
    for &letter in b {
        counts[letter as usize % 64] -= 1;
    }
    let differences: usize = counts
        .iter()
        .map(|count| count.unsigned_abs() as usize)
        .sum();
    differences.div_ceil(2)
}
