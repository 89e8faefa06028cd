//! Units: definitions that cannot be in different members.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::global::Kind;
use super::module::Module;
use super::references::{Index, References};

/// Units of a module.
#[derive(Debug, Default)]
pub struct Units {
    /// Positions of the definitions of each unit, in ascending order. Units are in the order of their first ones.
    pub units: Vec<Vec<usize>>,
    /// Unit that every program with a part of the module needs: it has constructors, or keeps what nothing refers to.
    pub root: Option<usize>,
    /// Definitions that other units refer to.
    pub shared: HashSet<usize>,
}

/// Withdraws the permission to copy definitions that refer to such as have one copy only.
pub fn withdraw_copies(module: &mut Module<'_>, index: &Index) {
    let used = module
        .special
        .iter()
        .flat_map(|special| special.globals.iter().flatten());
    let used = Vec::from_iter(used.copied());
    let mut users: HashMap<usize, Vec<usize>> = HashMap::new();
    for (id, references) in index.definitions.iter().enumerate() {
        for used in &references.globals {
            users.entry(*used).or_default().push(id);
        }
    }
    // Blocks have an address in the module of their function only.
    let takes_blocks = |id: &usize| !index.definitions[*id].blocks.is_empty();
    let globals = &mut module.globals;
    let mut pending = used;
    pending.extend((0..globals.len()).filter(takes_blocks));
    for &id in &pending {
        globals[id].may_be_copied = false;
    }
    pending.extend((0..globals.len()).filter(|id| !globals[*id].may_be_copied));
    while let Some(id) = pending.pop() {
        if !globals[id].linkage.is_local() {
            continue;
        }
        for &user in users.get(&id).into_iter().flatten() {
            if globals[user].may_be_copied {
                globals[user].may_be_copied = false;
                pending.push(user);
            }
        }
    }
}

impl Units {
    pub fn new(module: &Module<'_>, index: &Index) -> Self {
        let globals = &module.globals;
        let is_single = |id: usize| globals[id].is_definition && !globals[id].may_be_copied;
        let mut sets = Sets::new(globals.len());
        let local_nodes = LocalNodes::new(module, index);
        let mut comdats: HashMap<&str, usize> = HashMap::new();
        for (id, global) in globals.iter().enumerate().filter(|(id, _)| is_single(*id)) {
            let References {
                globals: used,
                blocks,
                nodes,
                ..
            } = &index.definitions[id];
            let is_alias = global.kind == Kind::Alias;
            let tied = used
                .iter()
                .filter(|used| is_alias || globals[**used].linkage.is_local());
            for &used in tied.chain(blocks).filter(|used| is_single(**used)) {
                sets.join(id, used);
            }
            for local in local_nodes.globals(nodes, index) {
                sets.join(id, local);
            }
            if let Some(node) = global.associated {
                let targets = index.nodes.get(&node).map(|node| &node.globals[..]);
                for &target in targets.unwrap_or_default() {
                    if is_single(target) {
                        sets.join(id, target);
                    }
                }
            }
            if let Some(comdat) = global.comdat {
                // A COMDAT without a name has that of its definition.
                let name = if comdat.is_empty() {
                    &global.name[1..]
                } else {
                    &comdat[1..]
                };
                sets.join(id, *comdats.entry(name).or_insert(id));
            }
        }
        let mut root = None;
        for special in &module.special {
            for &id in special.globals.iter().flatten() {
                let is_kept = special.is_run()
                    || special.name == "@llvm.used"
                    || globals[id].linkage.is_local();
                if is_single(id) && is_kept {
                    sets.join(id, *root.get_or_insert(id));
                }
            }
        }
        for id in (0..globals.len()).filter(|id| is_single(*id)) {
            if globals[id].is_found_by_section() {
                sets.join(id, *root.get_or_insert(id));
            }
        }
        let mut units: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for id in (0..globals.len()).filter(|id| is_single(*id)) {
            units.entry(sets.first(id)).or_default().push(id);
        }
        let root = root.map(|id| sets.first(id));
        let mut shared = HashSet::new();
        for (id, references) in index.definitions.iter().enumerate() {
            for &used in &references.globals {
                if is_single(used) && sets.first(used) != sets.first(id) {
                    shared.insert(used);
                }
            }
        }
        Self {
            root: root.and_then(|first| units.keys().position(|key| *key == first)),
            units: units.into_values().collect(),
            shared,
        }
    }
}

/// Nodes of metadata that refer to local definitions, also through other nodes.
struct LocalNodes {
    locals: HashMap<u32, Vec<usize>>,
    nodes: HashSet<u32>,
}

impl LocalNodes {
    fn new(module: &Module<'_>, index: &Index) -> Self {
        let mut locals = HashMap::new();
        for (node, references) in &index.nodes {
            let is_local = |id: &&usize| {
                let global = &module.globals[**id];
                global.linkage.is_local() && global.is_definition && !global.may_be_copied
            };
            let used = Vec::from_iter(references.globals.iter().filter(is_local).copied());
            if !used.is_empty() {
                locals.insert(*node, used);
            }
        }
        let mut nodes = HashSet::new();
        let mut pending = Vec::from_iter(locals.keys().copied());
        let mut users: HashMap<u32, Vec<u32>> = HashMap::new();
        if !pending.is_empty() {
            for (node, references) in &index.nodes {
                for operand in &references.nodes {
                    users.entry(*operand).or_default().push(*node);
                }
            }
        }
        while let Some(node) = pending.pop() {
            if nodes.insert(node) {
                pending.extend(users.get(&node).into_iter().flatten());
            }
        }
        Self { locals, nodes }
    }

    /// Local definitions that some nodes refer to.
    fn globals(&self, nodes: &[u32], index: &Index) -> Vec<usize> {
        let (mut globals, mut known) = (Vec::new(), HashSet::new());
        let mut pending = Vec::from_iter(nodes.iter().copied());
        while let Some(node) = pending.pop() {
            if self.nodes.contains(&node) && known.insert(node) {
                globals.extend(self.locals.get(&node).into_iter().flatten());
                pending.extend(
                    index
                        .nodes
                        .get(&node)
                        .into_iter()
                        .flat_map(|node| &node.nodes),
                );
            }
        }
        globals
    }
}

/// Disjoint sets of numbers, each known by its smallest.
struct Sets(Vec<usize>);

impl Sets {
    fn new(count: usize) -> Self {
        Self((0..count).collect())
    }

    fn first(&mut self, mut number: usize) -> usize {
        while self.0[number] != number {
            self.0[number] = self.0[self.0[number]];
            number = self.0[number];
        }
        number
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.first(a), self.first(b));
        self.0[a.max(b)] = a.min(b);
    }
}
