//! Layers from files: archives of every form, directories, files. Needs a C compiler, GNU ar and
//! llvm-ar.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_superarchive::{
    Binding, KnownMembers, Layer, LayerId, Plan, Request, Source, View, ViewId,
    has_unknown_symbols, write_archive,
};
use tempfile::TempDir;

/// Runs a command, which must succeed.
fn run(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
}

const LONG: &str = "a-name-that-is-too-long-for-a-header.o";

/// Objects `one.o`, which defines `one`, and one with a long name, which defines `two` and weakly
/// `three`; in a separate directory.
fn objects(dir: &TempDir) -> [PathBuf; 2] {
    let directory = dir.path().join("objects");
    fs::create_dir(&directory).unwrap();
    [
        ("one.o", "int one = 1;"),
        (LONG, "int two = 2; __attribute__((weak)) int three = 3;"),
    ]
    .map(|(name, code)| {
        let (source, output) = (dir.path().join("code.c"), directory.join(name));
        fs::write(&source, code).unwrap();
        let mut cc = Command::new("cc");
        run(cc.arg("-c").arg(&source).arg("-o").arg(&output));
        output
    })
}

/// Members with their definitions, with `~` before weak ones.
fn describe(layer: &Layer) -> String {
    let mut descriptions = Vec::new();
    for member in &layer.members {
        let mut description = format!("{}:", String::from_utf8_lossy(&member.name));
        for symbol in &member.symbols {
            let is_weak = symbol.binding != Binding::Strong;
            description += if is_weak { " ~" } else { " " };
            description += &String::from_utf8_lossy(&symbol.name);
        }
        descriptions.push(description);
    }
    descriptions.join("; ")
}

fn both() -> String {
    format!("one.o: one; {LONG}: two ~three")
}

#[track_caller]
fn read(path: &Path) -> (String, String) {
    let source = Source::open(path).unwrap_or_else(|error| panic!("{error}"));
    let layer = source.layer().unwrap_or_else(|error| panic!("{error}"));
    (describe(&layer), layer.name)
}

#[track_caller]
fn refused(path: &Path) -> String {
    let error = Source::open(path)
        .and_then(|source| source.layer().map(|layer| describe(&layer)))
        .unwrap_err();
    let directory = format!("{}/", path.parent().unwrap().display());
    format!("{error}; {}", error.help()).replace(&directory, "")
}

#[test]
fn sources_share_equal_members() {
    let dir = TempDir::new().unwrap();
    let [one, two] = objects(&dir);
    let sources = ["first.a", "second.a"].map(|name| {
        let archive = dir.path().join(name);
        run(Command::new("ar")
            .arg("rcsD")
            .arg(&archive)
            .args([&one, &two]));
        Source::open(&archive).unwrap()
    });
    let mut known = KnownMembers::default();
    let [first, second] = sources
        .each_ref()
        .map(|source| source.layer_with(&mut known).unwrap());
    assert_eq!(first.members, second.members);
    assert_eq!(describe(&second), describe(&sources[1].layer().unwrap()));
    for (first, second) in first.members.iter().zip(&second.members) {
        assert!(std::ptr::eq(first.data, second.data));
    }
}

#[test]
fn archives_of_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let objects = objects(&dir);
    for (tool, flags) in [
        ("ar", &["rc"][..]),
        ("ar", &["rcS"]),
        ("ar", &["rcsT"]),
        ("llvm-ar", &["--format=gnu", "rcs"]),
        ("llvm-ar", &["--format=gnu", "rcsT"]),
        ("llvm-ar", &["--format=bsd", "rcs"]),
        ("llvm-ar", &["--format=bsd", "rcS"]),
        ("llvm-ar", &["--format=darwin", "rcs"]),
    ] {
        let archive = dir.path().join("lib.a");
        let _ = fs::remove_file(&archive);
        let mut ar = Command::new(tool);
        run(ar.args(flags).arg(&archive).args(&objects));
        assert_eq!(read(&archive), (both(), "lib.a".into()), "{tool} {flags:?}");
    }
}

fn entry(name: &str, data: &[u8]) -> Vec<u8> {
    let size = data.len();
    let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, 0, 644);
    let mut entry = [header.as_bytes(), data].concat();
    entry.resize(entry.len().next_multiple_of(2), b'\n');
    entry
}

