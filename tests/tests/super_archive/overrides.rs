//! `tests/cases/overrides.toml`: a program has the definitions of the first layer that has them, with every
//! linker, or the archive is not written.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::slice::SliceIndex;

use gpustub_archive::SuperArchive;
use gpustub_superarchive::{LayerId, Plan, Refusal, Request, Source, View, ViewId, WriteError};
use gpustub_tests::command::{run, succeed};
use gpustub_tests::scratch::scratch;
use gpustub_tests::{Result, repository};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Overrides {
    options: Vec<Vec<String>>,
    linkers: Vec<String>,
    cases: Vec<Case>,
    machines: Vec<Machine>,
    bitcode: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default = "c")]
    language: String,
    /// Compilers that it is for; none: all.
    #[serde(default)]
    compilers: Vec<String>,
    #[serde(default)]
    common_options: Vec<String>,
    #[serde(default)]
    interposable: bool,
    family: String,
    common: String,
    main: String,
    comes_to: Expected,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Machine {
    compiler: String,
    emulator: String,
    exit: String,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Family,
    Refused,
}

fn c() -> String {
    "c".to_owned()
}

impl Overrides {
    fn read() -> Result<Self> {
        let text = fs::read_to_string(repository().join("tests/cases/overrides.toml"))?;
        Ok(toml::from_str(&text)?)
    }
}

/// A compiler with options for all files.
struct Compiler<'c> {
    name: &'c str,
    options: &'c [String],
}

impl Case {
    fn is_for(&self, compiler: &str) -> bool {
        self.compilers.is_empty() || self.compilers.iter().any(|name| name == compiler)
    }

    fn compile(&self, compiler: &Compiler<'_>, dir: &Path) -> Result<()> {
        let parts = [
            ("family", &self.family, &[][..]),
            ("common", &self.common, &self.common_options),
            ("main", &self.main, &[]),
        ];
        for (name, text, options) in parts {
            let mut command = Command::new(compiler.name);
            command
                .current_dir(dir)
                .args(compiler.options)
                .args(options);
            command.args(["-x", &self.language, "-w", "-c", "source", "-o"]);
            fs::write(dir.join("source"), text)?;
            succeed(command.arg(format!("{name}.o")))?;
        }
        Ok(())
    }

    /// Writes the super-archive `all.a`; the view `family` is the default. Returns whether it was accepted.
    fn write(&self, dir: &Path) -> Result<Expected> {
        let family = readable(Source::open(&dir.join("family.o")))?;
        let common = readable(Source::open(&dir.join("common.o")))?;
        let mut layers = vec![readable(family.layer())?, readable(common.layer())?];
        layers[1].interposable = self.interposable;
        let request = Request {
            layers,
            views: vec![
                View {
                    name: "family".to_owned(),
                    layers: vec![LayerId(0), LayerId(1)],
                },
                View {
                    name: "common".to_owned(),
                    layers: vec![LayerId(1)],
                },
            ],
            default: Some(ViewId(0)),
        };
        let mut bytes = Vec::new();
        match Plan::new(&request) {
            Ok(plan) => plan.write(&mut bytes)?,
            Err(WriteError::Conflicts(_, conflicts)) => {
                let reason = match conflicts[0].reason {
                    Refusal::Form(reason) => reason.to_owned(),
                    reason => format!("{reason:?}"),
                };
                assert_eq!(Some(reason), self.reason, "{}", self.name);
                return Ok(Expected::Refused);
            }
            Err(error) => return Err(format!("{}: {error:?}", self.name).into()),
        }
        self.check(&bytes, &fs::read(dir.join("common.o"))?)?;
        fs::write(dir.join("all.a"), bytes)?;
        Ok(Expected::Family)
    }

    /// The view that overrides nothing, and the original of the variant, have the member as it was.
    fn check(&self, bytes: &[u8], common: &[u8]) -> Result<()> {
        let originals = verified_originals(bytes).map_err(|e| format!("{}: {e}", self.name))?;
        for original in originals {
            assert!(original.ok_or("no member")? == common, "{}", self.name);
        }
        Ok(())
    }
}

