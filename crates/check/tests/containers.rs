//! Members found in archives and directories, and faults reported for malformed ones.

mod archive;

use std::fs;
use std::path::Path;

use archive::{Entry, entry, gzip, library, static_library, tar, tar_gz, tar_gz_of_files, zip};
use gpustub_check::read::{read, read_bytes};
use gpustub_check::{ContainerKind, Content, FlawKind, Package, check};
use gpustub_core::manifest::Policy;
use gpustub_image::Import;
use tar::EntryType;

const WHEEL: &str = "demo-1.0-py3-none-any.whl";

/// A line for each package, member and fault, with a summary of the contents.
fn reported(packages: &[Package]) -> Vec<String> {
    let mut lines = Vec::new();
    for package in packages {
        lines.push(format!("{:?} {}", package.kind, package.name));
        for member in &package.members {
            let summary = match &member.content {
                Content::Image(facts) => format!("image {}", import_names(&facts.imports)),
                Content::Object(facts) => format!(
                    "object {} -> {}",
                    import_names(&facts.imports),
                    facts.defines.join(" ")
                ),
                Content::Text(text) => format!("text {text}"),
                Content::Damaged(_) => "damaged".into(),
                Content::Other => "other".into(),
            };
            lines.push(format!("  {} {summary}", member.path));
        }
        for flaw in &package.flaws {
            lines.push(format!("  ! {}: {}", flaw.path, flaw.message));
        }
    }
    lines
}

fn import_names(imports: &[Import]) -> String {
    let names: Vec<&str> = imports.iter().map(|import| import.name.as_str()).collect();
    names.join(" ")
}

fn flaws(name: &str, bytes: &[u8]) -> Vec<String> {
    read_bytes(bytes, name)
        .iter()
        .flat_map(|package| &package.flaws)
        .map(|flaw| format!("{}: {}", flaw.path, flaw.message))
        .collect()
}

#[test]
fn read_finds_members_of_a_wheel() {
    let mut stored = entry("demo/_stored.so", library());
    stored.method = 0;
    let mut large = library();
    large.resize(9 << 20, 0);
    let bytes = zip(&[
        entry("demo/", ""),
        entry("demo/__init__.py", "import x"),
        entry("demo/_core.so", library()),
        entry("demo/_large.so", large),
        stored,
        entry("demo/x.pyd", b"MZ\x90\0"),
        entry("demo/x.dylib", b"\xcf\xfa\xed\xfe\x07"),
        entry("demo-1.0.dist-info/METADATA", "Name: demo\n"),
        entry("demo-1.0.dist-info/LICENSE", "long"),
    ]);
    assert_eq!(
        reported(&read_bytes(&bytes, WHEEL)),
        [
            "Wheel demo-1.0-py3-none-any.whl",
            "  demo-1.0.dist-info/LICENSE other",
            "  demo-1.0.dist-info/METADATA text Name: demo\n",
            "  demo/__init__.py other",
            "  demo/_core.so image cudaMalloc",
            "  demo/_large.so image cudaMalloc",
            "  demo/_stored.so image cudaMalloc",
            "  demo/x.dylib other",
            "  demo/x.pyd other",
            "  ! demo/x.dylib: programs and libraries of macOS are not checked",
        ]
    );
}

#[test]
fn read_finds_members_of_a_crate_and_a_static_library() {
    let directory = tempfile::tempdir().unwrap();
    let objects = static_library(directory.path());
    let name = "demo-1.0/".to_owned() + &"long/".repeat(60) + "x.txt";
    let mut builder = tar::Builder::new(Vec::new());
    for (name, data) in [
        ("demo-1.0/Cargo.toml", &b"[package]"[..]),
        ("demo-1.0/libx.a", &objects),
        (&name, b"a long name"),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(data.len() as u64);
        builder.append_data(&mut header, name, data).unwrap();
    }
    let bytes = gzip(&builder.into_inner().unwrap());
    let expected = [
        "Crate demo-1.0.crate",
        "  demo-1.0/Cargo.toml text [package]",
        "  demo-1.0/libx.a other",
        "  demo-1.0/libx.a!x.o object cudaFree -> cudaMalloc",
        &format!("  {name} other"),
    ];
    assert_eq!(reported(&read_bytes(&bytes, "demo-1.0.crate")), expected);
    assert_eq!(
        reported(&read_bytes(&objects, "libx.a")),
        ["Archive libx.a", "  x.o object cudaFree -> cudaMalloc"]
    );
}

