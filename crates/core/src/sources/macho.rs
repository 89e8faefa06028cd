//! The stubs for macOS: constant answers, in one text that rustc assembles, without a preprocessor.

use std::fmt::Write as _;

use super::assembler::rustc_source;
use super::initializers::quote;
use super::libraries::{Tables, names_errors};
use crate::by_name::ByName;
use crate::library::{Fallback, HookKind, Out, OutKind, Returns, c_name};
use crate::plan::{LibraryPlan, Plan, Spec};
use crate::target::Target;

/// Adds a line; writing to a String cannot fail.
macro_rules! add {
    ($text:expr, $($arguments:tt)*) => {{ let _ = writeln!($text, $($arguments)*); }};
}

/// End of the texts of shipped libraries: only the run time has a log.
const LOG: &str = "; GPUSTUB_LOG=1 shows why";

/// The functions of `gpustub.h`, and the text for status codes that are unknown.
const QUERIES: &str = "
 gpustub_data gpustub1_unknown
 .asciz \"unknown error code\"
 gpustub_string gpustub, reason
 .asciz \"stubs for macOS load no library\"
 gpustub_function gpustub_load
 gpustub_pointer 0
 gpustub_return_query 1
 gpustub_function gpustub_is_available
 gpustub_return 0
 gpustub_function gpustub_has_function
 gpustub_return 0
 gpustub_function gpustub_path
 gpustub_return 0
 gpustub_function gpustub_version
 gpustub_return 0
 gpustub_function gpustub_reason
 gpustub_return_string gpustub, reason
 gpustub_function gpustub_report
 gpustub_return 0
 gpustub_function gpustub_counts
 gpustub_zero 1, 4
 gpustub_zero 2, 4
 gpustub_zero 3, 4
 gpustub_pointer 0
 gpustub_return_query 1
 gpustub_function gpustub_set_handle
 gpustub_pointer 1
 gpustub_pointer 0
 gpustub_return_query 1
";

/// `stand_in.rs`, an object without functions. Its symbol is for the index of archives.
const STAND_IN: &str = "#![no_std]
core::arch::global_asm!(
    \".globl _gpustub1_stand_in\",
    \".private_extern _gpustub1_stand_in\",
    \".weak_definition _gpustub1_stand_in\",
    \"_gpustub1_stand_in:\",
);
";

/// Adds the stubs, and the stand-in for libraries: there is no run time.
pub(super) fn add_files(
    template: &str,
    plan: &Plan,
    tables: &[Tables],
    sources: &mut ByName<String>,
) {
    sources.insert("stubs.s", assembly(template, plan, tables));
    sources.insert("stubs.rs", rustc_source(&plan.target));
    sources.insert("stand_in.rs", STAND_IN.to_owned());
    for template in gpustub_templates::RUNTIME {
        if template.path == "runtime/gpustub.h" {
            sources.insert("gpustub.h", template.text.to_owned());
        }
    }
}

/// `stubs.s`: the template, then macro calls for each function.
fn assembly(template: &str, plan: &Plan, tables: &[Tables]) -> String {
    let mut text = template.to_owned() + QUERIES;
    for (planned, Tables { hash, .. }) in plan.libraries.iter().zip(tables) {
        if planned.stubbed {
            library(&mut text, planned, hash, &plan.target);
        }
    }
    text
}

fn library(text: &mut String, planned: &LibraryPlan, hash: &str, target: &Target) {
    let tables = format!("{}, {hash}", c_name(&planned.library.id));
    let string = &planned.library.status_string;
    let string = quote(string.strip_suffix(LOG).unwrap_or(string));
    add!(text, " gpustub_string {tables}\n .asciz {string}");
    if names_errors(planned) {
        add!(text, " gpustub_errors {tables}");
        errors(text, planned.library.errors);
    }
    let mut answers = Vec::new();
    for spec in planned.specs.iter() {
        answers.push(answer(spec, planned, &tables, target));
    }
    for function in planned.functions.iter() {
        add!(text, " gpustub_function {}", function.name);
        *text += &answers[usize::from(function.spec)];
    }
}

/// Rows of status codes, and their texts, `35: cudaErrorInsufficientDriver`.
fn errors(text: &mut String, errors: &str) {
    let mut rows = Vec::new();
    for line in errors.lines() {
        if let Some((code, name)) = line.split_once(' ').filter(|_| !line.starts_with('#')) {
            rows.push((code, name));
        }
    }
    let mut texts = String::new();
    // The row that ends them has the same size.
    let mut offset = 12 * (rows.len() + 1);
    for (index, (code, name)) in rows.iter().enumerate() {
        let row = 12 * index;
        let name_offset = offset + code.len() + 2;
        add!(
            text,
            " .long {code}, {}, {}",
            offset - row,
            name_offset - row
        );
        add!(texts, " .asciz \"{code}: {name}\"");
        offset = name_offset + name.len() + 1;
    }
    add!(text, " .long 0, 0, 0");
    *text += &texts;
}

