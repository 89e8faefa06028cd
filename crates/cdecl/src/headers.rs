//! Reads the declarations of headers, by the symbol names that a program compiled with them refers to.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

use crate::clang::{Clang, Error};
use crate::compare::check_call;
use crate::prototypes::prototypes;
use crate::rules::Rules;
use crate::types::{DeclaredFunction, TYPE_QUERY, Types, VALUE_QUERY};

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
pub struct Declarations {
    /// All functions, including those that are declared with some of the macros only.
    pub functions: BTreeMap<String, DeclaredFunction>,
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

    /// Reads the headers that `clang` finds: the declared functions whose names are requested.
    ///
    /// # Errors
    ///
    /// clang fails, no function is declared, or one name is declared as two functions.
    pub fn read(
        &self,
        clang: &Clang,
        is_requested: &dyn Fn(&str) -> bool,
    ) -> Result<Declarations, Error> {
        let mut declarations = Declarations::default();
        // Functions that sources call: those that macros mean, and with the first list of macros all others.
        let mut current = BTreeSet::new();
        for list in &self.include {
            let source = self.source(list);
            for (index, defines) in self.defines.iter().enumerate() {
                let is_first = declarations.functions.is_empty();
                let (names, macros) =
                    self.read_list(clang, &source, defines, is_requested, &mut declarations)?;
                if index == 0 {
                    current.extend(names.into_iter().filter(|name| !macros.contains_key(name)));
                }
                for (name, meaning) in macros {
                    current.insert(meaning.clone());
                    if is_first {
                        declarations.plain.insert(name.clone(), meaning.clone());
                    }
                    declarations.meant.entry(name).or_default().insert(meaning);
                }
            }
        }
        if declarations.functions.is_empty() {
            return Err(Error::Nothing);
        }
        declarations.superseded = declarations
            .functions
            .keys()
            .filter(|name| !current.contains(*name))
            .cloned()
            .collect();
        Ok(declarations)
    }

    /// Adds the functions of a source, and returns their names, and the macros that expand to a function.
    fn read_list(
        &self,
        clang: &Clang,
        source: &str,
        defines: &[String],
        is_requested: &dyn Fn(&str) -> bool,
        declarations: &mut Declarations,
    ) -> Result<(Vec<String>, BTreeMap<String, String>), Error> {
        let mut names = Vec::new();
        for (name, declared) in declared(clang, source, defines, is_requested, &self.rules)? {
            // One name has one meaning, with any macros.
            if let Some(previous) = declarations.functions.get(&name) {
                check_call(previous, &declared).map_err(|difference| {
                    Error::TwoMeanings(format!("{name} differs with {defines:?}: {difference}"))
                })?;
            }
            names.push(name.clone());
            declarations.functions.insert(name, declared);
        }
        let definitions = clang.run(&["-E", "-dM"], defines, source)?;
        let names_of_macros: Vec<&str> = renaming_macros(&definitions).collect();
        let expanded = expand(clang, source, defines, &names_of_macros)?;
        let mut macros = BTreeMap::new();
        for line in expanded.lines() {
            let expansion = macro_expansion(line);
            if let Some((name, meaning)) =
                expansion.filter(|(_, meaning)| declarations.functions.contains_key(*meaning))
            {
                macros.insert(name.to_owned(), meaning.to_owned());
            }
        }
        Ok((names, macros))
    }

    /// Includes the headers of a list that exist.
    fn source(&self, list: &[String]) -> String {
        let mut source = String::new();
        for header in list {
            let mut condition = format!("__has_include(<{header}>)");
            for need in self.needs.get(header).into_iter().flatten() {
                condition += &format!(" && __has_include(<{need}>)");
            }
            source += &format!("#if {condition}\n#include <{header}>\n#endif\n");
        }
        source
    }
}

/// Lines with the macros' expansions. A macro that cannot be expanded, as one that pastes no token, has none.
fn expand(
    clang: &Clang,
    source: &str,
    defines: &[String],
    macros: &[&str],
) -> Result<String, Error> {
    let mut queries = source.to_owned();
    for name in macros {
        queries += &format!("\n\"{TYPE_QUERY}{name}\" {name}\n");
    }
    match clang.run(&["-E", "-P"], defines, &queries) {
        Err(Error::Refused { .. }) if macros.len() > 1 => {
            let (first, second) = macros.split_at(macros.len() / 2);
            let expanded = expand(clang, source, defines, first)?;
            Ok(expanded + "\n" + &expand(clang, source, defines, second)?)
        }
        Err(Error::Refused { .. }) => Ok(String::new()),
        expanded => expanded,
    }
}

/// Name of a queried macro, and the text that it expands to.
fn macro_expansion(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix('"')?
        .strip_prefix(TYPE_QUERY)?
        .split_once("\" ")
}

/// Functions that a C source declares without a definition, by name: those that are requested.
///
/// # Errors
///
/// clang rejects the source, or its output cannot be parsed.
pub fn functions(
    clang: &Clang,
    source: &str,
    defines: &[String],
    is_requested: &dyn Fn(&str) -> bool,
) -> Result<Vec<(String, DeclaredFunction)>, Error> {
    declared(clang, source, defines, is_requested, &Arc::default())
}

