//! Compares the shipped headers with the C compiler's view of the real ones.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::version::Version;

use super::data::{self, Struct};
use super::{header, layout, path, recipe};
use crate::abi::recipes::{AbiRecipe, STAND_INS};
use crate::abi::tests::components;
use crate::manifests::diff;

/// Fields of the type hipMemoryType, whose enumerators have other numbers from 6.0 on.
const RENUMBERED: &[(&str, &str)] = &[
    ("hipPointerAttribute_t", "type"),
    ("hip_Memcpy2D", "srcMemoryType"),
    ("hip_Memcpy2D", "dstMemoryType"),
    ("HIP_MEMCPY3D", "srcMemoryType"),
    ("HIP_MEMCPY3D", "dstMemoryType"),
];

const COPY: &str = "\
#include <string.h>
#define COPY(a, b, size) memcpy((char *)to + (a), (const char *)from + (b), (size))
";

/// A shipped header.
#[derive(Default)]
struct Shipped {
    /// Name of the layout of each tag in each version.
    layouts: BTreeMap<(String, Version), String>,
    /// Value of each constant.
    constants: BTreeMap<String, u64>,
    /// Bytes that each function copies, as offsets in `to` and in `from`.
    copies: BTreeMap<String, BTreeSet<(u64, u64)>>,
}

impl Shipped {
    fn read(id: &str) -> Self {
        let text = std::fs::read_to_string(path(id)).unwrap();
        let mut shipped = Self::default();
        for comment in text.split("/* ").skip(1) {
            let (comment, code) = comment.split_once(" */").unwrap();
            let comment = comment.replace("\n *", "");
            if code.starts_with("\nenum {") {
                let (name, tags) = comment.trim_end_matches('.').split_once(": ").unwrap();
                for tag in tags.split("; ") {
                    let (tag, versions) = tag.split_once(" in ").unwrap();
                    for version in versions.split(", ") {
                        let key = (tag.to_owned(), Version::parse(version).unwrap());
                        let previous = shipped.layouts.insert(key, name.to_owned());
                        assert_eq!(previous, None, "{tag} {version}");
                    }
                }
            }
            let mut function = None;
            for line in code.lines() {
                if let Some((name, value)) = line.trim().split_once(" = ") {
                    let value = value.trim_end_matches(',').parse().unwrap();
                    shipped.constants.insert(name.to_owned(), value);
                } else if let Some(rest) = line.strip_prefix("static inline void ") {
                    function = rest.split('(').next();
                } else if let Some(run) = line.trim().strip_prefix("COPY(") {
                    let numbers: Vec<u64> = run
                        .trim_end_matches(");")
                        .split(", ")
                        .map(|number| number.parse().unwrap())
                        .collect();
                    let [to, from, size] = numbers[..] else {
                        panic!("{line}");
                    };
                    let function = function.unwrap().to_owned();
                    let bytes = shipped.copies.entry(function).or_default();
                    bytes.extend((0..size).map(|byte| (to + byte, from + byte)));
                }
            }
        }
        shipped
    }
}

/// Offset and size of a field in one version, in bytes.
#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    size: u64,
}

/// A struct in one version, as the C compiler lays it out.
struct CompiledStruct {
    name: String,
    layout: String,
    /// Fields that are not reserved, by path; renamed ones have the newer path.
    fields: BTreeMap<String, Extent>,
}

