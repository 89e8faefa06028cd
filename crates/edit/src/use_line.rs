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
use crate::templates;

/// Purpose of a line.
#[derive(Debug, Clone)]
pub struct Line {
    why: &'static str,
    /// Condition in `#[cfg(…)]`; empty: none.
    condition: Cow<'static, str>,
    /// Whether the condition is copied from a dependency, and follows its changes.
    follows: bool,
}

impl Line {
    const fn new(why: &'static str) -> Self {
        Self {
            why,
            condition: Cow::Borrowed(""),
            follows: false,
        }
    }

    /// Text of the line for `library`, with its attribute.
    fn text(&self, library: &str, edition: Edition) -> String {
        let data = json!({
            "library": library,
            "edition_2015": edition == Edition::E2015,
            "why": self.why,
            "condition": self.condition,
        });
        templates::render("use-line", &data).trim_end().to_owned()
    }
}

/// Names the package's own library in a program.
pub static STUBS: Line = Line::new("its build script has the GPU stubs");

/// Names a finalizer in a program.
pub static DEVICE_LINK: Line = Line::new("the device link of its CUDA code");

/// Names a finalizer in a library's unit tests.
pub static UNIT_TESTS: Line = Line {
    why: "the device link of its CUDA code",
    condition: Cow::Borrowed("test"),
    follows: false,
};

/// Names dependencies whose device code the package calls, under their condition.
pub fn device_code(condition: String) -> Line {
    Line {
        condition: condition.into(),
        follows: true,
        ..Line::new("its CUDA code, and what that is linked with")
    }
}

