use super::*;

fn changed(text: &str) -> String {
    match add(text, "hello", Edition::E2024, &STUBS) {
        Edit::Changed(text) => text,
        edit => panic!("{edit:?} for {text}"),
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
            let edit = remove(&with, "last", line);
            assert_eq!(edit, Edit::Changed(before.to_owned()), "{with}");
        }
        assert_eq!(remove(before, "last", &STUBS), Edit::Same);
    }
    assert!(matches!(
        remove("use last as _; // mine\n", "last", &DEVICE_LINK),
        Edit::Impossible(_)
    ));
    let Edit::Changed(with) = add("fn f() {}\n", "last", Edition::E2024, &DEVICE_LINK) else {
        panic!()
    };
    // A condition, or a use, that the user has written.
    for text in [
        format!("#[cfg(x)]\n{with}"),
        format!("{with}use last::x;\n"),
    ] {
        let edit = remove(&text, "last", &DEVICE_LINK);
        assert!(matches!(edit, Edit::Impossible(_)), "{text}");
    }
}

#[test]
fn a_condition_follows_the_dependency() {
    fn with_condition(text: &str, condition: &str) -> Edit {
        let line = device_code(condition.to_owned());
        add(text, "b", Edition::E2024, &line)
    }
    let line = "use b as _; // its CUDA code, and what that is linked with\n";
    let for_x = format!("#[cfg(feature = \"x\")]\n{line}");
    let for_unix = format!("#[cfg(unix)]\n{line}");
    for (text, condition, edit) in [
        ("", "feature = \"x\"", Edit::Changed(for_x.clone())),
        (&for_x, "feature = \"x\"", Edit::Same),
        (&for_x, "unix", Edit::Changed(for_unix.clone())),
        (&for_unix, "", Edit::Changed(line.to_owned())),
        // Other lines, and those of a program on its finalizer, stay unchanged.
        ("use b as _;\n", "unix", Edit::Same),
    ] {
        assert_eq!(with_condition(text, condition), edit);
    }
    let by_hand = "#[cfg(x)]\nuse b as _; // the device link of its CUDA code\n";
    assert_eq!(add(by_hand, "b", Edition::E2024, &DEVICE_LINK), Edit::Same);
}

#[test]
fn a_file_that_links_the_library_stays_unchanged() {
    for same in [
        "use hello;",
        "use hello as h;",
        "use hello::{a, b};",
        "use ::hello::a;",
        "use {std::env, hello::a};",
        "pub use hello::a;",
        "pub(crate) use hello::a;",
        "#[allow(unused)] /** Doc. */ use hello::a;",
        "extern crate hello;",
        "#[macro_use] extern crate hello as h;",
        "mod hello {} extern crate hello as _;",
        "struct S; static X: S = S {}; impl S {} use hello::a;",
        "fn f(hello: u8) {} use hello::a;",
    ] {
        for edition in [Edition::E2015, Edition::E2024] {
            assert_eq!(add(same, "hello", edition, &STUBS), Edit::Same, "{same}");
        }
    }
}

/// rustc links no crate for them under every configuration.
#[test]
fn conditional_and_nested_uses_do_not_count() {
    for unlinked in [
        "fn main() { hello::run() }",
        "fn main() { ::hello::run() }",
        "fn main() { println!(\"{}\", hello::VERSION) }",
        "fn main() { use hello::run; run() }",
        "#[cfg(test)] mod tests { use hello::a; }",
        "mod inner { use hello::a; }",
        "#[cfg(feature = \"gpu\")] use hello::a;",
        "#[cfg(test)] extern crate hello;",
        "#[cfg_attr(test, macro_use)] extern crate hello;",
        "#[strip] use hello::a;",
        "macro_rules! m { () => { use hello::a; } }",
        "m! { use hello::a; }",
    ] {
        for (edition, item) in [(Edition::E2015, "extern crate"), (Edition::E2024, "use")] {
            let line = format!("{item} hello as _; // its build script has the GPU stubs");
            let Edit::Changed(text) = add(unlinked, "hello", edition, &STUBS) else {
                panic!("{unlinked}");
            };
            let count = text.lines().filter(|known| *known == line).count();
            assert_eq!(count, 1, "{text}");
            assert_eq!(add(&text, "hello", edition, &STUBS), Edit::Same, "{text}");
        }
    }
}

/// `use hello` would name the item of the file.
#[test]
fn a_shadowed_library_is_named_by_extern_crate() {
    let line = "extern crate hello as _; // its build script has the GPU stubs\n";
    for shadowing in [
        "mod hello;\nfn main() { hello::run() }\n",
        "pub(crate) mod hello {}\nuse hello::run;\n",
        "use crate::gpu::hello;\nuse hello::run;\n",
        "use gpu::{self as hello};\n",
        "use {gpu as hello};\n",
        "extern crate gpu as hello;\nuse hello::run;\n",
        "#[cfg(unix)]\npub enum hello {}\n",
    ] {
        let text = changed(shadowing);
        assert!(text.contains(line), "{text}");
        assert_eq!(add(&text, "hello", Edition::E2024, &STUBS), Edit::Same);
        // The line of an earlier run, before the file had the item.
        let old = text.replace("extern crate hello as", "use hello as");
        assert_eq!(changed(&old), text);
        let removed = remove(&text, "hello", &STUBS);
        assert!(!matches!(removed, Edit::Same), "{removed:?}");
    }
}

#[test]
fn a_condition_on_the_line_of_the_stubs_is_removed() {
    let line = "use hello as _; // its build script has the GPU stubs\n";
    assert_eq!(changed(&format!("#[cfg(unix)]\n{line}")), line);
    let nested = format!("mod m {{\n{line}}}\n");
    assert_eq!(changed(&nested), format!("{line}\n{nested}"));
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
    let gone = "use gone as _; // its build script has the GPU stubs\n";
    let kept = gone.replace("gone", "kept");
    for (before, after) in [
        (
            format!("{gone}\nfn main() {{}}\n"),
            "fn main() {}\n".to_owned(),
        ),
        (format!("{kept}{gone}use b;\n"), format!("{kept}use b;\n")),
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
