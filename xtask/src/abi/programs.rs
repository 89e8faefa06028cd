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
mod fields;
mod sample;
mod shapes;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_cdecl::{self as headers, Declared, Headers};
use gpustub_core::library::Library;
use gpustub_core::version::Version;

use super::history::{Evidence, declarations};
use super::recipes::{self, Recipe, STAND_INS};
use super::table::Group;
use crate::manifests::read;
use crate::recipes::find;
use arguments::{Differences, Returned};
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
            "cudaGetDriverEntryPointByVersion",
            "cudaGetDriverEntryPointByVersion_ptsz",
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
    let (directory, rest) = match arguments {
        [directory, rest @ ..] if !directory.starts_with("--") => (directory, rest),
        _ => return Err("usage: cargo xtask abi-programs DIR [--all]".into()),
    };
    let (all, rest): (Vec<_>, Vec<_>) = rest.iter().cloned().partition(|word| word == "--all");
    let all = !all.is_empty();
    let options = crate::recipes::Options::parse("abi-programs", &rest)?;
    if options.check {
        return Err("`abi-programs` has no `--check`".into());
    }
    for id in &options.only {
        if !PROGRAMS.iter().any(|programs| programs.id == id) {
            return Err(format!("unknown library `{id}` for `abi-programs`"));
        }
    }
    for programs in PROGRAMS {
        if options.only.is_empty() || options.only.iter().any(|id| programs.id == id) {
            let directory = Path::new(directory).join(programs.id);
            programs.write(&directory, &options.components, all)?;
        }
    }
    Ok(true)
}

impl Programs {
    fn recipe(&self) -> Result<&'static Recipe, String> {
        recipes::recipe(self.id)
    }

    /// Versions of the headers, and of the libraries.
    fn versions(&self, all: bool) -> Result<(BTreeSet<Version>, BTreeSet<Version>), String> {
        let of = |versions: &[(u32, u32)]| -> BTreeSet<Version> {
            let versions = versions.iter();
            versions
                .map(|(major, minor)| Version::new(*major, *minor))
                .collect()
        };
        let known: BTreeSet<Version> = self.recipe()?.versions.iter().copied().collect();
        Ok(if all {
            (known.clone(), known)
        } else {
            (of(self.headers), of(self.libraries))
        })
    }

    /// Writes the fake libraries and their callers into a directory.
    fn write(&self, directory: &Path, components: &Path, all: bool) -> Result<(), String> {
        let recipe = self.recipe()?;
        let library = Library::builtin(self.id);
        let library = library.ok_or_else(|| format!("{} is no library", self.id))?;
        let query = library.version_query.as_ref();
        let (of_headers, of_libraries) = self.versions(all)?;
        let wanted = |version| of_headers.contains(&version) || of_libraries.contains(&version);
        let mut evidence = recipe.evidence(components, wanted)?;
        let groups = recipe.history(&evidence)?.table.groups;
        // The table also has changes between versions that are not here.
        let mut listed: BTreeSet<&str> = library.abi.names().collect();
        listed.extend(RENAMED);
        let is_in_table = |group: &&Group| {
            group
                .names
                .keys()
                .any(|name| listed.contains(name.as_str()))
        };
        let names = |group: &Group| group.names.keys().cloned().collect();
        let in_table: Vec<BTreeSet<String>> =
            groups.iter().filter(is_in_table).map(names).collect();
        // After the history, which contains only real functions.
        let made_up = sample::made_up()?;
        for version in &mut evidence {
            version.headers.functions.extend(made_up.clone());
            if let Some(exports) = &mut version.exports {
                exports.extend(made_up.keys().cloned());
            }
        }
        let is_unchanged = |name: &str| {
            let is_in_table = in_table.iter().any(|names| names.contains(name));
            let known = declarations(name, &evidence);
            let is_everywhere = known.is_some_and(|known| known.iter().all(Option::is_some));
            let is_query = query.is_some_and(|query| query.function == name);
            let is_helper = is_query || self.helpers.contains(&name);
            let aborts = self.aborting.contains(&name);
            !is_in_table && is_everywhere && !is_helper && !aborts
        };
        let mut callers = Vec::new();
        let all_headers = recipe.headers()?;
        for (end, mode) in self.modes {
            let mut reads = BTreeMap::new();
            for version in &of_headers {
                let includes = recipe.includes(components, *version)?;
                let headers_in_mode = Headers {
                    defines: vec![macros(all_headers, mode)],
                    ..all_headers.clone()
                };
                let mut read = recipe.declared(&headers_in_mode, &includes)?;
                read.functions.extend(made_up.clone());
                reads.insert(*version, read);
            }
            let sampled = sample::sample(reads.values(), is_unchanged);
            callers.push((end, reads, sampled));
        }
        let family = |names: &BTreeSet<String>| Family::new(names, &evidence);
        let with_fields = |names: &BTreeSet<String>| Family {
            has_fields: true,
            ..family(names)
        };
        let in_table: Vec<Family> = in_table.iter().map(with_fields).collect();
        let called = self.called.iter();
        let called: Vec<Family> = called
            .map(|name| with_fields(&BTreeSet::from([(*name).to_owned()])))
            .collect();
        let sampled = callers.iter().flat_map(|(_, _, sampled)| sampled);
        let unchanged: BTreeMap<&String, Family> = sampled
            .map(|name| (name, family(&BTreeSet::from([name.clone()]))))
            .collect();
        let mut files = vec![
            ("common.h".to_owned(), COMMON.to_owned()),
            ("fake.h".to_owned(), FAKE.to_owned()),
            ("caller.h".to_owned(), CALLER.to_owned()),
            ("shapes.h".to_owned(), sample::MADE_UP.to_owned()),
        ];
        for (index, Evidence { version, own, .. }) in evidence.iter().enumerate() {
            if !of_libraries.contains(version) {
                continue;
            }
            let functions: Vec<Function> = in_table
                .iter()
                .chain(unchanged.values())
                .chain(&called)
                .flat_map(|family| family.functions(index))
                .collect();
            let nodes = nodes(recipe, components, *version)?;
            let nodes = functions
                .iter()
                .map(|function| function.name.as_str())
                .chain(query.map(|query| query.function.as_str()))
                .chain(self.helpers.iter().copied())
                .map(|name| (name, nodes.get(name).map(String::as_str)));
            files.push((format!("fake-{version}.map"), text::nodes(nodes)));
            let fake = Fake {
                id: self.id,
                version: *version,
                own: own.as_deref().or_else(|| recipe.driver(*version)),
                query,
                functions: &functions,
            };
            files.push((format!("fake-{version}.c"), text::fake(&fake)));
        }
        for version in &of_headers {
            let include = recipe.include(components, *version)?;
            let headers = all_headers.include.iter().flatten().map(String::as_str);
            let headers: Vec<&str> = headers
                .filter(|header| {
                    include.join(header).exists() || Path::new(STAND_INS).join(header).exists()
                })
                .collect();
            for (end, reads, sampled) in &callers {
                let sampled = sampled.iter().map(|name| &unchanged[name]);
                let calls: Vec<Function> = in_table
                    .iter()
                    .chain(sampled)
                    .flat_map(|family| family.calls(&reads[version]))
                    .collect();
                let caller = text::caller(*version, &headers, &calls);
                files.push((format!("caller-{version}{end}.c"), caller));
            }
        }
        let failed = |path: &Path, e| format!("`{}`: {e}", path.display());
        std::fs::create_dir_all(directory).map_err(|e| failed(directory, e))?;
        for (name, text) in files {
            let path = directory.join(name);
            std::fs::write(&path, text).map_err(|e| failed(&path, e))?;
        }
        Ok(())
    }
}

