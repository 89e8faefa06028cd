//! Inputs: libraries that every machine with a compiler has, and the device libraries of components.

use std::path::{Path, PathBuf};

use gpustub_superarchive::{KnownMembers, Layer, LayerId, Plan, Request, Source, View, ViewId};
use gpustub_tests::components::component;
use gpustub_tests::{Result, files_below};

/// Layers and views of a super-archive.
pub struct Set {
    pub name: &'static str,
    /// Files of each layer.
    layers: Vec<Vec<PathBuf>>,
    /// Names of views, with the layers of each.
    views: Vec<(String, Vec<usize>)>,
    /// Distinct files of the layers.
    pub files: Vec<PathBuf>,
}

/// Modules of ROCm's device libraries that a program for any processor is linked with.
const COMMON: [&str; 9] = [
    "hip.bc",
    "ockl.bc",
    "oclc_abi_version_400.bc",
    "oclc_correctly_rounded_sqrt_on.bc",
    "oclc_daz_opt_off.bc",
    "oclc_finite_only_off.bc",
    "oclc_unsafe_math_off.bc",
    "oclc_wavefrontsize64_on.bc",
    "ocml.bc",
];

impl Set {
    /// The set of each component that is there. Prints which are missing.
    pub fn components() -> Result<Vec<Self>> {
        let mut sets = Vec::new();
        for (name, path) in [
            ("libclc 16", "libclc-16"),
            ("libclc 19", "libclc-19"),
            ("ROCm device libraries", "device-libs-5.2"),
        ] {
            match component(path) {
                Ok(directory) if path.starts_with("libclc") => {
                    sets.push(Self::libclc(name, &directory)?);
                }
                Ok(directory) => sets.push(Self::rocm(name, &directory)?),
                Err(error) => println!("without {name}: {error:?}"),
            }
        }
        Ok(sets)
    }

    /// A view for each module of libclc for GPUs of AMD before GCN, GCN and SPIR-V.
    fn libclc(name: &'static str, directory: &Path) -> Result<Self> {
        let mut set = Self::empty(name);
        for file in bitcode(directory)? {
            let view = file_name(&file);
            let other = ["nvptx", "amdhsa"].iter().any(|one| view.contains(one));
            if view.matches('-').count() > 1 && !other {
                set.views.push((view, vec![set.layers.len()]));
                set.layer(vec![file])?;
            }
        }
        Ok(set)
    }

    /// A view for each processor: its own module before the common ones.
    fn rocm(name: &'static str, directory: &Path) -> Result<Self> {
        let files = bitcode(directory)?;
        let mut set = Self::empty(name);
        let common = |file: &&PathBuf| COMMON.contains(&&*file_name(file));
        set.layer(files.iter().filter(common).cloned().collect())?;
        for file in files {
            let view = file_name(&file);
            if view.starts_with("oclc_isa_version_") {
                set.views.push((view, vec![set.layers.len(), 0]));
                set.layer(vec![file])?;
            }
        }
        Ok(set)
    }

    /// One view of files in a directory.
    pub fn directory(name: &'static str, directory: &Path) -> Result<Self> {
        let mut set = Self::empty(name);
        set.views.push(("all".into(), vec![0]));
        let mut files = files_below(directory)?;
        files.sort();
        set.layer(files)?;
        Ok(set)
    }

    fn empty(name: &'static str) -> Self {
        Self {
            name,
            layers: Vec::new(),
            views: Vec::new(),
            files: Vec::new(),
        }
    }

    fn layer(&mut self, files: Vec<PathBuf>) -> Result<()> {
        for file in &files {
            // Many files of libclc are links to one.
            let file = file.canonicalize()?;
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        self.layers.push(files);
        Ok(())
    }

    /// Maps the files.
    pub fn open(&self) -> Result<Vec<Source>> {
        let sources = self.layers.iter().map(|files| Source::files(files.clone()));
        let sources = sources.collect::<Result<_, _>>();
        Ok(sources.map_err(|e: gpustub_superarchive::Error| e.to_string())?)
    }

    /// Reads the layers. The first view is the default one.
    pub fn request<'d>(&self, sources: &'d [Source]) -> Result<Request<'d>> {
        let mut known = KnownMembers::default();
        let layers = sources.iter().map(|one| one.layer_with(&mut known));
        let layers = layers.collect::<Result<Vec<Layer<'_>>, _>>();
        let views = self.views.iter().map(|(name, layers)| View {
            name: name.clone(),
            layers: layers.iter().copied().map(LayerId).collect(),
        });
        Ok(Request {
            layers: layers.map_err(|e| e.to_string())?,
            views: views.collect(),
            default: Some(ViewId(0)),
        })
    }

    pub fn view_count(&self) -> usize {
        self.views.len()
    }

    /// Files of each view.
    pub fn view_files(&self) -> impl Iterator<Item = Vec<PathBuf>> {
        let layers = self.views.iter().map(|(_, layers)| layers.iter());
        layers.map(|layers| layers.flat_map(|&at| self.layers[at].clone()).collect())
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

fn bitcode(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files = files_below(directory)?;
    files.retain(|file| file.extension().is_some_and(|ending| ending == "bc"));
    files.sort();
    Ok(files)
}

pub fn plan<'r, 'd>(request: &'r Request<'d>) -> Result<Plan<'r, 'd>> {
    Ok(Plan::new(request).map_err(|e| format!("{e:?}"))?)
}

/// Bytes of a super-archive.
pub fn written(request: &Request<'_>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    plan(request)?.write(&mut bytes)?;
    Ok(bytes)
}
