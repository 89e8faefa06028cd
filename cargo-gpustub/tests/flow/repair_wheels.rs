//! `repair` of wheels: contents, `RECORD`, names, and what is refused.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use gpustub_check::read::Zip;
use gpustub_repair::record::Hasher;

use super::pack::pack;
use super::repair::{COUNT, cudart, image};
use super::{ends, write};

pub const NAME: &str = "acme-1.0-py3-none-manylinux_2_28_x86_64.whl";

/// Packs the files of a wheel, with `RECORD` and the further files `more`.
pub fn wheel(directory: &Path, more: &[(&str, &str)]) {
    wheel_of(directory, "acme", more, NAME);
}

/// As [`wheel`], of a package with another name.
pub fn wheel_of(directory: &Path, package: &str, more: &[(&str, &str)], output: &str) {
    let content = directory.join("content");
    let info = &format!("content/{package}-1.0.dist-info");
    write(
        directory,
        &format!("{info}/METADATA"),
        &format!("Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"),
    );
    write(
        directory,
        &format!("{info}/WHEEL"),
        "Wheel-Version: 1.0\nRoot-Is-Purelib: false\n",
    );
    for (name, text) in more {
        write(directory, &format!("content/{name}"), text);
    }
    let mut record = String::new();
    for (name, bytes) in read_files(&content) {
        let quote = if name.contains(',') { "\"" } else { "" };
        record += &format!("{quote}{name}{quote},{}\n", hash_and_size(&bytes));
    }
    record += &format!("{package}-1.0.dist-info/RECORD,,\n");
    write(directory, &format!("{info}/RECORD"), &record);
    pack(&content, &[], &directory.join(output)).unwrap();
}

/// The end of a file's line in `RECORD`.
pub fn hash_and_size(bytes: &[u8]) -> String {
    let mut hasher = Hasher::default();
    hasher.update(bytes);
    let entry = hasher.finish();
    format!("{},{}", entry.hash, entry.size)
}

/// All files below a directory, by their paths in it.
fn read_files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let name = path.strip_prefix(root).unwrap().display().to_string();
            files.insert(name, fs::read(path).unwrap());
        }
    }
    files
}

/// Files of a wheel, each with the hash and size that `RECORD` has.
pub fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let zip = Zip::new(File::open(path).unwrap()).unwrap();
    let mut files = BTreeMap::new();
    for file in zip.files() {
        let (name, mut reader) = file.unwrap();
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        files.insert(name, bytes);
    }
    check_record(&files);
    files
}

/// Files of an unpacked wheel, as [`contents`].
fn unpacked(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = read_files(path);
    check_record(&files);
    files
}

/// Compares the files with the lines of `RECORD`.
fn check_record(files: &BTreeMap<String, Vec<u8>>) {
    let record = String::from_utf8(files["acme-1.0.dist-info/RECORD"].clone()).unwrap();
    let mut entries = BTreeMap::new();
    for line in record.lines() {
        let fields: Vec<_> = line
            .rsplitn(3, ',')
            .map(|field| field.trim_matches('"'))
            .collect();
        entries.insert(fields[2], format!("{},{}", fields[1], fields[0]));
    }
    assert_eq!(entries.len(), files.len(), "{record}");
    for (name, bytes) in files.iter().filter(|(name, _)| !name.ends_with("RECORD")) {
        assert_eq!(entries[name.as_str()], hash_and_size(bytes), "{name}");
    }
}

/// Requirements of an image in a wheel.
pub fn needed(files: &BTreeMap<String, Vec<u8>>, name: &str) -> Vec<String> {
    gpustub_image::read_link_facts(&files[name]).unwrap().needed
}

