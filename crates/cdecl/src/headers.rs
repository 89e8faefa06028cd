//! Reads the declarations of headers, by the symbol names that a program compiled with them refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::clang::{Clang, Error};
use crate::compare::same;
use crate::rules::Rules;
use crate::types::{Declared, QUESTION, Types, VALUE_QUESTION};

/// Headers of one library, and the ways to read them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Headers {
    /// Lists of headers, each read separately, for headers that exclude each other. Headers that a
    /// version does not have are left out.
    pub include: Vec<Vec<String>>,
    /// Headers of other packages without which one of these is left out.
    pub needs: BTreeMap<String, Vec<String>>,
    /// Lists of macros, `NAME` or `NAME VALUE`; the headers are read with each list.
    pub defines: Vec<Vec<String>>,
    /// Rules for comparing versions.
    pub rules: Arc<Rules>,
}

/// Declarations in the headers of one version.
#[derive(Debug, Default)]
pub struct Version {
    /// All functions, including those that are declared with some of the macros only.
    pub functions: BTreeMap<String, Declared>,
    /// Names in sources, and the functions that macros replace them by.
    pub meant: BTreeMap<String, BTreeSet<String>>,
    /// The same for the first list of macros: the meaning in plain sources.
    pub plain: BTreeMap<String, String>,
    /// Functions that sources cannot call: the library keeps them for programs built with older headers, and these
    /// headers may declare them with newer types than they have.
    pub superseded: BTreeSet<String>,
}

impl Headers {
    /// Headers that are read together, without macros.
    pub fn including<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Self {
        Self {
            include: vec![names.into_iter().map(Into::into).collect()],
            needs: BTreeMap::new(),
            defines: vec![Vec::new()],
            rules: Arc::default(),
        }
    }

    /// Reads the headers that `clang` finds: the declared functions whose names are `wanted`.
    ///
    /// # Errors
    ///
    /// clang fails, no function is declared, or one name is declared as two functions.
    pub fn read(&self, clang: &Clang, wanted: &dyn Fn(&str) -> bool) -> Result<Version, Error> {
        let mut version = Version::default();
        // Functions that sources call: those that macros mean, and with the first list of macros all others.
        let mut current = BTreeSet::new();
        for list in &self.include {
            let source = self.source(list);
            for (index, defines) in self.defines.iter().enumerate() {
                let is_first = version.functions.is_empty();
                let (names, macros) =
                    self.read_list(clang, &source, defines, wanted, &mut version)?;
                if index == 0 {
                    let names = names.into_iter();
                    current.extend(names.filter(|name| !macros.contains_key(name)));
                }
                for (name, meaning) in macros {
                    current.insert(meaning.clone());
                    if is_first {
                        version.plain.insert(name.clone(), meaning.clone());
                    }
                    version.meant.entry(name).or_default().insert(meaning);
                }
            }
        }
        if version.functions.is_empty() {
            return Err(Error::Nothing);
        }
        let names = version.functions.keys();
        let superseded = names.filter(|name| !current.contains(*name));
        version.superseded = superseded.cloned().collect();
        Ok(version)
    }

    /// Adds the functions of a source, and returns their names, and the macros that expand to a function.
    fn read_list(
        &self,
        clang: &Clang,
        source: &str,
        defines: &[String],
        wanted: &dyn Fn(&str) -> bool,
        version: &mut Version,
    ) -> Result<(Vec<String>, BTreeMap<String, String>), Error> {
        let mut names = Vec::new();
        for (name, declared) in declared(clang, source, defines, wanted, &self.rules)? {
            // One name has one meaning, with any macros.
            if let Some(other) = version.functions.get(&name) {
                same(other, &declared).map_err(|e| {
                    Error::TwoMeanings(format!("{name} differs with {defines:?}: {e}"))
                })?;
            }
            names.push(name.clone());
            version.functions.insert(name, declared);
        }
        let definitions = clang.ask(&["-E", "-dM"], defines, source)?;
        let mut question = source.to_owned();
        for name in macros(&definitions) {
            question += &format!("\n\"{QUESTION}{name}\" {name}\n");
        }
        let answers = clang.ask(&["-E", "-P"], defines, &question)?;
        let answers = answers.lines().filter_map(|line| {
            let answer = line.strip_prefix('"')?.strip_prefix(QUESTION)?;
            answer.split_once("\" ")
        });
        let functions = &version.functions;
        let answers = answers.filter(|(_, meaning)| functions.contains_key(*meaning));
        let macros = answers.map(|(a, b)| (a.to_owned(), b.to_owned()));
        Ok((names, macros.collect()))
    }

    /// Includes the headers of a list that exist.
    fn source(&self, list: &[String]) -> String {
        let mut source = String::new();
        for header in list {
            let needs = self.needs.get(header).map_or(&[][..], Vec::as_slice);
            let all = [header].into_iter().chain(needs);
            let all: Vec<_> = all.map(|h| format!("__has_include(<{h}>)")).collect();
            source += &format!("#if {}\n#include <{header}>\n#endif\n", all.join(" && "));
        }
        source
    }
}

/// Functions that a C source declares without a definition, by name: those that are `wanted`.
///
/// # Errors
///
/// clang rejects the source, or its output cannot be parsed.
pub fn functions(
    clang: &Clang,
    source: &str,
    defines: &[String],
    wanted: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, Declared)>, Error> {
    declared(clang, source, defines, wanted, &Arc::default())
}