/// Archives as `lib.exe` writes them: two indices, and names of members with directories.
#[test]
fn archives_of_windows() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = objects(&dir).map(|path| fs::read(path).unwrap());
    let names = format!("d:\\obj/release\\{LONG}\0");
    let tables = [("/", &[0; 4][..]), ("/", &[0; 8]), ("//", names.as_bytes())];
    for extra_table in [None, Some("/<ECSYMBOLS>/"), Some("/<XFGHASHMAP>/")] {
        let mut bytes = b"!<arch>\n".to_vec();
        for (name, data) in tables
            .into_iter()
            .chain(extra_table.map(|name| (name, &[0; 4][..])))
            .chain([("one.o/", &one[..]), ("/0", &two)])
        {
            bytes.extend(entry(name, data));
        }
        let archive = dir.path().join("x.lib");
        fs::write(&archive, bytes).unwrap();
        assert_eq!(read(&archive).0, both(), "{extra_table:?}");
    }
}

#[test]
fn archives_and_directories_may_contain_any_files() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = objects(&dir);
    let directory = one.parent().unwrap();
    fs::write(directory.join("notes.txt"), "int one;").unwrap();
    fs::write(directory.join("empty"), "").unwrap();
    fs::create_dir(directory.join("not-searched")).unwrap();
    let members = format!("{LONG}: two ~three; empty:; notes.txt:; one.o: one");
    assert_eq!(read(directory), (members, "objects".into()));
    let archive = dir.path().join("lib.a");
    let files = ["notes.txt", "empty"].map(|name| directory.join(name));
    run(Command::new("ar")
        .arg("rc")
        .arg(&archive)
        .args(&files)
        .arg(&one));
    assert_eq!(read(&archive).0, "notes.txt:; empty:; one.o: one");
    let archive = dir.path().join("none.a");
    run(Command::new("ar").arg("rc").arg(&archive));
    assert_eq!(read(&archive).0, "");
    assert_eq!(read(&one), ("one.o: one".into(), "one.o".into()));
    let sources = Source::files(vec![one, two]).unwrap();
    assert_eq!(
        describe(&sources.layer().unwrap()),
        format!("{LONG}: two ~three; one.o: one")
    );
}

#[test]
fn thin_archives_name_files_relative_to_their_directory() {
    let dir = tempfile::tempdir().unwrap();
    let [one, two] = objects(&dir);
    let archive = dir.path().join("thin.a");
    let mut ar = Command::new("ar");
    ar.current_dir(dir.path())
        .args(["rcT", "thin.a", "objects/one.o"]);
    run(ar.arg(format!("objects/{LONG}")));
    let elsewhere = dir.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for name in ["thin.a", "objects"] {
        fs::rename(dir.path().join(name), elsewhere.join(name)).unwrap();
    }
    assert!(!archive.exists() && !two.exists());
    assert_eq!(read(&elsewhere.join("thin.a")).0, both());
    fs::remove_file(elsewhere.join("objects/one.o")).unwrap();
    assert_eq!(
        refused(&elsewhere.join("thin.a")),
        "`thin.a(objects/one.o)` cannot be read: the archive is thin, and `objects/one.o` cannot be \
         read: No such file or directory (os error 2); check the path and the permissions"
    );
    assert!(!one.exists());
    let mut ar = Command::new("ar");
    run(ar
        .current_dir(&elsewhere)
        .args(["rc", "inner.a", &format!("objects/{LONG}")]));
    let mut ar = Command::new("ar");
    run(ar
        .current_dir(&elsewhere)
        .args(["rcT", "outer.a", "inner.a"]));
    let refused = refused(&elsewhere.join("outer.a"));
    assert!(
        refused.contains("`outer.a` is malformed: archive member is damaged, or a "),
        "{refused}"
    );
}

