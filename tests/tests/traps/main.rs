//! Traps that lazy stubs fall into, one trial per case of `traps/cases.toml` and machine.
//!
//! Each trial builds a library for a trap, reads its symbols, generates stubs for it, links a
//! program with them, and runs it. The libraries are fakes on purpose: each replaces a library with
//! one particular behaviour (a constructor that disturbs registers, a function at an odd address).
//! Other tests use the real libraries.

mod system;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use gpustub_core::library::Returns;
use gpustub_core::symbols::SymbolList;
use gpustub_image::{SymbolRequirements, read_symbols_file};
use gpustub_tests::command::{Ran, run, succeed};
use gpustub_tests::components::component;
use gpustub_tests::scratch::scratch;
use gpustub_tests::stubs::{Machine, SOURCES, Stubs, plan_or_fail, trap_manifest, with_abi_table};
use gpustub_tests::{Result, repository};
use libtest_mimic::{Arguments, Completion, Trial};
use serde::Deserialize;

use system::{cpu_has, is_root, linkers};

/// Trap case. Its directory below `traps/` is the name up to the first `/`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Case {
    /// Failure of lesser stubs.
    trap: String,
    /// Machines of the case; none: all.
    #[serde(default)]
    machines: Vec<Machine>,
    /// Machines that the case is not for, since a tool does not know them.
    #[serde(default)]
    except: Vec<Machine>,
    /// Runs on each machine in the plain test run; on machines other than the first two, most cases are for
    /// `tests/run --all`.
    #[serde(default)]
    plain: bool,
    /// Requirements beyond a C compiler; the cross compiler and the emulators are known.
    #[serde(default)]
    needs: Vec<String>,
    /// Feature of this machine's processor. Without it the trial is reported as skipped.
    cpu_feature: Option<String>,
    /// Compiler of library, stubs and program, instead of the default.
    compiler: Option<String>,
    /// Flags for library and program.
    #[serde(default)]
    flags: Vec<String>,
    /// Further flags on a machine.
    #[serde(default)]
    machine_flags: BTreeMap<Machine, Vec<String>>,
    #[serde(default)]
    library_flags: Vec<String>,
    #[serde(default)]
    stub_flags: Vec<String>,
    #[serde(default)]
    program_flags: Vec<String>,
    /// Further libraries, built in this order before the program.
    #[serde(default)]
    others: Vec<Other>,
    /// Builds the stubs as a shared library that exports them.
    #[serde(default)]
    shared: bool,
    /// Links the stubs of two packages: the first has every other function, the second all.
    #[serde(default)]
    merged: bool,
    /// Makes the program root's and runs it with root's rights for another user. Without root the
    /// trial is reported as skipped.
    #[serde(default)]
    set_user_id: bool,
    /// Removes the library before the program runs.
    #[serde(default)]
    missing: bool,
    /// Replaces the library before the program runs: compiles it again with these flags.
    #[serde(default)]
    replacement_flags: Vec<String>,
    /// Removes data from the symbol list, as its diagnostic requests.
    #[serde(default)]
    without_data: bool,
    /// Data of which the stubs have copies.
    #[serde(default)]
    copied: Vec<String>,
    /// Functions that change this data, with the indexes of their callbacks.
    #[serde(default)]
    updates: BTreeMap<String, u8>,
    /// Variables for the program; `{dir}` is its directory.
    #[serde(default)]
    environment: BTreeMap<String, String>,
    /// Component that is the emulator, where the system's lacks an extension.
    emulator: Option<String>,
    /// Processor model of the emulator.
    emulate: Option<String>,
    /// Command that runs the program: `{program}` is its path.
    #[serde(default)]
    runner: Vec<String>,
    /// Number of runs of the program.
    #[serde(default = "once")]
    times: usize,
    /// Texts of the standard output, in this order.
    #[serde(default = "passed")]
    output: Vec<String>,
    /// Number of reports on the standard error, which otherwise stays empty.
    #[serde(default)]
    reports: usize,
    /// Requested texts of the standard error, in this order.
    errors: Option<Vec<String>>,
    /// Texts that the standard error lacks.
    #[serde(default)]
    unwanted: Vec<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Other {
    source: String,
    output: String,
    #[serde(default)]
    flags: Vec<String>,
}