/// Adds the line after the inner attributes, before the first item, unless the file already names
/// the library.
pub fn add(text: &str, library: &str, edition: Edition, line: &Line) -> Edit {
    let Some(file) = rust::File::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    let newline = line_break(text);
    let line = (line.text(library, edition).replace('\n', newline), line);
    if file.mentions_crate(library) {
        return match written(text, library, edition, line.1) {
            Some(old) if line.1.follows && text[old.clone()] != line.0 => Edit::Changed(format!(
                "{}{}{}",
                &text[..old.start],
                line.0,
                &text[old.end..]
            )),
            _ => Edit::Same,
        };
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
    new.push_str(&line.0);
    new.push_str(newline);
    // Imports are adjacent; other items keep their distance.
    if !word.is_empty() && !matches!(word.as_str(), "use" | "extern") {
        new.push_str(newline);
    }
    Edit::Changed(format!("{before}{new}{}", &text[at..]))
}

/// Removes a line in the form written by `add`; other uses of the library must be removed manually.
pub fn remove(text: &str, library: &str, edition: Edition, line: &Line) -> Edit {
    let Some(file) = rust::File::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    if !file.mentions_crate(library) {
        return Edit::Same;
    }
    let newline = line_break(text);
    let wanted = line.text(library, edition).replace('\n', newline);
    let Some(range) = written(text, library, edition, line).filter(|at| text[at.clone()] == wanted)
    else {
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

/// Range of the line as `add` wrote it, including a condition above it, possibly a changed one.
fn written(text: &str, library: &str, edition: Edition, line: &Line) -> Option<Range<usize>> {
    let plain = Line {
        condition: Cow::Borrowed(""),
        ..line.clone()
    };
    let plain = plain.text(library, edition);
    let at = text.find(&plain)?;
    let end = at + plain.len();
    let whole =
        line_start(text, at) == at && text[end..].trim_start_matches('\r').starts_with('\n');
    if !whole {
        return None;
    }
    Some(with_condition(text, at)..end)
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
mod tests {
    use super::*;

    fn changed(text: &str) -> String {
        match add(text, "hello", Edition::E2024, &STUBS) {
            Edit::Changed(text) => text,
            other => panic!("{other:?} for {text}"),
        }
    }

    #[test]
    fn adds_the_line_before_the_first_item() {
        for (before, after) in [
            ("", "@"),
            ("fn main() {}\n", "@\nfn main() {}\n"),
            ("use std::env;\n", "@use std::env;\n"),
            ("//! Doc.\n", "//! Doc.\n\n@"),
            ("//! Doc.", "//! Doc.\n\n@"),
            ("//! Doc.\nfn main() {}\n", "//! Doc.\n\n@\nfn main() {}\n"),
            ("#![allow(x)]\n\nuse a;\n", "#![allow(x)]\n\n@use a;\n"),
            (
                "// Licence.\n\n/// Doc.\nfn main() {}",
                "// Licence.\n\n@\n/// Doc.\nfn main() {}",
            ),
            (
                "// Licence.\nfn main() {}",
                "// Licence.\n\n@\nfn main() {}",
            ),
            (
                "// L.\n\n// The main.\nfn main() {}",
                "// L.\n\n@\n// The main.\nfn main() {}",
            ),
            (
                "#![a]\n// std\nuse std::env;\n",
                "#![a]\n\n@// std\nuse std::env;\n",
            ),
            ("#!/bin/x\nfn main() {}\n", "#!/bin/x\n@\nfn main() {}\n"),
            ("/* a */ fn main() {}\n", "/* a */ \n\n@\nfn main() {}\n"),
            ("// only\n", "// only\n\n@"),
            (
                "fn f() { let hello = 1; a::hello::b(); }",
                "@\nfn f() { let hello = 1; a::hello::b(); }",
            ),
            (
                "// hello::x\r\n\r\nfn f() {}\r\n",
                "// hello::x\r\n\r\n@\r\nfn f() {}\r\n",
            ),
        ] {
            let newline = if before.contains('\r') { "\r\n" } else { "\n" };
            let after = after.replace(
                '@',
                &format!("use hello as _; // its build script has the GPU stubs{newline}"),
            );
            let once = changed(before);
            assert_eq!(once, after);
            assert_eq!(add(&once, "hello", Edition::E2024, &STUBS), Edit::Same);
        }
    }

    #[test]
    fn removing_the_line_restores_the_file() {
        for before in [
            "",
            "fn main() {}\n",
            "use std::env;\n",
            "//! Doc.\n\nfn main() {}\n",
            "// L.\r\n\r\nfn f() {}\r\n",
        ] {
            for line in [&DEVICE_LINK, &UNIT_TESTS] {
                let Edit::Changed(with) = add(before, "last", Edition::E2024, line) else {
                    panic!("{before}");
                };
                let gone = remove(&with, "last", Edition::E2024, line);
                assert_eq!(gone, Edit::Changed(before.to_owned()), "{with}");
            }
            assert_eq!(remove(before, "last", Edition::E2024, &STUBS), Edit::Same);
        }
        let own = "use last as _; // mine\n";
        assert!(matches!(
            remove(own, "last", Edition::E2024, &DEVICE_LINK),
            Edit::Impossible(_)
        ));
        let Edit::Changed(with) = add("fn f() {}\n", "last", Edition::E2024, &DEVICE_LINK) else {
            panic!()
        };
        // A condition, or a use, that the user has written.
        for own in [
            format!("#[cfg(x)]\n{with}"),
            format!("{with}use last::x;\n"),
        ] {
            let edit = remove(&own, "last", Edition::E2024, &DEVICE_LINK);
            assert!(matches!(edit, Edit::Impossible(_)), "{own}");
        }
    }

    #[test]
    fn a_condition_follows_the_dependency() {
        let with = |text: &str, condition: &str| {
            add(
                text,
                "b",
                Edition::E2024,
                &device_code(condition.to_owned()),
            )
        };
        let line = "use b as _; // its CUDA code, and what that is linked with\n";
        let one = format!("#[cfg(feature = \"x\")]\n{line}");
        let two = format!("#[cfg(unix)]\n{line}");
        assert_eq!(with("", "feature = \"x\""), Edit::Changed(one.clone()));
        assert_eq!(with(&one, "feature = \"x\""), Edit::Same);
        assert_eq!(with(&one, "unix"), Edit::Changed(two.clone()));
        assert_eq!(with(&two, ""), Edit::Changed(line.to_owned()));
        // Other lines, and those of a program on its finalizer, stay unchanged.
        assert_eq!(with("use b as _;\n", "unix"), Edit::Same);
        let own = "#[cfg(x)]\nuse b as _; // the device link of its CUDA code\n";
        assert_eq!(add(own, "b", Edition::E2024, &DEVICE_LINK), Edit::Same);
    }

    #[test]
    fn a_file_that_names_the_library_stays_unchanged() {
        for same in [
            "use hello;",
            "use hello as h;",
            "use hello::{a, b};",
            "extern crate hello;",
            "fn main() { hello::run() }",
            "fn main() { ::hello::run() }",
            "fn main() { println!(\"{}\", hello::VERSION) }",
        ] {
            assert_eq!(
                add(same, "hello", Edition::E2024, &STUBS),
                Edit::Same,
                "{same}"
            );
        }
    }

    #[test]
    fn edition_2015_uses_extern_crate() {
        let Edit::Changed(text) = add("fn main() {}\n", "hello", Edition::E2015, &STUBS) else {
            panic!()
        };
        assert!(text.starts_with("extern crate hello as _;"), "{text}");
    }

    #[test]
    fn required_and_foreign_lines_are_kept() {
        let line = |name: &str| format!("use {name} as _; // its build script has the GPU stubs\n");
        let gone = line("gone");
        for (before, after) in [
            (
                format!("{gone}\nfn main() {{}}\n"),
                "fn main() {}\n".to_owned(),
            ),
            (
                format!("{}{gone}use b;\n", line("kept")),
                format!("{}use b;\n", line("kept")),
            ),
            (
                format!("//! Doc.\n\n{gone}\nfn f() {{}}\n"),
                "//! Doc.\n\nfn f() {}\n".into(),
            ),
            (format!("#[cfg(unix)]\n{gone}use b;\n"), "use b;\n".into()),
            (gone.replace("use ", "extern crate "), String::new()),
            (
                gone.replace('\n', "\r\n") + "\r\nfn f() {}\r\n",
                "fn f() {}\r\n".into(),
            ),
        ] {
            assert_eq!(retain(&before, &STUBS, |name| name == "kept"), after);
        }
        for same in [
            format!("/*\n{gone}*/\n"),
            format!("const X: &str = \"\n{gone}\";\n"),
            format!("mod m {{\n{gone}}}\n"),
            format!("#[allow(unused)]\n{gone}"),
            gone.replace("use gone", "pub use gone"),
            gone.replace("as _", "as other"),
            gone.replace("the GPU", "my GPU"),
            "use gone as _;\n".to_owned(),
            format!("{gone}}}"),
        ] {
            assert_eq!(retain(&same, &STUBS, |_| false), same);
        }
    }
}