#[test]
fn read_sorts_directories_and_follows_no_links() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("b/c")).unwrap();
    fs::write(root.join("b/c/x.so"), library()).unwrap();
    fs::write(root.join("a.so"), "no library").unwrap();
    fs::write(root.join("empty.so"), "").unwrap();
    for (link, target) in [
        ("loop", "."),
        ("b/up", "../b"),
        ("broken", "nowhere"),
        ("itself", "itself"),
        ("z.so", "b/c/x.so"),
    ] {
        std::os::unix::fs::symlink(target, root.join(link)).unwrap();
    }
    // A pipe without a writer.
    let pipe = std::process::Command::new("mkfifo")
        .arg(root.join("pipe"))
        .status();
    assert!(pipe.unwrap().success());
    let inner = zip(&[entry("x.so", library())]);
    let deep = zip(&[entry("w.whl", &inner), entry("w.zip", &inner)]);
    let deepest = zip(&[entry("three.whl", zip(&[entry("two.whl", &inner)]))]);
    fs::write(root.join("b/demo.whl"), deep).unwrap();
    fs::write(root.join("b/deep.whl"), deepest).unwrap();
    let packages = read(root, "d").unwrap();
    assert_eq!(
        reported(&packages),
        [
            "Directory d",
            "  a.so other",
            "  b/c/x.so image cudaMalloc",
            "  b/deep.whl other",
            "  b/demo.whl other",
            "  empty.so other",
            "  ! pipe: a pipe, socket or device",
            "Wheel d/b/deep.whl",
            "  three.whl other",
            "Wheel d/b/deep.whl!three.whl",
            "  two.whl other",
            "  ! two.whl: skipped: too many archives inside each other",
            "Wheel d/b/demo.whl",
            "  w.whl other",
            "  w.zip other",
            "Wheel d/b/demo.whl!w.whl",
            "  x.so image cudaMalloc",
            "Archive d/b/demo.whl!w.zip",
            "  x.so image cudaMalloc",
        ]
    );
    assert_eq!(packages, read(root, "d").unwrap());
    assert!(read(Path::new("/no/such/file"), "x").is_err());
    for path in [root.join("pipe"), "/dev/zero".into()] {
        let error = read(&path, "x").unwrap_err().to_string();
        assert_eq!(error, "neither a file nor a directory");
    }
}

fn skipped(packages: &[Package]) -> Vec<String> {
    packages
        .iter()
        .flat_map(|package| &package.flaws)
        .filter(|flaw| flaw.kind == FlawKind::Skipped)
        .map(|flaw| flaw.message.clone())
        .collect()
}

