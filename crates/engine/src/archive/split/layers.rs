//! Layers whose modules of bitcode are split.

use std::collections::{HashMap, HashSet};

use gpustub_core::diag::{Diagnostic, UNSPLIT_BITCODE};
use gpustub_superarchive::{
    Binding, Input, Layer, LayerId, MemberPosition, View, bitcode_producer, definitions, is_bitcode,
};

use super::global::Linkage;
use super::groups::{self, TextMember};
use super::llvm::{Llvm, release_in};
use super::prepared::{MARKER, Prepared};
use super::reason::Options;
use crate::env::Env;

/// Members of split modules, from which layers borrow.
#[derive(Debug, Default)]
pub struct SplitBitcode {
    /// Name and bitcode of each member.
    members: Vec<(String, Vec<u8>)>,
    /// Members of each module, by its layer and position.
    modules: HashMap<(usize, usize), Vec<usize>>,
    /// Modules that stay whole.
    pub unsplit: Vec<UnsplitModule>,
    /// Whether there was nothing to split.
    is_without_modules: bool,
}

/// A module that stays whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsplitModule {
    /// Layer of the module.
    pub layer: LayerId,
    /// Position in the layer.
    pub member: MemberPosition,
    /// The reason.
    pub reason: String,
}

/// A distinct module of the layers.
struct Module<'d> {
    data: &'d [u8],
    places: Vec<(usize, usize)>,
    reason: Option<String>,
}

