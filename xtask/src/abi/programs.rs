//! Fake libraries and callers, as C, generated from the same declarations as the ABI tables.
//!
//! A fake library has each function of the ABI table in its version, and one for each calling shape among
//! the functions that never changed and some that no API has (`xtask/programs/shapes.h`). It logs its
//! arguments, fills the memory that it may write and reads the memory that it may read, according to its
//! own header. A caller calls each function by the names of the header that it is compiled with, and
//! guards the memory that it passes. So an ABI mismatch between caller and library becomes visible.
//! `xtask/programs/*.h` has their common parts.
//!
//! ```text
//! cd OUT/cudart
//! cc -shared -fPIC -Wl,--version-script=fake-12.9.map -Wl,-soname,libcudart.so.12 \
//!     -o libcudart.so.12 fake-12.9.c
//! cc -isystem xtask/headers -isystem $WHEEL/include -o caller caller-11.8.c $STUBS
//! GPUSTUB_TEST_FAKE_LOG=log ./caller
//! ```
//!
//! The caller prints for each call `call SOURCE EXPORTED SHAPE`, `passed EXPORTED ARGUMENTS`, and `result
//! STATUS filled|untouched|partly|overrun` or `signal N`; the library adds `NAME ARGUMENTS` to the
//! log. A call was understood if both print the same arguments and all outputs were filled. `-per-thread`
//! callers need `-D..._API_PER_THREAD_DEFAULT_STREAM`; with `-DWEAK` and no stubs, `LD_PRELOAD` names
//! the library, and missing functions are `absent`.

mod arguments;
mod families;
mod fields;
mod sample;
mod shapes;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_cdecl::{self as headers, DeclaredFunction, Headers};
use gpustub_core::library::Library;
use gpustub_core::version::Version;

use super::history::{Evidence, declarations};
use super::recipes::{self, AbiRecipe, STAND_INS};
use super::table::Group;
use crate::recipes::read_exports;
use crate::recipes::{Options, find};
use families::{Families, Family};
use text::{Fake, Function};

/// The fake libraries and callers of one library.
struct Programs {
    id: &'static str,
    /// Versions of the headers that callers are compiled with; `--all`: those of the recipe.
    headers: &'static [(u32, u32)],
    /// Versions of the libraries; `--all`: those of the recipe.
    libraries: &'static [(u32, u32)],
    /// Functions of every fake library that has them, though no ABI table has: adapters call them.
    called: &'static [&'static str],
    /// Functions in `fake.h`, which adapters call.
    helpers: &'static [&'static str],
    /// Functions that do not return.
    aborting: &'static [&'static str],
    /// Macros of the callers, by the ends of their names.
    modes: &'static [(&'static str, &'static [&'static str])],
}

const PROGRAMS: &[Programs] = &[
    Programs {
        id: "cuda",
        headers: CUDA_HEADERS,
        libraries: CUDA_LIBRARIES,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: CUDA_MODES,
    },
    Programs {
        id: "cudart",
        headers: CUDA_HEADERS,
        libraries: CUDA_LIBRARIES,
        called: &[
            "cudaGraphInstantiateWithParams",
            "cudaGraphInstantiateWithParams_ptsz",
        ],
        helpers: &[
            "cudaDriverGetVersion",
            "cudaDeviceGetAttribute",
            "cudaGetFuncBySymbol",
        ],
        aborting: &[],
        modes: CUDA_MODES,
    },
    Programs {
        id: "cufft",
        headers: CUFFT_HEADERS,
        libraries: CUFFT_LIBRARIES,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: &[("", &[])],
    },
    Programs {
        id: "cufile",
        headers: CUFILE_HEADERS,
        libraries: CUFILE_HEADERS,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: &[("", &[])],
    },
    Programs {
        id: "cusparse",
        headers: CUSPARSE_HEADERS,
        libraries: CUSPARSE_LIBRARIES,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: &[("", &[])],
    },
    Programs {
        id: "hip",
        headers: HIP_VERSIONS,
        libraries: HIP_VERSIONS,
        called: &[],
        helpers: &["hipDriverGetVersion", "hipDeviceGetAttribute"],
        aborting: &[],
        modes: &[
            ("", &[]),
            ("-per-thread", &["HIP_API_PER_THREAD_DEFAULT_STREAM"]),
        ],
    },
    Programs {
        id: "hipblas",
        headers: ROCM_VERSIONS,
        libraries: ROCM_VERSIONS,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: &[("", &[]), ("-v2", &["HIPBLAS_V2"])],
    },
    Programs {
        id: "hipsparse",
        headers: HIPSPARSE_VERSIONS,
        libraries: HIPSPARSE_VERSIONS,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: &[("", &[])],
    },
    Programs {
        id: "nvml",
        headers: NVML_VERSIONS,
        libraries: NVML_VERSIONS,
        called: &[],
        helpers: &[],
        aborting: &[],
        modes: &[
            ("", &[]),
            ("-versioned", &["NVML_NO_UNVERSIONED_FUNC_DEFS"]),
        ],
    },
    Programs {
        id: "rocblas",
        headers: ROCM_VERSIONS,
        libraries: ROCM_VERSIONS,
        called: &[],
        helpers: &[],
        aborting: &["rocblas_abort"],
        modes: &[("", &[])],
    },
];

