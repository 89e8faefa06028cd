//! The toml crate reads the same, and finds the same wrong.

use std::fmt::Write as _;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use toml::de::{DeTable, DeValue};

use super::*;

/// A tree as text, with all its places.
fn show(node: &Node<'_>, text: &mut String) {
    let _ = write!(text, "{:?} ", node.span);
    let _ = match &node.data {
        Data::String(string) => write!(text, "{string:?}"),
        Data::Integer { digits, radix } => write!(text, "{digits} to {radix}"),
        Data::Float(digits) => write!(text, "{digits}"),
        Data::Boolean(truth) => write!(text, "{truth}"),
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
        DeValue::Boolean(truth) => write!(text, "{truth}"),
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

fn compare(text: &str) {
    let ours = parse(text).map(|entries| {
        let mut shown = String::new();
        show_entries(&entries, &mut shown);
        shown
    });
    let theirs = DeTable::parse(text).map_err(|error| SyntaxError {
        message: error.message().to_owned(),
        span: error.span(),
    });
    let theirs = theirs.map(|table| {
        let mut shown = String::new();
        show_their_table(table.get_ref(), &mut shown);
        shown
    });
    assert_eq!(ours, theirs, "{text}");
}

#[test]
fn shipped_manifests_are_read_alike() {
    for library in gpustub_manifests::LIBRARIES {
        compare(library.manifest);
    }
}

#[test]
fn headers_and_dotted_keys_are_judged_alike() {
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

/// Pieces whose combinations are mostly grammatical, and often contradict each other.
fn lines() -> impl Strategy<Value = String> {
    let name = || select(vec!["a", "b", "'a'", "a.b", "b.a", "a.b.c", "c.a"]);
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_lines_are_read_alike(text in lines()) {
        compare(&text);
    }
}