#[test]
fn files_of_other_systems_and_unknown_files_are_reported_as_skipped() {
    let dos = [b"MZ".as_slice(), &[0; 126]].concat();
    let macos = b"\xcf\xfa\xed\xfe\x0c\0\0\x01".as_slice();
    let universal = b"\xca\xfe\xba\xbe\0\0\0\x02".as_slice();
    let java = b"\xca\xfe\xba\xbe\0\0\0\x41".as_slice();
    let unknown = "not an ELF or PE file, wheel, crate, zip or tar.gz archive";
    let of_macos = "programs and libraries of macOS are not checked";
    // Named on the command line; in a package the objects are files of their own.
    let thin = read_bytes(b"!<thin>\n", "x.a");
    assert_eq!(
        skipped(&thin),
        ["a thin archive, which only names its objects: check their files"]
    );
    let packages = read_bytes(&zip(&[entry("x.a", b"!<thin>\n")]), "x.zip");
    assert_eq!(skipped(&packages).len(), 0);
    for (bytes, expected) in [
        (&dos[..], Some(unknown)),
        (macos, Some(of_macos)),
        (universal, Some(of_macos)),
        (java, Some(unknown)),
        (b"", Some(unknown)),
        (&library(), None),
    ] {
        let packages = read_bytes(bytes, "x.so");
        assert_eq!(skipped(&packages), Vec::from_iter(expected));
        let findings = check(&packages[0], &Policy::default());
        assert_eq!(findings.is_empty(), expected.is_some());
        // Unknown files inside a package are not reported.
        let packages = read_bytes(&zip(&[entry("x/x.so", bytes)]), "x.whl");
        let expected_inside = expected.filter(|message| *message != unknown);
        assert_eq!(skipped(&packages), Vec::from_iter(expected_inside));
    }
}

#[test]
fn truncated_files_of_windows_are_damaged() {
    let mut windows = [0; 128];
    windows[..2].copy_from_slice(b"MZ");
    windows[60] = 100;
    windows[100..104].copy_from_slice(b"PE\0\0");
    let packages = read_bytes(&windows, "x.dll");
    assert_eq!(reported(&packages), ["File x.dll", "  x.dll damaged"]);
    let findings = check(&packages[0], &Policy::default());
    assert_eq!(findings[0].code.id, "malformed-image");
}

#[test]
fn gpu_code_and_separate_debug_files_are_no_libraries() {
    for machine in [190_u16, 224] {
        let mut bytes = library();
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        let packages = read_bytes(&bytes, "x.co");
        assert_eq!(packages[0].members[0].content, Content::Other);
    }
    let mut cut = library();
    cut.truncate(200);
    let packages = read_bytes(&cut, "x.so");
    assert_eq!(reported(&packages), ["File x.so", "  x.so damaged"]);
    let findings = check(&packages[0], &Policy::default());
    assert_eq!(findings[0].code.id, "malformed-image");
}

fn python_file() -> Entry {
    entry("demo/x.py", "x")
}

/// An archive with a changed file.
fn changed(change: fn(&mut Entry)) -> Vec<u8> {
    let mut file = python_file();
    change(&mut file);
    zip(&[file])
}

#[test]
fn ambiguous_zip_archives_are_reported() {
    let valid = zip(&[python_file()]);
    let mut two_counted = valid.clone();
    // Number of members in the end record.
    two_counted[valid.len() - 22 + 10] = 2;
    let cases: Vec<(&str, Vec<u8>)> = vec![
        (
            "duplicate member name",
            zip(&[python_file(), python_file()]),
        ),
        (
            "name differs between",
            changed(|file| file.local_name = Some("demo/y.py".into())),
        ),
        (
            "size differs between",
            changed(|file| file.local_size = Some(7)),
        ),
        ("unsupported encryption", changed(|file| file.flags = 1)),
        (
            "compression method `zstd`",
            changed(|file| file.method = 93),
        ),
        (
            "compression method `bzip2`",
            changed(|file| file.method = 12),
        ),
        ("compression method `11`", changed(|file| file.method = 11)),
        (
            "stored member has two different sizes",
            changed(|file| (file.method, file.size) = (0, Some(9))),
        ),
        (
            "is missing in the archive",
            changed(|file| file.offset = Some(1 << 30)),
        ),
        (
            "is missing in the archive",
            changed(|file| file.offset = Some(4)),
        ),
        ("end record counts 2 members", two_counted),
        ("bytes after the end", [&valid[..], b"more"].concat()),
        ("truncated", valid[..valid.len() - 5].to_vec()),
        ("not a zip archive", b"not a zip".to_vec()),
        ("not a zip archive", Vec::new()),
        ("overlaps another member", {
            let mut second = entry("demo/y.py", "y");
            second.local_name = Some("demo/x.py".into());
            second.offset = Some(0);
            zip(&[python_file(), second])
        }),
    ];
    for (expected, bytes) in cases {
        let flaws = flaws(WHEEL, &bytes);
        assert!(
            flaws.iter().any(|flaw| flaw.contains(expected)),
            "{expected}: {flaws:?}"
        );
        let package = &read_bytes(&bytes, WHEEL)[0];
        assert!(
            check(package, &Policy::default())
                .iter()
                .all(|finding| finding.code.id == "malformed-archive")
        );
    }
    assert_eq!(flaws(WHEEL, &valid), Vec::<String>::new());
}