impl SplitBitcode {
    /// Splits the modules of layers, by up to `jobs` processes at a time. `progress` is called with what is done.
    ///
    /// # Errors
    ///
    /// If there are modules, and LLVM's tools are missing or too old.
    pub fn from_layers(
        layers: &[Layer<'_>],
        views: &[View],
        is_canonical: bool,
        env: &Env,
        jobs: usize,
        progress: &dyn Fn(String),
    ) -> Result<Self, Box<Diagnostic>> {
        let mut modules = distinct_modules(layers);
        let producers = modules.iter().map(|module| bitcode_producer(module.data));
        let releases = producers.map(|producer| producer.as_deref().and_then(release_in));
        let Some(release) = releases.map(Option::unwrap_or_default).max() else {
            return Ok(Self {
                is_without_modules: true,
                ..Self::default()
            });
        };
        let llvm = Llvm::find(env, release)?;
        let options = Options {
            canonical: is_canonical,
        };
        for module in &mut modules {
            let is_partial = |place: &(usize, usize)| is_overridden_in_part(layers, views, *place);
            module.reason = match module.data {
                [b'B', b'C', ..] if module.places.iter().any(is_partial) => Some(
                    "an earlier layer of a view overrides some of its strong definitions"
                        .to_owned(),
                ),
                [b'B', b'C', ..] => None,
                _ => Some("it is in a wrapper".to_owned()),
            };
        }
        let mut split = Self::default();
        let mut texts = Vec::new();
        let count = modules.len();
        for (index, module) in modules.iter_mut().enumerate() {
            if module.reason.is_none() {
                progress(format!("reading module {} of {count}", index + 1));
                match llvm.disassemble(module.data) {
                    Ok(text) => texts.push((index, text)),
                    Err(reason) => module.reason = Some(reason),
                }
            }
        }
        let mut prepared = Vec::new();
        for (position, (index, text)) in texts.iter().enumerate() {
            progress(format!(
                "splitting module {} of {}",
                position + 1,
                texts.len()
            ));
            match Prepared::read(text, options) {
                Ok(module) => prepared.push((*index, module)),
                Err(reason) => modules[*index].reason = Some(reason.0.to_owned()),
            }
        }
        for (index, module) in &prepared {
            if is_defined_twice(layers, &modules[*index].places, module) {
                let reason = "another member of its layer defines one of its symbols";
                modules[*index].reason = Some(reason.to_owned());
            }
        }
        prepared.retain(|(index, _)| modules[*index].reason.is_none());
        let (indices, prepared): (Vec<usize>, Vec<Prepared<'_>>) = prepared.into_iter().unzip();
        let (members, reasons) = groups::members(&prepared, options);
        for (position, reason) in reasons {
            modules[indices[position]].reason = Some(reason.0.to_owned());
        }
        drop(prepared);
        drop(texts);
        split.assemble(&llvm, &members, &indices, &mut modules, jobs, progress);
        for module in modules {
            for (layer, member) in module.places {
                if let Some(reason) = &module.reason {
                    split.modules.remove(&(layer, member));
                    split.unsplit.push(UnsplitModule {
                        layer: LayerId(layer),
                        member: MemberPosition(member),
                        reason: reason.clone(),
                    });
                }
            }
        }
        Ok(split)
    }

    /// Writes members as bitcode, and compares the symbols of each module with those of its members.
    fn assemble(
        &mut self,
        llvm: &Llvm,
        members: &[TextMember],
        indices: &[usize],
        modules: &mut [Module<'_>],
        jobs: usize,
        progress: &dyn Fn(String),
    ) {
        let count = members.len();
        let progress = |index| progress(format!("writing member {} of {count}", index + 1));
        let texts = Vec::from_iter(members.iter().map(|member| &member.text[..]));
        let mut of_module: HashMap<usize, Vec<(usize, usize)>> = HashMap::new();
        for (member, module) in members.iter().zip(llvm.assemble(&texts, jobs, &progress)) {
            let module = module.unwrap_or_else(|reason| {
                for (position, _) in &member.modules {
                    modules[indices[*position]]
                        .reason
                        .get_or_insert_with(|| reason.clone());
                }
                Vec::new()
            });
            for &(position, first) in &member.modules {
                of_module
                    .entry(indices[position])
                    .or_default()
                    .push((first, self.members.len()));
            }
            self.members.push((file_name(&member.name), module));
        }
        for (index, mut parts) in of_module {
            // In the order of the module.
            parts.sort_unstable();
            let parts = Vec::from_iter(parts.into_iter().map(|(_, member)| member));
            let module = &mut modules[index];
            if module.reason.is_none() && !self.has_symbols_of(module.data, &parts) {
                module.reason = Some("its members would have other symbols".to_owned());
            }
            for place in &module.places {
                self.modules.insert(*place, parts.clone());
            }
        }
    }

    /// Whether members define the symbols of a module, and no other than the one for constructors.
    fn has_symbols_of(&self, module: &[u8], members: &[usize]) -> bool {
        let mut symbols = HashSet::new();
        for member in members {
            for symbol in definitions(&self.members[*member].1).unwrap_or_default() {
                if !symbol.name.starts_with(MARKER.as_bytes()) {
                    symbols.insert((symbol.name, symbol.binding));
                }
            }
        }
        let expected = definitions(module).unwrap_or_default().into_iter();
        symbols
            == expected
                .map(|symbol| (symbol.name, symbol.binding))
                .collect()
    }

    /// The same layers, with members for the modules that are split.
    pub fn apply<'c>(&'c self, layers: Vec<Layer<'c>>) -> Vec<Layer<'c>> {
        let mut split_layers = Vec::with_capacity(layers.len());
        for (index, layer) in layers.into_iter().enumerate() {
            let mut members = Vec::new();
            for (position, member) in layer.members.into_iter().enumerate() {
                match self.modules.get(&(index, position)) {
                    None => members.push(member),
                    Some(parts) => members.extend(parts.iter().map(|part| {
                        let (name, data) = &self.members[*part];
                        Input {
                            name: name.as_bytes().into(),
                            data,
                            symbols: definitions(data).unwrap_or_default(),
                        }
                    })),
                }
            }
            split_layers.push(Layer {
                interposable: layer.interposable,
                ..Layer::new(layer.name, members)
            });
        }
        split_layers
    }

    /// A warning if there was no module to split.
    pub fn nothing_split(&self) -> Option<Diagnostic> {
        self.is_without_modules.then(|| {
            Diagnostic::warning(
                &UNSPLIT_BITCODE,
                "the inputs have no modules of LLVM bitcode to split",
            )
            .help("remove `split`: objects and SPIR-V are not split")
        })
    }

    /// Number of members for all split modules.
    pub fn count(&self) -> usize {
        let used: HashSet<&usize> = self.modules.values().flatten().collect();
        used.len()
    }
}

/// The modules of layers, each with all of its places.
fn distinct_modules<'d>(layers: &[Layer<'d>]) -> Vec<Module<'d>> {
    let mut modules: Vec<Module<'d>> = Vec::new();
    let mut known: HashMap<&[u8], usize> = HashMap::new();
    for (layer, members) in layers.iter().map(|layer| &layer.members).enumerate() {
        for (position, member) in members.iter().enumerate() {
            if is_bitcode(member.data) {
                let index = *known.entry(member.data).or_insert(modules.len());
                if index == modules.len() {
                    modules.push(Module {
                        data: member.data,
                        places: Vec::new(),
                        reason: None,
                    });
                }
                modules[index].places.push((layer, position));
            }
        }
    }
    modules
}

