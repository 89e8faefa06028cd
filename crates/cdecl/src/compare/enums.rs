//! Enumerations.

use std::collections::{BTreeMap, BTreeSet};

use super::{Comparison, DifferenceKind, name};
use crate::types::TypeId;

type Values = BTreeMap<String, i128>;

impl Comparison<'_> {
    pub(super) fn compare_enums(
        &mut self,
        (a, old): (TypeId, &Values),
        (b, new): (TypeId, &Values),
    ) {
        let old_name = name(self.older, a, "an enum");
        if old.keys().any(|name| new.contains_key(name)) || old.is_empty() || new.is_empty() {
            return self.nested(old_name, |comparison| comparison.compare_numbers(old, new));
        }
        let position = format!("{old_name} -> {}", name(self.newer, b, "an enum"));
        let [old, new] = [old, new].map(|values| {
            let mut values = values.clone();
            values.retain(|name, _| !counts_others(name));
            without_prefix(&values)
        });
        self.nested(position, |comparison| {
            let common = old.keys().filter(|name| new.contains_key(*name)).count();
            if common * 2 < old.len().min(new.len()) {
                let description = format!("{common} of {} enumerators in common", old.len());
                comparison.add(DifferenceKind::Enumerator, description);
            }
            comparison.compare_numbers(&old, &new);
        });
    }

    /// Compares the numbers of the enumerators that both versions have.
    fn compare_numbers(&mut self, old: &Values, new: &Values) {
        for (name, old_number) in old {
            let Some(new_number) = new.get(name) else {
                continue;
            };
            if new_number == old_number
                || keeps_number(old, new, name)
                || (counts_others(name) && is_last(name, old) && is_last(name, new))
            {
                continue;
            }
            let description = format!("{name} {old_number} -> {new_number}");
            self.add(DifferenceKind::Enumerator, description);
        }
    }
}

/// Enumerators without the words that all of them start with, in one spelling.
fn without_prefix(values: &Values) -> Values {
    let mut names = values.keys().map(String::as_str);
    let first = names.next().unwrap_or("");
    let common = names.fold(first.len(), |length, name| {
        let equal_bytes = first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b);
        length.min(equal_bytes.count())
    });
    // The start of the last word that starts in the common part.
    let (mut prefix, mut start) = (0, 0);
    for word in words(first) {
        if start > common {
            break;
        }
        prefix = start;
        start += word.len();
    }
    values
        .iter()
        .map(|(name, number)| {
            let name = name.get(prefix..).unwrap_or(name);
            (name.replace('_', "").to_ascii_uppercase(), *number)
        })
        .collect()
}

/// Words of a name, each with the underscores after it: `acmeNum_`, `Options`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let end = (1..rest.len())
            .find(|&index| {
                let (before, first) = (bytes[index - 1], bytes[index]);
                before == b'_' && first != b'_'
                    || before.is_ascii_lowercase() && first.is_ascii_uppercase()
            })
            .unwrap_or(rest.len());
        // Both are ASCII where a word starts.
        let (word, remainder) = rest.split_at_checked(end)?;
        rest = remainder;
        (!word.is_empty()).then_some(word)
    })
}

/// Whether the name is one of an enumerator that only counts the others, or limits them.
pub fn counts_others(name: &str) -> bool {
    let words: Vec<_> = words(name)
        .map(|word| word.trim_end_matches('_').to_ascii_uppercase())
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let last_words = [
        "MAX",
        "COUNT",
        "COUNTS",
        "LAST",
        "END",
        "SIZE",
        "NUMOPTIONS",
    ];
    words.last().is_some_and(|word| last_words.contains(word))
        || words.ends_with(&["MAX", "ERROR"])
        || words.ends_with(&["MAX", "TARGET", "TYPES"])
        || words.ends_with(&["MAX", "VALUE"])
        || words.ends_with(&["BLOCKS", "NUMBER"])
        || words.ends_with(&["LIMIT", "RANGE"])
        || words.ends_with(&["FLAGS", "MASK"])
        || words.contains(&"NUM")
}

/// Whether an enumerator is where one that counts others is: no other is above it, or it ends a run of consecutive
/// numbers.
fn is_last(name: &str, values: &Values) -> bool {
    let Some(number) = values.get(name) else {
        return false;
    };
    let counted: BTreeSet<i128> = values
        .iter()
        .filter(|(name, _)| !counts_others(name))
        .map(|(_, number)| *number)
        .collect();
    counted.last().is_none_or(|highest| highest <= number)
        || (counted.contains(&(number - 1))
            && !counted.contains(number)
            && !counted.contains(&(number + 1)))
}

/// Whether only the name moved, while both numbers keep their meaning, the old one under the name
/// with `_V1`: callers pass numbers, so none is misread.
fn keeps_number(old: &Values, new: &Values, name: &str) -> bool {
    let number = new.get(name);
    new.get(&format!("{name}_V1")) == old.get(name)
        && (old.get(&format!("{name}_V2")) == number
            || !old.values().any(|old_number| Some(old_number) == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words() {
        for (name, expected) in [
            ("ncclNumResults", &["nccl", "Num", "Results"][..]),
            ("CU__IO_", &["CU__", "IO_"]),
            ("_é_Öx", &["_", "é_", "Öx"]),
            ("", &[]),
        ] {
            assert_eq!(words(name).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn prefixes_are_whole_words() {
        for (names, expected) in [
            (&["A_OP_T", "A_OP_TC"][..], &["T", "TC"][..]),
            (&["acmeDoMin", "acmeDoMaxSum"], &["MAXSUM", "MIN"]),
            (&["ACME_DO_MIN", "ACME_DO_MAX_SUM"], &["MAXSUM", "MIN"]),
            (&["A_R_16F"], &["16F"]),
            (&["A", "B"], &["A", "B"]),
        ] {
            let values = names.iter().map(|name| (name.to_string(), 0)).collect();
            let shortened: Vec<String> = without_prefix(&values).into_keys().collect();
            assert_eq!(shortened, expected);
        }
    }

    #[test]
    fn counting_enumerators_have_names() {
        for name in [
            "E_MAX",
            "ncclNumResults",
            "ncclNumTypes",
            "CU_FILE_IO_MAX_ERROR",
            "CU_FILE_MAX_TARGET_TYPES",
            "CUSTATEVEC_STATUS_MAX_VALUE",
            "HSA_VEN_AMD_AQLPROFILE_BLOCKS_NUMBER",
            "CUPTI_CB_DOMAIN_SIZE",
            "CU_JIT_NUM_OPTIONS",
            "acmeKindCount",
            "hipLimitRange",
        ] {
            assert!(counts_others(name), "{name}");
        }
        for name in [
            "BLUE",
            "ACME_BACKEND",
            "ncclMaxOp",
            "ACME_ENUM_A",
            "ACME_FULLSIZE",
        ] {
            assert!(!counts_others(name), "{name}");
        }
    }
}
