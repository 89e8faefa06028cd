//! Super-archives, from C sources to the views of each tool.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{cc, ends, gpustub, write};

/// Creates directories with objects: a function of one line each.
pub fn objects(directory: &Path) {
    for (path, text) in [
        ("gfx9/cos1", "float cos1(float x) { return 9 * x; }"),
        ("gfx11/cos1", "float cos1(float x) { return 11 * x; }"),
        ("common/cos1", "float cos1(float x) { return x; }"),
        (
            "common/cos4",
            "float cos1(float); float cos4(float x) { return cos1(x); }",
        ),
        (
            "common/weak",
            "__attribute__((weak)) int kind(void) { return 0; } int more(void) { return 1; }",
        ),
        ("gfx11/kind", "int kind(void) { return 11; }"),
    ] {
        let (source, object) = (format!("{path}.c"), format!("{path}.o"));
        write(directory, &source, text);
        cc(directory, &["-c", "-O1", &source, "-o", &object]);
        fs::remove_file(directory.join(source)).unwrap();
    }
}

const BUILD: [&str; 8] = [
    "archive",
    "build",
    "-o",
    "all.a",
    "--view",
    "gfx900=gfx9,common",
    "--view",
    "gfx1100=gfx11,common",
];

/// Runs `archive` with these arguments; returns standard output.
fn run_archive(directory: &Path, arguments: &[&str]) -> String {
    ends(0, directory, &[&["archive"], arguments].concat()).0
}

/// Runs `archive` with these arguments; returns its JSON document.
fn archive_json(directory: &Path, arguments: &[&str]) -> Value {
    let out = run_archive(directory, &[arguments, &["--format", "json"]].concat());
    let document: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(document["format_version"], 1);
    document
}

fn exit_code(program: &Path) -> Option<i32> {
    Command::new(program).status().unwrap().code()
}

#[test]
fn a_view_has_the_first_definition_of_each_symbol() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    let (out, err) = ends(0, directory, &[&BUILD[..], &["--print-overrides"]].concat());
    assert_eq!(
        out,
        "gfx900: `cos1` of `cos1.o` (gfx9) overrides that of `cos1.o` (common)\n\
         gfx1100: `cos1` of `cos1.o` (gfx11) overrides that of `cos1.o` (common)\n\
         gfx1100: `kind` of `kind.o` (gfx11) overrides that of `weak.o` (common), which is undefined in a variant\n"
    );
    assert!(err.contains("Built all.a: 2 views, "), "{err}");
    let (_, err) = ends(0, directory, &BUILD);
    assert!(err.contains("Fresh all.a"), "{err}");

    assert_eq!(
        run_archive(directory, &["list", "all.a"]),
        "VIEW     MEMBERS  SYMBOLS  LAYERS\n\
         gfx900         3        4  gfx9, common (default)\n\
         gfx1100        4        4  gfx11, common\n"
    );
    assert_eq!(
        run_archive(directory, &["find", "all.a", "kind", "cos1"]),
        "gfx900   kind  weak.o  common\n\
         gfx900   cos1  cos1.o  gfx9\n\
         gfx1100  kind  kind.o  gfx11\n\
         gfx1100  cos1  cos1.o  gfx11\n"
    );
    assert_eq!(
        run_archive(directory, &["nm", "all.a", "--view", "gfx1100"]),
        "cos1 in cos1.o\ncos4 in cos4.o\nkind in kind.o\nmore in weak.o\n"
    );
    let (_, err) = ends(0, directory, &["archive", "verify", "all.a"]);
    assert!(err.contains("Verified all.a: 2 views"), "{err}");
}

/// The archive of a view links, and has the family's own definitions.
#[test]
fn extracted_views_link() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    ends(0, directory, &BUILD);
    run_archive(
        directory,
        &["extract", "all.a", "--view", "gfx1100", "-o", "gfx1100.a"],
    );
    write(
        directory,
        "main.c",
        "float cos4(float); int kind(void); int more(void);\n\
         int main(void) { return (int)cos4(2) + kind() + more(); }",
    );
    cc(directory, &["main.c", "gfx1100.a", "-o", "gfx1100.exe"]);
    cc(directory, &["main.c", "all.a", "-o", "default.exe"]);
    assert_eq!(exit_code(&directory.join("gfx1100.exe")), Some(22 + 11 + 1));
    assert_eq!(exit_code(&directory.join("default.exe")), Some(18 + 1));
}

