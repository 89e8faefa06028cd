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
    /// Comment of the line.
    reason: &'static str,
    /// Condition in `#[cfg(…)]`; empty: none.
    condition: Cow<'static, str>,
    /// Whether another condition of an existing line is replaced. Users may make the line of a
    /// finalizer conditional.
    replaces_condition: bool,
}

impl Line {
    const fn new(reason: &'static str, condition: &'static str, replaces_condition: bool) -> Self {
        Self {
            reason,
            condition: Cow::Borrowed(condition),
            replaces_condition,
        }
    }

    /// Text of the line for `library`, with its attribute.
    fn text(&self, library: &str, form: Form) -> String {
        let data = json!({
            "library": library,
            "extern_crate": form == Form::ExternCrate,
            "why": self.reason,
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
    /// Both forms.
    const ALL: [Self; 2] = [Self::Use, Self::ExternCrate];

    fn choose(file: &rust::SourceFile, library: &str, edition: Edition) -> Self {
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
    let Some(file) = rust::SourceFile::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    let form = Form::choose(&file, library, edition);
    let new_line = line.text(library, form).replace('\n', line_break(text));
    let written = written(text, &file, library, line);
    if let Some(written) = &written {
        let (range, replacement) = if line.replaces_condition {
            (written.clone(), new_line.clone())
        } else {
            let statement = statement(text, written);
            (statement, line.unconditional().text(library, form))
        };
        if text[range.clone()] != replacement {
            let (before, after) = (&text[..range.start], &text[range.end..]);
            return Edit::Changed(format!("{before}{replacement}{after}"));
        }
    }
    if file.links_crate(library, &line.condition) || (written.is_some() && !line.replaces_condition)
    {
        return Edit::Same;
    }
    Edit::Changed(insert(text, &file, &new_line))
}

/// Inserts a line before the first item and its comment.
fn insert(text: &str, file: &rust::SourceFile, line: &str) -> String {
    let newline = line_break(text);
    let first_position = file.after_inner_attributes().unwrap_or(file.head());
    let (position, word) = match file.first_item() {
        Some((start, word)) => (attached_comment(text, first_position, start), word),
        None => (text.len(), String::new()),
    };
    let (before, after) = text.split_at(position);
    let mut new = before.to_owned();
    if !before.is_empty() && !before.ends_with('\n') {
        new.push_str(newline);
    }
    if !blank_above(before, file.head()) {
        new.push_str(newline);
    }
    new.push_str(line);
    new.push_str(newline);
    // Imports are adjacent; other items keep their distance.
    if !word.is_empty() && !matches!(word.as_str(), "use" | "extern") {
        new.push_str(newline);
    }
    new + after
}

/// Removes a line in the form written by `add`; other uses of the library must be removed manually.
pub fn remove(text: &str, library: &str, line: &Line) -> Edit {
    const NAMED_OTHERWISE: Edit = Edit::Impossible("the file names the crate in another way");
    let Some(file) = rust::SourceFile::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    if !file.mentions_crate(library) {
        return Edit::Same;
    }
    let Some(range) = written(text, &file, library, line) else {
        return NAMED_OTHERWISE;
    };
    let newline = line_break(text);
    let is_unchanged = Form::ALL.into_iter().any(|form| {
        let original = line.text(library, form).replace('\n', newline);
        text[range.clone()] == original
    });
    if !is_unchanged {
        return NAMED_OTHERWISE;
    }
    let new = cut(text, range, file.head());
    match rust::SourceFile::parse(&new) {
        Some(file) if !file.mentions_crate(library) => Edit::Changed(new),
        _ => NAMED_OTHERWISE,
    }
}

/// Returns the text without the lines that `add` has written for the same purpose, under any
/// condition, for crates that are not kept.
pub fn retain(text: &str, line: &Line, keep: impl Fn(&str) -> bool) -> String {
    let mut new = text.to_owned();
    if !text.contains(line.reason) {
        return new;
    }
    let Some(file) = rust::SourceFile::parse(text) else {
        return new;
    };
    let mut stale = Vec::new();
    for (start, text_line) in lines_with_start(text) {
        let statement = text_line.trim_end_matches(['\r', '\n']);
        let is_stale = named_crate(statement, line.reason).is_some_and(|name| !keep(name));
        // Ignores the same text in a comment, a string or a module.
        if !is_stale || !file.has_item_at(start) {
            continue;
        }
        let item_start = with_condition(text, start);
        let above = text[..item_start].trim_end().rsplit('\n').next();
        if !above.is_some_and(|above| above.starts_with("#[")) {
            stale.push(item_start..start + statement.len());
        }
    }
    for range in stale.into_iter().rev() {
        new = cut(&new, range, file.head());
    }
    new
}

/// Lines of a text, each with the position of its start, and with its line break.
fn lines_with_start(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut end = 0;
    text.split_inclusive('\n').map(move |line| {
        let start = end;
        end += line.len();
        (start, line)
    })
}

/// Crate that a line names, if it has the form written by `add`.
fn named_crate<'a>(line: &'a str, reason: &str) -> Option<&'a str> {
    let item = line.strip_suffix(reason)?.strip_suffix(" as _; // ")?;
    let name = item
        .strip_prefix("use ")
        .or_else(|| item.strip_prefix("extern crate "))?;
    name.chars()
        .all(|c| c == '_' || c.is_alphanumeric())
        .then_some(name)
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
fn written(
    text: &str,
    file: &rust::SourceFile,
    library: &str,
    line: &Line,
) -> Option<Range<usize>> {
    let statements = Form::ALL.map(|form| line.unconditional().text(library, form));
    for (start, text_line) in lines_with_start(text) {
        let statement = text_line.trim_end();
        // Ignores the same text in a comment, a string or a module.
        if statements.iter().any(|known| known == statement) && file.has_item_at(start) {
            return Some(with_condition(text, start)..start + statement.len());
        }
    }
    None
}

/// Range of a written line without the condition above it.
fn statement(text: &str, range: &Range<usize>) -> Range<usize> {
    line_start(text, range.end)..range.end
}

/// Start of the line at `start`, including its condition, if it has one.
fn with_condition(text: &str, start: usize) -> usize {
    let above = line_start(text, start.saturating_sub(1));
    if above < start && text[above..start].starts_with("#[cfg(") {
        above
    } else {
        start
    }
}

/// Start of the comment directly above the item at `start`, or of the item's line. Never before
/// `after`, and never a comment at the top of the file, which describes the file.
fn attached_comment(text: &str, after: usize, start: usize) -> usize {
    let line = line_start(text, start);
    if line < after || !text[line..start].trim().is_empty() {
        return start;
    }
    let mut comment = line;
    while comment > after {
        let above = line_start(text, comment - 1);
        if above < after || !text[above..comment].trim_start().starts_with("//") {
            return comment;
        }
        comment = above;
    }
    line
}

fn line_start(text: &str, position: usize) -> usize {
    text[..position]
        .rfind('\n')
        .map_or(0, |newline| newline + 1)
}

/// Whether a line can follow `before` without an empty one between.
fn blank_above(before: &str, head: usize) -> bool {
    let text = before[head.min(before.len())..].trim_end_matches([' ', '\t']);
    text.is_empty() || text.replace('\r', "").ends_with("\n\n")
}

#[cfg(test)]
mod tests;
