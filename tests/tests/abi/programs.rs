//! Fake libraries and callers of one library: how they are built and run.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gpustub_core::library::{Library, override_variable};
use gpustub_core::symbols::{Symbol, SymbolList};
use gpustub_core::version::Version;
use gpustub_tests::command::succeed;
use gpustub_tests::stubs::{Machine, Stubs, plan_or_fail};
use gpustub_tests::{Result, components, elf, repository};

mod libraries;

pub use libraries::*;

/// Library under test, with the versions and modes to try.
pub struct Programs {
    pub id: &'static str,
    /// Versions of the headers that callers are compiled with.
    headers: &'static [&'static str],
    libraries: &'static [&'static str],
    /// Whether all versions of the ABI table are tried instead (`cargo xtask abi-programs --all`).
    all_versions: bool,
    /// Sonames of the libraries, from a version on.
    sonames: &'static [(Version, &'static str)],
    /// Component with the headers of a version, and the name of one header.
    component: (&'static str, &'static str),
    /// Components whose headers these include, by version, and the name of one of them.
    needs: Option<(&'static [(&'static str, &'static str)], &'static str)>,
    defines: &'static [&'static str],
    pub modes: &'static [Mode],
    /// Libraries whose search is disabled.
    off: &'static [&'static str],
    /// Shapes (`shapes.rs`) that no unchanged function of the library has: those of
    /// `xtask/programs/shapes.h` are tried instead.
    pub made_up: &'static [&'static [&'static str]],
}

