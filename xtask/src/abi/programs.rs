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
mod sample;
mod shapes;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gpustub_cdecl::{self as headers, Declared, Headers};
use gpustub_core::library::Library;
use gpustub_core::version::Version;

use super::history::{Evidence, declarations, history};
use super::recipes::{RECIPES, Recipe, STAND_INS};
use super::table::Group;
use crate::manifests::read;
use crate::recipes::find;
use arguments::{Differences, Returned};
use text::Function;

/// The fake libraries and callers of one library.
struct Programs {
    id: &'static str,
    /// Versions of the libraries, and of the headers that callers are compiled with.
    versions: &'static [(u32, u32)],
    /// Macros of the callers, by the ends of their names.
    modes: &'static [(&'static str, &'static [&'static str])],
}

const PROGRAMS: &[Programs] = &[
    Programs {
        id: "cuda",
        versions: &[(11, 8), (12, 9), (13, 5)],
        modes: CUDA_MODES,
    },
    Programs {
        id: "cudart",
        versions: &[(11, 8), (12, 9), (13, 5)],
        modes: CUDA_MODES,
    },
    Programs {
        id: "hip",
        versions: &[(5, 2), (5, 7), (6, 4), (7, 2)],
        modes: &[
            ("", &[]),
            ("-per-thread", &["HIP_API_PER_THREAD_DEFAULT_STREAM"]),
        ],
    },
];

const CUDA_MODES: &[(&str, &[&str])] = &[
    ("", &[]),
    ("-per-thread", &["CUDA_API_PER_THREAD_DEFAULT_STREAM"]),
];

/// `cargo xtask abi-programs`.
pub fn run(arguments: &[String]) -> Result<bool, String> {
    let (directory, rest) = match arguments {
        [directory, rest @ ..] if !directory.starts_with("--") => (directory, rest),
        _ => return Err("usage: cargo xtask abi-programs DIR".into()),
    };
    let options = crate::recipes::Options::parse("abi-programs", rest)?;
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
            programs.write(&directory, &options.components)?;
        }
    }
    Ok(true)
}