fn once() -> usize {
    1
}

fn passed() -> Vec<String> {
    vec!["passed\n".to_owned()]
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let directory = repository().join("tests/traps");
    let text = fs::read_to_string(directory.join("cases.toml")).expect("tests/traps/cases.toml");
    let cases: BTreeMap<String, Case> = match toml::from_str(&text) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("tests/traps/cases.toml: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = Vec::new();
    for (name, case) in cases {
        let machines = if case.machines.is_empty() {
            Machine::ALL
        } else {
            &case.machines
        };
        for &machine in machines.iter().filter(|one| !case.except.contains(one)) {
            let is_cxx = Work::new(&directory, &name, &case, machine).language() == "c++";
            if machine != Machine::Musl || !is_cxx {
                trials.push(trial(&directory, &name, &case, machine));
            }
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn trial(directory: &Path, name: &str, case: &Case, machine: Machine) -> Trial {
    let work = Work::new(directory, name, case, machine);
    let mut needs = case.needs.clone();
    if work.language() == "c++" {
        needs.push("a C++ compiler".to_owned());
    }
    let is_cross = machine.gnu_triple().is_some();
    if case.emulate.is_some() || is_cross {
        needs.push("qemu-user".to_owned());
    }
    if machine == Machine::Musl {
        needs.push("musl-tools".to_owned());
    }
    if is_cross {
        needs.push("a cross compiler".to_owned());
    }
    let ignored = !needs.is_empty();
    let kind = if ignored {
        format!("needs {}: ./tests/run", needs.join(", "))
    } else {
        String::new()
    };
    if machine == Machine::Loongarch64 {
        needs.push("newer Debian packages".to_owned());
    }
    let is_plain = case.plain && machine != Machine::Loongarch64
        || [Machine::X86_64, Machine::Aarch64].contains(&machine) && case.emulator.is_none();
    let heavy = if is_plain { "" } else { "heavy_" };
    Trial::ignorable_test(format!("{heavy}{}/{name}", machine.label()), move || {
        work.run().map_err(|failure| failure.0.into())
    })
    .with_kind(kind)
    .with_ignored_flag(ignored)
}

/// Case on a machine.
struct Work {
    source: PathBuf,
    case: Case,
    machine: Machine,
}

impl Work {
    fn new(directory: &Path, name: &str, case: &Case, machine: Machine) -> Self {
        Self {
            source: directory.join(name.split('/').next().unwrap_or(name)),
            case: case.clone(),
            machine,
        }
    }

    fn run(&self) -> Result<Completion> {
        if let Some(feature) = &self.case.cpu_feature
            && !cpu_has(feature)?
        {
            return Ok(Completion::ignored_with(format!(
                "this processor has no {feature}"
            )));
        }
        if self.case.set_user_id && !is_root()? {
            return Ok(Completion::ignored_with(
                "only root can make such a program",
            ));
        }
        let dir = self.directory()?;
        self.build_and_run(dir.path())
            .map_err(|failure| format!("{failure:?}\n  trap: {}", self.case.trap))?;
        Ok(Completion::Completed)
    }

    /// Directory of all built files.
    fn directory(&self) -> Result<tempfile::TempDir> {
        if !self.case.set_user_id {
            return scratch();
        }
        // Another user runs the program, and might have no access to the target directory.
        let dir = tempfile::tempdir()?;
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755))?;
        Ok(dir)
    }

    fn build_and_run(&self, dir: &Path) -> Result<()> {
        let library = self.library(dir, &[])?;
        let list = self.symbols(&library)?;
        let mut archives = Vec::new();
        if self.case.merged {
            let mut half = list.clone();
            half.symbols = half.symbols.into_iter().step_by(2).collect();
            let first = dir.join("first");
            fs::create_dir(&first)?;
            archives.push(self.stubs(&first, &half)?.archive()?);
        }
        let stubs = self.stubs(dir, &list)?;
        if self.case.shared {
            let shared = stubs.shared(dir, "shared")?;
            archives.extend([shared.link_library, shared.client]);
        } else {
            archives.push(stubs.archive()?);
        }
        for other in &self.case.others {
            let output = dir.join(&other.output);
            fs::create_dir_all(output.parent().unwrap_or(dir))?;
            let mut command = self.compile(dir, "c");
            command
                .args(["-shared", "-fPIC"])
                .arg(self.source.join(&other.source));
            command
                .args(["-o", &other.output])
                .args(self.placed(&other.flags, dir));
            succeed(&mut command)?;
        }
        let program = self.program(dir, &archives)?;
        if self.case.set_user_id {
            fs::set_permissions(&program, fs::Permissions::from_mode(0o4755))?;
        }
        if self.case.missing {
            fs::remove_file(&library).map_err(|e| format!("{}: {e}", library.display()))?;
        } else if !self.case.replacement_flags.is_empty() {
            self.library(dir, &self.case.replacement_flags)?;
        }
        for _ in 0..self.case.times {
            self.check(run(&mut self.command(dir, &program))?)?;
        }
        Ok(())
    }

    /// Stubs of the library, with these functions.
    fn stubs(&self, dir: &Path, list: &SymbolList) -> Result<Stubs> {
        let lists = [("trap.symbols", list.to_text())];
        let target = self.machine.target();
        let abi = self.source.join("trap.abi");
        let plan = if abi.exists() {
            let manifest = trap_manifest("header-version = \"1.0\"");
            let mut plan = plan_or_fail(&manifest, &lists, &target)?;
            with_abi_table(&mut plan, &fs::read_to_string(abi)?)?;
            plan
        } else {
            plan_or_fail(&trap_manifest(""), &lists, &target)?
        };
        let stubs = Stubs::write(dir, &plan, &self.compiler("c"), &self.case.stub_flags)?;
        stubs.add_adapters(&self.source)?;
        Ok(stubs)
    }

    fn check(&self, ran: Ran) -> Result<()> {
        let output: Vec<&str> = self.case.output.iter().map(String::as_str).collect();
        let ran = ran.success()?.expect_in_order(&output)?;
        let reports = ran
            .stderr
            .lines()
            .filter(|line| line.contains("libtrap.so.1"))
            .count();
        if reports != self.case.reports {
            return Err(ran.error(&format!("{reports} reports, not {}", self.case.reports)));
        }
        if let Some(text) = self.case.unwanted.iter().find(|t| ran.stderr.contains(*t)) {
            return Err(ran.error(&format!("{text:?} is on standard error")));
        }
        if let Some(errors) = &self.case.errors {
            let mut rest = ran.stderr.as_str();
            for error in errors {
                match rest.split_once(error.as_str()) {
                    Some((_, after)) => rest = after,
                    None => {
                        return Err(ran.error(&format!("{error:?} is missing on standard error")));
                    }
                }
            }
        } else if self.case.reports == 0 && self.case.runner.is_empty() && !ran.stderr.is_empty() {
            return Err(ran.error("unexpected output"));
        }
        Ok(())
    }

    fn language(&self) -> &'static str {
        if self.source.join("main.cc").exists() {
            "c++"
        } else {
            "c"
        }
    }

    fn compiler(&self, language: &str) -> String {
        match &self.case.compiler {
            Some(compiler) => compiler.clone(),
            None => self.machine.compiler(language),
        }
    }

    /// Compiler command in `dir`, with the common options.
    fn compile(&self, dir: &Path, language: &str) -> Command {
        let mut command = Command::new(self.compiler(language));
        command
            .current_dir(dir)
            .args(["-O1", "-g", "-D_GNU_SOURCE", "-Wall", "-Wextra"])
            .arg("-fasynchronous-unwind-tables"); // not every machine's default
        command
            .arg("-I")
            .arg(self.source.parent().unwrap_or(&self.source));
        command.arg("-I").arg(dir.join(SOURCES));
        if self.machine == Machine::Musl {
            command.arg("-DNO_FRAMES"); // no <execinfo.h>
        }
        command.args(&self.case.flags);
        command.args(
            self.case
                .machine_flags
                .get(&self.machine)
                .into_iter()
                .flatten(),
        );
        command
    }

    fn library(&self, dir: &Path, flags: &[String]) -> Result<PathBuf> {
        let language = self.language();
        let source = self
            .source
            .join(if language == "c" { "lib.c" } else { "lib.cc" });
        let mut command = self.compile(dir, language);
        command.args(["-shared", "-fPIC", "-Wl,-soname,libtrap.so.1", "-pthread"]);
        let map = self.source.join("lib.map");
        if map.exists() {
            command.arg(format!("-Wl,--version-script={}", map.display()));
        }
        command
            .arg(source)
            .args(["-o", "libtrap.so.1"])
            .args(&self.case.library_flags)
            .args(flags);
        succeed(&mut command)?;
        Ok(dir.join("libtrap.so.1"))
    }

    fn symbols(&self, library: &Path) -> Result<SymbolList> {
        let options = SymbolRequirements {
            expect_machine: Some(self.machine.name()),
            require: &[],
        };
        let mut list = read_symbols_file(library, options)?;
        if self.case.without_data {
            list.symbols.retain(|symbol| !symbol.kind.is_data());
        }
        let functions = list.symbols.iter_mut();
        for function in functions.filter(|symbol| !symbol.kind.is_data()) {
            function.returns = Some(Returns::Status);
        }
        for symbol in &mut list.symbols {
            symbol.copied = self.case.copied.contains(&symbol.name);
            symbol.callback = self.case.updates.get(&symbol.name).copied();
            symbol.updates = symbol.callback.is_some();
        }
        Ok(list)
    }

    fn program(&self, dir: &Path, stubs: &[PathBuf]) -> Result<PathBuf> {
        let language = self.language();
        let source = self
            .source
            .join(if language == "c" { "main.c" } else { "main.cc" });
        let mut command = self.compile(dir, language);
        // All members of all packages, as cargo links them.
        command.arg(source).arg("-Wl,--whole-archive").args(stubs);
        command.args(["-Wl,--no-whole-archive", "-o", "program", "-pthread"]);
        if self.case.shared || !self.case.others.is_empty() {
            command.arg("-Wl,-rpath,$ORIGIN");
        }
        command.args(self.machine.link_flags());
        if self.machine.gnu_triple().is_some() {
            command.arg(format!("-B{}", linkers(dir)?.display()));
        }
        command.args(self.placed(&self.case.program_flags, dir));
        succeed(&mut command)?;
        Ok(dir.join("program"))
    }

    fn command(&self, dir: &Path, program: &Path) -> Command {
        let mut words = self.machine.emulator();
        if words.is_empty() && self.case.emulate.is_some() {
            words.push("qemu-x86_64".to_owned());
        }
        if let Some(emulator) = &self.case.emulator {
            // The error of a run names a missing file, and how to install it.
            let path = component(emulator).unwrap_or_else(|_| emulator.into());
            words[0] = path.to_string_lossy().into_owned();
        }
        if let Some(model) = &self.case.emulate {
            words.extend(["-cpu".to_owned(), model.clone()]);
        }
        if self.case.set_user_id {
            let unprivileged = [
                "setpriv",
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
            ];
            words.extend(unprivileged.map(str::to_owned));
        }
        if self.case.runner.is_empty() {
            words.push("{program}".to_owned());
        }
        words.extend(self.case.runner.iter().cloned());
        let words = words
            .iter()
            .map(|word| word.replace("{program}", &program.to_string_lossy()));
        let mut words = words.collect::<Vec<_>>().into_iter();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words).current_dir(dir);
        for (name, value) in &self.case.environment {
            command.env(name, self.place(value, dir));
        }
        command
    }

    /// Words of a case with `{dir}`, the directory of the program, and `{source}` filled in.
    fn placed<'a>(
        &'a self,
        words: &'a [String],
        dir: &'a Path,
    ) -> impl Iterator<Item = String> + 'a {
        words.iter().map(|word| self.place(word, dir))
    }

    fn place(&self, word: &str, dir: &Path) -> String {
        word.replace("{dir}", &dir.to_string_lossy())
            .replace("{sources}", &dir.join(SOURCES).to_string_lossy())
            .replace("{source}", &self.source.to_string_lossy())
    }
}