/// Reads the structs from the headers of a version, as the C compiler lays them out. Asserts that the
/// constants are right, and returns the names of those that were compared.
fn compile(
    id: &str,
    version: Version,
    structs: &[Struct],
    shipped: &Shipped,
    scratch: &Path,
) -> (Vec<CompiledStruct>, BTreeSet<String>) {
    let recipe = recipe(id).unwrap();
    let include = recipe.include(&components(), version).unwrap();
    let samples = layout::read(recipe, version, &include, structs).unwrap();
    let (mut asserts, mut prints) = (String::new(), String::new());
    let (mut compiled, mut compared) = (Vec::new(), BTreeSet::new());
    // Fields whose extents the program prints, in this order.
    let mut printed = Vec::new();
    for (row, sample) in (structs.iter().zip(&samples))
        .flat_map(|(row, samples)| samples.iter().map(move |sample| (row, sample)))
    {
        let tag = &sample.tag;
        let layout = shipped.layouts[&(tag.clone(), version)].clone();
        let mut assert = |constant: String, expression: &str| {
            asserts += &format!("_Static_assert({expression} == {constant}, \"{constant}\");\n");
            compared.insert(constant);
        };
        assert(format!("{layout}_size"), &format!("sizeof(struct {tag})"));
        let mut fields = BTreeMap::new();
        for leaf in sample.leaves().unwrap() {
            if leaf.is_reserved() {
                continue;
            }
            let path = &leaf.path;
            let newer = row.renamed.get(path).unwrap_or(path).clone();
            let bits = leaf.offset % 8 + leaf.size;
            let extent = Extent {
                offset: leaf.offset / 8,
                size: bits.div_ceil(8),
            };
            let offset = format!("offsetof(struct {tag}, {path})");
            // A bit-field has no address.
            if leaf.offset % 8 == 0 && leaf.size % 8 == 0 {
                prints += &format!(
                    "    printf(\"%zu %zu\\n\", {offset}, sizeof(((struct {tag} *)0)->{path}));\n"
                );
                printed.push((compiled.len(), newer.clone()));
            }
            let constant = format!("{layout}_{}", newer.replace('.', "_"));
            // `_size` is the size of the struct.
            if newer != "size" && shipped.constants.contains_key(&constant) {
                assert(constant, &offset);
            }
            fields.insert(newer, extent);
        }
        compiled.push(CompiledStruct {
            name: row.name.clone(),
            layout,
            fields,
        });
    }
    // Some headers have macros of these names.
    let undefine: String = (samples.iter().flatten())
        .map(|sample| format!("#undef {}\n", sample.tag))
        .collect();
    let source = format!(
        "#include <stddef.h>\n#include <stdio.h>\n#include <{}>\n{undefine}{COPY}#include \"{}\"\n\
         {asserts}int main(void)\n{{\n{prints}    return 0;\n}}\n",
        &recipe.row.header,
        path(id).display(),
    );
    let output = run(recipe, version, &include, &source, scratch);
    assert_eq!(output.lines().count(), printed.len());
    for ((index, path), line) in printed.into_iter().zip(output.lines()) {
        let (offset, size) = line.split_once(' ').unwrap();
        let extent = Extent {
            offset: offset.parse().unwrap(),
            size: size.parse().unwrap(),
        };
        compiled[index].fields.insert(path, extent);
    }
    (compiled, compared)
}

