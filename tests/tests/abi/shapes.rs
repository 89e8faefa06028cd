//! Shapes of calls that are tried with each header on each library.

use std::collections::BTreeSet;

use super::programs::{Call, MADE_UP, Programs};

/// Shapes of calls. `cargo xtask abi-programs` prints the locations of a call's arguments and
/// result, as `int,struct12_ii,float4,struct64:stack->status`; these are the words of that, without
/// the sizes of structs.
const SHAPES: &[&str] = &[
    "16 arguments",
    "int:stack",
    "float4",
    "float8",
    "float4:stack",
    "float8:stack",
    "struct_ii",
    "struct_vv",
    "struct_vi",
    "struct:stack",
    // A struct that would have fitted into the registers.
    "struct_ii:stack",
    "->int",
    "->void",
    "->float4",
    "->float8",
    "->struct:memory",
    "->struct_ii",
    "->struct_vv",
    "->struct_vi",
    // Arguments surrounded by inaccessible pages.
    "/in/",
    "/out/",
];

/// A word of a shape without the size of its struct.
fn without_size(word: &str) -> String {
    match word.strip_prefix("struct") {
        Some(rest) => format!(
            "struct{}",
            rest.trim_start_matches(|c: char| c.is_ascii_digit())
        ),
        None => word.to_owned(),
    }
}

/// Shapes that a call has.
fn words(call: &Call<'_>) -> BTreeSet<String> {
    let (argument_list, result) = call.shape.split_once("->").unwrap_or_default();
    let argument_shapes: Vec<&str> = argument_list.split(',').collect();
    let mut words: BTreeSet<String> = argument_shapes.iter().copied().map(without_size).collect();
    words.insert(format!("->{}", without_size(result)));
    if argument_shapes.len() >= 16 {
        words.insert("16 arguments".to_owned());
    }
    let arguments = call.arguments.unwrap_or_default();
    for guarded in ["/in/", "/out/"] {
        if arguments.contains(guarded) {
            words.insert(guarded.to_owned());
        }
    }
    words
}

/// Shapes of the successful calls of one program.
#[derive(Debug, Default)]
pub struct Covered {
    real: BTreeSet<String>,
    made_up: BTreeSet<String>,
}

impl Covered {
    /// Adds a successful call.
    pub fn add(&mut self, call: &Call<'_>) {
        if call.name.starts_with(MADE_UP) {
            self.made_up.extend(words(call))
        } else {
            self.real.extend(words(call))
        }
    }

    /// Shapes that were tried neither with a function of the library, nor, if it has none, with an
    /// invented one.
    pub fn missing(&self, programs: &Programs) -> Vec<&'static str> {
        let mut missing = Vec::new();
        for word in SHAPES {
            let is_missing = if programs.made_up.iter().any(|shapes| shapes.contains(word)) {
                self.real.contains(*word) || !self.made_up.contains(*word)
            } else {
                !self.real.contains(*word)
            };
            if is_missing {
                missing.push(*word);
            }
        }
        missing
    }
}