#[test]
fn extracted_members_are_the_inputs() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    ends(0, directory, &BUILD);
    let extract = ["archive", "extract", "all.a", "--view"];
    let options = ["--members", "--out-dir", "files"];
    ends(
        0,
        directory,
        &[&extract[..], &["gfx1100"], &options].concat(),
    );
    for (name, layer) in [
        ("cos1.o", "gfx11"),
        ("cos4.o", "common"),
        ("kind.o", "gfx11"),
    ] {
        let member = fs::read(directory.join("files").join(name)).unwrap();
        let input = fs::read(directory.join(layer).join(name)).unwrap();
        assert_eq!(member, input, "{name}");
    }
    // Existing files are not replaced.
    let arguments = [&extract[..], &["gfx900"], &options].concat();
    let (_, err) = ends(101, directory, &arguments);
    assert!(err.contains("cos1.o"), "{err}");
}

#[test]
fn json_output_equals_text_output() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    ends(
        0,
        directory,
        &[&BUILD[..], &["--default-view", "gfx1100"]].concat(),
    );
    let list = archive_json(directory, &["list", "all.a"]);
    assert_eq!(list["views"][1]["default"], true);
    assert_eq!(list["views"][1]["layers"][0], "gfx11");
    assert_eq!(list["views"][1]["members"][0]["layer"], "gfx11");
    let find = archive_json(directory, &["find", "all.a", "kind", "--view", "gfx1100"]);
    assert_eq!(find["matches"][0]["member"], "kind.o");
    let nm = archive_json(directory, &["nm", "all.a"]);
    assert_eq!(nm["views"][0]["symbols"].as_array().unwrap().len(), 4);
    let stats = archive_json(directory, &["stats", "all.a"]);
    assert_eq!(stats["total"]["members"], 7);
    // Both families override the common `cos1`, so that no view has it; one has a variant of `weak.o`.
    assert_eq!(stats["unique"]["members"], 6);
    let size = fs::metadata(directory.join("all.a")).unwrap().len();
    assert_eq!(stats["file_bytes"], size);
}

#[test]
fn each_input_becomes_a_view_by_default() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    for name in ["gfx9", "gfx11"] {
        let mut ar = Command::new("ar");
        ar.current_dir(directory)
            .args(["rcs", &format!("{name}.a")]);
        assert!(ar.arg(format!("{name}/cos1.o")).status().unwrap().success());
    }
    ends(
        0,
        directory,
        &["archive", "build", "-o", "all.a", "gfx9.a", "gfx11.a"],
    );
    let (out, _) = ends(
        0,
        directory,
        &["archive", "list", "all.a", "--view", "gfx11"],
    );
    assert!(
        out.starts_with("cos1.o  ") && out.trim_end().ends_with("  gfx11"),
        "{out}"
    );
    let (_, err) = ends(
        101,
        directory,
        &["archive", "build", "-o", "gfx9.a", "gfx9.a", "gfx11.a"],
    );
    assert!(err.contains("`gfx9.a` is one of the inputs"), "{err}");
    let (_, err) = ends(
        101,
        directory,
        &["archive", "build", "-o", "gfx9/all.a", "gfx9"],
    );
    assert!(err.contains("the output is in `gfx9`"), "{err}");
    let (_, err) = ends(
        101,
        directory,
        &["archive", "build", "-o", "b.a", "gfx9.a", "./gfx9.a"],
    );
    assert!(err.contains("two views have the name `gfx9`"), "{err}");
    ends(
        0,
        directory,
        &[
            "archive",
            "build",
            "-o",
            "none.a",
            "gfx9.a",
            "--no-default-view",
        ],
    );
    let (out, _) = ends(0, directory, &["archive", "list", "none.a"]);
    assert!(!out.contains("default"), "{out}");
}

