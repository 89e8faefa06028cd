use super::super::super::history::{history, tests::declared};
use super::super::super::numbers::{libraries, parse};
use super::super::super::reviewed::NONE;
use super::super::super::table::AbiTable;
use super::super::super::tests::{components, shipped};
use super::*;
use crate::manifests::diff;
use crate::recipes::root;

fn shipped_header(id: &str) -> String {
    let path = root().join(format!("templates/adapters/{id}_numbers.h"));
    std::fs::read_to_string(path).unwrap()
}

/// Evidence of 1.0, 2.0, ..., from the declarations of each.
fn evidence(texts: &[&str]) -> Vec<Evidence> {
    (1..)
        .zip(texts)
        .map(|(major, text)| declared(major, text))
        .collect()
}

const ROWS: &str = r#"
[[gpu]]
old = "kind"
new = "sort"
since = "2.0"
kind = "k"
names = ["KIND_", "SORT_"]
renamed = { BIG = "LARGE" }
none = ["KIND_NONE"]

[[gpu]]
old = "way"
new = "way"
since = "2.0"
kind = "w"
preferred = "WAY_"
"#;

const OLD: &str = "
typedef enum { KIND_A = 10, KIND_BIG = 11, KIND_NONE = 99 } kind;
typedef enum { GO_LEFT, GO_RIGHT, WAY_LEFT, WAY_RIGHT } way;
";
const NEW: &str = "
typedef enum { SORT_LARGE, SORT_A, SORT_OTHER } sort;
typedef enum { WAY_RIGHT, WAY_LEFT, GO_RIGHT = 0, GO_LEFT = 1 } way;
";

/// The lines of the header and of the table for two versions of some functions.
fn generated(rows: &str, old: &str, new: &str) -> Result<(String, String), String> {
    let rows = parse(rows)?.remove("gpu").unwrap_or_default();
    let evidence = evidence(&[&format!("{OLD}{old}"), &format!("{NEW}{new}")]);
    let table = history(&evidence, &NONE, &rows)?.table;
    let header = text("gpu", &rows, &evidence, &table.groups)?;
    let header: Vec<&str> = header
        .lines()
        .skip(2)
        .filter(|line| !line.is_empty())
        .collect();
    let table = table.to_text("", &BTreeSet::new(), |_| Vec::new());
    let lines: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with('@'))
        .skip(2)
        .collect();
    Ok((header.join("\n"), lines.join("\n")))
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn functions_that_differ_in_numbers_only_are_found() {
    let (header, table) = generated(
        ROWS,
        "int gpuA(void *, kind, long, way); int gpuGet(way *); int gpuMore(kind); int gpuReal(kind, float);",
        "int gpuA(void *, sort, long, way); int gpuGet(way *); int gpuMore(sort, int); int gpuReal(sort, float);",
    )
    .unwrap();
    assert_eq!(
        header,
        "/* kind before 2.0, sort since then. */
static const struct number kind_to_sort[] = {
    {10, 1}, /* KIND_A, SORT_A */
    {11, 0}, /* KIND_BIG, SORT_LARGE */
};
/* way before 2.0 and since then. */
static const struct number way_numbers[] = {
    {2, 1}, /* WAY_LEFT */
    {3, 0}, /* WAY_RIGHT */
    {0, 1}, /* GO_LEFT */
    {1, 0}, /* GO_RIGHT */
};
NUMBERS(gpuA, numbers_by_2, 4, \".k.w\")
NUMBERS(gpuGet, numbers_by_2, 1, \"W\")
NUMBERS(gpuA, numbers_of_2, 4, \".k.w\")
NUMBERS(gpuGet, numbers_of_2, 1, \"W\")"
    );
    assert_eq!(
        table,
        "@adapter 1 2 numbers_by_2\n@adapter 2 1 numbers_of_2\n@adapter 1 2 numbers_by_2\n@adapter 2 1 numbers_of_2"
    );
}

#[test]
#[ignore = "needs clang (tests/run)"]
fn numbers_without_a_counterpart_are_listed() {
    for (text, replacement, expected) in [
        (
            r#"none = ["KIND_NONE"]"#,
            "",
            r#"counterpart: {"KIND_NONE"}"#,
        ),
        (
            "BIG = \"LARGE\"",
            "",
            r#"counterpart: {"KIND_BIG", "KIND_NONE"}"#,
        ),
        (
            r#"new = "sort""#,
            r#"new = "other""#,
            "no headers have other",
        ),
        (r#"since = "2.0""#, r#"since = "x""#, "`x` is no version"),
    ] {
        let rows = ROWS.replacen(text, replacement, 1);
        let error = generated(&rows, "int gpuA(kind, way);", "int gpuA(sort, way);").unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

/// The generated header has the adapters of the table, and no others.
#[test]
fn shipped_numbers_are_those_of_the_tables() {
    for id in libraries().unwrap() {
        let text = shipped(recipe(&id).unwrap());
        let mut listed: BTreeSet<(String, String)> = BTreeSet::new();
        for group in text.split("\n\n").skip(1) {
            let lines: Vec<Vec<&str>> = group
                .lines()
                .map(|line| line.split(' ').collect())
                .collect();
            for adapter in &lines {
                let ["@adapter", old, _, code] = adapter[..] else {
                    continue;
                };
                if !code.starts_with("numbers_") {
                    continue;
                }
                let variant = format!("={old}");
                for words in &lines {
                    if !words[0].starts_with(['@', '#'])
                        && words[1..].iter().any(|word| word.ends_with(&variant))
                    {
                        listed.insert((words[0].to_owned(), code.to_owned()));
                    }
                }
            }
        }
        let mut calls: BTreeSet<(String, String)> = BTreeSet::new();
        for line in shipped_header(&id).lines() {
            let Some(call) = line.strip_prefix("NUMBERS(") else {
                continue;
            };
            let words: Vec<&str> = call.trim_end_matches(')').split(", ").collect();
            let kinds = words[3].trim_matches('"');
            assert_eq!(words[2], kinds.len().to_string(), "{call}");
            calls.insert((words[0].to_owned(), words[1].to_owned()));
        }
        assert!(calls.len() > 20);
        assert_eq!(calls, listed, "{id}");
        assert!(AbiTable::parse(&text).is_ok());
    }
}

#[test]
#[ignore = "needs packages of suites that change (tests/run --all)"]
fn heavy_shipped_numbers_are_those_of_all_headers() {
    for id in libraries().unwrap() {
        let text = header(&id, &components()).unwrap();
        let changes = diff::lines(&shipped_header(&id), &text);
        assert!(
            changes.is_empty(),
            "`cargo xtask adapters` changes {id}_numbers.h:\n{changes}"
        );
    }
}