impl Programs {
    fn recipe(&self) -> Result<&'static Recipe, String> {
        let recipe = RECIPES.iter().find(|recipe| recipe.id == self.id);
        recipe.ok_or_else(|| format!("{} has no recipe", self.id))
    }

    fn versions(&self) -> impl Iterator<Item = Version> + use<> {
        let versions = self.versions.iter();
        versions.map(|(major, minor)| Version::new(*major, *minor))
    }

    /// Writes the fake libraries and their callers into a directory.
    fn write(&self, directory: &Path, components: &Path) -> Result<(), String> {
        let recipe = self.recipe()?;
        let library = Library::builtin(self.id);
        let library = library.ok_or_else(|| format!("{} is no library", self.id))?;
        let query = library.version_query.as_ref();
        let query = query.ok_or_else(|| format!("{} has no `version-query`", self.id))?;
        let wanted = |version| self.versions().any(|of| of == version);
        let mut evidence = recipe.evidence(components, wanted)?;
        let groups = history(&evidence, &recipe.reviewed)?.table.groups;
        // The table also has changes between versions that are not here.
        let is_in_table =
            |group: &&Group| group.names.keys().any(|name| library.abi.contains(name));
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
            let known = declarations(name, &evidence, &recipe.reviewed);
            let is_everywhere = known.is_some_and(|known| known.iter().all(Option::is_some));
            !is_in_table && is_everywhere && *name != query.function
        };
        let mut callers = Vec::new();
        let all = recipe.headers()?;
        for (end, mode) in self.modes {
            let mut reads = Vec::new();
            for Evidence { version, .. } in &evidence {
                let include = recipe.include(components, *version)?;
                let headers_in_mode = Headers {
                    defines: vec![macros(all, mode)],
                    ..all.clone()
                };
                let mut read = recipe.declared(&headers_in_mode, &include)?;
                read.functions.extend(made_up.clone());
                reads.push(read);
            }
            let sampled = sample::sample(&reads, is_unchanged);
            callers.push((end, reads, sampled));
        }
        let family = |names: &BTreeSet<String>| Family::new(names, &evidence, recipe);
        let in_table: Vec<Family> = in_table.iter().map(family).collect();
        let sampled = callers.iter().flat_map(|(_, _, sampled)| sampled);
        let unchanged: BTreeMap<&String, Family> = sampled
            .map(|name| (name, family(&BTreeSet::from([name.clone()]))))
            .collect();
        let mut files = vec![
            ("fake.h".to_owned(), FAKE.to_owned()),
            ("caller.h".to_owned(), CALLER.to_owned()),
            ("shapes.h".to_owned(), sample::MADE_UP.to_owned()),
        ];
        for (index, Evidence { version, .. }) in evidence.iter().enumerate() {
            let functions: Vec<Function> = in_table
                .iter()
                .chain(unchanged.values())
                .flat_map(|family| family.functions(index))
                .collect();
            let nodes = nodes(recipe, components, *version)?;
            let nodes = functions
                .iter()
                .map(|function| &function.name)
                .chain([&query.function])
                .map(|name| (name.as_str(), nodes.get(name).map(String::as_str)));
            files.push((format!("fake-{version}.map"), text::nodes(nodes)));
            let fake = text::fake(*version, query, &functions);
            files.push((format!("fake-{version}.c"), fake));
            let include = recipe.include(components, *version)?;
            let headers = all.include.iter().flatten().map(String::as_str);
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
                    .flat_map(|family| family.calls(&reads[index]))
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

const FAKE: &str = include_str!("../../programs/fake.h");
const CALLER: &str = include_str!("../../programs/caller.h");

/// Functions that may be bound in place of each other.
struct Family {
    /// Declarations of each name by version.
    names: BTreeMap<String, Vec<Option<Declared>>>,
    /// Differences that bytes do not show.
    differences: Differences,
}

impl Family {
    fn new(names: &BTreeSet<String>, evidence: &[Evidence], recipe: &Recipe) -> Self {
        let known = |name: &str| declarations(name, evidence, &recipe.reviewed);
        let names: BTreeMap<_, _> = names
            .iter()
            .filter_map(|name| known(name).map(|known| (name.clone(), known)))
            .collect();
        let all: Vec<_> = names.values().flatten().flatten().cloned().collect();
        let differences = Differences::new(&all);
        Self { names, differences }
    }

    fn function(&self, source: &str, name: &str, declared: &Declared) -> Function {
        Function {
            source: source.to_owned(),
            name: name.to_owned(),
            arguments: self.differences.arguments(declared),
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
    for library in recipe.libraries {
        let list = read(&find(&recipe.directory(components, version), library)?)?;
        let named = list.functions().filter(|symbol| !symbol.compat);
        nodes.extend(
            named.filter_map(|symbol| Some((symbol.name.clone(), symbol.version.clone()?))),
        );
    }
    Ok(nodes)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::process::Command;

    use super::super::table::{AbiTable, AbiVariant};
    use super::super::tests::{components, shipped};
    use super::*;

    /// Runs a command that must succeed.
    fn output(command: &mut Command) -> String {
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command:?}\n{errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    #[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
    fn callers_and_fake_libraries_agree_just_where_the_abi_tables_say_so() {
        for id in ["cuda", "cudart"] {
            let agreed = agreed(id);
            assert!(agreed > 300, "{agreed} calls of {id} were understood");
        }
    }

    #[test]
    #[ignore = "needs packages of suites that change (tests/run --all)"]
    fn heavy_callers_and_fake_libraries_of_hip_agree_just_where_the_abi_tables_say_so() {
        assert!(agreed("hip") > 100);
    }

    /// Number of calls of functions of the ABI table that were understood, without stubs. All other calls
    /// must be.
    fn agreed(id: &str) -> usize {
        let components = components();
        let programs = PROGRAMS.iter().find(|programs| programs.id == id).unwrap();
        let recipe = programs.recipe().unwrap();
        let table = AbiTable::parse(&shipped(recipe)).unwrap();
        let directory =
            std::env::temp_dir().join(format!("gpustub-abi-{id}-{}", std::process::id()));
        programs.write(&directory, &components).unwrap();
        let cc = || {
            let mut cc = Command::new("cc");
            cc.current_dir(&directory)
                .args(["-O1", "-Wall", "-Wextra", "-Werror"]);
            cc
        };
        for version in programs.versions() {
            let mut library = cc();
            library.args(["-shared", "-fPIC", "-o", &format!("fake-{version}.so")]);
            library.arg(format!("-Wl,--version-script=fake-{version}.map"));
            output(library.arg(format!("fake-{version}.c")));
            for (end, mode) in programs.modes {
                let mut caller = cc();
                caller
                    .args(["-Wno-deprecated-declarations", "-DWEAK"])
                    .args(
                        macros(recipe.headers().unwrap(), mode)
                            .iter()
                            .map(|m| format!("-D{m}")),
                    );
                caller.args(["-isystem", STAND_INS, "-isystem"]);
                caller.arg(recipe.include(&components, version).unwrap());
                caller.args(["-o", &format!("caller-{version}{end}")]);
                output(caller.arg(format!("caller-{version}{end}.c")));
            }
        }
        let (mut agreed, mut wrong) = (0, Vec::new());
        // Sets of shapes of the calls that all versions must understand, by mode.
        let mut shapes: BTreeMap<&str, BTreeSet<BTreeSet<String>>> = BTreeMap::new();
        let versions: Vec<Version> = programs.versions().collect();
        for (of, library) in versions
            .iter()
            .flat_map(|of| versions.iter().map(|library| (*of, *library)))
        {
            for (end, _) in programs.modes {
                let log = directory.join("log");
                std::fs::write(&log, "").unwrap();
                let printed = output(
                    Command::new(directory.join(format!("caller-{of}{end}")))
                        .env("LD_PRELOAD", directory.join(format!("fake-{library}.so")))
                        .env("GPUSTUB_TEST_FAKE_LOG", &log),
                );
                let seen = std::fs::read_to_string(&log).unwrap();
                let seen: BTreeSet<&str> = seen.lines().collect();
                let mut called = BTreeSet::new();
                for call in printed.split("call ").skip(1) {
                    let (names, rest) = call.split_once('\n').unwrap();
                    let name = names.split(' ').nth(1).unwrap();
                    let is_understood = rest.strip_prefix("passed ").is_some_and(|rest| {
                        let (passed, result) = rest.split_once('\n').unwrap();
                        seen.contains(passed) && result == "result 0 filled\n"
                    });
                    let mut groups = table.groups.iter();
                    let group = groups.find(|group| group.names.contains_key(name));
                    let Some(group) = group else {
                        called.insert(names.split(' ').next_back().unwrap().to_owned());
                        if !is_understood {
                            wrong.push(format!("{name}, {of}{end} on {library}: {rest}"));
                        }
                        continue;
                    };
                    // HIP 5.2 declares two functions that it does not export yet: no program with calls
                    // of them was ever linked.
                    if group.variant(name, of) == AbiVariant::Missing {
                        continue;
                    }
                    let is_same = group.variant(name, of) == group.variant(name, library);
                    agreed += usize::from(is_same);
                    // Types do not show the result of a library-bound function.
                    if is_same != is_understood && !recipe.reviewed.is_library_bound(name) {
                        wrong.push(format!("{name}, {of}{end} on {library}: {rest}"));
                    }
                }
                shapes.entry(end).or_default().insert(called);
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for (end, of_pairs) in shapes {
            // No pair has fewer than another.
            let first = of_pairs.first().unwrap();
            assert!(
                of_pairs.len() == 1 && first.len() > 25,
                "{id}{end}: {of_pairs:#?}"
            );
        }
        agreed
    }
}