/// Verifies an archive. Returns the original of the last member of each view.
fn verified_originals(bytes: &[u8]) -> Result<Vec<Option<&[u8]>>, gpustub_archive::Error> {
    let archive = SuperArchive::parse(bytes)?;
    archive.verify()?;
    let mut originals = Vec::new();
    for view in archive.views() {
        originals.push(match view?.members().last() {
            Some(member) => Some(member?.contents().original()?.data()?),
            None => None,
        });
    }
    Ok(originals)
}

fn readable<T>(result: Result<T, gpustub_superarchive::Error>) -> Result<T> {
    result.map_err(|e| e.to_string().into())
}

/// Words of the links of objects with these options. Other options than the first matter to compilers and to one form.
fn forms(options: &[String], first: bool) -> Vec<&'static [&'static str]> {
    let mut forms: Vec<&[&str]> = vec![&["main.o", "all.a", "-no-pie"]];
    if first {
        const WHOLE: &str = "-Wl,--whole-archive,all.a,--no-whole-archive";
        forms.push(&["main.o", WHOLE, "-no-pie"]);
    }
    for option in options {
        match &option[..] {
            "-fPIC" => forms.push(&["main.o", "all.a", "-pie"]),
            "-ffunction-sections" => {
                forms.push(&["main.o", "all.a", "-no-pie", "-Wl,--gc-sections"]);
            }
            _ => {}
        }
    }
    forms
}