#[test]
fn super_archives_are_layers_again() {
    let dir = tempfile::tempdir().unwrap();
    let paths = objects(&dir);
    let sources = paths.clone().map(|path| Source::open(&path).unwrap());
    let layers: Vec<Layer> = sources
        .iter()
        .map(|source| source.layer().unwrap())
        .collect();
    let view = |name: &str, layers: &[usize]| View {
        name: name.into(),
        layers: layers.iter().copied().map(LayerId).collect(),
    };
    let path = dir.path().join("super.a");
    let write = |default: Option<usize>| {
        let request = Request {
            layers: layers.clone(),
            views: vec![view("first", &[0]), view("second", &[1])],
            default: default.map(ViewId),
        };
        let mut bytes = Vec::new();
        Plan::new(&request).unwrap().write(&mut bytes).unwrap();
        fs::write(&path, &bytes).unwrap();
        bytes
    };
    let bytes = write(Some(0));
    let ordinary = Command::new("ar").arg("t").arg(&path).output().unwrap();
    assert!(String::from_utf8_lossy(&ordinary.stdout).contains("gpustub-views.o"));
    assert_eq!(read(&path), ("one.o: one".into(), "super.a".into()));
    let second = Source::view(&path, "second").unwrap();
    let layer = second.layer().unwrap();
    assert_eq!(describe(&layer), format!("{LONG}: two ~three"));
    assert_eq!(layer.name, "super.a:second");
    // The archive's own members, as an archive without tables.
    let mut plain = Vec::new();
    write_archive(&layer.members, &mut plain).unwrap();
    assert!(SuperArchive::parse(&plain).is_err());

    let error = Source::view(&path, "third").unwrap_err();
    let text = format!("{error}; {}", error.help());
    assert!(
        text.ends_with("has no view `third`; name one of its views: first, second"),
        "{text}"
    );
    fs::write(&path, [&bytes[..], b"\n\n"].concat()).unwrap();
    assert!(
        refused(&path).starts_with("`super.a` is not a valid super-archive: "),
        "{}",
        refused(&path)
    );
    write(None);
    assert_eq!(
        refused(&path),
        "`super.a` is a super-archive without a default view; name one of its views: first, second"
    );
    // A file of the user, which has the name of the member with the tables.
    let [object, ordinary] = ["gpustub-views.o", "ordinary.a"].map(|name| dir.path().join(name));
    fs::copy(&paths[1], &object).unwrap();
    let mut ar = Command::new("ar");
    run(ar.arg("rc").arg(&ordinary).args([&object, &paths[0]]));
    let members = "gpustub-views.o: two ~three; one.o: one";
    assert_eq!(read(&ordinary).0, members);
    // The tables of another archive.
    write(Some(0));
    let script = format!(
        "create {0}/merged.a\naddlib {0}/ordinary.a\naddlib {0}/super.a\nsave\nend\n",
        dir.path().display()
    );
    fs::write(dir.path().join("script"), script).unwrap();
    let script = fs::File::open(dir.path().join("script")).unwrap();
    run(Command::new("ar").arg("-M").stdin(script));
    let merged = refused(&dir.path().join("merged.a"));
    assert!(
        merged.contains("views of a super-archive that was merged"),
        "{merged}"
    );
    let plain = dir.path().join("plain.a");
    run(Command::new("ar").arg("rc").arg(&plain).args(&paths));
    let error = Source::view(&plain, "first").unwrap_err();
    assert!(
        error.to_string().ends_with("plain.a` has no view `first`"),
        "{error}"
    );
}

#[test]
fn errors_name_the_file_and_the_member() {
    let dir = tempfile::tempdir().unwrap();
    let [one, _] = objects(&dir);
    let path = |name: &str| dir.path().join(name);
    let damaged = path("damaged.o");
    fs::write(&damaged, &fs::read(&one).unwrap()[..100]).unwrap();
    run(Command::new("ar")
        .arg("rcS")
        .arg(path("bad.a"))
        .args([&one, &damaged]));
    let help = "the file is damaged or still being written: unpack or install it again";
    let outside = format!("is malformed: section headers or symbols lie outside the file; {help}");
    assert_eq!(
        refused(&path("bad.a")),
        format!("`bad.a(damaged.o)` {outside}")
    );
    assert_eq!(refused(&damaged), format!("`damaged.o` {outside}"));
    fs::create_dir(path("directory")).unwrap();
    assert!(refused(&path("directory")).starts_with("`directory` is a directory without files; "));
    fs::rename(&damaged, path("directory/damaged.o")).unwrap();
    assert_eq!(
        refused(&path("directory")),
        format!("`directory/damaged.o` {outside}")
    );
    fs::write(path("text"), "int one;").unwrap();
    assert!(
        refused(&path("text")).starts_with("`text` is neither an archive nor an object file; ")
    );
    run(Command::new("cc")
        .args(["-shared", "-nostdlib", "-o"])
        .arg(path("x.so"))
        .arg(&one));
    assert!(
        refused(&path("x.so")).starts_with("`x.so` is neither an archive nor an object file; ")
    );
    fs::write(path("empty"), "").unwrap();
    assert!(refused(&path("empty")).starts_with("`empty` is empty; "));
    assert!(refused(&path("absent")).starts_with("`absent` cannot be read: "));
    let archive = fs::read(path("bad.a")).unwrap();
    fs::write(path("cut.a"), &archive[..archive.len() - 10]).unwrap();
    assert!(
        refused(&path("cut.a")).starts_with("`cut.a(damaged.o)` is malformed: archive member is ")
    );
    fs::write(path("cut.a"), &archive[..30]).unwrap();
    assert!(refused(&path("cut.a")).starts_with("`cut.a` is malformed: archive member"));
}

