//! `cos(float16)`, which is common to all families, resolves down to the `cos(float)` of the
//! family: OpenCL C, extracted member by member from a view and linked into one module.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_archive::{SuperArchive, View};
use gpustub_tests::Result;
use gpustub_tests::bitcode::{Layer, Splitter, libclc};
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;

use crate::naive::{build, compare};

/// As OpenCL C mangles them, the widest first.
const COS: [&str; 5] = [
    "_Z3cosDv16_f",
    "_Z3cosDv8_f",
    "_Z3cosDv4_f",
    "_Z3cosDv2_f",
    "_Z3cosf",
];

/// A weak symbol that clang adds to each module.
const ABI: &str = "__oclc_ABI_version";

const TARGET: &str = "--target=amdgcn--amdhsa";

/// Source of `cos` of a vector, by two of half its width.
fn halves(width: u32) -> String {
    let half = match width / 2 {
        1 => "float".to_owned(),
        half => format!("float{half}"),
    };
    format!(
        "{}{}#define OVER __attribute__((overloadable))\n\
         {half} OVER cos({half});\n\
         float{width} OVER cos(float{width} x) {{ return (float{width})(cos(x.lo), cos(x.hi)); }}\n",
        if width > 2 {
            vector_type(width / 2)
        } else {
            String::new()
        },
        vector_type(width)
    )
}

fn vector_type(width: u32) -> String {
    format!("typedef float float{width} __attribute__((ext_vector_type({width})));\n")
}

/// Source of a function of one number, with a constant that marks its layer and survives linking.
fn scalar(layer: &str, name: &str, expression: &str) -> String {
    format!(
        "static __constant const int of_{layer} __attribute__((used)) = 1;\n\
         float __attribute__((overloadable)) {name}(float x) {{ return {expression}; }}\n"
    )
}

fn compile(
    directory: &Path,
    layer: &str,
    cpu: Option<&str>,
    name: &str,
    source: &str,
) -> Result<()> {
    let directory = directory.join(layer);
    fs::create_dir_all(&directory)?;
    let file = directory.with_extension("cl");
    fs::write(&file, source)?;
    let mut clang = Command::new("clang-19");
    clang.args([
        "-x",
        "cl",
        "-cl-std=CL2.0",
        "-nogpulib",
        "-O1",
        "-emit-llvm",
        "-c",
        TARGET,
    ]);
    clang.args(cpu.map(|cpu| format!("-mcpu={cpu}")));
    succeed(
        clang
            .arg(&file)
            .arg("-o")
            .arg(directory.join(format!("{name}.bc"))),
    )?;
    Ok(())
}

/// Type and name of each symbol of a module, by LLVM.
fn symbols(file: &Path) -> Result<Vec<(char, String)>> {
    let ran = succeed(
        Command::new("llvm-nm-19")
            .args(["--format=posix"])
            .arg(file),
    )?;
    Ok(ran
        .stdout
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ');
            let name = words.next()?.to_owned();
            Some((words.next()?.chars().next()?, name))
        })
        .collect())
}

/// Files of all members that a symbol needs. The search begins at the top layer for each symbol.
fn closure(view: &View<'_>, symbol: &str, directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    fs::create_dir_all(directory)?;
    let (mut files, mut positions) = (BTreeMap::new(), BTreeSet::new());
    let mut undefined = VecDeque::from([symbol.to_owned()]);
    while let Some(symbol) = undefined.pop_front() {
        let member = view
            .find_symbol(symbol.as_bytes())
            .map_err(|e| e.to_string())?
            .ok_or_else(|| format!("undefined symbol {symbol}"))?;
        if !positions.insert(member.position()) {
            continue;
        }
        let file = directory.join(format!("{}.bc", member.position()));
        fs::write(&file, member.data().map_err(|e| e.to_string())?)?;
        for (kind, name) in symbols(&file)? {
            if kind == 'U' {
                undefined.push_back(name);
            }
        }
        files.insert(symbol, file);
    }
    Ok(files)
}

