//! Calls of adapted functions: what the caller passed and found, and what the library received and wrote.

use std::collections::BTreeMap;

use super::adapters::{Adapters, Expression, Fails, Made, Trial, Value};

/// Values of fields, by `ARGUMENT.PATH`.
type Fields = BTreeMap<String, String>;

/// A call, as printed and recorded.
#[derive(Debug, Default)]
pub struct Ran {
    /// Arguments of the caller.
    passed: Vec<String>,
    /// Fields before and after the call.
    given: Fields,
    found: Fields,
    /// `STATUS filled`, …
    result: String,
    /// Calls of library functions, and of helpers.
    records: Vec<Record>,
    helpers: Vec<String>,
}

/// A call of a library function.
#[derive(Debug, Default)]
struct Record {
    name: String,
    arguments: Vec<String>,
    fields: Fields,
    /// Fields of outputs before the library wrote them.
    before: Fields,
}

/// Reads `0:VALUE 1:VALUE ...`.
fn arguments(text: &str) -> Vec<String> {
    let words = text.split_whitespace();
    words
        .filter_map(|word| Some(word.split_once(':')?.1.to_owned()))
        .collect()
}

/// Reads `0.PATH=VALUE ...`; those after a `<` are in the second map.
fn fields(text: &str) -> (Fields, Fields) {
    let (mut fields, mut before) = (Fields::new(), Fields::new());
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        let (into, word) = match word {
            "<" => (&mut before, words.next().unwrap_or_default()),
            word => (&mut fields, word),
        };
        if let Some((key, value)) = word.split_once('=') {
            into.insert(key.to_owned(), value.to_owned());
        }
    }
    (fields, before)
}

/// Reads the calls that a caller printed and those that the library recorded, by their labels.
pub fn runs(printed: &str, log: &str) -> BTreeMap<usize, Ran> {
    let mut runs: BTreeMap<usize, Ran> = BTreeMap::new();
    let label = |lines: &mut std::str::Lines<'_>| lines.next()?.trim().parse().ok();
    for section in printed.split("call ").skip(1) {
        let mut lines = section.lines();
        let Some(label) = label(&mut lines) else {
            continue;
        };
        let run = runs.entry(label).or_default();
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "passed" => run.passed = arguments(rest),
                "given" => run.given = fields(rest).0,
                "found" => run.found = fields(rest).0,
                "result" => run.result = rest.to_owned(),
                _ => run.result = line.to_owned(),
            }
        }
    }
    for section in log.split("case ").skip(1) {
        let mut lines = section.lines();
        let Some(run) = label(&mut lines).and_then(|label| runs.get_mut(&label)) else {
            continue;
        };
        for line in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "helper" => run.helpers.push(rest.to_owned()),
                "fields" => {
                    if let Some(record) = run.records.last_mut() {
                        (record.fields, record.before) = fields(rest);
                    }
                }
                name => run.records.push(Record {
                    name: name.to_owned(),
                    arguments: arguments(rest),
                    ..Record::default()
                }),
            }
        }
    }
    runs
}

/// Part of an argument that does not depend on the size of its struct.
fn head(argument: &str) -> &str {
    argument.split('/').next().unwrap_or_default()
}

fn is_null(argument: &str) -> bool {
    ["NULL", "(nil)", "0"].contains(&argument)
}

/// Whether a caller and a library see the same address, and a struct of the same size there.
fn is_same_memory(passed: &str, found: &str) -> bool {
    let place = |argument: &str| {
        let mut parts = argument.split('/').map(str::to_owned);
        (parts.next(), parts.nth(1))
    };
    place(passed) == place(found)
}

fn is_output(argument: &str) -> bool {
    argument.contains("/out/")
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if is_null(text) => Some(0),
        None => text.parse().ok(),
    }
}

/// Whether a value of at least 4 bytes is a number.
fn equals(text: &str, wanted: i64) -> bool {
    let bits = wanted.cast_unsigned();
    let short = bits & u64::from(u32::MAX);
    number(text).is_some_and(|found| found == bits || wanted < 0 && found == short)
}

/// Path of a field of an argument.
fn path(key: &str, argument: usize) -> Option<&str> {
    let (at, path) = key.split_once('.')?;
    (at.parse() == Ok(argument)).then_some(path)
}

