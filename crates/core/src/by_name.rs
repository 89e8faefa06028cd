//! Values by name.

use std::cmp::Ordering;
use std::ops::Index;

/// Values by name: sorted, each name once. A list, because a `BTreeMap` is compiled again for every
/// type of value, and the lists are short or come sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByName<T> {
    entries: Vec<(String, T)>,
}

impl<T> ByName<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self {
            entries: Vec::new(),
        }
    }

    /// Position of the name, or its insertion point.
    fn find(&self, name: &str) -> Result<usize, usize> {
        search(
            self.entries.len(),
            &|index| self.entries[index].0.as_str(),
            name,
        )
    }

    /// The value of a name.
    pub fn get(&self, name: &str) -> Option<&T> {
        let index = self.find(name).ok()?;
        Some(&self.entries[index].1)
    }

    /// Whether the name has a value.
    pub fn contains_key(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Sets a value, and returns the previous value of the name.
    pub fn insert(&mut self, name: &str, value: T) -> Option<T> {
        match self.find(name) {
            Ok(index) => Some(std::mem::replace(&mut self.entries[index].1, value)),
            Err(index) => {
                self.entries.insert(index, (name.to_owned(), value));
                None
            }
        }
    }

    /// Mutable value of a name; a default one is inserted if absent.
    pub fn get_or_default(&mut self, name: &str) -> &mut T
    where
        T: Default,
    {
        let index = self.find(name).unwrap_or_else(|index| {
            self.entries.insert(index, (name.to_owned(), T::default()));
            index
        });
        &mut self.entries[index].1
    }

    /// The names and values.
    pub fn iter(&self) -> std::slice::Iter<'_, (String, T)> {
        self.entries.iter()
    }

    /// Values, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.entries.iter_mut().map(|(_, value)| value)
    }
}

/// Binary search among sorted names. Compiled once, for lists of any type.
pub(crate) fn search<'a>(
    len: usize,
    name_at: &dyn Fn(usize) -> &'a str,
    name: &str,
) -> Result<usize, usize> {
    // Names mostly come sorted: then each is appended.
    if len == 0 || name_at(len - 1) < name {
        return Err(len);
    }
    let (mut start, mut end) = (0, len);
    while start < end {
        let middle = start + (end - start) / 2;
        match name_at(middle).cmp(name) {
            Ordering::Less => start = middle + 1,
            Ordering::Equal => return Ok(middle),
            Ordering::Greater => end = middle,
        }
    }
    Err(start)
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Value of an existing name.
impl<T> Index<&str> for ByName<T> {
    type Output = T;

    fn index(&self, name: &str) -> &T {
        self.get(name).expect("a name that is there")
    }
}

impl<'a, T> IntoIterator for &'a ByName<T> {
    type Item = &'a (String, T);
    type IntoIter = std::slice::Iter<'a, (String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> FromIterator<(String, T)> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = (String, T)>>(entries: I) -> Self {
        let mut by_name = Self::new();
        for (name, value) in entries {
            by_name.insert(&name, value);
        }
        by_name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_unique() {
        let mut numbers = ByName::new();
        for (name, number, before) in [
            ("b", 1, None),
            ("d", 2, None),
            ("a", 3, None),
            ("c", 4, None),
            ("b", 5, Some(1)),
            ("d", 6, Some(2)),
        ] {
            assert_eq!(numbers.insert(name, number), before, "{name}");
        }
        *numbers.get_or_default("c") += 10;
        *numbers.get_or_default("e") += 7;
        numbers.values_mut().for_each(|number| *number *= 2);
        let entries: Vec<(&str, i32)> = numbers
            .iter()
            .map(|(name, number)| (name.as_str(), *number))
            .collect();
        assert_eq!(
            entries,
            [("a", 6), ("b", 10), ("c", 28), ("d", 12), ("e", 14)]
        );
        assert_eq!((numbers.get("c"), numbers.get("cc")), (Some(&28), None));
        assert_eq!((numbers.get(""), numbers.get("f")), (None, None));
        assert!(numbers.contains_key("e") && !numbers.contains_key("ee"));
        let collected: ByName<i32> = numbers.iter().rev().cloned().collect();
        assert_eq!(collected, numbers);
        assert_eq!(collected["e"], 14);
    }
}