/// A library whose record has this size.
fn library_of_size(size: u32) -> Entry {
    let mut entry = entry("x.so", library());
    entry.size = Some(size);
    entry
}

#[test]
fn size_and_checksum_mismatches_are_reported() {
    let size = library().len() as u32;
    for (expected, entry) in [
        ("size", library_of_size(size - 1)),
        ("size", library_of_size(size + 1)),
        ("exceeds the limit", library_of_size(u32::MAX - 1)),
    ] {
        let flaws = flaws(WHEEL, &zip(&[entry]));
        assert!(flaws[0].contains(expected), "{expected}: {flaws:?}");
    }
    for method in [0, 8] {
        let mut entry = entry("x.so", library());
        entry.method = method;
        let mut bytes = zip(&[entry]);
        // The checksum of both headers.
        bytes[14] ^= 1;
        let central = bytes
            .windows(4)
            .rposition(|window| window == b"PK\x01\x02")
            .unwrap();
        bytes[central + 16] ^= 1;
        let flaws = flaws(WHEEL, &bytes);
        assert!(flaws[0].contains("checksum"), "{method}: {flaws:?}");
    }
}

#[test]
fn unsafe_names_are_reported() {
    for name in [
        &b"../x"[..],
        b"demo/../../x",
        b"/etc/x",
        b"demo\\x",
        b"a\0b",
        b"C:x",
        b"a\x1b[2J",
        b"\xff\xfe",
    ] {
        let package = &read_bytes(&zip(&[entry(name, "x")]), WHEEL)[0];
        let findings = check(package, &Policy::default());
        assert_eq!(findings[0].code.id, "unsafe-path", "{name:?}");
        let origin = findings[0].origin.as_ref().unwrap();
        assert!(!origin.display().contains(char::is_control));
    }
    let same_name = zip(&[entry("demo/A.py", ""), entry("demo/a.py", "")]);
    assert!(flaws(WHEEL, &same_name)[0].contains("only in case"));
    let linux = "demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl";
    assert_eq!(flaws(linux, &same_name), Vec::<String>::new());

    let mut link = entry("demo/x.so", "x.so.1");
    link.mode = 0o120777;
    assert!(flaws(WHEEL, &zip(&[link.clone()]))[0].contains("symbolic link"));
    assert_eq!(flaws("x.zip", &zip(&[link.clone()])), Vec::<String>::new());
    link.data = b"../../etc".to_vec();
    assert!(flaws("x.zip", &zip(&[link]))[0].contains("leads out"));
}

