//! "Did you mean": the nearest of some names.

/// Longer words are not typing mistakes, and the distance costs the product of the lengths.
const LONGEST: usize = 80;

/// The nearest of `known` to `word` by edit distance, if it is near enough to be meant: a third
/// of the letters may differ, as in rustc. Case does not count. Of equally near ones, the first.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let letters = |s: &str| s.chars().flat_map(char::to_lowercase).collect::<Vec<_>>();
    if word.len() > LONGEST {
        return None;
    }
    let word = letters(word);
    let mut best: Option<(usize, &str)> = None;
    for name in known.into_iter().filter(|name| name.len() <= LONGEST) {
        let candidate = letters(name);
        let limit = word.len().max(candidate.len()).max(3) / 3;
        if word.len().abs_diff(candidate.len()) > limit {
            continue;
        }
        let distance = distance(&word, &candidate);
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
    }
    best.map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b` (optimal
/// string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
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
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_meant() {
        let keys = ["majors", "header", "require", "search-dirs", "load-names"];
        for (word, meant) in [
            ("major", Some("majors")),
            ("haeder", Some("header")),
            ("requires", Some("require")),
            ("load_names", Some("load-names")),
            ("LOAD-NAMES", Some("load-names")),
            ("searchdir", Some("search-dirs")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, keys), meant, "{word}");
        }
        assert_eq!(
            nearest("cudamalloc", ["cudaFree", "cudaMalloc"]),
            Some("cudaMalloc")
        );
        assert_eq!(nearest(&"x".repeat(10_000), ["x"]), None);
        assert_eq!(nearest("x", []), None);
    }

    #[test]
    fn counts_edits() {
        let chars = |s: &str| s.chars().collect::<Vec<_>>();
        for (a, b, edits) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "acb", 1),
            ("kitten", "sitting", 3),
            ("ab", "ba", 1),
        ] {
            assert_eq!(distance(&chars(a), &chars(b)), edits, "{a} {b}");
        }
    }
}
