//! The installed header, with pkg-config and CMake, and the C examples of its README.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_tests::cargo::gpustub;
use gpustub_tests::command::succeed;
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, files_below};

use crate::walker::include;

/// A program that fails if the header is not that of this tree.
const PROGRAM: &str = "#include <gpustub_archive_verify.h>\n\
    int main(void) {\n\
        struct gpustub_archive archive;\n\
        return gpustub_archive_open(&archive, \"!<arch>\\n\", 8) != GPUSTUB_ARCHIVE_NO_VIEWS;\n\
    }\n";

fn make(goal: &str, prefix: &Path) -> Result<()> {
    let mut make = Command::new("make");
    make.args(["--quiet", "-C"]).arg(include()).arg(goal);
    let mut variable = OsString::from("PREFIX=");
    variable.push(prefix);
    succeed(make.arg(variable))?;
    Ok(())
}

#[test]
#[ignore = "needs pkg-config and CMake: ./tests/run"]
fn installed_header_is_found() -> Result<()> {
    let dir = scratch()?;
    let prefix = dir.path().join("with a space");
    make("install", &prefix)?;
    assert_eq!(files_below(&prefix)?.len(), 6);
    let source = dir.path().join("program.c");
    fs::write(&source, PROGRAM)?;

    let mut flags = Command::new("pkg-config");
    flags.env("PKG_CONFIG_PATH", prefix.join("share/pkgconfig"));
    let flags = succeed(flags.args(["--cflags", "gpustub-archive = 0.1.0"]))?.stdout;
    // Splits the flags as a shell does: a space is escaped.
    let flags = flags.trim().replace("\\ ", "\u{0}");
    let flags = flags.split(' ').map(|flag| flag.replace('\u{0}', " "));
    let mut compile = Command::new("cc");
    compile.current_dir(dir.path()).args(flags);
    succeed(compile.arg("program.c"))?;
    succeed(&mut Command::new(dir.path().join("a.out")))?;

    let project = "cmake_minimum_required(VERSION 3.13)\nproject(user C)\n\
        find_package(gpustub-archive 0.1 REQUIRED)\nfind_package(gpustub-archive REQUIRED)\n\
        add_executable(program program.c)\ntarget_link_libraries(program PRIVATE gpustub::archive)\n\
        find_package(gpustub-archive 0.2 QUIET)\n\
        if(gpustub-archive_FOUND)\n    message(FATAL_ERROR \"another version\")\nendif()\n";
    fs::write(dir.path().join("CMakeLists.txt"), project)?;
    let mut cmake = Command::new("cmake");
    cmake
        .current_dir(dir.path())
        .env("CMAKE_PREFIX_PATH", &prefix);
    succeed(cmake.args(["-S", ".", "-B", "build"]))?;
    succeed(
        Command::new("cmake")
            .current_dir(dir.path())
            .args(["--build", "build"]),
    )?;
    succeed(&mut Command::new(dir.path().join("build/program")))?;

    make("uninstall", &prefix)?;
    assert!(files_below(&prefix)?.is_empty());
    Ok(())
}

/// Contents of all files below a prefix.
fn contents(prefix: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    (files_below(prefix)?.into_iter())
        .map(|path| Ok((path.strip_prefix(prefix)?.to_owned(), fs::read(&path)?)))
        .collect()
}

/// `make install` and `export archive-header` have the files in common, but not the rules.
#[test]
fn exported_header_is_that_of_make() -> Result<()> {
    let dir = scratch()?;
    let [installed, exported] = ["installed", "exported"].map(|name| dir.path().join(name));
    make("install", &installed)?;
    let mut list = gpustub(&["export", "archive-header", "--list", "--prefix"])?;
    let list = succeed(list.arg(&exported))?.stdout;
    assert!(!exported.exists());
    for (status, times) in [("Installed 6 files", 1), ("Fresh", 2)] {
        let mut export = gpustub(&["export", "archive-header", "--prefix"])?;
        let ran = succeed(export.arg(&exported))?;
        assert!(ran.stderr.contains(status), "{times}: {}", ran.stderr);
    }
    let files = contents(&installed)?;
    assert_eq!(files, contents(&exported)?);
    let mut listed: Vec<PathBuf> = list.lines().map(PathBuf::from).collect();
    listed.sort();
    assert_eq!(listed, files.into_keys().collect::<Vec<_>>());
    Ok(())
}

#[test]
fn versions_are_that_of_the_workspace() -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let read = |name: &str| fs::read_to_string(include().join(name));
    assert!(read("gpustub-archive.pc")?.contains(&format!("\nVersion: {version}\n")));
    let package = read("gpustub-archive-config-version.cmake")?;
    assert!(package.contains(&format!("set(PACKAGE_VERSION {version})")));
    let (minor, _) = version.rsplit_once('.').ok_or("no minor version")?;
    assert!(package.contains(&format!("STREQUAL \"{minor}\"")));
    Ok(())
}

/// Declarations that the README leaves to the program, and those of libzstd, which a C compiler does not bring.
const PREAMBLE: &str = "#include <gpustub_archive.h>\n#include <stdio.h>\n#include <stdlib.h>\n\
    #define MAX_SIZE (1u << 30)\n\
    typedef struct ZSTD_DCtx_s ZSTD_DCtx;\n\
    ZSTD_DCtx *ZSTD_createDCtx(void);\n\
    int gpustub_archive_zstd(void *context, unsigned codec, const void *in, size_t in_size, const void *base,\n\
                             size_t base_size, void *out, size_t out_size);\n\
    void link_in(const void *data, size_t size);\n\
    void add_undefined_symbols(struct gpustub_archive_closure *closure, const struct gpustub_archive_member *member);\n\
    void example(const void *bytes, size_t length);\n\
    void example(const void *bytes, size_t length) {\n";

#[test]
fn readme_examples_compile() -> Result<()> {
    let readme = fs::read_to_string(include().join("README.md"))?;
    let blocks: Vec<_> = (readme.split("```c\n").skip(1))
        .filter_map(|block| block.split_once("```"))
        .collect();
    assert_eq!(blocks.len(), 4);
    // All in one function: later examples use variables of earlier ones.
    let code: String = blocks.iter().map(|block| block.0).collect();
    let dir = scratch()?;
    let source = dir.path().join("readme.c");
    fs::write(&source, format!("{PREAMBLE}{code}}}\n"))?;
    let mut compile = Command::new("gcc");
    compile.args([
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-pedantic",
        "-Werror",
        "-fsyntax-only",
    ]);
    succeed(compile.arg("-I").arg(include()).arg(&source))?;
    Ok(())
}