/// Suffix of a caller's name, and the flags of that mode.
pub type Mode = (&'static str, &'static [&'static str]);

impl Programs {
    /// The same, with all versions of the ABI table.
    pub fn of_all_versions(self) -> Self {
        Self {
            all_versions: true,
            ..self
        }
    }

    fn versions(&self, selected: &[&str]) -> Vec<Version> {
        let shipped = Library::builtin(self.id).map(|library| library.abi.headers());
        match shipped {
            Some(versions) if self.all_versions => versions.to_vec(),
            _ => selected
                .iter()
                .filter_map(|text| Version::parse(text))
                .collect(),
        }
    }

    /// Versions of the headers that callers are compiled with.
    pub fn headers(&self) -> Vec<Version> {
        self.versions(self.headers)
    }

    /// Versions of the fake libraries, and their files below a directory.
    pub fn libraries(&self, dir: &Path) -> Vec<(Version, PathBuf)> {
        self.versions(self.libraries)
            .into_iter()
            .map(|version| {
                let sonames = self.sonames.iter().rev();
                let soname = sonames
                    .filter(|(from, _)| *from <= version)
                    .map(|(_, name)| *name)
                    .next();
                let directory = dir.join(version.to_string());
                (version, directory.join(soname.unwrap_or_default()))
            })
            .collect()
    }

    /// Writes the sources of callers, and the fake libraries.
    pub fn write(&self, dir: &Path) -> Result<()> {
        let (directory, _) = self.component;
        let components = components::component(&format!("{directory}{}", self.headers()[0]))?;
        let root = components
            .ancestors()
            .nth(Path::new(directory).components().count());
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .current_dir(repository())
            .args(["run", "--quiet", "--offline", "--package", "xtask", "--"])
            .arg("abi-programs")
            .arg(dir)
            .arg(self.id)
            .args(self.all_versions.then_some("--all"))
            .arg("--components")
            .arg(root.unwrap_or(&components));
        succeed(&mut cargo)?;
        for (version, library) in self.libraries(dir) {
            let soname = library.file_name().unwrap_or_default().to_string_lossy();
            fs::create_dir_all(library.parent().unwrap_or(dir))?;
            let mut cc = Command::new("cc");
            cc.current_dir(dir.join(self.id))
                .args(["-O1", "-shared", "-fPIC"]);
            cc.arg(format!("-Wl,-soname,{soname}"));
            cc.arg(format!("-Wl,--version-script=fake-{version}.map"));
            cc.arg("-o").arg(&library);
            succeed(cc.arg(format!("fake-{version}.c")))?;
        }
        Ok(())
    }

    /// Symbol list of the stubs: the shipped one, and the invented functions of the fake libraries.
    pub fn symbols(&self, dir: &Path, shipped: &Library) -> Result<SymbolList> {
        let (_, library) = &self.libraries(dir)[0];
        let mut list = shipped.symbols.clone();
        let names = exported(library)?;
        let made_up = names.into_iter().filter(|name| name.starts_with(MADE_UP));
        list.symbols.extend(made_up.map(|name| Symbol {
            name,
            ..Symbol::default()
        }));
        list.normalise();
        Ok(list)
    }

    /// Directories of the real headers of a version.
    fn includes(&self, version: Version) -> Result<Vec<PathBuf>> {
        let (directory, header) = self.component;
        let mut directories = vec![Self::include(&format!("{directory}{version}"), header)?];
        if let Some((needs, header)) = self.needs {
            let (_, component) = (needs.iter())
                .find(|(needing, _)| *needing == version.to_string())
                .ok_or_else(|| format!("no headers for {version}"))?;
            directories.push(Self::include(component, header)?);
        }
        Ok(directories)
    }

    fn include(component: &str, header: &str) -> Result<PathBuf> {
        let component = components::component(component)?;
        let mut find = Command::new("find");
        find.arg(&component).arg("-path").arg(format!("*/{header}"));
        let paths = succeed(&mut find)?.stdout;
        let include = Path::new(paths.lines().next().unwrap_or_default())
            .ancestors()
            .nth(Path::new(header).components().count());
        Ok(include.unwrap_or(&component).to_owned())
    }

    /// Directory of a caller and its stubs.
    fn directory(dir: &Path, version: Version, mode: Mode, declared: bool) -> PathBuf {
        dir.join(format!("stubs-{version}{}-{declared}", mode.0))
    }

    /// A caller compiled against the headers of a version, with stubs that declare this version or
    /// none.
    pub fn caller(
        &self,
        dir: &Path,
        version: Version,
        mode: Mode,
        declared: bool,
        symbols: &SymbolList,
    ) -> Result<PathBuf> {
        let directory = Self::directory(dir, version, mode, declared);
        let stubs = self.stubs(dir, version, mode, declared, symbols)?;
        let (suffix, flags) = mode;
        let mut cc = Command::new("cc");
        cc.current_dir(dir.join(self.id))
            .args(["-O1", "-c", "-Wno-deprecated-declarations"])
            .args(self.defines)
            .args(flags);
        cc.arg("-isystem").arg(repository().join("xtask/headers"));
        for directory in self.includes(version)? {
            cc.arg("-isystem").arg(directory);
        }
        cc.arg("-o").arg(directory.join("caller.o"));
        cc.arg(format!("caller-{version}{suffix}.c"));
        succeed(&mut cc)?;
        Self::link(&directory, &stubs)
    }

    /// Sources of the stubs of a caller.
    pub fn stubs(
        &self,
        dir: &Path,
        version: Version,
        mode: Mode,
        declared: bool,
        symbols: &SymbolList,
    ) -> Result<Stubs> {
        let directory = Self::directory(dir, version, mode, declared);
        fs::create_dir_all(&directory)?;
        let header = if declared {
            format!("header-version = \"{version}\"\n")
        } else {
            "header-version = \"none\"\n".to_owned()
        };
        let manifest = format!(
            "schema = 1\n[stub.{}]\nsymbols = \"symbols\"\n{header}",
            self.id
        );
        let lists = [("symbols", symbols.to_text())];
        let plan = plan_or_fail(&manifest, &lists, &Machine::X86_64.target())?;
        Stubs::write(&directory, &plan, "cc", &[])
    }

    /// Compiles the stubs, and links them with the caller's object in a directory.
    pub fn link(directory: &Path, stubs: &Stubs) -> Result<PathBuf> {
        let program = directory.join("caller");
        let mut cc = Command::new("cc");
        cc.arg("-o").arg(&program).arg(directory.join("caller.o"));
        succeed(cc.arg(stubs.archive()?))?;
        Ok(program)
    }

    /// Runs a caller on a library, with each call or with the cases of a file. Returns its calls, and those
    /// that the library recorded.
    pub fn run(
        &self,
        dir: &Path,
        caller: &Path,
        library: &Path,
        cases: Option<&Path>,
    ) -> Result<(String, String)> {
        let log = dir.join("log");
        fs::write(&log, "")?;
        let mut command = Command::new(caller);
        command
            .env(override_variable(self.id), library)
            .envs(self.off.iter().map(|id| (override_variable(id), "off")))
            .envs(cases.map(|file| ("GPUSTUB_TEST_CASES", file)))
            .env("GPUSTUB_TEST_FAKE_LOG", &log);
        let printed = succeed(&mut command)?.stdout;
        Ok((printed, fs::read_to_string(&log)?))
    }
}

/// Name prefix of invented functions.
pub const MADE_UP: &str = "shape_";

/// Functions that a fake library exports.
pub fn exported(library: &Path) -> Result<BTreeSet<String>> {
    let rows = elf::symbols("--dyn-syms", library)?;
    Ok(rows
        .into_iter()
        .filter(|row| row.section != "UND")
        .map(|row| row.name.split('@').next().unwrap_or_default().to_owned())
        .collect())
}

/// Call of a caller.
pub struct Call<'t> {
    /// Name that was linked.
    pub name: &'t str,
    /// Shape of the call, in the words of `shapes.rs`.
    pub shape: &'t str,
    /// Arguments, as the fake library prints them; `None` if it was not called.
    pub arguments: Option<&'t str>,
    /// `STATUS filled`, `STATUS untouched`, …
    pub result: &'t str,
}

pub fn calls(printed: &str) -> impl Iterator<Item = Call<'_>> {
    printed.split("call ").skip(1).map(|call| {
        let mut lines = call.lines();
        let names = lines.next().unwrap_or_default();
        let rest: Vec<&str> = lines.collect();
        let mut names = names.split(' ').skip(1);
        let name = names.next().unwrap_or_default();
        let arguments = rest.iter().find_map(|line| line.strip_prefix("passed "));
        Call {
            name,
            shape: names.next().unwrap_or_default(),
            arguments: arguments.map(|line| line.strip_prefix(name).unwrap_or(line)),
            result: rest.last().copied().unwrap_or_default(),
        }
    })
}
