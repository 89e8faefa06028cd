//! Reviewed rules of a library, which its headers state in words only.

use std::collections::BTreeMap;

/// Rules of a library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Structs whose differences a library handles.
    pub guards: Vec<Guard>,
    /// Types behind untyped pointers.
    pub untyped_pointees: Vec<UntypedPointees>,
}

/// A struct whose differences a library handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// Pattern of the struct's name.
    pub structs: Pattern,
    /// Way in which the library handles them.
    pub mechanism: Mechanism,
    /// Words of the header.
    pub words: String,
}

/// Way in which a library handles differences of a struct: the headers of both versions must have what is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mechanism {
    /// The caller sets this first field to this macro, whose values differ.
    Version(String, Pattern),
    /// The caller sets this first field to the struct's size. If a macro determines the size, its values differ,
    /// and new fields may take padding.
    Size(String, Option<Pattern>),
    /// The caller of this function passes the size as this argument, counted from 0.
    Argument(String, usize),
    /// Callers have only pointers that this function returns through an argument.
    Creator(String),
    /// The library allocates the structs, and callers reach them with this function. New fields follow the
    /// older ones.
    Reader(String),
}

/// Types behind an untyped pointer of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntypedPointees {
    /// Name of the function.
    pub function: String,
    /// Patterns of the types' names.
    pub types: Vec<Pattern>,
}

/// Name in which `*` is any text. `#` at the end is any number, or none: of the types whose names differ in the number
/// only, the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(String);

impl Pattern {
    /// Creates a pattern from text with at most one `*`, and `#` at most at the end.
    pub fn new(text: &str) -> Option<Self> {
        let name = text.strip_suffix('#').unwrap_or(text);
        (name.matches('*').count() <= 1 && !name.contains('#')).then(|| Self(text.to_owned()))
    }

    /// Part of a matching name that is the `*`; empty for a name without one.
    pub(crate) fn part<'n>(&self, name: &'n str) -> Option<&'n str> {
        let (pattern, name) = match self.0.strip_suffix('#') {
            Some(pattern) => (pattern, stem(name)),
            None => (self.0.as_str(), name),
        };
        match pattern.split_once('*') {
            Some((start, end)) => name.strip_prefix(start)?.strip_suffix(end),
            None => (name == pattern).then_some(""),
        }
    }

    /// Name with this text instead of the `*`.
    fn fill(&self, part: &str) -> String {
        self.0.replace('*', part)
    }

    /// Types that match, of `names`, by the name that is the same in all versions.
    fn matching<'n>(&self, names: impl Iterator<Item = &'n str>) -> BTreeMap<String, &'n str> {
        let mut types = BTreeMap::new();
        for name in names.filter(|name| self.part(name).is_some()) {
            if !self.0.ends_with('#') {
                types.insert(name.to_owned(), name);
                continue;
            }
            let newest = types.entry(format!("{}#", stem(name))).or_insert(name);
            if number(newest) < number(name) {
                *newest = name;
            }
        }
        types
    }
}

/// A name without the number at its end.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

/// The number at the end of a name, or 0.
fn number(name: &str) -> u32 {
    name[stem(name).len()..].parse().unwrap_or(0)
}

impl Guard {
    /// Macro with the version or size of a struct that has this name.
    pub(crate) fn macro_name(&self, struct_name: &str) -> Option<String> {
        let (Mechanism::Version(_, pattern) | Mechanism::Size(_, Some(pattern))) = &self.mechanism
        else {
            return None;
        };
        self.structs.part(struct_name)?;
        Some(pattern.fill(struct_name.strip_suffix("_t").unwrap_or(struct_name)))
    }
}

impl Rules {
    /// Whether a guard depends on the declaration of this function.
    pub(crate) fn depend_on(&self, function: &str) -> bool {
        self.guards.iter().any(|guard| match &guard.mechanism {
            Mechanism::Creator(name) | Mechanism::Reader(name) => name == function,
            _ => false,
        })
    }

    /// Macros of guards, for types with these names.
    pub(crate) fn macros<'t>(&self, types: impl Iterator<Item = &'t str>) -> Vec<String> {
        let mut names = Vec::new();
        for type_name in types {
            for guard in &self.guards {
                names.extend(guard.macro_name(type_name));
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Types behind a function's untyped pointers, of `names`, each with the name that it has in all versions.
    pub(crate) fn untyped_pointees<'n>(
        &self,
        function: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> BTreeMap<String, &'n str> {
        self.untyped_pointees
            .iter()
            .filter(|pointees| pointees.function == function)
            .flat_map(|pointees| &pointees.types)
            .flat_map(|pattern| pattern.matching(names.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, part) in [
            ("a_t", "a_t", Some("")),
            ("a_t", "a_t2", None),
            ("a*_t", "abc_t", Some("bc")),
            ("a*_t", "a_", None),
            ("a*#", "abc12", Some("bc")),
            ("a#", "a", Some("")),
            ("a#", "aB2", None),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().part(name), part, "{pattern}");
        }
        for invalid in ["a*b*", "a#b", "##"] {
            assert_eq!(Pattern::new(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn the_highest_number_is_the_newest_type() {
        let names = ["a9", "a", "a10", "ab", "ab2"];
        for (pattern, expected) in [
            ("a#", &[("a#", "a10")][..]),
            ("a*#", &[("a#", "a10"), ("ab#", "ab2")]),
            ("ab", &[("ab", "ab")]),
            ("c#", &[]),
        ] {
            let types = Pattern::new(pattern).unwrap().matching(names.into_iter());
            let types: Vec<(&str, &str)> = types
                .iter()
                .map(|(stable_name, name)| (stable_name.as_str(), *name))
                .collect();
            assert_eq!(types, expected, "{pattern}");
        }
    }
}
