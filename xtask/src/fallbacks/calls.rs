//! Words in which functions take their arguments on Windows, as LLVM has them: every argument is one word there ("x64
//! calling convention", learn.microsoft.com), and a large result has its address in the first.

use std::path::PathBuf;

use gpustub_core::library::{Fallback, Returns};

use super::claims::is_real;
use super::declarations::{DeclaredFunction, WINDOWS, clang};

/// Differences between LLVM's declarations for Windows and a manifest.
pub fn wrong_words(
    source: &str,
    directories: &[PathBuf],
    functions: &[(&str, &DeclaredFunction, Option<&Fallback>)],
) -> Result<Vec<String>, String> {
    let mut source = source.to_owned();
    // Clang declares what a source uses only.
    source += "void gpustub_uses(const void **use) {\n";
    for (name, ..) in functions {
        source += &format!("*use++ = (const void *){name};\n");
    }
    source += "}\n";
    let action = ["-S", "-emit-llvm", "-o", "-"];
    let output = clang(&source, directories, &[&action, WINDOWS].concat())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let module = String::from_utf8_lossy(&output.stdout);
    let mut problems = Vec::new();
    for line in module.lines() {
        let Some((name, words)) = declared(line) else {
            continue;
        };
        for (function, declaration, fallback) in functions {
            if *function == name {
                let fallback = fallback.cloned().unwrap_or_default();
                problems.extend(problem(name, &words, declaration, &fallback));
            }
        }
    }
    Ok(problems)
}

/// Name and parameters of a declaration in LLVM's text: `declare dllimport i32 @f(i8* noundef, i64)`.
fn declared(line: &str) -> Option<(&str, Vec<&str>)> {
    let (_, function) = line.strip_prefix("declare ")?.split_once('@')?;
    let (name, rest) = function.split_once('(')?;
    let mut depth = 0_usize;
    let mut start = 0;
    let mut words = Vec::new();
    for (index, byte) in rest.bytes().enumerate() {
        match byte {
            b')' | b',' if depth == 0 => {
                words.push(rest[start..index].trim());
                start = index + 1;
                if byte == b')' {
                    break;
                }
            }
            b'(' | b'{' | b'<' | b'[' => depth += 1,
            b')' | b'}' | b'>' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    words.retain(|word| !word.is_empty());
    Some((name, words))
}

/// Difference between a function's words and its manifest.
fn problem(
    name: &str,
    words: &[&str],
    declaration: &DeclaredFunction,
    fallback: &Fallback,
) -> Option<String> {
    let has_address = words.first().is_some_and(|word| word.contains("sret"));
    let is_zeroed = matches!(
        fallback.returns,
        Returns::ZeroedStruct(_) | Returns::ZeroedHfa(_)
    );
    if has_address != is_zeroed {
        let result = &declaration.returns;
        return Some(format!(
            "{name} returns {result}, on Windows by an address: {has_address}"
        ));
    }
    let parameters = &declaration.parameters;
    // A variadic function, and one without a prototype.
    let words = words.iter().filter(|word| **word != "...").count() - usize::from(has_address);
    if words != parameters.len() {
        return Some(format!(
            "{name}: {words} words on Windows, {} parameters",
            parameters.len()
        ));
    }
    for out in &fallback.outs {
        let position = (0..)
            .zip(parameters)
            .filter(|(_, parameter)| !is_real(&parameter.canonical))
            .map(|(position, _)| position)
            .nth(usize::from(out.arg));
        if position != Some(out.position) {
            return Some(format!(
                "{name}: `position` of argument {} must be {position:?}",
                out.arg
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::declarations;
    use super::*;
    use gpustub_core::library::{Out, OutKind};

    #[test]
    #[ignore = "needs clang and mingw-w64: tests/run"]
    fn words_of_windows_are_compared() {
        let source = "struct double2 { double x, y; }; typedef struct { int i[3]; } dim;\n\
            int mixed(int n, struct double2 z, int *out, ...); dim get(void); long long plain(long n);\n";
        let functions = declarations::read(source, &[], WINDOWS).unwrap();
        let out = |position| Fallback {
            outs: vec![Out {
                arg: 1,
                position,
                kind: OutKind::Zero(4),
            }],
            ..Fallback::default()
        };
        let zeroed = Fallback {
            returns: Returns::ZeroedStruct(12),
            ..Fallback::default()
        };
        for (name, fallback, expected) in [
            ("mixed", out(2), None),
            (
                "mixed",
                out(1),
                Some("mixed: `position` of argument 1 must be Some(2)"),
            ),
            (
                "get",
                Fallback::default(),
                Some("get returns dim, on Windows by an address: true"),
            ),
            ("get", zeroed.clone(), None),
            (
                "plain",
                zeroed,
                Some("plain returns long long, on Windows by an address: false"),
            ),
            ("plain", Fallback::default(), None),
        ] {
            let called = [(name, &functions[name], Some(&fallback))];
            let problems = wrong_words(source, &[], &called).unwrap();
            assert_eq!(problems.first().map(String::as_str), expected, "{name}");
        }
    }
}