/// Whether an earlier layer of a view has some, but not all, of the symbols of a member, and a strong one among them:
/// its code may be in the rest of the module, which the writer refuses.
fn is_overridden_in_part(
    layers: &[Layer<'_>],
    views: &[View],
    (layer, position): (usize, usize),
) -> bool {
    let symbols = &layers[layer].members[position].symbols;
    views.iter().any(|view| {
        let earlier = view.layers.iter().take_while(|id| id.0 != layer);
        if !view.layers.contains(&LayerId(layer)) {
            return false;
        }
        let earlier = earlier
            .filter_map(|id| layers.get(id.0))
            .flat_map(|layer| &layer.members);
        let names: HashSet<&[u8]> = earlier
            .flat_map(|member| &member.symbols)
            .map(|symbol| &*symbol.name)
            .collect();
        let overridden = Vec::from_iter(
            symbols
                .iter()
                .filter(|symbol| names.contains(&*symbol.name)),
        );
        overridden.len() < symbols.len()
            && overridden
                .iter()
                .any(|symbol| symbol.binding == Binding::Strong)
    })
}

/// Whether another member of a layer defines a symbol of a module, too, and not by the one-definition rule. Within the
/// module its own one is meant; members would get the first one of the layer.
fn is_defined_twice(
    layers: &[Layer<'_>],
    places: &[(usize, usize)],
    prepared: &Prepared<'_>,
) -> bool {
    let module = &prepared.source.module;
    let is_odr = |name: &&[u8]| {
        let name = format!("@{}", String::from_utf8_lossy(name));
        let global = module.global(&name).map(|id| &module.globals[id]);
        global.is_some_and(|global| global.linkage == Linkage::Odr)
    };
    places.iter().any(|&(layer, position)| {
        let members = &layers[layer].members;
        let names = members[position].symbols.iter().map(|symbol| &*symbol.name);
        let names: HashSet<&[u8]> = names.filter(|name| !is_odr(name)).collect();
        let mut siblings = members
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != position);
        siblings.any(|(_, member)| {
            let mut symbols = member.symbols.iter();
            symbols.any(|symbol| names.contains(&*symbol.name))
        })
    })
}

/// Name of a member with this first definition.
fn file_name(symbol: &str) -> String {
    /// Maximum length of a name: file systems have 255 bytes.
    const MAX: usize = 200;
    let mut name = String::new();
    for letter in symbol.chars().take(MAX) {
        name.push(if matches!(letter, '/' | '\\') || letter.is_control() {
            '_'
        } else {
            letter
        });
    }
    name + ".bc"
}
