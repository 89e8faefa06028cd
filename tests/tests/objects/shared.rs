//! Stubs as a shared library, with each linker: what binds to them, and which library `gpustub.h` asks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_engine::toolchain::shared::SharedStubs;
use gpustub_tests::Result;
use gpustub_tests::command::succeed;
use gpustub_tests::elf::symbols;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, SOURCES, Stubs, list_of, plan_functions, plan_or_fail};

use super::NAMES;

/// Names of the definitions of a library, with their versions.
fn exported(library: &Path) -> Result<Vec<String>> {
    let rows = symbols("--dyn-syms", library)?;
    let defined = rows
        .into_iter()
        .filter(|row| !["UND", "ABS"].contains(&row.section.as_str()));
    let mut names: Vec<String> = defined.map(|row| row.name).collect();
    names.sort_unstable();
    Ok(names)
}

/// Linkers give a program's references the default versions of one file, and the loader finds the hidden
/// ones of the other.
#[test]
fn shared_stubs_export_the_listed_names_and_a_table() -> Result<()> {
    let dir = scratch()?;
    let plan = plan_functions(NAMES, Machine::X86_64)?;
    let stubs = Stubs::write(dir.path(), &plan, "cc", &[])?;
    let shared = stubs.shared(dir.path(), "one-two")?;
    let all = |at: &str| {
        let names = NAMES
            .iter()
            .copied()
            .chain(["gpustub1_api_gpustub_one_two"]);
        let mut all: Vec<_> = names
            .map(|n| format!("{n}{at}GPUSTUB_gpustub_one_two"))
            .collect();
        all.sort_unstable();
        all
    };
    assert_eq!(exported(&shared.library)?, all("@"));
    assert_eq!(exported(&shared.link_library)?, all("@@"));
    Ok(())
}

/// musl finds no hidden version.
#[test]
#[ignore = "needs musl-tools: ./tests/run"]
fn exports_for_musl_are_default_versions() -> Result<()> {
    let dir = scratch()?;
    let mut plan = plan_functions(NAMES, Machine::X86_64)?;
    plan.target.env = "musl".to_owned();
    let shared = Stubs::write(dir.path(), &plan, "musl-gcc", &[])?.shared(dir.path(), "x")?;
    let names = exported(&shared.library)?;
    let functions: Vec<_> = names
        .iter()
        .filter_map(|name| name.split_once("@@"))
        .collect();
    for name in NAMES {
        assert!(
            functions.iter().any(|(function, _)| *function == name),
            "{names:?}"
        );
    }
    Ok(())
}

/// Stubs of two packages and the images of `shared.c`.
struct Rig {
    dir: tempfile::TempDir,
    include: PathBuf,
}

