//! Prototypes of functions as headers write them, from clang's syntax tree:
//!
//! ```text
//! |-FunctionDecl 0x1e0df338 <line:3:1, col:28> col:5 acmeOpen 'int (void **, acmeMode)' extern
//! | |-ParmVarDecl 0x1e0df218 <col:14, col:21> col:21 handle 'void **'
//! | `-ParmVarDecl 0x1e0df298 <col:29, col:38> col:38 mode 'acmeMode':'unsigned int'
//! ```

use std::collections::HashMap;

/// A function as a header declares it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prototype {
    /// Type without names: `int (void **, acmeMode)`.
    pub type_text: String,
    /// Result: `int`.
    pub result: String,
    /// Declarations of the parameters: `void **handle`, and `...`.
    pub parameters: Vec<String>,
    /// Attributes, with a space before them: ` __attribute__((noreturn))`.
    pub attributes: String,
}

impl Prototype {
    /// Declaration of a function of this name: `int acmeOpen(void **handle, acmeMode mode)`.
    pub fn declaration(&self, name: &str) -> String {
        let space = if self.result.ends_with('*') { "" } else { " " };
        let parameters = match &self.parameters[..] {
            [] => "void".to_owned(),
            parameters => parameters.join(", "),
        };
        format!(
            "{}{space}{name}({parameters}){}",
            self.result, self.attributes
        )
    }
}

/// Prototypes of the functions of a syntax tree, by name. Of several declarations the first counts.
pub(crate) fn prototypes(tree: &str) -> HashMap<&str, Prototype> {
    let mut prototypes: HashMap<&str, Prototype> = HashMap::new();
    let mut current = None;
    for line in tree.lines() {
        if let Some(declaration) = top_level(line) {
            current = declaration
                .strip_prefix("FunctionDecl ")
                .and_then(declarator)
                .filter(|(name, _)| !prototypes.contains_key(name));
            if let Some((name, type_text)) = current {
                let (plain_type, attributes) = without_attributes(type_text);
                let mut prototype = Prototype {
                    type_text: type_text.to_owned(),
                    result: result(plain_type).to_owned(),
                    parameters: Vec::new(),
                    attributes: attributes.to_owned(),
                };
                if plain_type.ends_with(", ...)") {
                    prototype.parameters.push("...".to_owned());
                }
                prototypes.insert(name, prototype);
            }
            continue;
        }
        let function = current.and_then(|(name, _)| prototypes.get_mut(name));
        if let (Some(prototype), Some(parameter)) = (function, parameter(line)) {
            let end = prototype.parameters.len();
            let is_variadic = prototype
                .parameters
                .last()
                .is_some_and(|last| last == "...");
            prototype
                .parameters
                .insert(end - usize::from(is_variadic), parameter);
        }
    }
    prototypes
}

/// A declaration of the translation unit itself.
fn top_level(line: &str) -> Option<&str> {
    line.strip_prefix("|-").or_else(|| line.strip_prefix("`-"))
}

/// Declaration of a parameter of the function above.
fn parameter(line: &str) -> Option<String> {
    let declaration = line.get(2..)?;
    let declaration = top_level(declaration)?.strip_prefix("ParmVarDecl ")?;
    let (name, type_text) = declarator(declaration)?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !matches!(name, "used" | "referenced" | "invalid")
        && !name.contains(':');
    Some(if is_name {
        declare(type_text, name)
    } else {
        type_text.to_owned()
    })
}

/// Name and type of a declaration: `… col:5 acmeOpen 'int (void **)' extern`.
fn declarator(declaration: &str) -> Option<(&str, &str)> {
    let (before, rest) = declaration.split_once(" '")?;
    let (type_text, _) = rest.split_once('\'')?;
    Some((before.rsplit(' ').next()?, type_text))
}

/// A function's type, and its attributes behind the parameters: `void (void)` and ` __attribute__((noreturn))`.
fn without_attributes(type_text: &str) -> (&str, &str) {
    let mut plain_type = type_text;
    while let Some(shorter) = result(plain_type).strip_suffix(" __attribute__") {
        plain_type = shorter;
    }
    type_text.split_at(plain_type.len())
}

/// Result of a function's type: the text before its parameters.
fn result(type_text: &str) -> &str {
    let mut depth = 0_usize;
    for (index, c) in type_text.char_indices().rev() {
        match c {
            ')' => depth += 1,
            '(' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return type_text[..index].trim_end();
                }
            }
            _ => {}
        }
    }
    type_text
}

/// Declaration of a name with this type.
fn declare(type_text: &str, name: &str) -> String {
    if let Some((before, after)) = type_text.split_once("(*") {
        return format!("{before}(*{name}{after}");
    }
    if let Some(index) = type_text.find('[') {
        let (element, size) = type_text.split_at(index);
        return format!("{} {name}{size}", element.trim_end());
    }
    let space = if type_text.ends_with('*') { "" } else { " " };
    format!("{type_text}{space}{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prototypes_are_those_of_the_tree() {
        let tree = "\
TranslationUnitDecl 0x1 <<invalid sloc>> <invalid sloc>
|-FunctionDecl 0x3 <./a b/x.h:2:1, col:9> col:5 used acmeOpen 'int (void **, acmeMode)' extern
| |-ParmVarDecl 0x4 <col:9> col:9 handle 'void **'
| `-ParmVarDecl 0x5 <col:19> col:19 'acmeMode':'unsigned int'
|-FunctionDecl 0x6 <line:3:1> col:5 acmeName 'const char *(void)' extern
|-FunctionDecl 0x7 <line:4:1> col:5 acmeLog 'void (acmeSink, void (*)(int), const char *, ...)' extern
| |-ParmVarDecl 0x8 <col:9> col:9 sink 'acmeSink':'struct acmeSink *'
| |-ParmVarDecl 0x9 <col:9> col:9 done 'void (*)(int)'
| |-ParmVarDecl 0xa <col:9> col:9 format 'const char *'
| `-FullComment 0xb <col:1>
|-FunctionDecl 0xe <line:4:1> col:5 acmeExit 'void (void (*)(int) __attribute__((noreturn)), ...) __attribute__((noreturn)) __attribute__((cdecl))' extern
| `-ParmVarDecl 0xf <col:9> col:9 exit 'void (*)(int) __attribute__((noreturn))'
`-FunctionDecl 0xc <line:5:1> col:5 acmeOpen 'int (void **, acmeMode)' extern
  |-ParmVarDecl 0xd <col:9> col:9 other 'void **'
  `-ParmVarDecl 0xe <col:19> col:19 mode 'acmeMode':'unsigned int'
";
        let prototypes = prototypes(tree);
        let declaration = |name| prototypes[name].declaration(name);
        assert_eq!(
            declaration("acmeOpen"),
            "int acmeOpen(void **handle, acmeMode)"
        );
        assert_eq!(declaration("acmeName"), "const char *acmeName(void)");
        assert_eq!(
            declaration("acmeLog"),
            "void acmeLog(acmeSink sink, void (*done)(int), const char *format, ...)"
        );
        assert_eq!(
            declaration("acmeExit"),
            "void acmeExit(void (*exit)(int) __attribute__((noreturn)), ...) __attribute__((noreturn)) \
             __attribute__((cdecl))"
        );
        assert_eq!(prototypes["acmeOpen"].type_text, "int (void **, acmeMode)");
    }
}