/// As [`functions`], with rules for comparing them.
pub(crate) fn declared(
    clang: &Clang,
    source: &str,
    defines: &[String],
    is_requested: &dyn Fn(&str) -> bool,
    rules: &Arc<Rules>,
) -> Result<Vec<(String, DeclaredFunction)>, Error> {
    let tree = clang.run(&["-fsyntax-only", "-Xclang", "-ast-dump"], defines, source)?;
    let functions = declared_names(&tree, "FunctionDecl");
    let typedefs = declared_names(&tree, "TypedefDecl");
    let mut queries = source.to_owned();
    for name in &functions {
        if is_requested(name) || rules.depend_on(name) {
            // The names are those after the macros, and must not be expanded again.
            queries +=
                &format!("\n#undef {name}\n__typeof__({name}) *{TYPE_QUERY}{name} = &{name};\n");
        }
    }
    let pointees: BTreeSet<_> = functions
        .iter()
        .flat_map(|function| rules.untyped_pointees(function, typedefs.iter().copied()))
        .collect();
    for (_, name) in &pointees {
        queries += &format!("\n#undef {name}\n{name} *{TYPE_QUERY}{name};\n");
    }
    let guard_macros = rules.macros(typedefs.iter().copied());
    if !guard_macros.is_empty() {
        let definitions = clang.run(&["-E", "-dM"], defines, source)?;
        let defined: BTreeSet<&str> = macro_names(&definitions).collect();
        for name in &guard_macros {
            if defined.contains(name.as_str()) {
                queries += &format!("\nchar (*{VALUE_QUERY}{name})[1 + ({name})];\n");
            }
        }
    }
    let arguments = ["-g", "-fstandalone-debug", "-S", "-emit-llvm", "-o", "-"];
    let module = clang.run(&arguments, defines, &queries)?;
    let types = Rc::new(Types::read(&module).map_err(Error::Output)?);
    let mut prototypes = prototypes(&tree);
    let mut declarations = Vec::new();
    for line in module.lines() {
        let Some(name) = llvm_declaration(line).filter(|name| is_requested(name)) else {
            continue;
        };
        let Some(function) = types.queried(name) else {
            continue;
        };
        let mut untyped_pointees = BTreeMap::new();
        for (pattern, pointee) in rules.untyped_pointees(name, typedefs.iter().copied()) {
            if let Some(id) = types.queried(pointee) {
                untyped_pointees.insert(pattern, id);
            }
        }
        let declared = DeclaredFunction {
            name: name.to_owned(),
            function,
            prototype: Rc::new(prototypes.remove(name).unwrap_or_default()),
            untyped_pointees,
            types: Rc::clone(&types),
            rules: Arc::clone(rules),
        };
        declarations.push((name.to_owned(), declared));
    }
    Ok(declarations)
}

/// Name of the function that a line of a module declares. Inline functions are defined there instead.
fn llvm_declaration(line: &str) -> Option<&str> {
    let (_, declarator) = line.strip_prefix("declare ")?.split_once('@')?;
    declarator.split('(').next()
}

/// Declarations of this kind in a syntax tree, without static ones:
///
/// ```text
/// |-FunctionDecl 0x1e0df338 <line:3:1, col:28> col:5 acmeOpen 'int (void **)' extern
/// ```
fn declared_names<'t>(tree: &'t str, kind: &str) -> BTreeSet<&'t str> {
    tree.lines()
        .filter_map(|line| {
            let (declarator, declared_type) = line
                .strip_prefix(['|', '`'])?
                .strip_prefix('-')?
                .strip_prefix(kind)?
                .strip_prefix(' ')?
                .split_once(" '")?;
            let (_, storage) = declared_type.rsplit_once('\'')?;
            let is_static = storage.split(' ').any(|word| word == "static");
            (!is_static).then(|| declarator.rsplit(' ').next())?
        })
        .collect()
}

/// Names of the macros without arguments among definitions.
fn macro_names(definitions: &str) -> impl Iterator<Item = &str> {
    definitions
        .lines()
        .filter_map(|line| line.strip_prefix("#define ")?.split(' ').next())
        .filter(|name| !name.contains('('))
}

/// Names of the macros without arguments that may stand for the name of a function: a name, or calls of macros.
fn renaming_macros(definitions: &str) -> impl Iterator<Item = &str> {
    definitions.lines().filter_map(|line| {
        let (name, body) = line.strip_prefix("#define ")?.split_once(' ')?;
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let is_renaming = body.starts_with(is_name)
            && body
                .chars()
                .all(|c| is_name(c) || matches!(c, '(' | ')' | ',' | ' '));
        (is_renaming && !name.contains('(')).then_some(name)
    })
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
            declared_names(tree, "FunctionDecl"),
            ["gpuOpen", "gpuStaticLast"].into()
        );
        assert_eq!(declared_names(tree, "TypedefDecl"), ["f"].into());
    }

    #[test]
    fn macros_with_arguments_rename_no_function() {
        let definitions = "#define a b\n#define empty\n#define call(x) f(x, 0)\n";
        assert_eq!(macro_names(definitions).collect::<Vec<_>>(), ["a", "empty"]);
    }

    #[test]
    fn macros_that_rename_are_names_or_calls() {
        let definitions = "#define a b\n#define empty\n#define call(x) f(x)\n#define c CAT(a, _v2)\n\
                           #define slashes /##/\n#define text \"a\"\n#define d (x)\n";
        assert_eq!(renaming_macros(definitions).collect::<Vec<_>>(), ["a", "c"]);
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
