//! Members: units that the same modules have.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::emit::{Constructors, Source, member};
use super::prepared::Prepared;
use super::reason::{Options, Result, Unsplit};

/// Length of the texts of a member above which it is complete. Bitcode has a fifth of it, and each member a kilobyte of its own.
const MEMBER_LENGTH: usize = 40_000;

/// Length of the texts for which a member of its own takes more than it saves.
const OVERHEAD_LENGTH: usize = 8_000;

/// Length of all members of a module, in lengths of the module, above which it stays whole: its members would repeat
/// metadata. Small modules may have more.
const MAX_GROWTH: usize = 4;
const MIN_LIMIT: usize = 1 << 20;

/// A member in textual form.
#[derive(Debug)]
pub struct TextMember {
    pub text: String,
    /// Position of each module that has it, with that of its first unit there.
    pub modules: Vec<(usize, usize)>,
    /// Name of its first definition.
    pub name: String,
}

/// A unit that several modules have, with its position in each.
type SharedUnit = Vec<(usize, usize)>;

/// Members of all modules, in the order in which they occur first.
pub fn members(
    modules: &[Prepared<'_>],
    options: Options,
) -> (Vec<TextMember>, Vec<(usize, Unsplit)>) {
    let groups = groups(modules, options);
    let (mut members, mut unsplit) = (Vec::new(), Vec::new());
    let mut lengths = vec![0; modules.len()];
    for group in groups {
        let first = members.len();
        for index in 0..group[0].len() {
            let mut places = Vec::from_iter(group.iter().map(|unit| unit[index]));
            places.sort_unstable();
            let module = places[0].0;
            let limit = (MAX_GROWTH * modules[module].length).max(MIN_LIMIT);
            if lengths[module] > limit {
                continue;
            }
            match add(modules, &places, options, &mut members, first) {
                Ok(length) => {
                    lengths[module] += length;
                    if lengths[module] > limit {
                        unsplit.push((module, Unsplit("its members would repeat too much")));
                    }
                }
                Err(reason) => unsplit.push((module, reason)),
            }
        }
    }
    (members, unsplit)
}

/// Groups of units for a member each. All units of a group are in the same modules.
fn groups(prepared: &[Prepared<'_>], options: Options) -> Vec<Vec<SharedUnit>> {
    let mut keys: HashMap<u64, usize> = HashMap::new();
    let mut shared: Vec<SharedUnit> = Vec::new();
    for (module, Prepared { source, units, .. }) in prepared.iter().enumerate() {
        let header = header_hash(source, options);
        for (position, unit) in units.units.iter().enumerate() {
            let mut hasher = DefaultHasher::new();
            (header, units.root == Some(position)).hash(&mut hasher);
            for &definition in unit {
                source.index.hash(definition).hash(&mut hasher);
            }
            let index = *keys.entry(hasher.finish()).or_insert(shared.len());
            if index == shared.len() {
                shared.push(Vec::new());
            }
            // Equal units of one module have names that differ in their numbers only.
            if shared[index].last().is_none_or(|(last, _)| *last < module) {
                shared[index].push((module, position));
            } else {
                shared.push(vec![(module, position)]);
            }
        }
    }
    let length = |(module, position): (usize, usize)| -> usize {
        let Prepared { source, units, .. } = &prepared[module];
        let unit = units.units[position].iter();
        unit.map(|id| source.module.globals[*id].text.len()).sum()
    };
    // Classes: units that the same modules have.
    let mut classes: BTreeMap<Vec<usize>, Vec<SharedUnit>> = BTreeMap::new();
    for unit in shared {
        let modules = Vec::from_iter(unit.iter().map(|(module, _)| *module));
        classes.entry(modules).or_default().push(unit);
    }
    let mut single: BTreeMap<usize, Vec<(usize, usize)>> = BTreeMap::new();
    let mut groups: Vec<Vec<SharedUnit>> = Vec::new();
    for (modules, class) in classes {
        let total: usize = class.iter().map(|unit| length(unit[0])).sum();
        if modules.len() == 1 || total * (modules.len() - 1) < OVERHEAD_LENGTH {
            for place in class.into_iter().flatten() {
                single.entry(place.0).or_default().push(place);
            }
        } else {
            cut(class, length, &mut groups);
        }
    }
    for (_, mut places) in single {
        places.sort_unstable();
        cut(
            places.into_iter().map(|place| vec![place]).collect(),
            length,
            &mut groups,
        );
    }
    groups
}

/// Cuts the units of a class into groups.
fn cut(
    class: Vec<SharedUnit>,
    length: impl Fn((usize, usize)) -> usize,
    groups: &mut Vec<Vec<SharedUnit>>,
) {
    let (mut group, mut total) = (Vec::new(), 0);
    for unit in class {
        total += length(unit[0]);
        group.push(unit);
        if total >= MEMBER_LENGTH {
            groups.push(std::mem::take(&mut group));
            total = 0;
        }
    }
    if !group.is_empty() {
        groups.push(group);
    }
}

/// Adds the member of a module, unless another module has an equal one. Returns its length.
fn add(
    prepared: &[Prepared<'_>],
    places: &[(usize, usize)],
    options: Options,
    members: &mut Vec<TextMember>,
    first_of_group: usize,
) -> Result<usize> {
    let Some(&(module, first)) = places.first() else {
        return Ok(0);
    };
    let Prepared { source, units, .. } = &prepared[module];
    let mut definitions = Vec::new();
    for &(_, position) in places {
        definitions.extend(&units.units[position]);
    }
    definitions.sort_unstable();
    let mut positions = places.iter().map(|(_, position)| *position);
    let constructors = if places.len() == units.units.len() {
        Constructors::Whole
    } else if positions.any(|position| units.root == Some(position)) {
        Constructors::Here
    } else {
        Constructors::Elsewhere
    };
    let text = member(source, &definitions, constructors, options)?;
    let length = text.len();
    let module_entry = (module, first);
    for known in &mut members[first_of_group..] {
        if known.text == text {
            known.modules.push(module_entry);
            return Ok(length);
        }
    }
    let globals = definitions.iter().map(|id| &source.module.globals[*id]);
    let visible = globals.clone().find(|global| !global.linkage.is_local());
    let name = visible
        .or(globals.clone().next())
        .map_or("", |global| &global.name[1..]);
    members.push(TextMember {
        text,
        modules: vec![module_entry],
        name: name.trim_matches('"').to_owned(),
    });
    Ok(length)
}

/// Hash of what all members of a module have.
fn header_hash(source: &Source<'_>, options: Options) -> u64 {
    let mut hasher = DefaultHasher::new();
    source.module.target.hash(&mut hasher);
    source.marker.hash(&mut hasher);
    if !options.canonical {
        source.module.source_filename.hash(&mut hasher);
    }
    for (name, nodes) in &source.module.named {
        if *name == "!llvm.dbg.cu" || options.canonical && *name == "!llvm.ident" {
            continue;
        }
        name.hash(&mut hasher);
        for node in nodes.iter().filter_map(|node| source.index.nodes.get(node)) {
            if node.globals.is_empty() {
                node.hash().hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