const CUDA_HEADERS: &[(u32, u32)] = &[(11, 8), (12, 9), (13, 5)];
/// The last and first of each major, and one between: some functions are added within a major.
const CUDA_LIBRARIES: &[(u32, u32)] = &[(11, 8), (12, 0), (12, 4), (12, 9), (13, 0), (13, 5)];
/// Before and after each change.
const CUFFT_HEADERS: &[(u32, u32)] = &[(11, 7), (11, 8), (12, 0), (12, 2), (12, 9), (13, 5)];
const CUFFT_LIBRARIES: &[(u32, u32)] = &[(11, 7), (11, 8), (12, 0), (12, 3), (12, 9), (13, 0)];
const CUFILE_HEADERS: &[(u32, u32)] = &[(1, 11), (1, 18), (1, 19), (1, 20)];
const CUSPARSE_HEADERS: &[(u32, u32)] = &[(11, 8), (13, 1), (13, 5)];
const CUSPARSE_LIBRARIES: &[(u32, u32)] = &[(11, 8), (12, 9), (13, 0), (13, 2), (13, 3), (13, 5)];
const NVML_VERSIONS: &[(u32, u32)] = &[(11, 8), (12, 2), (12, 9), (13, 5)];
const HIP_VERSIONS: &[(u32, u32)] = &[(5, 2), (5, 7), (6, 4), (7, 2)];
const HIPSPARSE_VERSIONS: &[(u32, u32)] = &[(5, 3), (5, 7), (6, 4), (7, 2)];
const ROCM_VERSIONS: &[(u32, u32)] = &[(5, 5), (6, 4), (7, 2)];

/// Functions of which only the name differs between versions, of the many.
const RENAMED: [&str; 3] = ["hipblasCaxpy", "hipblasCaxpy_64", "hipblasZgemm"];

