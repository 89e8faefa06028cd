//! Several packages that bring stubs into one image: linkers merge them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::plan::Plan;
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::elf::{readelf, symbols};
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, SOURCES, Stubs, list_of, plan_or_fail};
use gpustub_tests::{Result, repository};

/// Functions of `trap` and `other` that each package has in its symbol lists.
const PACKAGES: [(&str, &[&str], &[&str]); 3] = [
    ("a", &["trap1", "trap2", "trap3"], &[]),
    ("b", &[], &["other1", "other2"]),
    ("c", &["trap2", "trap4", "trap5"], &["other2", "other3"]),
];

/// Names, the packages in the linker's order, and the functions that the image calls.
const CASES: [(&str, &[&str], &[&str]); 7] = [
    ("one package", &["a"], &["trap1", "trap2"]),
    ("two libraries", &["a", "b"], &["trap1", "other1"]),
    (
        "one library twice",
        &["a", "b", "c"],
        &["trap1", "trap2", "trap4", "other1", "other2", "other3"],
    ),
    (
        "another order",
        &["c", "a", "b"],
        &["trap1", "trap2", "trap4", "other1", "other2", "other3"],
    ),
    ("the second only", &["a", "b"], &["other1"]),
    // The first package's range of slots is empty, and begins where the second's does.
    (
        "the second of one library",
        &["a", "c"],
        &["trap4", "trap5"],
    ),
    ("no function", &["a", "b"], &[]),
];

/// The packages' archives, the real libraries, and a program that loads a shared library.
struct Rig {
    dir: tempfile::TempDir,
    sources: PathBuf,
}

/// `trap4` → 4, `other1` → 11.
fn value(function: &str) -> String {
    function.replace("trap", "").replace("other", "1")
}

impl Rig {
    fn new() -> Result<Self> {
        Self::with(|package, plan| Stubs::write(package, plan, "cc", &[]))
    }

