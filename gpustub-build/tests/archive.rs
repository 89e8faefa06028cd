//! Super-archives in build scripts.
#![cfg(unix)]

#[path = "tools/package.rs"]
mod package;
#[path = "../../crates/engine/tests/tools/mod.rs"]
mod tools;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use gpustub_archive::SuperArchive;
use gpustub_build::Output;
use gpustub_core::manifest::Manifest;
use package::Package;
use tools::tool_output;

/// Compiles functions, each of which is a line of C, into an object file.
fn object(path: &Path, functions: &[&str]) {
    let source = path.with_extension("c");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&source, functions.join("\n")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-c", "-o"]).arg(path).arg(&source);
    assert!(cc.status().unwrap().success(), "{cc:?}");
}

const TABLE: &str = "schema = 1

[archive.my-builtins]
layers = { gfx9 = [\"clc/gfx9/*.o\"], common = [\"$OUT_DIR/common\", \"extra.o\"] }
views = { gfx900 = [\"gfx9\", \"common\"], generic = [\"common\"] }
";

fn package(name: &str, table: &str) -> Package {
    let package = Package::new(name, table);
    object(
        &package.dir.join("clc/gfx9/cos.o"),
        &["int cos1(void) { return 9; }"],
    );
    object(
        &package.dir.join("out/common/cos.o"),
        &["int cos1(void) { return 0; }"],
    );
    object(
        &package.dir.join("extra.o"),
        &["int sin1(void) { return 1; }"],
    );
    fs::remove_file(package.dir.join("out/common/cos.c")).unwrap();
    package
}

fn lines(output: &Output) -> Vec<String> {
    output.directives.iter().map(ToString::to_string).collect()
}

#[test]
fn an_archive_is_written_once_with_directives_for_cargo() {
    let package = package("whole", TABLE);
    let output = package.output();
    let file = package.dir.join("out/my-builtins.a");
    assert_eq!(output.archives, std::slice::from_ref(&file));
    assert_eq!(
        lines(&output),
        [
            "cargo::rerun-if-env-changed=DOCS_RS",
            "cargo::rerun-if-changed=GpuStub.toml",
            "cargo::rerun-if-changed=clc/gfx9",
            "cargo::rerun-if-changed=clc/gfx9/cos.o",
            "cargo::rerun-if-changed=extra.o",
            &format!(
                "cargo::rustc-env=GPUSTUB_ARCHIVE_MY_BUILTINS={}",
                file.display()
            ),
        ]
    );
    let bytes = fs::read(&file).unwrap();
    let archive = SuperArchive::parse(&bytes).unwrap();
    archive.verify().unwrap();
    for (view, symbol, object) in [
        ("gfx900", "cos1", "clc/gfx9/cos.o"),
        ("generic", "cos1", "out/common/cos.o"),
        ("gfx900", "sin1", "extra.o"),
    ] {
        let view = archive.view(view).unwrap().unwrap();
        let member = view.find_symbol(symbol).unwrap().unwrap();
        let object = fs::read(package.dir.join(object)).unwrap();
        assert_eq!(*member.data().unwrap(), *object);
    }
    let default = archive.default_view().unwrap().unwrap();
    assert_eq!(default.name(), b"gfx900");
    let index = tool_output("nm", &["-s"], &file);
    assert!(
        index.contains("cos1 in cos.o\nsin1 in extra.o\n"),
        "{index}"
    );

    let before = inode_and_time(&file);
    package.output();
    assert_eq!(inode_and_time(&file), before, "nothing has changed");
    object(
        &package.dir.join("extra.o"),
        &["int tan1(void) { return 1; }"],
    );
    package.output();
    assert_ne!(inode_and_time(&file), before);
    assert_ne!(fs::read(&file).unwrap(), bytes);
}

fn inode_and_time(file: &Path) -> (u64, i64) {
    let metadata = fs::metadata(file).unwrap();
    (metadata.ino(), metadata.mtime_nsec())
}

#[test]
fn errors_have_the_line_of_their_cause() {
    let package = package("wrong", &TABLE.replace("gfx9/*.o", "gfx8/*.o"));
    let error = package.error();
    let expected = "GpuStub.toml:4:20: error[empty-layer]: layer `gfx9` of archive.my-builtins: `clc/gfx8/*.o` \
                matches no file";
    assert!(error.starts_with(expected), "{error}");

    fs::write(package.dir.join("GpuStub.toml"), TABLE).unwrap();
    let dangling_link = package.dir.join("clc/gfx9/gone.o");
    std::os::unix::fs::symlink("nowhere", &dangling_link).unwrap();
    let error = package.error();
    assert!(error.contains("gone.o"), "{error}");
    fs::remove_file(dangling_link).unwrap();

    let functions = [
        "int sin1(void) { return 1; }",
        "int cos1(void) { return 1; }",
    ];
    object(&package.dir.join("extra.o"), &functions);
    let error = package.error();
    let expected = "GpuStub.toml:5:11: error[layer-conflict]: view `gfx900`: `extra.o` of layer `common` is needed \
                for `sin1`, and defines `cos1`, which `cos.o` of layer `gfx9` overrides";
    assert!(error.starts_with(expected), "{error}");

    fs::write(package.dir.join("extra.o"), b"\x7fELF and no more").unwrap();
    let error = package.error();
    assert!(error.starts_with("GpuStub.toml:3:10: error["), "{error}");
    assert!(error.contains("extra.o"), "{error}");
    assert!(!package.dir.join("out/my-builtins.a").exists());
}

/// Patterns are not applied to another directory instead.
#[test]
fn patterns_in_a_directory_that_is_not_utf8_are_rejected() {
    let package = package("text", TABLE);
    let directory = package.dir.join(OsStr::from_bytes(b"a\xff"));
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a.o"), "").unwrap();
    let find_inputs = |pattern: &str| {
        let text = format!(
            "schema = 1\n[archive.one]\nlayers = {{ a = [{pattern:?}] }}\nviews = {{ a = [\"a\"] }}\n"
        );
        let (manifest, diagnostics) = Manifest::parse("GpuStub.toml", &text);
        assert_eq!(diagnostics, []);
        gpustub_engine::archive::find(&manifest.archives[0], "GpuStub.toml", &directory, None)
    };
    let inputs = find_inputs("a.o").unwrap();
    assert_eq!(inputs.layers[0].paths, [directory.join("a.o")]);
    let diagnostics = find_inputs("*.o").unwrap_err();
    assert!(
        diagnostics[0]
            .message
            .ends_with("a\\xFF\" cannot be passed to cargo")
    );
}

#[test]
fn a_build_script_may_select_archives() {
    let table = "schema = 1
[archive.one]
layers = { a = [\"extra.o\"] }
views = { a = [\"a\"] }
[archive.two]
layers = { a = [\"extra.o\"] }
views = { a = [\"a\"] }
required-features = [\"gpu\"]
";
    let mut package = package("some", table);
    assert_eq!(archive_names(&package.output()), ["one.a"]);
    package.set("CARGO_FEATURE_GPU", "1");
    assert_eq!(archive_names(&package.output()), ["one.a", "two.a"]);
    let output = package.build().archive("two").try_build().unwrap();
    assert_eq!(archive_names(&output), ["two.a"]);
    let error = package.build().archive("tow").try_build().unwrap_err();
    assert_eq!(
        error.to_string(),
        "error[missing-key]: GpuStub.toml has no [archive.tow]\n  help: did you mean `two`?"
    );
}

fn archive_names(output: &Output) -> Vec<&str> {
    output
        .archives
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap())
        .collect()
}

/// One function from two files, whose bitcode modules contain the file names.
#[test]
fn canonical_bitcode_is_one_member() {
    let table = "schema = 1
[archive.one]
layers = { gfx9 = [\"gfx9/*.bc\"], gfx11 = [\"gfx11/*.bc\"] }
views = { gfx900 = [\"gfx9\"], gfx1100 = [\"gfx11\"] }
default-view = false
";
    let package = package("canonical", table);
    for (layer, name) in [("gfx9", "one.c"), ("gfx11", "another.c")] {
        let directory = package.dir.join(layer);
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join(name), "int f(int x) { return x + 1; }").unwrap();
        let mut clang = Command::new("clang");
        clang.args(["-c", "-emit-llvm", "-nogpulib"]);
        clang.args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx900"]);
        clang.args([name, "-o", "f.bc"]).current_dir(&directory);
        assert!(clang.status().unwrap().success(), "{clang:?}");
    }
    for (key, members) in [("", 2), ("canonical-bitcode = true\n", 1)] {
        let manifest = package.dir.join("GpuStub.toml");
        fs::write(manifest, format!("{table}{key}")).unwrap();
        let output = package.output();
        for line in lines(&output) {
            assert!(!line.starts_with("cargo::warning"), "{output:?}");
        }
        let bytes = fs::read(&output.archives[0]).unwrap();
        let archive = SuperArchive::parse(&bytes).unwrap();
        archive.verify().unwrap();
        for view in archive.views() {
            let member = view.unwrap().find_symbol("f").unwrap().unwrap();
            assert_eq!(member.name(), b"f.bc");
            let module = member.data().unwrap();
            let names_its_source = contains(module, b".c") || contains(module, b"gfx900");
            assert_eq!(names_its_source, key.is_empty());
        }
        assert_eq!(archive.contents_count(), members);
    }
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

/// Objects of `$OUT_DIR` may be missing in documentation builds.
#[test]
fn documentation_is_built_with_an_archive_without_views() {
    let mut package = package("docs", TABLE);
    package.set("DOCS_RS", "1");
    fs::remove_dir_all(package.dir.join("out/common")).unwrap();
    let output = package.output();
    let bytes = fs::read(&output.archives[0]).unwrap();
    assert_eq!(SuperArchive::parse(&bytes).unwrap().view_count(), 0);
    assert!(
        lines(&output)
            .last()
            .unwrap()
            .starts_with("cargo::rustc-env=GPUSTUB_ARCHIVE_MY_BUILTINS=")
    );
}

#[test]
fn fat_objects_are_unpacked_into_views() {
    let table = "schema = 1\n[archive.fat]\nunpack = true\nlayers.acme = [\"fat.o\"]\n";
    let package = Package::new("fat", table);
    fs::create_dir_all(package.dir.join("out")).unwrap();
    let fat = package.dir.join("fat.o");
    object(&fat, &["int host(void) { return 1; }"]);
    object(
        &package.dir.join("device.o"),
        &["int device(void) { return 1; }"],
    );
    let section = "__CLANG_OFFLOAD_BUNDLE__hip-amdgcn-amd-amdhsa--gfx90a=device.o";
    let mut objcopy = Command::new("objcopy");
    objcopy
        .current_dir(&package.dir)
        .args(["--add-section", section, "fat.o"]);
    assert!(objcopy.status().unwrap().success());
    package.output();
    let bytes = fs::read(package.dir.join("out/fat.a")).unwrap();
    let archive = SuperArchive::parse(&bytes).unwrap();
    let default = archive.default_view().unwrap().unwrap();
    assert_eq!(default.name(), b"host");
    assert!(default.find_symbol("host").unwrap().is_some());
    let view = archive.best_view("gfx90a:xnack-").unwrap().unwrap();
    let member = view.find_symbol("device").unwrap().unwrap();
    assert_eq!(
        *member.data().unwrap(),
        *fs::read(package.dir.join("device.o")).unwrap()
    );
}

#[test]
fn members_of_hidden_views_are_compressed() {
    let package = package(
        "compressed",
        &TABLE.replace("views =", "compress = true\nviews ="),
    );
    package.output();
    let bytes = fs::read(package.dir.join("out/my-builtins.a")).unwrap();
    let archive = SuperArchive::parse(&bytes).unwrap();
    let view = archive.view("generic").unwrap().unwrap();
    let contents = view.find_symbol("cos1").unwrap().unwrap().contents();
    assert!(contents.is_compressed());
    let mut data = vec![0; contents.size() as usize];
    let mut scratch = vec![0; contents.scratch_size().unwrap() as usize];
    contents
        .decompress(&mut data, &mut scratch, gpustub_archive::zstd)
        .unwrap();
    assert_eq!(
        data,
        fs::read(package.dir.join("out/common/cos.o")).unwrap()
    );
}