#[test]
#[ignore = "needs clang, libclc, llvm: ./tests/run"]
fn cos_of_float16_resolves_to_cos_of_the_family() -> Result<()> {
    let dir = scratch()?;
    let directory = dir.path();
    for width in [16, 8, 4, 2] {
        compile(
            directory,
            "common",
            None,
            &format!("cos{width}"),
            &halves(width),
        )?;
    }
    compile(
        directory,
        "common",
        None,
        "cos",
        &scalar("common", "cos", "1 - x * x / 2"),
    )?;
    compile(
        directory,
        "common",
        None,
        "sin",
        &scalar("common", "sin", "x - x * x * x / 6"),
    )?;
    for (family, function, expression) in [
        ("gfx906", "cos", "__builtin_amdgcn_cosf(x * 0.15915494f)"),
        // A newer family, without a cosine.
        ("gfx90a", "sin", "__builtin_amdgcn_sinf(x * 0.15915494f)"),
        (
            "gfx1100",
            "cos",
            "__builtin_amdgcn_cosf(x * 0.15915494f) + 0",
        ),
    ] {
        compile(
            directory,
            family,
            Some(family),
            function,
            &scalar(family, function, expression),
        )?;
    }
    let splitter = Splitter::new(directory)?;
    splitter.split(
        &libclc("amdgcn--amdhsa")?,
        &directory.join("libclc"),
        Some("^_Z3cosf$"),
    )?;
    for layer in ["common", "gfx906", "gfx90a", "gfx1100", "libclc"] {
        Layer::from_directory(layer, &directory.join(layer))?.archive(directory)?;
    }
    let views = vec![
        ("gfx1100", vec!["gfx1100", "gfx90a", "gfx906", "common"]),
        ("gfx90a", vec!["gfx90a", "gfx906", "common"]),
        ("gfx906", vec!["gfx906", "common"]),
        ("libclc", vec!["libclc", "common"]),
        ("generic", vec!["common"]),
    ];
    let file = build(directory, &views)?;
    assert_eq!(compare(directory, &views)?, views.len() * (COS.len() + 2));

    let bytes = fs::read(file)?;
    let archive = SuperArchive::parse(&bytes).map_err(|e| e.to_string())?;
    for (family, mark) in [
        ("gfx1100", "of_gfx1100"),
        ("gfx90a", "of_gfx906"),
        ("gfx906", "of_gfx906"),
        ("libclc", ""),
        ("generic", "of_common"),
    ] {
        let view = archive
            .view(family)
            .map_err(|e| e.to_string())?
            .ok_or(family)?;
        let files = closure(&view, COS[0], &directory.join("closure").join(family))?;
        assert_eq!(files.len(), COS.len(), "{family}");
        let linked = directory.join(format!("{family}.bc"));
        let mut link = Command::new("llvm-link-19");
        let ran = succeed(link.args(files.values()).arg("-o").arg(&linked))?;
        if !ran.stderr.is_empty() {
            return Err(ran.error("a complaint"));
        }
        let linked = symbols(&linked)?;
        let expected = COS.into_iter().chain([ABI]);
        assert_eq!(names(&linked, "TW"), expected.collect(), "{family}");
        assert!(names(&linked, "U").is_empty(), "{family}");
        // libclc's symbol has no mark, but is the only weak one.
        let marks: Vec<_> = linked
            .iter()
            .map(|(_, name)| &name[..])
            .filter(|name| name.starts_with("of_"))
            .collect();
        assert_eq!(marks.join(" "), mark, "{family}");
        let weak = names(&linked, "W");
        assert_eq!(weak.contains(COS[4]), family == "libclc", "{family}");
    }
    Ok(())
}

/// Names of the symbols of some types.
fn names<'a>(symbols: &'a [(char, String)], kinds: &str) -> BTreeSet<&'a str> {
    symbols
        .iter()
        .filter(|(kind, _)| kinds.contains(*kind))
        .map(|(_, name)| &name[..])
        .collect()
}
