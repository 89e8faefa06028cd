//! Entries of a store: what finds them, and what removes them.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::*;

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// A target directory with the tag that cargo writes.
fn target_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    tag(dir.path());
    dir
}

fn tag(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    let text = "Signature: 8a477f597d28d172789f06886806bc55\n# This file is a cache directory tag created by cargo.\n";
    fs::write(dir.join("CACHEDIR.TAG"), text).unwrap();
}

/// A build script with its OUT_DIR, which compiles `a.cu` of its package with a header in OUT_DIR.
struct Script {
    store: Store,
    out: PathBuf,
    package: PathBuf,
}

impl Script {
    fn new(target_dir: &Path, out_dir: &str) -> Self {
        let out = target_dir.join(out_dir);
        let package = target_dir.join("package");
        for dir in [&out, &package] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(package.join("a.cu"), "source").unwrap();
        fs::write(out.join("a.cuh"), "header").unwrap();
        let store = Store::find(&out.join("gpustub"), TARGET).unwrap();
        Self {
            store,
            out,
            package,
        }
    }

    fn inputs(&self) -> [PathBuf; 2] {
        [self.package.join("a.cu"), self.out.join("a.cuh")]
    }

    fn object(&self) -> PathBuf {
        self.out.join("a.o")
    }

    fn step(&self, flag: &str) -> Step<'_> {
        let mut command = Command::new("nvcc");
        command.current_dir(&self.package).arg(flag).arg("-I");
        command.args([&self.out, &self.object()]);
        let key = crate::fingerprint::command_line(&command);
        self.store.step(&command, &key, &[])
    }

    /// Makes the object, unless the store has it. Returns whether it was made.
    fn build(&self, flag: &str) -> bool {
        let mut step = self.step(flag);
        if let Some(fetched) = step.fetch(&[&self.object()]) {
            assert_eq!(fetched.inputs, self.inputs());
            assert_eq!(fetched.printed, "a warning\nanother\n");
            assert_eq!(fs::read(self.object()).unwrap(), b"object");
            return false;
        }
        let _ = fs::remove_file(self.object());
        fs::write(self.object(), "object").unwrap();
        step.keep(&self.inputs(), &[&self.object()], "a warning\nanother");
        true
    }
}

/// Files of the only entry in the store, by their names.
fn entry_files(store: &Store) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for step in fs::read_dir(store.dir()).unwrap().flatten() {
        for entry in fs::read_dir(step.path()).into_iter().flatten().flatten() {
            let entries = fs::read_dir(entry.path()).unwrap().flatten();
            files.extend(entries.map(|file| file.path()));
        }
    }
    files.sort();
    files
}

const OUT: &str = "debug/build/a-1/out";

#[test]
fn the_store_is_in_the_outermost_target_directory() {
    for (tags, out_dir, root) in [
        (&["t"][..], "t/debug/build/a-1/out", "t"),
        // Cargo does not tag a directory that exists.
        (&[], "t/debug/build/a-1/out", "t"),
        (
            &["t"],
            "t/x86_64-unknown-linux-gnu/release/build/a-1/out",
            "t",
        ),
        (&[], "t/x86_64-unknown-linux-gnu/release/build/a-1/out", "t"),
        (&["t"], "t/debug/build/a/1/out", "t"),
        (&["t"], "t/debug/build/build/1/out", "t"),
        (
            &["x86_64-unknown-linux-gnu"],
            "x86_64-unknown-linux-gnu/debug/build/a-1/out",
            "x86_64-unknown-linux-gnu",
        ),
        (
            &["t", "t/rust-analyzer"],
            "t/rust-analyzer/debug/build/a-1/out",
            "t",
        ),
        (&["t"], "t/debug/build/a-1/out/gpustub", "t"),
        // Other build systems.
        (&[], "bazel-out/bin/a_bs.out_dir", ""),
        (&[], "a/out", ""),
    ] {
        let dir = tempfile::tempdir().unwrap();
        for tagged in tags {
            tag(&dir.path().join(tagged));
        }
        let store = Store::find(&dir.path().join(out_dir), TARGET);
        let expected = (!root.is_empty()).then(|| dir.path().join(root));
        assert_eq!(store.map(|store| store.root), expected, "{out_dir}");
    }
}

#[test]
fn an_entry_is_for_one_command_and_for_the_contents_of_its_inputs() {
    let dir = target_dir();
    let script = Script::new(dir.path(), OUT);
    assert!(script.build("-O0"));
    assert!(!script.build("-O0"));
    assert!(script.build("-O3"));
    for input in script.inputs() {
        let old = fs::read(&input).unwrap();
        fs::write(&input, "other").unwrap();
        assert!(script.build("-O0"), "{input:?}");
        assert!(!script.build("-O0"), "{input:?}");
        fs::write(&input, old).unwrap();
        assert!(!script.build("-O0"), "{input:?}");
    }
    fs::remove_file(&script.inputs()[1]).unwrap();
    assert!(script.step("-O0").find(&[&script.object()]).is_none());
}

