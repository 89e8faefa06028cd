//! Edits the line in `build.rs`.

use serde_json::json;

use super::{Edit, line_break, rust};
use crate::edit::templates;

/// Text of a new build script. `name`: name of the helper in this package.
pub fn new(name: &str, call: &str) -> String {
    templates::render("build.rs", &json!({ "helper": name, "call": call }))
}

/// Function for a package with stubs, or with RDC libraries that other packages link.
pub const BUILD: &str = "build";

/// Function for a package with RDC libraries and programs: it also device-links these.
pub const FINALIZE: &str = "finalize";

/// Line that a build script needs.
pub fn line(name: &str, call: &str) -> String {
    templates::render("build-line", &json!({ "helper": name, "call": call }))
        .trim_end()
        .to_owned()
}

/// Whether a build script device-links its package's programs: it names the function, or the method
/// of the builder.
pub fn finalizes(text: &str) -> bool {
    rust::SourceFile::parse(text).is_some_and(|file| file.has_word(FINALIZE))
}

/// Replaces the line that calls one function by the line that calls another, if there is one such line.
pub fn replace_call(text: &str, name: &str, old: &str, new: &str) -> Edit {
    let old_line = line(name, old);
    if text.matches(&old_line).count() == 1 {
        Edit::Changed(text.replace(&old_line, &line(name, new)))
    } else {
        Edit::Same
    }
}

/// Adds the line as the first statement of `fn main`, unless the helper is mentioned already.
pub fn add_call(text: &str, name: &str, call: &str) -> Edit {
    let Some(file) = rust::SourceFile::parse(text) else {
        return Edit::Impossible("the file is not valid Rust");
    };
    if file.mentions_crate(name) {
        return Edit::Same;
    }
    let Some(body) = file.main_body() else {
        return Edit::Impossible("the file has no `fn main()`, or several");
    };
    let line = line(name, call);
    let newline = line_break(text);
    let inside = &text[body.clone()];
    let outer = indentation(text, body.start);
    if inside.trim().is_empty() {
        // `{}`: the whole body is replaced.
        let new_body = format!("{newline}{outer}    {line}{newline}{outer}");
        return Edit::Changed(splice(text, body, &new_body));
    }
    let (position, statement) = match inside.split_once('\n') {
        Some((rest_of_line, _)) if is_blank_or_comment(rest_of_line) => {
            let inner = first_indentation(inside).unwrap_or_else(|| format!("{outer}    "));
            let end = body.start + rest_of_line.trim_end_matches('\r').len();
            (end, format!("{newline}{inner}{line}"))
        }
        _ => (body.start, format!(" {line}")),
    };
    Edit::Changed(splice(text, position..position, &statement))
}

fn is_blank_or_comment(line: &str) -> bool {
    let code = line.trim();
    code.is_empty() || code.starts_with("//")
}