/// Whether a path is that of reserved bytes.
fn is_reserved(path: &str) -> bool {
    path.starts_with('~')
}

/// Path of the bytes of a struct that are no field.
const REST: &str = "(rest)";

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}

/// A call, with its expectations.
struct Check<'a> {
    adapters: &'a Adapters,
    trial: &'a Trial<'a>,
    ran: &'a Ran,
}

/// Returns what is wrong with a call.
pub fn check(
    adapters: &Adapters,
    trial: &Trial<'_>,
    ran: &Ran,
    refused: i32,
) -> Result<(), String> {
    let check = Check {
        adapters,
        trial,
        ran,
    };
    let Some((name, expressions)) = &trial.calls else {
        let is_given = trial.status != 0;
        check.status(if is_given { trial.status } else { refused })?;
        ensure(ran.records.is_empty(), || {
            format!("calls {:?}", ran.records)
        })?;
        return check.outputs(None);
    };
    check.status(trial.status)?;
    let record = match (&ran.records[..], &trial.also) {
        ([record], None) => record,
        ([record, second], Some(also)) => {
            check.call(second, also)?;
            record
        }
        _ => return Err(format!("calls {:?}", ran.records)),
    };
    check.call(record, &(name.clone(), expressions.clone()))?;
    if trial.fails == Fails::Nothing {
        for key in trial.writes.keys() {
            ensure(record.fields.contains_key(key), || {
                format!("{name} does not write {key}")
            })?;
        }
    }
    check.helpers()?;
    check.outputs(Some((record, expressions)))
}

