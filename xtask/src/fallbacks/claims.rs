//! Claims of a manifest about functions, as assertions in C.

use std::path::PathBuf;

use gpustub_core::library::{Fallback, OutKind, Returns};

use super::declarations::{DeclaredFunction, Parameter, clang};

/// clang's type classes (`__builtin_classify_type`): integers, pointers, floating point, structs and unions.
const INTEGER: u32 = 1;
const POINTER: u32 = 5;
const REAL: u32 = 8;
const RECORD: u32 = 12;

/// Prefix of the assertions' messages among the compiler's.
const MARK: &str = "claim: ";

/// Claims about the functions of one source.
pub struct Claims<'s> {
    source: String,
    status: &'s [String],
    assertions: usize,
    problems: Vec<String>,
}

impl<'s> Claims<'s> {
    pub fn new(source: String, status: &'s [String]) -> Self {
        Self {
            source,
            status,
            assertions: 0,
            problems: Vec::new(),
        }
    }

    /// Number of claims.
    pub fn len(&self) -> usize {
        self.assertions
    }

    /// Adds the claims of the manifest about one function, for words of this many bytes.
    pub fn function(
        &mut self,
        name: &str,
        function: &DeclaredFunction,
        fallback: Option<&Fallback>,
        word: u32,
    ) {
        let status = Fallback::default();
        let fallback = fallback.unwrap_or(&status);
        self.returns(name, &function.returns, &fallback.returns);
        for out in &fallback.outs {
            let size = match out.kind {
                OutKind::Zero(0) | OutKind::String | OutKind::ErrorName | OutKind::ErrorString => {
                    word
                }
                OutKind::Zero(bytes) => bytes,
                OutKind::Status => 4,
            };
            self.out(name, &function.parameters, out.arg, size);
        }
    }

    fn returns(&mut self, name: &str, declared: &str, claimed: &Returns) {
        let class = format!("__builtin_classify_type(*({declared} *)0)");
        let size = format!("sizeof({declared})");
        let result = format!("{name} returns {declared}");
        let is_status = self.status.iter().any(|status| status == declared);
        match claimed {
            Returns::Status if is_status => self.assertions += 1,
            Returns::Status => {
                let message = format!("{result}, which is no status: it needs a [fallback] row");
                self.problems.push(message);
            }
            Returns::Void if declared == "void" => self.assertions += 1,
            Returns::Void => self.problems.push(format!("{result}, not nothing")),
            _ if declared == "void" => self.problems.push(format!("{result}, not a value")),
            Returns::String | Returns::ErrorName | Returns::ErrorString => {
                let is_text =
                    format!("_Generic(({declared})0, char *: 1, const char *: 1, default: 0)");
                self.assert(&is_text, &format!("{result}, not text"));
            }
            Returns::Null => {
                self.assert(
                    &format!("{class} == {POINTER}"),
                    &format!("{result}, not a pointer"),
                );
            }
            // Two registers, of integers or vectors: x86-64 and AArch64 alike.
            Returns::Value(_) | Returns::UnknownError(_) => {
                let fits = format!("{class} != {POINTER} && {size} <= 16");
                self.assert(&fits, &format!("{result}, not a number or small struct"));
            }
            Returns::ZeroedStruct(claimed) | Returns::ZeroedHfa(claimed) => {
                let fits = format!("{class} == {RECORD} && {size} == {claimed}");
                self.assert(&fits, &format!("{result}, not a struct of {claimed} bytes"));
            }
        }
    }