#[test]
fn repaired_wheel_has_a_true_record() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    wheel(
        directory,
        &[
            ("acme/_preload.json", "[\n\"libcudart.so.12\"\n]\n"),
            ("acme/a,b.py", "x = 1\n"),
        ],
    );
    let before = contents(&directory.join(NAME));

    let repair = ["repair", NAME, "-v", "--out-dir"];
    let (_, err) = ends(0, directory, &[&repair[..], &["out"]].concat());
    assert!(
        err.contains("acme.libs/libgpustub_acme_1_0.so: 1 function cudart (headers 12)"),
        "{err}"
    );
    assert!(err.contains("!acme/_preload.json:2"), "{err}");
    let after = contents(&directory.join("out").join(NAME));
    assert_eq!(needed(&after, "acme/_core.so")[0], "libgpustub_acme_1_0.so");
    assert!(after.contains_key("acme.libs/libgpustub_acme_1_0.so"));
    for name in ["acme/a,b.py", "acme-1.0.dist-info/WHEEL"] {
        assert_eq!(before[name], after[name]);
    }
    let (out, err) = ends(0, directory, &["check", &format!("out/{NAME}")]);
    assert!(err.contains("nothing found"), "{out}{err}");

    // The same bytes elsewhere; nothing with --dry-run, although the plan is the same.
    let dry_run = ["repair", NAME, "--out-dir", "dry", "--dry-run"];
    let (_, dry_run_err) = ends(0, directory, &dry_run);
    let (_, err) = ends(0, directory, &[&repair[..], &["again"]].concat());
    assert_eq!(plan_lines(&dry_run_err), plan_lines(&err));
    assert!(!directory.join("dry").exists());
    let [first, second] = ["out", "again"].map(|out| fs::read(directory.join(out).join(NAME)));
    assert_eq!(first.unwrap(), second.unwrap());
}

fn plan_lines(err: &str) -> Vec<&str> {
    let verbs = ["Adding", "Editing", "Removing"];
    err.lines()
        .filter(|line| verbs.iter().any(|verb| line.trim().starts_with(verb)))
        .collect()
}

#[test]
fn grafted_copies_leave_a_wheel_and_majors_have_stubs_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    // As auditwheel renames: the file, its soname and DT_NEEDED, but no version node.
    let grafted = "libcudart-5a077122.so.12.0.107";
    fs::create_dir_all(directory.join("content/acme.libs")).unwrap();
    let soname = format!("-Wl,-soname,{grafted}");
    let path = format!("content/acme.libs/{grafted}");
    super::cc(
        directory,
        &[
            "-shared",
            "-fPIC",
            &soname,
            "-o",
            &path,
            "cudart.c",
            "-Wl,--version-script=cudart.map",
        ],
    );
    fs::copy(directory.join(&path), directory.join("link/libcudart.so")).unwrap();
    image(
        directory,
        "content/acme/_core12.so",
        COUNT,
        &["-shared", "-Wl,-rpath,$ORIGIN/../acme.libs"],
    );
    cudart(directory, "13");
    image(directory, "content/acme/_core13.so", COUNT, &["-shared"]);
    wheel(directory, &[]);

    let repair = ["repair", NAME, "--out-dir", "out", "--remove-copies"];
    ends(0, directory, &repair);
    let after = contents(&directory.join("out").join(NAME));
    assert!(!after.contains_key(&format!("acme.libs/{grafted}")));
    for major in ["12", "13"] {
        let name = format!("acme/_core{major}.so");
        let stub = format!("libgpustub_acme_1_0_cuda{major}.so");
        assert_eq!(needed(&after, &name)[0], stub);
        assert!(after.contains_key(&format!("acme.libs/{stub}")));
        let facts = gpustub_image::read_link_facts(&after[&name]).unwrap();
        assert_eq!(facts.runpath.as_deref(), Some("$ORIGIN/../acme.libs"));
    }
}

#[test]
fn signed_and_damaged_wheels_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    wheel(directory, &[("acme-1.0.dist-info/RECORD.jws", "{}")]);
    let arguments = ["repair", NAME, "--out-dir", "out"];
    let (_, err) = ends(1, directory, &arguments);
    assert!(
        err.contains("error[unsupported-wheel]: signed: `acme-1.0.dist-info/RECORD.jws`"),
        "{err}"
    );
    assert!(!directory.join("out").exists());
    ends(0, directory, &[&arguments[..], &["--unsign"]].concat());
    let after = contents(&directory.join("out").join(NAME));
    assert!(!after.keys().any(|name| name.ends_with(".jws")));

    let intact = fs::read(directory.join(NAME)).unwrap();
    // The name of the first file differs between its two headers.
    let mut renamed = intact.clone();
    renamed[30] ^= 1;
    let record = directory.join("content/acme-1.0.dist-info/RECORD");
    fs::remove_file(record).unwrap();
    pack(&directory.join("content"), &[], &directory.join(NAME)).unwrap();
    let without_record = fs::read(directory.join(NAME)).unwrap();
    for (bytes, message) in [
        (&renamed[..], "differs between local header"),
        (&without_record, "it has no RECORD"),
        (&intact[..intact.len() / 2], "not rewritten: "),
    ] {
        fs::write(directory.join(NAME), bytes).unwrap();
        let repair = ["repair", NAME, "--out-dir", "bad", "--unsign"];
        let (_, err) = ends(1, directory, &repair);
        assert!(
            err.contains("error[unsupported-wheel]: not rewritten: ")
                && err.contains(message)
                && err.contains("help: download or build it again\n"),
            "{err}"
        );
        assert!(!directory.join("bad").exists());
    }
}