/// Headers in front of that in OUT_DIR: beside the source, and in directories of options.
#[test]
fn a_header_that_is_searched_first_has_an_entry_of_its_own() {
    let dir = target_dir();
    let script = Script::new(dir.path(), OUT);
    let build = |script: &Script, inputs: &[PathBuf]| {
        let mut command = Command::new("nvcc");
        command.current_dir(&script.package).arg("a.cu");
        command
            .args(["-isystem", "system", "-Ifirst", "-I"])
            .arg(&script.out);
        let mut step =
            script
                .store
                .step(&command, &crate::fingerprint::command_line(&command), &[]);
        let object = script.object();
        if step.fetch(&[&object]).is_some() {
            return false;
        }
        let _ = fs::remove_file(&object);
        fs::write(&object, "object").unwrap();
        step.keep(inputs, &[&object], "");
        true
    };
    let inputs = script.inputs();
    assert!(build(&script, &inputs));
    assert!(!build(&script, &inputs));
    for (header, is_first) in [
        ("first/a.cuh", true),
        ("a.cuh", true),
        ("system/a.cuh", false),
    ] {
        let header = script.package.join(header);
        fs::create_dir_all(header.parent().unwrap()).unwrap();
        fs::write(&header, "other").unwrap();
        let inputs = [inputs[0].clone(), header.clone()];
        assert_eq!(build(&script, &inputs), is_first, "{header:?}");
        assert!(!build(&script, &inputs), "{header:?}");
        fs::remove_file(header).unwrap();
        // Another build's OUT_DIR.
        let script = Script::new(dir.path(), "debug/build/a-2/out");
        assert!(!build(&script, &script.inputs()));
    }
}

#[test]
fn builds_in_other_directories_share_a_file() {
    let dir = target_dir();
    let first = Script::new(dir.path(), OUT);
    assert!(first.build("-O0"));
    for out_dir in [
        "debug/build/a-2/out",
        "x86_64-unknown-linux-gnu/release/build/a/3/out",
    ] {
        let second = Script::new(dir.path(), out_dir);
        assert!(!second.build("-O0"), "{out_dir}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            let [a, b] = [&first, &second].map(|s| fs::metadata(s.object()).unwrap().ino());
            assert_eq!(a, b);
        }
        // The compiler writes a new file.
        assert!(second.build(out_dir));
        assert!(!second.object().with_extension("o.new").exists());
        fs::write(second.out.join("a.cuh"), out_dir).unwrap();
        assert!(second.build("-O0"));
    }
    assert!(!first.build("-O0"));
}

#[test]
fn a_damaged_entry_is_made_again() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 4] = [
        ("removed", |file| fs::remove_file(file).unwrap()),
        ("empty", |file| replace(file, b"")),
        ("other bytes", |file| replace(file, b"\xff\n")),
        ("cut", |file| {
            let bytes = fs::read(file).unwrap();
            replace(file, &bytes[..bytes.len() - 1]);
        }),
    ];
    for (name, damage) in damages {
        for number in 0..2 {
            let dir = target_dir();
            let script = Script::new(dir.path(), OUT);
            assert!(script.build(""));
            let files = entry_files(&script.store);
            assert_eq!(files.len(), 2);
            damage(&files[number]);
            assert!(script.build(""), "{name} {number}");
            assert!(!script.build(""), "{name} {number}");
        }
    }
}

/// Replaces a file, as no process writes into one.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[test]
fn records_are_read_as_they_are_written() {
    let record = Record {
        key: "nvcc \"a b\"".to_owned(),
        inputs: vec![("1".to_owned(), "/a b/c d".to_owned())],
        outputs: vec!["2".to_owned()],
        printed: "\nwarning:  x\nend\n".to_owned(),
    };
    let text = record.render().unwrap();
    assert_eq!(Record::parse(&text), Some(record));
    for end in 0..text.len() {
        assert_eq!(Record::parse(&text[..end]), None, "{end}");
    }
    assert_eq!(Record::parse(&text.replace("output", "input")), None);
    assert_eq!(Record::parse(&text.replace("store 1", "store 2")), None);
}

/// A file in the place of the directory: the tests of some systems run as root, who may write into
/// each directory.
#[test]
fn without_a_store_each_build_makes_its_outputs() {
    let dir = target_dir();
    fs::write(dir.path().join(NAME), "").unwrap();
    let script = Script::new(dir.path(), OUT);
    assert!(script.build(""));
    assert!(script.build(""));
    assert_eq!(fs::read(script.object()).unwrap(), b"object");
}

#[cfg(unix)]
#[test]
fn a_second_process_waits_for_the_first() {
    let dir = target_dir();
    let [first, second] = ["debug/build/a-1/out", "twin/build/a-1/out"]
        .map(|out_dir| Script::new(dir.path(), out_dir));
    let mut step = first.step("");
    assert!(step.fetch(&[&first.object()]).is_none());
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| sender.send(second.build("")));
        assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
        fs::write(first.object(), "object").unwrap();
        step.keep(&first.inputs(), &[&first.object()], "a warning\nanother");
        assert_eq!(receiver.recv(), Ok(false), "fetched");
    });
    // A process that ends without a result.
    let mut step = first.step("-O3");
    assert!(step.fetch(&[&first.object()]).is_none());
    drop(step);
    assert!(second.build("-O3"));
}