impl Check<'_> {
    /// Checks a call of the library.
    fn call(
        &self,
        record: &Record,
        (name, expressions): &(String, Vec<Expression>),
    ) -> Result<(), String> {
        ensure(record.name == *name, || format!("calls {}", record.name))?;
        ensure(record.arguments.len() == expressions.len(), || {
            format!("{} arguments", record.arguments.len())
        })?;
        for (at, expression) in expressions.iter().enumerate() {
            self.argument(record, at, expression)
                .map_err(|e| format!("argument {at} of {name}: {e}"))?;
        }
        Ok(())
    }

    fn status(&self, status: i32) -> Result<(), String> {
        let found = &self.ran.result;
        let rest = found.strip_prefix(&format!("{status} "));
        ensure(rest.is_some_and(|rest| rest != "overrun"), || {
            format!("`{found}`, not status {status}")
        })
    }

    /// The caller's argument.
    fn passed(&self, at: usize) -> Result<&str, String> {
        let passed = self.ran.passed.get(at).map(String::as_str);
        passed.ok_or_else(|| format!("the caller has no argument {at}"))
    }

    /// Checks an argument of the library's function, and the fields that it reads.
    fn argument(&self, record: &Record, at: usize, expression: &Expression) -> Result<(), String> {
        let found = &record.arguments[at];
        let wrong = || format!("{found}, not {expression:?}");
        match expression {
            Expression::Any => Ok(()),
            Expression::Null => ensure(is_null(found), wrong),
            Expression::Number(number) => ensure(equals(found, *number), wrong),
            Expression::Header => {
                let code = i64::from(self.trial.header.code());
                ensure(equals(found, code), wrong)
            }
            Expression::Field(key) => {
                let given = self.ran.given.get(key).and_then(|value| number(value));
                ensure(given.is_some() && given == number(head(found)), wrong)
            }
            Expression::Same(of) => {
                let passed = self.passed(*of)?;
                let is_same = head(passed) == head(found) || is_null(passed) && is_null(found);
                ensure(is_same, wrong)?;
                if is_same_memory(passed, found) {
                    return Ok(());
                }
                self.inputs(record, at, *of)
            }
            Expression::Fields(of) => {
                ensure(is_null(self.passed(*of)?) == is_null(found), wrong)?;
                self.inputs(record, at, *of)
            }
            Expression::Struct(wanted) => self.structure(record, at, wanted),
        }
    }

    /// Checks that the library read the fields of the caller's struct.
    fn inputs(&self, record: &Record, at: usize, of: usize) -> Result<(), String> {
        if is_output(&record.arguments[at]) || is_null(&record.arguments[at]) {
            return Ok(());
        }
        let read = |key: &str| path(key, at).map(str::to_owned);
        let (given, seen) = (&self.ran.given, &record.fields);
        for (key, value) in seen {
            let Some(path) = read(key) else { continue };
            let wanted = given.get(&format!("{of}.{path}"));
            let holds = match (wanted, self.adapters.made(self.trial.row, &path)) {
                // The largest member of a union: the bytes of the others.
                _ if path.ends_with("~pad") => true,
                _ if is_reserved(&path) => equals(value, 0),
                (Some(wanted), _) => wanted == value,
                (None, Some(Made::Constant(constant))) => equals(value, *constant),
                (None, Some(Made::Field(other))) => {
                    given.get(&format!("{of}.{}", other.field)) == Some(value)
                }
                (None, _) => return Err(format!("nothing is said about {path}")),
            };
            ensure(holds, || format!("{path} is {value}, not {wanted:?}"))?;
        }
        // A field is only dropped where the file says so.
        for key in given.keys() {
            let Some(path) = path(key, of).filter(|path| !is_reserved(path)) else {
                continue;
            };
            let is_known = seen.contains_key(&format!("{at}.{path}"))
                || self.adapters.made(self.trial.row, path).is_some();
            ensure(is_known, || format!("{path} is dropped"))?;
        }
        Ok(())
    }

    /// Checks a struct of which all fields are named, or the inputs in one that the library writes.
    fn structure(
        &self,
        record: &Record,
        at: usize,
        wanted: &[(String, Expression)],
    ) -> Result<(), String> {
        let is_output = is_output(&record.arguments[at]);
        let seen = if is_output {
            &record.before
        } else {
            &record.fields
        };
        for (path, expression) in wanted {
            let value = seen.get(&format!("{at}.{path}"));
            let value = value.ok_or_else(|| format!("no field {path}"))?;
            let holds = match expression {
                Expression::Number(number) => equals(value, *number),
                Expression::Same(of) => self.passed(*of)? == value,
                _ => false,
            };
            ensure(holds, || format!("{path} is {value}"))?;
        }
        for (key, value) in seen {
            let Some(path) = path(key, at) else { continue };
            let is_wanted = wanted.iter().any(|(wanted, _)| wanted == path);
            let holds = is_wanted || is_output || is_reserved(path) && equals(value, 0);
            ensure(holds, || format!("{path} is {value}"))?;
        }
        Ok(())
    }

    /// Checks that attributes are queried of the caller's object, and only if the driver knows them.
    fn helpers(&self) -> Result<(), String> {
        for helper in &self.ran.helpers {
            let words: Vec<&str> = helper.split(' ').collect();
            let [name, object, number] = words[..] else {
                return Err(format!("`{helper}`"));
            };
            let is_passed = self.ran.passed.iter().any(|passed| head(passed) == object);
            ensure(is_passed, || format!("`{helper}`: not the caller's"))?;
            if !name.ends_with("Attribute") {
                continue;
            }
            let table = self.trial.row.fields.as_ref();
            let mut made = table
                .into_iter()
                .flat_map(|name| &self.adapters.fields[name]);
            let is_known = made.any(|(_, made)| match made {
                Made::Attribute(of) => {
                    equals(number, of.attribute) && of.is_known(self.trial.driver)
                }
                Made::Constant(_) | Made::Field(_) => false,
            });
            ensure(is_known, || {
                format!("`{helper}` with driver {}", self.trial.driver)
            })?;
        }
        Ok(())
    }

    /// Checks the outputs that the caller found.
    fn outputs(&self, called: Option<(&Record, &Vec<Expression>)>) -> Result<(), String> {
        let trial = self.trial;
        let is_success = called.is_some() && trial.fails == Fails::Nothing;
        let explicit = if is_success {
            &trial.out
        } else {
            &trial.failed
        };
        for key in explicit.keys() {
            let is_found = self.ran.found.contains_key(key);
            let argument = key.split('.').next().and_then(|at| at.parse().ok());
            let is_null = argument.is_some_and(|at| self.passed(at).is_ok_and(is_null));
            ensure(is_found || is_null, || format!("no output {key}"))?;
        }
        for (key, value) in &self.ran.found {
            let Some((argument, path)) = key.split_once('.') else {
                continue;
            };
            let problem = |wanted: &str| format!("{key} is {value}, not {wanted}");
            if let Some(wanted) = explicit.get(key).filter(|_| called.is_some()) {
                let record = called.map(|(record, _)| record);
                ensure(self.is_value(value, wanted, record), || {
                    problem(&wanted.to_string())
                })?;
                continue;
            }
            let untouched = self.ran.given.get(key).map_or("before", String::as_str);
            let mapped = called.filter(|_| is_success && trial.status == 0).and_then(
                |(record, expressions)| {
                    let of: usize = argument.parse().ok()?;
                    let is_mapped = |at: &Expression| {
                        [Expression::Same(of), Expression::Fields(of)].contains(at)
                    };
                    let at = expressions.iter().position(is_mapped)?;
                    is_output(&record.arguments[at]).then_some((record, at))
                },
            );
            if path == REST {
                let is_passed_on = mapped
                    .is_some_and(|(record, at)| self.is_passed_on(argument, &record.arguments[at]));
                if is_passed_on {
                    continue;
                }
                let allowed: &[&str] = if mapped.is_some() || !explicit.is_empty() {
                    &["before", "clean"]
                } else {
                    &["before"]
                };
                ensure(allowed.contains(&value.as_str()), || problem("clean"))?;
                continue;
            }
            let Some((record, at)) = mapped else {
                ensure(value == untouched, || problem(untouched))?;
                continue;
            };
            let written = record.fields.get(&format!("{at}.{path}"));
            let made = self.adapters.made(trial.row, path);
            let found = &record.arguments[at];
            match (written, made) {
                // A union: the padding of its other members, which the library writes.
                _ if path.ends_with("~pad") && self.is_written_in_place(argument, found) => {}
                _ if is_reserved(path) => {
                    let is_plausible = ["before", "filled"].contains(&value.as_str());
                    ensure(is_plausible || equals(value, 0), || problem("zero"))?;
                }
                (Some(written), _) => ensure(written == value, || problem(written))?,
                (None, Some(Made::Constant(constant))) => {
                    ensure(equals(value, *constant), || problem(&constant.to_string()))?;
                }
                (None, Some(Made::Field(other))) => {
                    let written = record.fields.get(&format!("{at}.{}", other.field));
                    ensure(written == Some(value), || problem(&format!("{written:?}")))?;
                }
                (None, Some(Made::Attribute(of))) => {
                    let wanted = match of.default {
                        Some(default) if !of.is_known(trial.driver) => default,
                        _ => 1000 + of.attribute,
                    };
                    ensure(equals(value, wanted), || problem(&wanted.to_string()))?;
                }
                // Versions with different fields that share a variant in the ABI table.
                (None, None) if self.is_passed_on(argument, found) => {}
                (None, None) => return Err(format!("nothing is said about {key}")),
            }
        }
        Ok(())
    }

    /// Whether an argument of the caller is that of the library.
    fn is_passed_on(&self, argument: &str, found: &str) -> bool {
        let passed = argument.parse().ok().and_then(|at| self.passed(at).ok());
        passed.is_some_and(|passed| is_same_memory(passed, found))
    }

    /// Whether the library writes to the caller's address, a struct of any size.
    fn is_written_in_place(&self, argument: &str, found: &str) -> bool {
        let passed = argument.parse().ok().and_then(|at| self.passed(at).ok());
        passed.is_some_and(|passed| head(passed) == head(found))
    }

    /// Whether a value is the wanted one: a number, a name, `any`, `before`, or `@ARGUMENT.PATH`, which the library
    /// wrote.
    fn is_value(&self, found: &str, wanted: &Value, record: Option<&Record>) -> bool {
        match wanted {
            Value::Number(number) => equals(found, *number),
            Value::Text(text) if text == "any" => true,
            Value::Text(text) => match text.strip_prefix('@') {
                Some(key) => {
                    let written = record.and_then(|record| record.fields.get(key));
                    written.is_some_and(|written| written == found)
                }
                None => found == text,
            },
        }
    }
}
