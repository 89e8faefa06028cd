//! Edits the line `use <library> as _;` in the other targets of a package that has a library.
//!
//! Cargo passes link arguments of a build script to the library target only. A program of the same
//! package gets the stubs by linking that library, which rustc does only if the program names it;
//! without the line, a program that reaches the GPU library in another way would lack them.

use std::borrow::Cow;
use std::ops::Range;

use cargo_metadata::Edition;
use serde_json::json;

use super::{Edit, line_break, rust};
use crate::edit::templates;

/// Purpose of a line.
#[derive(Debug, Clone)]
pub struct Line {
    why: &'static str,
    /// Condition in `#[cfg(…)]`; empty: none.
    condition: Cow<'static, str>,
    /// Whether another condition of an existing line is replaced. Users may make the line of a
    /// finalizer conditional.
    follows: bool,
}

impl Line {
    const fn new(why: &'static str, condition: &'static str, follows: bool) -> Self {
        Self {
            why,
            condition: Cow::Borrowed(condition),
            follows,
        }
    }

    /// Text of the line for `library`, with its attribute.
    fn text(&self, library: &str, form: Form) -> String {
        let data = json!({
            "library": library,
            "extern_crate": form == Form::ExternCrate,
            "why": self.why,
            "condition": self.condition,
        });
        templates::render("use-line", &data).trim_end().to_owned()
    }

    /// The line without its condition.
    fn unconditional(&self) -> Self {
        Self {
            condition: Cow::Borrowed(""),
            ..self.clone()
        }
    }
}

/// Item that names the crate.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `use x as _;`
    Use,
    /// `extern crate x as _;`: in the 2015 edition, and in a file with an item `x` of its own,
    /// which a path would name.
    ExternCrate,
}

impl Form {
    fn choose(file: &rust::File, library: &str, edition: Edition) -> Self {
        if edition == Edition::E2015 || file.shadows_crate(library) {
            Self::ExternCrate
        } else {
            Self::Use
        }
    }
}

/// Names the package's own library in a program.
pub static STUBS: Line = Line::new("its build script has the GPU stubs", "", true);

/// Names a finalizer in a program.
pub static DEVICE_LINK: Line = Line::new("the device link of its CUDA code", "", false);

/// Names a finalizer in a library's unit tests.
pub static UNIT_TESTS: Line = Line::new("the device link of its CUDA code", "test", false);

/// Names dependencies whose device code the package calls, under their condition.
pub fn device_code(condition: String) -> Line {
    Line {
        condition: condition.into(),
        ..Line::new("its CUDA code, and what that is linked with", "", true)
    }
}

/// Adds the line after the inner attributes, before the first item, unless an item at the root of
/// the file links the library already. A second one costs nothing: a use in a module, in a function
/// or behind a `cfg` may not be compiled, so it does not count.
pub fn add(text: &str, library: &str, edition: Edition, line: &Line) -> Edit {
    let Some(file) = rust::File::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    let newline = line_break(text);
    let form = Form::choose(&file, library, edition);
    let wanted = line.text(library, form).replace('\n', newline);
    let old = written(text, &file, library, line);
    if let Some(old) = &old {
        let (range, wanted) = if line.follows {
            (old.clone(), wanted.clone())
        } else {
            let plain = line.unconditional().text(library, form);
            (statement(text, old), plain)
        };
        if text[range.clone()] != wanted {
            let (before, after) = (&text[..range.start], &text[range.end..]);
            return Edit::Changed(format!("{before}{wanted}{after}"));
        }
    }
    if file.links_crate(library, &line.condition) || (old.is_some() && !line.follows) {
        return Edit::Same;
    }
    let after = file.after_inner_attributes().unwrap_or(file.head());
    let (at, word) = match file.first_item() {
        Some((start, word)) => (attached_comment(text, after, start), word),
        None => (text.len(), String::new()),
    };
    let before = &text[..at];
    let mut new = String::new();
    if !before.is_empty() && !before.ends_with('\n') {
        new.push_str(newline);
    }
    if !blank_above(before, file.head()) {
        new.push_str(newline);
    }
    new.push_str(&wanted);
    new.push_str(newline);
    // Imports are adjacent; other items keep their distance.
    if !word.is_empty() && !matches!(word.as_str(), "use" | "extern") {
        new.push_str(newline);
    }
    Edit::Changed(format!("{before}{new}{}", &text[at..]))
}

