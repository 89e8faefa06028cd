//! Images of a package that share a process, for the rules on device links.
//!
//! A program shares a process with the libraries that it needs. Any program may open libraries, so all
//! libraries may be in one process, except alternatives (two of one name, or for two toolkit versions) and
//! finals: no program opens one for itself, but images are linked to one of several.

use std::collections::{BTreeMap, BTreeSet};

use gpustub_image::{ImageKind, Module, REGISTER};

use crate::evidence::image_names;
use crate::gpu_file::{gpu_file, is_system};
use crate::gpu_relation::{ImageId, LoadGraph};
use crate::package::{ContainerKind, Package, PackageImage};
use crate::rules::runtimes::two_majors;

/// Ids of objects.
pub(super) type ObjectIds<'a> = BTreeSet<&'a str>;

/// The reported image, the other image, and the ids of the affected objects.
pub(super) type AffectedImages<'a> = (PackageImage<'a>, PackageImage<'a>, ObjectIds<'a>);

/// Ids of the objects in an image.
pub(super) fn objects<'a>(image: &PackageImage<'a>) -> ObjectIds<'a> {
    let modules = &image.facts.device.modules;
    modules.iter().map(|module| module.id.as_str()).collect()
}

/// Ids of the objects that an image device-links.
pub(super) fn linked_objects<'a>(image: &PackageImage<'a>) -> ObjectIds<'a> {
    let links = &image.facts.device.links;
    links.iter().map(String::as_str).collect()
}

/// Functions of the CUDA runtime that register the code of a device link, but neither kernels nor variables.
const REGISTER_CODE: [&str; 2] = ["__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd"];

/// Ids of the objects in an image that has kernels or variables for host code. CudaRdcUtils compiles an empty
/// source into each final.
fn used_objects<'a>(image: &PackageImage<'a>) -> ObjectIds<'a> {
    let imports = &image.facts.imports;
    let mut registered = imports
        .iter()
        .map(|import| import.name.as_str())
        .filter(|name| name.starts_with("__cudaRegister") && !name.starts_with(REGISTER));
    let is_used = if registered.clone().any(|name| name == REGISTER_CODE[0]) {
        registered.any(|name| !REGISTER_CODE.contains(&name))
    } else {
        // The runtime, or its stubs, are linked in.
        image.facts.device.used_by_host != Some(false)
    };
    if is_used {
        objects(image)
    } else {
        ObjectIds::new()
    }
}

/// Maximum number of images examined per object, of those that contain it and of those that link it.
const MAX_IMAGES: usize = 64;

/// Images by the id of an object.
type ImagesByObject<'a> = BTreeMap<&'a str, Vec<ImageId>>;

/// The images of a package with objects or device links, and the images loaded with them.
pub(super) struct Processes<'a> {
    graph: LoadGraph<'a>,
    /// Whether other images of the process may be unknown: files are named, not a directory.
    is_open: bool,
    /// Images with objects or links, in order.
    device_images: Vec<ImageId>,
    /// Images loaded with each program.
    programs: BTreeMap<ImageId, BTreeSet<ImageId>>,
    /// Images that link, and images that contain, each object.
    linkers: ImagesByObject<'a>,
    holders: ImagesByObject<'a>,
    /// Images that load each final.
    finals: BTreeMap<ImageId, Vec<ImageId>>,
}

impl<'a> Processes<'a> {
    pub(super) fn from_package(package: &'a Package) -> Self {
        let graph = LoadGraph::from_package(package);
        let mut device_images = Vec::new();
        let mut linkers = ImagesByObject::new();
        let mut holders = ImagesByObject::new();
        for (id, image) in graph.entries() {
            let (linked, held) = (linked_objects(image), objects(image));
            if !linked.is_empty() || !held.is_empty() {
                device_images.push(id);
            }
            add_image(&mut linkers, linked, id);
            add_image(&mut holders, held, id);
        }
        let mut programs = BTreeMap::new();
        if !device_images.is_empty() {
            for (id, image) in graph.entries() {
                if image.facts.kind != ImageKind::Library {
                    programs.insert(id, graph.loaded_with(id).into_iter().collect());
                }
            }
        }
        Self {
            is_open: package.kind == ContainerKind::Process,
            finals: finals(&graph),
            graph,
            device_images,
            programs,
            linkers,
            holders,
        }
    }