    /// Adds the claim which arguments before the last out-parameter have 64 bits, for a machine with words of 32.
    pub fn words(&mut self, name: &str, function: &DeclaredFunction, fallback: Option<&Fallback>) {
        let Some(fallback) = fallback else { return };
        let Some(last_out) = fallback.outs.last() else {
            return;
        };
        for (argument, parameter) in (0..last_out.arg).zip(&function.parameters) {
            if is_real(&parameter.canonical) {
                let message = format!(
                    "{name}: floating point before an out-parameter: `wide` has no number for it"
                );
                self.problems.push(message);
                return;
            }
            let kind = &parameter.kind;
            let subject = format!("{name}, argument {argument} ({kind})");
            if fallback.wide.contains(&argument) {
                let message = format!("{subject}: `wide` lists an argument of one word");
                self.assert(&format!("sizeof({kind}) == 8"), &message);
            } else {
                let message = format!("{subject}: two words with 32 bits; `wide` must list it");
                self.assert(&format!("sizeof(__typeof__({kind})) <= 4"), &message);
            }
        }
    }

    /// `arg` counts integer and pointer arguments: floating point has separate registers.
    fn out(&mut self, name: &str, parameters: &[Parameter], arg: u8, size: u32) {
        let mut skipped = 0;
        for parameter in parameters {
            let kind = &parameter.kind;
            let class = format!("__builtin_classify_type(*(__typeof__({kind}) *)0)");
            let subject = format!("{name}, parameter {} ({kind})", parameter.name);
            if is_real(&parameter.canonical) {
                let is_real = format!("{class} == {REAL} || {class} == {RECORD}");
                self.assert(&is_real, &format!("{subject} is no floating point"));
                continue;
            }
            if skipped < arg {
                skipped += 1;
                let is_record = parameter.canonical.starts_with("struct ")
                    && !parameter.canonical.contains('*');
                let is_one_register = if is_record {
                    // One register on both machines: HSA's handles.
                    let member = format!("__builtin_classify_type((*({kind} *)0).handle)");
                    format!("{member} == {INTEGER} && sizeof({kind}) <= 8")
                } else {
                    format!("{class} != {REAL} && {class} != {RECORD}")
                };
                self.assert(
                    &is_one_register,
                    &format!("{subject} shifts argument {arg} by an unknown number"),
                );
                continue;
            }
            let pointee = kind
                .trim_end_matches("restrict")
                .trim_end()
                .strip_suffix('*');
            if pointee.is_some_and(is_const) {
                self.problems
                    .push(format!("{subject} points to a const type"));
            }
            let fits = format!("{class} == {POINTER} && sizeof(*(__typeof__({kind}))0) >= {size}");
            self.assert(&fits, &format!("{subject} is no pointer to {size} bytes"));
            return;
        }
        self.problems.push(format!("{name} has no argument {arg}"));
    }

    fn assert(&mut self, condition: &str, message: &str) {
        self.assertions += 1;
        self.source += &format!("_Static_assert({condition}, \"{MARK}{message}\");\n");
    }

    /// The claims that are wrong.
    pub fn check(
        mut self,
        directories: &[PathBuf],
        arguments: &[&str],
    ) -> Result<Vec<String>, String> {
        let output = clang(
            &self.source,
            directories,
            &[&["-fsyntax-only"], arguments].concat(),
        )?;
        let stderr = String::from_utf8_lossy(&output.stderr);
        for line in stderr.lines().filter(|line| line.contains("error: ")) {
            let message = line.split_once(MARK).map_or(line, |(_, message)| message);
            self.problems.push(message.trim_end_matches('"').to_owned());
        }
        if self.problems.is_empty() && !output.status.success() {
            return Err(stderr.into_owned());
        }
        Ok(self.problems)
    }
}

/// Whether an argument of this type is passed in vector registers, including the complex types of CUDA:
/// structs of two floats or doubles.
pub fn is_real(canonical: &str) -> bool {
    let vectors = [
        "float",
        "double",
        "struct float2",
        "struct double2",
        "float2",
        "double2",
    ];
    vectors.contains(&canonical.trim_start_matches("const ").trim())
}