const CUDA_MODES: &[(&str, &[&str])] = &[
    ("", &[]),
    ("-per-thread", &["CUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

/// `cargo xtask abi-programs`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (directory, arguments) = match arguments {
        [directory, arguments @ ..] if !directory.starts_with("--") => (directory, arguments),
        _ => return Err("usage: cargo xtask abi-programs DIR [--all]".into()),
    };
    let (flags, arguments): (Vec<_>, Vec<_>) = arguments
        .iter()
        .cloned()
        .partition(|argument| argument == "--all");
    let options = Options::parse("abi-programs", &arguments)?;
    if options.check {
        return Err("`abi-programs` has no `--check`".into());
    }
    for id in &options.only {
        if !PROGRAMS.iter().any(|programs| programs.id == id) {
            return Err(format!("unknown library `{id}` for `abi-programs`"));
        }
    }
    for programs in PROGRAMS {
        if options.wants(programs.id) {
            let directory = Path::new(directory).join(programs.id);
            programs.write(&directory, &options.components, !flags.is_empty())?;
        }
    }
    Ok(true)
}

/// The headers that the callers of one mode are compiled with.
struct Mode {
    /// End of the callers' names.
    suffix: &'static str,
    /// Declarations with the macros of the mode.
    versions: BTreeMap<Version, headers::Declarations>,
    /// Functions in no ABI table, one for each calling shape.
    sample: BTreeSet<String>,
}

impl Programs {
    fn recipe(&self) -> Result<&'static AbiRecipe, String> {
        recipes::recipe(self.id)
    }

    fn library(&self) -> Result<&'static Library, String> {
        Library::builtin(self.id).ok_or_else(|| format!("{} is no library", self.id))
    }

    /// Versions of the headers, and of the libraries.
    fn versions(&self, all: bool) -> Result<(BTreeSet<Version>, BTreeSet<Version>), String> {
        if all {
            let versions: BTreeSet<_> = self.recipe()?.versions.iter().copied().collect();
            return Ok((versions.clone(), versions));
        }
        Ok((versions(self.headers), versions(self.libraries)))
    }

    /// Writes the fake libraries and their callers into a directory.
    fn write(&self, directory: &Path, components: &Path, all: bool) -> Result<(), String> {
        let recipe = self.recipe()?;
        let library = self.library()?;
        let (header_versions, library_versions) = self.versions(all)?;
        let mut evidence = recipe.evidence(components, |version| {
            header_versions.contains(&version) || library_versions.contains(&version)
        })?;
        let groups = groups_in_table(library, recipe.history(&evidence)?.table.groups);
        // After the history, which contains only real functions.
        let made_up = sample::made_up()?;
        for version in &mut evidence {
            version.headers.functions.extend(made_up.clone());
            if let Some(exports) = &mut version.exports {
                exports.extend(made_up.keys().cloned());
            }
        }
        let mut modes = self.read_modes(components, &header_versions, &made_up)?;
        for mode in &mut modes {
            mode.sample = sample::sample(mode.versions.values(), |name| {
                self.may_be_sampled(name, library, &groups, &evidence)
            });
        }
        let families = self.families(&groups, &modes, &evidence);
        let mut files = vec![
            ("common.h".to_owned(), COMMON.to_owned()),
            ("fake.h".to_owned(), FAKE.to_owned()),
            ("caller.h".to_owned(), CALLER.to_owned()),
            ("shapes.h".to_owned(), sample::MADE_UP.to_owned()),
        ];
        for (index, version) in evidence.iter().enumerate() {
            if library_versions.contains(&version.version) {
                let functions = families.functions(index);
                files.extend(self.fake_library(components, version, &functions)?);
            }
        }
        for version in &header_versions {
            files.extend(self.callers(components, *version, &modes, &families)?);
        }
        create_files(directory, files)
    }

    /// Reads the headers with the macros of each mode. The samples are empty.
    fn read_modes(
        &self,
        components: &Path,
        versions: &BTreeSet<Version>,
        made_up: &BTreeMap<String, DeclaredFunction>,
    ) -> Result<Vec<Mode>, String> {
        let recipe = self.recipe()?;
        let mut modes = Vec::new();
        for (suffix, mode_macros) in self.modes {
            let headers = recipe.headers()?;
            let headers = Headers {
                defines: vec![macros(headers, mode_macros)],
                ..headers.clone()
            };
            let mut mode = Mode {
                suffix,
                versions: BTreeMap::new(),
                sample: BTreeSet::new(),
            };
            for version in versions {
                let includes = recipe.includes(components, *version)?;
                let mut declared = recipe.declared(&headers, &includes)?;
                declared.functions.extend(made_up.clone());
                mode.versions.insert(*version, declared);
            }
            modes.push(mode);
        }
        Ok(modes)
    }

    /// Whether a function may represent its calling shape: it is in all versions and in no ABI table.
    fn may_be_sampled(
        &self,
        name: &str,
        library: &Library,
        groups: &[BTreeSet<String>],
        evidence: &[Evidence],
    ) -> bool {
        let query = library.version_query.as_ref();
        let is_helper = query.is_some_and(|query| query.function == name)
            || self.helpers.contains(&name)
            || self.aborting.contains(&name);
        let is_in_table = groups.iter().any(|names| names.contains(name));
        !is_helper
            && !is_in_table
            && declarations(name, evidence)
                .is_some_and(|declarations| declarations.iter().all(Option::is_some))
    }

    fn families(
        &self,
        groups: &[BTreeSet<String>],
        modes: &[Mode],
        evidence: &[Evidence],
    ) -> Families {
        let mut families = Families {
            in_table: Vec::new(),
            sampled: BTreeMap::new(),
            called: Vec::new(),
        };
        for names in groups {
            families.in_table.push(Family::new(names, evidence, true));
        }
        for name in self.called {
            let names = BTreeSet::from([(*name).to_owned()]);
            families.called.push(Family::new(&names, evidence, true));
        }
        for name in modes.iter().flat_map(|mode| &mode.sample) {
            let family = Family::new(&BTreeSet::from([name.clone()]), evidence, false);
            families.sampled.insert(name.clone(), family);
        }
        families
    }

    /// Names and texts of a fake library's files.
    fn fake_library(
        &self,
        components: &Path,
        evidence: &Evidence,
        functions: &[Function],
    ) -> Result<[(String, String); 2], String> {
        let recipe = self.recipe()?;
        let query = self.library()?.version_query.as_ref();
        let version = evidence.version;
        let mut names: Vec<&str> = Vec::new();
        for function in functions {
            names.push(&function.name);
        }
        names.extend(query.map(|query| query.function.as_str()));
        names.extend(self.helpers);
        let nodes = nodes(recipe, components, version)?;
        let script = text::nodes(
            names
                .iter()
                .map(|name| (*name, nodes.get(*name).map(String::as_str))),
        );
        let own_version = evidence.own_version.as_deref();
        let fake = Fake {
            id: self.id,
            version,
            own_version: own_version.or_else(|| recipe.driver(version)),
            query,
            functions,
        };
        Ok([
            (format!("fake-{version}.map"), script),
            (format!("fake-{version}.c"), text::fake(&fake)),
        ])
    }

    /// Names and texts of the callers that are compiled with the headers of a version.
    fn callers(
        &self,
        components: &Path,
        version: Version,
        modes: &[Mode],
        families: &Families,
    ) -> Result<Vec<(String, String)>, String> {
        let recipe = self.recipe()?;
        let include = recipe.include(components, version)?;
        let mut headers = Vec::new();
        for header in recipe.headers()?.include.iter().flatten() {
            if include.join(header).exists() || Path::new(STAND_INS).join(header).exists() {
                headers.push(header.as_str());
            }
        }
        let mut files = Vec::new();
        for mode in modes {
            let sampled = mode.sample.iter().map(|name| &families.sampled[name]);
            let calls: Vec<Function> = families
                .in_table
                .iter()
                .chain(sampled)
                .flat_map(|family| family.calls(&mode.versions[&version]))
                .collect();
            let name = format!("caller-{version}{}.c", mode.suffix);
            files.push((name, text::caller(version, &headers, &calls)));
        }
        Ok(files)
    }
}

