//! Calls that callers print, and that the fake libraries record.

use std::collections::BTreeMap;

/// Values of fields, by `ARGUMENT.PATH`.
pub type Fields = BTreeMap<String, String>;

/// A call, as the caller prints it and the library records it.
#[derive(Debug, Default)]
pub struct TracedCall {
    /// Arguments of the caller.
    pub arguments: Vec<String>,
    /// Fields before and after the call.
    pub before: Fields,
    pub after: Fields,
    /// `STATUS filled`, …
    pub result: String,
    /// Calls of library functions, and of helpers.
    pub records: Vec<Record>,
    pub helpers: Vec<String>,
}

/// A call of a library function.
#[derive(Debug, Default)]
pub struct Record {
    pub name: String,
    pub arguments: Vec<String>,
    pub fields: Fields,
    /// Fields of outputs before the library wrote them.
    pub before: Fields,
}

/// Reads `0:VALUE 1:VALUE ...`.
fn arguments(text: &str) -> Vec<String> {
    text.split_whitespace()
        .filter_map(|word| Some(word.split_once(':')?.1.to_owned()))
        .collect()
}

/// Reads `0.PATH=VALUE ...`; those after a `<` are in the second map.
fn fields(text: &str) -> (Fields, Fields) {
    let (mut fields, mut before) = (Fields::new(), Fields::new());
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let (map, word) = match word {
            "<" => (&mut before, words.next().unwrap_or_default()),
            word => (&mut fields, word),
        };
        if let Some((key, value)) = word.split_once('=') {
            map.insert(key.to_owned(), value.to_owned());
        }
    }
    (fields, before)
}

fn label(line: Option<&str>) -> Option<usize> {
    line?.trim().parse().ok()
}

/// Reads the calls that a caller printed and those that the library recorded, by their labels.
pub fn traced_calls(printed: &str, log: &str) -> BTreeMap<usize, TracedCall> {
    let mut calls: BTreeMap<usize, TracedCall> = BTreeMap::new();
    for section in printed.split("call ").skip(1) {
        let mut lines = section.lines();
        let Some(label) = label(lines.next()) else {
            continue;
        };
        let call = calls.entry(label).or_default();
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "passed" => call.arguments = arguments(rest),
                "given" => call.before = fields(rest).0,
                "found" => call.after = fields(rest).0,
                "result" => call.result = rest.to_owned(),
                _ => call.result = line.to_owned(),
            }
        }
    }
    for section in log.split("case ").skip(1) {
        let mut lines = section.lines();
        let Some(call) = label(lines.next()).and_then(|label| calls.get_mut(&label)) else {
            continue;
        };
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "helper" => call.helpers.push(rest.to_owned()),
                "fields" => {
                    if let Some(record) = call.records.last_mut() {
                        (record.fields, record.before) = fields(rest);
                    }
                }
                name => call.records.push(Record {
                    name: name.to_owned(),
                    arguments: arguments(rest),
                    ..Record::default()
                }),
            }
        }
    }
    calls
}