/// Lines of `RECORD` that do not match the wheel, in place of that of the image or of `a.py`, with the message.
const WRONG_RECORDS: [(&str, &str, &str); 10] = [
    (
        "acme/_core.so",
        "{path},sha256=x,{size}",
        "`acme/_core.so` differs from its hash in RECORD",
    ),
    (
        "acme/a.py",
        "{path},{hash},7",
        "`acme/a.py` has 6 bytes, and 7 in RECORD",
    ),
    ("acme/a.py", "", "`acme/a.py` is not in RECORD"),
    (
        "acme/a.py",
        "{path},,",
        "`acme/a.py` has no hash by SHA-256 or better in RECORD",
    ),
    (
        "acme/a.py",
        "{path},md5=x,6",
        "`acme/a.py` has no hash by SHA-256 or better in RECORD",
    ),
    (
        "acme/a.py",
        "{path},,\nacme/b.py,,",
        "`acme/a.py` has no hash by SHA-256 or better in RECORD, nor has another file",
    ),
    (
        "acme/a.py",
        "{path},,\nacme/b.py,,\nacme/c.py,,\nacme/,,",
        "`acme/a.py` has no hash by SHA-256 or better in RECORD, nor have 2 other files",
    ),
    (
        "acme/a.py",
        "{line}\nacme/b.py,{hash},6",
        "`acme/b.py` is in RECORD, but not in the wheel",
    ),
    (
        "acme/a.py",
        "{line}\n{line}",
        "`acme/a.py` has two lines in RECORD",
    ),
    ("", "", "`acme/_core.so` is not in RECORD"),
];

/// A repair would give these files true hashes.
#[test]
fn wheels_with_a_wrong_record_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    wheel(directory, &[("acme/a.py", "x = 1\n")]);
    let content = directory.join("content");
    let record = content.join("acme-1.0.dist-info/RECORD");
    let true_record = fs::read_to_string(&record).unwrap();
    for (path, template, message) in WRONG_RECORDS {
        let mut text = String::new();
        for line in true_record.lines().filter(|_| !path.is_empty()) {
            let fields: Vec<&str> = line.split(',').collect();
            let template = if fields[0] == path {
                template
            } else {
                "{line}"
            };
            text += &template
                .replace("{line}", line)
                .replace("{path}", path)
                .replace("{hash}", fields[1])
                .replace("{size}", fields[2]);
            text.push('\n');
        }
        fs::write(&record, text).unwrap();
        pack(&content, &[], &directory.join(NAME)).unwrap();
        let (_, err) = ends(1, directory, &["repair", NAME, "--out-dir", "out"]);
        assert!(
            err.contains(&format!(
                "error[unsupported-wheel]: not rewritten: {message}"
            )) && err.contains("`unzip`")
                && err.contains("`wheel pack`"),
            "{message}\n{err}"
        );
        assert!(!directory.join("out").exists());
    }
    // Other hashes than SHA-256, and signatures without any, are valid.
    fs::write(content.join("acme-1.0.dist-info/RECORD.p7s"), "").unwrap();
    let sha512 = "acme/a.py,sha512=e73veyKgykOKZRFOeqVV-RiHar0CPb8GFYkM-jCLUlHBkx-rU_sUNgozT0yN7lCJ48E3W_3uNVShst_MuAk21g,6";
    let text: String = true_record
        .lines()
        .map(|line| {
            if line.starts_with("acme/a.py") {
                sha512
            } else {
                line
            }
        })
        .map(|line| format!("{line}\n"))
        .collect();
    fs::write(&record, text + "acme-1.0.dist-info/RECORD.p7s,,\n").unwrap();
    pack(&content, &[], &directory.join(NAME)).unwrap();
    ends(
        0,
        directory,
        &["repair", NAME, "--out-dir", "out", "--unsign"],
    );
}