/// Instructions of the functions with a spec. `tables`: the first arguments of macros that refer to the library.
fn answer(spec: &Spec, planned: &LibraryPlan, tables: &str, target: &Target) -> String {
    let Fallback {
        returns,
        outs,
        wide,
        status_if_missing,
    } = &spec.fallback;
    let status = status_if_missing.unwrap_or(planned.library.status.library_missing);
    let missing = planned.library.status.library_missing;
    let mut text = String::new();
    let kind = spec.hook.map(|hook| hook.kind);
    if kind.is_some_and(|kind| !matches!(kind, HookKind::CopyThrough | HookKind::Update)) {
        // Registration before `main`: nothing is there to register with.
        return " gpustub_return 0\n".to_owned();
    }
    for out in outs.iter().filter(|out| is_located(**out, target)) {
        let arg = target.argument_word(*out, wide, returns);
        match out.kind {
            OutKind::Zero(0) => add!(text, " gpustub_zero {arg}, 8"),
            OutKind::Zero(size) => add!(text, " gpustub_zero {arg}, {size}"),
            OutKind::Status => add!(text, " gpustub_store {arg}, {status}"),
            OutKind::String => add!(text, " gpustub_store_string {arg}, {tables}"),
            OutKind::ErrorName => add!(text, " gpustub_store_name {arg}, {tables}"),
            OutKind::ErrorString => add!(text, " gpustub_store_text {arg}, {tables}, {missing}"),
        }
    }
    match target.result(returns) {
        Returns::Status => add!(text, " gpustub_return {status}"),
        Returns::Value(value) => add!(text, " gpustub_return_value {value}"),
        Returns::String => add!(text, " gpustub_return_string {tables}"),
        Returns::Null | Returns::ZeroedHfa(_) => add!(text, " gpustub_return_value 0"),
        Returns::Void => add!(text, " gpustub_return_nothing"),
        Returns::ZeroedStruct(size) => add!(text, " gpustub_return_struct {size}"),
        Returns::ErrorName => add!(text, " gpustub_return_name {tables}"),
        Returns::ErrorString => add!(text, " gpustub_return_text {tables}, {missing}"),
        Returns::UnknownError(code) => add!(text, " gpustub_return_unknown {tables}, {code}"),
    }
    text
}

/// Whether the place of an out-parameter is known: on AArch64 Apple packs the arguments on the stack, so that it
/// depends on the types of those before ("Writing ARM64 code for Apple platforms", "Pass arguments to functions
/// correctly").
fn is_located(out: Out, target: &Target) -> bool {
    const FIRST_ON_STACK: u8 = 8;
    target.arch != "aarch64" || out.arg <= FIRST_ON_STACK
}

#[cfg(test)]
mod tests {
    use crate::sources::tests::{MANIFEST, render_text};

    /// A program of macOS has no run time, and its functions answer as it does for a missing library.
    #[test]
    fn macos_has_constant_answers() {
        for (triple, options) in [
            ("x86_64-apple-darwin", "att_syntax, raw"),
            ("aarch64-apple-darwin", "raw"),
        ] {
            let sources = render_text("schema = 1\n[stub.cuda]\nheader-version = \"12\"\n", triple);
            let files: Vec<&str> = sources.iter().map(|(path, _)| &**path).collect();
            assert_eq!(
                files,
                ["gpustub.h", "stand_in.rs", "stubs.rs", "stubs.s"],
                "{triple}"
            );
            assert!(sources["stubs.rs"].contains(&format!("options({options})")));
            let text = &sources["stubs.s"];
            let tables = text
                .lines()
                .find_map(|line| line.strip_prefix(" gpustub_string cuda, "))
                .map(|hash| format!("cuda, {hash}"))
                .expect("the library");
            let error_text = format!(
                " gpustub_function cuGetErrorString\n gpustub_store_text 1, {tables}, 100\n \
                 gpustub_return_unknown {tables}, 1\n"
            );
            for lines in [
                " gpustub_function cuInit\n gpustub_return 100\n",
                " gpustub_function cuDeviceGetCount\n gpustub_zero 0, 4\n gpustub_return 100\n",
                " .asciz \"the CUDA driver (libcuda) is not available\"\n",
                &error_text,
            ] {
                assert!(text.contains(lines), "{triple}: {lines}");
            }
            assert!(
                text.lines().all(|line| !line.starts_with('#')),
                "no preprocessor"
            );
        }
    }

    /// On AArch64 the place of a second argument on the stack depends on the first.
    #[test]
    fn arguments_without_a_known_place_are_not_written() {
        let manifest = MANIFEST.replace("acmeOpen = [0]", "acmeOpen = [7, 8, 9]");
        for (triple, is_written) in [
            ("x86_64-apple-darwin", true),
            ("aarch64-apple-darwin", false),
        ] {
            let text = &render_text(&manifest, triple)["stubs.s"];
            assert!(text.contains(" gpustub_zero 8, 8\n"), "{triple}");
            assert_eq!(
                text.contains(" gpustub_zero 9, 8\n"),
                is_written,
                "{triple}"
            );
        }
    }
}
