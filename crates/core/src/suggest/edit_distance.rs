//! The nearest name by edit distance.

/// Longer words are not typing mistakes, and the distance costs the product of the lengths.
const MAX_LENGTH: usize = 80;

/// Shorter words are prefixes of too many names.
const SHORTEST_BEGINNING: usize = 4;

/// Compiled once for all types of `known`.
pub(super) fn nearest_of<'a>(
    word: &str,
    known: &mut dyn Iterator<Item = &'a str>,
) -> Option<&'a str> {
    if word.len() > MAX_LENGTH {
        return None;
    }
    let letters = |s: &str, into: &mut Vec<char>| {
        into.clear();
        into.extend(s.chars().flat_map(char::to_lowercase));
    };
    let (mut wanted, mut candidate) = (Vec::new(), Vec::new());
    letters(word, &mut wanted);
    let mut best: Option<(usize, &str)> = None;
    let (mut longer, mut longer_names) = (None, 0);
    for name in known.filter(|name| name.len() <= MAX_LENGTH) {
        letters(name, &mut candidate);
        if wanted.len() >= SHORTEST_BEGINNING && candidate.starts_with(&wanted) {
            longer = Some(name);
            longer_names += 1;
        }
        let mut limit = wanted.len().max(candidate.len()).max(3) / 3;
        if let Some((least, _)) = best {
            let Some(less) = least.checked_sub(1) else {
                break;
            };
            limit = limit.min(less);
        }
        if let Some(distance) = distance(&wanted, &candidate, limit) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
        .or(longer.filter(|_| longer_names == 1))
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment); `None` if they are more than `limit`.
pub(super) fn distance(a: &[char], b: &[char], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit {
        return None;
    }
    // Lists have thousands of names, nearly all of them far off: comparing the counts of letters
    // rejects those at a fraction of the cost. One edit changes a count by two at most.
    let mut counts = [0_i32; 64];
    let slot = |c: char| c as usize % 64;
    a.iter().for_each(|&c| counts[slot(c)] += 1);
    b.iter().for_each(|&c| counts[slot(c)] -= 1);
    if counts
        .iter()
        .map(|n| n.unsigned_abs() as usize)
        .sum::<usize>()
        > 2 * limit
    {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = Vec::with_capacity(b.len() + 1);
        row.push(i + 1);
        for (j, y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y))
                .min(last[j + 1] + 1)
                .min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(before[j - 1] + 1);
            }
            row.push(cost);
        }
        before = std::mem::replace(&mut last, row);
    }
    Some(last[b.len()]).filter(|&distance| distance <= limit)
}