#[test]
fn archive_build_rejects_views_that_cannot_link() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    write(
        directory,
        "both.c",
        "int kind(void) { return 0; } int other(void) { return 1; }",
    );
    cc(directory, &["-c", "both.c"]);
    let (_, err) = ends(
        1,
        directory,
        &["archive", "build", "-o", "b.a", "--view", "v=gfx11,both.o"],
    );
    let reported = "error[layer-conflict]: view `v`: `both.o` of layer `both` is needed for `other`, and defines \
                `kind`, which `kind.o` of layer `gfx11` overrides";
    assert!(err.contains(reported), "{err}");
    assert!(
        err.contains("help: make `kind` of layer `both` weak, put it into a member of its own"),
        "{err}"
    );
    assert!(!directory.join("b.a").exists());

    ends(0, directory, &BUILD);
    let (_, err) = ends(1, directory, &["archive", "find", "all.a", "kin", "cos1"]);
    assert!(err.contains("no view has a symbol `kin`"), "{err}");
    assert!(err.contains("did you mean `kind`?"), "{err}");
    let (_, err) = ends(
        101,
        directory,
        &["archive", "nm", "all.a", "--view", "gfx110"],
    );
    assert!(err.contains("did you mean `gfx1100`?"), "{err}");
    let (_, err) = ends(1, directory, &["archive", "list", "both.o"]);
    assert!(
        err.contains("error[malformed-super-archive]: `both.o`: not an archive"),
        "{err}"
    );
    ends(101, directory, &["archive", "list", "nothing.a"]);

    // One bit of the last member, which has no header that would show it.
    let mut bytes = fs::read(directory.join("all.a")).unwrap();
    *bytes.iter_mut().rev().nth(40).unwrap() ^= 1;
    fs::write(directory.join("all.a"), &bytes).unwrap();
    let (_, err) = ends(1, directory, &["archive", "verify", "all.a"]);
    assert!(err.contains("do not match their hash"), "{err}");
    fs::write(directory.join("all.a"), &bytes[..bytes.len() - 2]).unwrap();
    let (_, err) = ends(1, directory, &["archive", "verify", "all.a"]);
    assert!(
        err.contains("was moved") || err.contains("malformed"),
        "{err}"
    );
}

/// A file that cannot be mapped is read.
#[cfg(unix)]
#[test]
fn an_archive_may_come_through_a_pipe() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    ends(0, directory, &BUILD);
    let mut child = gpustub(directory, &["archive", "find", "/dev/stdin", "cos1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let bytes = fs::read(directory.join("all.a")).unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let (out, _) = ends(0, directory, &["archive", "find", "all.a", "cos1"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), out);
}

/// A closed pipe is no error.
#[test]
fn a_list_into_a_closed_pipe_is_no_error() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    ends(0, directory, &BUILD);
    for command in ["list", "nm", "stats"] {
        let mut child = gpustub(directory, &["archive", command, "all.a"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{command}");
        assert!(output.stderr.is_empty(), "{command}");
    }
}

/// One function for two processors, which share it, and one that stays unchanged.
#[test]
fn canonical_bitcode_is_shared() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "f.c", "int f(int x) { return x + 1; }");
    for (file, flags) in [
        ("gfx900/f.bc", &["-mcpu=gfx900", "-emit-llvm"][..]),
        ("gfx906/f.bc", &["-mcpu=gfx906", "-emit-llvm"]),
    ] {
        fs::create_dir_all(directory.join(file).parent().unwrap()).unwrap();
        let mut clang = Command::new("clang");
        clang.args([
            "-c",
            "-nogpulib",
            "-target",
            "amdgcn-amd-amdhsa",
            "f.c",
            "-o",
            file,
        ]);
        assert!(
            clang
                .args(flags)
                .current_dir(directory)
                .status()
                .unwrap()
                .success()
        );
    }
    let build = ["archive", "build", "-o", "all.a", "gfx900", "gfx906"];
    let (_, err) = ends(0, directory, &build);
    assert!(err.contains("all.a: 2 views, 2 members"), "{err}");
    let build_canonical = [&build[..], &["--canonical-bitcode"]].concat();
    let (_, err) = ends(0, directory, &build_canonical);
    assert!(err.contains("all.a: 2 views, 1 member, "), "{err}");
    let note = "note: the bitcode contains no processor name: compile it with -mcpu and -mattr";
    assert!(err.contains(note), "{err}");

    // In a wrapper: its magic, its version, offset and size of the module, and a processor.
    let module = fs::read(directory.join("gfx906/f.bc")).unwrap();
    let header = [0x0B17_C0DE, 0, 20, module.len() as u32, 0].map(u32::to_le_bytes);
    fs::write(
        directory.join("gfx906/f.bc"),
        [&header.concat()[..], &module].concat(),
    )
    .unwrap();
    let (_, err) = ends(0, directory, &build_canonical);
    let reported = "warning[noncanonical-bitcode]: layer `gfx906`: `f.bc` stays as it is: module is in a wrapper";
    assert!(err.contains(reported), "{err}");
    assert!(err.contains(note), "{err}");
}