/// `c`, `cpp`: compilers of the two languages. `which`: positions of linkers.
fn compile_and_link(
    [c, cpp]: [&str; 2],
    which: impl SliceIndex<[String], Output = [String]>,
) -> Result<()> {
    let overrides = Overrides::read()?;
    let linkers = &overrides.linkers[which];
    let dir = scratch()?;
    let dir = dir.path();
    let mut wrong = Vec::new();
    for (case, options) in
        (overrides.cases.iter()).flat_map(|case| overrides.options.iter().map(move |o| (case, o)))
    {
        let name = if case.language == "c" { c } else { cpp };
        if !case.is_for(name) {
            continue;
        }
        case.compile(&Compiler { name, options }, dir)?;
        let result = case.write(dir)?;
        let context = format!("{}: {name} {options:?}", case.name);
        if result != case.comes_to {
            wrong.push(format!("{context}: {result:?}"));
            continue;
        }
        if result == Expected::Refused {
            continue;
        }
        for linker in linkers {
            for words in forms(options, overrides.options.first() == Some(options)) {
                let mut command = Command::new(cpp);
                command
                    .current_dir(dir)
                    .arg(format!("-fuse-ld={linker}"))
                    .args(words)
                    .args(["-o", "program"]);
                let ran = run(&mut command)?;
                if !ran.status.success() {
                    wrong.push(format!("{context}: {linker}: {}", ran.stderr));
                } else if !run(&mut Command::new(dir.join("program")))?
                    .status
                    .success()
                {
                    wrong.push(format!("{context}: {linker} {words:?}: another definition"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
#[cfg_attr(not(target_arch = "x86_64"), ignore = "variants are for x86-64")]
fn programs_use_the_first_layer() -> Result<()> {
    compile_and_link(["gcc", "g++"], ..1)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_use_the_first_layer_with_other_linkers() -> Result<()> {
    compile_and_link(["gcc", "g++"], 1..)
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_of_clang_use_the_first_layer_with_every_linker() -> Result<()> {
    compile_and_link(["clang-19", "clang++-19"], ..)
}

/// Variants of machines that have a cross compiler and an emulator.
#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_of_other_machines_use_the_first_layer() -> Result<()> {
    let overrides = Overrides::read()?;
    let dir = scratch()?;
    let dir = dir.path();
    let mut linked = 0;
    for machine in &overrides.machines {
        for (case, options) in (overrides.cases.iter())
            .flat_map(|case| overrides.options.iter().map(move |o| (case, o)))
        {
            if case.language != "c"
                || case.comes_to != Expected::Family
                || case.name.contains("thread-local")
            {
                continue;
            }
            let name = &*machine.compiler;
            let mut options = options.clone();
            options.push("-fno-stack-protector".into());
            case.compile(
                &Compiler {
                    name,
                    options: &options,
                },
                dir,
            )?;
            assert_eq!(case.write(dir)?, Expected::Family, "{}: {name}", case.name);
            let start = format!(
                "int main(void); void _start(void) {{ long status = main(); {} }}",
                machine.exit
            );
            fs::write(dir.join("start.c"), start)?;
            let mut command = Command::new(name);
            command
                .current_dir(dir)
                .args(["-nostdlib", "-static", "-O1", "-fno-stack-protector"]);
            succeed(command.args(["start.c", "main.o", "all.a", "-o", "program"]))?;
            let ran = run(Command::new(&machine.emulator).arg(dir.join("program")))?;
            assert!(
                ran.status.success(),
                "{}: {name} {options:?}: {}",
                case.name,
                ran.line
            );
            linked += 1;
        }
    }
    assert!(linked > 0);
    Ok(())
}

#[test]
#[ignore = "slow: ./tests/run --all"]
fn heavy_programs_of_bitcode_use_the_first_layer() -> Result<()> {
    let overrides = Overrides::read()?;
    let dir = scratch()?;
    let dir = dir.path();
    for release in ["14", "15", "19"] {
        for lto in [&["-flto"][..], &["-flto=thin"], &["-emit-llvm"]] {
            for (case, level) in
                (overrides.bitcode.iter()).flat_map(|case| ["-O0", "-O2"].map(|o| (case, o)))
            {
                let mut options: Vec<String> = lto.iter().map(|&word| word.to_owned()).collect();
                options.push(level.to_owned());
                let compiler = format!("clang-{release}");
                case.compile(
                    &Compiler {
                        name: &compiler,
                        options: &options,
                    },
                    dir,
                )?;
                let result = case.write(dir)?;
                let context = format!("{}: {compiler} {options:?}", case.name);
                assert_eq!(result, case.comes_to, "{context}");
                if result == Expected::Refused {
                    continue;
                }
                // The module verifies, and both kinds of linkers take the family's definition.
                for inputs in [["main.o", "all.a"], ["all.a", "main.o"]] {
                    for (tool, words) in [
                        (
                            "llvm-link",
                            &[&inputs[..], &["-o", "linked.bc"]].concat()[..],
                        ),
                        ("opt", &["-passes=verify", "linked.bc", "-o", "verified.bc"]),
                        ("lli", &["verified.bc"]),
                    ] {
                        let mut command = Command::new(format!("{tool}-{release}"));
                        succeed(command.current_dir(dir).args(words))?;
                    }
                }
                if release != "15" {
                    let mut command = Command::new(format!("clang-{release}"));
                    command.current_dir(dir).args(&options).arg("-flto");
                    let linker = format!("-fuse-ld=lld-{release}");
                    if lto != ["-emit-llvm"] {
                        succeed(command.args([&linker, "main.o", "all.a", "-o", "program"]))?;
                        let ran = run(&mut Command::new(dir.join("program")))?;
                        assert!(ran.status.success(), "{context}: lld");
                    }
                }
            }
        }
    }
    Ok(())
}

/// LLVM's just-in-time linker (ORC) over the default view: of C, without thread-local data, which needs ORC's own run time.
#[test]
#[ignore = "needs clang and llvm: ./tests/run"]
fn programs_in_memory_use_the_first_layer() -> Result<()> {
    let overrides = Overrides::read()?;
    let dir = scratch()?;
    let dir = dir.path();
    let options = ["-O1".to_owned(), "-fPIC".to_owned()];
    let mut linked = 0;
    for case in &overrides.cases {
        let is_c = case.language == "c" && case.is_for("clang-19");
        if !is_c || case.comes_to != Expected::Family || case.name.contains("thread-local") {
            continue;
        }
        case.compile(
            &Compiler {
                name: "clang-19",
                options: &options,
            },
            dir,
        )?;
        assert_eq!(case.write(dir)?, Expected::Family, "{}", case.name);
        fs::write(dir.join("main.c"), &case.main)?;
        let mut clang = Command::new("clang-19");
        let words = ["-w", "-emit-llvm", "-c", "main.c", "-o", "main.bc"];
        succeed(clang.current_dir(dir).args(words))?;
        let mut lli = Command::new("lli-19");
        let words = ["--extra-archive=all.a", "main.bc"];
        succeed(lli.current_dir(dir).args(words)).map_err(|e| format!("{}: {}", case.name, e.0))?;
        linked += 1;
    }
    assert!(linked > 5, "{linked}");
    Ok(())
}