#[test]
fn malformed_tar_archives_are_reported() {
    let valid = gzip(&tar(&[("d-1/x", b"x")]));
    let truncated = valid[..valid.len() - 12].to_vec();
    let mut wrong_checksum = valid.clone();
    wrong_checksum[valid.len() - 8] ^= 1;
    let long_name = vec![b'a'; 2 << 20];
    let no_links = "cargo never packs links";
    for (expected, bytes) in [
        ("truncated", truncated),
        ("damaged", wrong_checksum),
        ("damaged", b"no gzip".to_vec()),
        ("through `..`", tar_gz_of_files(&["d-1/../../x"])),
        ("absolute", tar_gz_of_files(&["/x"])),
        (no_links, tar_gz(&[("d-1/x", EntryType::Symlink, b"y")])),
        (no_links, tar_gz(&[("d-1/x", EntryType::Link, b"d-1/y")])),
        ("outside of `d-1`", tar_gz_of_files(&["d-1/x", "e/x"])),
        (
            "duplicate member name",
            tar_gz_of_files(&["d-1/x", "d-1/x"]),
        ),
        ("only in case", tar_gz_of_files(&["d-1/x", "d-1/X"])),
        ("sparse", tar_gz(&[("d-1/x", EntryType::GNUSparse, b"")])),
        (
            "member names exceed",
            tar_gz(&[("d-1/x", EntryType::GNULongName, &long_name)]),
        ),
    ] {
        let flaws = flaws("d-1.crate", &bytes);
        assert!(
            flaws.iter().any(|flaw| flaw.contains(expected)),
            "{expected}: {flaws:?}"
        );
    }
    assert_eq!(flaws("d-1.crate", &valid), Vec::<String>::new());
    let uncompressed = tar(&[("d/x.so", &library())]);
    let size_flaws = flaws("d.tar", &uncompressed[..2000]);
    assert!(
        size_flaws[0].contains("size differs from"),
        "{size_flaws:?}"
    );
    let inside = tar_gz(&[("d/x", EntryType::Symlink, b"../y")]);
    assert_eq!(flaws("d.tar.gz", &inside), Vec::<String>::new());
    let outside = tar_gz(&[("d/x", EntryType::Link, b"../y")]);
    assert!(flaws("d.tar.gz", &outside)[0].contains("leads out"));
}

#[test]
fn flaws_of_archives_in_package_data_are_ignored() {
    let broken = zip(&[entry("../x", "x"), entry("x.so", library())]);
    let wheel = zip(&[entry("demo/test.zip", &broken)]);
    let packages = read_bytes(&wheel, WHEEL);
    assert_eq!(packages[1].kind, ContainerKind::Archive);
    assert!(packages[1].images().count() == 1 && packages[1].flaws.is_empty());
    assert!(!flaws("x.zip", &broken).is_empty());
}

/// Members above the inflation limit are not inflated.
#[test]
fn decompression_bombs_are_reported_and_not_inflated() {
    let size = 300 << 20;
    let mut bomb = entry("x.so", [&b"\x7fELF"[..], &[0; 4096]].concat());
    bomb.size = Some(size);
    let bomb_flaws = flaws(WHEEL, &zip(&[bomb.clone()]));
    assert!(
        bomb_flaws[0].contains("exceeds the limit: 314572800 bytes"),
        "{bomb_flaws:?}"
    );
    // Members that are no libraries are never inflated as a whole.
    bomb.data = vec![b't'; 4096];
    assert_eq!(flaws(WHEEL, &zip(&[bomb])), Vec::<String>::new());

    // Zeros in many concatenated gzip streams, in a file and after the last one.
    let zeros = gzip(&vec![0; 4 << 20]);
    let mut header = tar::Header::new_gnu();
    header.set_path("x-1/x").unwrap();
    header.set_size(size.into());
    header.set_cksum();
    let zeros_in_file = [gzip(header.as_bytes()), zeros.repeat(100)].concat();
    let zeros_at_end = [gzip(&tar(&[("x-1/x", b"x")])), zeros].concat();
    for bytes in [zeros_in_file, zeros_at_end] {
        let flaws = flaws("x-1.crate", &bytes);
        assert!(flaws[0].contains("exceed the limit"), "{flaws:?}");
    }
    // A wheel in a wheel in a wheel, all small.
    let mut inner = zip(&[entry("x.so", library())]);
    for _ in 0..20 {
        inner = zip(&[entry("x.whl", &inner)]);
    }
    assert!(flaws(WHEEL, &inner)[0].contains("too many archives"));
}