/// Members that contain only GCC's code for link-time optimization: the archiver has a plugin for it.
#[test]
fn symbols_of_unreadable_members_are_those_of_the_index() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::write(path("f.c"), "int f(void) { return 42; }").unwrap();
    fs::write(
        path("main.c"),
        "int f(void); int main(void) { return f() != 42; }",
    )
    .unwrap();
    let in_dir = |program: &str, words: &[&str]| {
        let mut command = Command::new(program);
        run(command.current_dir(dir.path()).args(words));
    };
    in_dir(
        "gcc",
        &["-O1", "-flto", "-fno-fat-lto-objects", "-c", "f.c"],
    );
    in_dir("gcc-ar", &["rcs", "f.a", "f.o"]);
    assert_eq!(read(&path("f.a")).0, "f.o: f");
    let source = Source::open(&path("f.a")).unwrap();
    let layers = vec![source.layer().unwrap()];
    assert!(!layers[0].members.iter().any(has_unknown_symbols));
    let view = View {
        name: "v".into(),
        layers: vec![LayerId(0)],
    };
    let request = Request {
        layers,
        views: vec![view],
        default: Some(ViewId(0)),
    };
    let mut bytes = Vec::new();
    Plan::new(&request).unwrap().write(&mut bytes).unwrap();
    let archive = SuperArchive::parse(&bytes).unwrap();
    archive.verify().unwrap();
    let view = archive.view("v").unwrap().unwrap();
    assert_eq!(view.find_symbol("f").unwrap().unwrap().name(), b"f.o");
    fs::write(path("all.a"), &bytes).unwrap();
    in_dir("gcc", &["-O1", "-flto", "main.c", "all.a", "-o", "program"]);
    run(&mut Command::new(path("program")));

    // Without the plugin nothing is known.
    in_dir("ar", &["--plugin", "/dev/null", "rcS", "plain.a", "f.o"]);
    let source = Source::open(&path("plain.a")).unwrap();
    let layer = source.layer().unwrap();
    assert!(layer.members.iter().all(has_unknown_symbols));
}

/// A module of two functions: one is exported, one imported.
#[test]
fn symbols_of_spirv_are_exported_names() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.spv");
    let mut words = vec![0x0723_0203_u32, 0x0001_0200, 0, 3, 0];
    for (name, kind) in [("cos", 0), ("sinpi", 1), ("expm1", 2), ("four", 0)] {
        let mut text = name.as_bytes().to_vec();
        text.resize((text.len() / 4 + 1) * 4, 0);
        words.push((4 + text.len() as u32 / 4) << 16 | 71);
        words.extend([1, 41]);
        words.extend(
            text.chunks(4)
                .map(|word| u32::from_le_bytes(word.try_into().unwrap())),
        );
        words.push(kind);
    }
    let little: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let big: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    for bytes in [&little, &big] {
        fs::write(&path, bytes).unwrap();
        assert_eq!(read(&path).0, "m.spv: cos ~expm1 four");
    }
    fs::write(&path, &little[..little.len() - 4]).unwrap();
    assert!(refused(&path).contains("is truncated: incomplete SPIR-V instruction"));
}
