//! The line `use <library> as _;` in the other targets of a package that has a library.
//!
//! Cargo hands what a build script links to the library target alone. A program of the same
//! package gets the stubs by linking that library, which rustc does only if the program names
//! it; without the line, a program that reaches the GPU library in another way would miss them.

use cargo_metadata::Edition;
use serde_json::json;

use super::{Edit, line_break, rust};
use crate::templates;

/// What a line is for.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    why: &'static str,
    /// For the crate's unit tests alone.
    tests: bool,
}

/// A program names the library of its package.
pub const STUBS: Line = Line {
    why: "its build script has the GPU stubs",
    tests: false,
};

/// A package names those whose device code its own calls.
pub const DEVICE_CODE: Line = Line {
    why: "its CUDA code, and what that is linked with",
    tests: false,
};

/// A program names a finalizer.
pub const DEVICE_LINK: Line = Line {
    why: "the device link of its CUDA code",
    tests: false,
};

/// A library's unit tests do.
pub const UNIT_TESTS: Line = Line {
    tests: true,
    ..DEVICE_LINK
};

/// Adds the line after the inner attributes, before the first item, unless the file names the
/// library already.
pub fn add(text: &str, library: &str, edition: Edition, line: Line) -> Edit {
    let Some(file) = rust::File::parse(text) else {
        return Edit::Impossible("it cannot be read as Rust");
    };
    if file.mentions_crate(library) {
        return Edit::Same;
    }
    let edition_2015 = edition == Edition::E2015;
    let Line { why, tests } = line;
    let data = json!({
        "library": library, "edition_2015": edition_2015, "why": why, "tests": tests,
    });
    let line = templates::render("use-line", &data);
    let newline = line_break(text);
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
    new.push_str(line.trim_end());
    new.push_str(newline);
    // Imports stay together; other items keep their distance.
    if !word.is_empty() && !matches!(word.as_str(), "use" | "extern") {
        new.push_str(newline);
    }
    Edit::Changed(format!("{before}{new}{}", &text[at..]))
}

/// Where the comment begins that stands directly above the item at `start`, or the item's line.
/// Nothing before `after`, and no comment at the top of the file: that one speaks of the file.
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
        match add(text, "hello", Edition::E2024, STUBS) {
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
            assert_eq!(add(&once, "hello", Edition::E2024, STUBS), Edit::Same);
        }
    }

    #[test]
    fn a_file_that_names_the_library_stays() {
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
                add(same, "hello", Edition::E2024, STUBS),
                Edit::Same,
                "{same}"
            );
        }
    }

    #[test]
    fn the_first_edition_wants_extern_crate() {
        let Edit::Changed(text) = add("fn main() {}\n", "hello", Edition::E2015, STUBS) else {
            panic!()
        };
        assert!(text.starts_with("extern crate hello as _;"), "{text}");
    }
}
