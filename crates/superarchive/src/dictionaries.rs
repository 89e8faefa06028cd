//! Symbol tables of views: dictionaries that several views share, with a row for each distinct view.

use std::collections::HashMap;

use crate::ids::{IndexVec, NameId, ViewId};
use crate::names::Names;
use crate::resolver::ResolvedView;

/// A dictionary, and its views' rows.
#[derive(Debug, Default)]
pub struct Group {
    /// Class of each name.
    classes: HashMap<NameId, usize>,
    /// A name of each class.
    samples: Vec<NameId>,
    /// Symbols of each row.
    rows: Vec<Vec<(NameId, u32)>>,
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
struct Grown {
    classes: HashMap<NameId, usize>,
    samples: Vec<NameId>,
    /// Bytes more than before.
    growth: usize,
}

impl Group {
    /// The group with another row: symbols of one class that have different positions in it get different
    /// classes.
    fn grown(&self, row: &[(NameId, u32)], names: &Names<'_>) -> Grown {
        let mut grown = Grown {
            classes: HashMap::with_capacity(self.classes.len().max(row.len())),
            samples: Vec::new(),
            growth: if self.rows.is_empty() { 32 } else { 0 },
        };
        let mut splits: HashMap<(Option<usize>, u32), usize> = HashMap::new();
        let mut add = |grown: &mut Grown, name, old, position| {
            let class = *splits.entry((old, position)).or_insert_with(|| {
                grown.samples.push(name);
                grown.samples.len() - 1
            });
            grown.classes.insert(name, class);
        };
        for &(name, position) in row {
            let old = self.classes.get(&name).copied();
            if old.is_none() {
                grown.growth += name_size(name, names);
            }
            add(&mut grown, name, old, position + 1);
        }
        let others = self.classes.iter().map(|(&name, &old)| (name, old));
        let mut others: Vec<_> = others
            .filter(|(name, _)| !grown.classes.contains_key(name))
            .collect();
        others.sort_unstable();
        for (name, old) in others {
            add(&mut grown, name, Some(old), 0);
        }
        let rows = self.rows.len();
        grown.growth += rows_size(rows + 1, grown.samples.len());
        grown.growth -= rows_size(rows, self.samples.len());
        grown
    }

    fn add(&mut self, row: Vec<(NameId, u32)>, grown: Grown) -> usize {
        self.rows.push(row);
        (self.classes, self.samples) = (grown.classes, grown.samples);
        self.rows.len() - 1
    }

    /// Names, in the order of their hashes, and the class of each.
    pub fn slots(&self, names: &Names<'_>) -> Vec<(NameId, usize)> {
        let mut all: Vec<_> = self
            .classes
            .iter()
            .map(|(&name, &class)| (name, class))
            .collect();
        all.sort_unstable_by_key(|&(name, _)| (names[name].hash, names[name].bytes));
        all
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

/// Groups views with similar symbols: a view joins one of the two dictionaries that have most of its names,
/// if that takes fewer bytes than a dictionary of its own.
pub fn group(
    views: &IndexVec<ViewId, ResolvedView<'_>>,
    names: &Names<'_>,
) -> (Vec<Group>, Vec<RowId>) {
    let mut groups: Vec<Group> = Vec::new();
    let mut seen: HashMap<Vec<(NameId, u32)>, RowId> = HashMap::new();
    // The last group that has a name.
    let mut owner: IndexVec<NameId, Option<usize>> = IndexVec::from_elem(None, names.count());
    let mut ids = Vec::with_capacity(views.len());
    for view in views.iter() {
        let mut row = view.symbols.clone();
        row.sort_unstable();
        if let Some(&id) = seen.get(&row) {
            ids.push(id);
            continue;
        }
        let mut votes: HashMap<usize, usize> = HashMap::new();
        for group in row.iter().filter_map(|&(name, _)| owner[name]) {
            *votes.entry(group).or_default() += 1;
        }
        let mut votes: Vec<_> = votes
            .into_iter()
            .map(|(group, votes)| (votes, group))
            .collect();
        votes.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let alone = Group::default().grown(&row, names);
        let mut best: Option<(usize, Grown)> = None;
        for &(_, group) in votes.iter().take(2) {
            let grown = groups[group].grown(&row, names);
            let least = best.as_ref().map_or(alone.growth, |(_, best)| best.growth);
            if grown.growth < least {
                best = Some((group, grown));
            }
        }
        let (group, grown) = best.unwrap_or_else(|| {
            groups.push(Group::default());
            (groups.len() - 1, alone)
        });
        for &(name, _) in &row {
            owner[name] = Some(group);
        }
        let id = RowId {
            group,
            row: groups[group].add(row.clone(), grown),
        };
        seen.insert(row, id);
        ids.push(id);
    }
    (groups, ids)
}