/// As [`functions`], with rules for comparing them.
pub(crate) fn declared(
    clang: &Clang,
    source: &str,
    defines: &[String],
    wanted: &dyn Fn(&str) -> bool,
    rules: &Arc<Rules>,
) -> Result<Vec<(String, Declared)>, Error> {
    let tree = clang.ask(&["-fsyntax-only", "-Xclang", "-ast-dump"], defines, source)?;
    let mut question = source.to_owned();
    let is_asked = |name: &&str| wanted(name) || rules.depend_on(name);
    let functions = named(&tree, "FunctionDecl");
    for name in functions.iter().copied().filter(is_asked) {
        // The names are those after the macros, and must not be expanded again.
        question += &format!("\n#undef {name}\n__typeof__({name}) *{QUESTION}{name} = &{name};\n");
    }
    let typedefs = named(&tree, "TypedefDecl");
    let behind = |function| rules.types_behind(function, typedefs.iter().copied());
    let asked: BTreeSet<_> = functions
        .iter()
        .flat_map(|function| behind(function))
        .collect();
    for (_, name) in &asked {
        question += &format!("\n#undef {name}\n{name} *{QUESTION}{name};\n");
    }
    let values = rules.macros(typedefs.iter().copied());
    if !values.is_empty() {
        let definitions = clang.ask(&["-E", "-dM"], defines, source)?;
        let defined: BTreeSet<&str> = macros(&definitions).collect();
        for name in values.iter().filter(|name| defined.contains(name.as_str())) {
            question += &format!("\nchar (*{VALUE_QUESTION}{name})[1 + ({name})];\n");
        }
    }
    let as_text = ["-g", "-fstandalone-debug", "-S", "-emit-llvm", "-o", "-"];
    let module = clang.ask(&as_text, defines, &question)?;
    let types = Rc::new(Types::read(&module).map_err(Error::Output)?);
    // The module defines inline functions instead of declaring them.
    let names = module.lines().filter(|line| line.starts_with("declare "));
    let names = names.filter_map(|line| line.split_once('@')?.1.split('(').next());
    let functions = names.filter(|name| wanted(name)).filter_map(|name| {
        let behind = behind(name).into_iter();
        let behind = behind.filter_map(|(name, of)| Some((name, types.queried(of)?)));
        let declared = Declared {
            name: name.to_owned(),
            function: types.queried(name)?,
            behind: behind.collect(),
            types: Rc::clone(&types),
            rules: Arc::clone(rules),
        };
        Some((name.to_owned(), declared))
    });
    Ok(functions.collect())
}

/// Declarations of this kind in a syntax tree, without static ones:
///
/// ```text
/// |-FunctionDecl 0x1e0df338 <line:3:1, col:28> col:5 acmeOpen 'int (void **)' extern
/// ```
fn named<'t>(tree: &'t str, kind: &str) -> BTreeSet<&'t str> {
    let names = tree.lines().filter_map(|line| {
        let line = line.strip_prefix(['|', '`'])?.strip_prefix('-')?;
        let (before, after) = line
            .strip_prefix(kind)?
            .strip_prefix(' ')?
            .split_once(" '")?;
        let (_, storage) = after.rsplit_once('\'')?;
        let is_seen = !storage.split(' ').any(|word| word == "static");
        is_seen.then(|| before.rsplit(' ').next())?
    });
    names.collect()
}

/// Macros without arguments among definitions.
fn macros(definitions: &str) -> impl Iterator<Item = &str> {
    let definitions = definitions.lines();
    let names = definitions.filter_map(|line| line.strip_prefix("#define ")?.split(' ').next());
    names.filter(|name| !name.contains('('))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_function_declarations_are_functions() {
        let tree = "\
TranslationUnitDecl 0x1 <<invalid sloc>> <invalid sloc>
|-TypedefDecl 0x2 <line:1:1, col:9> col:9 f 'int (int)'
|-FunctionDecl 0x3 <./a b/x.h:2:1, col:9> col:5 used gpuOpen 'int (void *)' extern
| `-ParmVarDecl 0x4 <col:9> col:9 gpuInner 'int'
|-FunctionDecl 0x5 <line:3:1> col:5 gpuAligned 'gpu_t (int)':'int (int)' static inline
`-FunctionDecl 0x6 <line:4:1> col:5 gpuStaticLast 'int (int)'
";
        assert_eq!(
            named(tree, "FunctionDecl"),
            ["gpuOpen", "gpuStaticLast"].into()
        );
        assert_eq!(named(tree, "TypedefDecl"), ["f"].into());
    }

    #[test]
    fn macros_with_arguments_rename_no_function() {
        let definitions = "#define a b\n#define empty\n#define call(x) f(x, 0)\n";
        assert_eq!(macros(definitions).collect::<Vec<_>>(), ["a", "empty"]);
    }

    #[test]
    fn headers_without_their_includes_are_left_out() {
        let mut headers = Headers::including(["a.h", "b.h"]);
        headers.needs.insert("b.h".into(), vec!["c/c.h".into()]);
        assert_eq!(
            headers.source(&headers.include[0]),
            "#if __has_include(<a.h>)\n#include <a.h>\n#endif\n\
             #if __has_include(<b.h>) && __has_include(<c/c.h>)\n#include <b.h>\n#endif\n"
        );
    }
}