fn versions(numbers: &[(u32, u32)]) -> BTreeSet<Version> {
    numbers
        .iter()
        .map(|(major, minor)| Version::new(*major, *minor))
        .collect()
}

/// Names of each group that the shipped table has, which also has changes between versions that are not here.
fn groups_in_table(library: &Library, groups: Vec<Group>) -> Vec<BTreeSet<String>> {
    let mut listed: BTreeSet<&str> = library.abi.names().collect();
    listed.extend(RENAMED);
    groups
        .into_iter()
        .map(|group| group.names.into_keys().collect())
        .filter(|names: &BTreeSet<String>| names.iter().any(|name| listed.contains(name.as_str())))
        .collect()
}

fn create_files(directory: &Path, files: Vec<(String, String)>) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|e| format!("`{}`: {e}", directory.display()))?;
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::write(&path, text).map_err(|e| format!("`{}`: {e}", path.display()))?;
    }
    Ok(())
}

/// Macros of every program, and those of a mode.
fn macros(headers: &Headers, mode: &[&str]) -> Vec<String> {
    let mut macros = headers.defines.first().cloned().unwrap_or_default();
    macros.extend(mode.iter().map(|name| (*name).to_owned()));
    macros
}

const COMMON: &str = include_str!("../../programs/common.h");
const FAKE: &str = include_str!("../../programs/fake.h");
const CALLER: &str = include_str!("../../programs/caller.h");

/// The symbol versions in which the real library beside the headers has its functions.
fn nodes(
    recipe: &AbiRecipe,
    components: &Path,
    version: Version,
) -> Result<BTreeMap<String, String>, String> {
    let mut nodes = BTreeMap::new();
    for library in &recipe.row.exports {
        let list = read_exports(&find(&recipe.directory(components, version), library)?)?;
        for symbol in list.functions().filter(|symbol| !symbol.compat) {
            if let Some(node) = &symbol.version {
                nodes.insert(symbol.name.clone(), node.clone());
            }
        }
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests;
