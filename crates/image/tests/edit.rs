//! Edits of small images: what they require afterwards, and what is refused.

use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_image::edit::{
    EditProblem, EditRequest, ImportKind, Inspection, Replaced, Unversioned, inspect, plan,
};

/// A directory with libraries to link with.
struct Images(tempfile::TempDir);

/// A runtime with one version node, copied into a wheel under another name.
const RUNTIME: &str =
    "int cudaMalloc(void) { return 1; } int cudaFree(void) { return 2; } int cudaData = 3;";
/// A library with two version nodes, which has one function in both.
const NODES: &str = "int clFirst(void) { return 1; } int clSecond(void) { return 2; }
int old(void) { return 3; } int new(void) { return 4; }
__asm__(\".symver old, clBoth@OPENCL_1.0\"); __asm__(\".symver new, clBoth@@OPENCL_2.0\");";
const DRIVER: &str = "int cuInit(void) { return 1; }";

impl Images {
    fn new() -> Self {
        let images = Self(tempfile::tempdir().unwrap());
        let node = "libcudart.so.12 { global: *; };";
        images.library("cudart", RUNTIME, "libcudart.so.12", node);
        images.library("grafted", RUNTIME, "libcudart-5a077122.so.12.0.107", node);
        let nodes = "OPENCL_1.0 { global: clFirst; }; OPENCL_2.0 { global: clSecond; };";
        images.library("opencl", NODES, "libOpenCL.so.1", nodes);
        images.library("cuda", DRIVER, "libcuda.so.1", "");
        // An unrelated library, from which versions are required in any case.
        images.library(
            "other",
            "int other(void) { return 5; }",
            "libother.so.1",
            "OTHER_1 { global: *; };",
        );
        images
    }

    fn library(&self, name: &str, source: &str, soname: &str, versions: &str) {
        let soname = format!("-Wl,-soname,{soname}");
        let script = self.0.path().join(format!("{name}.map"));
        std::fs::write(&script, versions).unwrap();
        let script = format!("-Wl,--version-script={}", script.display());
        let mut flags = vec!["-shared", "-fPIC", &soname];
        flags.extend((!versions.is_empty()).then_some(&script[..]));
        self.compile(&format!("lib{name}.so"), source, &flags);
    }

    fn compile(&self, output: &str, source: &str, flags: &[&str]) -> PathBuf {
        let directory = self.0.path();
        std::fs::write(directory.join("source.c"), source).unwrap();
        let mut cc = Command::new("cc");
        cc.current_dir(directory);
        cc.args(["-O1", "-w", "-nostdlib", "-o", output, "source.c", "-L."]);
        let result = cc.args(flags).output().unwrap();
        let messages = String::from_utf8_lossy(&result.stderr);
        assert!(result.status.success(), "{source}\n{messages}");
        directory.join(output)
    }

    /// A shared library that calls these functions, of these libraries.
    fn calling(&self, functions: &[&str], libraries: &[&str]) -> Vec<u8> {
        let calls: Vec<String> = functions.iter().map(|f| format!("{f}()")).collect();
        let source = format!("int f(void) {{ return {}; }}", calls.join(" + "));
        let mut flags = vec!["-shared", "-fPIC"];
        flags.extend(libraries);
        read(&self.compile("image.so", &source, &flags))
    }
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

fn replaced(needed: &str, nodes: &[&str], node: &str) -> Replaced {
    Replaced {
        needed: vec![needed.into()],
        nodes: nodes.iter().map(|node| node.to_string()).collect(),
        node: node.into(),
    }
}

fn request() -> EditRequest {
    EditRequest {
        stub: "libgpustub_p.so".into(),
        libraries: vec![
            replaced("libcudart.so.12", &["libcudart.so.12"], "GPUSTUB_p_cudart"),
            replaced("libOpenCL.so.1", &[], "GPUSTUB_p_opencl"),
            replaced("libcuda.so.1", &[], "GPUSTUB_p_cuda"),
        ],
        unversioned: vec![Unversioned {
            symbol: "cuInit".into(),
            node: "GPUSTUB_p_cuda".into(),
        }],
        ..EditRequest::default()
    }
}

fn edited(bytes: &[u8], request: &EditRequest) -> Result<Vec<u8>, EditProblem> {
    let patch = plan(bytes, request)?;
    assert_eq!(plan(bytes, request).as_ref(), Ok(&patch), "deterministic");
    let mut out = Vec::new();
    patch.write(bytes, &mut out).unwrap();
    assert_eq!(out.len() as u64, patch.len());
    Ok(out)
}

/// Requirements in one line: needed libraries, then imports with version and file.
fn summary(facts: &Inspection) -> String {
    let mut imports = Vec::new();
    for import in facts.imports.iter().filter(|import| !import.weak) {
        imports.push(match (&import.node, &import.file) {
            (Some(node), Some(file)) => format!("{}@{node} of {file}", import.name),
            _ => import.name.clone(),
        });
    }
    format!("{}; {}", facts.needed.join(" "), imports.join(", "))
}

/// Functions, libraries, and the requirements after the edit.
const EDITS: &[(&[&str], &[&str], &str)] = &[
    (
        &["cudaMalloc", "other"],
        &["-lcudart", "-lother"],
        "libgpustub_p.so libother.so.1; cudaMalloc@GPUSTUB_p_cudart of libgpustub_p.so, other@OTHER_1 of libother.so.1",
    ),
    // The name of a grafted copy means nothing; its node does.
    (
        &["cudaMalloc", "cudaFree"],
        &["-lgrafted"],
        "libgpustub_p.so; cudaMalloc@GPUSTUB_p_cudart of libgpustub_p.so, cudaFree@GPUSTUB_p_cudart of libgpustub_p.so",
    ),
    // Nodes of one library become one.
    (
        &["clFirst", "clSecond", "other"],
        &["-lother", "-lopencl"],
        "libother.so.1 libgpustub_p.so; clFirst@GPUSTUB_p_opencl of libgpustub_p.so, \
         clSecond@GPUSTUB_p_opencl of libgpustub_p.so, other@OTHER_1 of libother.so.1",
    ),
    // Libraries keep nodes of their own.
    (
        &["cudaMalloc", "clFirst"],
        &["-lcudart", "-lopencl"],
        "libgpustub_p.so; cudaMalloc@GPUSTUB_p_cudart of libgpustub_p.so, clFirst@GPUSTUB_p_opencl of libgpustub_p.so",
    ),
    // Imports without a version get one.
    (
        &["cuInit", "other"],
        &["-lother", "-lcuda"],
        "libother.so.1 libgpustub_p.so; cuInit@GPUSTUB_p_cuda of libgpustub_p.so, other@OTHER_1 of libother.so.1",
    ),
    // Without any version there is no table for it.
    (&["cuInit"], &["-lcuda"], "libgpustub_p.so; cuInit"),
    // The first of several entries stays.
    (
        &["cuInit", "cudaFree", "other"],
        &["-lcuda", "-lother", "-lcudart"],
        "libgpustub_p.so libother.so.1; cuInit@GPUSTUB_p_cuda of libgpustub_p.so, \
         cudaFree@GPUSTUB_p_cudart of libgpustub_p.so, other@OTHER_1 of libother.so.1",
    ),
];

#[test]
fn imports_require_nodes_of_the_stub() {
    let images = Images::new();
    for (functions, libraries, expected) in EDITS {
        let bytes = images.calling(functions, libraries);
        let edited = edited(&bytes, &request()).unwrap();
        let facts = inspect(&edited).unwrap();
        let summary = summary(&facts);
        assert_eq!(
            sorted_summary(&summary),
            sorted_summary(expected),
            "{functions:?}"
        );
        // A repaired image is not repaired again.
        assert_eq!(plan(&edited, &request()), Err(EditProblem::NotNeeded));
        // Without section headers it is the same image.
        let stripped = self::edited(&without_sections(&bytes), &request()).unwrap();
        assert_eq!(inspect(&stripped).unwrap(), facts, "{functions:?}");
    }
}

/// The needed libraries, and the imports in order of their names.
fn sorted_summary(summary: &str) -> (&str, Vec<&str>) {
    let (needed, imports) = summary.split_once("; ").unwrap();
    let mut imports: Vec<_> = imports.split(", ").collect();
    imports.sort();
    (needed, imports)
}

/// The file without section headers: `e_shoff`, `e_shnum` and `e_shstrndx` are 0.
fn without_sections(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[40..48].fill(0);
    bytes[60..64].fill(0);
    bytes
}

#[test]
fn search_path_gets_the_directory_of_the_stub() {
    let images = Images::new();
    for (flags, expected) in [
        (&[][..], ("$ORIGIN/../p.libs", false)),
        (
            &["-Wl,-rpath,/a:/b", "-Wl,--enable-new-dtags"],
            ("/a:/b:$ORIGIN/../p.libs", false),
        ),
        // DT_RUNPATH would end the effect of DT_RPATH on dependencies.
        (
            &["-Wl,-rpath,/a", "-Wl,--disable-new-dtags"],
            ("/a:$ORIGIN/../p.libs", true),
        ),
        (
            &["-Wl,-rpath,$ORIGIN/../p.libs:/a"],
            ("$ORIGIN/../p.libs:/a", false),
        ),
    ] {
        let bytes = images.calling(&["cudaMalloc"], &[&["-lcudart"], flags].concat());
        let runpath = Some("$ORIGIN/../p.libs".into());
        let request = EditRequest {
            runpath,
            ..request()
        };
        let facts = inspect(&edited(&bytes, &request).unwrap()).unwrap();
        assert_eq!((facts.runpath.as_deref().unwrap(), facts.rpath), expected);
    }
}

#[test]
fn entries_are_removed_from_the_search_path() {
    let images = Images::new();
    for (flag, added, expected) in [
        ("-Wl,-rpath,/a:/b:/c", Some("$ORIGIN"), "/b:$ORIGIN"),
        ("-Wl,-rpath,/a:/c", Some("$ORIGIN"), "$ORIGIN"),
        ("-Wl,-rpath,/b:/a", None, "/b"),
        // An empty path has no directories.
        ("-Wl,-rpath,/a", None, ""),
        ("-Wl,-rpath,/b", None, "/b"),
    ] {
        let bytes = images.calling(&["cudaMalloc"], &["-lcudart", flag]);
        let request = EditRequest {
            runpath: added.map(str::to_owned),
            removed_runpath: vec!["/a".into(), "/c".into()],
            ..request()
        };
        let facts = inspect(&edited(&bytes, &request).unwrap()).unwrap();
        assert_eq!(facts.runpath.as_deref(), Some(expected), "{flag}");
    }
}

#[test]
fn kinds_of_imports_are_read() {
    let images = Images::new();
    let source = "extern int cudaData; extern __thread int thread_local; int cudaMalloc(void);
        __attribute__((weak)) int cudaFree(void);
        int f(void) { return cudaData + thread_local + cudaMalloc() + (cudaFree ? cudaFree() : 0); }";
    let flags = ["-shared", "-fPIC", "-lcudart"];
    let facts = inspect(&read(&images.compile("kinds.so", source, &flags))).unwrap();
    let mut imports: Vec<_> = facts
        .imports
        .iter()
        .filter(|import| import.referenced)
        .map(|import| (&import.name[..], import.kind, import.weak))
        .collect();
    imports.sort_by_key(|(name, ..)| *name);
    let (function, data) = (ImportKind::Function, ImportKind::Data);
    for import in [
        ("cudaData", data, false),
        ("cudaFree", function, true),
        ("cudaMalloc", function, false),
    ] {
        assert!(imports.contains(&import), "{imports:?}");
    }
    let thread_local = imports.iter().find(|(name, ..)| *name == "thread_local");
    assert!(
        thread_local.is_some_and(|(_, kind, _)| *kind == ImportKind::ThreadLocal),
        "{imports:?}"
    );
}

/// Source, flags, and why the image is not edited.
fn refusals() -> Vec<(&'static str, &'static [&'static str], EditProblem)> {
    let call = "int f(void) { return cudaMalloc(); }";
    vec![
        (
            "extern int cudaData; int *f(void) { return &cudaData; }",
            &["-shared", "-fPIC", "-lcudart"],
            EditProblem::Data("cudaData".into()),
        ),
        (
            "extern int cudaData; int f(void) { return cudaData; }",
            &["-no-pie", "-fno-pie", "-Wl,-e,f", "-lcudart"],
            EditProblem::CopyRelocation("cudaData".into()),
        ),
        (
            "int a(void), b(void); __asm__(\".symver a, clBoth@OPENCL_1.0\");
             __asm__(\".symver b, clBoth@OPENCL_2.0\"); int f(void) { return a() + b(); }",
            &["-shared", "-fPIC", "-lopencl"],
            EditProblem::TwoVersions("clBoth".into()),
        ),
        (
            "int f(void) { return other(); }",
            &["-shared", "-fPIC", "-lother"],
            EditProblem::NotNeeded,
        ),
        (call, &["-c"], EditProblem::NotImage),
        (
            "int f(void) { return 0; }",
            &["-static", "-Wl,-e,f"],
            EditProblem::Static,
        ),
        (
            "int f(void) { return 0; }",
            &["-static-pie", "-Wl,-e,f"],
            EditProblem::Static,
        ),
        (
            call,
            &["-shared", "-fPIC", "-lcudart", "-Wl,-F,libx.so"],
            EditProblem::Filter("DT_FILTER"),
        ),
        (
            call,
            &["-shared", "-fPIC", "-lcudart", "-Wl,-f,libx.so"],
            EditProblem::Filter("DT_AUXILIARY"),
        ),
        (
            call,
            &["-shared", "-fPIC", "-lcudart", "-Wl,--audit,libx.so"],
            EditProblem::Filter("DT_AUDIT"),
        ),
    ]
}

#[test]
fn what_cannot_be_repaired_is_refused() {
    let images = Images::new();
    for (source, flags, problem) in refusals() {
        let bytes = read(&images.compile("refused", source, flags));
        assert_eq!(plan(&bytes, &request()), Err(problem), "{source} {flags:?}");
    }
}

/// A stub may have data, as an object of the same size.
#[test]
fn data_of_the_stub_is_accepted() {
    let images = Images::new();
    for (source, flags, _) in &refusals()[..2] {
        let bytes = read(&images.compile("data", source, flags));
        let request = EditRequest {
            data: vec!["cudaData".into()],
            ..request()
        };
        assert!(plan(&bytes, &request).is_ok(), "{source} {flags:?}");
    }
}

/// Offset, new bytes, and why the file is not read.
#[test]
fn other_formats_are_refused() {
    let images = Images::new();
    let image = images.calling(&["cudaMalloc"], &["-lcudart"]);
    for (offset, bytes, problem) in [
        (0, &b"MZ"[..], EditProblem::NotElf),
        (4, &[1], EditProblem::Elf32),
        (5, &[2], EditProblem::BigEndian),
        (16, &[4, 0], EditProblem::NotImage),
        (18, &[8, 0], EditProblem::Machine("mips64el".into())),
        (32, &[0xff; 8], EditProblem::Truncated("program headers")),
        (40, &[0xff; 8], EditProblem::Truncated("section headers")),
        (
            54,
            &[55],
            EditProblem::Malformed("unexpected size of program headers"),
        ),
        (56, &[0xff; 2], EditProblem::ManyHeaders),
    ] {
        let mut damaged = image.clone();
        damaged[offset..offset + bytes.len()].copy_from_slice(bytes);
        assert_eq!(plan(&damaged, &request()), Err(problem.clone()), "{offset}");
        assert_eq!(inspect(&damaged), Err(problem), "{offset}");
    }
    for length in [0, 3, 40, 100] {
        assert!(plan(&image[..length], &request()).is_err());
    }
}

#[test]
fn prelinked_images_are_refused() {
    let images = Images::new();
    let mut image = images.calling(&["cudaMalloc"], &["-lcudart", "-Wl,-z,initfirst"]);
    // The tag DT_FLAGS_1 becomes DT_GNU_PRELINKED; no linker of today writes it.
    let flags: Vec<u8> = [0x6fff_fffb_u64.to_le_bytes(), 0x20_u64.to_le_bytes()].concat();
    let entry = image
        .windows(16)
        .position(|window| window == flags)
        .unwrap();
    image[entry..entry + 8].copy_from_slice(&0x6fff_fdf5_u64.to_le_bytes());
    assert_eq!(plan(&image, &request()), Err(EditProblem::Prelinked));
}

#[test]
fn impossible_requests_are_refused() {
    let images = Images::new();
    let image = images.calling(&["cudaMalloc"], &["-lcudart"]);
    let mut no_name = request();
    no_name.stub = String::new();
    let mut two_nodes = request();
    two_nodes.unversioned.push(Unversioned {
        symbol: "cuInit".into(),
        node: "GPUSTUB_p_other".into(),
    });
    for request in [no_name, two_nodes] {
        let result = plan(&image, &request);
        assert!(matches!(result, Err(EditProblem::Request(_))), "{result:?}");
    }
}

/// An edit changes tables and inserts bytes: the rest of the file is copied.
#[test]
fn large_files_are_copied_in_few_pieces() {
    let images = Images::new();
    let source = "static const char data[20 << 20] = { 1 }; const char *g = data;
        int f(void) { return cudaMalloc(); }";
    let path = images.compile("large.so", source, &["-shared", "-fPIC", "-lcudart"]);
    let bytes = read(&path);
    let patch = plan(&bytes, &request()).unwrap();
    let size: usize = patch
        .pieces()
        .iter()
        .map(|piece| match piece {
            gpustub_image::edit::Piece::New(bytes) => bytes.len(),
            gpustub_image::edit::Piece::Copy(_) => 0,
        })
        .sum();
    assert!(size < 8192 && patch.pieces().len() < 32, "{size} new bytes");
}