    fn image(&self, id: ImageId) -> PackageImage<'a> {
        self.graph.image(id)
    }

    fn is_program(&self, id: ImageId) -> bool {
        self.programs.contains_key(&id)
    }

    /// The images that contain a device link.
    pub(super) fn linking(&self) -> impl Iterator<Item = (ImageId, PackageImage<'a>)> {
        self.device_images
            .iter()
            .map(|&id| (id, self.image(id)))
            .filter(|(_, image)| !image.facts.device.links.is_empty())
    }

    /// The object of this id that an image links: its own, that of a library loaded with it, or any
    /// other.
    pub(super) fn module(&self, linker: ImageId, object_id: &str) -> Option<&'a Module> {
        let holders = self.holders.get(object_id)?;
        let loaded = match holders[..] {
            [_] => Vec::new(),
            _ => self.graph.loaded_with(linker),
        };
        let holder = loaded
            .iter()
            .find(|id| holders.contains(id))
            .or(holders.first())?;
        let modules = &self.image(*holder).facts.device.modules;
        modules.iter().find(|module| module.id == object_id)
    }

    /// Objects of an image, by `objects_of`, that are not among the `counterparts_of` any image loaded with it:
    /// the image or program, the image that has them, and the ids.
    pub(super) fn unmatched(
        &self,
        objects_of: fn(&PackageImage<'a>) -> ObjectIds<'a>,
        counterparts_of: fn(&PackageImage<'a>) -> ObjectIds<'a>,
    ) -> Vec<AffectedImages<'a>> {
        let counterparts: ObjectIds<'a> = self
            .device_images
            .iter()
            .flat_map(|&id| counterparts_of(&self.image(id)))
            .collect();
        let mut unmatched = Vec::new();
        if !self.is_open {
            for &id in &self.device_images {
                let image = self.image(id);
                let ids: ObjectIds<'a> = objects_of(&image)
                    .difference(&counterparts)
                    .copied()
                    .collect();
                if !ids.is_empty() && self.is_complete(self.graph.loaded_with(id)) {
                    unmatched.push((image, image, ids));
                }
            }
        }
        for (program, loaded) in self.complete_roots() {
            let matched: ObjectIds<'a> = loaded
                .iter()
                .flat_map(|&id| counterparts_of(&self.image(id)))
                .collect();
            for &id in &loaded {
                let image = self.image(id);
                let mut ids = objects_of(&image);
                // Ids without a counterpart in any image were reported for the image itself.
                ids.retain(|id| {
                    (self.is_open || counterparts.contains(id)) && !matched.contains(id)
                });
                if !ids.is_empty() && self.is_complete(loaded.iter().copied()) {
                    unmatched.push((self.image(program), image, ids));
                }
            }
        }
        unmatched
    }

    /// Programs, and of named files those that load a final, with all images loaded with each: the device links of their
    /// processes. No program that opens such a file has a second device link over its libraries.
    fn complete_roots(&self) -> BTreeMap<ImageId, BTreeSet<ImageId>> {
        let mut roots = self.programs.clone();
        if self.is_open {
            for &id in self.finals.values().flatten() {
                roots
                    .entry(id)
                    .or_insert_with(|| self.graph.loaded_with(id).into_iter().collect());
            }
        }
        roots
    }

    /// Whether all libraries that these images need are in the package, or known to have no such code.
    fn is_complete(&self, images: impl IntoIterator<Item = ImageId>) -> bool {
        images.into_iter().all(|id| {
            self.image(id).needed().iter().all(|name| {
                is_system(name) || gpu_file(name).is_some() || self.graph.find(id, name).is_some()
            })
        })
    }

    /// Pairs of images of one process that device-link the same objects: the pairs whose images use
    /// their own copies, or the other pairs.
    pub(super) fn shared(&self, isolated: bool) -> Vec<AffectedImages<'a>> {
        let mut pairs: BTreeMap<(ImageId, ImageId), ObjectIds<'a>> = BTreeMap::new();
        for (object_id, linkers) in &self.linkers {
            for (index, &first) in linkers.iter().enumerate() {
                for &second in &linkers[index + 1..] {
                    if self.is_isolated(object_id, first, second) == isolated {
                        pairs.entry((first, second)).or_default().insert(object_id);
                    }
                }
            }
        }
        pairs.retain(|&(first, second), ids| {
            !self.loads_same_libraries(first, second, ids) && self.may_meet(first, second, ids)
        });
        self.affected_images(pairs)
    }

    /// Whether all objects of both device links are in other images, which each of the two loads and which call its
    /// functions: whichever is loaded first registers them, and nothing calls the other.
    fn loads_same_libraries(&self, first: ImageId, second: ImageId, ids: &ObjectIds<'a>) -> bool {
        let loaded: [BTreeSet<ImageId>; 2] =
            [first, second].map(|id| self.graph.loaded_with(id).into_iter().collect());
        let are_called = [first, second].iter().all(|&id| {
            let image = self.image(id);
            let exported = &image.facts.device.exported;
            linked_objects(&image) == *ids && ids.iter().all(|id| exported.contains(*id))
        });
        are_called
            && ids.iter().all(|id| {
                self.holders.get(id).is_some_and(|holders| {
                    holders.iter().all(|holder| {
                        ![first, second].contains(holder)
                            && loaded.iter().all(|images| images.contains(holder))
                    })
                })
            })
    }

    fn affected_images(
        &self,
        pairs: BTreeMap<(ImageId, ImageId), ObjectIds<'a>>,
    ) -> Vec<AffectedImages<'a>> {
        pairs
            .into_iter()
            .map(|((first, second), ids)| (self.image(first), self.image(second), ids))
            .collect()
    }

    /// Whether each of two images contains the object, and calls its own function for it.
    fn is_isolated(&self, object_id: &str, first: ImageId, second: ImageId) -> bool {
        self.holders
            .get(object_id)
            .is_some_and(|holders| holders.contains(&first) && holders.contains(&second))
            && !self.may_take(object_id, first, second)
    }

    /// Whether one of two images may call the other's function.
    fn may_take(&self, object_id: &str, first: ImageId, second: ImageId) -> bool {
        self.may_call(object_id, first, second) || self.may_call(object_id, second, first)
    }

    fn may_call(&self, object_id: &str, caller: ImageId, provider: ImageId) -> bool {
        let caller = &self.image(caller).facts.device;
        let provider = &self.image(provider).facts.device;
        caller.interposable.contains(object_id) && provider.exported.contains(object_id)
    }

    /// Whether two images may be in one process.
    fn may_meet(&self, first: ImageId, second: ImageId, ids: &ObjectIds<'a>) -> bool {
        if self
            .programs
            .values()
            .any(|loaded| loaded.contains(&first) && loaded.contains(&second))
            || self.graph.loaded_with(first).contains(&second)
            || self.graph.loaded_with(second).contains(&first)
        {
            return true;
        }
        if !self.is_program(first)
            && !self.is_program(second)
            && self.are_alternatives(first, second)
        {
            return false;
        }
        let second_roots = self.roots(second);
        self.roots(first).iter().any(|&first_root| {
            second_roots.iter().any(|&second_root| {
                self.may_meet_through([first, second], [first_root, second_root], ids)
            })
        })
    }

    /// Whether two images may be in one process that these roots bring them into.
    fn may_meet_through(
        &self,
        [first, second]: [ImageId; 2],
        [first_root, second_root]: [ImageId; 2],
        ids: &ObjectIds<'a>,
    ) -> bool {
        if first_root == second_root {
            return true;
        }
        let [first_is_program, second_is_program] =
            [first_root, second_root].map(|root| self.is_program(root));
        if first_is_program && second_is_program {
            return false;
        }
        // Loaded first, the program's device link is the one that objects call.
        if (first_is_program && self.covers(first, second))
            || (second_is_program && self.covers(second, first))
        {
            return false;
        }
        if (first_is_program && first_root == first) || (second_is_program && second_root == second)
        {
            // The program may or may not open the library; that fails only if the library can
            // bind to the program's functions.
            return ids.iter().any(|id| self.may_take(id, first, second));
        }
        !self.are_alternatives(first_root, second_root)
    }

    /// Whether the loader finds the functions of one image in place of all functions of another, which
    /// contains no objects that bind to its own.
    fn covers(&self, provider: ImageId, covered: ImageId) -> bool {
        let image = self.image(covered);
        let (objects, used) = (objects(&image), used_objects(&image));
        let mut linked = linked_objects(&image);
        linked.retain(|id| used.contains(id) || !objects.contains(id));
        let exported = &self.image(provider).facts.device.exported;
        linked.iter().all(|id| exported.contains(*id)) && used.is_disjoint(&linked)
    }

    /// Images that bring an image into a process: itself, or those that load it if it is a final.
    fn roots(&self, id: ImageId) -> Vec<ImageId> {
        self.finals.get(&id).cloned().unwrap_or_else(|| vec![id])
    }

    fn are_alternatives(&self, first: ImageId, second: ImageId) -> bool {
        let pair = [self.image(first), self.image(second)];
        let first_names: BTreeSet<&str> = image_names(&pair[0]).collect();
        image_names(&pair[1]).any(|name| first_names.contains(name))
            || two_majors(&pair).is_some()
            || is_variant_pair(&pair)
    }

    /// Pairs of images of one process whose first device-links objects that only the second contains.
    pub(super) fn apart(&self) -> Vec<AffectedImages<'a>> {
        let mut pairs: BTreeMap<(ImageId, ImageId), ObjectIds<'a>> = BTreeMap::new();
        for (object_id, linkers) in &self.linkers {
            let Some(holders) = self.holders.get(object_id) else {
                continue;
            };
            for &linker in linkers.iter().filter(|id| !holders.contains(id)) {
                for &holder in holders.iter().filter(|id| !linkers.contains(id)) {
                    pairs.entry((linker, holder)).or_default().insert(object_id);
                }
            }
        }
        pairs.retain(|&(linker, holder), ids| {
            self.graph.loaded_with(linker).contains(&holder)
                || (!self.is_program(linker)
                    && !self.is_program(holder)
                    && self.may_meet(linker, holder, ids))
        });
        self.affected_images(pairs)
    }
}