#[test]
fn repaired_directory_of_a_wheel_has_a_true_record() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    wheel(directory, &[("acme/a,b.py", "x = 1\n")]);
    let before = unpacked(&directory.join("content"));
    let arguments = ["repair", "content", "--out-dir", "out"];
    ends(0, directory, &arguments);
    let after = unpacked(&directory.join("out/content"));
    assert_eq!(after.len(), before.len() + 1);
    let stub = &needed(&after, "acme/_core.so")[0];
    assert!(after.contains_key(&format!("acme/{stub}")), "{stub}");

    // Again, and with a signature.
    ends(0, directory, &arguments);
    assert!(unpacked(&directory.join("out/content")) == after);
    write(directory, "content/acme-1.0.dist-info/RECORD.jws", "{}");
    let arguments = ["repair", "content", "--out-dir", "signed"];
    let (_, err) = ends(1, directory, &arguments);
    let message = "error[unsupported-wheel]: signed: `acme-1.0.dist-info/RECORD.jws`";
    assert!(err.contains(message), "{err}");
    assert!(!directory.join("signed").exists());
    ends(0, directory, &[&arguments[..], &["--unsign"]].concat());
    assert_eq!(
        unpacked(&directory.join("signed/content")).len(),
        after.len()
    );
}

#[test]
fn repaired_site_packages_have_true_records() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    let site = "env/lib/site-packages";
    for package in ["one", "two"] {
        image(
            directory,
            &format!("{site}/{package}/_core.so"),
            COUNT,
            &["-shared"],
        );
        let record = format!("{package}/_core.so,sha256=x,1\n{package}-1.dist-info/RECORD,,\n");
        write(
            directory,
            &format!("{site}/{package}-1.dist-info/RECORD"),
            &record,
        );
    }
    ends(0, directory, &["repair", "env", "--out-dir", "out"]);
    let site = directory.join("out").join(site);
    let [first, second] = ["one", "two"].map(|package| {
        let record = site.join(format!("{package}-1.dist-info/RECORD"));
        fs::read_to_string(record).unwrap()
    });
    assert!(
        !first.contains("sha256=x,") && !second.contains("sha256=x,"),
        "{first}{second}"
    );
    // One package has the shared stub library.
    let [core, stub, record] = recorded_names(&first)[..] else {
        panic!("{first}")
    };
    assert!(
        core == "one/_core.so" && record == "one-1.dist-info/RECORD",
        "{first}"
    );
    assert!(site.join(stub).exists(), "{first}");
    assert_eq!(
        recorded_names(&second),
        ["two/_core.so", "two-1.dist-info/RECORD"]
    );
}

fn recorded_names(record: &str) -> Vec<&str> {
    record
        .lines()
        .map(|line| line.split(',').next().unwrap())
        .collect()
}

#[test]
fn programs_outside_of_site_packages_are_not_edited() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/acme/_core.so", COUNT, &["-shared"]);
    let tool = "acme-1.0.data/scripts/tool";
    let main = format!("{COUNT} int main(void) {{ return count(); }}");
    image(directory, &format!("content/{tool}"), &main, &[]);
    wheel(directory, &[]);
    let before = contents(&directory.join(NAME));
    let (_, err) = ends(1, directory, &["repair", NAME, "--out-dir", "out"]);
    let message = "`tool` is installed outside of site-packages (`.data/scripts`), where it does not find a \
                   stub library";
    assert!(err.contains(message), "{err}");
    let after = contents(&directory.join("out").join(NAME));
    assert_eq!(before[tool], after[tool]);
    assert_ne!(before["acme/_core.so"], after["acme/_core.so"]);
}

/// `docs/repair.md` shows the output of its commands.
#[test]
fn repair_page_shows_the_real_output() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    cudart(directory, "12");
    image(directory, "content/demo/_core.so", COUNT, &["-shared"]);
    fs::create_dir_all(directory.join("dist")).unwrap();
    let name = "dist/demo-1.0-py3-none-manylinux_2_28_x86_64.whl";
    wheel_of(directory, "demo", &[], name);
    compare_with_page(directory, 0);
}

/// Compares the output of commands in `docs/repair.md` with that of the subcommand: those of one block, by its index.
pub fn compare_with_page(directory: &Path, index: usize) {
    let page = fs::read_to_string(super::repository().join("docs/repair.md")).unwrap();
    let rest = page.split("```console\n").nth(index + 1).unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let mut session = String::new();
    for line in block.lines().filter(|line| line.starts_with("$ ")) {
        let arguments: Vec<&str> = line.split(' ').skip(3).collect();
        let (_, err) = ends(0, directory, &arguments);
        session += &format!("{line}\n{err}");
    }
    assert_eq!(session, block);
}
