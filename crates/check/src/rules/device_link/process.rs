//! Images of a package that share a process, for the rules on device links.
//!
//! A program shares a process with the libraries that it needs. Any program may open libraries, so all
//! libraries may be in one process, except alternatives (two of one name, or for two toolkit versions) and
//! finals: no program opens one for itself, but images are linked to one of several.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_image::{ImageKind, Module};

use crate::evidence::image_names;
use crate::gpu_file::{gpu_file, is_system};
use crate::gpu_relation::{ImageId, LoadGraph};
use crate::package::{Image, Kind, Package};
use crate::rules::runtimes::majors;

/// Ids of objects.
pub(super) type Ids<'a> = BTreeSet<&'a str>;

/// The reported image, the other image, and the ids of the affected objects.
pub(super) type Found<'a> = (Image<'a>, Image<'a>, Ids<'a>);

/// Ids of the objects in an image.
pub(super) fn objects<'a>(image: &Image<'a>) -> Ids<'a> {
    let modules = image.facts.device.modules.iter();
    modules.map(|module| module.id.as_str()).collect()
}

/// Ids of the objects that an image device-links.
pub(super) fn links<'a>(image: &Image<'a>) -> Ids<'a> {
    let links = image.facts.device.links.iter();
    links.map(String::as_str).collect()
}

/// Maximum number of images examined per object, of those that contain it and of those that link it.
const MAX_IMAGES: usize = 64;

/// The images of a package with objects or device links, and the images loaded with them.
pub(super) struct Processes<'a> {
    together: LoadGraph<'a>,
    /// Whether other images of the process may be unknown: files are named, not a directory.
    is_open: bool,
    /// Images with objects or links, in order.
    own: Vec<ImageId>,
    /// Images loaded with each program.
    programs: BTreeMap<ImageId, BTreeSet<ImageId>>,
    /// Images that link, and images that contain, each object.
    linkers: BTreeMap<&'a str, Vec<ImageId>>,
    holders: BTreeMap<&'a str, Vec<ImageId>>,
    /// Images that load each final.
    finals: BTreeMap<ImageId, Vec<ImageId>>,
}

impl<'a> Processes<'a> {
    pub(super) fn from_package(package: &'a Package) -> Self {
        let together = LoadGraph::from_package(package);
        let mut own = Vec::new();
        let (mut linkers, mut holders) = (BTreeMap::new(), BTreeMap::new());
        let add = |map: &mut BTreeMap<&'a str, Vec<ImageId>>, ids: Ids<'a>, index| {
            for id in ids {
                let images = map.entry(id).or_default();
                if images.len() < MAX_IMAGES {
                    images.push(index);
                }
            }
        };
        for (index, image) in together.entries() {
            let (linked, held) = (links(image), objects(image));
            if !linked.is_empty() || !held.is_empty() {
                own.push(index);
            }
            add(&mut linkers, linked, index);
            add(&mut holders, held, index);
        }
        let mut programs = BTreeMap::new();
        if !own.is_empty() {
            for (index, image) in together.entries() {
                if image.facts.kind != ImageKind::Library {
                    programs.insert(index, together.loaded_with(index).into_iter().collect());
                }
            }
        }
        Self {
            is_open: package.kind == Kind::Process,
            finals: finals(&together),
            together,
            own,
            programs,
            linkers,
            holders,
        }
    }