/// Whether a pointee's type is const: `const int`, `void *const`, but not `const char *`.
fn is_const(pointee: &str) -> bool {
    let pointee = pointee.trim();
    pointee.ends_with("const") || (pointee.starts_with("const ") && !pointee.ends_with('*'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn const_pointees() {
        assert!(is_const("const int ") && is_const("void *const"));
        assert!(!is_const("const char *") && !is_const("int"));
    }

    fn problems(source: &str, name: &str, fallback: &Fallback) -> Vec<String> {
        let status = ["status".to_owned()];
        let functions = super::super::declarations::read(source, &[], &[]).unwrap();
        let mut claims = Claims::new(source.to_owned(), &status);
        claims.function(name, &functions[name], Some(fallback), 8);
        claims.check(&[], &[]).unwrap()
    }

    const SOURCE: &str = "typedef enum { OK } status; typedef struct x *handle;\n\
        status create(float f, handle *h, const int *n, char c[3]);\n\
        const char *text(status s); handle get(void); struct big { int i[5]; } big(void);\n";

    fn fallback(returns: Returns, outs: &[(u8, OutKind)]) -> Fallback {
        Fallback {
            returns,
            outs: (outs.iter())
                .map(|&(arg, kind)| gpustub_core::library::Out {
                    arg,
                    position: arg,
                    kind,
                })
                .collect(),
            wide: Vec::new(),
            status_if_missing: None,
        }
    }

    #[test]
    #[ignore = "needs clang: tests/run"]
    fn wrong_claims_are_reported() {
        for (name, returns, outs) in [
            (
                "create",
                Returns::Status,
                &[(0, OutKind::Zero(0)), (2, OutKind::Zero(1))][..],
            ),
            ("text", Returns::String, &[]),
            ("get", Returns::Null, &[]),
            ("big", Returns::ZeroedStruct(20), &[]),
        ] {
            let problems = problems(SOURCE, name, &fallback(returns, outs));
            assert_eq!(problems, Vec::<String>::new(), "{name}");
        }
        for (name, returns, outs, expected) in [
            (
                "create",
                Returns::Status,
                &[(1, OutKind::Zero(4))][..],
                "a const type",
            ),
            (
                "create",
                Returns::Status,
                &[(0, OutKind::Zero(12))],
                "no pointer to 12",
            ),
            (
                "create",
                Returns::Status,
                &[(3, OutKind::Zero(0))],
                "no argument 3",
            ),
            ("text", Returns::Status, &[], "no status"),
            ("text", Returns::Value(0), &[], "not a number"),
            ("get", Returns::String, &[], "not text"),
            ("big", Returns::ZeroedStruct(24), &[], "24 bytes"),
            ("big", Returns::Void, &[], "not nothing"),
        ] {
            let problems = problems(SOURCE, name, &fallback(returns, outs));
            assert!(
                problems.len() == 1 && problems[0].contains(expected),
                "{name}: {problems:?}"
            );
        }
    }

    #[test]
    #[ignore = "needs clang: tests/run"]
    fn wide_arguments_are_compared_with_words_of_32_bits() {
        let source = "typedef int status; typedef unsigned long long flags;\n\
            status one(void *q, flags f, unsigned n, int *out); status real(float x, int *out);\n";
        let functions = super::super::declarations::read(source, &[], &[]).unwrap();
        for (name, arg, wide, expected) in [
            ("one", 3, &[1][..], None),
            ("one", 3, &[], Some("`wide` must list it")),
            ("one", 3, &[1, 2], Some("an argument of one word")),
            ("real", 1, &[], Some("has no number")),
        ] {
            let mut fallback = fallback(Returns::Status, &[(arg, OutKind::Zero(4))]);
            fallback.wide = wide.to_vec();
            let mut claims = Claims::new(source.to_owned(), &[]);
            claims.words(name, &functions[name], Some(&fallback));
            let problems = claims.check(&[], &["--target=i686-linux-gnu"]).unwrap();
            assert_eq!(
                problems.len(),
                usize::from(expected.is_some()),
                "{name}: {problems:?}"
            );
            for (problem, expected) in problems.iter().zip(expected) {
                assert!(problem.contains(expected), "{name}: {problem}");
            }
        }
    }
}
