//! Enumerations.

use std::collections::{BTreeMap, BTreeSet};

use super::{Kind, Pair, name};
use crate::types::TypeId;

type Values = BTreeMap<String, i128>;

impl Pair<'_> {
    pub(super) fn enums(&mut self, (a, old): (TypeId, &Values), (b, new): (TypeId, &Values)) {
        let of = name(self.older, a, "an enum");
        if old.keys().any(|name| new.contains_key(name)) || old.is_empty() || new.is_empty() {
            return self.nested(of, |pair| pair.numbers(old, new));
        }
        let position = format!("{of} -> {}", name(self.newer, b, "an enum"));
        let [old, new] = [old, new].map(|values| {
            let mut values = values.clone();
            values.retain(|name, _| !counts_others(name));
            without_prefix(&values)
        });
        self.nested(position, |pair| {
            let common = old.keys().filter(|name| new.contains_key(*name)).count();
            if common * 2 < old.len().min(new.len()) {
                let what = format!("{common} of {} enumerators in common", old.len());
                pair.add(Kind::Enumerator, what);
            }
            pair.numbers(&old, &new);
        });
    }

    /// Compares the numbers of the enumerators that both versions have.
    fn numbers(&mut self, old: &Values, new: &Values) {
        for (name, was) in old {
            let Some(is) = new.get(name).filter(|is| *is != was) else {
                continue;
            };
            let only_counts = || counts_others(name) && is_last(name, old) && is_last(name, new);
            if !keeps_number(old, new, name) && !only_counts() {
                self.add(Kind::Enumerator, format!("{name} {was} -> {is}"));
            }
        }
    }
}

/// Enumerators without the words that all of them start with, in one spelling.
fn without_prefix(values: &Values) -> Values {
    let mut names = values.keys().map(String::as_str);
    let first = names.next().unwrap_or("");
    let common = names.fold(first.len(), |length, name| {
        let same = first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b);
        length.min(same.count())
    });
    let starts = words(first).scan(0, |start, word| {
        let at = *start;
        *start += word.len();
        Some(at)
    });
    let prefix = starts
        .take_while(|start| *start <= common)
        .last()
        .unwrap_or(0);
    let values = values.iter().map(|(name, number)| {
        let name = name.get(prefix..).unwrap_or(name);
        (name.replace('_', "").to_ascii_uppercase(), *number)
    });
    values.collect()
}

/// Words of a name, each with the underscores after it: `acmeNum_`, `Options`.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let bytes = rest.as_bytes();
        let starts = |at: &usize| {
            let (before, here) = (bytes[at - 1], bytes[*at]);
            before == b'_' && here != b'_'
                || before.is_ascii_lowercase() && here.is_ascii_uppercase()
        };
        let end = (1..rest.len()).find(starts).unwrap_or(rest.len());
        // Both are ASCII where a word starts.
        let (word, more) = rest.split_at_checked(end)?;
        rest = more;
        (!word.is_empty()).then_some(word)
    })
}

/// Whether the name is one of an enumerator that only counts the others, or limits them.
pub fn counts_others(name: &str) -> bool {
    let words: Vec<_> = words(name)
        .map(|word| word.trim_end_matches('_').to_ascii_uppercase())
        .collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let ends = [
        "MAX",
        "COUNT",
        "COUNTS",
        "LAST",
        "END",
        "SIZE",
        "NUMOPTIONS",
    ];
    words.last().is_some_and(|last| ends.contains(last))
        || words.ends_with(&["MAX", "ERROR"])
        || words.ends_with(&["MAX", "TARGET", "TYPES"])
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
    let others = values.iter().filter(|(other, _)| !counts_others(other));
    let others: BTreeSet<i128> = others.map(|(_, number)| *number).collect();
    let ends_run = || {
        let has = |number| others.contains(&number);
        has(number - 1) && !has(*number) && !has(number + 1)
    };
    others.last().is_none_or(|highest| highest <= number) || ends_run()
}

/// Whether only the name moved, while both numbers keep their meaning, the old one under the name
/// with `_V1`: callers pass numbers, so none is misread.
fn keeps_number(old: &Values, new: &Values, name: &str) -> bool {
    let number = new.get(name);
    new.get(&format!("{name}_V1")) == old.get(name)
        && (old.get(&format!("{name}_V2")) == number || !old.values().any(|n| Some(n) == number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_words() {
        let of = |name| words(name).collect::<Vec<_>>();
        assert_eq!(of("ncclNumResults"), ["nccl", "Num", "Results"]);
        assert_eq!(of("CU__IO_"), ["CU__", "IO_"]);
        assert_eq!(of("_é_Öx"), ["_", "é_", "Öx"]);
        assert_eq!(of(""), [""; 0]);
    }

    #[test]
    fn prefixes_are_whole_words() {
        let of = |names: &[&str]| {
            let values = names.iter().map(|name| (name.to_string(), 0)).collect();
            without_prefix(&values).into_keys().collect::<Vec<_>>()
        };
        assert_eq!(of(&["A_OP_T", "A_OP_TC"]), ["T", "TC"]);
        assert_eq!(of(&["acmeDoMin", "acmeDoMaxSum"]), ["MAXSUM", "MIN"]);
        assert_eq!(of(&["ACME_DO_MIN", "ACME_DO_MAX_SUM"]), ["MAXSUM", "MIN"]);
        assert_eq!(of(&["A_R_16F"]), ["16F"]);
        assert_eq!(of(&["A", "B"]), ["A", "B"]);
    }

    #[test]
    fn counting_enumerators_have_names() {
        for name in [
            "E_MAX",
            "ncclNumResults",
            "ncclNumTypes",
            "CU_FILE_IO_MAX_ERROR",
            "CU_FILE_MAX_TARGET_TYPES",
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
