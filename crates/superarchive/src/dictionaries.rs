//! Symbol tables of views: dictionaries that several views share, with a row for each distinct view.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasher;

use crate::ids::{IndexVec, NameId, ViewId};
use crate::names::{FastHash, Hashed, Names};
use crate::resolver::ResolvedView;

/// Symbols of a view, in the order of their names' ids, each with a position.
type Row = Vec<(NameId, u32)>;

/// A dictionary, and its views' rows.
#[derive(Debug, Default)]
pub struct Group {
    /// Names in the order of their ids, each with its class.
    classes: Vec<(NameId, usize)>,
    /// A name of each class.
    samples: Vec<NameId>,
    rows: Vec<Row>,
}

/// The dictionary of a view, and its row in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowId {
    pub group: usize,
    pub row: usize,
}

/// Bytes of a name in a dictionary.
fn name_size(name: NameId, names: &Names<'_>) -> usize {
    // 16 bytes for each slot, of which three fifths are full.
    27 + names[name].bytes.len()
}

/// Bytes of rows.
fn rows_size(rows: usize, classes: usize) -> usize {
    4 * rows * (classes + 1)
}

/// The classes of a group with one more row.
struct Growth {
    classes: Vec<(NameId, usize)>,
    samples: Vec<NameId>,
    /// Bytes more than before.
    size: usize,
}

/// Numbers of new classes.
#[derive(Default)]
struct Splits {
    /// Classes of names that the group does not have, by position.
    by_position: Vec<Option<usize>>,
    /// Classes of other names, by their old class and position.
    by_class: HashMap<(usize, u32), usize, FastHash>,
}

impl Splits {
    /// The class of an old class and a position plus one.
    fn class(&mut self, old: Option<usize>, position: u32, next: usize) -> usize {
        let Some(old) = old else {
            let index = position as usize;
            let count = self.by_position.len().max(index + 1);
            self.by_position.resize(count, None);
            return *self.by_position[index].get_or_insert(next);
        };
        *self.by_class.entry((old, position)).or_insert(next)
    }
}

impl Group {
    /// The group with another row: symbols of one class that have different positions in it get different
    /// classes.
    fn growth(&self, row: &[(NameId, u32)], names: &Names<'_>) -> Growth {
        let mut growth = Growth {
            classes: Vec::with_capacity(self.classes.len().max(row.len())),
            samples: Vec::new(),
            size: if self.rows.is_empty() { 32 } else { 0 },
        };
        let mut splits = Splits::default();
        let (mut old, mut new) = (&self.classes[..], row);
        loop {
            let name = match (old.first(), new.first()) {
                (Some(old), Some(new)) => old.0.min(new.0),
                (Some(&(name, _)), None) => name,
                (None, Some(&(name, _))) => name,
                (None, None) => break,
            };
            let old_class = pop_if_named(&mut old, name);
            let position = pop_if_named(&mut new, name).map_or(0, |position| position + 1);
            if old_class.is_none() {
                growth.size += name_size(name, names);
            }
            let count = growth.samples.len();
            let class = splits.class(old_class, position, count);
            if class == count {
                growth.samples.push(name);
            }
            growth.classes.push((name, class));
        }
        let rows = self.rows.len();
        growth.size += rows_size(rows + 1, growth.samples.len());
        growth.size -= rows_size(rows, self.samples.len());
        growth
    }

    fn add(&mut self, row: Row, growth: Growth) -> usize {
        self.rows.push(row);
        (self.classes, self.samples) = (growth.classes, growth.samples);
        self.rows.len() - 1
    }

