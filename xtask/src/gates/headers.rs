//! What a header declares, by the names that a program compiled with it asks the linker for.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use super::types::{TypeId, Types};
use crate::command::output;

/// The headers of one library.
pub struct Headers {
    /// What the source includes. Those that a version does not have are left out.
    pub include: &'static [&'static str],
    pub defines: &'static [&'static str],
    /// The sets of macros under which they declare something else.
    pub modes: &'static [&'static [&'static str]],
    /// What names of functions start with; a capital or an underscore follows.
    pub prefixes: &'static [&'static str],
}

/// A declared function.
#[derive(Clone)]
pub struct Declared {
    pub types: Rc<Types>,
    pub function: TypeId,
}

/// What the headers of one version say.
#[derive(Default)]
pub struct Version {
    pub functions: BTreeMap<String, Declared>,
    /// Names of sources, and the functions that they mean by way of macros.
    pub meant: BTreeMap<String, BTreeSet<String>>,
}

/// Our stand-ins for headers that are of other packages.
pub const STAND_INS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/headers");

/// Names the variables whose types are asked for.
const QUESTION: &str = "gpustub_type_of_";

impl Headers {
    /// Reads the headers below `folder`.
    pub fn read(&self, folder: &Path) -> Result<Version, String> {
        self.read_modes(folder, self.modes)
    }

    /// Reads the headers with these sets of macros only.
    pub fn read_modes(&self, folder: &Path, modes: &[&[&str]]) -> Result<Version, String> {
        let mut version = Version::default();
        for mode in modes {
            self.read_mode(folder, mode, &mut version)
                .map_err(|e| format!("`{}`: {e}", folder.display()))?;
        }
        if version.functions.is_empty() {
            return Err(format!("no function is declared in `{}`", folder.display()));
        }
        Ok(version)
    }

    fn read_mode(&self, folder: &Path, mode: &[&str], version: &mut Version) -> Result<(), String> {
        let mut source = String::new();
        for header in self.include {
            if folder.join(header).exists() || Path::new(STAND_INS).join(header).exists() {
                source += &format!("#include <{header}>\n");
            }
        }
        let preprocess = |flag: &str, source: &str| {
            let mut command = Command::new("clang");
            command.args(["-E", flag, "-x", "c", "-I", STAND_INS, "-I"]);
            command.arg(folder).args(self.defines).args(mode).arg("-");
            output(&mut command, source)
        };
        for (name, declared) in self.declared(&preprocess("-P", &source)?)? {
            // One name has one meaning in all modes.
            if let Some(other) = version.functions.get(&name) {
                super::compare::same(other, &declared)
                    .map_err(|e| format!("{name} differs with {mode:?}: {e}"))?;
            }
            version.functions.insert(name, declared);
        }
        self.read_macros(&preprocess("-dM", &source)?, &source, preprocess, version)
    }

    /// The functions that preprocessed text declares, and leaves to others to define.
    pub fn declared(&self, text: &str) -> Result<Vec<(String, Declared)>, String> {
        // The names are those after the macros, so the question must not pass through them again.
        let mut question = text.to_owned();
        for name in self.called(text) {
            question += &format!("__typeof__({name}) *{QUESTION}{name} = &{name};\n");
        }
        let mut command = Command::new("clang");
        command.args(["-x", "cpp-output", "-w", "-g", "-fstandalone-debug"]);
        command.args(["-S", "-emit-llvm", "-o", "-", "-"]);
        let module = output(&mut command, &question)?;
        let types = Rc::new(Types::read(&module)?);
        // Inline functions are not declared but defined in the module.
        let names = module.lines().filter(|line| line.starts_with("declare "));
        let names = names.filter_map(|line| line.split_once('@')?.1.split('(').next());
        let functions = names.filter_map(|name| {
            let function = *types.pointees.get(&format!("{QUESTION}{name}"))?;
            let types = Rc::clone(&types);
            Some((name.to_owned(), Declared { types, function }))
        });
        Ok(functions.collect())
    }

    /// Which macros stand for a function.
    fn read_macros(
        &self,
        definitions: &str,
        source: &str,
        preprocess: impl Fn(&str, &str) -> Result<String, String>,
        version: &mut Version,
    ) -> Result<(), String> {
        let macros = definitions
            .lines()
            .filter_map(|line| line.strip_prefix("#define ")?.split_once(' '))
            .map(|(name, _)| name)
            .filter(|name| self.is_name(name));
        let mut question = source.to_owned();
        for name in macros {
            question += &format!("\n\"{QUESTION}{name}\" {name}\n");
        }
        for line in preprocess("-P", &question)?.lines() {
            let answer = line
                .strip_prefix('"')
                .and_then(|l| l.strip_prefix(QUESTION));
            let Some((name, meaning)) = answer.and_then(|answer| answer.split_once("\" ")) else {
                continue;
            };
            if version.functions.contains_key(meaning) {
                let meanings = version.meant.entry(name.to_owned()).or_default();
                meanings.insert(meaning.to_owned());
            }
        }
        Ok(())
    }

    /// Whether a function of the library may be called so.
    pub fn is_name(&self, name: &str) -> bool {
        self.prefixes.iter().any(|prefix| {
            let next = name
                .strip_prefix(prefix)
                .and_then(|rest| rest.chars().next());
            next.is_some_and(|c| c.is_ascii_uppercase() || c == '_')
        })
    }

    /// Every name of a function in preprocessed text: those that stand before a parenthesis.
    fn called(&self, text: &str) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut pieces = text.split('(').peekable();
        while let Some(before) = pieces.next() {
            let before = before.trim_end();
            let name = &before[before.rfind(|c| !is_part(c)).map_or(0, |at| at + 1)..];
            // `cudaError_t (*callback)(…)` is of a type.
            let is_function = self.is_name(name) && !name.ends_with("_t");
            if pieces.peek().is_some() && is_function {
                names.insert(name.to_owned());
            }
        }
        names
    }
}