/// Macros of every program, and those of a mode.
fn macros(headers: &Headers, mode: &[&str]) -> Vec<String> {
    let plain = headers.defines.first().into_iter().flatten().cloned();
    plain.chain(mode.iter().map(|m| (*m).to_owned())).collect()
}

const COMMON: &str = include_str!("../../programs/common.h");
const FAKE: &str = include_str!("../../programs/fake.h");
const CALLER: &str = include_str!("../../programs/caller.h");

/// Functions that may be bound in place of each other.
struct Family {
    /// Declarations of each name by version.
    names: BTreeMap<String, Vec<Option<Declared>>>,
    /// Differences that bytes do not show.
    differences: Differences,
    /// Whether callers and libraries know the fields of structs.
    has_fields: bool,
}

impl Family {
    fn new(names: &BTreeSet<String>, evidence: &[Evidence]) -> Self {
        let known = |name: &str| declarations(name, evidence);
        let names: BTreeMap<_, _> = names
            .iter()
            .filter_map(|name| known(name).map(|known| (name.clone(), known)))
            .collect();
        let all: Vec<_> = names.values().flatten().flatten().cloned().collect();
        let differences = Differences::new(&all);
        Self {
            names,
            differences,
            has_fields: false,
        }
    }

    fn function(&self, source: &str, name: &str, declared: &Declared) -> Function {
        Function {
            source: source.to_owned(),
            name: name.to_owned(),
            arguments: self.differences.arguments(declared),
            fields: if self.has_fields {
                self.differences.fields(declared)
            } else {
                Vec::new()
            },
            result: Returned::new(declared),
        }
    }

    /// Functions of a version's library.
    fn functions(&self, index: usize) -> impl Iterator<Item = Function> {
        let names = self.names.iter();
        names.filter_map(move |(name, known)| {
            let declared = known[index].as_ref()?;
            Some(self.function(name, name, declared))
        })
    }

    /// The calls of a program for one set of macros.
    fn calls(&self, read: &headers::Version) -> Vec<Function> {
        let names = self.names.keys();
        let declared = names.filter_map(|name| Some((name, read.functions.get(name)?)));
        let calls = declared.flat_map(|(name, declared)| {
            let sources = sample::sources(read, name).into_iter();
            sources.map(move |source| self.function(source, name, declared))
        });
        calls.collect()
    }
}

/// The symbol versions in which the real library beside the headers has its functions.
fn nodes(
    recipe: &Recipe,
    components: &Path,
    version: Version,
) -> Result<BTreeMap<String, String>, String> {
    let mut nodes = BTreeMap::new();
    for library in &recipe.row.exports {
        let list = read(&find(&recipe.directory(components, version), library)?)?;
        let named = list.functions().filter(|symbol| !symbol.compat);
        nodes.extend(
            named.filter_map(|symbol| Some((symbol.name.clone(), symbol.version.clone()?))),
        );
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests;