/// The members are those that linkers see, so that overrides stay carried out.
#[test]
fn a_view_of_a_super_archive_is_an_input() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    ends(0, directory, &BUILD);
    let build = ["archive", "build", "-q", "-o", "again.a"];
    let view = ["--view", "x=all.a:gfx1100", "all.a:gfx900"];
    ends(0, directory, &[&build[..], &view].concat());
    let (out, _) = ends(
        0,
        directory,
        &["archive", "find", "again.a", "cos1", "kind"],
    );
    assert_eq!(
        out,
        "gfx900  cos1  cos1.o  gfx900\ngfx900  kind  weak.o  gfx900\n\
         x       cos1  cos1.o  gfx1100\nx       kind  kind.o  gfx1100\n"
    );
    let (_, err) = ends(
        1,
        directory,
        &["archive", "build", "-o", "b.a", "all.a:gfx110"],
    );
    assert!(err.contains("has no view `gfx110`"), "{err}");
    let view = ["--view", "x=all.a:gfx1100"];
    ends(0, directory, &[&build[..], &view].concat());
    write(
        directory,
        "main.c",
        "int more(void), kind(void); int main(void) { return more() + kind() != 12; }",
    );
    cc(directory, &["main.c", "again.a", "-o", "main"]);
    assert_eq!(exit_code(&directory.join("main")), Some(0));

    // Extracted members are as they were, unless they are to be linked.
    for (option, symbol) in [(&[][..], "W kind"), (&["--linked"], "U kind")] {
        let extract = ["archive", "extract", "-q", "all.a", "--view", "gfx1100"];
        let output = ["-o", "view.a"];
        ends(0, directory, &[&extract[..], &output, option].concat());
        let mut nm = Command::new("nm");
        let output = nm.current_dir(directory).arg("view.a").output().unwrap();
        let symbols = String::from_utf8_lossy(&output.stdout);
        assert!(symbols.contains(symbol), "{symbols}");
    }
}

#[test]
fn strong_definitions_of_interposable_layers_are_overridden() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    objects(directory);
    let source = "int kind(void) { return 0; } int other(void) { return kind(); }\n";
    write(directory, "both.c", source);
    let options = ["-O2", "-fPIC", "-fsemantic-interposition", "-c", "both.c"];
    cc(directory, &options);
    let build = ["archive", "build", "-o", "b.a", "--view", "v=gfx11,both.o"];
    ends(1, directory, &build);
    ends(
        0,
        directory,
        &[&build[..], &["--interposable", "both"]].concat(),
    );
    let (_, err) = ends(
        101,
        directory,
        &[&build[..], &["--interposable", "bot"]].concat(),
    );
    assert!(
        err.contains("unknown layer `bot` in `--interposable`"),
        "{err}"
    );
    write(
        directory,
        "main.c",
        "int other(void); int main(void) { return other() != 11; }",
    );
    cc(directory, &["main.c", "b.a", "-o", "main"]);
    assert_eq!(exit_code(&directory.join("main")), Some(0));
    write(
        directory,
        "GpuStub.toml",
        "schema = 1\n[archive.b]\nlayers = { gfx11 = ['gfx11'], both = ['both.o'] }\n\
         views = { v = ['gfx11', 'both'] }\ninterposable = ['both']\n",
    );
    write(
        directory,
        "Cargo.toml",
        "[package]\nname = \"b\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n",
    );
    write(directory, "src/lib.rs", "");
    let build = [
        "archive",
        "build",
        "-o",
        "declared.a",
        "--manifest-archive",
        "b",
    ];
    ends(0, directory, &build);
    let declared = fs::read(directory.join("declared.a")).unwrap();
    assert!(declared == fs::read(directory.join("b.a")).unwrap());
}