    fn image(&self, index: ImageId) -> Image<'a> {
        self.together.image(index)
    }

    /// The images that contain a device link.
    pub(super) fn linking(&self) -> impl Iterator<Item = (ImageId, Image<'a>)> {
        let own = self
            .own
            .iter()
            .map(|&index| (index, self.together.image(index)));
        own.filter(|(_, image)| !image.facts.device.links.is_empty())
    }

    /// The object of this id that an image links: its own, that of a library loaded with it, or any
    /// other.
    pub(super) fn module(&self, index: ImageId, id: &str) -> Option<&'a Module> {
        let holders = self.holders.get(id)?;
        let with = match holders[..] {
            [_] => Vec::new(),
            _ => self.together.loaded_with(index),
        };
        let mut near = with.iter().filter(|index| holders.contains(index));
        let holder = near.next().or(holders.first())?;
        let mut modules = self.image(*holder).facts.device.modules.iter();
        modules.find(|module| module.id == id)
    }

    /// Ids that an image `has` and that no image loaded with it `wanted`: the image or program, the
    /// image that has them, and the ids.
    pub(super) fn unmatched(
        &self,
        has: fn(&Image<'a>) -> Ids<'a>,
        wanted: fn(&Image<'a>) -> Ids<'a>,
    ) -> Vec<Found<'a>> {
        let all: Ids<'a> = (self.own.iter())
            .flat_map(|&index| wanted(&self.image(index)))
            .collect();
        let mut found = Vec::new();
        for &index in self.own.iter().filter(|_| !self.is_open) {
            let image = self.image(index);
            let ids: Ids<'a> = has(&image).difference(&all).copied().collect();
            let loaded = || self.together.loaded_with(index);
            if !ids.is_empty() && self.is_whole(loaded()) {
                found.push((image, image, ids));
            }
        }
        for (&program, with) in &self.programs {
            let there = |of: fn(&Image<'a>) -> Ids<'a>| {
                let with = with.iter();
                with.map(move |&index| (index, of(&self.image(index))))
            };
            let matched: Ids<'a> = there(wanted).flat_map(|(_, ids)| ids).collect();
            for (index, ids) in there(has) {
                // Ids that no image wants were reported for the image itself.
                let ids = ids.iter().filter(|id| self.is_open || all.contains(*id));
                let ids: Ids<'a> = ids.filter(|id| !matched.contains(*id)).copied().collect();
                if !ids.is_empty() && self.is_whole(with.iter().copied()) {
                    found.push((self.image(program), self.image(index), ids));
                }
            }
        }
        found
    }

    /// Whether all libraries that these images need are in the package, or known to have no such code.
    fn is_whole(&self, images: impl IntoIterator<Item = ImageId>) -> bool {
        images.into_iter().all(|index| {
            let mut needed = self.image(index).needed().iter();
            needed.all(|name| {
                is_system(name)
                    || gpu_file(name).is_some()
                    || self.together.find(index, name).is_some()
            })
        })
    }

    /// Pairs of images of one process that device-link the same objects: the pairs whose images use
    /// their own copies, or the other pairs.
    pub(super) fn shared(&self, isolated: bool) -> Vec<Found<'a>> {
        let mut found: BTreeMap<(ImageId, ImageId), Ids<'a>> = BTreeMap::new();
        for (id, linkers) in &self.linkers {
            for (at, &first) in linkers.iter().enumerate() {
                for &second in &linkers[at + 1..] {
                    if self.is_isolated(id, first, second) == isolated {
                        found.entry((first, second)).or_default().insert(id);
                    }
                }
            }
        }
        found.retain(|&(first, second), ids| self.may_meet(first, second, ids));
        let found = found.into_iter();
        found
            .map(|((first, second), ids)| (self.image(first), self.image(second), ids))
            .collect()
    }

    /// Whether each of two images contains the object, and calls its own function for it.
    fn is_isolated(&self, id: &str, first: ImageId, second: ImageId) -> bool {
        let holds = |index| {
            let holders = self.holders.get(id);
            holders.is_some_and(|holders| holders.contains(&index))
        };
        holds(first) && holds(second) && !self.may_take(id, first, second)
    }

    /// Whether one of two images may call the other's function.
    fn may_take(&self, id: &str, first: ImageId, second: ImageId) -> bool {
        let code = [first, second].map(|index| &self.image(index).facts.device);
        let takes = |of: usize, from: usize| {
            code[of].interposable.contains(id) && code[from].exported.contains(id)
        };
        takes(0, 1) || takes(1, 0)
    }

    /// Whether two images may be in one process.
    fn may_meet(&self, first: ImageId, second: ImageId, ids: &Ids<'a>) -> bool {
        let is_program = |index| self.programs.contains_key(&index);
        let mut programs = self.programs.values();
        let loads = |one, other| self.together.loaded_with(one).contains(&other);
        if programs.any(|with| with.contains(&first) && with.contains(&second))
            || loads(first, second)
            || loads(second, first)
        {
            return true;
        }
        if !is_program(first) && !is_program(second) && self.are_alternatives(first, second) {
            return false;
        }
        self.roots(first).iter().any(|&one| {
            self.roots(second).iter().any(|&other| {
                match (
                    one == first && is_program(one),
                    other == second && is_program(other),
                ) {
                    _ if one == other => true,
                    _ if is_program(one) && is_program(other) => false,
                    // Loaded first, the program's device link is the one that objects call.
                    _ if is_program(one) && self.covers(first, second) => false,
                    _ if is_program(other) && self.covers(second, first) => false,
                    (false, false) => !self.are_alternatives(one, other),
                    // The program may or may not open the library; that fails only if the library can
                    // bind to the program's functions.
                    _ => ids.iter().any(|id| self.may_take(id, first, second)),
                }
            })
        })
    }

    /// Whether the loader finds the functions of one image in place of all functions of another, which
    /// contains no objects that bind to its own.
    fn covers(&self, by: ImageId, index: ImageId) -> bool {
        let image = self.image(index);
        let linked = links(&image);
        let exported = &self.image(by).facts.device.exported;
        linked.iter().all(|id| exported.contains(*id)) && objects(&image).is_disjoint(&linked)
    }

    /// Images that bring an image into a process: itself, or those that load it if it is a final.
    fn roots(&self, index: ImageId) -> Vec<ImageId> {
        let loaders = self.finals.get(&index).cloned();
        loaders.unwrap_or_else(|| vec![index])
    }

    fn are_alternatives(&self, first: ImageId, second: ImageId) -> bool {
        let pair = [self.image(first), self.image(second)];
        let of_first: BTreeSet<&str> = image_names(&pair[0]).collect();
        image_names(&pair[1]).any(|name| of_first.contains(name))
            || majors(&pair).is_some()
            || is_variant_pair(&pair)
    }

    /// Pairs of images of one process whose first device-links objects that only the second contains.
    pub(super) fn apart(&self) -> Vec<Found<'a>> {
        let mut found: BTreeMap<(ImageId, ImageId), Ids<'a>> = BTreeMap::new();
        for (id, linkers) in &self.linkers {
            let Some(holders) = self.holders.get(id) else {
                continue;
            };
            for &linker in linkers.iter().filter(|index| !holders.contains(index)) {
                for &holder in holders.iter().filter(|index| !linkers.contains(index)) {
                    found.entry((linker, holder)).or_default().insert(id);
                }
            }
        }
        found.retain(|&(linker, holder), ids| {
            let with = self.together.loaded_with(linker);
            let is_program = |index| self.programs.contains_key(&index);
            with.contains(&holder)
                || !(is_program(linker) || is_program(holder)) && self.may_meet(linker, holder, ids)
        });
        let found = found.into_iter();
        found
            .map(|((first, second), ids)| (self.image(first), self.image(second), ids))
            .collect()
    }
}