/// Output of a program compiled with real headers.
fn run(
    recipe: &AbiRecipe,
    version: Version,
    include: &Path,
    source: &str,
    scratch: &Path,
) -> String {
    let program = scratch.join(format!("{}-{version}", recipe.id));
    let file = scratch.join(format!("{}-{version}.c", recipe.id));
    std::fs::write(&file, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-o"]);
    cc.arg(&program).arg(&file);
    cc.args(["-isystem", STAND_INS, "-isystem"]).arg(include);
    for define in recipe.headers().unwrap().defines.iter().take(1).flatten() {
        cc.arg(format!("-D{define}"));
    }
    output(&mut cc);
    output(&mut Command::new(&program))
}

/// Creates a directory for the programs of a test.
fn scratch(test: &str) -> PathBuf {
    let name = format!("gpustub-layouts-{test}-{}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// Output of a command that must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// Bytes that a copy between two versions should move, as offsets in `to` and in `from`.
fn expected(from: &CompiledStruct, to: &CompiledStruct) -> BTreeSet<(u64, u64)> {
    let mut bytes = BTreeSet::new();
    for (path, extent) in &to.fields {
        let Some(source) = from.fields.get(path) else {
            continue;
        };
        if source.size == extent.size && !RENUMBERED.contains(&(&to.name, path)) {
            bytes.extend((0..extent.size).map(|byte| (extent.offset + byte, source.offset + byte)));
        }
    }
    bytes
}

/// Numbers of constants or functions.
struct Numbers {
    compared: usize,
    /// In the file, of the layouts that the compared versions have.
    at_hand: usize,
    /// In the file.
    shipped: usize,
}

/// Compares constants and copies with the headers of the versions that `accepts` returns true for.
fn compare(id: &str, accepts: impl Fn(Version) -> bool, scratch: &Path) -> [Numbers; 2] {
    let shipped = Shipped::read(id);
    let structs = &data::read().unwrap()[id];
    let (mut compiled, mut constants) = (Vec::new(), BTreeSet::new());
    for &version in &recipe(id).unwrap().versions {
        if accepts(version) {
            let (structs, compared) = compile(id, version, structs, &shipped, scratch);
            compiled.extend(structs);
            constants.extend(compared);
        }
    }
    let mut copies: BTreeMap<String, BTreeSet<(u64, u64)>> = BTreeMap::new();
    for from in &compiled {
        for to in &compiled {
            if from.name == to.name && from.layout != to.layout {
                let mark = &to.layout[to.name.len()..];
                let function = format!("copy_{}_to{mark}", from.layout);
                let bytes = copies.entry(function).or_default();
                bytes.extend(expected(from, to));
            }
        }
    }
    for (function, expected) in &copies {
        assert_eq!(shipped.copies.get(function), Some(expected), "{function}");
    }
    let prefixes: BTreeSet<_> = compiled.iter().map(|s| format!("{}_", s.layout)).collect();
    let constants_at_hand = shipped
        .constants
        .keys()
        .filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)))
        .count();
    [
        Numbers {
            compared: constants.len(),
            at_hand: constants_at_hand,
            shipped: shipped.constants.len(),
        },
        Numbers {
            compared: copies.len(),
            at_hand: copies.len(),
            shipped: shipped.copies.len(),
        },
    ]
}

#[test]
fn shipped_headers_compile_without_warnings() {
    let mut source = COPY.to_owned();
    for id in data::read().unwrap().keys() {
        source += &format!("#include \"{}\"\n", path(id).display());
    }
    let scratch = scratch("warnings");
    let file = scratch.join("all.c");
    std::fs::write(&file, source).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]);
    output(cc.arg("-fsyntax-only").arg(&file));
    std::fs::remove_dir_all(scratch).unwrap();
}

#[test]
#[ignore = "needs the real packages: GPUSTUB_TEST_COMPONENTS names their directory (tests/run)"]
fn shipped_layouts_agree_with_the_headers_at_hand() {
    let scratch = scratch("at-hand");
    for id in ["cuda", "cudart"] {
        let versions = &recipe(id).unwrap().at_hand;
        for Numbers {
            compared, at_hand, ..
        } in compare(id, |version| versions.contains(&version), &scratch)
        {
            assert!(
                compared > 0 && compared == at_hand,
                "{id}: {compared} of {at_hand}"
            );
        }
    }
    std::fs::remove_dir_all(scratch).unwrap();
}

#[test]
#[ignore = "needs the headers of all versions: GPUSTUB_TEST_COMPONENTS (tests/run --all)"]
fn heavy_shipped_layouts_are_those_of_all_headers() {
    let scratch = scratch("all");
    for (id, structs) in data::read().unwrap() {
        let text = header(&id, &structs, &components()).unwrap();
        let shipped = std::fs::read_to_string(path(&id)).unwrap();
        let changes = diff::lines(&shipped, &text);
        assert!(
            changes.is_empty(),
            "`cargo xtask adapters` changes {id}.h:\n{changes}"
        );
        for Numbers {
            compared, shipped, ..
        } in compare(&id, |_| true, &scratch)
        {
            assert!(
                compared > 0 && compared == shipped,
                "{id}: {compared} of {shipped}"
            );
        }
    }
    std::fs::remove_dir_all(scratch).unwrap();
}