fn add_image<'a>(images: &mut ImagesByObject<'a>, object_ids: ObjectIds<'a>, image_id: ImageId) {
    for object_id in object_ids {
        let images = images.entry(object_id).or_default();
        if images.len() < MAX_IMAGES {
            images.push(image_id);
        }
    }
}

/// Whether the images, or libraries that they need, are builds of one source for two toolkit versions:
/// `libbitsandbytes_cuda121.so` and `libbitsandbytes_cuda124.so`.
fn is_variant_pair([first, second]: &[PackageImage<'_>; 2]) -> bool {
    let first_variants: BTreeMap<String, String> = variants(first).collect();
    variants(second).any(|(name, versions)| {
        first_variants
            .get(&name)
            .is_some_and(|first_versions| *first_versions != versions)
    })
}

/// Names of an image and of the libraries that it needs, if they contain toolkit versions.
fn variants(image: &PackageImage<'_>) -> impl Iterator<Item = (String, String)> {
    let needed = image.needed().iter().map(String::as_str);
    image_names(image).chain(needed).filter_map(variant)
}

/// File name without toolkit versions, and the versions: `libx_cuda.so` and `121` of `libx_cuda121.so`.
fn variant(name: &str) -> Option<(String, String)> {
    let (mut unversioned, mut versions) = (String::new(), String::new());
    for part in name.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let toolkit = word.trim_end_matches(|c: char| c.is_ascii_digit());
        if toolkit != word && ["cuda", "cu", "rocm", "hip"].contains(&toolkit) {
            unversioned.push_str(toolkit);
            versions.push_str(&part[toolkit.len()..]);
        } else {
            unversioned.push_str(part);
        }
    }
    (!versions.is_empty()).then_some((unversioned, versions))
}

/// Finals with the images that load them. A final contains device links and nothing else: no linked object that
/// host code uses, and no function for its users, unlike a plugin that device-links libraries.
fn finals(graph: &LoadGraph<'_>) -> BTreeMap<ImageId, Vec<ImageId>> {
    let mut finals: BTreeMap<ImageId, Vec<ImageId>> = graph
        .entries()
        .filter(|(_, image)| is_final(image))
        .map(|(id, _)| (id, Vec::new()))
        .collect();
    if finals.is_empty() {
        return finals;
    }
    for (id, _) in graph.entries() {
        if finals.contains_key(&id) {
            continue;
        }
        for loaded in graph.loaded_with(id) {
            if let Some(loaders) = finals.get_mut(&loaded)
                && loaders.len() < MAX_IMAGES
            {
                loaders.push(id);
            }
        }
    }
    finals
}

/// Whether an image is a final.
pub(in crate::rules) fn is_final(image: &PackageImage<'_>) -> bool {
    let linked = linked_objects(image);
    image.facts.kind == ImageKind::Library
        && image.facts.other_exports == 0
        && !linked.is_empty()
        && used_objects(image).is_disjoint(&linked)
}