impl Rig {
    fn new() -> Result<Self> {
        let dir = scratch()?;
        let include = dir.path().join("first").join(SOURCES);
        let rig = Self { dir, include };
        // Unversioned names are those of drivers.
        fs::write(rig.path("real.map"), "libtrap.so.1 { *; };")?;
        rig.image("libtrap.so.1", &["-DREAL", "-Wl,--version-script=real.map"])?;
        rig.image("libplain.so.1", &["-DREAL"])?;
        rig.image("libversioned.so", &["-DINNOCENT=versioned", "libtrap.so.1"])?;
        rig.image("libunversioned.so", &["-DINNOCENT=plain", "libplain.so.1"])?;
        Ok(rig)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Stubs of a package that has a library with these functions.
    fn stubs(&self, package: &str, library: &str, functions: &[&str]) -> Result<Stubs> {
        let manifest = format!(
            "schema = 1\n[stub.{library}]\nload-names = {{ linux = [\"libtrap.so.1\"] }}\n\
             symbols = \"s\"\nsearch-dirs = [\"$ORIGIN\"]\nfallback = {{ status = 77 }}\n"
        );
        let lists = [("s", list_of(functions))];
        let plan = plan_or_fail(&manifest, &lists, &Machine::X86_64.target())?;
        let own = self.path(package);
        fs::create_dir_all(&own)?;
        Stubs::write(&own, &plan, "cc", &[])
    }

    fn shared(&self, package: &str, library: &str, functions: &[&str]) -> Result<Vec<String>> {
        let stubs = self.stubs(package, library, functions)?;
        let shared: SharedStubs = stubs.shared(self.dir.path(), package)?;
        let client = self.path(&format!("{package}.o"));
        fs::rename(shared.client, &client)?;
        let files = [shared.link_library, client];
        Ok(files.map(|file| file.display().to_string()).to_vec())
    }

    fn compile(&self, output: &str, flags: &[&str]) -> Result<()> {
        let mut cc = Command::new("cc");
        cc.current_dir(self.dir.path()).arg("-I").arg(&self.include);
        cc.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/shared.c"));
        cc.args(["-Wl,-rpath,$ORIGIN", "-o", output]).args(flags);
        succeed(&mut cc).map(drop)
    }

    fn image(&self, output: &str, flags: &[&str]) -> Result<()> {
        let soname = format!("-Wl,-soname,{output}");
        let own = ["-shared", "-fPIC", "-w", &soname];
        self.compile(output, &[&own[..], flags].concat())
    }
}

/// The program's stubs are of two packages, one of them static if `is_mixed`. The libraries that need the
/// real ones come after the stubs in the scope.
fn libraries_do_not_answer_for_each_other(linkers: &[&str]) -> Result<()> {
    let rig = Rig::new()?;
    let first = rig.shared("first", "trap", &["trap1", "trap2"])?;
    let second = rig.shared("second", "other", &["other1"])?;
    let plugin = rig.shared("plugin", "trap", &["trap2"])?;
    let archive = rig.stubs("static", "other", &["other1"])?.archive()?;
    let archive = vec![archive.display().to_string(), "-ldl".to_owned()];
    for linker in linkers {
        let linker = format!("-fuse-ld={linker}");
        let plugin: Vec<&str> = plugin.iter().map(String::as_str).collect();
        rig.image(
            "libplugin.so",
            &[&["-DPLUGIN", &linker], &plugin[..]].concat(),
        )?;
        for stubs in [
            [&first, &second],
            [&second, &first],
            [&archive, &first],
            [&first, &archive],
        ] {
            for more in [
                &["-O1"][..],
                &["-Wl,--gc-sections"],
                &["-no-pie", "-Wl,--as-needed"],
            ] {
                let stubs = stubs
                    .iter()
                    .flat_map(|files| files.iter().map(String::as_str));
                let mut flags: Vec<&str> = stubs.collect();
                flags.extend(["libversioned.so", "libunversioned.so", &linker, "-ldl"]);
                flags.extend(more);
                rig.compile("program", &flags)?;
                let ours = symbols("--dyn-syms", &rig.path("program"))?;
                let mut ours = ours.iter().filter(|row| row.section != "UND");
                assert!(!ours.any(|row| row.name.contains("gpustub")), "{flags:?}");
                let mut program = Command::new(rig.path("program"));
                let ran = succeed(&mut program)?;
                let expected = "calls 1 2 11\nload 0 0 2\nothers 1 1\nplugin 1 of 2\n";
                assert_eq!(ran.stdout, expected, "{flags:?}");
                // The stubs answer 77, and libraries that need the real ones get those.
                let mut program = Command::new(rig.path("program"));
                program
                    .env("GPUSTUB_TRAP_PATH", "off")
                    .env("GPUSTUB_OTHER_PATH", "off");
                let ran = succeed(&mut program)?;
                let expected = "calls 77 77 77\nload 1 1 2\nothers 1 1\nplugin 0 of 0\n";
                assert_eq!(ran.stdout, expected, "{flags:?}");
            }
        }
    }
    Ok(())
}

#[test]
fn shared_stubs_do_not_answer_for_other_libraries() -> Result<()> {
    libraries_do_not_answer_for_each_other(&["bfd"])
}

#[test]
#[ignore = "needs lld, mold and gold: ./tests/run"]
fn shared_stubs_do_not_answer_for_other_libraries_with_other_linkers() -> Result<()> {
    libraries_do_not_answer_for_each_other(&["lld", "gold", "mold"])
}