/// Whether the images, or libraries that they need, are builds of one source for two toolkit versions:
/// `libbitsandbytes_cuda121.so` and `libbitsandbytes_cuda124.so`.
fn is_variant_pair(pair: &[Image<'_>; 2]) -> bool {
    let names = |at: usize| {
        let needed = pair[at].needed().iter().map(String::as_str);
        image_names(&pair[at]).chain(needed).filter_map(variant)
    };
    let of_first: BTreeMap<String, String> = names(0).collect();
    let mut of_second = names(1);
    of_second.any(|(name, versions)| of_first.get(&name).is_some_and(|other| *other != versions))
}

/// File name without toolkit versions, and the versions: `libx_cuda.so` and `121` of `libx_cuda121.so`.
fn variant(name: &str) -> Option<(String, String)> {
    let (mut without, mut versions) = (String::new(), String::new());
    for part in name.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let toolkit = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if toolkit != word && ["cuda", "cu", "rocm", "hip"].contains(&toolkit) {
            without.push_str(toolkit);
            versions.push_str(&part[toolkit.len()..]);
        } else {
            without.push_str(part);
        }
    }
    (!versions.is_empty()).then_some((without, versions))
}

/// Finals with the images that load them. A final contains device links and nothing else: no linked object, and
/// no function for its users, unlike a plugin that device-links libraries.
fn finals(together: &LoadGraph<'_>) -> BTreeMap<ImageId, Vec<ImageId>> {
    let is_final = |image: &Image<'_>| {
        let linked = links(image);
        image.facts.kind == ImageKind::Library
            && image.facts.other_exports == 0
            && !linked.is_empty()
            && objects(image).is_disjoint(&linked)
    };
    let finals = together.entries().filter(|(_, image)| is_final(image));
    let mut finals: BTreeMap<ImageId, Vec<ImageId>> =
        finals.map(|(index, _)| (index, Vec::new())).collect();
    if finals.is_empty() {
        return finals;
    }
    for (index, _) in together.entries() {
        if finals.contains_key(&index) {
            continue;
        }
        for loaded in together.loaded_with(index) {
            let loaders = finals.get_mut(&loaded);
            if let Some(loaders) = loaders.filter(|loaders| loaders.len() < MAX_IMAGES) {
                loaders.push(index);
            }
        }
    }
    finals
}