/// Removes a line in the form written by `add`; other uses of the library must be removed manually.
pub fn remove(text: &str, library: &str, line: &Line) -> Edit {
    let Some(file) = rust::File::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    if !file.mentions_crate(library) {
        return Edit::Same;
    }
    let newline = line_break(text);
    let is_whole = |range: &Range<usize>| {
        let forms = [Form::Use, Form::ExternCrate];
        let texts = forms.map(|form| line.text(library, form).replace('\n', newline));
        texts.contains(&text[range.clone()].to_owned())
    };
    let Some(range) = written(text, &file, library, line).filter(is_whole) else {
        return Edit::Impossible("the file names the crate in another way");
    };
    let new = cut(text, range, file.head());
    match rust::File::parse(&new) {
        Some(file) if !file.mentions_crate(library) => Edit::Changed(new),
        _ => Edit::Impossible("the file names the crate in another way"),
    }
}

/// Returns the text without the lines that `add` has written for the same purpose, under any
/// condition, for crates that are not kept.
pub fn retain(text: &str, line: &Line, keep: impl Fn(&str) -> bool) -> String {
    let mut new = text.to_owned();
    let Some(file) = text
        .contains(line.why)
        .then(|| rust::File::parse(text))
        .flatten()
    else {
        return new;
    };
    let mut stale = Vec::new();
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let start = at;
        at += whole.len();
        let plain = whole.trim_end_matches(['\r', '\n']);
        let goes = named(plain, line.why).is_some_and(|name| !keep(name));
        // Ignores the same text in a comment, a string or a module.
        if !goes || !file.has_item_at(start) {
            continue;
        }
        let from = with_condition(text, start);
        let above = text[..from].trim_end().rsplit('\n').next();
        if !above.is_some_and(|above| above.starts_with("#[")) {
            stale.push(from..start + plain.len());
        }
    }
    for range in stale.into_iter().rev() {
        new = cut(&new, range, file.head());
    }
    new
}

/// Crate that a line names, if it has the form written by `add`.
fn named<'a>(line: &'a str, why: &str) -> Option<&'a str> {
    let rest = line.strip_suffix(why)?.strip_suffix(" as _; // ")?;
    let name = rest
        .strip_prefix("use ")
        .or_else(|| rest.strip_prefix("extern crate "))?;
    let is_word = name.chars().all(|c| c == '_' || c.is_alphanumeric());
    is_word.then_some(name)
}

/// Removes a line, and one of two empty lines that would be adjacent.
fn cut(text: &str, range: Range<usize>, head: usize) -> String {
    let before = &text[..range.start];
    let rest = text[range.end..].trim_start_matches('\r');
    let after = rest.strip_prefix('\n').unwrap_or(rest);
    let after = if blank_above(before, head) {
        after.strip_prefix(line_break(text)).unwrap_or(after)
    } else {
        after
    };
    format!("{before}{after}")
}

/// Range of the line as `add` wrote it, in either form, including a condition above it, possibly a
/// changed one.
fn written(text: &str, file: &rust::File, library: &str, line: &Line) -> Option<Range<usize>> {
    let plain = [Form::Use, Form::ExternCrate].map(|form| {
        let line = line.unconditional();
        line.text(library, form)
    });
    let mut at = 0;
    for whole in text.split_inclusive('\n') {
        let start = at;
        at += whole.len();
        let is_it = plain.iter().any(|plain| whole.trim_end() == plain);
        // Ignores the same text in a comment, a string or a module.
        if is_it && file.has_item_at(start) {
            return Some(with_condition(text, start)..start + whole.trim_end().len());
        }
    }
    None
}

/// Range of a written line without the condition above it.
fn statement(text: &str, range: &Range<usize>) -> Range<usize> {
    line_start(text, range.end)..range.end
}

/// Start of the line at `at`, including its condition, if it has one.
fn with_condition(text: &str, at: usize) -> usize {
    let above = line_start(text, at.saturating_sub(1));
    if above < at && text[above..at].starts_with("#[cfg(") {
        above
    } else {
        at
    }
}

/// Start of the comment directly above the item at `start`, or of the item's line. Never before
/// `after`, and never a comment at the top of the file, which describes the file.
fn attached_comment(text: &str, after: usize, start: usize) -> usize {
    let line = line_start(text, start);
    if line < after || !text[line..start].trim().is_empty() {
        return start;
    }
    let mut at = line;
    while at > after {
        let above = line_start(text, at - 1);
        if above < after || !text[above..at].trim_start().starts_with("//") {
            return at;
        }
        at = above;
    }
    line
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// Whether a line can follow `before` without an empty one between.
fn blank_above(before: &str, head: usize) -> bool {
    let text = before[head.min(before.len())..].trim_end_matches([' ', '\t']);
    text.is_empty() || text.replace('\r', "").ends_with("\n\n")
}

#[cfg(test)]
mod tests;