    /// Names, in the order of their hashes, and the class of each.
    pub fn slots<'n>(&self, names: &Names<'n>) -> Vec<(Hashed<'n>, usize)> {
        // Hashes are evenly distributed: one bucket for each name leaves little to sort.
        let buckets = self.classes.len();
        let mut ends = vec![0; buckets + 1];
        for &(name, _) in &self.classes {
            ends[home(names[name].hash, buckets) + 1] += 1;
        }
        for bucket in 0..buckets {
            ends[bucket + 1] += ends[bucket];
        }
        let mut slots = vec![(Hashed::default(), 0); buckets];
        for &(name, class) in &self.classes {
            let name = names[name];
            let next = &mut ends[home(name.hash, buckets)];
            slots[*next] = (name, class);
            *next += 1;
        }
        let mut start = 0;
        for &end in &ends[..buckets] {
            slots[start..end].sort_unstable_by_key(|&(name, _)| (name.hash, name.bytes));
            start = end;
        }
        slots
    }

    /// The rows: for each class, a position plus one. `scratch` is zero for each name, before and after.
    pub fn rows(&self, scratch: &mut IndexVec<NameId, u32>) -> Vec<Vec<u32>> {
        let mut rows = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            for &(name, position) in row {
                scratch[name] = position + 1;
            }
            rows.push(self.samples.iter().map(|&name| scratch[name]).collect());
            for &(name, _) in row {
                scratch[name] = 0;
            }
        }
        rows
    }
}

/// Removes the first pair of a list and returns its second part, if the pair is about this name.
fn pop_if_named<T: Copy>(list: &mut &[(NameId, T)], name: NameId) -> Option<T> {
    let (&(first_name, class_or_position), rest) = list.split_first()?;
    (first_name == name).then(|| {
        *list = rest;
        class_or_position
    })
}

/// The home of a hash in a table with so many homes.
pub fn home(hash: u64, homes: usize) -> usize {
    (((hash >> 32) as u128 * homes as u128) >> 32) as usize
}

/// Groups views with similar symbols: a view joins one of the two dictionaries that have most of its names,
/// if that takes fewer bytes than a dictionary of its own.
pub fn group(
    views: &IndexVec<ViewId, ResolvedView<'_>>,
    names: &Names<'_>,
) -> (Vec<Group>, Vec<RowId>) {
    let mut groups: Vec<Group> = Vec::new();
    // Most views have the symbols of another one, in the same order.
    let mut same_order: HashMap<&[(NameId, u32)], RowId, FastHash> = HashMap::default();
    let mut rows_by_hash: HashMap<u64, Vec<RowId>, FastHash> = HashMap::default();
    // The last group that has a name.
    let mut owner: IndexVec<NameId, Option<usize>> = IndexVec::from_elem(None, names.count());
    let mut ids = Vec::with_capacity(views.len());
    for view in views.iter() {
        if let Some(&id) = same_order.get(&view.symbols[..]) {
            ids.push(id);
            continue;
        }
        let mut row = view.symbols.clone();
        row.sort_unstable();
        let candidates = rows_by_hash
            .entry(FastHash::default().hash_one(&row))
            .or_default();
        if let Some(&id) = candidates
            .iter()
            .find(|id| groups[id.group].rows[id.row] == row)
        {
            same_order.insert(&view.symbols, id);
            ids.push(id);
            continue;
        }
        let new_group = Group::default().growth(&row, names);
        let mut best: Option<(usize, Growth)> = None;
        for group in groups_by_votes(&row, &owner).into_iter().take(2) {
            let growth = groups[group].growth(&row, names);
            let least = best.as_ref().map_or(new_group.size, |(_, best)| best.size);
            if growth.size < least {
                best = Some((group, growth));
            }
        }
        let (group, growth) = best.unwrap_or_else(|| {
            groups.push(Group::default());
            (groups.len() - 1, new_group)
        });
        for &(name, _) in &row {
            owner[name] = Some(group);
        }
        let id = RowId {
            group,
            row: groups[group].add(row, growth),
        };
        candidates.push(id);
        same_order.insert(&view.symbols, id);
        ids.push(id);
    }
    (groups, ids)
}

/// The groups that have names of a row: first those that have most.
fn groups_by_votes(row: &[(NameId, u32)], owner: &IndexVec<NameId, Option<usize>>) -> Vec<usize> {
    let mut votes: HashMap<usize, usize> = HashMap::new();
    for group in row.iter().filter_map(|&(name, _)| owner[name]) {
        *votes.entry(group).or_default() += 1;
    }
    let mut groups: Vec<usize> = votes.keys().copied().collect();
    groups.sort_unstable_by_key(|group| (Reverse(votes[group]), *group));
    groups
}