    fn with(write: impl Fn(&Path, &Plan) -> Result<Stubs>) -> Result<Self> {
        let dir = scratch()?;
        let mut sources = PathBuf::new();
        for (name, trap, other) in PACKAGES {
            let mut manifest = "schema = 1\n".to_owned();
            let mut lists = Vec::new();
            for (library, functions) in [("trap", trap), ("other", other)] {
                if !functions.is_empty() {
                    manifest += &format!(
                        "[stub.{library}]\nload-names = {{ linux = [\"lib{library}.so.1\"] }}\n\
                         symbols = \"{library}.symbols\"\nsearch-dirs = [\"{}\"]\n",
                        dir.path().display()
                    );
                    lists.push((format!("{library}.symbols"), list_of(functions)));
                }
            }
            let lists: Vec<_> = lists
                .iter()
                .map(|(path, text)| (path.as_str(), text.clone()))
                .collect();
            let plan = plan_or_fail(&manifest, &lists, &Machine::X86_64.target())?;
            let package = dir.path().join(name);
            fs::create_dir(&package)?;
            let stubs = write(&package, &plan)?;
            fs::rename(stubs.archive()?, dir.path().join(format!("{name}.a")))?;
            sources = stubs.sources;
        }
        for (library, count) in [("trap", 5), ("other", 3)] {
            let mut definitions = String::new();
            for number in 1..=count {
                let name = format!("{library}{number}");
                definitions += &format!("int {name}(void) {{ return {}; }}\n", value(&name));
            }
            let source = dir.path().join("library.c");
            fs::write(&source, definitions)?;
            let mut cc = Command::new("cc");
            cc.args(["-shared", "-fPIC", "-o"])
                .arg(dir.path().join(format!("lib{library}.so.1")));
            succeed(cc.arg(source))?;
        }
        let host = dir.path().join("host.c");
        fs::write(
            &host,
            "#include <dlfcn.h>\n#include <stdio.h>\nint main(int n, char **a)\n{\n void *h = dlopen(a[n - 1], RTLD_NOW);\n \
             if (!h)\n  return puts(dlerror());\n int (*f)(void) = (int (*)(void))dlsym(h, \"entry\");\n \
             return f() + dlclose(h);\n}\n",
        )?;
        let mut cc = Command::new("cc");
        succeed(
            cc.arg(host)
                .args(["-ldl", "-o"])
                .arg(dir.path().join("host")),
        )?;
        Ok(Self { dir, sources })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Links an image with the archives of `packages`.
    fn link(&self, packages: &[&str], calls: &[&str], flags: &[&str]) -> Result<(Ran, PathBuf)> {
        let calls: String = calls.iter().map(|name| format!("CALL({name})\n")).collect();
        fs::write(self.path("calls.inc"), calls)?;
        let image = self.path("image");
        let mut cc = Command::new("cc");
        cc.arg("-I")
            .arg(&self.sources)
            .arg("-I")
            .arg(self.dir.path());
        cc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/merged.c"));
        cc.arg("-Wl,--whole-archive");
        cc.args(packages.iter().map(|name| self.path(&format!("{name}.a"))));
        cc.args([
            "-Wl,--no-whole-archive",
            "-fvisibility=hidden",
            "-O1",
            "-ldl",
            "-o",
        ]);
        Ok((run(cc.arg(&image).args(flags))?, image))
    }

    /// Links and runs every case, as a program and as a shared library, with and without collection.
    fn check(&self, linker: &str, more: &[&str]) -> Result<()> {
        for (case, packages, calls) in CASES {
            for (shared, collect) in [(false, true), (false, false), (true, true), (true, false)] {
                let linker = format!("-fuse-ld={linker}");
                let mut flags = vec![linker.as_str(), "-DAPI"];
                flags.extend(more);
                if shared {
                    flags.extend(["-shared", "-fPIC", "-DSHARED"]);
                }
                if collect {
                    flags.push("-Wl,--gc-sections");
                }
                let context = format!("{case}, {flags:?}");
                let (linked, image) = self.link(packages, calls, &flags)?;
                linked.success().map_err(|e| format!("{context}: {e:?}"))?;
                let mut command = if shared {
                    Command::new(self.path("host"))
                } else {
                    Command::new(&image)
                };
                let ran = succeed(command.arg(&image))?;
                assert_eq!(ran.stdout, expected(packages, calls, collect), "{context}");
                check_image(&image, packages.len(), calls.len(), collect)
                    .map_err(|e| format!("{context}: {e:?}"))?;
            }
        }
        Ok(())
    }
}

/// Output of the image.
fn expected(packages: &[&str], calls: &[&str], collect: bool) -> String {
    let mut text: String = calls
        .iter()
        .map(|name| format!("{} ", value(name)))
        .collect();
    for library in ["trap", "other"] {
        let mut functions: Vec<&str> = PACKAGES
            .into_iter()
            .filter(|(name, ..)| packages.contains(name))
            .flat_map(|(_, trap, other)| if library == "trap" { trap } else { other })
            .copied()
            .collect();
        functions.sort_unstable();
        functions.dedup();
        let is_known = !functions.is_empty();
        functions.retain(|name| !collect || calls.contains(name));
        text += &if is_known {
            format!("{library} {} 0 0, ", functions.len())
        } else {
            format!("{library} unknown, ")
        };
    }
    text + "0 writable\n"
}

/// An image has one exit hook, one slow path and, after collection, one run time. It exports nothing.
fn check_image(image: &Path, packages: usize, calls: usize, collect: bool) -> Result<()> {
    let rows = symbols("--symbols", image)?;
    for (name, count) in [
        ("find_library", if collect { 1 } else { packages }),
        ("gpustub1_slow", usize::from(!collect || calls > 0)),
        ("gpustub1_on_exit", 1),
    ] {
        let definitions = rows.iter().filter(|row| row.name == name).count();
        assert_eq!(definitions, count, "{name}");
    }
    for row in symbols("--dyn-syms", image)? {
        for word in ["gpustub", "trap", "other"] {
            assert!(!row.name.contains(word), "{} is exported", row.name);
        }
    }
    let sections = readelf(&["--sections"], image)?;
    let size = sections
        .lines()
        .find_map(|line| line.split_once(" FINI_ARRAY "))
        .and_then(|(_, rest)| rest.split_whitespace().nth(2))
        .ok_or("no hooks")?;
    // The C compiler's own, and ours.
    assert_eq!(u64::from_str_radix(size, 16)?, 16);
    Ok(())
}

#[test]
fn packages_share_an_image() -> Result<()> {
    Rig::new()?.check("bfd", &[])?;
    // Sections of several objects are then mixed.
    Rig::new()?.check("bfd", &["-Wl,--sort-section=name"])
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn packages_share_an_image_with_other_linkers() -> Result<()> {
    let rig = Rig::new()?;
    for linker in ["gold", "lld", "mold"] {
        rig.check(linker, &[])?;
    }
    rig.check("lld", &["-Wl,-z,nostart-stop-gc"])
}

/// A program that only asks knows its package's libraries, also with lld, which collects sections that only
/// start and stop symbols refer to: those of a second package.
#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn queries_know_libraries_of_which_no_function_is_used() -> Result<()> {
    let rig = Rig::with(Stubs::write_for_cargo)?;
    for linker in ["bfd", "gold", "lld", "mold"] {
        let flag = format!("-fuse-ld={linker}");
        for packages in [&["a"][..], &["a", "b"]] {
            let (linked, image) =
                rig.link(packages, &[], &[&flag, "-DAPI", "-Wl,--gc-sections"])?;
            linked.success()?;
            let known = if linker == "lld" { &["a"] } else { packages };
            let output = succeed(&mut Command::new(&image))?.stdout;
            assert_eq!(output, expected(known, &[], true), "{linker} {packages:?}");
        }
    }
    Ok(())
}

/// Stubs of cudart for headers of this version, as one archive per package.
fn cudart(dir: &Path, header: &str) -> Result<PathBuf> {
    let manifest = format!("schema = 1\n[stub.cudart]\nheader-version = \"{header}\"\n");
    let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
    let package = dir.join(header);
    fs::create_dir(&package)?;
    Stubs::write(&package, &plan, "cc", &[])?.archive()
}

const VERSIONS: &str =
    "gpustub_error_incompatible_header_versions_of_cudart__see_header_version_in_GpuStub_toml";
const LACKS: &str =
    "gpustub_error_some_packages_lack_header_version_of_cudart__see_header_version_in_GpuStub_toml";
const INTERFACES: &str =
    "gpustub_error_incompatible_gpustub_versions__update_gpustub_build_in_both_packages";

/// Pairs of packages: the linker's error names the key of `GpuStub.toml`.
fn incompatible_packages_are_reported(linkers: &[&str]) -> Result<()> {
    let dir = scratch()?;
    let mut archives = Vec::new();
    for header in ["11.7", "11.8", "12", "12.4", "13", "none"] {
        archives.push((header, cudart(dir.path(), header)?));
    }
    // A package of another interface version.
    let sources = dir.path().join("12").join(SOURCES);
    let object = dir.path().join("other.o");
    let stubs = fs::read_to_string(sources.join("elf_table.h"))?;
    fs::write(
        sources.join("elf_table.h"),
        stubs.replace("gpustub_interface_2", "gpustub_interface_3"),
    )?;
    let mut cc = Command::new("cc");
    cc.current_dir(&sources).args(["-c", "stubs.S", "-o"]);
    succeed(cc.arg(&object))?;
    archives.push(("interface", object));

    let main = dir.path().join("main.c");
    fs::write(
        &main,
        "int cudaFree(void *); int main(void) { return cudaFree(0) != 35; }",
    )?;
    for (first, second, error) in [
        ("12", "12.4", None),
        ("11.7", "11.8", Some(VERSIONS)),
        ("12", "13", Some(VERSIONS)),
        ("12", "none", Some(LACKS)),
        ("12", "interface", Some(INTERFACES)),
    ] {
        for linker in linkers {
            let mut cc = Command::new("cc");
            cc.arg(&main).arg("-Wl,--whole-archive");
            for (header, archive) in &archives {
                if [first, second].contains(header) {
                    cc.arg(archive);
                }
            }
            cc.args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-ldl", "-o"]);
            let program = dir.path().join("program");
            let ran = run(cc.arg(&program).arg(format!("-fuse-ld={linker}")))?;
            assert_eq!(
                ran.status.success(),
                error.is_none(),
                "{linker}, {first}, {second}: {ran:?}"
            );
            // One duplicate symbol, whose name says what to do.
            for name in [VERSIONS, LACKS, INTERFACES] {
                assert_eq!(
                    ran.stderr.contains(name),
                    error == Some(name),
                    "{linker}: {ran:?}"
                );
            }
            if error.is_none() {
                succeed(&mut Command::new(&program))?;
            } else if *linker == "lld" {
                assert_eq!(ran.stderr.matches("duplicate symbol").count(), 1, "{ran:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn incompatible_packages_do_not_link() -> Result<()> {
    incompatible_packages_are_reported(&["bfd"])
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn incompatible_packages_do_not_link_with_other_linkers() -> Result<()> {
    incompatible_packages_are_reported(&["gold", "lld", "mold"])
}

/// Two packages in a program that calls none of their functions: at most so many bytes remain.
fn unused_packages_leave_the_exit_hook(linkers: &[(&str, u64)]) -> Result<()> {
    let dir = scratch()?;
    let mut archives = Vec::new();
    for (name, manifest) in [
        ("one", "[stub.cudart]\nheader-version = \"12\"\n"),
        (
            "two",
            "[stub.cudart]\nheader-version = \"12\"\n[stub.nvml]\n",
        ),
    ] {
        let manifest = format!("schema = 1\n{manifest}");
        let plan = plan_or_fail(&manifest, &[], &Machine::X86_64.target())?;
        let package = dir.path().join(name);
        fs::create_dir(&package)?;
        archives.push(Stubs::write_for_cargo(&package, &plan)?.archive()?);
    }
    let main = dir.path().join("main.c");
    fs::write(&main, "int main(void) { return 0; }")?;
    for (linker, limit) in linkers {
        let with_stubs = size_without_run_time(&main, &archives, linker)?;
        let bytes = with_stubs - size_without_run_time(&main, &[], linker)?;
        println!("{linker}: two packages without a used function leave {bytes} bytes");
        assert!(bytes <= *limit, "{linker}: {bytes} bytes");
    }
    Ok(())
}

/// Loaded bytes of a program with these archives, which must have no run time.
fn size_without_run_time(main: &Path, archives: &[PathBuf], linker: &str) -> Result<u64> {
    let program = main.with_file_name("program");
    let mut cc = Command::new("cc");
    cc.arg(main).arg("-Wl,--whole-archive").args(archives);
    cc.args(["-Wl,--no-whole-archive", "-Wl,--gc-sections", "-ldl", "-o"]);
    succeed(cc.arg(&program).arg(format!("-fuse-ld={linker}")))?;
    succeed(&mut Command::new(&program))?;
    let rows = symbols("--symbols", &program)?;
    let has_run_time = rows.iter().any(|row| row.name == "find_library");
    assert!(!has_run_time, "{linker}: a run time");
    super::size::loaded_bytes(&program)
}

#[test]
fn unused_packages_leave_no_run_time() -> Result<()> {
    unused_packages_leave_the_exit_hook(&[("bfd", 200)])
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn unused_packages_leave_no_run_time_with_other_linkers() -> Result<()> {
    // gold keeps the run time's undefined symbols, and mold every section with start/stop symbols: the
    // parts, and the tables to which they point.
    unused_packages_leave_the_exit_hook(&[("lld", 200), ("gold", 4096), ("mold", 36864)])
}

/// The symbols of an archive that other archives may define or use as well.
fn shared_symbols(machine: Machine) -> Result<BTreeSet<String>> {
    let dir = scratch()?;
    let manifest = "schema = 1\n[stub.cudart]\nheader-version = \"12\"\n";
    let plan = plan_or_fail(manifest, &[], &machine.target())?;
    let stubs = Stubs::write(dir.path(), &plan, &machine.compiler("c"), &[])?;
    let functions: BTreeSet<&str> = plan.libraries[1]
        .functions
        .iter()
        .map(|function| function.name.as_str())
        .collect();
    let mut shared = BTreeSet::new();
    for row in symbols("--symbols", &stubs.archive()?)? {
        let name = row.name.as_str();
        let is_local = row.binding == "LOCAL" || row.section == "UND";
        if is_local || functions.contains(name) || name.starts_with("gpustub_error_") {
            continue;
        }
        let name = match name.strip_prefix("gpustub1_") {
            Some(rest) if rest.starts_with("errors_") => "gpustub1_errors_<library>",
            Some(rest) if rest.starts_with("family_") => "gpustub1_family_<family>",
            Some(rest) if rest.starts_with("library_") => "gpustub1_library_<library>_<hash>",
            Some(rest) if rest.starts_with("note_") => "gpustub1_note_<library>",
            Some(rest) if rest.starts_with("state_") => "gpustub1_state_<library>",
            Some(rest) if rest.starts_with("targets_") => "gpustub1_targets_<function>",
            Some(rest) if rest.starts_with("adapter_") => "gpustub1_adapter_<function>_<code>",
            _ => name,
        };
        assert_eq!(row.visibility, "HIDDEN", "{name}");
        shared.insert(format!("{} {name}", row.binding));
    }
    Ok(shared)
}

fn listed_symbols() -> Result<BTreeSet<String>> {
    let list = fs::read_to_string(repository().join("tests/entry-points.txt"))?;
    Ok(list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect())
}

/// Stubs and run time may come from packages of different versions of gpustub.
#[test]
fn entry_points_of_an_interface_version_are_fixed() -> Result<()> {
    let mut listed = listed_symbols()?;
    // Only AArch64 needs it.
    assert!(listed.remove("WEAK gpustub1_has_sve"));
    assert_eq!(shared_symbols(Machine::X86_64)?, listed);
    Ok(())
}

#[test]
#[ignore = "needs a cross compiler: ./tests/run"]
fn entry_points_of_an_interface_version_are_fixed_on_aarch64() -> Result<()> {
    assert_eq!(shared_symbols(Machine::Aarch64)?, listed_symbols()?);
    Ok(())
}
