//! Differences between two sorted lists of symbols.

use std::collections::BTreeSet;

/// Removed lines of `old` (`-`) and added ones (`+`), sorted by the text after the sign; empty if both
/// texts are equal.
pub fn lines(old: &str, new: &str) -> String {
    let (before, after): (BTreeSet<&str>, BTreeSet<&str>) =
        (old.lines().collect(), new.lines().collect());
    let mut changes: BTreeSet<(&str, char)> = BTreeSet::new();
    changes.extend(before.difference(&after).map(|line| (*line, '-')));
    changes.extend(after.difference(&before).map(|line| (*line, '+')));
    if changes.is_empty() && old != new {
        return "  (the same lines in another order, or other line ends)\n".into();
    }
    changes
        .iter()
        .map(|(line, sign)| format!("{sign}{line}\n"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_differences_are_shown() {
        assert_eq!(lines("a\nb\n", "a\nb\n"), "");
        assert_eq!(
            lines("a\nb\nd\n", "a\nb releases=12.9\nd\n"),
            "-b\n+b releases=12.9\n"
        );
        assert!(!lines("a\nb\n", "b\na\n").is_empty());
        assert!(!lines("a\n", "a").is_empty());
    }
}