fn splice(text: &str, range: std::ops::Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

/// White space at the start of the line that contains `position`.
fn indentation(text: &str, position: usize) -> String {
    let start = text[..position]
        .rfind('\n')
        .map_or(0, |newline| newline + 1);
    text[start..]
        .chars()
        .take_while(|c| matches!(c, ' ' | '\t'))
        .collect()
}

/// Indentation of the first line after this one that is not empty.
fn first_indentation(body: &str) -> Option<String> {
    let line = body.lines().skip(1).find(|line| !line.trim().is_empty())?;
    Some(
        line.chars()
            .take_while(|c| matches!(c, ' ' | '\t'))
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str) -> String {
        match add_call(text, "gpustub_build", BUILD) {
            Edit::Changed(text) => text,
            edit => panic!("{edit:?} for {text}"),
        }
    }

    #[test]
    fn adds_the_first_statement() {
        for (before, after) in [
            (
                "fn main() {}\n",
                "fn main() {\n    gpustub_build::build();\n}\n",
            ),
            (
                "fn main() {\n}\n",
                "fn main() {\n    gpustub_build::build();\n}\n",
            ),
            (
                "fn main() { a(); }",
                "fn main() { gpustub_build::build(); a(); }",
            ),
            (
                "fn main() {\n    a();\n}\n",
                "fn main() {\n    gpustub_build::build();\n    a();\n}\n",
            ),
            (
                "fn main() { // why\n\ta();\n}\n",
                "fn main() { // why\n\tgpustub_build::build();\n\ta();\n}\n",
            ),
            (
                "fn main() {\r\n    a();\r\n}\r\n",
                "fn main() {\r\n    gpustub_build::build();\r\n    a();\r\n}\r\n",
            ),
            (
                "/* fn main() { */ const S: &str = \"fn main() {\"; fn main()\n  -> Result<(), E>\n{\n  Ok(())\n}",
                "/* fn main() { */ const S: &str = \"fn main() {\"; fn main()\n  -> Result<(), E>\n{\n  gpustub_build::build();\n  Ok(())\n}",
            ),
            (
                "fn main() {\n    #![allow(x)]\n    a();\n}",
                "fn main() {\n    #![allow(x)]\n    gpustub_build::build();\n    a();\n}",
            ),
            (
                "#!/usr/bin/env x {\n// gpustub_build::build()\nfn main() {\n    a('{');\n}\n",
                "#!/usr/bin/env x {\n// gpustub_build::build()\nfn main() {\n    gpustub_build::build();\n    a('{');\n}\n",
            ),
        ] {
            assert_eq!(changed(before), after);
            assert_eq!(add_call(after, "gpustub_build", BUILD), Edit::Same);
        }
    }

    #[test]
    fn unsupported_scripts_stay_unchanged() {
        for same in [
            "fn main() { gpustub_build::Build::new().try_build().unwrap(); }",
            "use gpustub_build as g; fn main() { g::build() }",
            "extern crate gpustub_build; fn main() {}",
            "use gpustub_build; fn main() {}",
            "fn main() { println!(\"{}\", x!(gpustub_build::VERSION)); }",
        ] {
            assert_eq!(add_call(same, "gpustub_build", BUILD), Edit::Same, "{same}");
        }
        assert_eq!(
            add_call("include!(\"b.rs\");", "x", BUILD),
            Edit::Impossible("the file has no `fn main()`, or several")
        );
        assert_eq!(
            add_call("fn main() { ( }", "x", BUILD),
            Edit::Impossible("the file is not valid Rust")
        );
        assert_eq!(
            add_call(
                "#[cfg(a)] fn main() {} #[cfg(not(a))] fn main() {}",
                "x",
                BUILD
            ),
            Edit::Impossible("the file has no `fn main()`, or several")
        );
        assert_eq!(
            add_call("mod a { fn main() {} }", "x", BUILD),
            Edit::Impossible("the file has no `fn main()`, or several")
        );
    }

    #[test]
    fn a_written_call_is_replaced_by_the_other_one() {
        let text = new("gpustub_build", BUILD);
        let linking = new("gpustub_build", FINALIZE);
        let by_hand = "fn main() { gpustub_build::Build::new().build(); }";
        for (before, old, new, edit) in [
            (&*text, BUILD, FINALIZE, Edit::Changed(linking.clone())),
            (&linking, FINALIZE, BUILD, Edit::Changed(text.clone())),
            (&linking, BUILD, FINALIZE, Edit::Same),
            (by_hand, BUILD, FINALIZE, Edit::Same),
        ] {
            assert_eq!(replace_call(before, "gpustub_build", old, new), edit);
        }
        for call in [FINALIZE, BUILD] {
            assert_eq!(add_call(&linking, "gpustub_build", call), Edit::Same);
        }
        assert!(finalizes(&linking) && !finalizes(&text) && !finalizes(by_hand));
        let builder = "fn main() { gpustub_build::Build::new().finalize().build(); }";
        assert!(finalizes(builder) && !finalizes("// finalize()\nfn main() {}"));
    }

    #[test]
    fn a_new_script_is_complete() {
        assert_eq!(
            add_call(&new("gpustub_build", BUILD), "gpustub_build", BUILD),
            Edit::Same
        );
    }

    /// The text without the call and without white space.
    fn code_without_call(text: &str) -> String {
        text.replace("gpustub_build::build();", "")
            .split_whitespace()
            .collect()
    }

    /// Every combination of these parts: the first edit adds one line, the second changes no line.
    #[test]
    fn is_idempotent_over_generated_scripts() {
        let heads = [
            "",
            "\u{feff}",
            "// x\n\n",
            "#![allow(unused)]\n",
            "#!/bin/x\n",
            "//! doc\n",
        ];
        let items = [
            "",
            "use std::env;\n",
            "mod m { pub fn main() {} }\n",
            "fn helper() {}\n",
        ];
        let signs = [
            "fn main()",
            "pub fn main() -> Result<(), [u8; 3]>",
            "fn main()\n",
        ];
        let bodies = [
            "{}",
            "{ }",
            "{\n}",
            "{ /* } */ }",
            "{ // }\n}",
            "{ \"}\"; }",
            "{\n\n    a();\n}",
            "{\n\ta();\n}",
            "{ #![x] a() }",
            "{ #![x]\n  a()\n}",
            "{ r#\"}\"# }",
            "{ '}' }",
        ];
        let tails = ["", "\n", "\nfn other() { main() }\n"];
        for newline in ["\n", "\r\n"] {
            for head in heads {
                for item in items {
                    for sign in signs {
                        for body in bodies {
                            for tail in tails {
                                let text = format!("{head}{item}{sign} {body}{tail}");
                                let text = text.replace('\n', newline);
                                let once = changed(&text);
                                assert_eq!(once.matches("gpustub_build::build();").count(), 1);
                                assert_eq!(
                                    add_call(&once, "gpustub_build", BUILD),
                                    Edit::Same,
                                    "{once}"
                                );
                                assert_eq!(code_without_call(&once), code_without_call(&text));
                                let has_lone_newline = once.replace("\r\n", "").contains('\n');
                                assert!(!text.contains('\r') || !has_lone_newline, "{once:?}");
                            }
                        }
                    }
                }
            }
        }
    }
}
